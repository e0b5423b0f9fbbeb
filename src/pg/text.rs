//! Texts of the server. A value of type text can hold any bytes. PostgreSQL does not check settings of the startup
//! packet, names made in databases of other encodings, and what these are stored in. What comes in is checked or
//! replaced here, what goes out is not longer than a value may be.

use std::borrow::Cow;
use std::ffi::CStr;
use std::fmt::Write;
use std::ops::Deref;

use kernel::graph::content::sha256_hex;
use pgrx::callconv::{Arg, ArgAbi};
use pgrx::datum::{Datum, UnboxDatum};
use pgrx::pgrx_sql_entity_graph::metadata::{
    ArgumentError, ReturnsError, ReturnsRef, SqlMappingRef, SqlTranslatable, TypeOrigin,
};
use pgrx::{FromDatum, PgSqlErrorCode, pg_sys};

use crate::pg::error::{OrRaise, SqlError, Word};
use crate::pg::interrupts::check_interrupts;
use crate::pg::shortage::memory;

/// The most bytes of a text: those of an allocation (MaxAllocSize) without the header.
pub const MAX_TEXT_BYTES: usize = 0x3fff_ffff - pg_sys::VARHDRSZ;

/// These bytes as text.
///
/// # Errors
/// 22021, worded as the server words it, where they are not UTF-8 or hold a NUL byte.
pub fn checked(bytes: &[u8]) -> Result<&str, SqlError> {
    let wrong = match utf8(bytes) {
        Ok(text) if !bytes.contains(&0) => return Ok(text),
        // A text of the server never holds it; a name or a statement could not be made of it.
        Ok(_) => bytes.iter().position(|byte| *byte == 0).unwrap_or_default(),
        Err(wrong) => wrong,
    };
    Err(not_text(&bytes[wrong..]))
}

/// As [`checked`], of bytes that are the caller's own.
///
/// # Errors
/// As [`checked`].
pub fn checked_owned(bytes: Vec<u8>) -> Result<String, SqlError> {
    checked(&bytes)?;
    Ok(String::from_utf8(bytes).expect("it was checked"))
}

/// Interrupts are checked once in so many bytes.
const PIECE: usize = 64 * 1024;

/// These bytes as text; else where the first sequence begins that is not UTF-8. A long value can be cancelled.
fn utf8(bytes: &[u8]) -> Result<&str, usize> {
    let mut read = 0;
    while bytes.len() - read > PIECE {
        check_interrupts();
        match std::str::from_utf8(&bytes[read..read + PIECE]) {
            Ok(_) => read += PIECE,
            // The piece ends within a character.
            Err(error) if error.error_len().is_none() => read += error.valid_up_to(),
            Err(error) => return Err(read + error.valid_up_to()),
        }
    }
    match std::str::from_utf8(&bytes[read..]) {
        // SAFETY: the pieces follow each other, and each is UTF-8.
        Ok(_) => Ok(unsafe { std::str::from_utf8_unchecked(bytes) }),
        Err(error) => Err(read + error.valid_up_to()),
    }
}

/// The error for bytes of which the first sequence is wrong. The server names as many bytes as the first one announces.
fn not_text(bytes: &[u8]) -> SqlError {
    let announced = match bytes.first() {
        Some(0xc0..=0xdf) => 2,
        Some(0xe0..=0xef) => 3,
        Some(0xf0..=0xf7) => 4,
        _ => 1,
    };
    let mut message = "invalid byte sequence for encoding \"UTF8\":".to_owned();
    for byte in bytes.iter().take(announced) {
        write!(message, " 0x{byte:02x}").expect("a String takes any text");
    }
    SqlError::new(PgSqlErrorCode::ERRCODE_CHARACTER_NOT_IN_REPERTOIRE, message)
        .word(Word::InvalidText)
        .hint("Give UTF-8: the server does not check settings of a connection's start, nor what was made of them.")
}

/// These bytes as text, with U+FFFD for what is not UTF-8.
pub fn replaced(bytes: &[u8]) -> Cow<'_, str> {
    // The lossy conversion looks at each byte, this one at eight.
    utf8(bytes).map_or_else(
        |_| {
            memory::assure(4 * bytes.len());
            String::from_utf8_lossy(bytes)
        },
        Cow::Borrowed,
    )
}

