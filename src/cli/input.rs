//! Reading the files that are named.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use kernel::export::parse::{MAX_EXPORT_BYTES, ParsedExport};
use kernel::prompt::record::Document;

use crate::Failure;

/// The text of a file, or of the standard input for `-`. A file that is longer than any slice is not read to its end.
pub(crate) fn read_text(path: &Path) -> Result<String, Failure> {
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
    String::from_utf8(bytes).map_err(|_| format!("{}: not UTF-8", path.display()))
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
    ParsedExport::parse_whole(&read_text(path)?, &|| {})
        .map_err(|why| format!("{}: not a slice export: {why}", path.display()))
}

/// The slice or the record of a prompt in a file.
pub(crate) fn read_document(path: &Path) -> Result<Document, Failure> {
    Document::parse_whole(&read_text(path)?, &|| {}).map_err(|why| {
        format!("{}: neither a slice export nor a record of a prompt: {why}", path.display())
    })
}
