//! The conversations in tables, as docs/recall.md makes them.

use std::io::Write;

use postgres::{Client, NoTls};

use crate::Result;
use crate::corpus::Corpus;

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

/// All conversations in one table of a new database, each with its name as owner: a turn replies to
/// the one before it in its session, and the first of a session refers to the last of the session
/// before.
pub fn load(corpus: &Corpus) -> Result<Client> {
    let mut server = connect("postgres")?;
    server.batch_execute(&format!("DROP DATABASE IF EXISTS {DATABASE}"))?;
    server.batch_execute(&format!("CREATE DATABASE {DATABASE}"))?;
    let mut client = connect(DATABASE)?;
    let dimensions = corpus.dimensions;
    let vector = "SELECT FROM pg_available_extensions WHERE name = 'vector'";
    let kind = if client.query_opt(vector, &[])?.is_some() {
        client.batch_execute("CREATE EXTENSION vector")?;
        format!("vector({dimensions})")
    } else {
        "real[]".to_owned()
    };
    client.batch_execute(&format!(
        "CREATE EXTENSION graph_kernel;
         SELECT graph_kernel.create_tables();
         ALTER TABLE memory_turns ADD COLUMN embedding {kind};
         ALTER TABLE memory_turns ADD COLUMN words tsvector
             GENERATED ALWAYS AS (to_tsvector('english', left(content_text, 100000))) STORED;
         CREATE INDEX ON memory_turns USING gin (words);
         CREATE INDEX ON memory_turns (owner)"
    ))?;
    let mut turns = client.copy_in(
        "COPY memory_turns (id, session_id, role, created_at, owner, content_text, embedding) FROM STDIN",
    )?;
    let (open, close) = if kind == "real[]" { ('{', '}') } else { ('[', ']') };
    for conversation in &corpus.conversations {
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
    let mut edges = client
        .copy_in("COPY memory_turn_edges (parent_turn_id, child_turn_id, edge_type) FROM STDIN")?;
    for conversation in &corpus.conversations {
        for pair in conversation.turns.windows(2) {
            let kind = if pair[0].session == pair[1].session { "reply" } else { "reference" };
            writeln!(edges, "{}\t{}\t{kind}", pair[0].id, pair[1].id)?;
        }
    }
    edges.finish()?;
    client.batch_execute("VACUUM (ANALYZE) memory_turns, memory_turn_edges")?;
    Ok(client)
}
