//! Functions that return a table, made in one call.

use pgrx::callconv::{CallCx, RetAbi};
use pgrx::datum::TimestampWithTimeZone;
use pgrx::iter;
use pgrx::pgrx_sql_entity_graph::metadata::{
    ArgumentError, ReturnsError, ReturnsRef, SqlMappingRef, SqlTranslatable, TypeOrigin,
};
use pgrx::{IntoDatum, PgSqlErrorCode, PgTupleDesc, Uuid, pg_sys};

use crate::pg::error::{OrRaise, SqlError};
use crate::pg::interrupts::check_interrupts;
use crate::pg::shortage::memory;
use crate::pg::sql::types::{JsonText, JsonbText, Text, TextType};
use crate::pg::text::{expect_length, without_nul};

/// The rows of a set-returning function, put into a tuplestore by one call. pgrx's `TableIterator` is called once for
/// each row. The function's SET clauses would be applied and reset for each, and no statement could stay open from one
/// row to the next. Signatures import it as `TableIterator`, by which `pg_extern` finds the columns.
pub struct MaterializedRows<'a, Row> {
    fill: Box<Fill<'a, Row>>,
}

type Fill<'a, Row> = dyn FnOnce(&mut dyn FnMut(Row)) + 'a;

impl<'a, Row> MaterializedRows<'a, Row> {
    /// A table whose rows `fill` passes to the function it is given.
    pub fn new(fill: impl FnOnce(&mut dyn FnMut(Row)) + 'a) -> Self {
        MaterializedRows { fill: Box::new(fill) }
    }
}

