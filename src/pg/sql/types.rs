//! SQL types in Rust: those that are read and written as text, and ids.

use std::ptr::null_mut;

use kernel::chunking::policy::ChunkingPolicy;
use kernel::graph::turn::TurnId;
use kernel::json::canonical::escaped_bytes;
use kernel::policy::SlicePolicy;
use pgrx::datum::{Datum, UnboxDatum};
use pgrx::pgrx_sql_entity_graph::metadata::{
    ArgumentError, ReturnsError, ReturnsRef, SqlMappingRef, SqlTranslatable, TypeOrigin,
};
use pgrx::{Array, FromDatum, IntoDatum, PgSqlErrorCode, pg_sys};
use serde_json::Value;

use crate::pg::error::{OrRaise, SqlError, Word, chunking_policy_error};
use crate::pg::interrupts::check_interrupts;
use crate::pg::shortage::memory;
use crate::pg::text::{
    StoredText, checked, checked_datum, expect_length, replaced, text_datum, with_bytes,
};

/// A Rust type for a SQL type that it reads and writes as text.
pub trait TextType: Sized {
    /// Reads the text.
    fn from_text(text: &str) -> Self;
    /// The text.
    fn into_text(self) -> String;

    /// The value of a datum that is not NULL.
    ///
    /// Raises 22021 where it is not text.
    ///
    /// # Safety
    /// The datum is of the type's SQL type.
    unsafe fn read(datum: pg_sys::Datum) -> Self {
        // SAFETY: the SQL type is laid out as text.
        Self::from_text(unsafe { checked_datum(datum) })
    }

    /// The value as a datum.
    ///
    /// Raises 54000 where it is too long.
    fn write(self) -> pg_sys::Datum {
        text_datum(&self.into_text()).or_raise()
    }
}

/// A result of the SQL type `text`.
pub struct Text(pub String);

impl From<String> for Text {
    fn from(text: String) -> Self {
        Text(text)
    }
}

/// A result of the SQL type `text`: a new text, or an argument as it is stored.
pub enum TextOrStored {
    /// A new text.
    Text(String),
    /// The argument.
    Stored(StoredText),
}

/// A result of the SQL type `name`, whose bytes need not be UTF-8.
pub struct Name([u8; NAME_BYTES]);

const NAME_BYTES: usize = pg_sys::NAMEDATALEN as usize;

impl Name {
    /// A name of these bytes; `None` where no name has them.
    pub fn of(bytes: &[u8]) -> Option<Self> {
        let is_name = bytes.len() < NAME_BYTES && !bytes.contains(&0);
        is_name.then(|| {
            let mut name = [0; NAME_BYTES];
            name[..bytes.len()].copy_from_slice(bytes);
            Name(name)
        })
    }

    fn write(&self) -> pg_sys::Datum {
        // SAFETY: the copy has as many bytes as are allocated for it, and is of the current memory context.
        unsafe {
            let name: *mut u8 = pg_sys::palloc(NAME_BYTES).cast();
            name.copy_from_nonoverlapping(self.0.as_ptr(), NAME_BYTES);
            name.into()
        }
    }
}

/// A result of the SQL type `json`, byte for byte.
pub struct JsonText(pub String);

/// The SQL type `jsonb` as JSON text: a number keeps its spelling, which a parsed value would widen.
#[derive(Clone, Debug, PartialEq)]
pub struct JsonbText(pub String);

impl From<Value> for JsonbText {
    fn from(value: Value) -> Self {
        JsonbText(value.to_string())
    }
}

// SAFETY: the element of an array of jsonb is a jsonb.
unsafe impl UnboxDatum for JsonbText {
    type As<'src>
        = JsonbText
    where
        Self: 'src;

    unsafe fn unbox<'src>(datum: Datum<'src>) -> JsonbText
    where
        Self: 'src,
    {
        // SAFETY: see above; what is read is a copy.
        unsafe { <JsonbText as TextType>::read(datum.sans_lifetime()) }
    }
}

impl TextType for JsonbText {
    fn from_text(text: &str) -> Self {
        JsonbText(text.to_owned())
    }

    fn into_text(self) -> String {
        self.0
    }

    unsafe fn read(datum: pg_sys::Datum) -> Self {
        JsonbText(StoredJsonb(datum).text().ok_or_else(too_long_as_text).or_raise())
    }

