//! The bound store of documents of a graph: which table, which columns.

use kernel::json::quoted;
use pgrx::{PgSqlErrorCode, pg_sys};
use serde_json::{Value, json};

use crate::pg::catalog::index::has_gin_index;
use crate::pg::catalog::names::{self, literal_of};
use crate::pg::catalog::privileges::{Use, check_binder, shown_to_others};
use crate::pg::catalog::relation::{self, Table};
use crate::pg::error::{SqlError, Word};
use crate::pg::private::binding::{bound_store, store_writers};
use crate::pg::query::{NamedTable, Statement, Template, check_unseen};
use crate::pg::shortage::memory;
use crate::pg::tables::bound_table::{
    BoundTable, ColumnRule, Mapping, TableRules, TableText, ValueKind, fill, optional, required,
};

const STORE_COLUMNS: &[ColumnRule] = &[
    required("key", &["key"], ValueKind::Text),
    required("document", &["document"], ValueKind::Bytes),
    required("kind", &["kind"], ValueKind::Text),
    required("graph", &["graph"], ValueKind::Text),
    required("role", &["role"], ValueKind::Text),
    required("rls", &["rls"], ValueKind::Boolean),
    required("anchor", &["anchor"], ValueKind::Id),
    required("turns", &["turns"], ValueKind::Ids),
    required("kept_by", &["kept_by"], ValueKind::Text),
    required("kept_at", &["kept_at"], ValueKind::Time),
    required("checked_at", &["checked_at"], ValueKind::Time),
    required("status", &["status"], ValueKind::Text),
    required("superseded_by", &["superseded_by"], ValueKind::Text),
];

/// The query that shows the bindings.
const BINDING: &str = "SELECT name, store FROM graph_kernel.store_binding";

/// The store as it is named now.
pub struct StoreTable {
    store: BoundTable,
    in_statements: TableText,
}

impl StoreTable {
    /// The store that is bound for the graph of this name; it stays locked AccessShare to the transaction's end. Raises
    /// 42501 before that where the current role has no right to it.
    ///
    /// # Errors
    /// 42P01 where there is none; else as [`StoreTable::resolve`].
    pub fn of(graph: &str) -> Result<Self, SqlError> {
        Self::bound_to(graph)?.ok_or_else(|| {
            let message = format!("no store is bound for the graph {}", quoted(graph));
            SqlError::new(PgSqlErrorCode::ERRCODE_UNDEFINED_TABLE, message)
                .word(Word::StoreTable)
                .hint(format!(
                    "{};",
                    bind_command("graph_kernel.create_slice_store('public')", graph)
                ))
        })
    }

    /// As [`StoreTable::of`]; `None` where there is none.
    ///
    /// # Errors
    /// As [`StoreTable::resolve`].
    pub fn bound_to(graph: &str) -> Result<Option<Self>, SqlError> {
        memory::check();
        let bound = bound_store(graph).map(|(store, binder)| {
            relation::check_rights(store);
            let table = Self::resolve(store, graph, binder);
            table.map_err(|error| shown_to_others(error, Word::StoreTable, binder, BINDING))
        });
        let bound = bound.transpose()?;
        // After it was found and waited for: another one may have been bound meanwhile.
        check_unseen(store_writers(graph))?;
        Ok(bound)
    }

    /// The table of this OID as the store that this role binds or bound for a graph.
    ///
    /// # Errors
    /// 42P01, 42703, 42804, 42809 when the table is not a store; 42501 when its binder may not read it and insert
    /// there.
    pub fn resolve(store: pg_sys::Oid, graph: &str, binder: pg_sys::Oid) -> Result<Self, SqlError> {
        let command = || {
            let table = names::typed_name(store).unwrap_or("<store>".to_owned());
            bind_command(&literal_of(&table), graph)
        };
        let rules = TableRules {
            part: "store",
            word: Word::StoreTable,
            columns: STORE_COLUMNS,
            expressions: None,
            command: &|_| command(),
        };
        let store = BoundTable::resolve(store, &rules, Mapping::of_columns(None));
        let store = store.map_err(|error| match error.is(Word::StoreTable) {
            true => error.hint(
                "Bind a permanent table with the columns of a store, as this makes one: \
                 SELECT graph_kernel.create_slice_store('<schema>');",
            ),
            false => error,
        })?;
        let read = || {
            let columns = store.columns.values();
            columns.flat_map(|column| store.raw_columns(column)).map(|raw| raw.number).collect()
        };
        let binding = || BINDING.to_owned();
        check_binder(binder, store.table.oid, Use::Read, read, binding)
            .and_then(|()| check_binder(binder, store.table.oid, Use::Insert, Vec::new, binding))
            .map_err(|error| error.word(Word::StoreTable))?;
        let in_statements = store.in_statements("store", "s");
        Ok(StoreTable { store, in_statements })
    }

