//! The indexes that a graph is read by.

use std::collections::BTreeSet;

use pgrx::pg_sys;
use serde_json::{Value, json};

use super::mapping::OWNER;
use super::{Graph, ParentColumn};
use crate::pg::catalog::index::{IndexKey, Indexed, btree_indexes, has_gin_index};
use crate::pg::catalog::names;
use crate::pg::catalog::relation;
use crate::pg::tables::bound_table::{BoundColumn, BoundTable};

/// An index that a graph is read by.
struct Wanted<'a> {
    name: &'static str,
    bound: &'a BoundTable,
    is_unique: bool,
    keys: Vec<&'a BoundColumn>,
    /// How many of the keys an index must begin with to be this one.
    searched: usize,
    /// Columns that it should hold besides.
    include: BTreeSet<&'a str>,
}

impl Graph {
    /// The indexes that the graph is read by: by the id, by each end of an edge, by session and order, by session and
    /// time, by words.
    pub(super) fn indexes(&self) -> Vec<Value> {
        let turns = &self.turns;
        let id = &turns.columns["id"];
        let mut wanted = vec![Wanted {
            is_unique: true,
            include: self.read_with_ids(),
            ..Wanted::new("index_turn_id", turns, vec![id])
        }];
        if let Some(edges) = &self.edges {
            let [parent, child, edge_type] =
                ["parent", "child", "edge_type"].map(|name| &edges.columns[name]);
            let by_child = self.edges_by_child.as_ref().unwrap_or(edges);
            for (name, edges, ends) in [
                ("index_edge_parent", edges, [parent, child]),
                ("index_edge_child", by_child, [child, parent]),
            ] {
                let include = raw_columns_of_expressions(edges, &ends);
                let edge_type = edge_type.column_name().map(|_| edge_type);
                let keys = ends.into_iter().chain(edge_type).collect();
                wanted.push(Wanted { include, ..Wanted::new(name, edges, keys) });
            }
        }
        // The child of such an edge is the row's turn, found by its id.
        for ParentColumn { parent, .. } in &self.parents {
            let include = raw_columns_of_expressions(turns, &[parent, id]);
            let keys = vec![parent, id];
            wanted.push(Wanted { include, ..Wanted::new("index_edge_parent", turns, keys) });
        }
        if let Some(follows) = &self.follows {
            let (keys, include) = follows.index_keys(turns);
            let (searched, include) = (keys.len(), include.into_iter().collect());
            let wanted_keys = Wanted::new("index_follows", turns, keys);
            wanted.push(Wanted { searched, include, ..wanted_keys });
        }
        let [session, time] = ["session_id", "created_at"].map(|name| &turns.columns[name]);
        if session.stored.is_some() && time.stored.is_some() {
            wanted.push(Wanted::new("index_session", turns, vec![session, time]));
        }
        let words = self.words().ok().flatten().map(|words| {
            let name = names::quote_as_needed(&words.name);
            json!({
                "name": "index_words", "rel": turns.table.oid.to_u32(), "method": "gin", "searched": [name],
                "keys": [names::with_escapes(&name)], "found": has_gin_index(turns.table.oid, words.number),
            })
        });
        wanted.iter().map(Wanted::description).chain(words).collect()
    }

    /// How a search by words is narrowed where row security applies, in which the index of the words does not serve:
    /// the key of an index by the owner or the session of turns, and whether there is one. `None` without words.
    pub(super) fn words_narrowing(&self) -> Option<Value> {
        self.words().ok().flatten()?;
        let turns = &self.turns;
        let stored = [OWNER, "session_id"].map(|key| &turns.columns[key]);
        let mut stored = stored.into_iter().filter(|column| column.stored.is_some());
        let found = |column| Wanted::new("", turns, vec![column]).is_found();
        let first = stored.clone().next();
        let key = first.and_then(BoundColumn::index_key).map(|key| names::with_escapes(&key));
        let is_exact = first.is_none_or(BoundColumn::is_exact);
        Some(json!({ "key": key, "is_exact": is_exact, "found": stored.any(found) }))
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

impl<'a> Wanted<'a> {
    /// One that is not unique and searched by its first key.
    fn new(name: &'static str, bound: &'a BoundTable, keys: Vec<&'a BoundColumn>) -> Self {
        Wanted { name, bound, is_unique: false, keys, searched: 1, include: BTreeSet::new() }
    }

    fn description(&self) -> Value {
        let keys: Vec<String> = self.keys.iter().filter_map(|key| key.index_key()).collect();
        let include = self.include.iter().map(|column| names::quote_as_needed(column));
        let include: Vec<String> = include.filter(|column| !keys.contains(column)).collect();
        json!({
            "name": self.name, "rel": self.bound.table.oid.to_u32(), "is_unique": self.is_unique,
            "found": self.is_found(), "searched": keys.iter().take(self.searched).collect::<Vec<_>>(),
            "keys": keys.iter().map(|key| names::with_escapes(key)).collect::<Vec<_>>(), "include": include,
            "is_exact": self.keys.iter().all(|key| key.is_exact()),
        })
    }

    /// Whether the table has it. On a partitioned table a unique index contains the partition key too, on one that
    /// Citus distributes the column that it is distributed by; a duplicate id is found when slicing.
    fn is_found(&self) -> bool {
        let table = &self.bound.table;
        let searched = self.keys.iter().filter_map(|key| self.bound.indexed(key));
        let searched: Vec<_> = searched.take(self.searched).collect();
        let is_partitioned =
            table.kind == pg_sys::RELKIND_PARTITIONED_TABLE || self.bound.is_distributed;
        btree_indexes(table.oid).iter().any(|index| {
            let is_unique = index.is_unique && (index.keys.len() == 1 || is_partitioned);
            let options = index.keys.iter().map(|key| key.options);
            let same = |(key, (of, collation, family)): (&IndexKey, &(Indexed, _, _))| {
                // SAFETY: both were read within this call.
                let is_same = unsafe { key.of.is(*of) };
                let is_ordered = searched.len() == 1 || key.family == *family;
                is_same && key.collation == *collation && is_ordered
            };
            (is_unique || !self.is_unique)
                && index.keys.len() >= searched.len()
                && index.keys.iter().zip(&searched).all(same)
                && options.take(searched.len()).all(|of| of == index.keys[0].options)
        })
    }
}

/// The columns that a value is read from, where an index can hold them.
pub(super) fn raw_columns_to_include<'a>(
    bound: &'a BoundTable,
    column: &'a BoundColumn,
) -> Vec<&'a str> {
    let raw = raw_columns_of_expressions(bound, &[column]);
    raw.into_iter().chain(column.column_name()).collect()
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