    fn write(self) -> pg_sys::Datum {
        expect_length(self.0.len()).or_raise();
        memory::assure(self.0.len());
        let text = std::ffi::CString::new(self.0).expect("JSON escapes NUL");
        // SAFETY: jsonb_in takes a C string and copies what it keeps of it.
        unsafe {
            pgrx::direct_function_call_as_datum(
                pg_sys::jsonb_in,
                &[Some(pg_sys::Datum::from(text.as_ptr()))],
            )
        }
        .expect("jsonb_in returns a value")
    }
}

/// The longest text that is made of a json or a jsonb, in bytes.
pub const MAX_JSON_TEXT_BYTES: usize = 64 * 1024 * 1024;

/// How many times its own size the text of a jsonb may be, beyond so many bytes: a number of 6 bytes may be written out
/// in 131 072, and who stores some is not who writes them out.
const MAX_GROWTH: usize = 32;
const FREE_BYTES: usize = 1024 * 1024;

fn too_long_as_text() -> SqlError {
    SqlError::new(
        PgSqlErrorCode::ERRCODE_PROGRAM_LIMIT_EXCEEDED,
        format!(
            "jsonb is longer as text than {MAX_JSON_TEXT_BYTES} bytes, or than {MAX_GROWTH} times its size and \
             {FREE_BYTES} bytes"
        ),
    )
    .word(Word::ResultTooLong)
    .hint("Give a shorter document; a number such as 1e100000 is written out.")
}

/// An argument of the SQL type `jsonb` as it is stored.
#[derive(Clone, Copy)]
pub struct StoredJsonb(pg_sys::Datum);

impl StoredJsonb {
    /// The value of a datum that is not NULL.
    ///
    /// # Safety
    /// It is of type jsonb, or of a domain over it.
    pub unsafe fn of(datum: pg_sys::Datum) -> Self {
        StoredJsonb(datum)
    }

    /// Its JSON text; `None` where that is too long.
    ///
    /// Raises 22021 where it is not text.
    pub fn text(self) -> Option<String> {
        self.with_bytes(|bytes| checked(bytes).or_raise().to_owned())
    }

    /// As [`StoredJsonb::text`], with U+FFFD in place of what is not UTF-8.
    pub fn shown_text(self) -> Option<String> {
        self.with_bytes(|bytes| replaced(bytes).into_owned())
    }

    /// What `read` makes of its JSON text, whose bytes need not be UTF-8; `None` where that is too long, which is found
    /// out without making it.
    pub fn with_bytes<T>(self, read: impl FnOnce(&[u8]) -> T) -> Option<T> {
        (!self.is_too_long()).then(|| {
            // SAFETY: it is made of a jsonb, which is what jsonb_out takes; its result is a C string of this memory
            // context, freed once.
            unsafe {
                let text = pgrx::direct_function_call::<&std::ffi::CStr>(
                    pg_sys::jsonb_out,
                    &[Some(self.0)],
                )
                .expect("jsonb_out returns a string");
                memory::assure(text.count_bytes());
                let result = read(text.to_bytes());
                pg_sys::pfree(text.as_ptr().cast_mut().cast());
                result
            }
        })
    }

    fn is_too_long(self) -> bool {
        let (mut bytes, mut tokens) = (0, JsonbTokens::of(self));
        // SAFETY: it is a jsonb, whose size without compression this is.
        let size = unsafe { pg_sys::toast_raw_datum_size(self.0) };
        let most = MAX_JSON_TEXT_BYTES.min(FREE_BYTES + MAX_GROWTH * size);
        while let Some((_, value)) = tokens.next() {
            // What commas add is not counted.
            bytes += value.map_or(1, |value| match value.type_ {
                pg_sys::jbvType::jbvString => string_bytes(value),
                pg_sys::jbvType::jbvNumeric => number_bytes(value),
                _ => 4,
            });
            if bytes > most {
                return true;
            }
        }
        false
    }

