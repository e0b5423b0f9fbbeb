//! The commands that ask a database: a slice, a prompt, the sessions of a graph.

use std::io::{IsTerminal, Write, stdout};

use postgres::Row;
use postgres::types::Type;
use uuid::Uuid;

use crate::arguments::{QueryArguments, SessionsArguments};
use crate::database::{connect, in_words};
use crate::output::{escaped, escaped_json, line};
use crate::{Failure, Outcome};

/// Prints the JSON of `graph_slice`.
pub(crate) fn slice(out: &mut impl Write, arguments: &QueryArguments) -> Result<Outcome, Failure> {
    let rows = query(arguments, |call| format!("SELECT {call}::text"), "graph_slice")?;
    for row in &rows {
        let text: &str = row.get(0);
        // Elsewhere than on a terminal it is kept, to the byte.
        let text = if stdout().is_terminal() { escaped_json(text) } else { text.to_owned() };
        line!(out, "{text}");
    }
    Ok(Outcome::Success)
}

/// Prints the turns of `graph_prompt` that have a text, each under its role.
pub(crate) fn prompt(out: &mut impl Write, arguments: &QueryArguments) -> Result<Outcome, Failure> {
    let rows = query(
        arguments,
        |call| format!("SELECT p.role, p.content FROM {call} AS p ORDER BY p.n"),
        "graph_prompt",
    )?;
    let texts = rows.iter().filter_map(|row| {
        let text: Option<&str> = row.get(1);
        Some((row.get(0), text.filter(|text| !text.is_empty())?))
    });
    for (n, (role, text)) in texts.enumerate() {
        if n > 0 {
            line!(out, "");
        }
        line!(out, "{}:", escaped(role));
        for text in text.lines() {
            line!(out, "{}", escaped(text));
        }
    }
    Ok(Outcome::Success)
}

fn query(
    arguments: &QueryArguments,
    statement: impl Fn(String) -> String,
    function: &str,
) -> Result<Vec<Row>, Failure> {
    let anchor: Uuid = arguments.anchor.parse().map_err(|_| {
        format!(
            "{} is no turn id, which is a uuid: `graph-kernel sessions` lists the latest of each session, and in \
             SQL graph_turn_id('…') gives that of an id of another kind",
            arguments.anchor
        )
    })?;
    let mut database = connect(&arguments.connection)?;
    database.begin("").map_err(|error| in_words(&error))?;
    let schema = database.schema()?;
    let rows = match &arguments.policy {
        None => database
            .last_query(&statement(format!("{schema}.{function}($1)")), &[(&anchor, Type::UUID)]),
        Some(policy) => {
            let call = format!("{schema}.{function}($1, $2::text::{schema}.slice_policy)");
            database.last_query(&statement(call), &[(&anchor, Type::UUID), (policy, Type::TEXT)])
        }
    };
    rows.map_err(|error| in_words(&error))
}

/// Lists the sessions, the latest first: the time of its latest turn, the number of its turns, its latest turn. Of one
/// session, the ends of its branches: turns that no other follows, with their times and the beginning of their texts.
pub(crate) fn sessions(
    out: &mut impl Write,
    arguments: &SessionsArguments,
) -> Result<Outcome, Failure> {
    let mut database = connect(&arguments.connection)?;
    database.begin("").map_err(|error| in_words(&error))?;
    database.schema()?;
    let (_, graph) = database.graph()?;
    let part = |part: &str, key: &str| graph[part][key].as_str().unwrap_or_default().to_owned();
    let expression = |part: &str, key: &str| {
        graph[part]["expressions"][key].as_str().unwrap_or("NULL").to_owned()
    };
    let time = "coalesce(CASE WHEN isfinite(at) THEN to_char(at AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"') \
                ELSE at::text END, '-')";
    let turns = format!(
        "SELECT {} AS id, {} AS session, {}::timestamptz AS at, {} AS content FROM {} AS t",
        expression("turns", "id"),
        expression("turns", "session_id"),
        expression("turns", "created_at"),
        expression("turns", "content_text"),
        part("turns", "from"),
    );
    let Some(session) = &arguments.session else {
        let statement = format!(
            "SELECT {time}, count, id::text, session FROM ( \
             SELECT session, count(*), (array_agg(id ORDER BY at DESC NULLS LAST, id DESC))[1] AS id, max(at) AS at \
             FROM ({turns}) AS t WHERE id IS NOT NULL GROUP BY session) AS s ORDER BY at DESC NULLS LAST, session"
        );
        for row in database.last_query(&statement, &[]).map_err(|error| in_words(&error))? {
            let session = row.get::<_, Option<&str>>(3).unwrap_or("-");
            let (time, turns, latest): (&str, i64, &str) = (row.get(0), row.get(1), row.get(2));
            line!(out, "{time:<20}  {turns:>8}  {latest}  {}", escaped(session));
        }
        return Ok(Outcome::Success);
    };
    let statement = format!(
        "SELECT {time}, id::text, left(content, 60) FROM ({turns}) AS t WHERE session = $1 AND id IS NOT NULL \
         AND NOT EXISTS (SELECT FROM {} AS e WHERE {} = t.id) ORDER BY at DESC NULLS LAST, id",
        part("edges", "from"),
        expression("edges", "parent"),
    );
    let ends = database.last_query(&statement, &[(session, Type::TEXT)]);
    for row in ends.map_err(|error| in_words(&error))? {
        let (time, turn): (&str, &str) = (row.get(0), row.get(1));
        let text = row.get::<_, Option<&str>>(2).unwrap_or_default().replace('\n', " ");
        line!(out, "{time:<20}  {turn}  {}", escaped(&text).trim_end());
    }
    Ok(Outcome::Success)
}
