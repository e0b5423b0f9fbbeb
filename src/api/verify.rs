use kernel::export::parse::ParsedExport;
use kernel::graph::edge::Edge;
use kernel::insight::diff::{Difference, differences};
use kernel::policy::SlicePolicy;
use kernel::trust::attestation::TokenFields;
use kernel::trust::verify::{KeyRing, Verdict, has_known_versions, verify};
use pgrx::Uuid;
use pgrx::prelude::*;

use super::slice::TakenSlice;
use crate::pg::error::OrRaise;
use crate::pg::graph::Graph;
use crate::pg::keys::Keys;
use crate::pg::session::check_interrupts;
use crate::pg::text_type::{JsonArg, Policy, from_sql_uuid, present_ids, to_sql_uuid};

#[pg_extern(stable, parallel_safe)]
#[allow(clippy::type_complexity)] // the columns are the SQL signature
fn graph_verify(
    slice: Option<JsonArg>,
) -> TableIterator<
    'static,
    (
        name!(valid, bool),
        name!(reason, &'static str),
        name!(kid, Option<String>),
        name!(role, Option<String>),
        name!(rls, Option<bool>),
    ),
> {
    let verdict = verdict(slice);
    let reason = verdict.reason();
    let claimed = verdict.attestation();
    TableIterator::once((
        reason == "ok",
        reason,
        claimed.map(|attestation| attestation.kid.clone()),
        claimed.map(|attestation| attestation.role.clone()),
        claimed.map(|attestation| attestation.rls),
    ))
}

#[pg_extern(stable, parallel_safe)]
fn graph_verify_slice(
    slice: Option<JsonArg>,
) -> TableIterator<'static, (name!(check_name, &'static str), name!(ok, bool), name!(detail, String))>
{
    let outcomes = verdict(slice).checks;
    TableIterator::new(outcomes.into_iter().map(|o| (o.check.name(), o.ok, o.detail)))
}

#[pg_extern(stable, parallel_safe)]
#[allow(clippy::too_many_arguments)] // the arguments are the published token's fields
fn graph_verify_token(
    admissibility_token: Option<&str>,
    slice_id: Option<&str>,
    anchor_turn_id: Option<Uuid>,
    policy_id: Option<&str>,
    policy_params_hash: Option<&str>,
    graph_snapshot_hash: Option<&str>,
    schema_version: Option<&str>,
) -> bool {
    let fields = || {
        Some(TokenFields {
            slice_id: slice_id?,
            anchor: from_sql_uuid(anchor_turn_id?),
            policy_id: policy_id?,
            params_hash: policy_params_hash?,
            graph_snapshot_hash: graph_snapshot_hash?,
            schema_version: schema_version?,
        })
    };
    let (Some(token), Some(fields)) = (admissibility_token, fields()) else { return false };
    let keys = Keys::load(Graph::current_name()).or_raise();
    let own = keys.all().into_iter().filter(|epoch| !keys.is_revoked(&epoch.kid));
    own.into_iter().any(|epoch| fields.verify(&epoch.v2, token))
        || keys.shared_v2_key().is_some_and(|key| fields.verify(&key, token))
}

#[pg_extern(stable, parallel_safe)]
fn graph_is_admissible(slice: Option<JsonArg>, turn: Option<Uuid>) -> bool {
    let verdict = verdict(slice);
    let valid = verdict.valid();
    turn.is_some_and(|turn| valid.is_some_and(|export| export.contains(from_sql_uuid(turn))))
}

#[pg_extern(stable, parallel_safe)]
fn graph_filter_admissible(slice: Option<JsonArg>, turns: Option<Array<Uuid>>) -> Vec<Uuid> {
    let turns = turns.map(|turns| present_ids(&turns).or_raise()).unwrap_or_default();
    let verdict = verdict(slice);
    let Some(export) = verdict.valid() else { return Vec::new() };
    turns.into_iter().filter(|turn| export.contains(*turn)).map(to_sql_uuid).collect()
}

