//! The commands that ask a database: a slice, a prompt, the sessions of a graph.

use std::io::{IsTerminal, Write, stdout};

use postgres::Row;
use postgres::types::Type;
use serde_json::Value;
use uuid::Uuid;

use crate::arguments::{QueryArguments, SessionsArguments};
use crate::database::{Parameters, connect, server_error, value};
use crate::output::{escaped_json, line, message};
use crate::{Failure, Outcome};

/// How many sessions are named whose ids in their applications are the one that was given.
const MAX_LIKE: usize = 5;

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

/// Prints the turns of `graph_messages` that have a text, each under its role.
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
            line!(out, "{text}");
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
    database.begin("").map_err(|error| server_error(&error))?;
    let schema = database.schema()?;
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

/// Statements about the sessions of a graph.
pub(crate) struct SessionStatements {
    /// Every turn: id, session, time, text.
    turns: String,
    /// The edges and the parent of each.
    edges: String,
    parent: String,
}

/// The time of a row as a text.
const TIME: &str = "coalesce(CASE WHEN isfinite(at) THEN to_char(at AT TIME ZONE 'UTC', \
                    'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"') ELSE at::text END, '-')";

impl SessionStatements {
    /// `graph` is what `graph_kernel.describe_graph` says.
    pub(crate) fn new(graph: &Value) -> Self {
        let from = |part: &str| graph[part]["from"].as_str().unwrap_or_default().to_owned();
        let expression = |part: &str, key: &str| {
            graph[part]["expressions"][key].as_str().unwrap_or("NULL").to_owned()
        };
        let turns = format!(
            "SELECT {} AS id, {} AS session, {}::timestamptz AS at, {} AS content FROM {} AS t",
            expression("turns", "id"),
            expression("turns", "session_id"),
            expression("turns", "created_at"),
            expression("turns", "content_text"),
            from("turns"),
        );
        SessionStatements { turns, edges: from("edges"), parent: expression("edges", "parent") }
    }

    /// Of each session the time of its latest turn, the number of its turns, its latest turn and its name; the latest
    /// comes first.
    pub(crate) fn list(&self) -> String {
        format!(
            "SELECT {TIME}, count, id::text, session FROM {} ORDER BY at DESC NULLS LAST, session",
            self.grouped()
        )
    }

    /// The same with the beginning of the latest turn's text, of a graph with many turns for some of the sessions.
    pub(crate) fn list_with_beginnings(&self) -> String {
        format!(
            "SELECT {TIME}, count, id::text, session, \
             (SELECT left(t.content, 200) FROM ({}) AS t WHERE t.id = s.id LIMIT 1) \
             FROM {} ORDER BY at DESC NULLS LAST, session",
            self.turns,
            self.grouped()
        )
    }

    fn grouped(&self) -> String {
        format!(
            "(SELECT session, count(*), (array_agg(id ORDER BY at DESC NULLS LAST, id))[1] AS id, max(at) AS at \
             FROM ({}) AS t WHERE id IS NOT NULL GROUP BY session) AS s",
            self.turns
        )
    }

    /// Of the session $1 the turns that no other follows: time, id, beginning of the text.
    pub(crate) fn ends(&self) -> String {
        format!(
            "SELECT {TIME}, id::text, left(content, 60) FROM ({}) AS t WHERE session = $1 AND id IS NOT NULL \
             AND NOT EXISTS (SELECT FROM {} AS e WHERE {} = t.id) ORDER BY at DESC NULLS LAST, id",
            self.turns, self.edges, self.parent
        )
    }

    /// 1 where the session $1 has a turn, else 0.
    pub(crate) fn is_there(&self) -> String {
        format!(
            "SELECT count(*) FROM (SELECT FROM ({}) AS t WHERE session = $1 AND id IS NOT NULL LIMIT 1) AS t",
            self.turns
        )
    }

    /// The names of a few sessions whose ids in their applications are $1.
    pub(crate) fn like(&self) -> String {
        format!(
            "SELECT DISTINCT session FROM ({}) AS t \
             WHERE id IS NOT NULL AND right(session, length($1) + 1) = ':' || $1 ORDER BY 1 LIMIT {MAX_LIKE}",
            self.turns
        )
    }
}

/// Lists the sessions, the latest first: the time of its latest turn, the number of its turns, its latest turn, which
/// is that of `graph_anchor`. Of one session, the ends of its branches: turns that no other follows, with their times
/// and the beginning of their texts.
pub(crate) fn sessions(
    out: &mut impl Write,
    arguments: &SessionsArguments,
) -> Result<Outcome, Failure> {
    let mut database = connect(&arguments.connection)?;
    database.begin("").map_err(|error| server_error(&error))?;
    database.schema()?;
    let (_, graph) = database.graph().map_err(|fault| fault.text)?;
    let statements = SessionStatements::new(&graph);
    let Some(session) = &arguments.session else {
        for row in database.last_query(&statements.list(), &[])? {
            let session = value::<Option<&str>>(&row, 3)?.unwrap_or("-");
            let (time, turns, latest): (&str, i64, &str) =
                (value(&row, 0)?, value(&row, 1)?, value(&row, 2)?);
            line!(out, "{time:<20}  {turns:>8}  {latest}  {session}");
        }
        return Ok(Outcome::Success);
    };
    let parameters: Parameters = &[(session, Type::TEXT)];
    let ends = database.query(&statements.ends(), parameters)?;
    if ends.is_empty() {
        // A circle has no end.
        let found = database
            .query_one(&statements.is_there(), parameters)
            .map_err(|error| server_error(&error))?;
        if value::<i64>(&found, 0)? == 0 {
            let rows = database.query(&statements.like(), parameters)?;
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
    Ok(Outcome::Success)
}
