//! Functions of the private schema that functions of the library call, whatever the caller may execute: those that have
//! to know who calls, which a function with definer's rights does not, and one that finishes a trigger's work.

use std::ffi::CStr;

use pgrx::pg_sys;

use crate::pg::private::private_table::BINDING;
use crate::pg::trigger::TriggerCall;

/// Calls the function of the private schema that has this name, with the arguments of this call and the calling role
/// after them, and returns its result, which must not be NULL. Whether the role may execute it is not looked at: that it
/// may execute the calling one decides.
///
/// Raises 42P01 or 42883 where the extension has no such function.
pub fn call_for_caller(fcinfo: pg_sys::FunctionCallInfo, name: &'static CStr) -> pgrx::Internal {
    // SAFETY: the server's call information holds as many arguments as it says. The function that is called takes one
    // more, an oid. The call information has room for all of them, and outlives the call.
    unsafe {
        let given = (*fcinfo).nargs as usize;
        let flinfo = member(name, given + 1);
        let size = std::mem::offset_of!(pg_sys::FunctionCallInfoBaseData, args)
            + (given + 1) * size_of::<pg_sys::NullableDatum>();
        let call: pg_sys::FunctionCallInfo = pg_sys::palloc0(size).cast();
        (*call).flinfo = flinfo;
        (*call).fncollation = (*fcinfo).fncollation;
        (*call).nargs = (given + 1) as i16;
        let to = (*call).args.as_mut_ptr();
        std::ptr::copy_nonoverlapping((*fcinfo).args.as_ptr(), to, given);
        to.add(given).write(pg_sys::NullableDatum {
            value: pg_sys::Datum::from(pg_sys::GetUserId()),
            isnull: false,
        });
        result_of(call)
    }
}

/// Calls the trigger function of the private schema that has this name, as if the trigger had fired it.
///
/// Raises as [`call_for_caller`], and what the function raises.
pub fn call_trigger(fired: &TriggerCall, name: &'static CStr) -> pgrx::Internal {
    // SAFETY: a trigger function takes no arguments; what it is fired for is the context.
    unsafe {
        let flinfo = member(name, 0);
        let call: pg_sys::FunctionCallInfo =
            pg_sys::palloc0(size_of::<pg_sys::FunctionCallInfoBaseData>()).cast();
        (*call).flinfo = flinfo;
        (*call).context = (*fired.0).context;
        result_of(call)
    }
}

/// What is needed to call the extension's function of this name, which takes so many arguments. DROP EXTENSION waits.
fn member(name: &'static CStr, arguments: usize) -> *mut pg_sys::FmgrInfo {
    let binding = BINDING.oid();
    crate::pg::catalog::relation::lock_shared(binding);
    // SAFETY: look-ups in the catalog; lists and strings live in the current memory context. That the function is a member
    // of the extension whose table was found makes its script that of this library.
    unsafe {
        let parts =
            [c"graph_kernel", name].map(|part| pg_sys::makeString(part.as_ptr().cast_mut().cast()));
        let mut names = std::ptr::null_mut();
        for part in parts {
            names = pg_sys::lappend(names, part.cast());
        }
        let function = pg_sys::LookupFuncName(names, -1, std::ptr::null(), false);
        let extension = pg_sys::getExtensionOfObject(pg_sys::ProcedureRelationId, function);
        if extension == pg_sys::InvalidOid
            || extension != pg_sys::getExtensionOfObject(pg_sys::RelationRelationId, binding)
        {
            BINDING.missing("has no function for").raise();
        }
        let flinfo: *mut pg_sys::FmgrInfo = pg_sys::palloc0(size_of::<pg_sys::FmgrInfo>()).cast();
        pg_sys::fmgr_info(function, flinfo);
        if (*flinfo).fn_nargs as usize != arguments {
            BINDING.missing("has no function for").raise();
        }
        flinfo
    }
}

/// # Safety
/// The call information is that of the function in its `flinfo`.
unsafe fn result_of(call: pg_sys::FunctionCallInfo) -> pgrx::Internal {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let address =
            (*(*call).flinfo).fn_addr.expect("a function that was looked up has an address");
        let result = pg_sys::ffi::pg_guard_ffi_boundary(|| address(call));
        pgrx::Internal::from(Some(result))
    }
}
