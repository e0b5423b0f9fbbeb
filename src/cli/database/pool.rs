//! Connections that are kept between calls, and work on them, of which each transaction leaves nothing behind.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use postgres::error::{DbError, Severity};
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use super::client::{Canceller, Cancelling};
use super::stream::MessageTooLong;
use super::{Database, Place, QueryError, TransactionId, end_session, server_error};
use crate::Failure;

/// How long work waits for a connection.
const MAX_WAIT: Duration = Duration::from_secs(10);

/// After how long a connection is closed, so that no server's end and no setting of a role goes unnoticed for long.
const MAX_AGE: Duration = Duration::from_secs(60);

/// After how long work that was given up is cancelled again, as a request that comes between two statements is lost;
/// and how long that grows to be, by doubling.
const CANCEL_AGAIN: Duration = Duration::from_millis(100);
const MAX_CANCEL_AGAIN: Duration = Duration::from_secs(1);

/// How long a statement may go on after a cancel, as code of a policy can, before its connection is closed and its
/// session ended. How long it may take to connect for that, too.
const MAX_CANCEL: Duration = Duration::from_secs(2);

/// How much longer than one statement a call may take.
const MAX_MORE: Duration = Duration::from_secs(10);

/// What a transaction may do.
#[derive(Clone, Copy)]
pub(crate) enum Access {
    /// Reads, in one snapshot.
    Read,
    /// Writes. Each statement has a snapshot of its own: of two that write at once, one waits for the other.
    Write,
}

/// Why a database has not answered.
pub(crate) struct Fault {
    /// What is said to people.
    pub(crate) text: Failure,
    pub(crate) kind: FaultKind,
}

/// What a fault is.
pub(crate) enum FaultKind {
    /// The server's own error.
    Server(Box<DbError>),
    /// There is no connection to it.
    Unreachable,
    /// Every connection that there may be is in use.
    Busy,
    /// It has not answered in time.
    Late,
    /// The answer is longer than is held in memory.
    TooLong,
    /// What the role is better not asked to do.
    Forbidden,
    /// What the program itself refuses.
    Own,
}

impl Fault {
    /// Whether there is no connection to the server any more.
    pub(crate) fn is_unreachable(&self) -> bool {
        match &self.kind {
            FaultKind::Unreachable => true,
            FaultKind::Server(error) => {
                matches!(error.parsed_severity(), Some(Severity::Fatal | Severity::Panic))
            }
            FaultKind::Busy
            | FaultKind::Late
            | FaultKind::TooLong
            | FaultKind::Forbidden
            | FaultKind::Own => false,
        }
    }

    /// The stable word in the error's detail; empty where it has none.
    pub(crate) fn word(&self) -> &str {
        match &self.kind {
            FaultKind::Server(error) => error.detail().unwrap_or_default(),
            _ => "",
        }
    }
}

impl From<postgres::Error> for Fault {
    fn from(error: postgres::Error) -> Self {
        let kind = match error.as_db_error() {
            Some(error) => FaultKind::Server(Box::new(error.clone())),
            None if MessageTooLong::is_in(&error) => FaultKind::TooLong,
            None => FaultKind::Unreachable,
        };
        Fault { text: server_error(&error), kind }
    }
}

impl From<QueryError> for Fault {
    fn from(error: QueryError) -> Self {
        match error {
            QueryError::Server(error) => Fault::from(error),
            QueryError::TooLong => Fault {
                text: "the database has more to answer than is held in memory".to_owned(),
                kind: FaultKind::TooLong,
            },
        }
    }
}

impl From<Failure> for Fault {
    fn from(text: Failure) -> Self {
        Fault { text, kind: FaultKind::Own }
    }
}

/// The connections, each used by one work at a time.
pub(crate) struct Pool {
    place: Place,
    /// One permit for each connection that there may be.
    permits: Arc<Semaphore>,
    connections: usize,
    idle: Mutex<Vec<Connection>>,
    /// How long a statement may take, in seconds, where the role or the database does not say less.
    statement_seconds: u16,
}

/// A connection that is kept for a while.
struct Connection {
    database: Database,
    opened: Instant,
}

