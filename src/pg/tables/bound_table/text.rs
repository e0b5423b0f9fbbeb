//! Bound tables in the text of statements.

use std::collections::BTreeMap;
use std::rc::Rc;

use pgrx::pg_sys;

use super::BoundTable;
use crate::pg::catalog::relation::{self, Table};
use crate::pg::query::{NamedTable, Statement, Template};

/// A table as it stands in a statement's text.
pub struct TableText {
    /// The placeholder of the table itself.
    name: &'static str,
    /// Its alias in the statement, which begins the placeholders of columns.
    alias: &'static str,
    from: String,
    /// What stands for it where rows are found by their parent, where that is another text.
    by_parent: Option<String>,
    /// The table that is asked in its place where rows are found by their child.
    by_child: Option<(String, NamedTable)>,
    /// How often the table is named in each of them.
    times: usize,
    oid: pg_sys::Oid,
    is_distributed: bool,
    table_columns: Rc<[relation::TableColumn]>,
    /// The columns as expressions over the alias, by key.
    columns: BTreeMap<&'static str, String>,
}

impl BoundTable {
    /// The table as it stands in statements that call it by this placeholder and alias.
    pub fn in_statements(&self, name: &'static str, alias: &'static str) -> TableText {
        let columns = self.columns.iter().map(|(key, column)| (*key, column.expression(alias)));
        self.in_statements_with(name, alias, columns.collect())
    }

    /// As [`BoundTable::in_statements`], with these texts for the placeholders of columns.
    pub fn in_statements_with(
        &self,
        name: &'static str,
        alias: &'static str,
        columns: BTreeMap<&'static str, String>,
    ) -> TableText {
        let Table { oid, columns: table_columns, .. } = &self.table;
        TableText {
            name,
            alias,
            from: self.from(),
            by_parent: None,
            by_child: None,
            times: 1,
            oid: *oid,
            is_distributed: self.is_distributed,
            table_columns: Rc::clone(table_columns),
            columns,
        }
    }
}

impl TableText {
    /// The same, with a table that has the same rows in the same columns where they are found by their child.
    pub fn with_by_child(self, table: Option<&BoundTable>) -> Self {
        let named = |table: &BoundTable| NamedTable {
            oid: table.table.oid,
            columns: Rc::clone(&table.table.columns),
            is_distributed: table.is_distributed,
        };
        TableText { by_child: table.map(|table| (table.from(), named(table))), ..self }
    }

    /// The same with these texts in the place of the table, which name it so many times: where rows are found by their
    /// child, or in any order, and where they are found by their parent.
    pub fn in_place_of(self, times: usize, from: String, by_parent: String) -> Self {
        TableText { from, by_parent: Some(by_parent), times, ..self }
    }
}

/// Fills names into a statement of sql/queries: `{turns}` is a table, `{t.key}` a column of it; `extra`
/// are other placeholders and their texts, [`BY_IDS`] as well. `{edges_by_parent}` is `{edges}` where rows are found by
/// their parent, `{edges_by_child}` where by their child. `{t.key?}` is that column where a policy needs it, else NULL.
/// A part between `[[` and `]]` is repeated for each of `sources`, with UNION ALL between. In one pass: names that
/// users chose are never searched for placeholders.
pub fn fill(
    template: &Template,
    extra: &[(&str, &str)],
    tables: &[&TableText],
    sources: &[TableText],
    with_facts: bool,
) -> Statement {
    let mut filling = Filling { extra, with_facts, text: String::new(), named: Vec::new() };
    let mut parts = template.text.split("[[");
    filling.fill(parts.next().unwrap_or_default(), tables);
    for part in parts {
        let (repeated, rest) = part.split_once("]]").expect("repeated parts are closed");
        for (number, source) in sources.iter().enumerate() {
            if number > 0 {
                filling.text.push_str("\nUNION ALL\n");
            }
            let tables: Vec<&TableText> = tables.iter().copied().chain([source]).collect();
            filling.fill(repeated, &tables);
        }
        filling.fill(rest, tables);
    }
    Statement::new(template, filling.text, filling.named)
}

/// How turns are sought by the ids of `$1`: each by a probe of its own, or, where Citus reads the table, all by one
/// condition, of which it sees which servers to ask.
const BY_IDS: [(&str, [&str; 2]); 3] = [
    ("each_id", ["pg_catalog.unnest($1) AS k(id)\nCROSS JOIN LATERAL", ""]),
    ("that_id", ["k.id", "ANY ($1)"]),
    ("probed", ["OFFSET 0", ""]),
];

/// One of [`BY_IDS`].
fn by_ids(placeholder: &str, tables: &[&TableText]) -> Option<&'static str> {
    let (_, texts) = BY_IDS.into_iter().find(|(name, _)| *name == placeholder)?;
    let is_distributed = tables.iter().any(|table| table.is_distributed);
    Some(texts[usize::from(is_distributed)])
}

/// A statement that is being filled in.
struct Filling<'a> {
    extra: &'a [(&'a str, &'a str)],
    with_facts: bool,
    text: String,
    named: Vec<NamedTable>,
}

impl Filling<'_> {
    fn fill(&mut self, template: &str, tables: &[&TableText]) {
        let mut parts = template.split('{');
        self.text.push_str(parts.next().unwrap_or_default());
        for part in parts {
            let (placeholder, rest) = part.split_once('}').expect("placeholders are closed");
            self.put(placeholder, tables);
            self.text.push_str(rest);
        }
    }

    fn put(&mut self, placeholder: &str, tables: &[&TableText]) {
        if let Some((_, text)) = self.extra.iter().find(|(name, _)| *name == placeholder) {
            self.text.push_str(text);
            return;
        }
        if let Some(text) = by_ids(placeholder, tables) {
            self.text.push_str(text);
            return;
        }
        let placeholder = match placeholder.strip_suffix('?') {
            Some("t.created_at") if !self.with_facts => {
                return self.text.push_str("NULL::pg_catalog.timestamptz");
            }
            Some(_) if !self.with_facts => return self.text.push_str("NULL::pg_catalog.text"),
            needed => needed.unwrap_or(placeholder),
        };
        let found = match placeholder.split_once('.') {
            None => {
                let sought = ["_by_parent", "_by_child"].into_iter();
                let name = sought.filter_map(|by| placeholder.strip_suffix(by)).next();
                let name = name.unwrap_or(placeholder);
                tables.iter().find(|t| t.name == name).map(|table| {
                    let by_child =
                        table.by_child.as_ref().filter(|_| placeholder.ends_with("_by_child"));
                    if let Some((from, named)) = by_child {
                        self.named.push(named.clone());
                        return from;
                    }
                    let named = || {
                        let columns = Rc::clone(&table.table_columns);
                        let TableText { oid, is_distributed, .. } = **table;
                        NamedTable { oid, columns, is_distributed }
                    };
                    self.named.extend(std::iter::repeat_with(named).take(table.times));
                    let by_parent =
                        table.by_parent.as_ref().filter(|_| placeholder.ends_with("_by_parent"));
                    by_parent.unwrap_or(&table.from)
                })
            }
            Some((alias, key)) => {
                tables.iter().find(|t| t.alias == alias).and_then(|table| table.columns.get(key))
            }
        };
        self.text.push_str(found.expect("placeholders name tables of the statement"));
    }
}
