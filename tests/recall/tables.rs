//! The conversations in tables, as docs/recall.md makes them.

use std::io::Write;

use postgres::{Client, NoTls};

use crate::Result;
use crate::corpus::{Conversation, Corpus};

const DATABASE: &str = "graph_kernel_recall";

/// A connection to a database of the server that PG* name.
fn connect(database: &str) -> Result<Client> {
    let [host, port, user] = ["PGHOST", "PGPORT", "PGUSER"].map(std::env::var);
    let text = format!("host={} port={} user={} dbname={database}", host?, port?, user?);
    Ok(Client::connect(&text, NoTls)?)
}

/// The server, in one line.
pub fn server() -> Result<String> {
    let mut client = connect("postgres")?;
    let version: String = client.query_one("SHOW server_version", &[])?.get(0);
    let buffers: String = client.query_one("SHOW shared_buffers", &[])?.get(0);
    let vector = client
        .query_opt(
            "SELECT default_version FROM pg_available_extensions WHERE name = 'vector'",
            &[],
        )?
        .map_or("no pgvector".to_owned(), |row| format!("pgvector {}", row.get::<_, String>(0)));
    Ok(format!(
        "PostgreSQL {version}, {vector}, shared_buffers {buffers}, client on its unix socket, data warm"
    ))
}

/// Whether embeddings are pgvector's, not `real[]`.
pub fn has_vectors(client: &mut Client) -> Result<bool> {
    let vector = "SELECT FROM pg_available_extensions WHERE name = 'vector'";
    Ok(client.query_opt(vector, &[])?.is_some())
}

/// The graph of the conversation in this place.
pub fn graph(conversation: usize) -> String {
    format!("conversation_{conversation}")
}

/// The conversations in a new database: all in the tables of `public`, each with its name as owner, and
/// each in tables of its own that are bound as its [`graph`]. A turn replies to the one before it in
/// its session, and the first of a session refers to the last of the session before.
pub fn load(corpus: &Corpus) -> Result<Client> {
    let mut server = connect("postgres")?;
    server.batch_execute(&format!("DROP DATABASE IF EXISTS {DATABASE}"))?;
    server.batch_execute(&format!("CREATE DATABASE {DATABASE}"))?;
    let mut client = connect(DATABASE)?;
    let dimensions = corpus.dimensions;
    let kind = if has_vectors(&mut client)? {
        client.batch_execute("CREATE EXTENSION vector")?;
        format!("vector({dimensions})")
    } else {
        "real[]".to_owned()
    };
    client.batch_execute("CREATE EXTENSION graph_kernel")?;
    create(&mut client, "public", &kind)?;
    // The position is for `windows.sql` alone.
    client.batch_execute(
        "CREATE INDEX ON memory_turns (owner);
         ALTER TABLE memory_turns ADD COLUMN position integer;
         CREATE INDEX ON memory_turns (session_id, position)",
    )?;
    copy(&mut client, "public", &kind, &corpus.conversations)?;
    client.batch_execute(
        "UPDATE memory_turns AS t SET position = p.position
           FROM (SELECT id, row_number() OVER (PARTITION BY owner, session_id ORDER BY created_at, id) AS position
                   FROM memory_turns) AS p
          WHERE p.id = t.id",
    )?;
    client.batch_execute("VACUUM (FULL, ANALYZE) memory_turns")?;
    client.batch_execute("CALL graph_kernel.refresh_words()")?;
    for (place, conversation) in corpus.conversations.iter().enumerate() {
        let graph = graph(place);
        client.batch_execute(&format!("CREATE SCHEMA {graph}"))?;
        create(&mut client, &graph, &kind)?;
        client.batch_execute(&format!(
            "SELECT graph_kernel.bind_tables('{graph}.memory_turns', '{graph}.memory_turn_edges', name => '{graph}')"
        ))?;
        copy(&mut client, &graph, &kind, std::slice::from_ref(conversation))?;
        client.batch_execute(&format!("CALL graph_kernel.refresh_words('{graph}')"))?;
    }
    Ok(client)
}

fn create(client: &mut Client, schema: &str, kind: &str) -> Result<()> {
    client.batch_execute(&format!(
        "SELECT graph_kernel.create_tables('{schema}', '{{\"words\": \"english\"}}');
         ALTER TABLE {schema}.memory_turns ADD COLUMN embedding {kind}"
    ))?;
    Ok(())
}

fn copy(
    client: &mut Client,
    schema: &str,
    kind: &str,
    conversations: &[Conversation],
) -> Result<()> {
    let mut turns = client.copy_in(&format!(
        "COPY {schema}.memory_turns (id, session_id, role, created_at, owner, content_text, embedding) FROM STDIN"
    ))?;
    let (open, close) = if kind == "real[]" { ('{', '}') } else { ('[', ']') };
    for conversation in conversations {
        for turn in &conversation.turns {
            let text =
                turn.content.replace('\\', "\\\\").replace('\n', "\\n").replace(['\t', '\r'], " ");
            let numbers: Vec<String> = turn.embedding.iter().map(f32::to_string).collect();
            writeln!(
                turns,
                "{}\t{}\t{}\t{}\t{}\t{text}\t{open}{}{close}",
                turn.id,
                turn.session,
                turn.role,
                turn.created_at,
                conversation.name,
                numbers.join(","),
            )?;
        }
    }
    turns.finish()?;
    let mut edges = client.copy_in(&format!(
        "COPY {schema}.memory_turn_edges (parent_turn_id, child_turn_id, edge_type) FROM STDIN"
    ))?;
    for conversation in conversations {
        for pair in conversation.turns.windows(2) {
            let kind = if pair[0].session == pair[1].session { "reply" } else { "reference" };
            writeln!(edges, "{}\t{}\t{kind}", pair[0].id, pair[1].id)?;
        }
    }
    edges.finish()?;
    client.batch_execute(&format!(
        "VACUUM (ANALYZE) {schema}.memory_turns, {schema}.memory_turn_edges"
    ))?;
    Ok(())
}
