use std::ffi::CStr;

use kernel::graph::turn::{Phase, unit_interval};
use kernel::policy::registry::{self, PolicyRef};
use kernel::policy::{SlicePolicy, v1};
use kernel::slicing::store::TurnFacts;
use pgrx::Internal;
use pgrx::prelude::*;

use crate::pg::error::{OrRaise, SqlError};
use crate::pg::sql::types::{Policy, TextType, message_text};

// Declared in sql/bootstrap.sql: a type's own functions must be known before the type is whole.
#[pg_extern(immutable, parallel_safe, sql = false)]
fn slice_policy_in(text: &CStr) -> Policy {
    // The server has checked the encoding, which is UTF8 in every database we are in.
    Policy::from_text(&text.to_string_lossy())
}

#[pg_extern(immutable, parallel_safe, sql = false)]
fn slice_policy_recv(message: Internal) -> Policy {
    Policy::from_text(&message_text(message))
}

#[pg_extern(immutable, parallel_safe)]
fn graph_policy_hash(policy: Option<Policy>) -> String {
    Policy::required(policy).or_raise().params_hash()
}

// Declared in sql/policies.sql, in the private schema.
#[pg_extern(sql = false)]
fn presets() -> TableIterator<'static, (name!(name, &'static str), name!(policy, Policy))> {
    let presets = SlicePolicy::PRESETS.into_iter();
    TableIterator::new(presets.filter_map(|name| Some((name, Policy(SlicePolicy::preset(name)?)))))
}

#[pg_extern(sql = false)]
fn registry_fingerprint(params_hashes: Vec<Option<String>>) -> String {
    registry::registry_fingerprint(
        params_hashes
            .iter()
            .flatten()
            .map(|params_hash| PolicyRef { policy_id: v1::ID, params_hash }),
    )
}

#[pg_extern(immutable, parallel_safe)]
fn graph_priority(
    phase: Option<&str>,
    salience: Option<f32>,
    distance: Option<i32>,
    policy: default!(Option<Policy>, "'default'"),
) -> Option<f32> {
    let policy = Policy::required(policy).or_raise();
    let (phase, salience, distance) = (phase?, salience?, distance?);
    let Ok(distance) = u32::try_from(distance) else {
        SqlError::new(
            PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
            format!("distance must not be negative, not {distance}"),
        )
        .detail("INVALID_DISTANCE")
        .raise()
    };
    let turn = TurnFacts {
        phase: Phase::from_stored(Some(phase)),
        salience: unit_interval(Some(f64::from(salience))),
    };
    Some(policy.priority(&turn, distance))
}
