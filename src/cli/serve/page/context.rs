//! What a model would be shown at a turn, why, and how two of these differ.

use axum::body::Bytes;
use axum::extract::State;
use postgres::types::{ToSql, Type};
use uuid::Uuid;

use super::request::{Fields, Policy};
use crate::serve::Shared;
use crate::serve::errors::{JsonText, Refusal};
use crate::serve::transaction::Transaction;

/// How many turns of an explanation the page is given.
const MAX_EXPLAINED: usize = 4000;

/// How many characters of a payload the page is given.
const MAX_PAYLOAD: usize = 20_000;

/// How many differences the page is given.
const MAX_DIFFERENCES: usize = 2000;

/// An anchor with a policy, and the words of a question whose hits are its seeds.
struct Place {
    anchor: Uuid,
    policy: Policy,
    query: Option<String>,
}

impl Place {
    fn of(fields: &mut Fields) -> Result<Self, Refusal> {
        Ok(Place {
            anchor: fields.id("anchor")?,
            policy: fields.policy("policy")?,
            query: fields.optional_text("query")?,
        })
    }

    /// The parameters of a statement: the anchor, the policy, the question.
    fn parameters(&self) -> [(&(dyn ToSql + Sync), Type); 3] {
        [(&self.anchor, Type::UUID), (&self.policy.text, Type::TEXT), (&self.query, Type::TEXT)]
    }

    /// The expression of the policy, with what the question finds as `graph_recall` takes it. `query` is NULL where no
    /// question is asked.
    fn expression(&self, policy: &str, query: &str) -> String {
        let given = self.policy.expression(policy);
        match self.query {
            None => format!("(SELECT {given} WHERE {query}::text IS NULL)"),
            Some(_) => format!(
                "(SELECT CASE WHEN s.seeds IS NULL THEN g.policy \
                 ELSE (g.policy::jsonb || jsonb_build_object('seeds', s.seeds))::{{schema}}.slice_policy END \
                 FROM (SELECT {given} AS policy) AS g, (SELECT jsonb_object_agg(f.turn_id, f.strength) AS seeds \
                 FROM {{schema}}.graph_search(NULL::real[], {query}::text, 128, '{{}}'::jsonb) AS f) AS s)"
            ),
        }
    }
}

/// The messages at a turn, the explanation of each turn that was looked at, the edges, and how the bounds are filled.
pub(super) async fn context(
    State(service): State<Shared>,
    body: Bytes,
) -> Result<JsonText, Refusal> {
    let place = Place::of(&mut Fields::of(&body)?)?;
    let query = format!(
        "WITH p AS MATERIALIZED (SELECT {} AS policy) SELECT json_build_object( \
         'policy', (SELECT policy::json FROM p), 'params_hash', {{schema}}.graph_policy_hash((SELECT policy FROM p)), \
         'messages', (SELECT coalesce(json_agg(m ORDER BY m.n), '[]') FROM (SELECT m.n, m.turn_id, m.part, \
         left(m.role, 100) AS role, m.content, left(m.payload::text, {MAX_PAYLOAD}) AS payload, m.session_id, \
         m.created_at, m.tokens, m.cumulative_tokens FROM p, {{schema}}.graph_messages($1, policy) AS m) AS m), \
         'turns', (SELECT coalesce(json_agg(e), '[]') FROM (SELECT e.* FROM p, \
         {{schema}}.graph_slice_explain($1, policy) AS e LIMIT {MAX_EXPLAINED}) AS e), \
         'edges', (SELECT coalesce(json_agg(e), '[]') FROM p, {{schema}}.graph_slice_edges($1, policy) AS e), \
         'stats', (SELECT to_json(s) FROM p, {{schema}}.graph_slice_stats($1, policy) AS s))::text",
        place.expression("$2", "$3"),
    );
    let work = move |transaction: &mut Transaction| transaction.text(&query, &place.parameters());
    Ok(JsonText(service.read(work).await?.unwrap_or_default()))
}

/// Why a turn is in the prompt, or what would bring it in.
pub(super) async fn why(State(service): State<Shared>, body: Bytes) -> Result<JsonText, Refusal> {
    let mut fields = Fields::of(&body)?;
    let (turn, place) = (fields.id("turn")?, Place::of(&mut fields)?);
    let query = format!(
        "SELECT to_json(w)::text FROM {{schema}}.graph_why($1, $4, {}) AS w",
        place.expression("$2", "$3"),
    );
    let work = move |transaction: &mut Transaction| {
        let [anchor, policy, question] = place.parameters();
        transaction.text(&query, &[anchor, policy, question, (&turn, Type::UUID)])
    };
    Ok(JsonText(service.read(work).await?.unwrap_or_default()))
}

/// What differs from the slice of one place to that of another.
pub(super) async fn diff(State(service): State<Shared>, body: Bytes) -> Result<JsonText, Refusal> {
    let mut fields = Fields::of(&body)?;
    let was = Place::of(&mut fields.object("was")?)?;
    let now = Place::of(&mut fields.object("now")?)?;
    let query = format!(
        "SELECT d.* FROM {{schema}}.graph_slice_diff({{schema}}.graph_slice($1, {}), {{schema}}.graph_slice($4, {})) \
         AS d LIMIT {MAX_DIFFERENCES}",
        was.expression("$2", "$3"),
        now.expression("$5", "$6"),
    );
    let work = move |transaction: &mut Transaction| {
        transaction.rows_as_json(&query, &[was.parameters(), now.parameters()].concat())
    };
    Ok(JsonText(service.read(work).await?))
}

/// The export of the slice or the record of the prompt, the very text that can be checked.
pub(super) async fn document(
    State(service): State<Shared>,
    body: Bytes,
) -> Result<JsonText, Refusal> {
    let mut fields = Fields::of(&body)?;
    // Each argument is given: a function of another's with fewer of them is not meant.
    let (function, rest) = match fields.text("kind")?.as_str() {
        "slice" => ("graph_slice", ""),
        "record" => ("graph_messages_record", ", NULL::text"),
        _ => return Err(Refusal::invalid("kind is neither slice nor record")),
    };
    let place = Place::of(&mut fields)?;
    let policy = place.expression("$2", "$3");
    let query = format!("SELECT {{schema}}.{function}($1, {policy}{rest})::text");
    let work = move |transaction: &mut Transaction| transaction.text(&query, &place.parameters());
    Ok(JsonText(service.read(work).await?.unwrap_or_default()))
}
