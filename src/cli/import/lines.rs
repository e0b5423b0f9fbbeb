//! Files with a record on each line.

use std::io::{BufRead, Read};

use super::formats::Stop;
use super::json::MAX_VALUE_BYTES;

/// A line without its end, or why it was skipped.
pub(super) enum Line<'a> {
    Text(&'a [u8]),
    TooLong(String),
}

/// Calls `read` with each line that is not blank and its number, counted from 1. Lines longer than
/// [`MAX_VALUE_BYTES`] are not held in memory.
pub(super) fn each_line(
    mut source: impl BufRead,
    read: &mut dyn FnMut(u64, Line) -> Result<(), Stop>,
) -> Result<(), Stop> {
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        let unreadable = |error: std::io::Error| Stop::Unreadable((number, 0), error.to_string());
        let limit = MAX_VALUE_BYTES as u64 + 1;
        if source.by_ref().take(limit).read_until(b'\n', &mut line).map_err(unreadable)? == 0 {
            break;
        }
        if line.len() as u64 == limit && line.last() != Some(&b'\n') {
            source.skip_until(b'\n').map_err(unreadable)?;
            read(
                number,
                Line::TooLong(format!("the line is longer than {MAX_VALUE_BYTES} bytes")),
            )?;
        } else if !line.trim_ascii().is_empty() {
            read(number, Line::Text(line.trim_ascii()))?;
        }
    }
    Ok(())
}