    /// As [`StoredJsonb::shown_text`], for who looks it through: null stands for each number that is written out in
    /// more than [`MAX_NUMBER_BYTES`], and a value by itself stands in an array.
    pub fn text_to_look_through(self) -> Option<String> {
        let (mut state, mut whole) = (null_mut(), null_mut());
        let mut tokens = JsonbTokens::of(self);
        while let Some((token, value)) = tokens.next() {
            let value = value.map(|value| {
                if value.type_ == pg_sys::jbvType::jbvNumeric
                    && number_bytes(value) > MAX_NUMBER_BYTES
                {
                    value.type_ = pg_sys::jbvType::jbvNull;
                }
                std::ptr::from_mut(value)
            });
            // SAFETY: the tokens are those of a jsonb, in their order. What they make is of this memory context.
            whole = unsafe {
                pg_sys::pushJsonbValue(&raw mut state, token, value.unwrap_or(null_mut()))
            };
        }
        // SAFETY: the last token has made the whole value, whose parts are where `tokens` reads them.
        StoredJsonb(pg_sys::Datum::from(unsafe { pg_sys::JsonbValueToJsonb(whole) })).shown_text()
    }
}

/// The longest number, in bytes, that is written out to be looked through: those of a provenance are shorter.
const MAX_NUMBER_BYTES: usize = 64;

/// The tokens of a jsonb, by the server's iterator.
struct JsonbTokens {
    stored: *mut pg_sys::varlena,
    /// A copy that is freed with this, or the same.
    jsonb: *mut pg_sys::varlena,
    iterator: *mut pg_sys::JsonbIterator,
    value: pg_sys::JsonbValue,
}

impl JsonbTokens {
    fn of(StoredJsonb(datum): StoredJsonb) -> Self {
        let stored = datum.cast_mut_ptr();
        // SAFETY: a jsonb is read after detoasting. The iterator reads within it, and frees itself at its end; else it
        // ends with the memory context of the call. Zeros are a value of the type null.
        unsafe {
            let jsonb = pg_sys::pg_detoast_datum(stored);
            let root = &raw mut (*jsonb.cast::<pg_sys::Jsonb>()).root;
            let iterator = pg_sys::JsonbIteratorInit(root);
            JsonbTokens { stored, jsonb, iterator, value: std::mem::zeroed() }
        }
    }

    /// The next one, with its value where it is a key or a value that has no tokens in it; `None` at the end.
    fn next(
        &mut self,
    ) -> Option<(pg_sys::JsonbIteratorToken::Type, Option<&mut pg_sys::JsonbValue>)> {
        use pg_sys::JsonbIteratorToken::{WJB_DONE, WJB_ELEM, WJB_KEY, WJB_VALUE};
        check_interrupts();
        // SAFETY: the iterator has not ended.
        let token = unsafe {
            pg_sys::JsonbIteratorNext(&raw mut self.iterator, &raw mut self.value, false)
        };
        (token != WJB_DONE).then(|| {
            let is_value = matches!(token, WJB_KEY | WJB_VALUE | WJB_ELEM);
            (token, is_value.then_some(&mut self.value))
        })
    }
}

impl Drop for JsonbTokens {
    fn drop(&mut self) {
        if self.jsonb != self.stored {
            // SAFETY: the copy that the detoaster made.
            unsafe { pg_sys::pfree(self.jsonb.cast()) };
        }
    }
}

/// In how many bytes a string is written out.
fn string_bytes(value: &pg_sys::JsonbValue) -> usize {
    // SAFETY: the caller has looked at the type.
    let string = unsafe {
        let string = value.val.string;
        std::slice::from_raw_parts(string.val.cast::<u8>(), string.len as usize)
    };
    2 + escaped_bytes(string)
}

/// In how many bytes a number is written out at least. It is not: that takes as long as the number is.
fn number_bytes(value: &pg_sys::JsonbValue) -> usize {
    // SAFETY: the caller has looked at the type. The server sends the number of digits to the base of 10 000, the place
    // of the first, the sign and the number of decimals after the point, two bytes each.
    unsafe {
        let number = pg_sys::Datum::from(value.val.numeric);
        let sent = pgrx::direct_function_call_as_datum(pg_sys::numeric_send, &[Some(number)])
            .expect("numeric_send returns bytes");
        let (place, decimals) = with_bytes(sent, |sent| {
            let two = |first: usize| u16::from_be_bytes([sent[first], sent[first + 1]]);
            (two(2) as i16, usize::from(two(6)))
        });
        pg_sys::pfree(sent.cast_mut_ptr());
        1 + 4 * place.max(0) as usize + decimals
    }
}

impl FromDatum for StoredJsonb {
    unsafe fn from_polymorphic_datum(
        datum: pg_sys::Datum,
        is_null: bool,
        _typoid: pg_sys::Oid,
    ) -> Option<Self> {
        (!is_null).then_some(StoredJsonb(datum))
    }
}

