//! Planner support: how many rows a slice has.

use pgrx::Internal;
use pgrx::pg_sys;
use pgrx::prelude::*;

use crate::pg::sql::types::Policy;

/// A slice with a constant policy has at most that policy's `max_nodes` rows.
#[pg_extern(immutable, strict, parallel_safe, sql = false)]
fn slice_support(request: Internal) -> Internal {
    // "No answer" is a null pointer that is not SQL NULL.
    let null = Internal::from(Some(pg_sys::Datum::null()));
    // SAFETY: the planner calls a support function with a pointer to a request node.
    let request = unsafe {
        request
            .unwrap()
            .and_then(|datum| datum.cast_mut_ptr::<pg_sys::SupportRequestRows>().as_mut())
    };
    let Some(request) = request else { return null };
    if request.type_ != pg_sys::NodeTag::T_SupportRequestRows {
        return null;
    }
    // SAFETY: `node` is the call whose rows are asked for, a valid expression tree.
    match unsafe { constant_policy(request.node) } {
        Some(policy) => {
            request.rows = policy.0.max_nodes() as f64;
            Internal::from(Some(pg_sys::Datum::from(std::ptr::from_mut(request))))
        }
        None => null,
    }
}

/// The second argument of a call, when it is a constant.
unsafe fn constant_policy(node: *mut pg_sys::Node) -> Option<Policy> {
    // SAFETY: each cast follows a check of the node's tag. A list of `length` cells has that many, and so has the list
    // of the function's argument types. The constant is of the second type, slice_policy.
    unsafe {
        if node.is_null() || (*node).type_ != pg_sys::NodeTag::T_FuncExpr {
            return None;
        }
        let call = node.cast::<pg_sys::FuncExpr>();
        let args = (*call).args;
        if args.is_null() || (*args).length < 2 {
            return None;
        }
        let policy = (*(*args).elements.add(1)).ptr_value.cast::<pg_sys::Const>();
        if (*policy).xpr.type_ != pg_sys::NodeTag::T_Const {
            return None;
        }
        let (mut types, mut count) = (std::ptr::null_mut(), 0);
        pg_sys::get_func_signature((*call).funcid, &raw mut types, &raw mut count);
        if count < 2 || *types.add(1) != (*policy).consttype {
            return None;
        }
        Policy::from_datum((*policy).constvalue, (*policy).constisnull)
    }
}
