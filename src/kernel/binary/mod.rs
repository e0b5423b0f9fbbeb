//! Documents in few bytes: an export, or a record of a prompt with its export, as columns in deterministic CBOR,
//! compressed by zstd (docs/binary.md). What is unpacked is the canonical form of what was packed, to the byte.
//!
//! The bytes of one document differ between versions of zstd: they are neither hashed nor compared.

mod cbor;
mod decode;
mod encode;
mod frame;

use std::fmt;

pub use frame::is_packed;

use crate::export::parse::{MAX_EXPORT_BYTES, ParsedExport};
use crate::prompt::record::Document;

/// Why bytes are not made, or not read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BinaryError {
    /// They do not begin as packed documents do.
    NotPacked,
    /// They have another format or version than those that are known here.
    UnknownVersion(u8, u8),
    /// They are not what packing makes: a sentence.
    Malformed(String),
    /// The document is larger than a document may be.
    TooLarge,
    /// There was no memory to compress or to decompress.
    OutOfMemory,
}

impl fmt::Display for BinaryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotPacked => write!(f, "the bytes do not begin as those of documents do"),
            Self::UnknownVersion(format, version) => {
                write!(
                    f,
                    "the bytes have format {format}, version {version}, which are not known here"
                )
            }
            Self::Malformed(what) => write!(f, "the bytes are not those of a document: {what}"),
            Self::TooLarge => write!(f, "the document is longer than {MAX_EXPORT_BYTES} bytes"),
            Self::OutOfMemory => write!(f, "out of memory in zstd"),
        }
    }
}

impl std::error::Error for BinaryError {}

/// A document in few bytes. `check_interrupts` is called often.
///
/// # Errors
/// [`BinaryError::TooLarge`], [`BinaryError::OutOfMemory`]; [`BinaryError::Malformed`] where a document that was read
/// to be shown lacks a fingerprint, which canonical documents have.
pub fn pack(document: &Document, check_interrupts: &dyn Fn()) -> Result<Vec<u8>, BinaryError> {
    frame::compressed(&to_cbor(document, check_interrupts)?, check_interrupts)
}

/// The document that was packed. Nothing is checked but its form, as [`Document::parse`] does.
///
/// # Errors
/// See [`BinaryError`]. No more memory is taken before than a document of [`MAX_EXPORT_BYTES`] takes, whatever the
/// bytes say.
pub fn unpack(bytes: &[u8], check_interrupts: &dyn Fn()) -> Result<Document, BinaryError> {
    from_cbor(&frame::decompressed(bytes, check_interrupts)?, check_interrupts)
}

/// The CBOR within packed bytes.
///
/// # Errors
/// As [`pack`].
pub fn to_cbor(document: &Document, check_interrupts: &dyn Fn()) -> Result<Vec<u8>, BinaryError> {
    encode::document(document, check_interrupts)
}

/// The document of such CBOR.
///
/// # Errors
/// As [`unpack`]. CBOR that [`to_cbor`] would spell otherwise is malformed: a document has one form.
pub fn from_cbor(cbor: &[u8], check_interrupts: &dyn Fn()) -> Result<Document, BinaryError> {
    let document = decode::document(cbor, check_interrupts)?;
    if to_cbor(&document, check_interrupts)? != cbor {
        return Err(BinaryError::Malformed("the CBOR is not in its deterministic form".to_owned()));
    }
    Ok(document)
}

/// How much of a document there is, counted in what each takes of its JSON at least.
struct Extent {
    turns: usize,
    edges: usize,
    messages: usize,
    /// The bytes of the sessions' names, of each turn, with their escapes.
    names: usize,
}

impl Extent {
    /// Refuses what no document of the greatest length holds.
    fn expect_within(&self) -> Result<(), BinaryError> {
        let Extent { turns, edges, messages, names } = *self;
        let least = [(turns, 256), (edges, 96), (messages, 128), (names, 1)]
            .into_iter()
            .try_fold(0usize, |sum, (count, bytes)| sum.checked_add(count.checked_mul(bytes)?));
        match least {
            Some(least) if least <= MAX_EXPORT_BYTES => Ok(()),
            _ => Err(BinaryError::TooLarge),
        }
    }
}

/// How many items the arrays of a document have.
const EXPORT_ITEMS: usize = 24;
const ATTESTATION_ITEMS: usize = 9;
const RECORD_ITEMS: usize = 11;

/// What tokens of slices and of prompts begin with.
const SLICE_TOKEN: &str = "gk3";
const PROMPT_TOKEN: &str = "gkp1";

/// The token without its MAC.
fn token_prefix(kind: &str, kid: &str) -> String {
    format!("{kind}.{kid}.")
}

/// The microsecond with which the second of the turn at this place begins, modulo 2⁶⁴; 0 where it is not a turn of the
/// export.
fn micros_of_turn(export: &ParsedExport, place: usize) -> i64 {
    export.turns.get(place).map_or(0, |turn| turn.created_at.wrapping_mul(1_000_000))
}