// SAFETY: NULL does not reach a plain argument, as functions that have one are STRICT.
unsafe impl<'fcx> pgrx::callconv::ArgAbi<'fcx> for StoredJsonb {
    unsafe fn unbox_arg_unchecked(arg: pgrx::callconv::Arg<'_, 'fcx>) -> Self {
        // SAFETY: the declared SQL type of the argument is jsonb.
        unsafe { arg.unbox_arg_using_from_datum() }.expect("a strict argument is not NULL")
    }
}

// SAFETY: jsonb is the server's own type.
unsafe impl SqlTranslatable for StoredJsonb {
    const TYPE_IDENT: &'static str = "graph_kernel::pg::sql::types::StoredJsonb";
    const TYPE_ORIGIN: TypeOrigin = TypeOrigin::External;
    const ARGUMENT_SQL: Result<SqlMappingRef, ArgumentError> = Ok(SqlMappingRef::literal("jsonb"));
    const RETURN_SQL: Result<ReturnsRef, ReturnsError> =
        Ok(ReturnsRef::One(SqlMappingRef::literal("jsonb")));
}

/// The SQL type `slice_policy`: its canonical JSON text.
pub struct Policy(pub SlicePolicy);

impl TextType for Policy {
    fn from_text(text: &str) -> Self {
        Policy(text.parse().or_raise())
    }

    fn into_text(self) -> String {
        self.0.canonical_text()
    }
}

impl Policy {
    /// The policy of an argument. NULL is an error, so that an unset parameter does not give an empty result.
    ///
    /// # Errors
    /// 22004 for NULL.
    pub fn required(given: Option<Self>) -> Result<SlicePolicy, SqlError> {
        given.map(|policy| policy.0).ok_or_else(|| null_policy("a preset"))
    }
}

/// The SQL type `chunking_policy`: its canonical JSON text.
pub struct ChunkPolicy(pub ChunkingPolicy);

impl TextType for ChunkPolicy {
    fn from_text(text: &str) -> Self {
        ChunkPolicy(text.parse::<ChunkingPolicy>().map_err(chunking_policy_error).or_raise())
    }

    fn into_text(self) -> String {
        self.0.canonical_text()
    }
}

impl ChunkPolicy {
    /// As [`Policy::required`].
    ///
    /// # Errors
    /// 22004 for NULL.
    pub fn required(given: Option<Self>) -> Result<ChunkingPolicy, SqlError> {
        given.map(|policy| policy.0).ok_or_else(|| null_policy("default"))
    }
}

fn null_policy(name: &str) -> SqlError {
    SqlError::new(PgSqlErrorCode::ERRCODE_NULL_VALUE_NOT_ALLOWED, "policy must not be null")
        .word(Word::InvalidPolicy)
        .hint(format!(
            "Leave the argument out for the default policy, or give {name} or a JSON object."
        ))
}

/// The largest number of ids in an argument.
const MAX_IDS: usize = 1_000_000;

/// Refuses an argument of too many ids.
///
/// # Errors
/// 54000 when it is more than [`MAX_IDS`].
pub fn expect_few_ids(ids: usize) -> Result<(), SqlError> {
    if ids > MAX_IDS {
        return Err(SqlError::new(
            PgSqlErrorCode::ERRCODE_PROGRAM_LIMIT_EXCEEDED,
            format!("array of {ids} ids is longer than {MAX_IDS}"),
        )
        .word(Word::TooManyIds)
        .hint("Call the function for a part of them at a time."));
    }
    Ok(())
}

/// The ids of an argument, in their order.
///
/// # Errors
/// As [`expect_few_ids`].
pub fn turn_ids(array: &Array<'_, pgrx::Uuid>) -> Result<Vec<Option<TurnId>>, SqlError> {
    expect_few_ids(array.len())?;
    // While the list grows there are two, of which the larger may have room for twice as many; then it is copied.
    memory::assure(4 * size_of::<Option<TurnId>>() * array.len());
    Ok(array.iter().map(|id| id.map(from_sql_uuid)).collect())
}

/// As [`turn_ids`], without the NULLs.
///
/// # Errors
/// As [`turn_ids`].
pub fn present_ids(array: &Array<'_, pgrx::Uuid>) -> Result<Vec<TurnId>, SqlError> {
    Ok(turn_ids(array)?.into_iter().flatten().collect())
}

