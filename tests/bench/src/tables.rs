//! The graphs in tables: one database each, with the extension's tables and, where the peer is
//! compared, another with the tables its store reads.

use std::collections::HashSet;
use std::error::Error;
use std::io::Write;

use graph_kernel_tests::data::Graph;
use kernel::graph::content::sha256_hex;
use postgres::{Client, NoTls};
use uuid::Uuid;

pub type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// A connection to a database of the server that PG* names.
pub fn connect(database: &str) -> Result<Client> {
    let host = std::env::var("PGHOST")?;
    let port = std::env::var("PGPORT")?;
    let user = std::env::var("PGUSER")?;
    let text = format!("host={host} port={port} user={user} dbname={database}");
    Ok(Client::connect(&text, NoTls)?)
}

fn create_database(name: &str) -> Result<Client> {
    let mut server = connect("postgres")?;
    server.batch_execute(&format!("DROP DATABASE IF EXISTS \"{name}\""))?;
    server.batch_execute(&format!("CREATE DATABASE \"{name}\""))?;
    connect(name)
}

/// The extension's tables in a new database.
pub fn load(name: &str, graph: &Graph) -> Result<Client> {
    let mut client = create_database(name)?;
    client.batch_execute(
        "CREATE EXTENSION graph_kernel;
         SELECT graph_kernel.create_tables('public');
         -- Checking a key for each edge would make loading take most of the time.
         ALTER TABLE memory_turn_edges DROP CONSTRAINT memory_turn_edges_parent_turn_id_fkey,
             DROP CONSTRAINT memory_turn_edges_child_turn_id_fkey",
    )?;
    let mut writer = client.copy_in(
        "COPY memory_turns (id, session_id, role, trajectory_phase, salience_score, trajectory_depth,
             trajectory_sibling_order, trajectory_homogeneity, trajectory_temporal,
             trajectory_complexity, created_at) FROM STDIN",
    )?;
    for turn in &graph.turns {
        writeln!(
            writer,
            "{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}",
            turn.id,
            turn.session_id,
            turn.role.name(),
            turn.phase.name(),
            turn.salience,
            turn.trajectory_depth,
            turn.trajectory_sibling_order,
            turn.trajectory_homogeneity,
            turn.trajectory_temporal,
            turn.trajectory_complexity,
            timestamp(turn.created_at),
        )?;
    }
    writer.finish()?;
    copy_edges(&mut client, graph)?;
    Ok(client)
}

/// The tables that the published crate's PostgreSQL store reads, in a new database.
pub fn load_for_peer(name: &str, graph: &Graph) -> Result<()> {
    let mut client = create_database(name)?;
    client.batch_execute(
        "CREATE TABLE memory_turns (
             id uuid PRIMARY KEY, conversation_id uuid, role text, phase text,
             salience_score double precision, trajectory_depth integer,
             trajectory_sibling_order integer, trajectory_homogeneity double precision,
             trajectory_temporal double precision, trajectory_complexity integer,
             created_at timestamptz NOT NULL, content_text text, content_hash text);
         CREATE TABLE memory_turn_edges (
             parent_turn_id uuid NOT NULL, child_turn_id uuid NOT NULL, edge_type text NOT NULL,
             PRIMARY KEY (parent_turn_id, child_turn_id, edge_type));
         CREATE INDEX ON memory_turn_edges (child_turn_id)",
    )?;
    let mut writer = client.copy_in(
        "COPY memory_turns (id, conversation_id, role, phase, salience_score, trajectory_depth,
             trajectory_sibling_order, trajectory_homogeneity, trajectory_temporal,
             trajectory_complexity, created_at) FROM STDIN",
    )?;
    for turn in &graph.turns {
        writeln!(
            writer,
            "{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}",
            turn.id,
            conversation(&turn.session_id)?,
            turn.role.name(),
            turn.phase.name(),
            turn.salience,
            turn.trajectory_depth,
            turn.trajectory_sibling_order,
            turn.trajectory_homogeneity,
            turn.trajectory_temporal,
            turn.trajectory_complexity as i32,
            timestamp(turn.created_at),
        )?;
    }
    writer.finish()?;
    copy_edges(&mut client, graph)
}

fn copy_edges(client: &mut Client, graph: &Graph) -> Result<()> {
    let mut seen = HashSet::new();
    let mut writer = client
        .copy_in("COPY memory_turn_edges (parent_turn_id, child_turn_id, edge_type) FROM STDIN")?;
    for edge in &graph.edges {
        if seen.insert(edge) {
            writeln!(writer, "{}\t{}\t{}", edge.parent, edge.child, edge.edge_type.name())?;
        }
    }
    writer.finish()?;
    client.batch_execute("VACUUM (ANALYZE) memory_turns, memory_turn_edges")?;
    Ok(())
}

/// The peer's sessions have uuids.
pub fn conversation(session: &str) -> Result<Uuid> {
    Ok(Uuid::parse_str(&sha256_hex(session.as_bytes())[..32])?)
}

fn timestamp(unix_seconds: i64) -> String {
    chrono::DateTime::from_timestamp(unix_seconds, 0)
        .map_or_else(|| "epoch".to_owned(), |time| time.format("%Y-%m-%d %H:%M:%S+00").to_string())
}
