//! Opening the files of an export: plain or in a zip archive, as a stream of JSON that is well formed.

use std::cell::Cell;
use std::collections::VecDeque;
use std::fs::{self, File, FileType, Metadata};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom};
use std::path::Path;
use std::rc::Rc;

use zip::ZipArchive;

/// How many times its own size an archive may unpack to, beyond [`UNPACKED_FREE_BYTES`].
const MAX_UNPACKED_RATIO: u64 = 200;

/// What an archive may always unpack to, in bytes.
const UNPACKED_FREE_BYTES: u64 = 100 << 20;

/// A file that counts what is read of it.
pub(super) struct CountedFile {
    file: File,
    /// What was read to see what the file is.
    start: VecDeque<u8>,
    read: Rc<Cell<u64>>,
}

impl CountedFile {
    /// Opens a file or a pipe; `-` is the standard input.
    pub(super) fn open(path: &Path, read: Rc<Cell<u64>>) -> io::Result<Self> {
        let file = if path == Path::new("-") {
            standard_input()?
        } else {
            // To open a device may have effects, so it is looked at before; then again, as it may be another one.
            check(&fs::metadata(path)?)?;
            let file = File::open(path)?;
            check(&file.metadata()?)?;
            file
        };
        Ok(CountedFile { file, start: VecDeque::new(), read })
    }

    /// Whether the file is a zip archive, which is then read from its beginning.
    pub(super) fn is_zip(&mut self) -> io::Result<bool> {
        let mut start = Vec::new();
        self.file.by_ref().take(4).read_to_end(&mut start)?;
        let is_zip = start == b"PK\x03\x04";
        if is_zip {
            self.file.rewind()?;
        } else {
            self.start = start.into();
        }
        Ok(is_zip)
    }

    /// Its length in bytes.
    pub(super) fn len(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }
}

/// Refuses what may have no end, or is not a file.
fn check(file: &Metadata) -> io::Result<()> {
    let kind = file.file_type();
    if kind.is_file() || is_pipe(kind) {
        return Ok(());
    }
    if kind.is_dir() {
        return Err(io::Error::from(ErrorKind::IsADirectory));
    }
    Err(io::Error::other("neither a regular file nor a pipe, but a device or a socket"))
}

#[cfg(unix)]
fn is_pipe(kind: FileType) -> bool {
    use std::os::unix::fs::FileTypeExt;
    kind.is_fifo()
}

#[cfg(not(unix))]
fn is_pipe(_: FileType) -> bool {
    false
}

/// The standard input, which may also be a terminal, or a socket, as programs are given by those that start them.
#[cfg(unix)]
fn standard_input() -> io::Result<File> {
    use std::io::IsTerminal;
    use std::os::fd::AsFd;
    use std::os::unix::fs::FileTypeExt;
    let input = io::stdin();
    let file = File::from(input.as_fd().try_clone_to_owned()?);
    let metadata = file.metadata()?;
    if !input.is_terminal() && !metadata.file_type().is_socket() {
        check(&metadata)?;
    }
    Ok(file)
}

#[cfg(not(unix))]
fn standard_input() -> io::Result<File> {
    Err(io::Error::from(ErrorKind::Unsupported))
}

impl Read for CountedFile {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = match self.start.is_empty() {
            true => self.file.read(buffer)?,
            false => self.start.read(buffer)?,
        };
        self.read.set(self.read.get() + read as u64);
        Ok(read)
    }
}

impl Seek for CountedFile {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file.seek(to)
    }
}

/// The conversations in an archive: `conversations.json`, or its parts, in the order of their names.
pub(super) fn conversations_in(archive: &ZipArchive<impl Read + Seek>) -> Vec<String> {
    let is_wanted = |name: &String| {
        let name = name.rsplit('/').next().unwrap_or_default();
        name.starts_with("conversations") && name.ends_with(".json")
    };
    let names = archive.file_names().filter_map(Result::ok).map(|name| name.into_owned());
    let mut names: Vec<String> = names.filter(is_wanted).collect();
    names.sort_unstable();
    names
}

/// How many bytes an archive of so many bytes may unpack to. What it says of its own files is not believed.
pub(super) fn unpacked_max(archive_bytes: u64) -> u64 {
    archive_bytes.saturating_mul(MAX_UNPACKED_RATIO).max(UNPACKED_FREE_BYTES)
}

/// A file of an archive, unpacked; of all of them together at most `left` bytes are read.
pub(super) fn unpacked<'a, R: Read + Seek>(
    archive: &'a mut ZipArchive<R>,
    name: &str,
    left: &'a Cell<u64>,
) -> io::Result<impl Read + 'a> {
    let file = archive.by_name(name).map_err(io::Error::other)?;
    Ok(Bounded { source: file, left })
}

struct Bounded<'a, R> {
    source: R,
    left: &'a Cell<u64>,
}

impl<R: Read> Read for Bounded<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.source.read(buffer)?;
        let left = self.left.get().checked_sub(read as u64).ok_or_else(|| {
            io::Error::other(format!(
                "unpacked, it is more than {MAX_UNPACKED_RATIO} times as large"
            ))
        })?;
        self.left.set(left);
        Ok(read)
    }
}