/// The right to use one connection at a time. It blocks.
pub(crate) struct Lease {
    pool: Arc<Pool>,
    running: Arc<Mutex<Running>>,
    /// Held until the connection is back, also where nobody waits for the answer any more.
    _permit: OwnedSemaphorePermit,
}

/// What whoever waits for work knows of it.
#[derive(Default)]
struct Running {
    /// Whether nobody waits for it any more.
    is_given_up: bool,
    /// What cancels the statement that runs.
    canceller: Option<Canceller>,
    /// The transaction that it is in.
    transaction: Option<TransactionId>,
    /// Whether that is being committed. A cancel then could come between that and what follows it.
    is_committing: bool,
}

/// Somebody who waits for work. Where this is dropped before the work has ended, it is cancelled.
struct Waiting(Weak<Mutex<Running>>);

impl Drop for Waiting {
    fn drop(&mut self) {
        let Some(running) = self.0.upgrade() else { return };
        locked(&running).is_given_up = true;
        let running = self.0.clone();
        if let Ok(runtime) = Handle::try_current() {
            let cancelling = Cancelling::begin();
            runtime.spawn_blocking(move || {
                end(&running);
                drop(cancelling);
            });
        }
    }
}

/// Cancels until the work has ended. What goes on has its connection closed, and then its session ended: a server that
/// is silent, or code that traps its cancel, keeps the connection from no other work. The server looks each second
/// whether a connection is there, but code can forbid that.
fn end(running: &Weak<Mutex<Running>>) {
    let (begun, mut wait) = (Instant::now(), CANCEL_AGAIN);
    while let Some(running) = running.upgrade() {
        let (canceller, transaction, is_committing) = {
            let running = locked(&running);
            (running.canceller.clone(), running.transaction.clone(), running.is_committing)
        };
        drop(running);
        // It gets no other connection either, as nobody waits for it.
        let Some(canceller) = canceller else { return };
        let left = MAX_CANCEL.saturating_sub(begun.elapsed());
        if left.is_zero() {
            canceller.close();
            if let Some(transaction) = transaction {
                end_session(&canceller, &transaction, MAX_CANCEL);
            }
            return;
        }
        if !is_committing {
            canceller.cancel(left);
        }
        thread::sleep(wait.min(MAX_CANCEL.saturating_sub(begun.elapsed())));
        wait = (2 * wait).min(MAX_CANCEL_AGAIN);
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Pool {
    /// Connects to nothing yet, so that it may begin before its server.
    pub(crate) fn new(place: Place, connections: u16, statement_seconds: u16) -> Self {
        let connections = connections.into();
        let permits = Arc::new(Semaphore::new(connections));
        Pool { place, permits, connections, idle: Mutex::default(), statement_seconds }
    }

    /// How many connections there are, how many of them are idle, how many there may be.
    pub(crate) fn sizes(&self) -> (usize, usize, usize) {
        let idle = locked(&self.idle).len();
        let used = self.connections - self.permits.available_permits();
        (used + idle, idle, self.connections)
    }

    /// Does work with a connection. Where this is dropped before it is done, as when a client goes away, the statement
    /// that runs is cancelled.
    pub(crate) async fn run<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&Lease) -> T + Send + 'static,
    ) -> Result<T, Fault> {
        let waited = timeout(MAX_WAIT, Arc::clone(&self.permits).acquire_owned()).await;
        let Ok(Ok(permit)) = waited else {
            let text = "every connection to the database is in use; try again later".to_owned();
            return Err(Fault { text, kind: FaultKind::Busy });
        };
        let (pool, running) = (Arc::clone(self), Arc::default());
        let waiting = Waiting(Arc::downgrade(&running));
        let lease = Lease { pool, running, _permit: permit };
        let most = Duration::from_secs(self.statement_seconds.into()) + MAX_MORE;
        let done = timeout(most, spawn_blocking(move || work(&lease))).await;
        let is_committing =
            waiting.0.upgrade().is_some_and(|running| locked(&running).is_committing);
        drop(waiting);
        let Ok(done) = done else {
            let mut text = "the database has not answered in time".to_owned();
            if is_committing {
                text.push_str("; whether it has stored what was written is not known");
            }
            return Err(Fault { text, kind: FaultKind::Late });
        };
        done.map_err(|_| Fault::from("the call has failed within the program".to_owned()))
    }

    /// What a transaction sets for itself.
    fn settings(&self) -> String {
        let seconds = self.statement_seconds;
        format!(
            "SET LOCAL idle_in_transaction_session_timeout = '60s'; \
             SELECT set_config('statement_timeout', '{seconds}s', true) \
             WHERE current_setting('statement_timeout')::interval NOT BETWEEN '1ms' AND '{seconds}s'"
        )
    }

    fn begin(
        &self,
        database: &mut Database,
        access: Access,
    ) -> Result<TransactionId, postgres::Error> {
        match access {
            Access::Read => database.begin("REPEATABLE READ, READ ONLY", &self.settings()),
            Access::Write => database.begin_writing("READ COMMITTED, READ WRITE", &self.settings()),
        }
    }
}

