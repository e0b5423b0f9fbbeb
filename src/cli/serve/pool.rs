//! Connections to the database, and work that runs in a transaction on one of them.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use super::errors::Refusal;
use crate::database::{Database, Parameters, Place, value};
use crate::output;

/// How long a request waits for a connection.
const MAX_WAIT: Duration = Duration::from_secs(10);

/// After how long without work a connection is closed, so that no server's end goes unnoticed for long.
const MAX_IDLE: Duration = Duration::from_secs(60);

/// The connections, each used by one request at a time.
pub(crate) struct Pool {
    place: Place,
    /// One permit for each connection that there may be.
    permits: Arc<Semaphore>,
    connections: usize,
    idle: Mutex<Vec<(Instant, Connection)>>,
    /// How long a statement may take, in seconds.
    statement_seconds: u16,
}

/// A connection, and the schema of the extension's functions in its database.
struct Connection {
    database: Database,
    schema: String,
}

/// What a transaction may do.
#[derive(Clone, Copy, PartialEq)]
enum Mode {
    Read,
    Write,
}

/// A transaction. It sees one snapshot.
pub(crate) struct Transaction<'a> {
    database: &'a mut Database,
    schema: &'a str,
}

impl Pool {
    pub(crate) fn new(place: Place, connections: u16, statement_seconds: u16) -> Self {
        let connections = connections.into();
        let permits = Arc::new(Semaphore::new(connections));
        Pool { place, permits, connections, idle: Mutex::new(Vec::new()), statement_seconds }
    }

    /// How many connections there are, how many of them are idle, how many there may be.
    pub(crate) fn sizes(&self) -> (usize, usize, usize) {
        let idle = self.idle.lock().unwrap_or_else(|error| error.into_inner()).len();
        let used = self.connections - self.permits.available_permits();
        (used + idle, idle, self.connections)
    }

    /// Does this in a read-only transaction.
    pub(crate) async fn read<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnMut(&mut Transaction) -> Result<T, Refusal> + Send + 'static,
    ) -> Result<T, Refusal> {
        self.run(Mode::Read, work).await
    }

    /// Does this in a transaction that may write.
    pub(crate) async fn write<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnMut(&mut Transaction) -> Result<T, Refusal> + Send + 'static,
    ) -> Result<T, Refusal> {
        self.run(Mode::Write, work).await
    }

    async fn run<T: Send + 'static>(
        self: &Arc<Self>,
        mode: Mode,
        work: impl FnMut(&mut Transaction) -> Result<T, Refusal> + Send + 'static,
    ) -> Result<T, Refusal> {
        let waited = timeout(MAX_WAIT, Arc::clone(&self.permits).acquire_owned()).await;
        let Ok(Ok(permit)) = waited else {
            return Err(Refusal::unavailable("every connection to the database is in use"));
        };
        let pool = Arc::clone(self);
        let done = spawn_blocking(move || {
            // Held until the connection is back, also where nobody waits for the answer any more.
            let _permit = permit;
            pool.in_transaction(mode, work)
        });
        done.await.unwrap_or_else(|error| {
            tell(&format!("a request has failed: {error}"));
            Err(Refusal::new(
                axum::http::StatusCode::INTERNAL_SERVER_ERROR,
                "INTERNAL_ERROR",
                "the request has failed",
            ))
        })
    }

    fn in_transaction<T>(
        &self,
        mode: Mode,
        mut work: impl FnMut(&mut Transaction) -> Result<T, Refusal>,
    ) -> Result<T, Refusal> {
        let mut connection = self.connection(mode)?;
        let Connection { database, schema } = &mut connection;
        let mut transaction = Transaction { database, schema };
        let result = work(&mut transaction).and_then(|answer| {
            database.commit()?;
            Ok(answer)
        });
        // What is left open after an error is ended here; a connection that cannot be is dropped.
        if database.is_open() && database.roll_back().is_ok() && database.is_usable() {
            let mut idle = self.idle.lock().unwrap_or_else(|error| error.into_inner());
            idle.push((Instant::now(), connection));
        }
        result
    }

    /// A connection with a transaction that has begun: one that is idle, else a new one.
    fn connection(&self, mode: Mode) -> Result<Connection, Refusal> {
        let begin = self.beginning(mode);
        loop {
            let found = self.idle.lock().unwrap_or_else(|error| error.into_inner()).pop();
            let Some((since, mut connection)) = found else { break };
            // The server may have ended meanwhile: then a new connection says so.
            if since.elapsed() < MAX_IDLE && connection.database.begin(&begin).is_ok() {
                return Ok(connection);
            }
        }
        let unavailable = |why: String| {
            tell(&why);
            Refusal::unavailable("the database cannot be asked; the log of the service says why")
        };
        let mut database = self.place.connect().map_err(unavailable)?;
        database.begin(&begin)?;
        let schema = database.schema().map_err(unavailable)?;
        Ok(Connection { database, schema })
    }

    fn beginning(&self, mode: Mode) -> String {
        let access = match mode {
            Mode::Read => "READ ONLY",
            Mode::Write => "READ WRITE",
        };
        // The isolation of one that writes stays READ COMMITTED: of two that register at once, one waits for the other.
        let isolation = match mode {
            Mode::Read => "REPEATABLE READ",
            Mode::Write => "READ COMMITTED",
        };
        let seconds = self.statement_seconds;
        format!(
            "SET TRANSACTION ISOLATION LEVEL {isolation}, {access}; SET LOCAL statement_timeout = '{seconds}s'; \
             SET LOCAL idle_in_transaction_session_timeout = '60s'; "
        )
    }
}

impl Transaction<'_> {
    /// The one value of a query, as text; none where it is NULL or there is no row. `{schema}` stands for the
    /// extension's schema, and nothing that a client has sent stands in the query.
    pub(crate) fn text(
        &mut self,
        query: &str,
        parameters: Parameters,
    ) -> Result<Option<String>, Refusal> {
        let query = query.replace("{schema}", self.schema);
        let rows = self.database.rows(&query, parameters)?;
        let Some(row) = rows.first() else { return Ok(None) };
        value(row, 0).map_err(Refusal::unavailable)
    }

    /// The rows of a query as a JSON array of objects, one for each row, in their order.
    pub(crate) fn rows_as_json(
        &mut self,
        query: &str,
        parameters: Parameters,
    ) -> Result<String, Refusal> {
        let query =
            format!("SELECT coalesce(json_agg(to_json(r)), '[]')::text FROM ({query}) AS r");
        Ok(self.text(&query, parameters)?.unwrap_or_default())
    }

    /// The graph that is read: what `graph_kernel.describe_graph` says of it.
    pub(crate) fn graph(&mut self) -> Result<serde_json::Value, Refusal> {
        let text = self
            .text("SELECT graph_kernel.describe_graph(graph_kernel.chosen_graph())::text", &[])?;
        serde_json::from_str(&text.unwrap_or_default())
            .map_err(|error| Refusal::unavailable(error.to_string()))
    }
}

/// Writes a line to the log, the error stream. No token, no password and no text of a turn goes there.
pub(crate) fn tell(text: &str) {
    use std::io::Write;
    _ = writeln!(anstream::stderr(), "{}", output::message(text));
}
