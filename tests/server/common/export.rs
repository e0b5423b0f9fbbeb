//! Slices as the server exports them.

use kernel::graph::turn::TurnId;
use postgres::Client;
use serde::Deserialize;

/// What the tests read of an export.
#[derive(Debug, Deserialize)]
pub struct Export {
    pub anchor_turn_id: TurnId,
    pub turns: Vec<ExportedTurn>,
    pub edges: Vec<ExportedEdge>,
    pub policy_params_hash: String,
    pub slice_id: String,
    pub graph_snapshot_hash: String,
}

#[derive(Debug, Deserialize)]
pub struct ExportedTurn {
    pub id: TurnId,
    pub created_at: i64,
}

#[derive(Debug, Deserialize)]
pub struct ExportedEdge {
    pub parent: TurnId,
    pub child: TurnId,
    pub edge_type: String,
}

/// Makes a table with an export, without an attestation, of `{}` turns, each with a session of 4 000 bytes.
pub const EXPORT: &str = r#"CREATE TABLE given AS
    SELECT ('{"anchor_turn_id":"00000000-0000-4000-8000-000000000001","turns":['
            || string_agg(format('{"id":"00000000-0000-4000-8000-%s","session_id":"%s","role":"user",'
                '"phase":"planning","salience":0.5,"trajectory_depth":0,"trajectory_sibling_order":0,'
                '"trajectory_homogeneity":0.5,"trajectory_temporal":0.5,"trajectory_complexity":1.0,'
                '"created_at":0,"content_hash":null}', lpad(to_hex(i), 12, '0'), repeat('s', 4000)), ',')
            || '],"edges":[],"policy_id":"slice_policy_v1","policy_params_hash":"02005444cae1117d",'
               '"schema_version":"1.0.0","slice_id":"0123456789abcdef",'
               '"graph_snapshot_hash":"0123456789abcdef","admissibility_token":null,"attestation":null}')::json AS j
    FROM generate_series(1, {}) AS i"#;

/// The text of `graph_slice(anchor, policy)`.
pub fn slice_text(client: &mut Client, anchor: TurnId, policy: &str) -> String {
    client
        .query_one("SELECT graph_slice($1, $2::text::slice_policy)::text", &[&anchor, &policy])
        .unwrap_or_else(|error| panic!("slice at {anchor} by {policy}: {error:?}"))
        .get(0)
}

/// An export's text.
pub fn read_export(text: &str) -> Export {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// An export's text without its two claims, which differ from server to server.
pub fn without_claims(export: &str) -> &str {
    let at = export
        .rfind(r#","admissibility_token":"#)
        .unwrap_or_else(|| panic!("no admissibility_token: {export}"));
    assert!(export[at..].contains(r#","attestation":"#), "no attestation: {export}");
    &export[..at]
}
