//! `graph-kernel import`: conversations of exports into the tables of a graph.
//!
//! A format reads a file and emits messages (`formats`, `message`). Each becomes a row, which the store copies and
//! inserts, in one transaction for each conversation (`store`).

mod columns;
mod formats;
mod inputs;
mod json;
mod keywords;
mod likeness;
mod lines;
mod message;
mod progress;
mod restore;
mod source;
mod statements;
mod store;
mod time;
mod value;
mod writer;

use std::cell::Cell;
use std::collections::HashSet;
use std::fs;
use std::io::{BufReader, Read, Write, stderr};
use std::path::Path;
use std::rc::Rc;

use chrono::{DateTime, SecondsFormat, Utc};
use kernel::graph::content::content_hash;
use kernel::graph::edge::EdgeType;
use kernel::messages::role_name;
use zip::ZipArchive;

use self::columns::position;
use self::formats::agents::AgentFile;
use self::formats::claude_code::Transcripts;
use self::formats::{MessageSink, Stop, chatgpt, claude, codex, librechat, openwebui};
use self::inputs::{Input, Inputs};
use self::json::LineColumn;
use self::keywords::Keywords;
use self::likeness::{MAX_HEAD_BYTES, looks_like};
use self::message::{MAX_ID_BYTES, Message, is_plain, parse_timestamp, plain_text, stored_payload};
use self::progress::Progress;
use self::source::{CountedFile, WholeCharacters, conversations_in, unpacked, unpacked_max};
use self::statements::Ids;
use self::store::{Columns, RowKind, StagedRow, Store};
use self::value::Value;
use self::writer::{Counts, Origin, Stored};
use crate::arguments::{ImportArguments, ImportFormat, Labeling};
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
    let mut transcripts = Transcripts::default();
    let inputs = Inputs::new(arguments.format, &arguments.files, &mut transcripts);
    let mut total = 0;
    for input in &inputs.files {
        let path = &input.path;
        if path != Path::new("-") {
            total += match fs::metadata(path) {
                Ok(metadata) => metadata.len(),
                Err(error) if input.is_named => return Err(format!("{}: {error}", path.display())),
                Err(_) => 0,
            };
        }
    }
    let origin = Origin {
        format: arguments.format.name(),
        account: arguments.account.clone(),
        ids: if is_restore { Ids::Given } else { Ids::Derived },
        commits: !arguments.dry_run,
    };
    let read = Rc::new(Cell::new(0));
    let mut import = Import {
        store: Store::new(&arguments.connection, origin)?,
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
    for note in &inputs.unread {
        import.note(note);
    }
    for failure in &inputs.failed {
        import.note(failure);
        import.report.failed += 1;
    }
    for input in &inputs.files {
        import.path = &input.path;
        let file = import.file(&read, input, &mut transcripts);
        if file.is_err() {
            // What was read to its end is stored, if the server is there.
            _ = import.store.abandon().and_then(|()| import.store.flush());
        }
        import.print_waiting(usize::MAX);
        file?;
    }
    let end = transcripts.end(&mut import);
    import.print_waiting(usize::MAX);
    if let Err(Stop::Failed(failure)) = end {
        return Err(failure);
    }
    let stored = import.store.flush()?;
    import.count(stored);
    import.progress.bar.finish_and_clear();
    let report = &import.report;
    let more = report.broken.saturating_sub(report.printed);
    if more > 0 {
        _ = writeln!(stderr(), "and {more} more broken records");
    }
    let not_found = arguments.session.as_ref().filter(|_| !report.has_session);
    if let Some(session) = not_found {
        import.note(&format!("no conversation with the id {session} was read"));
    }
    let tense = if arguments.dry_run { "would be stored" } else { "stored" };
    let mut lines = vec![
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
    if report.counts.elsewhere > 0 {
        let elsewhere = report.counts.elsewhere;
        lines.push(format!("turns left out, as another session has the id: {elsewhere}"));
    }
    if report.counts.doubled > 0 {
        let doubled = report.counts.doubled;
        lines.push(format!("turns left out, as one before has the id: {doubled}"));
    }
    if inputs.has_folder {
        let others = inputs.others + report.unread;
        lines.push(format!("files that are not transcripts: {others}"));
    }
    for line in lines {
        line!(out, "{line}");
    }
    let is_whole = report.broken == 0 && report.failed == 0 && not_found.is_none();
    Ok(if is_whole { Outcome::Success } else { Outcome::Negative })
}

struct Import<'a> {
    store: Store<'a>,
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
    messages: u64,
    /// Messages, and records that cannot be read.
    records: u64,
    /// What is wrong with records before the first message: printed when one comes or at the end of the file, as it may
    /// be that the file is in another format.
    waiting: Vec<String>,
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
    /// How many of the broken records were printed.
    printed: u64,
    /// Whether the conversation that was asked for was read.
    has_session: bool,
    /// Files of folders that could not be opened.
    unread: u64,
    /// Folders that were not read.
    failed: u64,
    counts: Counts,
}

