//! The formats of `graph-kernel import`, of the program's own sources: a program has no library to take them from.

#![allow(dead_code, reason = "not all of the program is called")]

#[path = "../../../src/cli/import/columns.rs"]
mod columns;
#[path = "../../../src/cli/import/formats/mod.rs"]
mod formats;
#[path = "../../../src/cli/import/json.rs"]
mod json;
#[path = "../../../src/cli/import/lines.rs"]
mod lines;
#[path = "../../../src/cli/import/message.rs"]
mod message;
#[path = "../../../src/cli/import/restore.rs"]
mod restore;
#[path = "../../../src/cli/import/source.rs"]
mod source;
#[path = "../../../src/cli/import/time.rs"]
mod time;
#[path = "../../../src/cli/import/value.rs"]
mod value;

/// The rows that `restore` makes, without the database into which the program's module stores them.
mod store {
    use super::columns::COLUMNS;

    pub(super) type Columns = [Option<String>; COLUMNS.len()];

    #[derive(Debug)]
    pub(super) enum RowKind {
        Turn,
        Skipped,
        Edge,
    }

    #[derive(Debug)]
    pub(super) struct StagedRow {
        pub(super) kind: RowKind,
        pub(super) message: String,
        pub(super) parent: Option<String>,
        pub(super) edge_type: String,
        pub(super) columns: Columns,
    }
}

use std::cell::Cell;
use std::fmt::Debug;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, BufReader, Cursor, Read};

use uuid::Uuid;
use zip::ZipArchive;

use self::formats::agents::AgentFile;
use self::formats::claude_code::Transcripts;
use self::formats::{MessageSink, Stop, chatgpt, claude, librechat, openwebui};
use self::json::LineColumn;
use self::message::{MAX_ID_BYTES, Message};
use self::source::{WholeCharacters, conversations_in, unpacked, unpacked_max};
use self::store::StagedRow;
use crate::memory::bounded;
use crate::{Failure, is_message};

/// A format of files that are not archives.
#[derive(Clone, Copy)]
pub enum Format {
    /// ChatGPT's `conversations.json`.
    Chatgpt,
    /// Claude's.
    Claude,
    /// A transcript of Claude Code.
    ClaudeCode,
    /// LibreChat's export.
    Librechat,
    /// Open WebUI's.
    Openwebui,
    /// Rows of the tables, as `jsonl` restores them.
    Rows,
}

/// The seconds from 1970 to the end of 9999.
const SECONDS: std::ops::RangeInclusive<i64> = 0..=253_402_300_799;

/// Checks all that a format reads, and keeps a hash of it.
#[derive(Default)]
struct Checking {
    hash: DefaultHasher,
    messages: usize,
    content_bytes: usize,
}

impl Checking {
    fn note(&mut self, read: impl Debug) {
        format!("{read:?}").hash(&mut self.hash);
    }

    fn id(id: &str) {
        // The part of a message has its number after the id.
        assert!(id.len() <= MAX_ID_BYTES + 16, "an id of {} bytes", id.len());
    }

    fn row(&mut self, row: &StagedRow) {
        self.messages += 1;
        for id in [Some(&row.message), row.parent.as_ref()].into_iter().flatten() {
            assert!(Uuid::try_parse(id).is_ok(), "{id}");
        }
        self.note(row);
    }
}

impl MessageSink for Checking {
    fn message(&mut self, message: Message) -> Result<(), Failure> {
        self.messages += 1;
        [Some(&message.id), message.parent.as_ref()]
            .into_iter()
            .flatten()
            .for_each(|id| Self::id(id));
        if let Some(turn) = &message.turn {
            self.content_bytes += turn.content.len();
            assert!(turn.created_at.is_none_or(|at| SECONDS.contains(&at.timestamp())));
            assert!(turn.tokens.is_none_or(|tokens| tokens > 0));
        }
        self.note(message);
        Ok(())
    }

    fn edge(&mut self, parent: String, child: String) -> Result<(), Failure> {
        [&parent, &child].into_iter().for_each(|id| Self::id(id));
        self.note((parent, child));
        Ok(())
    }

    fn broken(&mut self, place: LineColumn, why: String) -> Result<(), Failure> {
        assert!(!why.is_empty());
        self.note((place, why));
        Ok(())
    }

    fn end_of_conversation(
        &mut self,
        place: LineColumn,
        id: Option<String>,
    ) -> Result<(), Failure> {
        self.note((place, id));
        Ok(())
    }
}

/// A source that gives a few bytes at a time.
struct Pieces<'a>(&'a [u8]);

impl Read for Pieces<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        const MOST: usize = 7;
        let most = buffer.len().min(MOST);
        self.0.read(&mut buffer[..most])
    }
}

fn read(format: Format, source: impl Read) -> Checking {
    let source = WholeCharacters::new(source);
    let mut read = Checking::default();
    let result = match format {
        Format::Chatgpt => chatgpt::read(source, &mut read),
        Format::Claude => claude::read(source, &mut read),
        Format::ClaudeCode => {
            let mut transcripts = Transcripts::default();
            let result =
                transcripts.read(BufReader::new(source), &AgentFile::default(), &mut read);
            result.and_then(|()| transcripts.end(&mut read))
        }
        Format::Librechat => librechat::read(source, &mut read),
        Format::Openwebui => openwebui::read(source, &mut read),
        Format::Rows => restore::read(BufReader::new(source), &mut |place, row| {
            match row {
                Ok(row) => read.row(&row),
                Err(why) => read.note((place, why)),
            }
            Ok(())
        }),
    };
    match result {
        Ok(()) => {}
        Err(Stop::Unreadable(place, why)) => {
            is_message(&why);
            read.note((place, why));
        }
        Err(Stop::Failed(failure)) => panic!("{failure}"),
    }
    read
}

/// A file: as many messages as it has room for, in bounded memory, the same in whatever pieces it is read.
pub fn check(format: Format, bytes: &[u8]) {
    let whole = bounded(bytes.len(), || read(format, bytes));
    assert!(whole.messages <= bytes.len());
    assert!(whole.content_bytes <= 64 * bytes.len(), "{} bytes", whole.content_bytes);
    assert_eq!(read(format, Pieces(bytes)).hash.finish(), whole.hash.finish());
}

/// A zip archive: no more of it is unpacked than is allowed, in the memory that is allowed for one value.
pub fn archive(bytes: &[u8]) {
    const VALUE_BYTES: usize = json::MAX_VALUE_BYTES / 64;
    bounded(VALUE_BYTES + bytes.len(), || {
        let Ok(mut archive) = ZipArchive::new(Cursor::new(bytes)) else { return };
        let left = Cell::new(unpacked_max(bytes.len() as u64));
        for name in conversations_in(&archive) {
            if let Ok(file) = unpacked(&mut archive, &name, &left) {
                read(Format::Chatgpt, file);
            }
        }
    });
}
