//! Sessions and their turns, and searches over all of them. The library reads the tables.

use axum::body::Bytes;
use axum::extract::State;
use postgres::types::Type;

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

/// The columns of turns that `list_turns` gives, as the page takes them: the time in Unix seconds, null where there is
/// none or it is infinite.
const TURN: &str = "t.turn_id AS id, t.session_id, t.role, CASE WHEN isfinite(t.created_at) \
                    THEN extract(epoch FROM t.created_at) END AS at, t.content AS text, t.phase";

/// The sessions, the latest first, each with the beginning of its first text.
pub(super) async fn sessions(State(service): State<Shared>) -> Result<JsonText, Refusal> {
    let work = move |transaction: &mut Transaction| {
        transaction.rows_as_json(
            &format!(
                "SELECT s.session_id, s.turns AS count, s.latest_turn_id AS latest, CASE WHEN isfinite(s.latest_at) \
                 THEN extract(epoch FROM s.latest_at) END AS at, s.title \
                 FROM graph_kernel.list_sessions({MAX_SESSIONS}, 0, 160, NULL::text) AS s"
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
        let query = format!(
            "WITH t AS MATERIALIZED (SELECT * FROM graph_kernel.list_turns( \
             $1, NULL::uuid[], NULL::text, false, {MAX_TURNS}, 0, {MAX_CHARACTERS})) \
             SELECT json_build_object('turns', (SELECT coalesce(json_agg(r), '[]') FROM ( \
             SELECT {TURN} FROM t ORDER BY t.created_at NULLS FIRST, t.turn_id DESC) AS r), \
             'edges', (SELECT coalesce(json_agg(r), '[]') FROM ( \
             SELECT e.parent_turn_id AS parent, e.child_turn_id AS child, e.edge_type \
             FROM graph_kernel.list_edges(ARRAY(SELECT turn_id FROM t), {MAX_EDGES}) AS e) AS r), \
             'has_more', (SELECT count(*) = {MAX_TURNS} FROM t))::text"
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
            "SELECT {TURN} FROM graph_kernel.list_turns( \
             NULL::text, $1, NULL::text, false, {MAX_TURNS}, 0, {MAX_CHARACTERS}) AS t"
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
        Err(refusal) if refusal.lacks_words() => {
            let by_text = move |transaction: &mut Transaction| {
                let query = format!(
                    "SELECT {TURN} FROM graph_kernel.list_turns( \
                     NULL::text, NULL::uuid[], $1, false, {MAX_FOUND}, 0, {MAX_CHARACTERS}) AS t"
                );
                transaction.rows_as_json(&query, &[(&text, Type::TEXT)])
            };
            ("text", service.read(by_text).await?)
        }
        other => ("words", other?),
    };
    Ok(JsonText(format!("{{\"by\":\"{by}\",\"found\":{found}}}")))
}
