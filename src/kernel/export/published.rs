//! What the published crate and its service gave, and the schema of SlicePolicy v1 §6.1, as exports of the kernel's own
//! form. Nothing of it is attested.

use std::collections::HashSet;

use crate::export::document::{graph_snapshot_hash, slice_id};
use crate::export::parse::{
    Keys, MAX_EXPORT_VALUES, ParsedExport, document_reader, edge, items, turn,
};
use crate::graph::edge::Edge;
use crate::graph::turn::{Turn, TurnId};
use crate::json::object::{MAX_ENTRY_VALUES, Object, ParseError, canonical_uuid, string};
use crate::json::{JsonReader, JsonValue};
use crate::policy::registry::PolicyRef;

/// A published document.
pub enum Published {
    /// An export with turns and edges, of the crate or as §6.1 has it.
    Export(ParsedExport),
    /// The answer of the service, which names turns by their ids.
    Body(PublishedBody),
}

/// The answer of the service for a slice.
pub struct PublishedBody {
    /// The export without its turns and edges.
    head: ParsedExport,
    /// Ascending, each once.
    turn_ids: Vec<TurnId>,
    edge_count: usize,
}

impl Published {
    /// Reads an export, an answer of the service, or the slice within one. Names may have any ASCII case, a number that
    /// the crate wrote as null is the default of rows, turns and edges may come in any order.
    ///
    /// # Errors
    /// A sentence that says what is wrong.
    pub fn parse(text: &str, check_interrupts: &dyn Fn()) -> Result<Self, ParseError> {
        let new_reader = || document_reader("document", text, MAX_EXPORT_VALUES, check_interrupts);
        let mut keys = Vec::new();
        let mut reader = new_reader()?;
        if !reader.at_object() {
            return Err("the document must be an object".to_owned());
        }
        reader.object(|reader, key| {
            if keys.len() < MAX_ENTRY_VALUES {
                keys.push(key);
            }
            reader.skip().map_err(ParseError::from)
        })?;
        reader.finish()?;
        let has = |name: &str| keys.iter().any(|key| key == name);
        if has("slices") {
            return Err("the answer for a batch has many slices: give one of them".to_owned());
        }
        if !has("slice") {
            return Self::read(&mut new_reader()?)?.in_order(check_interrupts);
        }
        let mut found = None;
        new_reader()?.object(|reader, key| match key.as_ref() {
            "slice" if found.is_none() && reader.at_object() => {
                found = Some(Self::read(reader)?);
                Ok(())
            }
            "slice" => Err("the answer has no slice, or more than one".to_owned()),
            "policy_ref" => reader.skip().map_err(ParseError::from),
            _ => Err(format!("an answer with a slice has no key {}", crate::json::quoted(&key))),
        })?;
        let found: Published = found.ok_or("the answer has no slice")?;
        found.in_order(check_interrupts)
    }

    fn in_order(self, check_interrupts: &dyn Fn()) -> Result<Self, ParseError> {
        match self {
            Published::Export(export) => whole(export, check_interrupts).map(Published::Export),
            Published::Body(body) => Ok(Published::Body(body)),
        }
    }

    fn read(reader: &mut JsonReader<'_, '_>) -> Result<Self, ParseError> {
        let mut object = Object::empty("export");
        let (mut turns, mut edges, mut turn_ids) = (Vec::new(), Vec::new(), Vec::new());
        let id = |json: JsonValue<'_>| {
            string(&json)
                .and_then(canonical_uuid)
                .ok_or_else(|| format!("export.turn_ids must be lower-case UUIDs, not {json}"))
        };
        reader.object(|reader, key| {
            let value = match key.as_ref() {
                "turns" => items(reader, &mut turns, |json| turn(json, Keys::Published))?,
                "edges" => items(reader, &mut edges, |json| edge(json, Keys::Published))?,
                "turn_ids" => items(reader, &mut turn_ids, id)?,
                _ => reader.value_within(MAX_ENTRY_VALUES)?,
            };
            object.add(key, value)
        })?;
        let is_array = |json: &JsonValue<'_>| matches!(json, JsonValue::Array(_)).then_some(());
        let is_body = object.has("turn_ids");
        if is_body {
            object.read("turn_ids", "an array", is_array)?;
        } else {
            object.read("turns", "an array", is_array)?;
        }
        if !is_body || object.has("edges") {
            object.read("edges", "an array", is_array)?;
        }
        let edge_count = match is_body {
            true => object.count("edge_count")? as usize,
            false => edges.len(),
        };
        let head = ParsedExport::head(&mut object, Keys::Published)?;
        if head.attestation.is_some() {
            return Err(
                "export.attestation must be null: such an export is graph_kernel's own".to_owned()
            );
        }
        object.finish()?;
        if is_body {
            turn_ids.sort_unstable();
            turn_ids.dedup();
            return Ok(Published::Body(PublishedBody { head, turn_ids, edge_count }));
        }
        Ok(Published::Export(ParsedExport { turns, edges, ..head }))
    }
}

impl PublishedBody {
    /// The turns that it names.
    #[must_use]
    pub fn turn_ids(&self) -> &[TurnId] {
        &self.turn_ids
    }

    /// Whether it names this turn.
    #[must_use]
    pub fn names(&self, id: TurnId) -> bool {
        self.turn_ids.binary_search(&id).is_ok()
    }

    /// The export with its turns as they are now, and the edges between them, of which others are dropped. Its
    /// `slice_id` says that these are the turns and edges that it had; `graph_snapshot_hash` is that of the contents
    /// then.
    ///
    /// # Errors
    /// A sentence that says what is not there as it was.
    pub fn with(
        self,
        turns: Vec<Turn>,
        mut edges: Vec<Edge>,
        check_interrupts: &dyn Fn(),
    ) -> Result<ParsedExport, ParseError> {
        let found: HashSet<TurnId> = turns.iter().map(|turn| turn.id).collect();
        let missing = self.turn_ids.iter().filter(|id| !found.contains(*id)).count();
        if missing > 0 {
            return Err(format!(
                "{missing} of its {} turns are not in the graph",
                self.turn_ids.len()
            ));
        }
        edges.retain(|edge| found.contains(&edge.parent) && found.contains(&edge.child));
        let export = whole(ParsedExport { turns, edges, ..self.head }, check_interrupts)?;
        let policy = PolicyRef { policy_id: &export.policy_id, params_hash: &export.params_hash };
        let selection = (&export.turn_refs()[..], &export.edges[..]);
        let computed = slice_id(export.anchor, selection, policy, check_interrupts);
        if computed != export.slice_id {
            return Err(format!(
                "there are other edges between its turns now, {} where it had {}: slice_id {} computes as {computed}",
                export.edges.len(),
                self.edge_count,
                export.slice_id
            ));
        }
        Ok(export)
    }
}

/// The export in order, with the fingerprint of its contents where it had none.
fn whole(
    mut export: ParsedExport,
    check_interrupts: &dyn Fn(),
) -> Result<ParsedExport, ParseError> {
    export.turns.sort_unstable_by_key(|turn| turn.id);
    export.edges.sort_unstable();
    // The crate's store in memory gave an edge as often as it had it.
    export.edges.dedup();
    if export.graph_snapshot_hash.is_none() {
        let hash = graph_snapshot_hash(&export.turn_refs(), export.edges.len(), check_interrupts);
        export.graph_snapshot_hash = Some(hash);
    }
    // In order, each turn once, with the anchor and all ends of edges.
    export.expect_whole(check_interrupts)?;
    Ok(export)
}
