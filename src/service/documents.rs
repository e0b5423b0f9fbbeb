//! Documents in few bytes, and back.

use kernel::binary::{BinaryError, pack, unpack};
use kernel::prompt::record::Document;
use pgrx::PgSqlErrorCode;

use crate::pg::error::{SqlError, Word, out_of_memory};
use crate::pg::interrupts::check_interrupts;
use crate::pg::shortage::memory;

/// An export or a record in few bytes. Only its form is checked.
///
/// # Errors
/// 22023 where it is neither; 54000 where it is too large.
pub fn packed(document: &str) -> Result<Vec<u8>, SqlError> {
    memory::assure(document.len());
    let document = Document::parse(document, &check_interrupts).map_err(|why| {
        SqlError::new(
            PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
            format!("the document is neither a slice export nor a record of a prompt: {why}"),
        )
        .word(Word::InvalidExport)
        .hint("Give what graph_slice or graph_messages_record returned.")
    })?;
    packed_document(&document)
}

/// A document in few bytes.
///
/// # Errors
/// 54000 where it is too large.
pub fn packed_document(document: &Document) -> Result<Vec<u8>, SqlError> {
    pack(document, &check_interrupts).map_err(refused)
}

/// The document that was packed; `None` where the bytes are not those of one.
///
/// # Errors
/// 0A000 where a later version has made them; 54000 where it is too large.
pub fn unpacked_if_whole(bytes: &[u8]) -> Result<Option<Document>, SqlError> {
    match unpack(bytes, &check_interrupts) {
        Ok(document) => Ok(Some(document)),
        Err(BinaryError::NotPacked | BinaryError::Malformed(_)) => Ok(None),
        Err(error) => Err(refused(error)),
    }
}

/// The canonical text of a document that was packed.
///
/// # Errors
/// 22P03 where the bytes are not those of one; 0A000 where a later version has made them.
pub fn unpacked(bytes: &[u8]) -> Result<String, SqlError> {
    let document = unpack(bytes, &check_interrupts).map_err(refused)?;
    Ok(document.canonical_text(&check_interrupts))
}

fn refused(error: BinaryError) -> SqlError {
    let (code, word, hint) = match error {
        BinaryError::OutOfMemory => return out_of_memory(),
        BinaryError::TooLarge => (
            PgSqlErrorCode::ERRCODE_PROGRAM_LIMIT_EXCEEDED,
            Word::SliceTooLarge,
            "Keep documents of smaller slices: a policy with fewer max_nodes makes them.",
        ),
        BinaryError::UnknownVersion(..) => (
            PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED,
            Word::InvalidBytes,
            "Read them with the version of graph_kernel that made them, or a later one.",
        ),
        BinaryError::NotPacked | BinaryError::Malformed(_) => (
            PgSqlErrorCode::ERRCODE_INVALID_BINARY_REPRESENTATION,
            Word::InvalidBytes,
            "Give what graph_document_bytes returned.",
        ),
    };
    SqlError::new(code, error.to_string()).word(word).hint(hint)
}
