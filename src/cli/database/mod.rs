//! A database that is reached as libpq does, and transactions that leave nothing behind.
//!
//! The connection may be one of a pooler's, which another client has after each transaction. So what is set is set
//! within a transaction, to its end, and no prepared statement has a name.

mod client;
mod hosts;
mod parameters;
mod password_file;
mod pool;
mod stream;
mod tls;

use std::collections::HashMap;
use std::thread;
use std::time::Duration;

use postgres::Row;
use postgres::error::DbError;
use postgres::error::SqlState;
use postgres::types::{FromSql, ToSql, Type};
use serde_json::Value;

pub(crate) use self::client::wait_for_cancels;
use self::client::{Canceller, Cancelling, Client, CopyIn};
pub(crate) use self::password_file::{is_of_user, is_private};
pub(crate) use self::pool::{Access, Fault, FaultKind, Lease, Pool};
use self::stream::MAX_DATA_BYTES;
use crate::Failure;
use crate::arguments::DatabaseArguments;

/// What a statement's parameters are, with their types.
pub(crate) type Parameters<'a> = &'a [(&'a (dyn ToSql + Sync), Type)];

/// What every transaction of the program sets.
const LOCAL_SETTINGS: &str = "\
    SET LOCAL search_path = pg_catalog, pg_temp; SET LOCAL TimeZone = 'UTC'; SET LOCAL DateStyle = 'ISO'; \
    SET LOCAL client_connection_check_interval = '1s'; SET LOCAL client_min_messages = 'notice'";

/// Keeps the extension from being dropped until the transaction ends, before it has a snapshot: its schema could be
/// another's by the next statement, with code in it.
const HOLD: &str = "LOCK TABLE graph_kernel.binding IN ACCESS SHARE MODE";

/// The extension whose table that is: the schema of its functions, quoted; where policies are not for the current role,
/// or for the one that logged in, which code could set again, and another owns that schema, who could give its name to
/// one of his own, both roles; that table's OID.
const EXTENSION: &str = "\
    SELECT quote_ident(n.nspname), f.role, f.owner, d.objid \
    FROM pg_extension AS e JOIN pg_namespace AS n ON n.oid = e.extnamespace \
    JOIN pg_depend AS d ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid AND d.deptype = 'e' \
     AND d.classid = 'pg_class'::regclass AND d.objid = to_regclass('graph_kernel.binding') \
    LEFT JOIN LATERAL (SELECT r.rolname::text AS role, o.rolname::text AS owner \
        FROM pg_roles AS r, pg_roles AS s JOIN pg_roles AS o ON o.oid = CASE s.rolname WHEN 'pg_database_owner' \
            THEN (SELECT b.datdba FROM pg_database AS b WHERE b.datname = current_database()) ELSE s.oid END \
        WHERE s.oid = n.nspowner AND NOT o.rolsuper AND o.oid <> r.oid AND (r.rolsuper OR r.rolbypassrls) \
          AND r.rolname IN (current_user, session_user) LIMIT 1) AS f ON true \
    WHERE e.extname = 'graph_kernel'";

/// How often that is tried. The extension is hardly ever made anew meanwhile.
const MAX_HOLDS: usize = 4;

const NO_EXTENSION: &str = "the extension is not in this database: CREATE EXTENSION graph_kernel";

/// The isolation level in which each statement has a snapshot of its own.
pub(crate) const READ_COMMITTED: &str = "READ COMMITTED";

/// What ends every beginning of a transaction: the server process, and when it began.
const WHICH: &str = "SELECT pg_backend_pid(), now()";

/// Gives the commands that set again what the session has set: other clients of a pooler may have, or the pooler where
/// it connects. What the login alone may set is set before its role, and the rest after that.
const SET_AGAIN: &str = "\
    SELECT pg_catalog.string_agg(pg_catalog.format( \
        'SELECT pg_catalog.set_config(%L, %L, false); ', s.name, s.setting), '' ORDER BY s.place) \
    FROM (SELECT name, setting, CASE WHEN context OPERATOR(pg_catalog.=) 'superuser' \
            AND pg_catalog.has_parameter_privilege(session_user, name, 'SET') THEN 1 ELSE 3 END \
          FROM pg_catalog.pg_settings \
          WHERE source OPERATOR(pg_catalog.=) 'session' AND name OPERATOR(pg_catalog.<>) ALL ( \
            '{transaction_isolation,transaction_read_only,transaction_deferrable}'::pg_catalog.text[]) \
          UNION ALL SELECT 'role', pg_catalog.current_setting('role'), 2 \
          WHERE pg_catalog.current_setting('role') OPERATOR(pg_catalog.<>) 'none') AS s (name, setting, place)";

/// What ends a transaction that has written. Triggers may have set for the session what they please, also at its end,
/// and its timeout would end this. What follows the first command is a transaction of its own: where it fails, as where
/// a role was dropped meanwhile, a pooler gives the session to nobody.
const COMMIT: &str = "\
    COMMIT AND CHAIN; SET LOCAL statement_timeout = 0; RESET ALL; RESET ROLE; \
    SELECT pg_catalog.pg_advisory_unlock_all(); ";

/// What ends another one. Locks of the session outlive it, and code of a policy can take them.
const ROLLBACK: &str = "ROLLBACK; SELECT pg_catalog.pg_advisory_unlock_all()";

/// Ends the session of that transaction, if it still runs.
const END_SESSION: &str = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
    WHERE pid = $1::text::integer AND xact_start = $2::text::timestamptz";

/// The name of the chosen graph, and what it is. Its tables are locked.
const DESCRIBED: &str =
    "SELECT name, graph_kernel.describe_graph(name) FROM graph_kernel.chosen_graph() AS name";

/// Of the tables $1 each with its OID and its name; where policies are not for the role, as in [`EXTENSION`], and the
/// table's schema is another's, or where that is a superuser, whom code of its triggers would serve, and the table, or
/// a partition, is another's: that role, what it is, its owner. Other superusers may do all anyway. A schema that is
/// the role's own, or a superuser's, keeps its name.
const TABLES: &str = "\
    SELECT t.oid, format('%I.%I', u.nspname, b.relname), f.role, f.what, f.owner \
    FROM unnest($1::bigint[]) AS t (oid) \
    JOIN pg_class AS b ON b.oid = t.oid::oid JOIN pg_namespace AS u ON u.oid = b.relnamespace \
    LEFT JOIN LATERAL ( \
        SELECT r.rolname::text AS role, format(f.what, n.nspname, c.relname) AS what, f.owner::text AS owner \
        FROM pg_roles AS r CROSS JOIN LATERAL (WITH RECURSIVE part (oid) AS ( \
                SELECT b.oid UNION SELECT i.inhrelid FROM part AS p JOIN pg_inherits AS i ON i.inhparent = p.oid) \
            SELECT part.oid FROM part) AS p \
        JOIN pg_class AS c ON c.oid = p.oid JOIN pg_namespace AS n ON n.oid = c.relnamespace \
        JOIN pg_roles AS s ON s.oid = n.nspowner \
        JOIN pg_roles AS o ON o.oid = CASE s.rolname WHEN 'pg_database_owner' \
            THEN (SELECT d.datdba FROM pg_database AS d WHERE d.datname = current_database()) ELSE s.oid END \
        JOIN pg_roles AS w ON w.oid = c.relowner \
        CROSS JOIN LATERAL ( \
            SELECT 'schema %I', o.rolname WHERE NOT o.rolsuper AND o.oid <> r.oid AND (r.rolsuper OR r.rolbypassrls) \
            UNION ALL SELECT 'table %I.%I', w.rolname WHERE r.rolsuper AND NOT w.rolsuper) AS f (what, owner) \
        WHERE r.rolname IN (current_user, session_user) LIMIT 1) AS f ON true";

/// The longest answer to a query, in bytes.
const MAX_ANSWER_BYTES: usize = MAX_DATA_BYTES;

/// How long a connection that others wait for may take to be made, where the arguments do not say it, in seconds.
const CONNECT_SECONDS: &str = "10";

/// Where a database is, to connect to it more than once.
pub(crate) struct Place {
    settings: parameters::Settings,
    graph: Option<String>,
}

impl Place {
    /// What the arguments name. Where they name no database, `url` is a variable that may: it can hold a password.
    pub(crate) fn of(arguments: &DatabaseArguments, url: &str) -> Result<Self, Failure> {
        let mut settings = match &arguments.database {
            Some(database) => parameters::of(Some(database))?,
            None => parameters::of_variable(url)?,
        };
        if settings.get("connect_timeout").is_none() {
            settings.set("connect_timeout", CONNECT_SECONDS);
        }
        Ok(Place { settings, graph: arguments.graph.clone() })
    }

    /// A new connection.
    pub(crate) fn connect(&self) -> Result<Database, Failure> {
        Ok(Database::over(hosts::connect(&self.settings)?, self.graph.clone()))
    }
}

/// Why a query has no rows to give.
pub(crate) enum QueryError {
    Server(postgres::Error),
    /// The answer is longer than is held in memory; the connection is of no more use.
    TooLong,
}

impl From<postgres::Error> for QueryError {
    fn from(error: postgres::Error) -> Self {
        QueryError::Server(error)
    }
}

/// Which transaction of a server it is. A pooler gives each one another process.
#[derive(Clone, Default)]
pub(crate) struct TransactionId {
    process: String,
    begun: String,
}

/// A connection.
pub(crate) struct Database {
    /// None after an answer that is too long.
    client: Option<(Client, Canceller)>,
    /// The name under which the tables are bound, if one was given.
    graph: Option<String>,
    is_in_transaction: bool,
    /// The commands that set again what the session had set before a transaction that writes.
    set_again: String,
    /// The OID of the extension's table that [`HOLD`] locks, once it is known.
    held: Option<u32>,
}

/// Connects to the database that the arguments name; what they do not say is taken from the environment.
pub(crate) fn connect(arguments: &DatabaseArguments) -> Result<Database, Failure> {
    let settings = parameters::of(arguments.database.as_deref())?;
    Place { settings, graph: arguments.graph.clone() }.connect()
}

/// Ends the session of a transaction that goes on after its cancels: another one of the same role may. It connects to
/// where that one is, as a session of another host could have the same number. Not much longer than twice `most` is
/// waited for it.
fn end_session(canceller: &Canceller, transaction: &TransactionId, most: Duration) {
    let Ok(client) = canceller.connect_again(most) else { return };
    let mut database = Database::over(client, None);
    database.close_after(most);
    let parameters: Parameters =
        &[(&transaction.process, Type::TEXT), (&transaction.begun, Type::TEXT)];
    // Whether it has gone is not known where it was not reached, and nobody waits for it.
    _ = database
        .begin_with(&format!("BEGIN ISOLATION LEVEL {READ_COMMITTED}; {LOCAL_SETTINGS}; {WHICH}"))
        .and_then(|_| database.client().execute_typed(END_SESSION, parameters));
}

impl Database {
    fn over(client: (Client, Canceller), graph: Option<String>) -> Self {
        let client = Some(client);
        Database { client, graph, is_in_transaction: false, set_again: String::new(), held: None }
    }

    fn client(&mut self) -> &mut Client {
        let client = self.client.as_mut();
        &mut client.expect("after an answer that is too long the connection is not used").0
    }

    /// Ends the transaction, if there is one, with nothing done. Whether another one can begin.
    fn is_usable_after_roll_back(&mut self) -> bool {
        self.is_open() && self.roll_back().is_ok() && self.is_open()
    }

    /// Whether there is a connection still.
    fn is_open(&self) -> bool {
        self.client.as_ref().is_some_and(|(client, _)| !client.is_closed())
    }

    /// What cancels the statement that runs.
    fn canceller(&self) -> Option<Canceller> {
        self.client.as_ref().map(|(_, canceller)| canceller.clone())
    }

    /// Closes the connection after this time, also where something runs on it.
    fn close_after(&self, time: Duration) {
        if let Some(canceller) = self.canceller() {
            thread::spawn(move || {
                thread::sleep(time);
                canceller.close();
            });
        }
    }

    /// Says why this database cannot be asked about a graph.
    pub(crate) fn check(mut self) -> Result<(), Failure> {
        self.begin(READ_COMMITTED, "").map_err(|error| server_error(&error))?;
        self.schema().map_err(|fault| fault.text)?;
        self.query_one(DESCRIBED, &[]).map(|_| ()).map_err(|error| server_error(&error))
    }

    /// Begins a transaction that reads, with these commands. The isolation level may be followed by the access mode.
    pub(crate) fn begin(
        &mut self,
        isolation: &str,
        commands: &str,
    ) -> Result<TransactionId, postgres::Error> {
        self.begin_with(&format!(
            "BEGIN ISOLATION LEVEL {isolation}; {LOCAL_SETTINGS}; {HOLD}; {commands}; {WHICH}"
        ))
    }

    /// Begins a transaction that may be committed.
    pub(crate) fn begin_writing(
        &mut self,
        isolation: &str,
        commands: &str,
    ) -> Result<TransactionId, postgres::Error> {
        self.begin_with(&format!(
            "BEGIN ISOLATION LEVEL {isolation}; {SET_AGAIN}; {LOCAL_SETTINGS}; {HOLD}; {commands}; {WHICH}"
        ))
    }

    fn begin_with(&mut self, commands: &str) -> Result<TransactionId, postgres::Error> {
        self.is_in_transaction = true;
        let (mut set_again, mut transaction) = (None, TransactionId::default());
        self.client().each_row(commands, |row| {
            let text =
                |column: usize| row.try_get(column).ok().flatten().unwrap_or_default().to_owned();
            set_again.get_or_insert_with(|| text(0));
            transaction = TransactionId { process: text(0), begun: text(1) };
        })?;
        self.set_again = set_again.unwrap_or_default();
        if let Some(graph) = self.graph.clone() {
            let set = "SELECT set_config('graph_kernel.graph', $1, true)";
            self.client().execute_typed(set, &[(&graph, Type::TEXT)])?;
        }
        Ok(transaction)
    }

    /// Runs what triggers have deferred to the end of the transaction.
    pub(crate) fn run_deferred(&mut self) -> Result<(), postgres::Error> {
        self.client().batch_execute("SET CONSTRAINTS ALL IMMEDIATE")
    }

    pub(crate) fn commit(&mut self) -> Result<(), postgres::Error> {
        let commands = format!("{COMMIT}{}COMMIT", std::mem::take(&mut self.set_again));
        let is_only_begun = self.client().is_only_begun(&commands)?;
        self.is_in_transaction = false;
        if is_only_begun {
            // All is stored. Nobody is to have the session with other rights than it had.
            self.client().close();
        }
        Ok(())
    }

    /// Ends the transaction, if there is one, with nothing done.
    pub(crate) fn roll_back(&mut self) -> Result<(), postgres::Error> {
        if std::mem::take(&mut self.is_in_transaction) {
            self.client().batch_execute(ROLLBACK)?;
        }
        Ok(())
    }

    pub(crate) fn run(&mut self, commands: &str) -> Result<(), postgres::Error> {
        self.client().batch_execute(commands)
    }

    /// The number of rows that a statement has written.
    pub(crate) fn execute(
        &mut self,
        statement: &str,
        parameters: Parameters,
    ) -> Result<u64, postgres::Error> {
        self.client().execute_typed(statement, parameters)
    }

    /// The rows of a query, whose columns are of the server's own types: others would have to be looked up. More than
    /// [`MAX_ANSWER_BYTES`] are not held in memory.
    pub(crate) fn query(
        &mut self,
        query: &str,
        parameters: Parameters,
    ) -> Result<Vec<Row>, Failure> {
        self.rows(query, parameters).map_err(|error| match error {
            QueryError::Server(error) => server_error(&error),
            QueryError::TooLong => {
                format!("the server's answer is longer than {MAX_ANSWER_BYTES} bytes")
            }
        })
    }

    /// The same, with the error as it is.
    pub(crate) fn rows(
        &mut self,
        query: &str,
        parameters: Parameters,
    ) -> Result<Vec<Row>, QueryError> {
        let mut rows = self.client().rows(query, parameters)?;
        let (mut list, mut bytes) = (Vec::new(), 0);
        while let Some(row) = rows.next()? {
            // Beside its bytes the driver holds where each column begins and ends.
            let places = row.len() * size_of::<Option<std::ops::Range<usize>>>();
            bytes += size_of::<Row>() + row.raw_size_bytes() + places;
            if bytes > MAX_ANSWER_BYTES {
                // To close reads on to the end of the answer, which may have none: nobody waits for that.
                drop(rows);
                self.is_in_transaction = false;
                if let Some((client, canceller)) = self.client.take() {
                    let cancelling = Cancelling::begin();
                    thread::spawn(move || {
                        canceller.cancel(client::MAX_CANCEL);
                        drop((client, cancelling));
                    });
                }
                return Err(QueryError::TooLong);
            }
            list.push(row);
        }
        Ok(list)
    }

    /// The same, and how many turns the extension has left out of them, as they are too long.
    pub(crate) fn rows_that_fit(
        &mut self,
        query: &str,
        parameters: Parameters,
    ) -> Result<(Vec<Row>, u64), QueryError> {
        self.client().take_left_out();
        let rows = self.rows(query, parameters)?;
        Ok((rows, self.client().take_left_out()))
    }

    /// The rows of a query that ends the transaction, with nothing left that code of users has set for the session.
    pub(crate) fn last_query(
        &mut self,
        query: &str,
        parameters: Parameters,
    ) -> Result<Vec<Row>, Failure> {
        let rows = self.query(query, parameters)?;
        self.roll_back().map_err(|error| server_error(&error))?;
        Ok(rows)
    }

    /// The row of a query that gives one.
    pub(crate) fn query_one(
        &mut self,
        query: &str,
        parameters: Parameters,
    ) -> Result<Row, postgres::Error> {
        self.client().query_typed_one(query, parameters)
    }

    /// Begins a COPY within the transaction. The driver prepares it under a name, which it drops before what comes
    /// next.
    pub(crate) fn copy_in(&mut self, copy: &str) -> Result<CopyIn<'_>, postgres::Error> {
        debug_assert!(self.is_in_transaction, "outside, the name would be a session's");
        self.client().copy_in(copy)
    }

    /// When the server was started, which no other one was at this microsecond.
    pub(crate) fn server(&mut self) -> Result<String, Failure> {
        let query = "SELECT pg_postmaster_start_time()::text";
        self.query_one(query, &[])
            .map_err(|error| server_error(&error))
            .and_then(|row| value(&row, 0))
    }

    /// The schema of the extension's functions, quoted. To be asked for in each transaction.
    ///
    /// The name that was locked is known to have been the extension's where it was that before as well: nobody gives
    /// such a table, or its schema, another name.
    pub(crate) fn schema(&mut self) -> Result<String, Fault> {
        for _ in 0..MAX_HOLDS {
            let rows = self.rows(EXTENSION, &[])?;
            let Some(row) = rows.first() else { break };
            let held = self.held.replace(value(row, 3)?);
            if held != self.held {
                self.client().batch_execute(HOLD)?;
                continue;
            }
            let schema: String = value(row, 0)?;
            let (role, owner): (Option<&str>, Option<&str>) = (value(row, 1)?, value(row, 2)?);
            return match role.zip(owner) {
                None => Ok(schema),
                Some((role, owner)) => {
                    Err(could_run_code(role, &format!("schema {schema}"), owner))
                }
            };
        }
        Err(NO_EXTENSION.to_owned().into())
    }

    /// The chosen graph, to write its tables by their names. The library reads them by what they are.
    ///
    /// The tables keep their names until the transaction ends, but not their schemas: who owns one can give its name to
    /// another, with a view in it whose code would run as this role. Such code a table's owner has in a policy as well,
    /// but not for a role that policies are not for. That one is refused where another role owns the schema; a
    /// superuser also where another owns a table, whose triggers would run as him.
    pub(crate) fn graph(&mut self) -> Result<ChosenGraph, Fault> {
        let row = self.query_one(DESCRIBED, &[])?;
        let (name, described): (String, Value) = (value(&row, 0)?, value(&row, 1)?);
        let oids = described["tables"].as_array().into_iter().flatten();
        let oids: Vec<i64> = oids.filter_map(Value::as_i64).collect();
        let mut names = HashMap::new();
        for row in self.rows(TABLES, &[(&oids, Type::INT8_ARRAY)])? {
            if let Some(role) = value(&row, 2)? {
                return Err(could_run_code(role, value(&row, 3)?, value(&row, 4)?));
            }
            names.insert(value(&row, 0)?, value(&row, 1)?);
        }
        Ok(ChosenGraph { name, described, names })
    }
}

/// A graph whose tables are locked.
pub(crate) struct ChosenGraph {
    pub(crate) name: String,
    /// What `graph_kernel.describe_graph` says of it.
    pub(crate) described: Value,
    /// The names of its tables, with their schemas, quoted, by their OIDs.
    names: HashMap<i64, String>,
}

impl ChosenGraph {
    /// The OID of the table, `turns` or `edges`; 0 where there is none.
    pub(crate) fn oid_of(&self, part: &str) -> i64 {
        self.described[part]["oid"].as_i64().unwrap_or_default()
    }

    /// The name of that table.
    pub(crate) fn name_of(&self, part: &str) -> Result<&str, Failure> {
        let name = self.names.get(&self.oid_of(part)).map(String::as_str);
        name.ok_or_else(|| format!("graph {}: its table of {part} is not there", self.name))
    }
}

/// The fault of a role that passes over row security, where another role owns what it would follow names in, or write.
fn could_run_code(role: &str, what: &str, owner: &str) -> Fault {
    let text = format!(
        "the role {role} passes over row security, and {owner}, who owns the {what}, could have it run code: \
         connect as a role with no more rights than it needs"
    );
    Fault { text, kind: FaultKind::Forbidden }
}

impl Drop for Database {
    /// A pooler would close a connection whose transaction is left open.
    fn drop(&mut self) {
        _ = self.roll_back();
    }
}

/// A value of a row. A server may give another answer than what it was asked for.
pub(crate) fn value<'a, T: FromSql<'a>>(row: &'a Row, column: usize) -> Result<T, Failure> {
    row.try_get(column).map_err(|error| {
        format!("the server's answer is not what it was asked for: {}", server_error(&error))
    })
}

/// A number of rows.
pub(crate) fn count(row: &Row, column: usize) -> Result<u64, Failure> {
    let count: i64 = value(row, column)?;
    u64::try_from(count).map_err(|_| format!("the server says that there are {count} rows"))
}

/// The words of the errors that the extension raises again with the message of another one.
const RAISED_AGAIN: [&str; 3] = ["GRAPH_POLICY", "BOUND_EXPRESSION", "DISTRIBUTED"];

/// Whether the words of an error are the extension's own. What is raised in SQL names a function of the server, as what
/// code of the tables' owner raises does.
pub(crate) fn is_own(error: &DbError) -> bool {
    error.routine().is_some_and(|name| name.starts_with(concat!("graph_kernel", "::")))
        && !error.detail().is_some_and(|word| RAISED_AGAIN.contains(&word))
}

/// How many turns are left out of an answer, where a notice of the extension says that.
fn turns_left_out(notice: &DbError) -> Option<u64> {
    let turns = notice.message().split(' ').next()?.parse().ok()?;
    (is_own(notice) && notice.detail() == Some("TURN_LEFT_OUT")).then_some(turns)
}

/// The error of a server with its detail and hint; another error with its cause.
pub(crate) fn server_error(error: &postgres::Error) -> Failure {
    let Some(error) = error.as_db_error() else {
        let mut text = error.to_string();
        let mut cause = std::error::Error::source(error);
        while let Some(error) = cause {
            text = format!("{text}: {error}");
            cause = error.source();
        }
        return text;
    };
    // What the beginning of a transaction names.
    if [&SqlState::INVALID_SCHEMA_NAME, &SqlState::UNDEFINED_TABLE].contains(&error.code())
        && error.message().contains("\"graph_kernel")
    {
        return NO_EXTENSION.to_owned();
    }
    let mut text = error.message().to_owned();
    let hint = match error.detail() {
        Some("GRAPH_NOT_FOUND") => {
            Some("give --graph a name of SELECT name FROM graph_kernel.bindings WHERE is_current;")
        }
        _ => error.hint(),
    };
    for (name, more) in [("detail", error.detail()), ("hint", hint)] {
        if let Some(more) = more {
            text = format!("{text}; {name}: {more}");
        }
    }
    text
}
