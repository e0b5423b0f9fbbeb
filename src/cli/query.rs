//! The commands that ask a database: a slice, a prompt, the sessions of a graph.

use std::io::{IsTerminal, Write, stdout};

use postgres::Row;
use postgres::types::{ToSql, Type};
use uuid::Uuid;

use crate::arguments::{QueryArguments, SessionsArguments};
use crate::database::{Parameters, READ_COMMITTED, connect, server_error, value};
use crate::output::{escaped_json, line, message};
use crate::{Failure, Outcome};

/// How many sessions are named whose ids in their applications are the one that was given.
const MAX_LIKE: i32 = 5;

/// How many characters a name has at most: the library gives the hash of one that has more bytes.
const MAX_NAME: usize = 4096;

/// How many sessions, or ends of one, are listed.
const MAX_LISTED: i32 = 100_000;

/// Prints the JSON of `graph_slice`.
pub(crate) fn slice(out: &mut impl Write, arguments: &QueryArguments) -> Result<Outcome, Failure> {
    let rows = query(arguments, |call| format!("SELECT {call}::text"), ("graph_slice", "default"))?;
    for row in &rows {
        let text: &str = value(row, 0)?;
        if stdout().is_terminal() {
            line!(out, "{}", escaped_json(text));
        } else {
            // It is kept, to the byte.
            writeln!(out, "{text}").map_err(|error| error.to_string())?;
        }
    }
    Ok(Outcome::Success)
}

/// Prints the turns of `graph_messages` that have a text, each under its role and indented, so that no line of a text
/// reads like another's role.
pub(crate) fn prompt(out: &mut impl Write, arguments: &QueryArguments) -> Result<Outcome, Failure> {
    let rows = query(
        arguments,
        |call| format!("SELECT p.role, p.content FROM {call} AS p ORDER BY p.n"),
        ("graph_messages", "chat"),
    )?;
    let mut is_first = true;
    for row in &rows {
        let (role, text): (&str, Option<&str>) = (value(row, 0)?, value(row, 1)?);
        let Some(text) = text.filter(|text| !text.is_empty()) else { continue };
        if !std::mem::take(&mut is_first) {
            line!(out, "");
        }
        line!(out, "{role}:");
        for text in text.lines() {
            line!(out, "  {text}");
        }
    }
    Ok(Outcome::Success)
}

fn query(
    arguments: &QueryArguments,
    statement: impl Fn(String) -> String,
    (function, preset): (&str, &str),
) -> Result<Vec<Row>, Failure> {
    let anchor: Uuid = arguments.anchor.parse().map_err(|_| {
        format!(
            "{} is not a turn id, which is a uuid: `graph-kernel sessions` lists the latest of each session, and in \
             SQL graph_turn_id('…') gives that of an id of another kind",
            arguments.anchor
        )
    })?;
    let mut database = connect(&arguments.connection)?;
    database.begin(READ_COMMITTED, "").map_err(|error| server_error(&error))?;
    let schema = database.schema().map_err(|fault| fault.text)?;
    // A name may be that of a registered policy, which is not one of the type's own texts. No argument is left out: a
    // function of another with fewer could have the name.
    let policy = arguments.policy.as_deref().unwrap_or(preset);
    let given = match policy.trim_start().starts_with('{') {
        true => format!("$2::text::{schema}.slice_policy"),
        false => format!("{schema}.graph_policy($2::text)"),
    };
    let call = format!("{schema}.{function}($1, {given})");
    database.last_query(&statement(call), &[(&anchor, Type::UUID), (&policy, Type::TEXT)])
}

/// A time as a text.
const TIME: &str = "coalesce(CASE WHEN isfinite(at) THEN to_char(at AT TIME ZONE 'UTC', \
                    'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"') ELSE at::text END, '-')";

/// Of $1 sessions after $2 others the time of the latest turn, the number of turns, the latest turn, so many characters
/// of the name, and $3 characters of the latest turn's text; the latest comes first. The library reads the tables: who
/// owns a schema could give its name to another, and with it the names of the tables.
pub(crate) fn sessions_listed(name_chars: usize) -> String {
    format!(
        "SELECT {TIME}, turns, latest_turn_id::text, left(session_id, {name_chars}), latest_text \
         FROM (SELECT *, latest_at AS at FROM graph_kernel.list_sessions($1, $2, $3, NULL::text)) AS s"
    )
}

