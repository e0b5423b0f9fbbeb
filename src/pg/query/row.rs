//! Rows from the executor. Each column is read as the type that the row's descriptor was checked to have.

use std::ffi::c_int;
use std::ops::ControlFlow;

use kernel::graph::turn::TurnId;
use pgrx::prelude::*;
use pgrx::{PgTupleDesc, pg_sys};

use super::lexemes::Lexemes;
use crate::pg::catalog::names::type_name;
use crate::pg::error::{SqlError, Word};
use crate::pg::shortage::memory;
use crate::pg::text::{checked, replaced, with_bytes};

/// Bytes before the elements of an array with one dimension and no NULLs (ARR_OVERHEAD_NONULLS).
pub(super) const ARRAY_HEADER: usize =
    (size_of::<pg_sys::ArrayType>() + 2 * size_of::<c_int>()).next_multiple_of(8);

/// The type of a column of a statement's rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnType {
    /// `uuid`
    Id,
    /// `text`
    Text,
    /// `bigint`
    Integer,
    /// `double precision`
    Number,
    /// `boolean`
    Boolean,
    /// `timestamp` or `timestamptz`: microseconds since 2000.
    Time,
    /// `real[]`
    Floats,
    /// `tsvector`
    Words,
    /// `bytea`
    Bytes,
}

impl ColumnType {
    fn accepts(self, type_oid: pg_sys::Oid) -> bool {
        match self {
            ColumnType::Id => type_oid == pg_sys::UUIDOID,
            ColumnType::Text => type_oid == pg_sys::TEXTOID,
            ColumnType::Integer => type_oid == pg_sys::INT8OID,
            ColumnType::Number => type_oid == pg_sys::FLOAT8OID,
            ColumnType::Boolean => type_oid == pg_sys::BOOLOID,
            ColumnType::Time => matches!(type_oid, pg_sys::TIMESTAMPOID | pg_sys::TIMESTAMPTZOID),
            ColumnType::Floats => type_oid == pg_sys::FLOAT4ARRAYOID,
            ColumnType::Words => type_oid == pg_sys::TSVECTOROID,
            ColumnType::Bytes => type_oid == pg_sys::BYTEAOID,
        }
    }
}

/// A DestReceiver whose rows go to a closure. The interface stands first, as PostgreSQL passes
/// the callbacks a pointer to it.
#[repr(C)]
pub(super) struct RowReceiver<'a> {
    interface: pg_sys::DestReceiver,
    columns: &'static [ColumnType],
    sink: &'a mut dyn FnMut(Row) -> ControlFlow<()>,
}

impl<'a> RowReceiver<'a> {
    pub(super) fn new(
        columns: &'static [ColumnType],
        sink: &'a mut dyn FnMut(Row) -> ControlFlow<()>,
    ) -> Self {
        let interface = pg_sys::DestReceiver {
            receiveSlot: Some(receive_slot),
            rStartup: Some(check_columns),
            rShutdown: Some(do_nothing),
            rDestroy: Some(do_nothing),
            mydest: pg_sys::CommandDest::DestTuplestore,
        };
        RowReceiver { interface, columns, sink }
    }
}

