//! Databases of a test's own.

use std::io::Write;
use std::path::{Path, PathBuf};

use graph_kernel_tests::data::read_text;
use postgres::Client;

use super::Server;

/// A database, dropped when it goes out of scope.
pub struct Database {
    pub server: Server,
    pub name: String,
}

impl Database {
    /// An empty database on the primary; a left-over of the same name is dropped first.
    pub fn empty(name: &str) -> Self {
        Self::create(name, "template1")
    }

    /// A copy of this database, which has the extension and to which nothing may be connected. As only a superuser can,
    /// the copy takes over the keys and the bindings, which would not count in it.
    pub fn copy(&self, name: &str) -> Self {
        let copy = Self::create(name, &self.name);
        let own = "(SELECT oid FROM pg_database WHERE datname = current_database())";
        copy.connect()
            .batch_execute(&format!(
                "ALTER TABLE graph_kernel.root_keys DISABLE TRIGGER guard;
                 UPDATE graph_kernel.root_keys SET database = {own};
                 ALTER TABLE graph_kernel.root_keys ENABLE ALWAYS TRIGGER guard;
                 ALTER TABLE graph_kernel.binding DISABLE TRIGGER guard;
                 UPDATE graph_kernel.binding SET database = {own};
                 ALTER TABLE graph_kernel.binding ENABLE ALWAYS TRIGGER guard"
            ))
            .unwrap();
        copy
    }

    /// A database with the extension and its empty tables.
    pub fn with_tables(name: &str) -> Self {
        let database = Self::empty(name);
        database
            .connect()
            .batch_execute("CREATE EXTENSION graph_kernel; SELECT graph_kernel.create_tables()")
            .unwrap();
        database
    }

    /// [`Database::with_tables`], whose edges may dangle and are added without a look at the turns, and whose content
    /// hashes stay as they are given.
    pub fn with_loose_tables(name: &str) -> Self {
        let database = Self::with_tables(name);
        database
            .connect()
            .batch_execute(
                "ALTER TABLE public.memory_turn_edges
                     DROP CONSTRAINT memory_turn_edges_parent_turn_id_fkey,
                     DROP CONSTRAINT memory_turn_edges_child_turn_id_fkey;
                 ALTER TABLE public.memory_turns DISABLE TRIGGER USER",
            )
            .unwrap();
        database
    }

    fn create(name: &str, template: &str) -> Self {
        let server = Server::primary();
        let database = Database { server, name: format!("gk_test_{name}") };
        database.drop_if_exists();
        database
            .server
            .connect_admin()
            .batch_execute(&format!("CREATE DATABASE {} TEMPLATE {template}", database.name))
            .unwrap();
        database
    }

    fn drop_if_exists(&self) {
        self.server
            .connect_admin()
            .batch_execute(&format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.name))
            .unwrap();
    }

    /// A connection to it on the primary.
    pub fn connect(&self) -> Client {
        self.server.connect(&self.name)
    }

    /// Drops a role with what it owns here. A session that a client has left drops its temporary
    /// tables a moment later: so its sessions are ended first, and waited for.
    pub fn drop_role(&self, role: &str) {
        self.connect()
            .batch_execute(&format!(
                "SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity WHERE usename = '{role}';
                 DROP OWNED BY {role}; DROP ROLE {role}"
            ))
            .unwrap();
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        // A second panic would hide the failure of the test.
        if !std::thread::panicking() {
            self.drop_if_exists();
        }
    }
}

/// Loads a folder's memory_turns.csv and memory_turn_edges.csv, compressed or not. An edge without
/// a type gets `default`; edges that are then the same are stored once.
pub fn load_graph(client: &mut Client, folder: &Path) {
    // A time stamp without a zone is UTC.
    client
        .batch_execute(
            "SET TimeZone = 'UTC';
             CREATE TEMP TABLE staged_edges (
                 parent_turn_id uuid, child_turn_id uuid, edge_type text
             )",
        )
        .unwrap();
    copy_csv(client, "public.memory_turns", &csv(folder, "memory_turns"));
    copy_csv(client, "staged_edges", &csv(folder, "memory_turn_edges"));
    client
        .batch_execute(
            "INSERT INTO public.memory_turn_edges (parent_turn_id, child_turn_id, edge_type)
             SELECT DISTINCT parent_turn_id, child_turn_id, coalesce(edge_type, 'default')
             FROM staged_edges;
             DROP TABLE staged_edges;
             ANALYZE public.memory_turns, public.memory_turn_edges",
        )
        .unwrap();
}

fn csv(folder: &Path, table: &str) -> PathBuf {
    let plain = folder.join(format!("{table}.csv"));
    if plain.exists() { plain } else { folder.join(format!("{table}.csv.gz")) }
}

fn copy_csv(client: &mut Client, table: &str, file: &Path) {
    let text = read_text(file);
    let columns = text.lines().next().unwrap_or_default();
    let copy = format!("COPY {table} ({columns}) FROM STDIN (FORMAT csv, HEADER)");
    let mut writer = client.copy_in(&copy).unwrap();
    writer.write_all(text.as_bytes()).unwrap();
    writer.finish().unwrap();
}
