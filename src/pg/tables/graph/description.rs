//! What SQL code needs to query a graph.

use pgrx::pg_sys;
use serde_json::{Value, json};

use super::mapping::{EDGE_TYPE, FOLLOWS, PARENTS, ROLES};
use super::{Graph, ParentColumn};
use crate::pg::query::{Planning, Template};

impl Graph {
    /// What SQL code needs to query the graph: each table's OID, its name as it stands in a FROM clause, and the
    /// columns. These stand also as expressions over the alias t (turns) or e (edges). With edges in the turns table,
    /// `edges` stands for a subquery that has all of them. Also the indexes that the graph is read by, how a search by
    /// words is narrowed under row security, the mapping as it was resolved, and the places in it that hold
    /// expressions.
    pub fn description(&self) -> Value {
        let mut turns = self.turns.resolved_mapping();
        if !self.parents.is_empty() {
            turns.insert(
                PARENTS.to_owned(),
                self.parents.iter().map(ParentColumn::mapped).collect(),
            );
        }
        if let Some(follows) = &self.follows {
            turns.insert(FOLLOWS.to_owned(), follows.mapped());
        }
        let roles = &self.turns.columns["role"].read_as;
        if !roles.is_empty() {
            let roles = roles.iter().map(|(name, role)| (name.clone(), Value::from(*role)));
            turns.insert(ROLES.to_owned(), Value::Object(roles.collect()));
        }
        let mut resolved = json!({ "turns": turns });
        if let Some(edges) = &self.edges {
            resolved["edges"] = edges.resolved_mapping().into();
        }
        let expressions = self.keys().filter(|(_, column)| column.is_expression());
        json!({
            "turns": self.turns.description("t"),
            "edges": match (&self.edges, self.parents.as_slice(), &self.follows) {
                (Some(edges), [], None) => edges.description("e"),
                _ => self.description_of_sources(),
            },
            "tables": self.tables().map(pg_sys::Oid::to_u32).collect::<Vec<_>>(),
            "edges_by_child": self.edges_by_child.as_ref().map(|edges| edges.table.oid.to_u32()),
            "indexes": self.indexes(),
            "words_narrowing": self.words_narrowing(),
            "expressions": expressions.map(|(place, _)| place.to_string()).collect::<Vec<_>>(),
            "resolved": resolved,
        })
    }

    fn description_of_sources(&self) -> Value {
        let template = Template {
            text: "[[SELECT {e.parent} AS parent, {e.child} AS child, {e.edge_type} AS edge_type FROM {edges} AS e]]",
            columns: &[],
            planning: Planning::Once,
        };
        let from = self.statement(&template, &[]).into_text();
        let columns = json!({ "parent": "parent", "child": "child", "edge_type": "edge_type" });
        let expressions =
            json!({ "parent": "e.parent", "child": "e.child", "edge_type": "e.edge_type" });
        json!({ "from": format!("({from})"), "columns": columns, "expressions": expressions })
    }
}

impl ParentColumn {
    fn mapped(&self) -> Value {
        json!({ "parent": self.parent.mapped(), EDGE_TYPE: self.edge_type.name() })
    }
}