impl Import<'_> {
    fn file(
        &mut self,
        read: &Rc<Cell<u64>>,
        input: &Input,
        transcripts: &mut Transcripts,
    ) -> Result<(), Failure> {
        (self.in_file, self.member) = (FileCounts::default(), None);
        let opened = CountedFile::open(self.path, Rc::clone(read))
            .and_then(|mut file| Ok((file.is_zip()?, file.len()?, file)));
        let (is_zip, bytes, file) = match opened {
            Ok(opened) => opened,
            Err(error) if !input.is_named => {
                // It may have gone since it was found.
                self.report.unread += 1;
                self.note(&format!("{}: {error}", self.path.display()));
                return Ok(());
            }
            Err(error) if error.raw_os_error().is_some() => {
                self.report_error((0, 0), &error.to_string());
                return Ok(());
            }
            Err(error) => return Err(format!("{}: {error}", self.path.display())),
        };
        let mut head = Vec::new();
        let result = if is_zip {
            self.archive(file, bytes, &mut head)
        } else {
            let source = Beginning { source: file, kept: &mut head };
            self.stream(source, &input.agent, transcripts)
        };
        match result {
            Ok(()) => {}
            Err(Stop::Failed(failure)) => return Err(failure),
            Err(Stop::Unreadable(place, why)) => {
                self.report_error(place, &format!("{why}; the rest of the file is not read"));
                // What was read of the conversation is not the whole of it.
                if self.current.messages > 0 && self.arguments.format == ImportFormat::ClaudeCode {
                    self.current.is_broken = true;
                } else if self.current.messages > 0 {
                    self.leave_out()?;
                }
            }
        }
        let is_of_lines = matches!(
            self.arguments.format,
            ImportFormat::ClaudeCode | ImportFormat::Codex | ImportFormat::Jsonl
        );
        let is_empty = self.in_file.conversations == 0 && !is_of_lines;
        if self.in_file.messages == 0 && (self.in_file.records > 0 || !is_empty) {
            let format = self.arguments.format;
            let mut why = format!("no message in the format {} is in it", format.name());
            let other = looks_like(&head).filter(|other| *other != format);
            if let Some(other) = other {
                why = format!("{why}; this looks like {}", other.name());
            }
            if self.in_file.records == 0 {
                self.report_error((0, 0), &why);
            } else if other.is_some() {
                // Of its records the first says enough.
                self.note(&format!("{}: {why}", self.path.display()));
                self.print_waiting(1);
            }
        }
        Ok(())
    }

    fn archive(&mut self, file: CountedFile, bytes: u64, head: &mut Vec<u8>) -> Result<(), Stop> {
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
            let file = Beginning { source: file, kept: head };
            self.stream(file, &AgentFile::default(), &mut Transcripts::default())?;
        }
        Ok(())
    }

    fn stream(
        &mut self,
        source: impl Read,
        agent: &AgentFile,
        transcripts: &mut Transcripts,
    ) -> Result<(), Stop> {
        let source = WholeCharacters::new(source);
        match self.arguments.format {
            ImportFormat::Chatgpt => chatgpt::read(source, self),
            ImportFormat::Claude => claude::read(source, self),
            ImportFormat::ClaudeCode => transcripts.read(BufReader::new(source), agent, self),
            ImportFormat::Codex => {
                let name = self.path.file_name().map(|name| name.to_string_lossy().into_owned());
                codex::read(
                    BufReader::new(source),
                    name.as_deref().filter(|name| *name != "-"),
                    self,
                )
            }
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
        if self.in_file.messages == 0 {
            self.print_waiting(usize::MAX);
        }
        self.in_file.records += 1;
        self.in_file.messages += 1;
        self.current.messages += 1;
        self.progress.update();
        if self.current.is_broken {
            return Ok(());
        }
        self.store.add(&row)
    }

    /// Counts what was stored, and says what was refused.
    fn count(&mut self, stored: Stored) {
        let (sum, counts) = (&mut self.report.counts, stored.counts);
        let add = |sum: &mut u64, count: u64| *sum = sum.saturating_add(count);
        add(&mut sum.turns, counts.turns);
        add(&mut sum.new_turns, counts.new_turns);
        add(&mut sum.new_edges, counts.new_edges);
        add(&mut sum.without_parent, counts.without_parent);
        add(&mut sum.without_child, counts.without_child);
        add(&mut sum.elsewhere, counts.elsewhere);
        add(&mut sum.doubled, counts.doubled);
        self.report.stored += stored.stored;
        self.report.unchanged += stored.unchanged;
        for (place, why) in stored.refused {
            self.report.left_out += 1;
            self.broken_at(&place, &why);
        }
    }

    /// Says something on the error stream.
    fn note(&self, text: &str) {
        let message = escaped(text);
        // A stream that cannot be written to is not a reason to stop.
        self.progress.bar.suspend(|| _ = writeln!(stderr(), "{message}"));
    }

    /// Says on the error stream what is wrong where.
    fn report_error(&mut self, place: LineColumn, why: &str) {
        self.in_file.records += 1;
        if self.in_file.messages > 0 {
            return self.broken_at(&self.place(place), why);
        }
        self.report.broken += 1;
        if self.report.printed + (self.in_file.waiting.len() as u64) < MAX_BROKEN_PRINTED {
            let why = shortened(why, MAX_WHY_BYTES);
            self.in_file.waiting.push(format!("{}: {why}", self.place(place)));
        }
    }

    /// Says what waits to be said, at most so much of it.
    fn print_waiting(&mut self, most: usize) {
        for text in std::mem::take(&mut self.in_file.waiting).iter().take(most) {
            if self.report.printed < MAX_BROKEN_PRINTED {
                self.report.printed += 1;
                self.note(text);
            }
        }
    }

    fn broken_at(&mut self, place: &str, why: &str) {
        self.report.broken += 1;
        if self.report.printed < MAX_BROKEN_PRINTED {
            self.report.printed += 1;
            self.note(&format!("{place}: {}", shortened(why, MAX_WHY_BYTES)));
        }
    }

    /// Whether a conversation is the one that is asked for: its application's id is given, or the session that it gets.
    fn is_wanted(&self, id: &str) -> bool {
        let Some(wanted) = &self.arguments.session else { return true };
        let ImportArguments { format, account, .. } = self.arguments;
        let prefix = format!("{}:{account}:", format.name());
        wanted == id || wanted.strip_prefix(&prefix) == Some(id)
    }

    /// A place in the file that is being read.
    fn place(&self, (line, column): LineColumn) -> String {
        let mut place = self.path.display().to_string();
        if let Some(member) = &self.member {
            place = format!("{place}:{member}");
        }
        for number in [line, column] {
            if number > 0 {
                place = format!("{place}:{number}");
            }
        }
        place
    }

    fn leave_out(&mut self) -> Result<(), Failure> {
        self.report.left_out += 1;
        self.current = Current::default();
        self.store.abandon()
    }
}

