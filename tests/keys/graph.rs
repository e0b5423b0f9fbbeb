//! A small graph, its slices and what verification says of them.

use postgres::Client;
use postgres::error::DbError;

/// The extension, its tables and a few turns.
pub fn install(client: &mut Client) {
    client.batch_execute("CREATE EXTENSION graph_kernel").unwrap();
    create_graph(client);
}

/// The tables and a few turns: a reply after each.
pub fn create_graph(client: &mut Client) {
    client
        .batch_execute(
            "SELECT graph_kernel.create_tables();
             INSERT INTO public.memory_turns
                 (id, session_id, role, trajectory_phase, salience_score, created_at, content_text)
             SELECT ('00000000-0000-4000-8000-00000000000' || n)::uuid, 'key life', 'user',
                    'planning', n / 10.0, '2026-01-01', 'turn ' || n
             FROM generate_series(1, 6) AS n;
             INSERT INTO public.memory_turn_edges
             SELECT ('00000000-0000-4000-8000-00000000000' || n)::uuid,
                    ('00000000-0000-4000-8000-00000000000' || n + 1)::uuid, 'reply'
             FROM generate_series(1, 5) AS n;",
        )
        .unwrap();
}

/// Takes a slice.
pub const SLICE: &str = "SELECT graph_slice('00000000-0000-4000-8000-000000000003')::text";

/// A slice's export.
pub fn slice(client: &mut Client) -> String {
    text(client, SLICE)
}

/// What `graph_verify` says of an export.
pub fn reason(client: &mut Client, export: &str) -> String {
    let row = client.query_one("SELECT reason FROM graph_verify($1::text::json)", &[&export]);
    row.unwrap().get(0)
}

/// What it says of each.
pub fn reasons(client: &mut Client, exports: &[String]) -> Vec<String> {
    exports.iter().map(|export| reason(client, export)).collect()
}

/// Begins a key and returns its id.
pub fn rotate(client: &mut Client) -> String {
    text(client, "SELECT graph_kernel.rotate_key()")
}

/// The id of the key that signed an export.
pub fn kid(export: &str) -> String {
    let value: serde_json::Value = serde_json::from_str(export).unwrap();
    value["attestation"]["kid"].as_str().unwrap().to_owned()
}

/// The ids of the keys in this state, in the order their epochs began.
pub fn keys(client: &mut Client, state: &str) -> Vec<String> {
    let statement = "SELECT kid FROM graph_kernel.keys WHERE state = $1
                     ORDER BY split_part(kid, '-', 1)::integer";
    client.query(statement, &[&state]).unwrap().iter().map(|row| row.get(0)).collect()
}

/// The one active key; that there is exactly one.
pub fn active_key(client: &mut Client) -> String {
    let mut active = keys(client, "active");
    assert_eq!(active.len(), 1, "active keys: {active:?}");
    active.remove(0)
}

/// The one text that a statement gives.
pub fn text(client: &mut Client, statement: &str) -> String {
    client.query_one(statement, &[]).unwrap_or_else(|error| panic!("{statement}: {error}")).get(0)
}

/// SQLSTATE and DETAIL of the error that a statement must raise.
pub fn refusal(client: &mut Client, statement: &str) -> (String, String) {
    let error = client.batch_execute(statement).expect_err(statement);
    let error: &DbError = error.as_db_error().unwrap_or_else(|| panic!("{statement}: {error}"));
    (error.code().code().to_owned(), error.detail().unwrap_or_default().to_owned())
}