impl Lease {
    /// Does work in a transaction of its own, over a connection that was kept or a new one. The work gets the schema of
    /// the extension's functions, quoted.
    pub(crate) fn transaction<T, E: From<Fault>>(
        &self,
        access: Access,
        work: impl FnOnce(&mut Database, &str) -> Result<T, E>,
    ) -> Result<T, E> {
        let mut connection = self.begin(access)?;
        let database = &mut connection.database;
        let schema = database.schema();
        let mut done = schema.map_err(E::from).and_then(|schema| work(database, &schema));
        if matches!(access, Access::Write) {
            done = done.and_then(|value| {
                database.run_deferred().map_err(Fault::from)?;
                self.is_committing()?;
                database.commit().map_err(Fault::from)?;
                Ok(value)
            });
        }
        // What reads ends as what has failed does: that undoes also what a policy's function has set for the session. A
        // connection that has written is not kept, as such a setting is.
        let is_whole = database.is_usable_after_roll_back() && matches!(access, Access::Read);
        let is_given_up = {
            let mut running = locked(&self.running);
            running.canceller = None;
            running.transaction = None;
            running.is_committing = false;
            running.is_given_up
        };
        // A request to cancel may still be on its way to one that was given up.
        if is_whole && !is_given_up {
            locked(&self.pool.idle).push(connection);
        }
        done
    }

    /// A connection in a transaction. One that was kept may have been lost meanwhile, then another one is taken.
    fn begin(&self, access: Access) -> Result<Connection, Fault> {
        loop {
            let kept = locked(&self.pool.idle).pop();
            let Some(mut connection) = kept else { break };
            // It is closed before another one is opened: the role may have no more. The others are left to other calls,
            // as closing one takes long where the network is silent.
            if connection.opened.elapsed() >= MAX_AGE {
                break;
            }
            self.may_cancel(&connection.database)?;
            match self.pool.begin(&mut connection.database, access).map_err(Fault::from) {
                Ok(transaction) => {
                    locked(&self.running).transaction = Some(transaction);
                    return Ok(connection);
                }
                Err(fault) if fault.is_unreachable() => {}
                Err(fault) => return Err(fault),
            }
        }
        drop(self.while_waited_for()?);
        let unreachable = |text| Fault { text, kind: FaultKind::Unreachable };
        let opened = Instant::now();
        let mut database = self.pool.place.connect().map_err(unreachable)?;
        self.may_cancel(&database)?;
        locked(&self.running).transaction = Some(self.pool.begin(&mut database, access)?);
        Ok(Connection { database, opened })
    }

    /// Lets the statements of a connection be cancelled, unless nobody waits for them.
    fn may_cancel(&self, database: &Database) -> Result<(), Fault> {
        self.while_waited_for()?.canceller = database.canceller();
        Ok(())
    }

    /// Lets nothing be cancelled any more, unless nobody waits for it.
    fn is_committing(&self) -> Result<(), Fault> {
        self.while_waited_for()?.is_committing = true;
        Ok(())
    }

    /// What is known of the work, if somebody waits for it.
    fn while_waited_for(&self) -> Result<MutexGuard<'_, Running>, Fault> {
        let running = locked(&self.running);
        if running.is_given_up {
            let text = "nobody waits for the answer any more".to_owned();
            return Err(Fault { text, kind: FaultKind::Busy });
        }
        Ok(running)
    }
}
