//! Functions of the private schema that functions of the library call, whatever the caller may execute. Some have to
//! know who calls, which a function with definer's rights does not; one finishes a trigger's work. What they raise
//! has no CONTEXT when it has gone through the library: it would name functions that are not the user's.

use std::collections::BTreeMap;
use std::ffi::{CStr, c_int};

use kernel::json::canonical::json_text;
use pgrx::pg_sys;

use crate::pg::catalog::relation;
use crate::pg::private::private_table::BINDING;
use crate::pg::sql::call::FunctionCall;
use crate::pg::sql::types::{JsonbText, TextType};
use crate::pg::trigger::TriggerCall;

/// Calls the function of the private schema that has this name, with the arguments of this call. Returns its result,
/// which must not be NULL. Whether the role may execute it is not looked at: that it may execute the calling one
/// decides.
///
/// Raises 42P01, 42883 or 55000 where the extension has no such function or another version, and what the function
/// raises.
pub fn call_member(calling: &FunctionCall, name: &'static CStr) -> pgrx::Internal {
    call(calling, name, None)
}

/// As [`call_member`], with the calling role as one more argument, the last one.
///
/// Raises as [`call_member`].
pub fn call_for_caller(calling: &FunctionCall, name: &'static CStr) -> pgrx::Internal {
    // SAFETY: reads a variable of the server.
    call(calling, name, Some(unsafe { pg_sys::GetUserId() }))
}

fn call(
    calling: &FunctionCall,
    name: &'static CStr,
    caller: Option<pg_sys::Oid>,
) -> pgrx::Internal {
    let (mut types, mut given) = (calling.types(), calling.arguments().to_vec());
    assert_eq!(given.len(), types.len(), "a call has the arguments that it is declared with");
    if let Some(caller) = caller {
        types.push(pg_sys::OIDOID);
        given.push(pg_sys::NullableDatum { value: caller.into(), isnull: false });
    }
    let flinfo = member(name, &types);
    // SAFETY: the function that is called takes arguments of these types. The call information has room for all of
    // them, and outlives the call.
    unsafe {
        let size = std::mem::offset_of!(pg_sys::FunctionCallInfoBaseData, args)
            + given.len() * size_of::<pg_sys::NullableDatum>();
        let call: pg_sys::FunctionCallInfo = pg_sys::palloc0(size).cast();
        (*call).flinfo = flinfo;
        (*call).fncollation = calling.collation();
        (*call).nargs = given.len() as i16;
        std::ptr::copy_nonoverlapping(given.as_ptr(), (*call).args.as_mut_ptr(), given.len());
        result_of(call)
    }
}

/// Calls the trigger function of the private schema that has this name, as if the trigger had fired it.
///
/// Raises as [`call_member`].
pub fn call_trigger(fired: &TriggerCall, name: &'static CStr) -> pgrx::Internal {
    // SAFETY: a trigger function takes no arguments; what it is fired for is the context.
    unsafe {
        let flinfo = member(name, &[]);
        let call: pg_sys::FunctionCallInfo =
            pg_sys::palloc0(size_of::<pg_sys::FunctionCallInfoBaseData>()).cast();
        (*call).flinfo = flinfo;
        (*call).context = (*fired.0).context;
        result_of(call)
    }
}

/// Calls `graph_kernel.store_word_totals`.
///
/// Raises as [`call_for_caller`], and what the function raises.
pub fn call_with_word_totals(table: pg_sys::Oid, column: i16, turns: u64, lexemes: u64) {
    let types = [pg_sys::OIDOID, pg_sys::INT4OID, pg_sys::INT8OID, pg_sys::INT8OID];
    let column = i32::from(column);
    let values = [table.into(), column.into(), (turns as i64).into(), (lexemes as i64).into()];
    // SAFETY: the values are of these types.
    unsafe { call_with(c"store_word_totals", &types, &values) }
}

/// Calls `graph_kernel.add_word_counts`.
///
/// Raises as [`call_for_caller`], and what the function raises.
pub fn call_with_word_counts(table: pg_sys::Oid, column: i16, with: &BTreeMap<&str, u64>) {
    let types = [pg_sys::OIDOID, pg_sys::INT4OID, pg_sys::JSONBOID];
    let with = JsonbText(json_text(with)).write();
    // SAFETY: the values are of these types.
    unsafe {
        call_with(c"add_word_counts", &types, &[table.into(), i32::from(column).into(), with])
    }
}

/// Calls a function of the private schema that returns nothing.
///
/// # Safety
/// The values are of these types, and none is NULL.
unsafe fn call_with(name: &'static CStr, types: &[pg_sys::Oid], values: &[pg_sys::Datum]) {
    let flinfo = member(name, types);
    // SAFETY: as in `call`; that the values are of the types is guaranteed by the caller.
    unsafe {
        let size = std::mem::offset_of!(pg_sys::FunctionCallInfoBaseData, args)
            + values.len() * size_of::<pg_sys::NullableDatum>();
        let call: pg_sys::FunctionCallInfo = pg_sys::palloc0(size).cast();
        (*call).flinfo = flinfo;
        (*call).nargs = values.len() as i16;
        let to = (*call).args.as_mut_ptr();
        for (number, value) in values.iter().enumerate() {
            to.add(number).write(pg_sys::NullableDatum { value: *value, isnull: false });
        }
        result_of(call);
    }
}

/// What is needed to call the extension's function of this name with arguments of these types. The extension's owner
/// may have made other functions of that name members of it. DROP EXTENSION waits.
fn member(name: &'static CStr, types: &[pg_sys::Oid]) -> *mut pg_sys::FmgrInfo {
    let binding = BINDING.oid();
    relation::lock_shared(binding);
    BINDING.check_version();
    // SAFETY: look-ups in the catalog; lists and strings live in the current memory context. That the function is a
    // member of the extension whose table was found makes its script that of this library.
    unsafe {
        let parts =
            [c"graph_kernel", name].map(|part| pg_sys::makeString(part.as_ptr().cast_mut().cast()));
        let mut names = std::ptr::null_mut();
        for part in parts {
            names = pg_sys::lappend(names, part.cast());
        }
        let count = types.len() as c_int;
        let function = pg_sys::LookupFuncName(names, count, types.as_ptr(), false);
        let extension = pg_sys::getExtensionOfObject(pg_sys::ProcedureRelationId, function);
        if extension == pg_sys::InvalidOid
            || extension != pg_sys::getExtensionOfObject(pg_sys::RelationRelationId, binding)
        {
            BINDING.missing("has no function for").raise();
        }
        let flinfo: *mut pg_sys::FmgrInfo = pg_sys::palloc0(size_of::<pg_sys::FmgrInfo>()).cast();
        pg_sys::fmgr_info(function, flinfo);
        flinfo
    }
}

/// The result of a call; NULL is one of a function that returns nothing.
///
/// Raises 42P01 where another one returns NULL: it is not that of the extension's script.
///
/// # Safety
/// The call information is that of the function in its `flinfo`.
unsafe fn result_of(call: pg_sys::FunctionCallInfo) -> pgrx::Internal {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let flinfo = (*call).flinfo;
        let address = (*flinfo).fn_addr.expect("a function that was looked up has an address");
        let result = pg_sys::ffi::pg_guard_ffi_boundary(|| address(call));
        if (*call).isnull && pg_sys::get_func_rettype((*flinfo).fn_oid) != pg_sys::VOIDOID {
            BINDING.missing("has another function for").raise();
        }
        pgrx::Internal::from(Some(result))
    }
}