// Declared in sql/promotion.sql, in the private schema: all that the trigger asks, verified once.
#[pg_extern(sql = false)]
#[allow(clippy::type_complexity)] // the columns are the SQL signature
fn check_promotion(
    slice: Option<JsonArg>,
    turns: Option<Array<Uuid>>,
) -> TableIterator<
    'static,
    (
        name!(valid, bool),
        name!(reason, &'static str),
        name!(role, Option<String>),
        name!(rls, Option<bool>),
        name!(outside, bool),
    ),
> {
    let verdict = verdict(slice);
    let valid = verdict.valid();
    let turns = turns.map(|turns| present_ids(&turns).or_raise()).unwrap_or_default();
    let outside = turns.iter().any(|turn| !valid.is_some_and(|export| export.contains(*turn)));
    let claimed = verdict.attestation();
    TableIterator::once((
        valid.is_some(),
        verdict.reason(),
        claimed.map(|attestation| attestation.role.clone()),
        claimed.map(|attestation| attestation.rls),
        outside,
    ))
}

type ReplayRow = (&'static str, Option<String>, Option<String>, Option<String>);

#[pg_extern(stable, parallel_restricted)]
#[allow(clippy::type_complexity)] // the columns are the SQL signature
fn graph_replay(
    slice: Option<JsonArg>,
    policy: default!(Option<Policy>, "NULL"),
) -> TableIterator<
    'static,
    (
        name!(status, &'static str),
        name!(field, Option<String>),
        name!(was, Option<String>),
        name!(now, Option<String>),
    ),
> {
    let text = slice.map_or("", |json| json.0);
    let rows = replay(text, policy.map(|policy| policy.0))
        .unwrap_or_else(|why| vec![("unreplayable", Some(why.0.to_owned()), why.1, None)]);
    TableIterator::new(rows)
}

/// The differences between an export and the slice taken now, or what forbids to compare: a word
/// and what it is about.
fn replay(
    text: &str,
    policy: Option<SlicePolicy>,
) -> Result<Vec<ReplayRow>, (&'static str, Option<String>)> {
    let export =
        ParsedExport::parse(text, &check_interrupts).map_err(|error| ("malformed", Some(error)))?;
    if !has_known_versions(&export) {
        return Err(("unknown_version", None));
    }
    if let Some(attestation) = &export.attestation
        && attestation.graph != Graph::current_name()
    {
        return Err(("other_graph", Some(attestation.graph.clone())));
    }
    let attested = export.attestation.as_ref().map(|attestation| attestation.policy.clone());
    let policy = policy.or(attested).ok_or(("no_policy", None))?;
    if policy.params_hash() != export.params_hash {
        return Err(("params_hash_mismatch", Some(export.params_hash.clone())));
    }
    let taken = TakenSlice::new(to_sql_uuid(export.anchor), &policy)
        .map_err(|error| (error.word(), Some(error.message().to_owned())))?;
    let now = taken.export(&policy).or_raise();
    let mut rows: Vec<ReplayRow> = Vec::new();
    let (was, is) = ((&export.turn_refs()[..], &export.edges[..]), (&now.turns[..], now.edges));
    differences(was, is, &check_interrupts, &mut |difference| rows.push(drifted(difference)));
    for (field, was, now) in [
        ("slice_id", &export.slice_id, &now.slice_id),
        ("graph_snapshot_hash", &export.graph_snapshot_hash, &now.graph_snapshot_hash),
    ] {
        if was != now {
            rows.push(("drifted", Some(field.to_owned()), Some(was.clone()), Some(now.clone())));
        }
    }
    if rows.is_empty() {
        rows.push(("identical", None, None, None));
    }
    Ok(rows)
}

fn drifted(difference: Difference) -> ReplayRow {
    let edge = |e: Edge| Some(format!("{} -> {} {}", e.parent, e.child, e.edge_type.name()));
    let (field, was, now) = match difference {
        Difference::TurnGone(id) => ("turns".to_owned(), Some(id.to_string()), None),
        Difference::TurnNew(id) => ("turns".to_owned(), None, Some(id.to_string())),
        Difference::TurnField { id, field, was, now } => {
            (format!("turns.{id}.{field}"), Some(was), Some(now))
        }
        Difference::EdgeGone(e) => ("edges".to_owned(), edge(e), None),
        Difference::EdgeNew(e) => ("edges".to_owned(), None, edge(e)),
    };
    ("drifted", Some(field), was, now)
}

/// What verification says of an export; NULL is no export.
pub fn verdict(slice: Option<JsonArg>) -> Verdict {
    let keys = Keys::load(Graph::current_name()).or_raise();
    verify(slice.map_or("", |json| json.0), &keys)
}
