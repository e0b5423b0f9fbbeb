//! What stands around the CBOR: a header of six bytes and one frame of zstd.

use std::io::Write;

use zstd_safe::zstd_sys::{ZSTD_EndDirective, ZSTD_ErrorCode};
use zstd_safe::{CCtx, CParameter, DCtx, DParameter, InBuffer, OutBuffer};

use super::BinaryError;
use super::cbor::malformed;
use crate::interrupts::CHECKED_BYTES;

/// What packed documents begin with. The first byte begins no JSON and no UTF-8.
const MAGIC: [u8; 4] = *b"\x89GKD";

/// Columns in deterministic CBOR, compressed by zstd.
const FORMAT: u8 = 1;

/// The version of the columns.
const VERSION: u8 = 1;

const HEADER_BYTES: usize = MAGIC.len() + 2;

/// Higher levels make it slower, and hardly smaller: ids and hashes are random.
const LEVEL: i32 = 12;

/// The window of a frame, in which repeated bytes are found, has at most 2 to this power of bytes: 8 MiB.
const WINDOW_LOG: u32 = 23;

/// Whether these are the bytes of a packed document, of this or another version.
#[must_use]
pub fn is_packed(bytes: &[u8]) -> bool {
    bytes.starts_with(&MAGIC)
}

pub(super) fn compressed(cbor: &[u8], check_interrupts: &dyn Fn()) -> Result<Vec<u8>, BinaryError> {
    let mut context = CCtx::try_create().ok_or(BinaryError::OutOfMemory)?;
    for parameter in [
        CParameter::CompressionLevel(LEVEL),
        CParameter::WindowLog(WINDOW_LOG),
        CParameter::ChecksumFlag(true),
    ] {
        context.set_parameter(parameter).map_err(zstd_error)?;
    }
    context.set_pledged_src_size(Some(cbor.len() as u64)).map_err(zstd_error)?;
    let mut made = Vec::with_capacity(HEADER_BYTES + cbor.len() / 2);
    made.extend_from_slice(&MAGIC);
    made.extend_from_slice(&[FORMAT, VERSION]);
    let mut piece = Vec::with_capacity(CHECKED_BYTES);
    let mut pieces = cbor.chunks(CHECKED_BYTES).peekable();
    let mut input = pieces.next().unwrap_or_default();
    loop {
        let is_last = pieces.peek().is_none();
        let directive = match is_last {
            true => ZSTD_EndDirective::ZSTD_e_end,
            false => ZSTD_EndDirective::ZSTD_e_continue,
        };
        let mut source = InBuffer::around(input);
        loop {
            check_interrupts();
            piece.clear();
            let mut target = OutBuffer::around(&mut piece);
            let left = context.compress_stream2(&mut target, &mut source, directive);
            let left = left.map_err(zstd_error)?;
            made.write_all(target.as_slice()).expect("a Vec takes all bytes");
            let is_read = source.pos() == input.len();
            if is_read && (!is_last || left == 0) {
                break;
            }
        }
        match pieces.next() {
            Some(next) => input = next,
            None => return Ok(made),
        }
    }
}

/// What was compressed: at most so many bytes, which are never more than those of its JSON.
pub(super) fn decompressed(
    bytes: &[u8],
    most: usize,
    check_interrupts: &dyn Fn(),
) -> Result<Vec<u8>, BinaryError> {
    let (Some(header), true) = (bytes.get(..HEADER_BYTES), is_packed(bytes)) else {
        return Err(BinaryError::NotPacked);
    };
    if header[MAGIC.len()..] != [FORMAT, VERSION] {
        return Err(BinaryError::UnknownVersion(header[4], header[5]));
    }
    let frame = &bytes[HEADER_BYTES..];
    let size = match zstd_safe::get_frame_content_size(frame) {
        Ok(Some(size)) => size,
        _ => return Err(malformed("no frame of zstd with its size follows the header")),
    };
    if size > most as u64 {
        return Err(BinaryError::TooLarge);
    }
    let mut context = DCtx::try_create().ok_or(BinaryError::OutOfMemory)?;
    context.set_parameter(DParameter::WindowLogMax(WINDOW_LOG)).map_err(zstd_error)?;
    let mut cbor = Vec::new();
    let mut piece = Vec::with_capacity(CHECKED_BYTES);
    let mut source = InBuffer::around(frame);
    loop {
        check_interrupts();
        piece.clear();
        let before = source.pos();
        let mut target = OutBuffer::around(&mut piece);
        let left = context.decompress_stream(&mut target, &mut source).map_err(zstd_error)?;
        // zstd itself refuses more than the frame announces.
        cbor.extend_from_slice(target.as_slice());
        if left == 0 {
            break;
        }
        if source.pos() == before && piece.is_empty() {
            return Err(malformed("the frame of zstd ends early"));
        }
    }
    if source.pos() < frame.len() {
        return Err(malformed("bytes follow the frame of zstd"));
    }
    if cbor.len() as u64 != size {
        return Err(malformed("the frame of zstd has another size than it says"));
    }
    Ok(cbor)
}

fn zstd_error(code: usize) -> BinaryError {
    if code.wrapping_neg() == ZSTD_ErrorCode::ZSTD_error_memory_allocation as usize {
        return BinaryError::OutOfMemory;
    }
    BinaryError::Malformed(format!("zstd: {}", zstd_safe::get_error_name(code)))
}
