//! Sessions and their turns, as the bound tables hold them; searches over all of them.

use axum::body::Bytes;
use axum::extract::State;
use postgres::types::Type;
use serde_json::Value;

use super::request::Fields;
use crate::serve::Shared;
use crate::serve::errors::{JsonText, Refusal};
use crate::serve::transaction::Transaction;

/// How many sessions are listed, the latest.
const MAX_SESSIONS: usize = 500;

/// How many turns of a session are shown, the latest.
const MAX_TURNS: usize = 5000;

/// How many turns a search finds.
const MAX_FOUND: usize = 50;

/// How many edges of a session are shown.
const MAX_EDGES: usize = 4 * MAX_TURNS;

/// How many characters of a turn are shown in lists.
const MAX_CHARACTERS: usize = 400;

/// The columns of the turns that are read, from a graph as `describe_graph` describes it.
fn turns_of(graph: &Value) -> String {
    let turns = &graph["turns"];
    let expression = |key: &str| turns["expressions"][key].as_str().unwrap_or("NULL");
    format!(
        "SELECT {} AS id, coalesce({}, '') AS session_id, left({}, 100) AS role, {}::timestamptz AS at, \
         {}::text AS content, left({}::text, 100) AS phase FROM {} AS t",
        expression("id"),
        expression("session_id"),
        expression("role"),
        expression("created_at"),
        expression("content_text"),
        expression("phase"),
        turns["from"].as_str().unwrap_or_default(),
    )
}

/// A time in Unix seconds, null where there is none or it is infinite.
const SECONDS: &str = "CASE WHEN isfinite(t.at) THEN extract(epoch FROM t.at) END";

/// The sessions, the latest first, each with the beginning of its first text.
pub(super) async fn sessions(State(service): State<Shared>) -> Result<JsonText, Refusal> {
    let work = move |transaction: &mut Transaction| {
        let turns = turns_of(&transaction.graph()?);
        transaction.rows_as_json(
            &format!(
                "SELECT t.session_id, t.count, t.latest, {SECONDS} AS at, t.title FROM ( \
                 SELECT session_id, count(*) AS count, max(at) AS at, \
                 (array_agg(id ORDER BY at DESC NULLS LAST, id))[1] AS latest, \
                 (array_agg(left(content, 160) ORDER BY at, id) FILTER (WHERE content <> ''))[1] AS title \
                 FROM ({turns}) AS t WHERE id IS NOT NULL GROUP BY session_id) AS t \
                 ORDER BY t.at DESC NULLS LAST, t.session_id LIMIT {MAX_SESSIONS}"
            ),
            &[],
        )
    };
    Ok(JsonText(service.read(work).await?))
}

/// The turns of a session by time, and the edges that lead to them.
pub(super) async fn thread(
    State(service): State<Shared>,
    body: Bytes,
) -> Result<JsonText, Refusal> {
    let session = Fields::of(&body)?.text("session")?;
    let work = move |transaction: &mut Transaction| {
        let graph = transaction.graph()?;
        let edges = &graph["edges"];
        let expression = |key: &str| edges["expressions"][key].as_str().unwrap_or("NULL");
        let query = format!(
            "WITH t AS MATERIALIZED (SELECT * FROM ({}) AS t WHERE t.session_id = $1 AND t.id IS NOT NULL \
             ORDER BY t.at DESC NULLS LAST, t.id LIMIT {MAX_TURNS}) \
             SELECT json_build_object('turns', (SELECT coalesce(json_agg(r), '[]') FROM ( \
             SELECT t.id, t.role, {SECONDS} AS at, left(t.content, {MAX_CHARACTERS}) AS text, \
             length(t.content) AS characters, t.phase FROM t ORDER BY t.at NULLS FIRST, t.id DESC) AS r), \
             'edges', (SELECT coalesce(json_agg(r), '[]') FROM (SELECT DISTINCT {parent} AS parent, {child} AS child, \
             left({edge_type}::text, 100) AS edge_type FROM {from} AS e WHERE {child} IN (SELECT id FROM t) \
             LIMIT {MAX_EDGES}) AS r), \
             'has_more', (SELECT count(*) = {MAX_TURNS} FROM t))::text",
            turns_of(&graph),
            parent = expression("parent"),
            child = expression("child"),
            edge_type = expression("edge_type"),
            from = edges["from"].as_str().unwrap_or_default(),
        );
        transaction.text(&query, &[(&session, Type::TEXT)])
    };
    Ok(JsonText(service.read(work).await?.unwrap_or_default()))
}

/// The beginnings of turns, by their ids.
pub(super) async fn turns(State(service): State<Shared>, body: Bytes) -> Result<JsonText, Refusal> {
    let ids = Fields::of(&body)?.ids("ids")?;
    let work = move |transaction: &mut Transaction| {
        let query = format!(
            "SELECT t.id, t.session_id, t.role, {SECONDS} AS at, left(t.content, {MAX_CHARACTERS}) AS text, \
             length(t.content) AS characters, t.phase FROM ({}) AS t WHERE t.id = ANY($1)",
            turns_of(&transaction.graph()?)
        );
        transaction.rows_as_json(&query, &[(&ids, Type::UUID_ARRAY)])
    };
    Ok(JsonText(service.read(work).await?))
}

/// The turns that have the words of a question, the best first; in a graph without words those that have its text.
pub(super) async fn search(
    State(service): State<Shared>,
    body: Bytes,
) -> Result<JsonText, Refusal> {
    let words = Fields::of(&body)?.text("query")?;
    let text = words.clone();
    let by_words = move |transaction: &mut Transaction| {
        let query = format!(
            "SELECT f.turn_id AS id, f.session_id, f.role, f.created_at AS at, f.strength, \
             left(f.content, {MAX_CHARACTERS}) AS text \
             FROM {{schema}}.graph_search(NULL::real[], $1, {MAX_FOUND}, '{{}}'::jsonb) AS f ORDER BY f.rank"
        );
        transaction.rows_as_json(&query, &[(&words, Type::TEXT)])
    };
    let (by, found) = match service.read(by_words).await {
        Err(refusal) if refusal.detail.as_deref() == Some("NO_WORDS") => {
            let by_text = move |transaction: &mut Transaction| {
                let query = format!(
                    "SELECT t.id, t.session_id, t.role, {SECONDS} AS at, \
                     substr(t.content, greatest(1, strpos(lower(t.content), lower($1)) - 80), \
                     {MAX_CHARACTERS}) AS text \
                     FROM ({}) AS t WHERE strpos(lower(t.content), lower($1)) > 0 \
                     ORDER BY t.at DESC NULLS LAST, t.id LIMIT {MAX_FOUND}",
                    turns_of(&transaction.graph()?)
                );
                transaction.rows_as_json(&query, &[(&text, Type::TEXT)])
            };
            ("text", service.read(by_text).await?)
        }
        other => ("words", other?),
    };
    Ok(JsonText(format!("{{\"by\":\"{by}\",\"found\":{found}}}")))
}
