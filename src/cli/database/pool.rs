//! Connections that are kept between calls, and calls that are a transaction each.

use std::sync::{Mutex, PoisonError};

use postgres::error::{DbError, Severity};

use super::{Database, Place, QueryError, server_error};
use crate::Failure;

/// How long the server works on a call unless the role or the database has a limit of its own.
const TIMEOUT: &str = "60s";

/// What a call may do.
#[derive(Clone, Copy)]
pub(crate) enum Access {
    /// Reads, in one snapshot.
    Read,
    Write,
}

/// Why a database has not answered.
pub(crate) struct Fault {
    /// What is said to people.
    pub(crate) text: Failure,
    /// The server's own error, if it is one.
    pub(crate) server: Option<Box<DbError>>,
    /// Whether the connection is of no more use.
    is_lost: bool,
}

impl Fault {
    /// That of a connection which is of no more use.
    fn lost(text: Failure) -> Self {
        Fault { text, server: None, is_lost: true }
    }

    /// Whether there was no answer of a server.
    pub(crate) fn is_unreachable(&self) -> bool {
        self.is_lost
    }

    /// The stable word in the error's detail; empty where it has none.
    pub(crate) fn word(&self) -> &str {
        self.server.as_ref().and_then(|error| error.detail()).unwrap_or_default()
    }
}

impl From<postgres::Error> for Fault {
    fn from(error: postgres::Error) -> Self {
        let server = error.as_db_error().cloned().map(Box::new);
        let is_lost = server.as_ref().is_none_or(|error| {
            matches!(error.parsed_severity(), Some(Severity::Fatal | Severity::Panic))
        });
        Fault { text: server_error(&error), server, is_lost }
    }
}

impl From<QueryError> for Fault {
    fn from(error: QueryError) -> Self {
        match error {
            QueryError::Server(error) => Fault::from(error),
            QueryError::TooLong => Fault {
                text: "the database has more to answer than is held in memory".to_owned(),
                server: None,
                is_lost: true,
            },
        }
    }
}

impl From<Failure> for Fault {
    /// Of what the program itself refuses.
    fn from(text: Failure) -> Self {
        Fault { text, server: None, is_lost: false }
    }
}

/// Connections to one database, as many as there are calls at a time.
pub(crate) struct Pool {
    place: Place,
    idle: Mutex<Vec<Database>>,
}

impl Pool {
    /// Connects to nothing yet, so that it may begin before its server.
    pub(crate) fn new(place: Place) -> Self {
        Pool { place, idle: Mutex::default() }
    }

    /// Does work in a transaction of its own, over a connection that was kept or a new one. The work gets the schema of
    /// the extension's functions, quoted. Blocks.
    pub(crate) fn call<T>(
        &self,
        access: Access,
        work: impl FnOnce(&mut Database, &str) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        let mut database = self.begin(access)?;
        let done = database.schema().map_err(Fault::from).and_then(|schema| {
            let value = work(&mut database, &schema)?;
            database.commit()?;
            Ok(value)
        });
        let is_lost = match &done {
            Ok(_) => false,
            Err(fault) => fault.is_lost || database.roll_back().is_err(),
        };
        if !is_lost {
            self.idle().push(database);
        }
        done
    }

    /// A connection in a transaction. One that was kept may have been lost meanwhile, then another one is taken.
    fn begin(&self, access: Access) -> Result<Database, Fault> {
        let access = match access {
            Access::Read => "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY",
            Access::Write => "SET TRANSACTION READ WRITE",
        };
        let commands = format!(
            "{access}; SELECT set_config('statement_timeout', '{TIMEOUT}', true) \
             WHERE current_setting('statement_timeout') = '0'; "
        );
        loop {
            let kept = self.idle().pop();
            let is_kept = kept.is_some();
            let mut database = match kept {
                Some(database) => database,
                None => self.place.connect().map_err(Fault::lost)?,
            };
            match database.begin(&commands).map_err(Fault::from) {
                Ok(()) => return Ok(database),
                Err(fault) if is_kept && fault.is_lost => {}
                Err(fault) => return Err(fault),
            }
        }
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<Database>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