/// The name of a role or a database as it is signed and shown. One that was made in a database of another encoding may
/// not be UTF-8. It then has U+FFFD for what is not, and the SHA-256 of its bytes, so that no two names are the same.
/// No other name is as long.
pub fn shared_name(name: &CStr) -> String {
    let bytes = name.to_bytes();
    match std::str::from_utf8(bytes) {
        Ok(name) => name.to_owned(),
        Err(_) => format!("{} sha256:{}", String::from_utf8_lossy(bytes), sha256_hex(bytes)),
    }
}

/// Passes the bytes of a value to `read`.
///
/// # Safety
/// The datum is not NULL, and of a type that is laid out as text.
pub unsafe fn with_bytes<T>(datum: pg_sys::Datum, read: impl FnOnce(&[u8]) -> T) -> T {
    let stored: *mut pg_sys::varlena = datum.cast_mut_ptr();
    // SAFETY: a text is a varlena; one that is compressed or stored elsewhere is copied by the detoaster, and the copy
    // is freed here. An error on the way leaves it to the memory context.
    unsafe {
        let text = detoasted(stored);
        let result = read(varlena_bytes(text));
        if text != stored {
            pg_sys::pfree(text.cast());
        }
        result
    }
}

/// A text as a value, in the current memory context. A NUL character, which the server's texts cannot hold, becomes
/// U+FFFD.
///
/// # Errors
/// 54000 where it is longer than [`MAX_TEXT_BYTES`].
pub fn text_datum(text: &str) -> Result<pg_sys::Datum, SqlError> {
    let text = without_nul(text);
    expect_length(text.len())?;
    // SAFETY: it copies as many bytes as there are.
    Ok(unsafe { pg_sys::cstring_to_text_with_len(text.as_ptr().cast(), text.len() as i32) }.into())
}

/// Bytes as a value of type bytea, in the current memory context.
///
/// # Errors
/// 54000 where there are more than [`MAX_TEXT_BYTES`].
pub fn bytes_datum(bytes: &[u8]) -> Result<pg_sys::Datum, SqlError> {
    expect_length(bytes.len())?;
    // SAFETY: a bytea is laid out as a text; it copies as many bytes as there are.
    Ok(unsafe { pg_sys::cstring_to_text_with_len(bytes.as_ptr().cast(), bytes.len() as i32) }
        .into())
}

/// A text without NUL characters.
pub fn without_nul(text: &str) -> Cow<'_, str> {
    if text.as_bytes().contains(&0) {
        memory::assure(3 * text.len());
        text.replace('\0', "\u{fffd}").into()
    } else {
        text.into()
    }
}

/// Refuses a text that is longer than a value may be.
///
/// # Errors
/// 54000.
pub fn expect_length(bytes: usize) -> Result<(), SqlError> {
    if bytes <= MAX_TEXT_BYTES {
        return Ok(());
    }
    Err(SqlError::new(
        PgSqlErrorCode::ERRCODE_PROGRAM_LIMIT_EXCEEDED,
        format!("result of {bytes} bytes is longer than a value may be, {MAX_TEXT_BYTES} bytes"),
    )
    .word(Word::ResultTooLong)
    .hint("Ask for less at a time, or give a shorter document."))
}

/// The text itself where it is stored plainly, else a copy in the current memory context.
unsafe fn detoasted(stored: *mut pg_sys::varlena) -> *mut pg_sys::varlena {
    // SAFETY: the caller passes a varlena.
    unsafe {
        let plain = pgrx::varatt_is_4b_u(stored)
            || (pgrx::varatt_is_1b(stored) && !pgrx::varatt_is_1b_e(stored));
        if plain { stored } else { pg_sys::pg_detoast_datum_packed(stored) }
    }
}

/// The bytes of a text that is not compressed and not stored elsewhere.
unsafe fn varlena_bytes<'a>(text: *const pg_sys::varlena) -> &'a [u8] {
    // SAFETY: its length is in its header.
    unsafe {
        let length = pgrx::varsize_any_exhdr(text);
        std::slice::from_raw_parts(pgrx::vardata_any(text).cast::<u8>(), length)
    }
}

/// The text of an argument's datum.
///
/// Raises 22021.
///
/// # Safety
/// The datum is not NULL, of a type that is laid out as text, and outlives `'a`, as what the detoaster copies does.
pub unsafe fn checked_datum<'a>(datum: pg_sys::Datum) -> &'a str {
    // SAFETY: see above; the detoaster returns the value or a copy in the current memory context.
    let bytes = unsafe { varlena_bytes(detoasted(datum.cast_mut_ptr())) };
    checked(bytes).or_raise()
}