/// Called by the executor before the rows of each run: a table's columns may have been renamed, dropped and
/// added since they were looked up.
#[pg_guard]
unsafe extern "C-unwind" fn check_columns(
    receiver: *mut pg_sys::DestReceiver,
    _operation: c_int,
    descriptor: pg_sys::TupleDesc,
) {
    // SAFETY: `receiver` is the first field of a RowReceiver, which is borrowed for the whole run; the
    // descriptor is valid during the call.
    let (columns, descriptor) = unsafe {
        ((*receiver.cast::<RowReceiver<'_>>()).columns, PgTupleDesc::from_pg_unchecked(descriptor))
    };
    assert_eq!(columns.len(), descriptor.len(), "a statement gives the columns it is said to");
    for (position, (column, attribute)) in columns.iter().zip(descriptor.iter()).enumerate() {
        if !column.accepts(attribute.atttypid) {
            SqlError::new(
                PgSqlErrorCode::ERRCODE_DATATYPE_MISMATCH,
                format!(
                    "column {} of a statement over the bound tables has type {}, not the one that was checked",
                    position + 1,
                    type_name(attribute.atttypid),
                ),
            )
            .word(Word::TablesChanged)
            .hint("The bound tables were changed while they were read: call the function again.")
            .raise();
        }
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn receive_slot(
    slot: *mut pg_sys::TupleTableSlot,
    receiver: *mut pg_sys::DestReceiver,
) -> bool {
    // Many rows may be held before interrupts are checked.
    memory::check();
    // SAFETY: `receiver` is the first field of a RowReceiver, which is borrowed for the whole run. The slot has the
    // columns that `check_columns` was called with, and is valid during the call.
    unsafe {
        let receiver = &mut *receiver.cast::<RowReceiver<'_>>();
        let count = receiver.columns.len() as c_int;
        if c_int::from((*slot).tts_nvalid) < count {
            pg_sys::slot_getsomeattrs_int(slot, count);
        }
        (receiver.sink)(Row { slot, columns: receiver.columns }).is_continue()
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn do_nothing(_receiver: *mut pg_sys::DestReceiver) {}

/// One row, valid while its sink runs. Columns count from 0; a column is read by the getter of its type.
pub struct Row {
    slot: *mut pg_sys::TupleTableSlot,
    columns: &'static [ColumnType],
}

impl Row {
    /// The value of a column of this type; `None` for NULL.
    fn datum(&self, column: usize, holds: ColumnType) -> Option<pg_sys::Datum> {
        assert_eq!(self.columns[column], holds, "a column is read as what it holds");
        // SAFETY: `receive_slot` has deformed as many columns as `columns` has.
        unsafe {
            let null = *(*self.slot).tts_isnull.add(column);
            (!null).then(|| *(*self.slot).tts_values.add(column))
        }
    }

    /// A [`ColumnType::Id`].
    pub fn id(&self, column: usize) -> Option<TurnId> {
        let datum = self.datum(column, ColumnType::Id)?;
        // SAFETY: a uuid is a pointer to its 16 bytes.
        Some(TurnId::from_bytes(unsafe { *datum.cast_mut_ptr::<[u8; 16]>() }))
    }

    /// A [`ColumnType::Integer`].
    pub fn i64(&self, column: usize) -> Option<i64> {
        self.datum(column, ColumnType::Integer).map(|datum| datum.value() as i64)
    }

    /// A [`ColumnType::Time`].
    pub fn time(&self, column: usize) -> Option<i64> {
        self.datum(column, ColumnType::Time).map(|datum| datum.value() as i64)
    }

    /// A [`ColumnType::Boolean`].
    pub fn bool(&self, column: usize) -> Option<bool> {
        self.datum(column, ColumnType::Boolean).map(|datum| datum.value() as u8 != 0)
    }

    /// A [`ColumnType::Number`].
    pub fn f64(&self, column: usize) -> Option<f64> {
        self.datum(column, ColumnType::Number).map(|datum| f64::from_bits(datum.value() as u64))
    }

    /// A [`ColumnType::Text`], passed to `read`; bytes that are not UTF-8 are replaced.
    pub fn text<T>(&self, column: usize, read: impl FnOnce(Option<&str>) -> T) -> T {
        let Some(datum) = self.datum(column, ColumnType::Text) else {
            return read(None);
        };
        // SAFETY: the column is a text.
        unsafe {
            with_bytes(datum, |bytes| {
                // It is copied once or twice, by what reads it.
                memory::assure(2 * bytes.len());
                read(Some(&replaced(bytes)))
            })
        }
    }

    /// A [`ColumnType::Bytes`], copied.
    pub fn bytes(&self, column: usize) -> Option<Vec<u8>> {
        let datum = self.datum(column, ColumnType::Bytes)?;
        // SAFETY: the column is a bytea, which is stored as a text is.
        Some(unsafe {
            with_bytes(datum, |bytes| {
                memory::assure(bytes.len());
                bytes.to_vec()
            })
        })
    }

    /// Whether a [`ColumnType::Text`] is NULL or UTF-8.
    pub fn is_text(&self, column: usize) -> bool {
        let datum = self.datum(column, ColumnType::Text);
        // SAFETY: the column is a text.
        datum.is_none_or(|datum| unsafe { with_bytes(datum, |bytes| checked(bytes).is_ok()) })
    }

    /// A [`ColumnType::Words`], passed to `read`.
    pub fn words<T>(&self, column: usize, read: impl FnOnce(Option<Lexemes<'_>>) -> T) -> T {
        let Some(datum) = self.datum(column, ColumnType::Words) else {
            return read(None);
        };
        // SAFETY: a tsvector is a varlena, as a text is.
        unsafe { with_bytes(datum, |bytes| read(Some(Lexemes::of(bytes)))) }
    }

    /// A [`ColumnType::Floats`], passed to `read`: `None` when it is NULL, has a NULL in it or not one dimension.
    pub fn floats<T>(&self, column: usize, read: impl FnOnce(Option<&[f32]>) -> T) -> T {
        let Some(datum) = self.datum(column, ColumnType::Floats) else {
            return read(None);
        };
        let stored: *mut pg_sys::varlena = datum.cast_mut_ptr();
        // SAFETY: a real[] is a varlena that, detoasted, begins with ArrayType. With one dimension its length follows,
        // then its lower bound, then, where it had a NULL at some time, a bitmap of them. At `dataoffset`, or without a
        // bitmap aligned behind the header, begin so many binary32 numbers where none is NULL. A copy that the
        // detoaster made is freed here.
        unsafe {
            let array: *mut pg_sys::ArrayType = pg_sys::pg_detoast_datum(stored).cast();
            let plain = (*array).ndim == 1
                && (*array).elemtype == pg_sys::FLOAT4OID
                && !pg_sys::array_contains_nulls(array);
            let values = plain.then(|| {
                let length = *array.add(1).cast::<c_int>();
                let offset = match (*array).dataoffset {
                    0 => ARRAY_HEADER,
                    offset => offset as usize,
                };
                let first = array.cast::<u8>().add(offset).cast::<f32>();
                std::slice::from_raw_parts(first, length as usize)
            });
            let result = read(values);
            if array.cast() != stored {
                pg_sys::pfree(array.cast());
            }
            result
        }
    }
}