/// Of the session $1 the turns that no other of it follows, $2 after $3 others: time, id, $4 characters of the text.
pub(crate) fn ends_listed() -> String {
    format!(
        "SELECT {TIME}, turn_id::text, content FROM (SELECT *, created_at AS at \
         FROM graph_kernel.list_turns($1, NULL::uuid[], NULL::text, true, $2, $3, $4)) AS t"
    )
}

/// A row where the session $1 has a turn.
pub(crate) const SESSION_IS_THERE: &str = "SELECT turn_id::text \
     FROM graph_kernel.list_turns($1, NULL::uuid[], NULL::text, false, 1, 0, 0)";

/// The names of a few sessions whose ids in their applications are $1.
pub(crate) fn sessions_like() -> String {
    format!("SELECT session_id FROM graph_kernel.list_sessions({MAX_LIKE}, 0, 0, ':' || $1)")
}

/// Lists the sessions, the latest first: the time of its latest turn, the number of its turns, its latest turn, which
/// is that of `graph_anchor`. Of one session, the ends of its branches: turns that no other of it follows, with their
/// times and the beginning of their texts.
pub(crate) fn sessions(
    out: &mut impl Write,
    arguments: &SessionsArguments,
) -> Result<Outcome, Failure> {
    let mut database = connect(&arguments.connection)?;
    database.begin(READ_COMMITTED, "").map_err(|error| server_error(&error))?;
    database.schema().map_err(|fault| fault.text)?;
    let limit = (&MAX_LISTED as &(dyn ToSql + Sync), Type::INT4);
    let number = |number: &'static i32| (number as &(dyn ToSql + Sync), Type::INT4);
    let is_cut = |rows: &[Row]| i32::try_from(rows.len()).is_ok_and(|rows| rows >= MAX_LISTED);
    let Some(session) = &arguments.session else {
        let rows =
            database.last_query(&sessions_listed(MAX_NAME), &[limit, number(&0), number(&0)])?;
        for row in &rows {
            let (time, turns, latest): (&str, i64, &str) =
                (value(row, 0)?, value(row, 1)?, value(row, 2)?);
            let session = Some(value::<&str>(row, 3)?).filter(|name| !name.is_empty());
            line!(out, "{time:<20}  {turns:>8}  {latest}  {}", session.unwrap_or("-"));
        }
        tell_of_more(is_cut(&rows));
        return Ok(Outcome::Success);
    };
    let parameters: Parameters = &[(session, Type::TEXT)];
    let with_limits: Parameters = &[(session, Type::TEXT), limit, number(&0), number(&60)];
    let ends = database.query(&ends_listed(), with_limits)?;
    if ends.is_empty() {
        // A circle has no end.
        let found = database.query(SESSION_IS_THERE, parameters)?;
        if found.is_empty() {
            let rows = database.query(&sessions_like(), parameters)?;
            let like: Vec<&str> =
                rows.iter().map(|row| value(row, 0)).collect::<Result<_, Failure>>()?;
            let mut why = format!("there is no session {session}");
            if !like.is_empty() {
                why = format!("{why}, but {}", like.join(", "));
            }
            let text = message(&why);
            _ = writeln!(anstream::stderr(), "{text}");
            return Ok(Outcome::Negative);
        }
    }
    database.roll_back().map_err(|error| server_error(&error))?;
    for row in &ends {
        let (time, turn): (&str, &str) = (value(row, 0)?, value(row, 1)?);
        let text = value::<Option<&str>>(row, 2)?.unwrap_or_default().replace('\n', " ");
        line!(out, "{time:<20}  {turn}  {}", text.trim_end());
    }
    tell_of_more(is_cut(&ends));
    Ok(Outcome::Success)
}

/// Says that a list has an end where there may be more.
fn tell_of_more(is_cut: bool) {
    if is_cut {
        let text = message(&format!("there may be more than these {MAX_LISTED}"));
        _ = writeln!(anstream::stderr(), "{text}");
    }
}
