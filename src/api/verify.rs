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

#[pg_extern(stable, parallel_safe)]
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

#[pg_extern(stable, parallel_safe)]
fn graph_verify_explain(
    document: Option<JsonArg>,
) -> TableIterator<'static, (name!(check_name, &'static str), name!(ok, bool), name!(detail, Text))>
{
    let outcomes = verify::verdict(text(document)).or_raise().checks;
    TableIterator::new(outcomes.into_iter().map(|o| (o.check.name(), o.ok, Text(o.detail))))
}

#[pg_extern(stable, parallel_safe)]
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

#[pg_extern(stable, parallel_safe)]
fn graph_is_admissible(slice: Option<JsonArg>, turn: Option<Uuid>) -> bool {
    let turns = turn.map(from_sql_uuid).into_iter().collect();
    !verify::admissible_turns(text(slice), turns).or_raise().is_empty()
}

#[pg_extern(stable, parallel_safe)]
fn graph_filter_admissible(slice: Option<JsonArg>, turns: Option<Array<Uuid>>) -> Vec<Uuid> {
    let turns = turns.map(|turns| present_ids(&turns).or_raise()).unwrap_or_default();
    let admissible = verify::admissible_turns(text(slice), turns).or_raise();
    admissible.into_iter().map(to_sql_uuid).collect()
}

#[pg_extern(stable, parallel_safe)]
fn graph_proof(document: JsonArg) -> JsonText {
    JsonText(verify::proof(&document).or_raise())
}

// Needs no key and no table of this database.
#[pg_extern(immutable, parallel_safe)]
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

#[pg_extern(stable, parallel_restricted)]
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
