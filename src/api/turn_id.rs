use kernel::graph::turn_id::{turn_id, turn_id_of_parts};
use pgrx::Uuid;
use pgrx::prelude::*;

use crate::pg::interrupts::check_interrupts;
use crate::pg::sql::types::to_sql_uuid;
use crate::pg::text::TextBytes;

#[pg_extern(immutable, parallel_safe, cost = 10)]
fn graph_turn_id(id: TextBytes) -> Uuid {
    to_sql_uuid(turn_id_of_parts(|| std::iter::once(id.0), &check_interrupts))
}

#[pg_extern(immutable, parallel_safe, name = "graph_turn_id", cost = 10)]
fn graph_turn_id_of_number(number: i64) -> Uuid {
    to_sql_uuid(turn_id(&number.to_string()))
}

#[pg_extern(immutable, parallel_safe, name = "graph_turn_id", cost = 10)]
fn graph_turn_id_of_parts(parts: VariadicArray<TextBytes>) -> Option<Uuid> {
    // Not collected: a list of the parts can take more memory than the array.
    let parts = || parts.iter().inspect(|_| check_interrupts());
    let has_null = parts().any(|part| part.is_none());
    (!has_null).then(|| {
        to_sql_uuid(turn_id_of_parts(|| parts().flatten().map(|part| part.0), &check_interrupts))
    })
}

extension_sql!(
    r"
-- Under row security only leakproof conditions reach an index.
ALTER FUNCTION graph_turn_id(text) LEAKPROOF;
COMMENT ON FUNCTION graph_turn_id(text) IS
    'the turn id of a text: the uuid that it spells, else its UUIDv5';
ALTER FUNCTION graph_turn_id(bigint) LEAKPROOF;
COMMENT ON FUNCTION graph_turn_id(bigint) IS 'the turn id of a number: that of its decimal text';
ALTER FUNCTION graph_turn_id(text[]) LEAKPROOF;
COMMENT ON FUNCTION graph_turn_id(text[]) IS
    'the turn id of a text in parts, NULL if one is';
",
    name = "turn_id_comments",
    requires = [graph_turn_id, graph_turn_id_of_number, graph_turn_id_of_parts]
);
