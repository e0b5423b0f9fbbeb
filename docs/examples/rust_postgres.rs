//! A slice with rust-postgres. `tests/server/docs.rs` runs it.

use postgres::{Client, Error};

/// The ids of the turns in a slice.
pub fn slice(client: &mut Client, anchor: uuid::Uuid) -> Result<Vec<uuid::Uuid>, Error> {
    let query = "SELECT turn_id FROM graph_slice_turns($1, $2::text::slice_policy)";
    let rows = client.query(query, &[&anchor, &"focused"])?;
    Ok(rows.iter().map(|row| row.get("turn_id")).collect())
}
