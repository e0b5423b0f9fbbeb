//! A statement: its text, the tables it names, the columns of its rows, and its arguments.

use std::ffi::c_int;
use std::rc::Rc;

use kernel::graph::turn::TurnId;
use pgrx::{IntoDatum, pg_sys};

use super::row::{ARRAY_HEADER, ColumnType};
use crate::pg::catalog::relation;
use crate::pg::error::OrRaise;
use crate::pg::sql::types::to_sql_uuid;
use crate::pg::text::{bytes_datum, text_datum};

/// A statement of sql/queries before names are filled in.
pub struct Template {
    /// Its text, with placeholders.
    pub text: &'static str,
    /// The columns of its rows.
    pub columns: &'static [ColumnType],
    /// How it is planned.
    pub planning: Planning,
}

impl Template {
    /// A statement of sql/queries.
    pub const fn new(
        text: &'static str,
        columns: &'static [ColumnType],
        planning: Planning,
    ) -> Self {
        Template { text, columns, planning }
    }
}

/// How a statement is planned.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Planning {
    /// Once, whatever its arguments are.
    Once,
    /// Once, to probe indexes: it asks by ids. With the estimates for a graph with hubs the planner would scan the
    /// tables, use JIT, and memoize rows that are never asked for twice.
    Probing,
    /// Each time, for its arguments: which plan is good depends on how many rows are wanted.
    EachTime,
}

/// A statement with its names filled in.
pub struct Statement {
    /// Its text.
    pub(super) text: String,
    /// The tables that it names, in the order of the text: they are locked and checked.
    pub(super) tables: Vec<NamedTable>,
    pub(super) columns: &'static [ColumnType],
    pub(super) planning: Planning,
}

/// A table that a statement names.
#[derive(Clone)]
pub struct NamedTable {
    /// Its OID.
    pub oid: pg_sys::Oid,
    /// Its columns as they were looked up.
    pub columns: Rc<[relation::TableColumn]>,
    /// Whether Citus reads it.
    pub is_distributed: bool,
}

impl Statement {
    /// A template whose placeholders are filled in, over these tables in the order of the text. Citus plans a statement
    /// for its arguments, by which it chooses where to ask.
    pub fn new(template: &Template, text: String, tables: Vec<NamedTable>) -> Self {
        let Template { columns, planning, .. } = *template;
        let statement = Statement { text, tables, columns, planning };
        match statement.is_distributed() {
            true => Statement { planning: Planning::EachTime, ..statement },
            false => statement,
        }
    }

    /// Whether Citus reads a table of it.
    pub(super) fn is_distributed(&self) -> bool {
        self.tables.iter().any(|table| table.is_distributed)
    }

    /// Whether it names these tables, in this order.
    pub(super) fn names(&self, tables: &[pg_sys::Oid]) -> bool {
        self.tables.iter().map(|table| table.oid).eq(tables.iter().copied())
    }

    /// Its text.
    pub fn into_text(self) -> String {
        self.text
    }
}

/// Where PostgreSQL counts time from, in microseconds since 1970.
pub const POSTGRES_EPOCH: i64 = 946_684_800_000_000;

