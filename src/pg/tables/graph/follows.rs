//! Edges of tables without a parent column: each turn follows the one before it in its session.
//!
//! The turns of a session have a total order: by the keys of the mapping, then by id. So a turn has at most one turn
//! before it and one after it, and both are one index probe: a row comparison that is ordered by all its columns. An
//! equality of the sessions would let the planner leave the session out of the order and walk an index on the key
//! alone. An inequality ends the scan with the session.
//!
//! A unique index never stands for the comparison of ids: it tells of the rows as they are now, and an older snapshot
//! has others. It only tells which index is enough.

use std::collections::BTreeMap;

use kernel::graph::edge::EdgeType;
use pgrx::pg_sys;
use serde_json::{Value, json};

use super::indexes::raw_columns_to_include;
use super::mapping::{EDGE_TYPE, ORDER, SESSION};
use crate::pg::catalog::index::btree_indexes;
use crate::pg::tables::bound_table::{BoundColumn, BoundTable, TableText};

/// What the turns of a table follow each other by.
pub(super) struct Follows {
    pub(super) session: BoundColumn,
    /// One or two keys.
    pub(super) order: Vec<BoundColumn>,
    edge_type: EdgeType,
}

/// In which direction a row of the table is sought from another.
#[derive(Clone, Copy)]
enum Sought {
    Before,
    After,
}

impl Follows {
    pub(super) fn new(session: BoundColumn, order: Vec<BoundColumn>, edge_type: EdgeType) -> Self {
        Follows { session, order, edge_type }
    }

    /// Whether a unique index says that no two turns of a session have the same keys.
    fn has_unique_keys(&self, turns: &BoundTable) -> bool {
        let keys = [&self.session].into_iter().chain(&self.order);
        let keys: Vec<_> = keys.filter_map(|key| turns.indexed(key)).collect();
        btree_indexes(turns.table.oid).iter().any(|index| {
            index.is_unique
                && index.is_immediate
                && index.keys.iter().all(|key| {
                    // SAFETY: both were read within this call.
                    keys.iter().any(|(of, collation, _)| unsafe {
                        key.of.is(*of) && key.collation == *collation
                    })
                })
        })
    }

    /// What rows are compared by after the session: the order, and the id where it is not part of that.
    fn keys<'a>(&'a self, turns: &'a BoundTable) -> Vec<&'a BoundColumn> {
        let id = &turns.columns["id"];
        let is_ordered_by_id =
            self.order.iter().any(|key| key.expression("t") == id.expression("t"));
        self.order.iter().chain((!is_ordered_by_id).then_some(id)).collect()
    }

    /// The keys of the index that both probes read, and the columns that it should hold besides. Where no two turns
    /// have the same keys, a probe of an index without the id reads one row more.
    pub(super) fn index_keys<'a>(
        &'a self,
        turns: &'a BoundTable,
    ) -> (Vec<&'a BoundColumn>, Vec<&'a str>) {
        let is_unique = self.has_unique_keys(turns);
        let keys = if is_unique { self.order.iter().collect() } else { self.keys(turns) };
        let keys = [&self.session].into_iter().chain(keys).collect();
        (keys, raw_columns_to_include(turns, &turns.columns["id"]))
    }

    /// The turns table as a source of these edges.
    pub(super) fn source(&self, turns: &BoundTable) -> TableText {
        let columns = [
            ("parent", "e.parent".to_owned()),
            ("child", "e.child".to_owned()),
            ("edge_type", format!("'{}'::pg_catalog.text", self.edge_type.name())),
        ];
        let text = turns.in_statements_with("edges", "e", BTreeMap::from(columns));
        text.in_place_of(2, self.from(turns, Sought::Before), self.from(turns, Sought::After))
    }

    /// A subquery of all edges: of each row of the table, e, and the row that is sought from it, t.
    fn from(&self, turns: &BoundTable, sought: Sought) -> String {
        let id = &turns.columns["id"];
        let ([own, other], comparison, opposite, direction) = match sought {
            Sought::Before => (["child", "parent"], "<", ">", " DESC"),
            Sought::After => (["parent", "child"], ">", "<", ""),
        };
        let keys = self.keys(turns);
        let row = |alias: &str| {
            let keys = keys.iter().map(|key| key.expression(alias));
            let all: Vec<String> =
                [self.session.expression(alias)].into_iter().chain(keys).collect();
            all
        };
        let ordered: Vec<String> =
            row("t").into_iter().map(|key| format!("{key}{direction}")).collect();
        // A row comparison passes over what comes after the first keys that differ. IS NOT NULL would be a condition of
        // the index. From it the server begins the scan of an index without the id at the session's end.
        let stored = |alias: &str| {
            let stored = row(alias).into_iter().map(|value| format!("({value} IS NULL) IS FALSE"));
            stored.collect::<Vec<_>>().join(" AND ")
        };
        let [session, session_of_other] = ["e", "t"].map(|alias| self.session.expression(alias));
        // The row comparison bounds the session at one end. Given both bounds, a server from 18 on begins the scan at
        // the session's end. Where row security keeps the comparison out of the index's condition, both are needed.
        let is_leakproof = |key: &&BoundColumn| {
            !key.is_expression() && key.base_type() != Some(pg_sys::NUMERICOID)
        };
        let needs_both = turns.table.has_row_security && !keys.iter().all(is_leakproof);
        let bounds = [Some(opposite), needs_both.then_some(comparison)];
        let within: Vec<String> = bounds
            .into_iter()
            .flatten()
            .map(|bound| format!("{session_of_other} OPERATOR(pg_catalog.{bound}=) {session}"))
            .collect();
        format!(
            "(SELECT {} AS {own}, o.id AS {other} FROM {table} AS e CROSS JOIN LATERAL (SELECT {} AS id \
            FROM {table} AS t WHERE {} AND {} \
             AND ROW({}) OPERATOR(pg_catalog.{comparison}) ROW({}) \
             AND {} ORDER BY {} LIMIT 1) AS o)",
            id.expression("e"),
            id.expression("t"),
            stored("e"),
            stored("t"),
            row("t").join(", "),
            row("e").join(", "),
            within.join(" AND "),
            ordered.join(", "),
            table = turns.from(),
        )
    }

    /// What a resolved mapping has for them.
    pub(super) fn mapped(&self) -> Value {
        let order: Vec<Value> = self.order.iter().map(BoundColumn::mapped).collect();
        json!({ SESSION: self.session.mapped(), ORDER: order, EDGE_TYPE: self.edge_type.name() })
    }
}