    /// What SQL code needs of the table: its OID, and whether turns are found by an index.
    pub fn description(&self) -> Value {
        let turns = self.store.columns["turns"].column_name().and_then(|name| {
            let columns = self.store.table.columns.iter();
            columns.clone().find(|column| column.name == name).map(|column| column.number)
        });
        let has_index = turns.is_some_and(|turns| has_gin_index(self.store.table.oid, turns));
        json!({ "oid": self.store.table.oid.to_u32(), "has_turns_index": has_index })
    }

    /// The table.
    pub fn oid(&self) -> pg_sys::Oid {
        self.store.table.oid
    }

    /// The table's name for messages and hints: schema-qualified, quoted.
    pub fn qualified_name(&self) -> String {
        self.store.table.qualified_name()
    }

    /// As [`BoundTable::check_settled`].
    ///
    /// # Errors
    /// 40001.
    pub fn check_settled(&self) -> Result<(), SqlError> {
        self.store.check_settled()
    }

    /// As [`StoreTable::statement`], of one that names rows that refer to its documents first.
    pub fn statement_with(&self, template: &Template, rows: &PromotingRows) -> Statement {
        fill(template, &[], &[&rows.in_statements, &self.in_statements], &[], false)
    }

    /// A statement of sql/queries, with names filled in.
    pub fn statement(&self, template: &Template) -> Statement {
        fill(template, &[], &[&self.in_statements], &[], false)
    }

    /// A statement of sql/queries that writes to it by the names of its columns.
    pub fn writing(&self, template: &Template) -> Statement {
        let text = template.text.replace("{store}", &self.qualified_name());
        let table = &self.store.table;
        let named = NamedTable {
            oid: table.oid,
            columns: table.columns.clone(),
            is_distributed: self.store.is_distributed,
        };
        Statement::new(template, text, vec![named])
    }
}

/// Rows of a user's table that promote, or the traces of searches: what they refer to, and what may name turns.
pub struct PromotingRows {
    rows: BoundTable,
    in_statements: TableText,
}

impl PromotingRows {
    /// The rows of the table of this OID with these columns: `reference` has keys of documents; `document`, `turns`,
    /// `provenance` and `id` are looked through. Raises 42501 where the current role has no right to it.
    ///
    /// # Errors
    /// 42P01, 42703, 42804, 42809 when it is not such a table; 55P03 where it is locked.
    pub fn of(table: pg_sys::Oid, columns: &Value) -> Result<Self, SqlError> {
        relation::check_rights(table);
        // Who may lock a table that promotes, and may have made it one, keeps no reader of all such tables waiting.
        if !relation::lock_at_once(table) {
            let message = "a table of rows that promote is locked";
            return Err(SqlError::new(PgSqlErrorCode::ERRCODE_LOCK_NOT_AVAILABLE, message)
                .word(Word::StoreTable)
                .hint("Call the function again."));
        }
        Self::waited_for(table, columns)
    }

    /// As [`PromotingRows::of`], of a table that somebody has bound, which is waited for.
    ///
    /// # Errors
    /// As [`PromotingRows::of`].
    pub fn waited_for(table: pg_sys::Oid, columns: &Value) -> Result<Self, SqlError> {
        const COLUMNS: &[ColumnRule] = &[
            optional("reference", &[], ValueKind::Text),
            optional("document", &[], ValueKind::Named),
            optional("turns", &[], ValueKind::Named),
            optional("id", &[], ValueKind::Named),
            optional("provenance", &[], ValueKind::Named),
        ];
        const HINT: &str =
            "The table must be permanent; graph_check() names triggers with bad arguments.";
        if Table::lock(table).is_none() {
            let message = "a table of rows that promote was dropped while it was looked up";
            return Err(SqlError::new(PgSqlErrorCode::ERRCODE_UNDEFINED_TABLE, message)
                .word(Word::StoreTable)
                .hint("Call the function again."));
        }
        let rules = TableRules {
            part: "rows that promote",
            word: Word::StoreTable,
            columns: COLUMNS,
            expressions: None,
            command: &|_| HINT.to_owned(),
        };
        let rows = BoundTable::resolve(table, &rules, Mapping::of_columns(columns.as_object()))
            .map_err(|error| match error.is(Word::StoreTable) {
                true => error.hint(HINT),
                false => error,
            })?;
        let in_statements = rows.in_statements("atoms", "a");
        Ok(PromotingRows { rows, in_statements })
    }

    /// As [`BoundTable::check_settled`].
    ///
    /// # Errors
    /// 40001.
    pub fn check_settled(&self) -> Result<(), SqlError> {
        self.rows.check_settled()
    }

    /// A statement of sql/queries that reads them, with names filled in.
    pub fn statement(&self, template: &Template) -> Statement {
        fill(template, &[], &[&self.in_statements], &[], false)
    }
}

/// The call that binds what this expression gives as the store of a graph.
fn bind_command(store: &str, graph: &str) -> String {
    let graph = match graph {
        "default" => String::new(),
        graph => format!(", {}", literal_of(graph)),
    };
    format!("SELECT graph_kernel.bind_store({store}{graph})")
}
