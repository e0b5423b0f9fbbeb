//! Small graphs with the slices expected of them, in the created tables.

use graph_kernel_tests::vectors::{ExpectedSlice, SmallGraph};
use postgres::Client;
use serde_json::Value;

use super::export::{read_export, slice_text};

/// One of the small graphs; rows stay JSON for the server to read.
pub type SmallCase = SmallGraph<Value, Value>;

/// The slice of it that the server takes.
pub fn taken(case: &SmallCase, client: &mut Client) -> ExpectedSlice {
    let export = read_export(&slice_text(client, case.anchor, &case.policy.to_string()));
    ExpectedSlice {
        turn_ids: export.turns.iter().map(|turn| turn.id).collect(),
        edge_count: export.edges.len(),
        policy_params_hash: export.policy_params_hash,
        slice_id: export.slice_id,
        graph_snapshot_hash: export.graph_snapshot_hash,
    }
}

/// Stores it in the created tables.
pub fn store(case: &SmallCase, client: &mut Client) {
    client
        .execute(
            "INSERT INTO public.memory_turns (id, session_id, role, trajectory_phase,
                 salience_score, trajectory_depth, created_at, content_hash)
             SELECT id, session_id, role, phase, salience, depth, to_timestamp(created_at),
                    content_hash
             FROM json_to_recordset($1::text::json) AS t (
                 id uuid, session_id text, role text, phase text, salience float8,
                 depth integer, created_at float8, content_hash text)",
            &[&case.turns.to_string()],
        )
        .unwrap();
    client
        .execute(
            "INSERT INTO public.memory_turn_edges (parent_turn_id, child_turn_id, edge_type)
             SELECT DISTINCT (e ->> 0)::uuid, (e ->> 1)::uuid, e ->> 2
             FROM json_array_elements($1::text::json) AS e",
            &[&case.edges.to_string()],
        )
        .unwrap();
}
