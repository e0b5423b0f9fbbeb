//! Functions that return a table, made in one call.

use pgrx::callconv::{CallCx, RetAbi};
use pgrx::iter;
use pgrx::pgrx_sql_entity_graph::metadata::{
    ArgumentError, ReturnsError, ReturnsRef, SqlMappingRef, SqlTranslatable, TypeOrigin,
};
use pgrx::{IntoHeapTuple, PgSqlErrorCode, pg_sys};

use super::error::SqlError;

/// The rows of a set-returning function, put into a tuplestore by one call. pgrx's type of this name, by
/// which its macro knows the columns, is called for each row: settings of the function are then made and
/// unmade for each, and nothing can stay open from one row to the next.
pub struct TableIterator<'a, Row> {
    fill: Box<Fill<'a, Row>>,
}

type Fill<'a, Row> = dyn FnOnce(&mut dyn FnMut(Row)) + 'a;

impl<'a, Row> TableIterator<'a, Row> {
    /// A table that `fill` hands row by row to the function it is given.
    pub fn new(fill: impl FnOnce(&mut dyn FnMut(Row)) + 'a) -> Self {
        TableIterator { fill: Box::new(fill) }
    }
}

// SAFETY: it is the same to SQL as pgrx's type.
unsafe impl<'a, Row> SqlTranslatable for TableIterator<'a, Row>
where
    iter::TableIterator<'a, Row>: SqlTranslatable,
{
    const TYPE_IDENT: &'static str = <iter::TableIterator<'a, Row>>::TYPE_IDENT;
    const TYPE_ORIGIN: TypeOrigin = <iter::TableIterator<'a, Row>>::TYPE_ORIGIN;
    const ARGUMENT_SQL: Result<SqlMappingRef, ArgumentError> =
        <iter::TableIterator<'a, Row>>::ARGUMENT_SQL;
    const RETURN_SQL: Result<ReturnsRef, ReturnsError> = <iter::TableIterator<'a, Row>>::RETURN_SQL;
}

// SAFETY: the one call fills the caller's ReturnSetInfo as materialize mode asks, and nothing is kept for
// another call.
unsafe impl<Row: IntoHeapTuple> RetAbi for TableIterator<'_, Row> {
    type Item = Self;
    type Ret = Self;

    fn to_ret(self) -> Self {
        self
    }

    unsafe fn check_fcinfo_and_prepare(fcinfo: pg_sys::FunctionCallInfo) -> CallCx {
        // SAFETY: a ReturnSetInfo is what a node of this tag is.
        unsafe {
            let result: *mut pg_sys::ReturnSetInfo = (*fcinfo).resultinfo.cast();
            let materialize = pg_sys::SetFunctionReturnMode::SFRM_Materialize as i32;
            if result.is_null()
                || (*result).type_ != pg_sys::NodeTag::T_ReturnSetInfo
                || (*result).allowedModes & materialize == 0
                || (*result).expectedDesc.is_null()
            {
                let code = PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED;
                SqlError::new(
                    code,
                    "a function that returns a set was called where none is accepted",
                )
                .raise();
            }
            CallCx::WrappedFn(pg_sys::CurrentMemoryContext)
        }
    }

    unsafe fn box_ret_in_fcinfo(fcinfo: pg_sys::FunctionCallInfo, table: Self) -> pg_sys::Datum {
        // SAFETY: the tuplestore and the row type live in the context that ReturnSetInfo names for them.
        // A row is formed in a context of its own, emptied after each, with the columns the function is
        // declared with; filling goes on in the function's context.
        unsafe {
            let result: *mut pg_sys::ReturnSetInfo = (*fcinfo).resultinfo.cast();
            let of_call = pg_sys::CurrentMemoryContext;
            pg_sys::MemoryContextSwitchTo((*(*result).econtext).ecxt_per_query_memory);
            // What is expected of a function with declared columns is a row of these.
            let columns = pg_sys::CreateTupleDescCopy((*result).expectedDesc);
            let random = pg_sys::SetFunctionReturnMode::SFRM_Materialize_Random as i32;
            let random = (*result).allowedModes & random != 0;
            let store = pg_sys::tuplestore_begin_heap(random, false, pg_sys::work_mem);
            pg_sys::MemoryContextSwitchTo(of_call);
            let of_row = pg_sys::AllocSetContextCreateExtended(
                of_call,
                c"row of a table".as_ptr(),
                pg_sys::ALLOCSET_DEFAULT_MINSIZE as usize,
                pg_sys::ALLOCSET_DEFAULT_INITSIZE as usize,
                pg_sys::ALLOCSET_DEFAULT_MAXSIZE as usize,
            );
            (table.fill)(&mut |row| {
                pg_sys::MemoryContextSwitchTo(of_row);
                pg_sys::tuplestore_puttuple(store, row.into_heap_tuple(columns));
                pg_sys::MemoryContextReset(of_row);
                pg_sys::MemoryContextSwitchTo(of_call);
            });
            pg_sys::MemoryContextDelete(of_row);
            (*result).returnMode = pg_sys::SetFunctionReturnMode::SFRM_Materialize;
            (*result).setResult = store;
            (*result).setDesc = columns;
            (*fcinfo).isnull = true;
            pg_sys::Datum::null()
        }
    }

    unsafe fn move_into_fcinfo_fcx(self, _fcinfo: pg_sys::FunctionCallInfo) {}

    unsafe fn fill_fcinfo_fcx(&self, _fcinfo: pg_sys::FunctionCallInfo) {}
}
