//! The registered policies.

use crate::pg::private::members::call_member;
use crate::pg::sql::call::FunctionCall;

/// The policy of a name or a params_hash, with the argument of a call of `graph_policy`.
///
/// Raises as [`call_member`].
pub fn named(call: &FunctionCall) -> pgrx::Internal {
    call_member(call, c"policy_internal")
}

/// Registers a policy, with the arguments of a call of `graph_policy_register`. The right to do so is that to execute
/// `register_policy`.
///
/// Raises as [`call_member`].
pub fn register(call: &FunctionCall) {
    call_member(call, c"policy_register_internal");
}
