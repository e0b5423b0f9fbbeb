//! Functions for administration that have to know who calls. A function with definer's rights does not; so one with its
//! caller's rights calls it, and says.

use pgrx::pg_sys;

use crate::pg::private::private_table::BINDING;

/// Calls the function of the private schema that has this name, with the arguments of this call and the calling role
/// after them, and returns its result, which must not be NULL. Whether the role may execute it is not looked at: that it
/// may execute the calling one decides.
///
/// Raises 42P01 or 42883 where the extension has no such function.
pub fn call_for_caller(
    fcinfo: pg_sys::FunctionCallInfo,
    name: &'static std::ffi::CStr,
) -> pgrx::Internal {
    // DROP EXTENSION waits.
    let binding = BINDING.oid();
    crate::pg::catalog::relation::lock_shared(binding);
    // SAFETY: the server's call information holds as many arguments as it says. The function that is called takes
    // one more, an oid: its script is that of this library, as the table of the extension that it is a member of was
    // found. The call information has room for all of them, and outlives the call.
    unsafe {
        let given = (*fcinfo).nargs as usize;
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
        if (*flinfo).fn_nargs as usize != given + 1 {
            BINDING.missing("has no function for").raise();
        }
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
        let address = (*flinfo).fn_addr.expect("a function that was looked up has an address");
        let result = pg_sys::ffi::pg_guard_ffi_boundary(|| address(call));
        pgrx::Internal::from(Some(result))
    }
}
