//! Documents that are checked, and policies that are registered.

use axum::body::Bytes;
use axum::extract::State;
use postgres::types::Type;

use super::request::Fields;
use crate::serve::Shared;
use crate::serve::errors::{JsonText, Refusal};
use crate::serve::keys::{Unfit, check_document};
use crate::serve::transaction::Transaction;

/// Checks a document: a slice, a record of a prompt or the provenance of a search; with `proof` and `key` also that.
/// What the tables hold of it now is said of a document that verifies.
const CHECK: &str = "\
    WITH d AS MATERIALIZED ( \
        SELECT j, CASE WHEN json_typeof(j) <> 'object' THEN 'other' WHEN (j -> 'messages') IS NOT NULL THEN 'record' \
            WHEN (j -> 'retrieval_mode') IS NOT NULL THEN 'provenance' \
            WHEN (j -> 'anchor_turn_id') IS NOT NULL THEN 'slice' ELSE 'other' END AS kind \
        FROM (SELECT $1::text::json AS j) AS given \
    ), v AS MATERIALIZED ( \
        SELECT d.j, d.kind, v.* FROM d, {schema}.graph_verify(d.j) AS v \
    ) \
    SELECT json_build_object('kind', v.kind, \
        'valid', CASE v.kind WHEN 'provenance' \
            THEN $4::text IS NULL AND {schema}.graph_is_admissible_result(v.j::jsonb) ELSE v.valid END, \
        'reason', CASE v.kind WHEN 'provenance' THEN CASE WHEN $4::text IS NOT NULL THEN 'malformed: ' || $4::text \
            WHEN NOT {schema}.graph_is_admissible_result(v.j::jsonb) THEN 'not an admissible result' END \
            ELSE v.reason END, \
        'kid', v.kid, 'role', v.role, 'rls', v.rls, \
        'checks', CASE WHEN v.kind IN ('slice', 'record') THEN ( \
            SELECT json_agg(c) FROM {schema}.graph_verify_explain(v.j) AS c) END, \
        'replay', CASE WHEN v.kind IN ('slice', 'record') THEN ( \
            SELECT json_agg(r) FROM (SELECT r.* FROM {schema}.graph_replay( \
                CASE v.kind WHEN 'record' THEN v.j -> 'slice' ELSE v.j END, NULL::{schema}.slice_policy) AS r \
                LIMIT 500) AS r) END, \
        'shown', CASE WHEN v.kind = 'record' AND v.valid THEN ( \
            SELECT json_agg(m) FROM (SELECT m.n, m.turn_id, m.part, m.role, m.state, m.content \
                FROM {schema}.graph_messages_show(v.j, NULL::text[], NULL::jsonb[]) AS m ORDER BY m.n) AS m) END, \
        'proof', CASE WHEN $2::text IS NOT NULL THEN ( \
            SELECT to_json(p) FROM {schema}.graph_verify_proof(v.j, $2::json, $3::text) AS p) END)::text \
    FROM v";

/// What a document is, whether it verifies, and whether it could be made again.
pub(super) async fn check(State(service): State<Shared>, body: Bytes) -> Result<JsonText, Refusal> {
    let mut fields = Fields::of(&body)?;
    let document = fields.text("document")?;
    let (proof, key) = (fields.optional_text("proof")?, fields.optional_text("key")?);
    let work = move |transaction: &mut Transaction| {
        // The server would take the last of equal keys, and a person reads the first.
        let refused = check_document(document.as_bytes()).err().map(Unfit::text);
        let [document, proof, key] =
            [&document as _, &proof as _, &key as _].map(|value| (value, Type::TEXT));
        transaction.text(CHECK, &[document, proof, key, (&refused, Type::TEXT)])
    };
    Ok(JsonText(service.read(work).await?.unwrap_or_default()))
}

/// Registers a policy, under a name or none.
pub(super) async fn register(
    State(service): State<Shared>,
    body: Bytes,
) -> Result<JsonText, Refusal> {
    let mut fields = Fields::of(&body)?;
    let (policy, name) = (fields.policy("policy")?, fields.optional_text("name")?);
    let query = format!(
        "SELECT to_json(r)::text FROM {{schema}}.graph_policy_register({}, $2) AS r",
        policy.expression("$1")
    );
    let work = move |transaction: &mut Transaction| {
        transaction.text(&query, &[(&policy.text, Type::TEXT), (&name, Type::TEXT)])
    };
    Ok(JsonText(service.write(work).await?.unwrap_or_default()))
}