/// JSON without a byte order mark and without halves of surrogate pairs. Exports cut texts in the middle of an emoji,
/// and write the half as an escape, which is not a character. It is replaced by U+FFFD.
pub(super) struct WholeCharacters<R> {
    source: R,
    /// What was read and not looked at yet, from `start` on.
    ahead: Vec<u8>,
    start: usize,
    /// How many bytes from `start` on may be given out.
    ready: usize,
    at_start: bool,
    at_end: bool,
}

/// How much is read at once.
const CHUNK_BYTES: usize = 1 << 16;

/// The longest that has to be looked at as a whole: two escapes.
const PAIR_BYTES: usize = 12;

impl<R: Read> WholeCharacters<R> {
    pub(super) fn new(source: R) -> Self {
        WholeCharacters {
            source,
            ahead: Vec::new(),
            start: 0,
            ready: 0,
            at_start: true,
            at_end: false,
        }
    }

    /// Reads until so many bytes are there, or the end.
    fn fill(&mut self, bytes: usize) -> io::Result<()> {
        while !self.at_end && self.ahead.len() - self.start < bytes {
            self.ahead.drain(..std::mem::take(&mut self.start));
            let length = self.ahead.len();
            self.ahead.resize(length + CHUNK_BYTES, 0);
            let read = self.source.read(&mut self.ahead[length..]);
            self.ahead.truncate(length + *read.as_ref().unwrap_or(&0));
            self.at_end = read? == 0;
        }
        Ok(())
    }

    /// Looks at what was read: how much of it can be given out. Halves of pairs are replaced.
    fn look(&mut self) {
        const HALF: &[u8] = b"\\ufffd";
        let bytes = &mut self.ahead[self.start..];
        let mut at = 0;
        while at < bytes.len() {
            let Some(escape) = bytes[at..].iter().position(|byte| *byte == b'\\') else {
                at = bytes.len();
                break;
            };
            at += escape;
            if bytes.len() - at < PAIR_BYTES && !self.at_end {
                break;
            }
            let unit_at = |at: usize| bytes.get(at..at + HALF.len()).and_then(unit);
            match unit_at(at) {
                Some(0xD800..=0xDBFF) => {
                    if unit_at(at + HALF.len())
                        .is_some_and(|unit| (0xDC00..=0xDFFF).contains(&unit))
                    {
                        at += PAIR_BYTES;
                        continue;
                    }
                }
                Some(0xDC00..=0xDFFF) => {}
                // The backslash and what it escapes.
                _ => {
                    at = (at + 2).min(bytes.len());
                    continue;
                }
            }
            bytes[at..at + HALF.len()].copy_from_slice(HALF);
            at += HALF.len();
        }
        self.ready = at;
    }
}

/// The code unit of an escape, `\\u` and four hex digits.
fn unit(escape: &[u8]) -> Option<u32> {
    let digits = escape.strip_prefix(b"\\u")?;
    let is_hex = digits.len() == 4 && digits.iter().all(u8::is_ascii_hexdigit);
    let digits = std::str::from_utf8(digits).ok().filter(|_| is_hex)?;
    u32::from_str_radix(digits, 16).ok()
}

impl<R: Read> Read for WholeCharacters<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();
        if std::mem::take(&mut self.at_start) {
            self.fill(BYTE_ORDER_MARK.len())?;
            if self.ahead.starts_with(BYTE_ORDER_MARK) {
                self.start = BYTE_ORDER_MARK.len();
            }
        }
        if self.ready == 0 {
            self.fill(PAIR_BYTES)?;
            self.look();
        }
        let length = self.ready.min(buffer.len());
        buffer[..length].copy_from_slice(&self.ahead[self.start..self.start + length]);
        self.start += length;
        self.ready -= length;
        Ok(length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(text: &str) -> String {
        // One byte at a time, so that escapes lie on every boundary.
        struct Slow<'a>(&'a [u8]);
        impl Read for Slow<'_> {
            fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
                let end = buffer.len().min(1);
                self.0.read(&mut buffer[..end])
            }
        }
        let mut slow = String::new();
        WholeCharacters::new(Slow(text.as_bytes())).read_to_string(&mut slow).unwrap();
        let mut fast = String::new();
        WholeCharacters::new(text.as_bytes()).read_to_string(&mut fast).unwrap();
        assert_eq!(slow, fast);
        fast
    }

    #[test]
    fn halves_of_pairs_are_replaced() {
        for (text, expected) in [
            (r#""a\ud83d\ude00b""#, r#""a\ud83d\ude00b""#),
            (r#""a\ud83db""#, r#""a\ufffdb""#),
            (r#""\ude00\n""#, r#""\ufffd\n""#),
            (r#""\ud83d\ud83d\ude00""#, r#""\ufffd\ud83d\ude00""#),
            (r#""\\ud83d""#, r#""\\ud83d""#),
            (r#""\ud83d\\""#, r#""\ufffd\\""#),
            (r#""\ud8"#, r#""\ud8"#),
            ("\u{feff}[]", "[]"),
            ("", ""),
            ("1", "1"),
        ] {
            assert_eq!(whole(text), expected);
        }
    }
}
