use kernel::explain::diff::Difference;
use kernel::graph::edge::Edge;
use kernel::trust::attestation::TokenFields;
use kernel::verification::proof::ProofRefusal;
use pgrx::Uuid;
use pgrx::prelude::*;

use crate::pg::error::OrRaise;
use crate::pg::sql::types::{JsonText, Policy, Text, from_sql_uuid, present_ids, to_sql_uuid};
use crate::pg::text::{JsonArg, TextArg, text};
use crate::service::verify::{self, Drift, Replayed, Unreplayable};

#[pg_extern(stable, parallel_safe, cost = 2000)]
#[search_path(pg_catalog, pg_temp)]
#[allow(clippy::type_complexity)] // the columns are the SQL signature
fn graph_verify(
    document: Option<JsonArg>,
) -> TableIterator<
    'static,
    (
        name!(valid, bool),
        name!(reason, &'static str),
        name!(kid, Option<Text>),
        name!(role, Option<Text>),
        name!(rls, Option<bool>),
    ),
> {
    let verdict = verify::verdict(text(document)).or_raise();
    let reason = verdict.reason();
    let claimed = verdict.attestation();
    TableIterator::once((
        reason == "ok",
        reason,
        claimed.map(|attestation| Text(attestation.kid.clone())),
        claimed.map(|attestation| Text(attestation.role.clone())),
        claimed.map(|attestation| attestation.rls),
    ))
}

#[pg_extern(stable, parallel_safe, cost = 2000)]
#[search_path(pg_catalog, pg_temp)]
fn graph_verify_explain(
    document: Option<JsonArg>,
) -> TableIterator<'static, (name!(check_name, &'static str), name!(ok, bool), name!(detail, Text))>
{
    let outcomes = verify::verdict(text(document)).or_raise().checks;
    TableIterator::new(outcomes.into_iter().map(|o| (o.check.name(), o.ok, Text(o.detail))))
}

#[pg_extern(stable, parallel_safe, cost = 100)]
#[search_path(pg_catalog, pg_temp)]
#[allow(clippy::too_many_arguments)] // the arguments are the published token's fields
fn graph_verify_token(
    admissibility_token: Option<TextArg>,
    slice_id: Option<TextArg>,
    anchor_turn_id: Option<Uuid>,
    policy_id: Option<TextArg>,
    policy_params_hash: Option<TextArg>,
    graph_snapshot_hash: Option<TextArg>,
    schema_version: Option<TextArg>,
) -> bool {
    let fields = || {
        Some(TokenFields {
            slice_id: slice_id?.0,
            anchor: from_sql_uuid(anchor_turn_id?),
            policy_id: policy_id?.0,
            params_hash: policy_params_hash?.0,
            graph_snapshot_hash: graph_snapshot_hash?.0,
            schema_version: schema_version?.0,
        })
    };
    let (Some(token), Some(fields)) = (admissibility_token, fields()) else { return false };
    verify::verify_token(&token, &fields).or_raise()
}

#[pg_extern(stable, parallel_safe, cost = 2000)]
#[search_path(pg_catalog, pg_temp)]
fn graph_is_admissible(slice: Option<JsonArg>, turn: Option<Uuid>) -> bool {
    let turns = turn.map(from_sql_uuid).into_iter().collect();
    !verify::admissible_turns(text(slice), turns).or_raise().is_empty()
}

#[pg_extern(stable, parallel_safe, cost = 2000)]
#[search_path(pg_catalog, pg_temp)]
fn graph_filter_admissible(slice: Option<JsonArg>, turns: Option<Array<Uuid>>) -> Vec<Uuid> {
    let turns = turns.map(|turns| present_ids(&turns).or_raise()).unwrap_or_default();
    let admissible = verify::admissible_turns(text(slice), turns).or_raise();
    admissible.into_iter().map(to_sql_uuid).collect()
}

#[pg_extern(stable, parallel_safe, cost = 3000)]
#[search_path(pg_catalog, pg_temp)]
fn graph_proof(document: JsonArg) -> JsonText {
    JsonText(verify::proof(&document).or_raise())
}