// SAFETY: it is the same to SQL as pgrx's type.
unsafe impl<'a, Row> SqlTranslatable for MaterializedRows<'a, Row>
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
unsafe impl<Row: SqlRow> RetAbi for MaterializedRows<'_, Row> {
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
        // SAFETY: the tuplestore and the row type are in the context that ReturnSetInfo names for them. A row has as
        // many values as the function has columns, and their types are compared. The store copies the values while they
        // exist. Filling goes on in the function's memory context.
        unsafe {
            let result: *mut pg_sys::ReturnSetInfo = (*fcinfo).resultinfo.cast();
            let of_call = pg_sys::CurrentMemoryContext;
            pg_sys::MemoryContextSwitchTo((*(*result).econtext).ecxt_per_query_memory);
            // What is expected of a function with declared columns is a row of these.
            let columns = pg_sys::CreateTupleDescCopy((*result).expectedDesc);
            let declared = PgTupleDesc::from_pg_unchecked(columns);
            assert!(
                declared.iter().map(|attribute| attribute.atttypid).eq(Row::TYPES.iter().copied()),
                "a function gives the columns it is declared with"
            );
            let random = pg_sys::SetFunctionReturnMode::SFRM_Materialize_Random as i32;
            let random = (*result).allowedModes & random != 0;
            let store = pg_sys::tuplestore_begin_heap(random, false, pg_sys::work_mem);
            pg_sys::MemoryContextSwitchTo(of_call);
            let of_row = pg_sys::AllocSetContextCreateInternal(
                of_call,
                c"graph_kernel row".as_ptr(),
                pg_sys::ALLOCSET_SMALL_MINSIZE as usize,
                pg_sys::ALLOCSET_SMALL_INITSIZE as usize,
                pg_sys::ALLOCSET_DEFAULT_MAXSIZE as usize,
            );
            let mut values = RowValues::default();
            (table.fill)(&mut |row| {
                check_interrupts();
                let before = pg_sys::MemoryContextSwitchTo(of_row);
                values.clear();
                row.write(&mut values);
                assert_eq!(values.datums.len(), Row::TYPES.len(), "a value for each column");
                let (datums, nulls) = (values.datums.as_mut_ptr(), values.nulls.as_mut_ptr());
                pg_sys::tuplestore_putvalues(store, columns, datums, nulls);
                pg_sys::MemoryContextSwitchTo(before);
                pg_sys::MemoryContextReset(of_row);
            });
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

/// A row of SQL values.
pub trait SqlRow {
    /// The types of the columns.
    const TYPES: &'static [pg_sys::Oid];
    /// Adds a value for each column.
    fn write(&self, values: &mut RowValues);
}

macro_rules! columns {
    ($($column:ident)*) => {
        impl<$($column: SqlValue),*> SqlRow for ($($column,)*) {
            const TYPES: &'static [pg_sys::Oid] = &[$($column::TYPE),*];

            #[allow(non_snake_case)]
            fn write(&self, values: &mut RowValues) {
                let ($($column,)*) = self;
                $($column.write(values);)*
            }
        }
    };
}

columns! { A }
columns! { A B }
columns! { A B C }
columns! { A B C D }
columns! { A B C D E F }
columns! { A B C D E F G H }
columns! { A B C D E F G H I J }
columns! { A B C D E F G H I J K L }
columns! { A B C D E F G H I J K L M N }
columns! { A B C D E F G H I J K L M N O P Q R }

/// The values of a row as the server reads them. What they point to is valid until the next row.
#[derive(Default)]
pub struct RowValues {
    datums: Vec<pg_sys::Datum>,
    nulls: Vec<bool>,
    /// By column; words, as the server wants a text aligned.
    texts: Vec<Vec<u32>>,
}

impl RowValues {
    fn clear(&mut self) {
        self.datums.clear();
        self.nulls.clear();
    }

    fn push(&mut self, datum: impl Into<pg_sys::Datum>) {
        self.datums.push(datum.into());
        self.nulls.push(false);
    }

    fn push_null(&mut self) {
        self.datums.push(pg_sys::Datum::null());
        self.nulls.push(true);
    }

    fn push_made(&mut self, value: impl IntoDatum) {
        match value.into_datum() {
            Some(datum) => self.push(datum),
            None => self.push_null(),
        }
    }

    fn push_text(&mut self, text: &str) {
        let text = &*without_nul(text);
        expect_length(text.len()).or_raise();
        let column = self.datums.len();
        self.texts.resize_with(self.texts.len().max(column + 1), Vec::new);
        let words = &mut self.texts[column];
        let bytes = pg_sys::VARHDRSZ + text.len();
        memory::assure(bytes);
        words.resize(bytes.div_ceil(size_of::<u32>()), 0);
        let stored = words.as_mut_ptr();
        // SAFETY: the words have room for the header and the bytes behind it.
        unsafe {
            pgrx::set_varsize_4b(stored.cast(), bytes as i32);
            let data = stored.cast::<u8>().add(pg_sys::VARHDRSZ);
            std::ptr::copy_nonoverlapping(text.as_ptr(), data, text.len());
        }
        self.push(stored);
    }
}

/// A value of a column.
pub trait SqlValue {
    /// Its type.
    const TYPE: pg_sys::Oid;
    /// Adds itself. It must not be moved before the row is put.
    fn write(&self, values: &mut RowValues);
}

macro_rules! values {
    ($($rust:ty = $type_oid:ident, |$value:ident, $values:ident| $write:expr;)*) => {$(
        impl SqlValue for $rust {
            const TYPE: pg_sys::Oid = pg_sys::$type_oid;

            fn write(&self, $values: &mut RowValues) {
                let $value = self;
                $write;
            }
        }
    )*};
}

values! {
    Uuid = UUIDOID, |id, values| values.push(id.as_bytes().as_ptr());
    bool = BOOLOID, |value, values| values.push(*value);
    i32 = INT4OID, |number, values| values.push(*number);
    i64 = INT8OID, |number, values| values.push(*number);
    f32 = FLOAT4OID, |number, values| values.push(number.to_bits());
    &str = TEXTOID, |text, values| values.push_text(text);
    Text = TEXTOID, |text, values| values.push_text(&text.0);
    JsonText = JSONOID, |json, values| values.push_text(&json.0);
    // Made in the row's own memory context.
    JsonbText = JSONBOID, |json, values| values.push(TextType::write(json.clone()));
    TimestampWithTimeZone = TIMESTAMPTZOID, |time, values| values.push_made(*time);
    Vec<Uuid> = UUIDARRAYOID, |ids, values| values.push_made(ids.clone());
}

impl<T: SqlValue> SqlValue for Option<T> {
    const TYPE: pg_sys::Oid = T::TYPE;

    fn write(&self, values: &mut RowValues) {
        match self {
            Some(value) => value.write(values),
            None => values.push_null(),
        }
    }
}
