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
use crate::json::canonical::escaped_bytes;
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
            Self::TooLarge => write!(
                f,
                "the document is longer than {MAX_EXPORT_BYTES} bytes, or than {MAX_GROWTH} times the bytes that it is \
                 packed in"
            ),
            Self::OutOfMemory => write!(f, "out of memory in zstd"),
        }
    }
}

impl std::error::Error for BinaryError {}

/// How many times as long as the bytes that it is packed in a document's JSON may be, beside [`FREE_BYTES`]. A turn
/// takes three bytes at least, as no two are the same, and as JSON little more than the 4 KiB of its session's name.
const MAX_GROWTH: usize = 2048;

/// How long the JSON of a document may be, however few bytes it is packed in.
const FREE_BYTES: usize = 1 << 20;

/// How long the JSON of a document may be that is packed in so many bytes: reading it takes no longer than they
/// suggest.
fn most_of_packed(bytes: usize) -> usize {
    MAX_EXPORT_BYTES.min(bytes.saturating_mul(MAX_GROWTH).saturating_add(FREE_BYTES))
}

/// A document in few bytes. `check_interrupts` is called often.
///
/// # Errors
/// [`BinaryError::TooLarge`], also where so few bytes are not read again; [`BinaryError::OutOfMemory`];
/// [`BinaryError::Malformed`] where a document that was read to be shown lacks a fingerprint, which canonical documents
/// have.
pub fn pack(document: &Document, check_interrupts: &dyn Fn()) -> Result<Vec<u8>, BinaryError> {
    let packed = frame::compressed(&to_cbor(document, check_interrupts)?, check_interrupts)?;
    Extent::of(document).expect_within(most_of_packed(packed.len()))?;
    Ok(packed)
}

/// The document that was packed. Nothing is checked but its form, as [`Document::parse`] does.
///
/// # Errors
/// See [`BinaryError`]. No more memory is taken before than a document of [`MAX_EXPORT_BYTES`] takes, and no more than
/// 2048 times as many bytes and 1 MiB, whatever they say.
pub fn unpack(bytes: &[u8], check_interrupts: &dyn Fn()) -> Result<Document, BinaryError> {
    let most = most_of_packed(bytes.len());
    from_cbor_within(&frame::decompressed(bytes, most, check_interrupts)?, most, check_interrupts)
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
    from_cbor_within(cbor, MAX_EXPORT_BYTES, check_interrupts)
}

fn from_cbor_within(
    cbor: &[u8],
    most: usize,
    check_interrupts: &dyn Fn(),
) -> Result<Document, BinaryError> {
    let document = decode::document(cbor, most, check_interrupts)?;
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
    fn of(document: &Document) -> Self {
        let Document { export, record } = document;
        Extent {
            turns: export.turns.len(),
            edges: export.edges.len(),
            messages: record.as_ref().map_or(0, |record| record.messages.len()),
            names: export.turns.iter().map(|turn| escaped_bytes(turn.session_id.as_bytes())).sum(),
        }
    }

    /// Refuses what no document whose JSON has so many bytes at most holds.
    fn expect_within(&self, most: usize) -> Result<(), BinaryError> {
        let Extent { turns, edges, messages, names } = *self;
        let least = [(turns, 256), (edges, 96), (messages, 128), (names, 1)]
            .into_iter()
            .try_fold(0usize, |sum, (count, bytes)| sum.checked_add(count.checked_mul(bytes)?));
        match least {
            Some(least) if least <= most => Ok(()),
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
