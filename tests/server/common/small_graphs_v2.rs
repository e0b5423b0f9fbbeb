//! Small graphs with the slices expected of them by SlicePolicy v2, in the created tables.

use graph_kernel_tests::vectors::{ExpectedSliceV2, SmallGraphV2};
use kernel::graph::turn::TurnId;
use postgres::Client;
use postgres::error::SqlState;
use serde_json::Value;

use super::export::{ExportedEdge, read_export, slice_text};

/// One of the small graphs; rows stay JSON for the server to read.
pub type Case = SmallGraphV2<Value, Value>;

/// The slice that the server takes; `None` where it says that there is no such anchor.
pub fn taken(client: &mut Client, anchor: TurnId, policy: &Value) -> Option<ExpectedSliceV2> {
    let policy = policy.to_string();
    let sql =
        "SELECT turn_id, distance, priority FROM graph_slice_turns($1, $2::text::slice_policy)
               ORDER BY selection_order";
    let rows = match client.query(sql, &[&anchor, &policy]) {
        Ok(rows) => rows,
        Err(error) => {
            assert_eq!(error.code(), Some(&SqlState::NO_DATA), "{anchor} {policy}: {error:?}");
            return None;
        }
    };
    let export = read_export(&slice_text(client, anchor, &policy));
    let messages = client
        .query(
            "SELECT turn_id, part, tokens FROM graph_messages($1, $2::text::slice_policy) ORDER BY n",
            &[&anchor, &policy],
        )
        .unwrap();
    let cut = client
        .query(
            "SELECT turn_id FROM graph_slice_explain($1, $2::text::slice_policy) WHERE outcome = 'cut'",
            &[&anchor, &policy],
        )
        .unwrap();
    let edge = |edge: &ExportedEdge| (edge.parent, edge.child, edge.edge_type.clone());
    Some(ExpectedSliceV2 {
        anchor_turn_id: export.anchor_turn_id,
        turn_ids: export.turns.iter().map(|turn| turn.id).collect(),
        edges: export.edges.iter().map(edge).collect(),
        distances: rows.iter().map(|row| (row.get(0), row.get::<_, i32>(1) as u32)).collect(),
        priorities: rows.iter().map(|row| (row.get(0), row.get(2))).collect(),
        selection_order: rows.iter().map(|row| row.get(0)).collect(),
        tokens: messages.iter().map(|row| row.get::<_, i32>(2) as u64).sum(),
        parts: messages.iter().map(|row| (row.get(0), row.get(1))).collect(),
        cut: cut.iter().map(|row| row.get(0)).collect(),
        // Of this the server says nothing.
        limited: false,
        messages: messages.iter().map(|row| row.get(0)).collect(),
        policy_params_hash: export.policy_params_hash,
        slice_id: export.slice_id,
    })
}

/// Stores it in the created tables.
pub fn store(case: &Case, client: &mut Client) {
    for (table, rows) in [
        (
            "INSERT INTO public.memory_turns (id, session_id, role, trajectory_phase, salience_score, created_at,
                 content_text, token_count)
             SELECT id, session_id, role, phase, salience, to_timestamp(created_at), content_text, token_count
             FROM json_to_recordset($1::text::json) AS t (
                 id uuid, session_id text, role text, phase text, salience float8, created_at float8,
                 content_text text, token_count integer)",
            &case.turns,
        ),
        (
            "INSERT INTO public.memory_turn_edges (parent_turn_id, child_turn_id, edge_type)
             SELECT DISTINCT (e ->> 0)::uuid, (e ->> 1)::uuid, coalesce(e ->> 2, 'default')
             FROM json_array_elements($1::text::json) AS e",
            &case.edges,
        ),
    ] {
        client.execute(table, &[&rows.to_string()]).unwrap();
    }
}

/// That its slice is the expected one.
pub fn check(case: &Case, client: &mut Client, what: &str) {
    let mut taken = taken(client, case.anchor, &case.policy);
    if let (Some(taken), Some(expected)) = (&mut taken, &case.expected) {
        taken.limited = expected.limited;
        // An explanation has what was cut in another order, and what was recalled again only once.
        let mut cut: Vec<TurnId> = expected.cut.clone();
        cut.retain(|id| !taken.turn_ids.contains(id));
        cut.sort_unstable();
        taken.cut.sort_unstable();
        assert_eq!(taken.cut, cut, "case {} {what}: what is cut", case.case);
        taken.cut.clone_from(&expected.cut);
    }
    assert_eq!(taken, case.expected, "case {} {what}", case.case);
}
