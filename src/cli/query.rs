//! The commands that ask a database: a slice, a prompt, the sessions of a graph.

use std::io::Write;

use chrono::{DateTime, SecondsFormat, Utc};
use postgres::Row;
use serde_json::Value;
use uuid::Uuid;

use crate::arguments::{DatabaseArguments, QueryArguments};
use crate::database::{Database, connect, in_words};
use crate::output::{escaped, line};
use crate::{Failure, Outcome};

/// Prints the JSON of `graph_slice`.
pub(crate) fn slice(out: &mut impl Write, arguments: &QueryArguments) -> Result<Outcome, Failure> {
    let rows = query(arguments, |call| format!("SELECT {call}::text"), "graph_slice")?;
    for row in &rows {
        line!(out, "{}", row.get::<_, &str>(0));
    }
    Ok(Outcome::Success)
}

/// Prints the turns of `graph_prompt`, each under its role.
pub(crate) fn prompt(out: &mut impl Write, arguments: &QueryArguments) -> Result<Outcome, Failure> {
    let rows = query(
        arguments,
        |call| format!("SELECT p.role, p.content FROM {call} AS p ORDER BY p.n"),
        "graph_prompt",
    )?;
    for (n, row) in rows.iter().enumerate() {
        if n > 0 {
            line!(out, "");
        }
        line!(out, "{}:", escaped(row.get(0)));
        for text in row.get::<_, Option<&str>>(1).unwrap_or_default().lines() {
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
        format!("{} is no turn id; graph_turn_id of SQL makes one of another id", arguments.anchor)
    })?;
    let Database { mut client, schema } =
        connect(arguments.connection.database.as_deref(), arguments.connection.graph.as_deref())?;
    let rows = match &arguments.policy {
        None => client.query(&statement(format!("{schema}.{function}($1)")), &[&anchor]),
        Some(policy) => {
            let call = format!("{schema}.{function}($1, $2::text::{schema}.slice_policy)");
            client.query(&statement(call), &[&anchor, policy])
        }
    };
    rows.map_err(|error| in_words(&error))
}

/// Lists the sessions, the latest first: its turns, its latest turn, and when that was created.
pub(crate) fn sessions(
    out: &mut impl Write,
    arguments: &DatabaseArguments,
) -> Result<Outcome, Failure> {
    let Database { mut client, .. } =
        connect(arguments.database.as_deref(), arguments.graph.as_deref())?;
    let described = client
        .query_one(
            "SELECT graph_kernel.describe_graph(coalesce(nullif(current_setting('graph_kernel.graph', true), ''), 'default'))",
            &[],
        )
        .map_err(|error| in_words(&error))?;
    let graph: Value = described.get(0);
    let turns = &graph["turns"];
    let expression = |key: &str| turns["expressions"][key].as_str().unwrap_or("NULL").to_owned();
    let statement = format!(
        "SELECT session, count(*), (array_agg(id ORDER BY at DESC NULLS LAST, id DESC))[1], max(at) \
         FROM (SELECT {} AS session, {} AS id, {}::timestamptz AS at FROM {} AS t) AS t \
         GROUP BY session ORDER BY max(at) DESC NULLS LAST, session",
        expression("session_id"),
        expression("id"),
        expression("created_at"),
        turns["from"].as_str().unwrap_or_default(),
    );
    for row in client.query(&statement, &[]).map_err(|error| in_words(&error))? {
        let latest: Option<DateTime<Utc>> = row.get(3);
        let latest =
            latest.map_or("-".to_owned(), |at| at.to_rfc3339_opts(SecondsFormat::Secs, true));
        let session = row.get::<_, Option<&str>>(0).unwrap_or("-");
        line!(
            out,
            "{latest:<20}  {:>8}  {}  {}",
            row.get::<_, i64>(1),
            row.get::<_, Uuid>(2),
            escaped(session)
        );
    }
    Ok(Outcome::Success)
}
