//! Reading the files that are named.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use kernel::binary::{is_packed, unpack};
use kernel::export::parse::{MAX_EXPORT_BYTES, ParsedExport};
use kernel::prompt::record::Document;

use crate::Failure;

/// The bytes of a file, or of the standard input for `-`. A file that is longer than any slice is not read to its end.
fn read_bytes(path: &Path) -> Result<Vec<u8>, Failure> {
    let failed = |error: io::Error| format!("{}: {error}", path.display());
    let mut bytes = Vec::new();
    let limit = MAX_EXPORT_BYTES as u64 + 1;
    if path == Path::new("-") {
        io::stdin().lock().take(limit).read_to_end(&mut bytes).map_err(failed)?;
    } else {
        File::open(path)
            .and_then(|file| file.take(limit).read_to_end(&mut bytes))
            .map_err(failed)?;
    }
    if bytes.len() > MAX_EXPORT_BYTES {
        return Err(format!("{}: longer than {MAX_EXPORT_BYTES} bytes", path.display()));
    }
    Ok(bytes)
}

/// The text of a file.
pub(crate) fn read_text(path: &Path) -> Result<String, Failure> {
    as_text(read_bytes(path)?, path)
}

fn as_text(bytes: Vec<u8>, path: &Path) -> Result<String, Failure> {
    String::from_utf8(bytes).map_err(|_| format!("{}: not UTF-8", path.display()))
}

/// The JSON of a document in a file, which holds it as JSON or in few bytes.
pub(crate) fn read_json(path: &Path) -> Result<String, Failure> {
    let bytes = read_bytes(path)?;
    if !is_packed(&bytes) {
        return as_text(bytes, path);
    }
    let document = unpack(&bytes, &|| {}).map_err(|why| format!("{}: {why}", path.display()))?;
    Ok(document.canonical_text(&|| {}))
}

/// Refuses to read the standard input twice.
pub(crate) fn at_most_one_input(paths: &[&Path]) -> Result<(), Failure> {
    if paths.iter().filter(|path| **path == Path::new("-")).count() > 1 {
        return Err("only one of the files can be the standard input".to_owned());
    }
    Ok(())
}

/// The slice in a file, whose turns and edges are in order and within it.
pub(crate) fn read_slice(path: &Path) -> Result<ParsedExport, Failure> {
    ParsedExport::parse_whole(&read_json(path)?, &|| {})
        .map_err(|why| format!("{}: not a slice export: {why}", path.display()))
}

/// The slice or the record of a prompt in a file.
pub(crate) fn read_document(path: &Path) -> Result<Document, Failure> {
    Document::parse_whole(&read_json(path)?, &|| {}).map_err(|why| {
        format!("{}: neither a slice export nor a record of a prompt: {why}", path.display())
    })
}
