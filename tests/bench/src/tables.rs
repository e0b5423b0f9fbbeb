//! The graphs in tables: one database each, with the extension's tables and, where the peer is
//! compared, another with the tables its store reads.

use std::collections::{HashMap, HashSet};
use std::error::Error;
use std::io::Write;

use graph_kernel_tests::data::Graph;
use kernel::graph::content::sha256_hex;
use kernel::graph::edge::EdgeType;
use kernel::graph::turn::TurnId;
use postgres::{Client, NoTls};
use serde_json::json;
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

/// The server that PG* name, in one line.
pub fn server() -> Result<String> {
    let mut client = connect("postgres")?;
    let version: String = client.query_one("SHOW server_version", &[])?.get(0);
    let buffers: String = client.query_one("SHOW shared_buffers", &[])?.get(0);
    Ok(format!(
        "PostgreSQL {version}, shared_buffers {buffers}, clients on its unix socket, data warm"
    ))
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

/// How an application's table of messages says which turn a row is.
#[derive(Clone, Copy, PartialEq)]
pub enum Ids {
    /// By a uuid; role, phase, salience and time are columns.
    Uuid,
    /// By a text; all other values come from expressions.
    Text,
}

/// A turns table that stores its edges in two columns, in a new database: a graph of `graphs::two_parents`.
pub fn load_as_messages(name: &str, graph: &Graph, ids: Ids) -> Result<Client> {
    let mut client = create_database(name)?;
    let (id, values) = match ids {
        Ids::Uuid => ("uuid", "role text, phase text, salience real, created_at timestamptz"),
        Ids::Text => ("text", "author text, metadata jsonb, created_at bigint"),
    };
    client.batch_execute(&format!(
        "CREATE EXTENSION graph_kernel;
         CREATE TABLE messages (id {id} PRIMARY KEY, parent_id {id}, quote_id {id}, chat text, {values})"
    ))?;
    let mut parents: HashMap<TurnId, [Option<TurnId>; 2]> = HashMap::new();
    for edge in &graph.edges {
        let column = usize::from(edge.edge_type == EdgeType::Reference);
        parents.entry(edge.child).or_default()[column] = Some(edge.parent);
    }
    let mut writer = client.copy_in("COPY messages FROM STDIN")?;
    for turn in &graph.turns {
        let parents = parents.get(&turn.id).copied().unwrap_or_default();
        let [parent, quote] = parents.map(|id| id.map_or("\\N".to_owned(), |id| id.to_string()));
        let (role, phase) = (turn.role.name(), turn.phase.name());
        write!(writer, "{}\t{parent}\t{quote}\t{}\t", turn.id, turn.session_id)?;
        match ids {
            Ids::Uuid => {
                let time = timestamp(turn.created_at);
                writeln!(writer, "{role}\t{phase}\t{}\t{time}", turn.salience)?;
            }
            Ids::Text => {
                let author = if role == "user" { "human" } else { role };
                let metadata = json!({ "phase": phase, "salience": turn.salience });
                writeln!(writer, "{author}\t{metadata}\t{}", turn.created_at)?;
            }
        }
    }
    writer.finish()?;
    client.batch_execute(match ids {
        Ids::Uuid => {
            r#"CREATE INDEX ON messages (parent_id) INCLUDE (id);
               CREATE INDEX ON messages (quote_id) INCLUDE (id);
               SELECT graph_kernel.bind_tables('messages', columns => '{"turns": {
                   "session_id": "chat",
                   "parents": [{"parent": "parent_id", "edge_type": "reply"},
                               {"parent": "quote_id", "edge_type": "reference"}]}}')"#
        }
        Ids::Text => {
            r#"CREATE UNIQUE INDEX ON messages (graph_turn_id(id)) INCLUDE (id);
               CREATE INDEX ON messages (graph_turn_id(parent_id)) INCLUDE (id, parent_id);
               CREATE INDEX ON messages (graph_turn_id(quote_id)) INCLUDE (id, quote_id);
               SELECT graph_kernel.bind_tables('messages', columns => '{"turns": {
                   "id": {"expression": "graph_turn_id(id)"},
                   "session_id": "chat",
                   "role": {"expression": "CASE author WHEN ''human'' THEN ''user'' ELSE author END"},
                   "phase": {"expression": "metadata ->> ''phase''"},
                   "salience": {"expression": "(metadata ->> ''salience'')::float8"},
                   "created_at": {"expression": "to_timestamp(created_at)"},
                   "parents": [{"parent": {"expression": "graph_turn_id(parent_id)"}, "edge_type": "reply"},
                               {"parent": {"expression": "graph_turn_id(quote_id)"}, "edge_type": "reference"}]}}')"#
        }
    })?;
    client.batch_execute("VACUUM (ANALYZE) messages")?;
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