/// Makes a type the result of SQL functions.
macro_rules! sql_result {
    ($rust:ident, $sql:literal, |$value:ident| $write:expr) => {
        impl IntoDatum for $rust {
            fn into_datum(self) -> Option<pg_sys::Datum> {
                let $value = self;
                Some($write)
            }

            fn type_oid() -> pg_sys::Oid {
                pgrx::wrappers::regtypein($sql)
            }
        }

        // SAFETY: the datum is the value IntoDatum makes, of the declared SQL type.
        unsafe impl pgrx::callconv::BoxRet for $rust {
            unsafe fn box_into<'fcx>(
                self,
                fcinfo: &mut pgrx::callconv::FcInfo<'fcx>,
            ) -> pgrx::datum::Datum<'fcx> {
                match self.into_datum() {
                    // SAFETY: see above.
                    Some(datum) => unsafe { fcinfo.return_raw_datum(datum) },
                    None => fcinfo.return_null(),
                }
            }
        }

        // SAFETY: a type of this name exists before any function that uses it is created.
        unsafe impl SqlTranslatable for $rust {
            const TYPE_IDENT: &'static str =
                concat!("graph_kernel::pg::sql::types::", stringify!($rust));
            const TYPE_ORIGIN: TypeOrigin = TypeOrigin::External;
            const ARGUMENT_SQL: Result<SqlMappingRef, ArgumentError> =
                Ok(SqlMappingRef::literal($sql));
            const RETURN_SQL: Result<ReturnsRef, ReturnsError> =
                Ok(ReturnsRef::One(SqlMappingRef::literal($sql)));
        }
    };
}

/// Makes a [`TextType`] an argument and a result of SQL functions.
macro_rules! sql_text_type {
    ($rust:ident, $sql:literal) => {
        sql_result!($rust, $sql, |value| TextType::write(value));

        impl FromDatum for $rust {
            unsafe fn from_polymorphic_datum(
                datum: pg_sys::Datum,
                is_null: bool,
                _typoid: pg_sys::Oid,
            ) -> Option<Self> {
                // SAFETY: the datum is of the SQL type named here.
                if is_null { None } else { Some(unsafe { <Self as TextType>::read(datum) }) }
            }
        }

        // SAFETY: read through FromDatum; NULL does not reach a plain argument, as functions that
        // have one are STRICT.
        unsafe impl<'fcx> pgrx::callconv::ArgAbi<'fcx> for $rust {
            unsafe fn unbox_arg_unchecked(arg: pgrx::callconv::Arg<'_, 'fcx>) -> Self {
                // SAFETY: the declared SQL type of the argument is the one named here.
                unsafe { arg.unbox_arg_using_from_datum() }.expect("a strict argument is not NULL")
            }
        }
    };
}

sql_result!(Text, "text", |text| text_datum(&text.0).or_raise());
sql_result!(TextOrStored, "text", |result| match result {
    TextOrStored::Text(text) => text_datum(&text).or_raise(),
    TextOrStored::Stored(argument) => argument.datum(),
});
sql_result!(Name, "name", |name| name.write());
sql_result!(JsonText, "json", |json| text_datum(&json.0).or_raise());
sql_text_type!(JsonbText, "jsonb");
sql_text_type!(Policy, "slice_policy");
sql_text_type!(ChunkPolicy, "chunking_policy");

/// The text that a type's receive function is given.
///
/// Raises 22021 where it is not text.
pub fn message_text(message: pgrx::Internal) -> String {
    // SAFETY: a receive function's first argument points to a StringInfo; pq_getmsgtext returns
    // `length` bytes in the server's encoding, palloc'ed.
    let bytes = unsafe {
        let buffer = message
            .unwrap()
            .map(|datum| datum.cast_mut_ptr::<pgrx::pg_sys::StringInfoData>())
            .expect("a receive function is called with a message");
        let mut length = 0;
        let rest = (*buffer).len - (*buffer).cursor;
        let text = pgrx::pg_sys::pq_getmsgtext(buffer, rest, &mut length);
        std::slice::from_raw_parts(text.cast::<u8>(), length as usize)
    };
    memory::assure(bytes.len());
    checked(bytes).or_raise().to_owned()
}

/// The SQL uuid of a turn.
pub fn to_sql_uuid(id: TurnId) -> pgrx::Uuid {
    pgrx::Uuid::from_bytes(*id.as_bytes())
}

/// The turn of a SQL uuid.
pub fn from_sql_uuid(id: pgrx::Uuid) -> TurnId {
    TurnId::from_bytes(*id.as_bytes())
}
