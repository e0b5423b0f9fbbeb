//! `graph-kernel import`: conversations of exports into the tables of a graph.
//!
//! A format reads a file and emits messages (`formats`, `message`); each becomes a row, which the store copies and
//! inserts, in one transaction for each conversation (`store`).

mod columns;
mod formats;
mod json;
mod keywords;
mod lines;
mod message;
mod progress;
mod restore;
mod source;
mod statements;
mod store;

use std::cell::Cell;
use std::collections::HashSet;
use std::fs;
use std::io::{BufReader, Read, Write, stderr};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use chrono::{DateTime, SecondsFormat, Utc};
use kernel::graph::content::content_hash;
use kernel::graph::edge::EdgeType;
use serde_json::{Map, Value};
use walkdir::WalkDir;
use zip::ZipArchive;

use self::formats::claude_code::Subagents;
use self::formats::{MessageSink, Stop, chatgpt, claude, claude_code, librechat, openwebui};
use self::json::LineColumn;
use self::keywords::Keywords;
use self::message::{MAX_ID_BYTES, Message, parse_timestamp, plain_text};
use self::progress::Progress;
use self::source::{CountedFile, WholeCharacters, conversations_in, unpacked, unpacked_max};
use self::statements::Ids;
use self::store::{Conversation, Counts, RowKind, StagedRow, Store, StoreError};
use crate::arguments::{ImportArguments, ImportFormat, Labeling};
use crate::database::connect;
use crate::output::{escaped, line, shortened};
use crate::{Failure, Outcome};

/// How much of what is wrong with a record is printed, in bytes: it may have a text of the file in it.
const MAX_WHY_BYTES: usize = 500;

/// How many broken records are printed; the others are counted.
const MAX_BROKEN_PRINTED: u64 = 100;

pub(crate) fn import(
    out: &mut impl Write,
    arguments: &ImportArguments,
) -> Result<Outcome, Failure> {
    let is_restore = arguments.format == ImportFormat::Jsonl;
    if is_restore
        && (!arguments.account.is_empty()
            || arguments.session.is_some()
            || arguments.since.is_some())
    {
        return Err(
            "jsonl restores whole files as they are: without --account, --session and --since"
                .to_owned(),
        );
    }
    if arguments.account.contains(':') {
        return Err("--account must not contain a colon".to_owned());
    }
    let since = match &arguments.since {
        None => None,
        Some(text) => Some(parse_timestamp(text).ok_or_else(|| {
            format!("--since: {text} is not a date such as 2025-03-01 or 2025-03-01T12:00:00Z")
        })?),
    };
    let paths = in_reading_order(arguments)?;
    let mut total = 0;
    for path in &paths {
        if path != Path::new("-") {
            total +=
                fs::metadata(path).map_err(|error| format!("{}: {error}", path.display()))?.len();
        }
    }
    let database = connect(&arguments.connection)?;
    let ids = if is_restore { Ids::Given } else { Ids::Derived };
    let read = Rc::new(Cell::new(0));
    let mut import = Import {
        store: Store::new(database, ids)?,
        arguments,
        since,
        keywords: arguments.label.map(|Labeling::Keywords| Keywords::new()),
        progress: Progress::new(total, Rc::clone(&read)),
        path: Path::new(""),
        member: None,
        in_file: FileCounts::default(),
        current: Current::default(),
        report: Report::default(),
    };
    let mut subagents = Subagents::default();
    for path in &paths {
        import.path = path;
        import.file(&read, &mut subagents)?;
    }
    import.progress.bar.finish_and_clear();
    let report = &import.report;
    let more = report.broken.saturating_sub(MAX_BROKEN_PRINTED);
    if more > 0 {
        _ = writeln!(stderr(), "and {more} more broken records");
    }
    let tense = if arguments.dry_run { "would be stored" } else { "stored" };
    let lines = [
        format!(
            "conversations: {} {tense}, {} unchanged, {} left out",
            report.stored, report.unchanged, report.left_out
        ),
        format!(
            "turns: {} new, {} there already",
            report.counts.new_turns,
            report.counts.turns.saturating_sub(report.counts.new_turns)
        ),
        format!("edges: {} new", report.counts.new_edges),
        format!("turns whose parent is missing: {}", report.counts.without_parent),
        format!("edges whose child is missing: {}", report.counts.without_child),
        format!("broken records: {}", report.broken),
    ];
    for line in lines {
        line!(out, "{line}");
    }
    Ok(if report.broken == 0 { Outcome::Success } else { Outcome::Negative })
}

