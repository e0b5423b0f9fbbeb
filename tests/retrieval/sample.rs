//! Databases with the sample conversation and its embeddings.

use std::io::Write;
use std::path::{Path, PathBuf};

use postgres::error::DbError;
use postgres::{Client, GenericClient};
use uuid::Uuid;

use crate::common::database::{Database, load_graph};
use crate::common::{Server, tell};

/// A turn in the middle of the conversation.
pub const ANCHOR: &str = "a9ad8365-bc0a-5da2-93e6-e37e99d95d9c";

pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../sql/sample")
}

/// Whether the server has pgvector; reports a test as skipped where it has not.
pub fn has_pgvector(test: &str) -> bool {
    let mut client = Server::primary().connect_admin();
    let found = client
        .query_opt("SELECT FROM pg_available_extensions WHERE name = 'vector'", &[])
        .unwrap()
        .is_some();
    if !found {
        tell(&format!("SKIPPED: {test}: pgvector is not installed"));
    }
    found
}

/// A database with the sample conversation, its embeddings in a column of this type, and the
/// questions with theirs in `questions`.
pub fn database(name: &str, column_type: &str) -> Database {
    let database = Database::with_tables(&format!("retrieval_{name}"));
    let mut client = database.connect();
    load_graph(&mut client, &folder());
    if column_type != "real[]" {
        client.batch_execute("CREATE EXTENSION vector").unwrap();
    }
    client
        .batch_execute(&format!(
            "ALTER TABLE memory_turns ADD COLUMN embedding {column_type};
             CREATE TABLE questions (question text, embedding real[]);
             CREATE TEMP TABLE staged (turn_id uuid, embedding real[]);"
        ))
        .unwrap();
    copy(&mut client, "questions", "questions.csv");
    copy(&mut client, "staged", "memory_turn_embeddings.csv");
    client
        .batch_execute(&format!(
            "UPDATE memory_turns AS t SET embedding = s.embedding::{column_type}
             FROM staged AS s WHERE s.turn_id = t.id;
             ANALYZE memory_turns"
        ))
        .unwrap();
    database
}

fn copy(client: &mut Client, table: &str, file: &str) {
    let text = std::fs::read(folder().join(file)).unwrap();
    let mut writer =
        client.copy_in(&format!("COPY {table} FROM STDIN (FORMAT csv, HEADER)")).unwrap();
    writer.write_all(&text).unwrap();
    writer.finish().unwrap();
}

/// The embedding of the first question as a literal.
pub fn question(client: &mut impl GenericClient) -> String {
    text(client, "SELECT quote_literal(embedding) FROM questions LIMIT 1")
}

/// One text.
pub fn text(client: &mut impl GenericClient, query: &str) -> String {
    let row = client.query_one(query, &[]).unwrap_or_else(|error| panic!("{query}: {error:?}"));
    row.get(0)
}

/// The turns found and their similarities, in the order of their rank.
pub fn search(client: &mut impl GenericClient, arguments: &str) -> Vec<(Uuid, f32)> {
    let query = format!(
        "SELECT turn_id, similarity, rank FROM graph_search_slice({arguments}) ORDER BY rank"
    );
    let rows = client.query(&query, &[]).unwrap_or_else(|error| panic!("{query}: {error:?}"));
    let ranks: Vec<i32> = rows.iter().map(|row| row.get(2)).collect();
    assert_eq!(ranks, (1..=rows.len() as i32).collect::<Vec<_>>());
    rows.iter().map(|row| (row.get(0), row.get(1))).collect()
}

/// What a search within the slice at [`ANCHOR`] says of its admissibility.
pub fn reason(client: &mut impl GenericClient, arguments: &str) -> String {
    text(
        client,
        &format!(
            "SELECT graph_kernel.provenance_reason(provenance)
                    || CASE WHEN graph_is_admissible_result(provenance) THEN '!' ELSE '' END
             FROM graph_search_slice({arguments}) LIMIT 1"
        ),
    )
}

/// SQLSTATE and DETAIL of a statement's error.
pub fn refusal(client: &mut impl GenericClient, statement: &str) -> (String, String) {
    let error = match client.batch_execute(statement) {
        Ok(()) => panic!("{statement} succeeds"),
        Err(error) => error,
    };
    let error: &DbError = error.as_db_error().expect("the server refuses");
    (error.code().code().to_owned(), error.detail().unwrap_or_default().to_owned())
}
