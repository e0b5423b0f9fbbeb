use kernel::policy::SlicePolicy;
use kernel::policy::registry::{self, PolicyRef};
use pgrx::Internal;
use pgrx::prelude::*;

use crate::pg::error::OrRaise;
use crate::pg::interrupts::check_interrupts;
use crate::pg::sql::call::FunctionCall;
use crate::pg::sql::types::{JsonbText, Policy, Text, TextType, expect_few_ids, message_text};
use crate::pg::text::{CStringArg, TextArg};
use crate::service::policies;

// Declared in sql/bootstrap.sql: a type's own functions must be known before the type is whole.
#[pg_extern(immutable, parallel_safe, sql = false)]
fn slice_policy_in(text: CStringArg) -> Policy {
    Policy::from_text(&text)
}

/// The cast. One by the text of the value writes out any number first.
#[pg_extern(sql = false)]
fn slice_policy_of(json: JsonbText) -> Policy {
    Policy::from_text(&json.0)
}

#[pg_extern(immutable, parallel_safe, sql = false)]
fn slice_policy_recv(message: Internal) -> Policy {
    Policy::from_text(&message_text(message))
}

#[pg_extern(immutable, parallel_safe)]
fn graph_policy_hash(policy: Option<Policy>) -> Text {
    Text(Policy::required(policy).or_raise().params_hash())
}

// Declared in sql/policies.sql.
#[pg_extern(sql = false)]
fn graph_policy(call: FunctionCall) -> Internal {
    policies::named(&call)
}

#[pg_extern(sql = false)]
fn graph_policy_register(
    policy: Option<Policy>,
    _name: Option<TextArg>,
    call: FunctionCall,
) -> TableIterator<'static, (name!(policy_id, &'static str), name!(params_hash, Text))> {
    policies::register(&call);
    let policy = Policy::required(policy).or_raise();
    TableIterator::once((policy.id(), Text(policy.params_hash())))
}

// Declared in sql/policies.sql, in the private schema.
#[pg_extern(sql = false)]
#[allow(clippy::type_complexity)] // the columns are the SQL signature
fn presets() -> TableIterator<
    'static,
    (name!(name, &'static str), name!(policy, Policy), name!(is_counted, bool)),
> {
    let presets = SlicePolicy::PRESETS.into_iter();
    TableIterator::new(presets.filter_map(|name| {
        let is_counted = SlicePolicy::COUNTED_PRESETS.contains(&name);
        Some((name, Policy(SlicePolicy::preset(name)?), is_counted))
    }))
}

#[pg_extern(sql = false)]
fn registry_fingerprint(policy_ids: Array<'_, TextArg>, params_hashes: Array<'_, TextArg>) -> Text {
    expect_few_ids(policy_ids.len().max(params_hashes.len())).or_raise();
    let policies = policy_ids.iter().flatten().zip(params_hashes.iter().flatten());
    Text(registry::registry_fingerprint(policies.map(|(policy_id, params_hash)| {
        check_interrupts();
        PolicyRef { policy_id: policy_id.0, params_hash: params_hash.0 }
    })))
}

extension_sql!(
    r"
COMMENT ON FUNCTION graph_policy_hash(slice_policy) IS 'params_hash of a slice policy';
",
    name = "policy_comments",
    requires = [graph_policy_hash]
);