/// The files in the order in which they are read. Of a folder those are the transcripts in it and below; transcripts of
/// subagents come after those of the agents that called them.
fn in_reading_order(arguments: &ImportArguments) -> Result<Vec<PathBuf>, Failure> {
    if arguments.format != ImportFormat::ClaudeCode {
        return Ok(arguments.files.clone());
    }
    let mut paths = Vec::new();
    for path in &arguments.files {
        if !path.is_dir() {
            paths.push(path.clone());
            continue;
        }
        for entry in WalkDir::new(path).sort_by_file_name() {
            let entry = entry.map_err(|error| error.to_string())?;
            let is_transcript = entry.path().extension().is_some_and(|name| name == "jsonl");
            if is_transcript && entry.file_type().is_file() {
                paths.push(entry.into_path());
            }
        }
    }
    paths.sort_by_key(|path| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("agent-"))
    });
    Ok(paths)
}

struct Import<'a> {
    store: Store,
    arguments: &'a ImportArguments,
    since: Option<DateTime<Utc>>,
    keywords: Option<Keywords>,
    progress: Progress,
    /// The file that is being read, and the one within it if it is an archive.
    path: &'a Path,
    member: Option<String>,
    in_file: FileCounts,
    current: Current,
    report: Report,
}

/// What was found in the file that is being read.
#[derive(Default)]
struct FileCounts {
    conversations: u64,
    /// Messages, and records that cannot be read.
    records: u64,
    /// Conversations that were left out for a broken record.
    broken_ids: HashSet<String>,
}

/// The state of the conversation that is being read.
#[derive(Default)]
struct Current {
    messages: u64,
    is_broken: bool,
    latest: Option<DateTime<Utc>>,
}

#[derive(Default)]
struct Report {
    stored: u64,
    unchanged: u64,
    left_out: u64,
    broken: u64,
    counts: Counts,
}

impl Import<'_> {
    fn file(&mut self, read: &Rc<Cell<u64>>, subagents: &mut Subagents) -> Result<(), Failure> {
        let failed = |error: std::io::Error| format!("{}: {error}", self.path.display());
        (self.in_file, self.member) = (FileCounts::default(), None);
        let mut file = CountedFile::open(self.path, Rc::clone(read)).map_err(failed)?;
        let result = if file.is_zip().map_err(failed)? {
            let bytes = file.len().map_err(failed)?;
            self.archive(file, bytes, subagents)
        } else {
            self.stream(file, subagents)
        };
        match result {
            Ok(()) => {
                if self.in_file.conversations > 0 && self.in_file.records == 0 {
                    let format = self.arguments.format.name();
                    self.report_error(
                        (0, 0),
                        &format!("no message in the format {format} is in it"),
                    );
                }
                Ok(())
            }
            Err(Stop::Failed(failure)) => Err(failure),
            Err(Stop::Unreadable(place, why)) => {
                self.report_error(place, &format!("{why}; the rest of the file is not read"));
                // What was read of the conversation is not the whole of it.
                if self.current.messages > 0 { self.leave_out() } else { Ok(()) }
            }
        }
    }

    fn archive(
        &mut self,
        file: CountedFile,
        bytes: u64,
        subagents: &mut Subagents,
    ) -> Result<(), Stop> {
        let unreadable = |why: String| Stop::Unreadable(json::UNKNOWN, why);
        if !matches!(self.arguments.format, ImportFormat::Chatgpt | ImportFormat::Claude) {
            return Err(unreadable("a zip archive: unpack it first".to_owned()));
        }
        let mut archive = ZipArchive::new(file).map_err(|error| unreadable(error.to_string()))?;
        let names = conversations_in(&archive);
        if names.is_empty() {
            return Err(unreadable("no conversations.json in the archive".to_owned()));
        }
        let left = Cell::new(unpacked_max(bytes));
        for name in names {
            let file = unpacked(&mut archive, &name, &left)
                .map_err(|error| unreadable(error.to_string()))?;
            self.member = Some(name);
            self.stream(file, subagents)?;
        }
        Ok(())
    }

    fn stream(&mut self, source: impl Read, subagents: &mut Subagents) -> Result<(), Stop> {
        let source = WholeCharacters::new(source);
        match self.arguments.format {
            ImportFormat::Chatgpt => chatgpt::read(source, self),
            ImportFormat::Claude => claude::read(source, self),
            ImportFormat::ClaudeCode => claude_code::read(BufReader::new(source), subagents, self),
            ImportFormat::Librechat => librechat::read(source, self),
            ImportFormat::Openwebui => openwebui::read(source, self),
            ImportFormat::Jsonl => {
                restore::read(BufReader::new(source), &mut |place, row| {
                    match row {
                        Ok(row) => self.add(row)?,
                        Err(why) => self.broken(place, why)?,
                    }
                    Ok(())
                })?;
                Ok(self.end_of_conversation(json::UNKNOWN, Some(self.path.display().to_string()))?)
            }
        }
    }

    fn add(&mut self, row: StagedRow) -> Result<(), Failure> {
        self.in_file.records += 1;
        self.current.messages += 1;
        self.progress.update();
        if self.current.is_broken {
            return Ok(());
        }
        match self.store.add(row) {
            Ok(()) => Ok(()),
            Err(StoreError::Values(why)) => {
                self.report_error(json::UNKNOWN, &why);
                self.current.is_broken = true;
                self.store.abandon()
            }
            Err(StoreError::Failed(failure)) => Err(failure),
        }
    }

    /// Says on the error stream what is wrong where.
    fn report_error(&mut self, (line, column): LineColumn, why: &str) {
        self.in_file.records += 1;
        self.report.broken += 1;
        if self.report.broken > MAX_BROKEN_PRINTED {
            return;
        }
        let mut place = self.path.display().to_string();
        if let Some(member) = &self.member {
            place = format!("{place}:{member}");
        }
        for number in [line, column] {
            if number > 0 {
                place = format!("{place}:{number}");
            }
        }
        let message = escaped(&format!("{place}: {}", shortened(why, MAX_WHY_BYTES)));
        // A stream that cannot be written to is not a reason to stop.
        self.progress.bar.suspend(|| _ = writeln!(stderr(), "{message}"));
    }

    fn leave_out(&mut self) -> Result<(), Failure> {
        self.report.left_out += 1;
        self.current = Current::default();
        self.store.abandon()
    }
}