/// A value for a parameter of a statement.
#[derive(Clone, Copy)]
pub enum Argument<'a> {
    /// A `uuid[]`.
    Ids(&'a [TurnId]),
    /// A `uuid`.
    Id(TurnId),
    /// A `bigint`.
    Number(i64),
    /// A `text`.
    Text(Option<&'a str>),
    /// A `text[]`.
    Texts(&'a [String]),
    /// A `timestamptz`, in microseconds since 2000, as the server has them.
    Time(i64),
    /// A `double precision`.
    Float(f64),
    /// A `bytea`.
    Bytes(&'a [u8]),
}

impl Argument<'_> {
    pub(super) fn type_oid(self) -> pg_sys::Oid {
        match self {
            Argument::Ids(_) => pg_sys::UUIDARRAYOID,
            Argument::Id(_) => pg_sys::UUIDOID,
            Argument::Number(_) => pg_sys::INT8OID,
            Argument::Text(_) => pg_sys::TEXTOID,
            Argument::Texts(_) => pg_sys::TEXTARRAYOID,
            Argument::Time(_) => pg_sys::TIMESTAMPTZOID,
            Argument::Float(_) => pg_sys::FLOAT8OID,
            Argument::Bytes(_) => pg_sys::BYTEAOID,
        }
    }

    /// The value, in the current memory context; `None` for NULL.
    fn datum(self) -> Option<pg_sys::Datum> {
        match self {
            Argument::Ids(ids) => Some(uuid_array(ids)),
            Argument::Id(id) => to_sql_uuid(id).into_datum(),
            Argument::Number(number) => Some(number.into()),
            Argument::Text(text) => text.map(|text| text_datum(text).or_raise()),
            Argument::Texts(texts) => Some(text_array(texts)),
            Argument::Time(moment) => Some(moment.into()),
            Argument::Float(number) => Some(number.to_bits().into()),
            Argument::Bytes(bytes) => Some(bytes_datum(bytes).or_raise()),
        }
    }
}

/// The parameter list of a statement, in the current memory context.
///
/// None is no list: an empty one would end a server with Citus, which copies it.
pub(super) fn param_list(arguments: &[Argument<'_>]) -> pg_sys::ParamListInfo {
    if arguments.is_empty() {
        return std::ptr::null_mut();
    }
    // SAFETY: the list is made with room for as many entries as are written.
    unsafe {
        let list = pg_sys::makeParamList(arguments.len() as c_int);
        for (index, argument) in arguments.iter().enumerate() {
            let entry = (*list).params.as_mut_ptr().add(index);
            let value = argument.datum();
            (*entry).isnull = value.is_none();
            (*entry).value = value.unwrap_or(pg_sys::Datum::null());
            (*entry).pflags = pg_sys::PARAM_FLAG_CONST as u16;
            (*entry).ptype = argument.type_oid();
        }
        list
    }
}

/// The `text[]` of these texts, in their order, in the current memory context.
fn text_array(texts: &[String]) -> pg_sys::Datum {
    let mut elements: Vec<pg_sys::Datum> =
        texts.iter().map(|text| text_datum(text).or_raise()).collect();
    // SAFETY: each element is a text, which has a variable length and the alignment of an int; the array copies them.
    unsafe {
        let count = elements.len() as c_int;
        let align = pg_sys::TYPALIGN_INT as std::ffi::c_char;
        pg_sys::construct_array(elements.as_mut_ptr(), count, pg_sys::TEXTOID, -1, false, align)
            .into()
    }
}

/// The `uuid[]` of these ids, in their order, in the current memory context.
pub(super) fn uuid_array(ids: &[TurnId]) -> pg_sys::Datum {
    let bytes = ARRAY_HEADER + size_of_val(ids);
    // SAFETY: an array of one dimension without NULLs is ArrayType, its length, its lower bound and, aligned, its
    // elements. A uuid is stored as its 16 bytes. There is room for all of them.
    unsafe {
        if ids.is_empty() {
            return pg_sys::construct_empty_array(pg_sys::UUIDOID).into();
        }
        let array: *mut pg_sys::ArrayType = pg_sys::palloc(bytes).cast();
        pgrx::set_varsize_4b(array.cast(), bytes as i32);
        (*array).ndim = 1;
        (*array).dataoffset = 0;
        (*array).elemtype = pg_sys::UUIDOID;
        array.add(1).cast::<[c_int; 2]>().write([ids.len() as c_int, 1]);
        let elements = array.cast::<u8>().add(ARRAY_HEADER).cast::<[u8; 16]>();
        for (index, id) in ids.iter().enumerate() {
            elements.add(index).write(id.into_bytes());
        }
        array.into()
    }
}