/// Makes a borrowed text of a SQL type an argument of SQL functions.
macro_rules! text_argument {
    ($(#[$meta:meta])* $rust:ident, $sql:literal, |$datum:ident| $read:expr) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug)]
        pub struct $rust<'a>(pub &'a str);

        impl Deref for $rust<'_> {
            type Target = str;

            fn deref(&self) -> &str {
                self.0
            }
        }

        impl FromDatum for $rust<'_> {
            unsafe fn from_polymorphic_datum(
                $datum: pg_sys::Datum,
                is_null: bool,
                _typoid: pg_sys::Oid,
            ) -> Option<Self> {
                // SAFETY: the argument's declared type is the one named here; what is read is valid during the call.
                if is_null { None } else { Some($rust(unsafe { $read })) }
            }
        }

        // SAFETY: read through FromDatum; NULL does not reach a plain argument, as functions that have one are STRICT.
        unsafe impl<'fcx> ArgAbi<'fcx> for $rust<'fcx> {
            unsafe fn unbox_arg_unchecked(arg: Arg<'_, 'fcx>) -> Self {
                // SAFETY: the declared SQL type of the argument is the one named here.
                unsafe { arg.unbox_arg_using_from_datum() }.expect("a strict argument is not NULL")
            }
        }

        // SAFETY: the type is the server's own.
        unsafe impl SqlTranslatable for $rust<'_> {
            const TYPE_IDENT: &'static str = concat!("graph_kernel::pg::text::", stringify!($rust));
            const TYPE_ORIGIN: TypeOrigin = TypeOrigin::External;
            const ARGUMENT_SQL: Result<SqlMappingRef, ArgumentError> = Ok(SqlMappingRef::literal($sql));
            const RETURN_SQL: Result<ReturnsRef, ReturnsError> =
                Ok(ReturnsRef::One(SqlMappingRef::literal($sql)));
        }
    };
}

text_argument!(
    /// An argument of the SQL type `text`, borrowed. Bytes that are not UTF-8 raise 22021.
    TextArg, "text", |datum| checked_datum(datum)
);
text_argument!(
    /// An argument of the SQL type `json`, borrowed: documents may be large. As [`TextArg`].
    JsonArg, "json", |datum| checked_datum(datum)
);
text_argument!(
    /// The argument of a type's input function. As [`TextArg`].
    CStringArg, "cstring", |datum| checked(CStr::from_ptr(datum.cast_mut_ptr()).to_bytes()).or_raise()
);

/// An argument of the SQL type `text`, or `json`, as it is stored, whatever its bytes are.
#[derive(Clone, Copy)]
pub struct StoredText(pg_sys::Datum);

impl StoredText {
    /// The argument itself, to be returned.
    pub fn datum(self) -> pg_sys::Datum {
        self.0
    }

    /// How many bytes it has. It is not read for that.
    pub fn bytes(self) -> usize {
        // SAFETY: it is made of an argument of a type that is stored as text is.
        let bytes = unsafe { pg_sys::toast_raw_datum_size(self.0) };
        bytes - pg_sys::VARHDRSZ
    }

    /// What `read` makes of its bytes.
    pub fn with_bytes<T>(self, read: impl FnOnce(&[u8]) -> T) -> T {
        // SAFETY: it is made of an argument of type text.
        unsafe { with_bytes(self.0, read) }
    }

    /// Its first characters, with U+FFFD for what is not UTF-8. Of a long text that is stored out of line only so much
    /// is read.
    pub fn prefix(self, chars: usize) -> String {
        let cut = |bytes: &[u8]| {
            let text = replaced(bytes);
            let mut places = text.char_indices().enumerate().inspect(|(count, _)| {
                if count.is_multiple_of(PIECE) {
                    check_interrupts();
                }
            });
            let end = places.nth(chars).map_or(text.len(), |(_, (end, _))| end);
            memory::assure(end);
            text[..end].to_owned()
        };
        // A sequence that the end of the slice cuts is beyond the last character asked for.
        let Some(bytes) = chars.checked_mul(4).filter(|bytes| *bytes < MAX_TEXT_BYTES) else {
            return self.with_bytes(cut);
        };
        // SAFETY: as above; the slice is a copy in the current memory context.
        unsafe {
            let slice = pg_sys::pg_detoast_datum_slice(self.0.cast_mut_ptr(), 0, bytes as i32 + 4);
            let cut = cut(varlena_bytes(slice));
            pg_sys::pfree(slice.cast());
            cut
        }
    }
}

