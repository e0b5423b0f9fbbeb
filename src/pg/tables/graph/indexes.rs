//! The indexes that a graph is read by.

use std::collections::BTreeSet;

use pgrx::pg_sys;
use serde_json::{Value, json};

use super::{Graph, ParentColumn};
use crate::pg::catalog::relation;
use crate::pg::tables::bound_table::{BoundColumn, BoundTable};

impl Graph {
    /// The indexes that the graph is read by: by the id, by each end of an edge, by session and time.
    pub(super) fn indexes(&self) -> Vec<Value> {
        let key = |column: &BoundColumn| column.index_key();
        let turns = &self.turns;
        let index = |name: &str,
                     bound: &BoundTable,
                     unique: bool,
                     keys: Vec<Option<String>>,
                     include: BTreeSet<&str>| {
            let keys: Vec<String> = keys.into_iter().flatten().collect();
            let include: Vec<String> = include.into_iter().map(relation::quote_as_needed).collect();
            let include: Vec<&String> =
                include.iter().filter(|column| !keys.contains(column)).collect();
            json!({
                "name": name, "rel": bound.table.oid.to_u32(), "is_unique": unique, "keys": keys, "include": include,
                "typed": keys.iter().map(|key| relation::with_escapes(key)).collect::<Vec<_>>(),
            })
        };
        let id = &turns.columns["id"];
        let by_id = index("index_turn_id", turns, true, vec![key(id)], self.read_with_ids());
        let mut indexes = vec![by_id];
        if let Some(edges) = &self.edges {
            let [parent, child, edge_type] =
                ["parent", "child", "edge_type"].map(|name| &edges.columns[name]);
            for (name, ends) in
                [("index_edge_parent", [parent, child]), ("index_edge_child", [child, parent])]
            {
                let include = raw_columns_of_expressions(edges, &ends);
                let keys =
                    vec![key(ends[0]), key(ends[1]), edge_type.column_name().and(key(edge_type))];
                indexes.push(index(name, edges, false, keys, include));
            }
        }
        // The child of such an edge is the row's turn, found by its id.
        for ParentColumn { parent, .. } in &self.parents {
            let include = raw_columns_of_expressions(turns, &[parent, id]);
            indexes.push(index(
                "index_edge_parent",
                turns,
                false,
                vec![key(parent), key(id)],
                include,
            ));
        }
        let [session, time] = ["session_id", "created_at"].map(|name| &turns.columns[name]);
        if session.stored.is_some() && time.stored.is_some() {
            indexes.push(index(
                "index_session",
                turns,
                false,
                vec![key(session), key(time)],
                BTreeSet::new(),
            ));
        }
        indexes
    }

    /// The columns that the index by ids should hold too, so that finding a turn's parents and scoring it read the
    /// index alone. A text or JSON value inside an expression may be too long for an index.
    fn read_with_ids(&self) -> BTreeSet<&str> {
        let turns = &self.turns;
        let parents = self.parents.iter().map(|parent| &parent.parent);
        let id = &turns.columns["id"];
        let ids: Vec<&BoundColumn> = [id].into_iter().chain(parents.clone()).collect();
        let mut columns = raw_columns_of_expressions(turns, &ids);
        columns.extend(parents.filter_map(BoundColumn::column_name));
        let scored = ["phase", "salience"].map(|name| &turns.columns[name]);
        let raw = |column| turns.raw_columns(column).into_iter();
        // Without all ids in it, the index alone is never enough.
        let all_ids = ids
            .iter()
            .all(|c| !c.is_expression() || raw(c).all(|raw| columns.contains(raw.name.as_str())));
        if !all_ids {
            return BTreeSet::new();
        }
        if scored
            .iter()
            .all(|c| !c.is_expression() || raw(c).all(|raw| relation::is_short(raw.type_oid)))
        {
            columns.extend(scored.into_iter().flat_map(raw).map(|raw| raw.name.as_str()));
        }
        columns
    }
}

/// The columns that those of these that are expressions are computed from, where an index can hold them: a JSON value,
/// or a text that is not an id, may be too long for one, and then its row could not be inserted.
fn raw_columns_of_expressions<'a>(
    bound: &'a BoundTable,
    columns: &[&'a BoundColumn],
) -> BTreeSet<&'a str> {
    let expressions = columns.iter().filter(|column| column.is_expression());
    let raw = expressions
        .flat_map(|column| bound.raw_columns(column).into_iter().map(|raw| (*column, raw)));
    let raw: Vec<_> = raw.collect();
    let fits = raw.iter().all(|(column, raw)| {
        let is_text =
            matches!(raw.base_type, pg_sys::TEXTOID | pg_sys::VARCHAROID | pg_sys::BPCHAROID);
        relation::is_short(raw.base_type) || is_text && column.makes_id()
    });
    if !fits {
        return BTreeSet::new();
    }
    raw.iter().map(|(_, raw)| raw.name.as_str()).collect()
}
