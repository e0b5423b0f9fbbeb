use kernel::graph::turn_id::turn_id;
use pgrx::Uuid;
use pgrx::prelude::*;

use crate::pg::sql::types::to_sql_uuid;

#[pg_extern(immutable, parallel_safe)]
fn graph_turn_id(id: &str) -> Uuid {
    to_sql_uuid(turn_id(std::iter::once(id)))
}

#[pg_extern(immutable, parallel_safe, name = "graph_turn_id")]
fn graph_turn_id_of_number(number: i64) -> Uuid {
    to_sql_uuid(turn_id(std::iter::once(number.to_string().as_str())))
}

#[pg_extern(immutable, parallel_safe, name = "graph_turn_id")]
fn graph_turn_id_of_parts(parts: VariadicArray<&str>) -> Option<Uuid> {
    let parts: Option<Vec<&str>> = parts.iter().collect();
    Some(to_sql_uuid(turn_id(parts?.into_iter())))
}
