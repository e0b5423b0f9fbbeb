//! The JSON of turns and edges, written in one pass.
//!
//! Nearly all of it are ids, names and hashes, which need no escapes: a serializer would look at each of their bytes.
//! The bytes are those of the types' `Serialize`.

use serde::Serialize;
use uuid::fmt::Hyphenated;

use crate::graph::edge::Edge;
use crate::graph::turn::{Turn, TurnId};
use crate::interrupts::Interrupts;

/// A JSON text while it is written.
pub(crate) struct JsonWriter(Vec<u8>);

impl JsonWriter {
    pub(crate) fn with_capacity(bytes: usize) -> Self {
        JsonWriter(Vec::with_capacity(bytes))
    }

    /// Adds what is JSON already.
    pub(crate) fn raw(&mut self, json: &str) {
        self.0.extend_from_slice(json.as_bytes());
    }

    /// Adds a value, by its `Serialize`.
    pub(crate) fn value<T: Serialize + ?Sized>(&mut self, value: &T) {
        serde_json::to_writer(&mut self.0, value).expect("canonical types always serialise");
    }

    pub(crate) fn id(&mut self, id: TurnId) {
        let mut text = [b'"'; Hyphenated::LENGTH + 2];
        id.hyphenated().encode_lower(&mut text[1..=Hyphenated::LENGTH]);
        self.0.extend_from_slice(&text);
    }

    fn text(&mut self, text: &str) {
        // Without an early end, many bytes are compared at a time.
        let is_special = |byte: u8| (byte < b' ') | (byte == b'"') | (byte == b'\\');
        if text.bytes().fold(false, |found, byte| found | is_special(byte)) {
            return self.value(text);
        }
        self.0.push(b'"');
        self.raw(text);
        self.0.push(b'"');
    }

    fn turn(&mut self, turn: &Turn) {
        self.raw("{\"id\":");
        self.id(turn.id);
        self.raw(",\"session_id\":");
        self.text(&turn.session_id);
        self.raw(",\"role\":\"");
        self.raw(turn.role.name());
        self.raw("\",\"phase\":\"");
        self.raw(turn.phase.name());
        self.raw("\",\"salience\":");
        self.value(&turn.salience);
        self.raw(",\"trajectory_depth\":");
        self.value(&turn.trajectory_depth);
        self.raw(",\"trajectory_sibling_order\":");
        self.value(&turn.trajectory_sibling_order);
        self.raw(",\"trajectory_homogeneity\":");
        self.value(&turn.trajectory_homogeneity);
        self.raw(",\"trajectory_temporal\":");
        self.value(&turn.trajectory_temporal);
        self.raw(",\"trajectory_complexity\":");
        self.value(&turn.trajectory_complexity);
        self.raw(",\"created_at\":");
        self.value(&turn.created_at);
        self.raw(",\"content_hash\":");
        match &turn.content_hash {
            Some(hash) => self.text(hash),
            None => self.raw("null"),
        }
        self.raw("}");
    }

    fn edge(&mut self, edge: &Edge) {
        self.raw("{\"parent\":");
        self.id(edge.parent);
        self.raw(",\"child\":");
        self.id(edge.child);
        self.raw(",\"edge_type\":\"");
        self.raw(edge.edge_type.name());
        self.raw("\"}");
    }

    pub(crate) fn turns(&mut self, turns: &[&Turn], interrupts: &Interrupts<'_>) {
        self.list(turns, interrupts, |json, turn| json.turn(turn));
    }

    pub(crate) fn edges(&mut self, edges: &[Edge], interrupts: &Interrupts<'_>) {
        self.list(edges, interrupts, Self::edge);
    }

    pub(crate) fn list<T>(
        &mut self,
        items: &[T],
        interrupts: &Interrupts<'_>,
        mut write: impl FnMut(&mut Self, &T),
    ) {
        self.raw("[");
        for (place, item) in items.iter().enumerate() {
            interrupts.item();
            if place > 0 {
                self.raw(",");
            }
            write(self, item);
        }
        self.raw("]");
    }

    pub(crate) fn finish(self) -> String {
        String::from_utf8(self.0).expect("JSON is UTF-8")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::edge::EdgeType;
    use crate::graph::turn::{Phase, Role};
    use crate::json::canonical::json_text;

    #[test]
    fn the_bytes_are_those_of_the_serializer() {
        let names = ["", "a", "\"", "\\", "a\u{1f}b", "\u{7f} é 漢 🎉", "/", "sha256:0123", "\n"];
        let numbers = [0.0, 1.0, 0.1, 1e-7, 123_456.79, 3.4e38, -2.5, f32::MIN_POSITIVE];
        let mut turns = Vec::new();
        for (number, name) in names.into_iter().enumerate() {
            turns.push(Turn {
                id: TurnId::from_u128(u128::MAX / (number as u128 + 1)),
                session_id: name.to_owned(),
                role: Role::ALL[number % Role::ALL.len()],
                phase: Phase::ALL[number % Phase::ALL.len()],
                salience: numbers[number % numbers.len()],
                trajectory_depth: number as u32,
                trajectory_sibling_order: u32::MAX - number as u32,
                trajectory_homogeneity: numbers[(number + 1) % numbers.len()],
                trajectory_temporal: numbers[(number + 2) % numbers.len()],
                trajectory_complexity: numbers[(number + 3) % numbers.len()],
                created_at: -1 - number as i64,
                content_hash: (number % 2 == 0).then(|| name.repeat(3)),
            });
        }
        let edge = |edge_type| Edge { parent: turns[0].id, child: turns[1].id, edge_type };
        let edges: Vec<Edge> = EdgeType::ALL.iter().copied().map(edge).collect();
        let turns: Vec<&Turn> = turns.iter().collect();
        for (turns, edges) in [(&turns[..], &edges[..]), (&turns[..1], &edges[..1]), (&[], &[])] {
            let mut json = JsonWriter::with_capacity(0);
            json.turns(turns, &Interrupts::new(&|| {}));
            json.edges(edges, &Interrupts::new(&|| {}));
            assert_eq!(json.finish(), json_text(turns) + &json_text(edges));
        }
    }
}