/// A source of which the beginning is kept.
struct Beginning<'a, R> {
    source: R,
    kept: &'a mut Vec<u8>,
}

impl<R: Read> Read for Beginning<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.source.read(buffer)?;
        let room = MAX_HEAD_BYTES - self.kept.len();
        self.kept.extend_from_slice(&buffer[..read.min(room)]);
        Ok(read)
    }
}

impl MessageSink for Import<'_> {
    fn message(&mut self, message: Message) -> Result<(), Failure> {
        let Message { id, parent, edge, turn } = message;
        let mut columns = Columns::default();
        let kind = if turn.is_some() { RowKind::Turn } else { RowKind::Skipped };
        if let Some(turn) = turn {
            self.current.latest = self.current.latest.max(turn.created_at);
            let role = plain_text(role_name(&turn.role).to_owned());
            let is_plain = is_plain(&turn.payload, &role, &turn.content);
            let content = plain_text(turn.content);
            let mut set = |name, value| columns[position(name)] = value;
            if let Some(keywords) = &self.keywords {
                let labels = keywords.labels(&content);
                set("trajectory_phase", labels.phase.map(str::to_owned));
                set("salience_score", labels.salience.map(|salience| salience.to_string()));
            }
            if !is_plain {
                let mut payload = Value::Object(turn.payload);
                stored_payload(&mut payload);
                set("payload", Some(payload.to_string()));
            }
            let created_at = turn.created_at;
            let created_at = created_at.map(|at| {
                // PostgreSQL takes the sign of a year of five digits for that of a time zone.
                let text = at.to_rfc3339_opts(SecondsFormat::Micros, true);
                text.trim_start_matches('+').to_owned()
            });
            set("role", Some(role));
            set("created_at", created_at);
            set("token_count", turn.tokens.map(|tokens| tokens.to_string()));
            set("content_hash", Some(content_hash(&content, &|| {}).to_string()));
            set("content_text", Some(content));
        }
        let (message, parent) = (plain_text(id), parent.map(plain_text));
        self.add(StagedRow { kind, message, parent, edge_type: edge.name().to_owned(), columns })
    }

    fn edge(&mut self, parent: String, child: String) -> Result<(), Failure> {
        self.add(StagedRow {
            kind: RowKind::Edge,
            message: plain_text(child),
            parent: Some(plain_text(parent)),
            edge_type: EdgeType::Reply.name().to_owned(),
            columns: Columns::default(),
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
        let is_other = !id.as_ref().is_some_and(|id| self.is_wanted(&plain_text(id.clone())));
        self.report.has_session |= !is_other;
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
        let is_older = self.since.is_some_and(|since| self.current.latest < Some(since));
        if is_other || is_older || self.in_file.broken_ids.contains(&id) {
            return self.leave_out();
        }
        self.current = Current::default();
        let place = self.place(place);
        let stored = self.store.finish(id, place)?;
        self.count(stored);
        Ok(())
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
                let (mut transcripts, file) = (Transcripts::default(), AgentFile::default());
                let read = transcripts.read(BufReader::new(source), &file, &mut counting);
                read.and_then(|()| transcripts.end(&mut counting))
            }
            ImportFormat::Codex => {
                codex::read(BufReader::new(source), Some("rollout.jsonl"), &mut counting)
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
    const PIECES: [&str; 26] = [
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
        "\"output\"",
        "\"type\":\"function_call\"",
        "\"type\":\"function_call_output\"",
        "\"payload\"",
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
            (ImportFormat::Codex, "rollout-codex.jsonl"),
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