impl FromDatum for StoredText {
    unsafe fn from_polymorphic_datum(
        datum: pg_sys::Datum,
        is_null: bool,
        _typoid: pg_sys::Oid,
    ) -> Option<Self> {
        (!is_null).then_some(StoredText(datum))
    }
}

// SAFETY: as TextArg.
unsafe impl<'fcx> ArgAbi<'fcx> for StoredText {
    unsafe fn unbox_arg_unchecked(arg: Arg<'_, 'fcx>) -> Self {
        // SAFETY: the declared SQL type of the argument is text.
        unsafe { arg.unbox_arg_using_from_datum() }.expect("a strict argument is not NULL")
    }
}

// SAFETY: text is the server's own type.
unsafe impl SqlTranslatable for StoredText {
    const TYPE_IDENT: &'static str = "graph_kernel::pg::text::StoredText";
    const TYPE_ORIGIN: TypeOrigin = TypeOrigin::External;
    const ARGUMENT_SQL: Result<SqlMappingRef, ArgumentError> = Ok(SqlMappingRef::literal("text"));
    const RETURN_SQL: Result<ReturnsRef, ReturnsError> =
        Ok(ReturnsRef::One(SqlMappingRef::literal("text")));
}

/// An argument of the SQL type `text`, borrowed, whatever its bytes are: reading it raises nothing that depends on
/// them, as a function that is leakproof must not.
#[derive(Clone, Copy)]
pub struct TextBytes<'a>(pub &'a [u8]);

impl FromDatum for TextBytes<'_> {
    unsafe fn from_polymorphic_datum(
        datum: pg_sys::Datum,
        is_null: bool,
        _typoid: pg_sys::Oid,
    ) -> Option<Self> {
        // SAFETY: the argument's declared type is text; what is read is valid during the call.
        (!is_null).then(|| TextBytes(unsafe { varlena_bytes(detoasted(datum.cast_mut_ptr())) }))
    }
}

// SAFETY: as TextArg.
unsafe impl<'fcx> ArgAbi<'fcx> for TextBytes<'fcx> {
    unsafe fn unbox_arg_unchecked(arg: Arg<'_, 'fcx>) -> Self {
        // SAFETY: the declared SQL type of the argument is text.
        unsafe { arg.unbox_arg_using_from_datum() }.expect("a strict argument is not NULL")
    }
}

// SAFETY: text is the server's own type.
unsafe impl SqlTranslatable for TextBytes<'_> {
    const TYPE_IDENT: &'static str = "graph_kernel::pg::text::TextBytes";
    const TYPE_ORIGIN: TypeOrigin = TypeOrigin::External;
    const ARGUMENT_SQL: Result<SqlMappingRef, ArgumentError> = Ok(SqlMappingRef::literal("text"));
    const RETURN_SQL: Result<ReturnsRef, ReturnsError> =
        Ok(ReturnsRef::One(SqlMappingRef::literal("text")));
}

// SAFETY: the element of an array of texts is a text.
unsafe impl UnboxDatum for TextBytes<'_> {
    type As<'src>
        = TextBytes<'src>
    where
        Self: 'src;

    unsafe fn unbox<'src>(datum: Datum<'src>) -> TextBytes<'src>
    where
        Self: 'src,
    {
        // SAFETY: the array's elements are texts that outlive 'src.
        TextBytes(unsafe { varlena_bytes(detoasted(datum.sans_lifetime().cast_mut_ptr())) })
    }
}

// SAFETY: the element of an array of texts is a text.
unsafe impl UnboxDatum for TextArg<'_> {
    type As<'src>
        = TextArg<'src>
    where
        Self: 'src;

    unsafe fn unbox<'src>(datum: Datum<'src>) -> TextArg<'src>
    where
        Self: 'src,
    {
        // SAFETY: the array's elements are texts that outlive 'src.
        TextArg(unsafe { checked_datum(datum.sans_lifetime()) })
    }
}

/// The text of an argument; "" for NULL.
pub fn text(json: Option<JsonArg<'_>>) -> &str {
    json.map_or("", |json| json.0)
}