impl MessageSink for Import<'_> {
    fn message(&mut self, message: Message) -> Result<(), Failure> {
        let Message { id, parent, edge, turn } = message;
        let (kind, turn) = match turn {
            None => (RowKind::Skipped, Value::Null),
            Some(turn) => {
                self.current.latest = self.current.latest.max(turn.created_at);
                let content = plain_text(turn.content);
                let mut columns = Map::new();
                if let Some(keywords) = &self.keywords {
                    let labels = keywords.labels(&content);
                    columns.insert("trajectory_phase".to_owned(), labels.phase.into());
                    columns.insert("salience_score".to_owned(), labels.salience.into());
                }
                let created_at =
                    turn.created_at.map(|at| at.to_rfc3339_opts(SecondsFormat::Micros, true));
                columns.insert("role".to_owned(), plain_text(turn.role).into());
                columns.insert("created_at".to_owned(), created_at.into());
                columns.insert("token_count".to_owned(), turn.tokens.into());
                columns.insert("content_hash".to_owned(), content_hash(&content, &|| {}).into());
                columns.insert("content_text".to_owned(), content.into());
                (RowKind::Turn, Value::Object(columns))
            }
        };
        let (message, parent) = (plain_text(id), parent.map(plain_text));
        self.add(StagedRow { kind, message, parent, edge_type: edge.name().to_owned(), turn })
    }

    fn edge(&mut self, parent: String, child: String) -> Result<(), Failure> {
        self.add(StagedRow {
            kind: RowKind::Edge,
            message: plain_text(child),
            parent: Some(plain_text(parent)),
            edge_type: EdgeType::Reply.name().to_owned(),
            turn: Value::Null,
        })
    }

    fn broken(&mut self, place: LineColumn, why: String) -> Result<(), Failure> {
        self.current.is_broken |= !self.arguments.skip_broken;
        self.report_error(place, &why);
        Ok(())
    }

    fn end_of_conversation(
        &mut self,
        place: LineColumn,
        id: Option<String>,
    ) -> Result<(), Failure> {
        self.in_file.conversations += 1;
        if self.current.is_broken {
            // The rest of it may come later in the file.
            self.in_file.broken_ids.extend(id.filter(|id| id.len() <= MAX_ID_BYTES));
            return self.leave_out();
        }
        if self.current.messages == 0 {
            return self.leave_out();
        }
        let Some(id) = id.map(plain_text).filter(|id| id.len() <= MAX_ID_BYTES) else {
            let why = format!("a conversation has no id, or one longer than {MAX_ID_BYTES} bytes");
            self.report_error(place, &why);
            return self.leave_out();
        };
        let is_other = self.arguments.session.as_ref().is_some_and(|wanted| *wanted != id);
        let is_older = self.since.is_some_and(|since| self.current.latest < Some(since));
        if is_other || is_older || self.in_file.broken_ids.contains(&id) {
            return self.leave_out();
        }
        let conversation = Conversation {
            format: self.arguments.format.name(),
            account: &self.arguments.account,
            id: &id,
        };
        match self.store.finish(conversation, !self.arguments.dry_run) {
            Ok(counts) => {
                let sum = &mut self.report.counts;
                let add = |sum: &mut u64, count: u64| *sum = sum.saturating_add(count);
                add(&mut sum.turns, counts.turns);
                add(&mut sum.new_turns, counts.new_turns);
                add(&mut sum.new_edges, counts.new_edges);
                add(&mut sum.without_parent, counts.without_parent);
                add(&mut sum.without_child, counts.without_child);
                if counts.new_turns == 0 && counts.new_edges == 0 {
                    self.report.unchanged += 1;
                } else {
                    self.report.stored += 1;
                }
                self.current = Current::default();
                Ok(())
            }
            Err(StoreError::Values(why)) => {
                self.report_error(place, &format!("conversation {id}: {why}"));
                self.leave_out()
            }
            Err(StoreError::Failed(failure)) => Err(failure),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes what a format reads, and keeps nothing.
    #[derive(Default)]
    struct Counting {
        messages: u64,
        broken: u64,
    }

    impl MessageSink for Counting {
        fn message(&mut self, message: Message) -> Result<(), Failure> {
            assert!(message.id.len() <= MAX_ID_BYTES + 16, "an id of {} bytes", message.id.len());
            self.messages += 1;
            Ok(())
        }

        fn edge(&mut self, _: String, _: String) -> Result<(), Failure> {
            Ok(())
        }

        fn broken(&mut self, _: LineColumn, _: String) -> Result<(), Failure> {
            self.broken += 1;
            Ok(())
        }

        fn end_of_conversation(&mut self, _: LineColumn, _: Option<String>) -> Result<(), Failure> {
            Ok(())
        }
    }

    fn read(format: ImportFormat, bytes: &[u8]) -> Counting {
        let mut counting = Counting::default();
        let source = WholeCharacters::new(bytes);
        let result = match format {
            ImportFormat::Chatgpt => chatgpt::read(source, &mut counting),
            ImportFormat::Claude => claude::read(source, &mut counting),
            ImportFormat::ClaudeCode => {
                claude_code::read(BufReader::new(source), &mut Subagents::default(), &mut counting)
            }
            ImportFormat::Librechat => librechat::read(source, &mut counting),
            ImportFormat::Openwebui => openwebui::read(source, &mut counting),
            ImportFormat::Jsonl => restore::read(BufReader::new(source), &mut |_, row| {
                counting.messages += u64::from(row.is_ok());
                Ok(())
            }),
        };
        if let Err(Stop::Failed(failure)) = result {
            panic!("{failure}");
        }
        counting
    }

    /// Pieces of the formats, which replace others.
    const PIECES: [&str; 22] = [
        "null",
        "true",
        "1e400",
        "-1",
        "9007199254740993",
        "\"\"",
        "[]",
        "{}",
        "[[",
        "{\"a\":",
        "\"parts\"",
        "\"children\"",
        "\"message\"",
        "\"content\"",
        "\"type\":\"tool_result\"",
        "\\ud83d",
        "\\u0000",
        "\u{feff}",
        ",",
        "\n",
        "\"uuid\"",
        "data:",
    ];

    #[test]
    fn broken_files_are_errors_at_most() {
        const TRIES: u32 = 3_000;
        let exports = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/server/exports/");
        let mut random = fastrand::Rng::with_seed(5);
        for (format, file) in [
            (ImportFormat::Chatgpt, "chatgpt.json"),
            (ImportFormat::Claude, "claude.json"),
            (ImportFormat::ClaudeCode, "claude-code.jsonl"),
            (ImportFormat::Librechat, "librechat.json"),
            (ImportFormat::Librechat, "librechat-recursive.json"),
            (ImportFormat::Openwebui, "openwebui.json"),
            (ImportFormat::Jsonl, "rows.jsonl"),
        ] {
            let whole = fs::read(format!("{exports}{file}")).unwrap();
            let unbroken = read(format, &whole);
            assert!(unbroken.messages > 0 && unbroken.broken == 0, "{file}");
            for _ in 0..TRIES {
                let mut bytes = whole.clone();
                for _ in 0..random.u32(1..6) {
                    let at = random.usize(..bytes.len());
                    let end = (at + random.usize(..24)).min(bytes.len());
                    match random.u8(..4) {
                        0 => bytes[at] = random.u8(..),
                        1 => drop(bytes.drain(at..end)),
                        2 => {
                            let piece = PIECES[random.usize(..PIECES.len())];
                            drop(bytes.splice(at..end, piece.bytes()));
                        }
                        _ => {
                            let copied = bytes[at..end].to_vec();
                            let to = random.usize(..=bytes.len());
                            drop(bytes.splice(to..to, copied));
                        }
                    }
                    if bytes.is_empty() {
                        break;
                    }
                }
                read(format, &bytes);
            }
        }
    }
}
