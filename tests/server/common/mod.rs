//! What the server tests share. Each test binary uses its part of it.
#![allow(dead_code)]

pub mod calls;
pub mod database;
pub mod export;
pub mod process;
pub mod shape;
pub mod shortage;
pub mod small_graphs;
pub mod small_graphs_v2;

use std::io::Write;

use postgres::error::DbError;
use postgres::{Client, Config, NoTls};

/// A variable of the environment that `make test` sets up (`use_server` in tests/harness/common.sh).
pub fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| {
        panic!("{name} is not set: this test needs a running server, run `make test`")
    })
}

/// A running server, reached through its socket.
#[derive(Clone)]
pub struct Server {
    pub socket: String,
    pub port: u16,
    pub user: String,
}

impl Server {
    /// The server that the environment names.
    pub fn primary() -> Self {
        let port = variable("PGPORT");
        Server {
            socket: variable("PGHOST"),
            port: port.parse().unwrap_or_else(|_| panic!("PGPORT is not a port: {port:?}")),
            user: variable("PGUSER"),
        }
    }

    /// A connection to a database.
    pub fn connect(&self, database: &str) -> Client {
        self.connect_noting(database, |_| {})
    }

    /// A connection to a database whose notices go to a function.
    pub fn connect_noting(
        &self,
        database: &str,
        note: impl Fn(DbError) + Sync + Send + 'static,
    ) -> Client {
        Config::new()
            .host_path(&self.socket)
            .port(self.port)
            .user(&self.user)
            .dbname(database)
            .notice_callback(note)
            .connect(NoTls)
            .unwrap_or_else(|error| panic!("no connection to {database}: {error:?}"))
    }

    /// A connection to the database that administers the others.
    pub fn connect_admin(&self) -> Client {
        self.connect(&variable("PGDATABASE"))
    }
}

/// Holds back other tests that make the roles of sql/roles, which are the cluster's, until it goes out of scope. They
/// may be in another program.
#[must_use]
pub fn shared_roles() -> Client {
    let mut client = Server::primary().connect_admin();
    client.batch_execute("SELECT pg_catalog.pg_advisory_lock(7462)").unwrap();
    client
}

/// A line on standard output, past the capture of `print!`, so that a passing test can report.
pub fn tell(line: &str) {
    std::io::stdout()
        .write_all(format!("\n{line}\n").as_bytes())
        .expect("standard output takes a line");
}

/// Reports that a test is skipped for want of a program; a failure where none may be missing (`CI`, `STRICT`).
pub fn lack(test: &str, reason: &str) {
    let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    assert!(!is_set("CI") && !is_set("STRICT"), "{test}: {reason}");
    tell(&format!("SKIPPED: {test}: {reason}"));
}