// Needs no key and no table of this database.
#[pg_extern(immutable, parallel_safe, cost = 3000)]
#[search_path(pg_catalog, pg_temp)]
fn graph_verify_proof(
    document: Option<JsonArg>,
    proof: Option<JsonArg>,
    public_key: Option<TextArg>,
) -> TableIterator<'static, (name!(valid, bool), name!(reason, &'static str))> {
    let key = public_key.map_or("", |key| key.0);
    let checked = verify::check_proof(text(document), text(proof), key);
    let reason = checked.err().map_or("ok", ProofRefusal::name);
    TableIterator::once((reason == "ok", reason))
}

type SliceReplayRow = (&'static str, Option<Text>, Option<Text>, Option<Text>);

#[pg_extern(stable, parallel_restricted, cost = 20000)]
#[search_path(pg_catalog, pg_temp)]
#[allow(clippy::type_complexity)] // the columns are the SQL signature
fn graph_replay(
    slice: Option<JsonArg>,
    policy: default!(Option<Policy>, "NULL"),
) -> TableIterator<
    'static,
    (
        name!(status, &'static str),
        name!(field, Option<Text>),
        name!(was, Option<Text>),
        name!(now, Option<Text>),
    ),
> {
    let replayed = verify::replay(text(slice), policy.map(|policy| policy.0)).or_raise();
    TableIterator::new(match replayed {
        Ok(Replayed { drifts, without_content_hash }) if drifts.is_empty() => {
            let unseen = match without_content_hash {
                0 => None,
                1 => Some("1 turn without a content hash".to_owned()),
                count => Some(format!("{count} turns without a content hash")),
            };
            vec![("identical", unseen.map(Text), None, None)]
        }
        Ok(Replayed { drifts, .. }) => drifts.into_iter().map(drift_row).collect(),
        Err(Unreplayable { reason, about }) => {
            vec![("unreplayable", Some(Text(reason.to_owned())), about.map(Text), None)]
        }
    })
}

fn drift_row(drift: Drift) -> SliceReplayRow {
    let edge = |e: Edge| Some(format!("{} -> {} {}", e.parent, e.child, e.edge_type.name()));
    let (field, was, now) = match drift {
        Drift::Fingerprint(key, was, now) => (key.to_owned(), Some(was), Some(now)),
        Drift::Content(Difference::TurnGone(id)) => {
            ("turns".to_owned(), Some(id.to_string()), None)
        }
        Drift::Content(Difference::TurnNew(id)) => ("turns".to_owned(), None, Some(id.to_string())),
        Drift::Content(Difference::TurnField { id, field, was, now }) => {
            (format!("turns.{id}.{field}"), Some(was), Some(now))
        }
        Drift::Content(Difference::EdgeGone(e)) => ("edges".to_owned(), edge(e), None),
        Drift::Content(Difference::EdgeNew(e)) => ("edges".to_owned(), None, edge(e)),
    };
    ("drifted", Some(Text(field)), was.map(Text), now.map(Text))
}

extension_sql!(
    r"
ALTER FUNCTION graph_verify(json) ROWS 1;
COMMENT ON FUNCTION graph_verify(json) IS
    'whether an export is the kernel''s and unchanged; else the reason';
ALTER FUNCTION graph_verify_explain(json) ROWS 15;
COMMENT ON FUNCTION graph_verify_explain(json) IS 'every check of an export, for people';
COMMENT ON FUNCTION graph_verify_token(text, text, uuid, text, text, text, text) IS
    'whether an admissibility token is the kernel''s for these fields';
COMMENT ON FUNCTION graph_is_admissible(json, uuid) IS
    'whether a turn is in a slice that verifies';
COMMENT ON FUNCTION graph_filter_admissible(json, uuid[]) IS
    'the turns that are in a slice that verifies, in the order given';
COMMENT ON FUNCTION graph_proof(json) IS
    'a signed statement about a slice that verifies, which anyone can check with a public key';
ALTER FUNCTION graph_verify_proof(json, json, text) ROWS 1;
COMMENT ON FUNCTION graph_verify_proof(json, json, text) IS
    'whether a proof is that of a slice under a public key; else the reason';
ALTER FUNCTION graph_replay(json, slice_policy) ROWS 10;
COMMENT ON FUNCTION graph_replay(json, slice_policy) IS
    'takes a slice again and says what differs';
",
    name = "verify_comments",
    requires = [
        graph_verify,
        graph_verify_explain,
        graph_verify_token,
        graph_is_admissible,
        graph_filter_admissible,
        graph_proof,
        graph_verify_proof,
        graph_replay
    ]
);
