//! What a function of SQL is called with, where its arguments are passed on as they are.

use pgrx::fcinfo::pg_getarg;
use pgrx::pg_sys;
use pgrx::pgrx_sql_entity_graph::metadata::{
    ArgumentError, ReturnsError, ReturnsRef, SqlMappingRef, SqlTranslatable, TypeOrigin,
};

use crate::pg::text::TextArg;

/// A call that the server makes of a function of the library. Only the wrapper that the server calls makes one, and it
/// is not kept: while there is one, the server's call information is there.
pub struct FunctionCall(pg_sys::FunctionCallInfo);

// SAFETY: it takes no argument of the SQL function.
unsafe impl<'fcx> pgrx::callconv::ArgAbi<'fcx> for FunctionCall {
    unsafe fn unbox_arg_unchecked(arg: pgrx::callconv::Arg<'_, 'fcx>) -> Self {
        // SAFETY: as we are called.
        FunctionCall(unsafe { pg_sys::FunctionCallInfo::unbox_arg_unchecked(arg) })
    }

    fn is_virtual_arg() -> bool {
        true
    }
}

// SAFETY: as pgrx's own for the pointer.
unsafe impl SqlTranslatable for FunctionCall {
    const TYPE_IDENT: &'static str = "graph_kernel::pg::sql::call::FunctionCall";
    const TYPE_ORIGIN: TypeOrigin = TypeOrigin::External;
    const ARGUMENT_SQL: Result<SqlMappingRef, ArgumentError> = Ok(SqlMappingRef::Skip);
    const RETURN_SQL: Result<ReturnsRef, ReturnsError> = Ok(ReturnsRef::One(SqlMappingRef::Skip));
}

impl FunctionCall {
    /// The types of the arguments, as the function is declared in the catalog.
    pub fn types(&self) -> Vec<pg_sys::Oid> {
        // SAFETY: the server's call information has the function's look-up data. The catalog gives an array of as many
        // types as it says, in the current memory context.
        unsafe {
            let (mut types, mut count) = (std::ptr::null_mut(), 0);
            pg_sys::get_func_signature((*(*self.0).flinfo).fn_oid, &mut types, &mut count);
            (0..count as usize).map(|n| *types.add(n)).collect()
        }
    }

    /// The values of the arguments, of these types.
    pub fn arguments(&self) -> &[pg_sys::NullableDatum] {
        // SAFETY: the server's call information has as many arguments as it says.
        unsafe { (*self.0).args.as_slice((*self.0).nargs as usize) }
    }

    /// The collation that it is called with.
    pub fn collation(&self) -> pg_sys::Oid {
        // SAFETY: the server's call information.
        unsafe { (*self.0).fncollation }
    }

    /// The text that is the argument of this number, from 0; `None` for NULL.
    ///
    /// Raises 22021 where its bytes are not text.
    pub fn text(&self, number: usize) -> Option<String> {
        assert_eq!(self.types().get(number), Some(&pg_sys::TEXTOID), "the argument is a text");
        // SAFETY: the function is declared with a text there.
        unsafe { pg_getarg::<TextArg<'_>>(self.0, number) }.map(|text| text.0.to_owned())
    }
}
