//! Recorder events: what chunking reads of them, and what each contributes to a chunk's text.

use std::fmt;

use serde::Serialize;

use crate::graph::turn::bounded_name;
use crate::interrupts::{CHECKED_BYTES, Interrupts};
use crate::json::{JsonError, JsonLimits, JsonReader, JsonValue, quoted};

/// The only version of events there is.
pub const EVENT_SCHEMA: &str = "ft.recorder.event.v1";

/// A place in the log. Ordered as the log is; each number is 0 or more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct LogOffset {
    /// The segment.
    pub segment_id: i64,
    /// The event's position in its segment.
    pub ordinal: i64,
    /// Where the event begins in the segment's file, in bytes.
    pub byte_offset: i64,
}

impl LogOffset {
    /// Segment and ordinal, which name an event.
    #[must_use]
    pub fn position(&self) -> (i64, i64) {
        (self.segment_id, self.ordinal)
    }
}

/// What an event does to chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// Text typed into the pane.
    Ingress,
    /// Text the pane printed.
    Egress,
    /// A control marker, a lifecycle marker or a gap: closes the open chunk and contributes nothing.
    Boundary,
}

/// An event as it is stored: anything may be absent.
#[derive(Clone, Copy, Debug, Default)]
pub struct StoredEvent<'a> {
    /// NULL and negative numbers are errors.
    pub segment_id: Option<i64>,
    /// As `segment_id`.
    pub ordinal: Option<i64>,
    /// As `segment_id`.
    pub byte_offset: Option<i64>,
    /// As `segment_id`.
    pub pane_id: Option<i64>,
    /// NULL is an error. Where one is over 4 KiB, its hash is to stand here, as for `session_id`.
    pub event_id: Option<&'a str>,
    /// NULL is a session of its own.
    pub session_id: Option<&'a str>,
    /// Milliseconds; NULL is an error, any number is fine.
    pub occurred_at_ms: Option<i64>,
    /// NULL and unknown names are errors.
    pub event_type: Option<&'a str>,
    /// NULL is an error where the event would contribute.
    pub text: Option<&'a str>,
    /// NULL is false.
    pub is_gap: Option<bool>,
    /// NULL is [`EVENT_SCHEMA`], anything else an error.
    pub schema_version: Option<&'a str>,
    /// The field, if there is one, whose bytes are not UTF-8: an error, as its hash would be that of other bytes.
    pub not_text: Option<&'static str>,
}

/// A valid event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecorderEvent<'a> {
    /// Where it is in the log.
    pub offset: LogOffset,
    /// Its name.
    pub event_id: &'a str,
    /// The pane it belongs to.
    pub pane_id: i64,
    /// The session it belongs to, if any.
    pub session_id: Option<&'a str>,
    /// When it occurred, in milliseconds.
    pub occurred_at_ms: i64,
    /// What it does.
    pub kind: EventKind,
    /// Its text; empty for a boundary.
    pub text: &'a str,
}

/// What is wrong with an event; the message names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventError(String);

impl fmt::Display for EventError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for EventError {}

impl StoredEvent<'_> {
    /// The event's name for messages.
    #[must_use]
    pub fn label(&self) -> String {
        let number = |n: Option<i64>| n.map_or_else(|| "null".to_owned(), |n| n.to_string());
        let place =
            format!("at segment {}, ordinal {}", number(self.segment_id), number(self.ordinal));
        match self.event_id {
            Some(id) => format!("event {} {place}", quoted(id)),
            None => format!("event {place}"),
        }
    }

    fn error(&self, what: impl fmt::Display) -> EventError {
        EventError(format!("{}: {what}", self.label()))
    }

    fn count(&self, field: &str, value: Option<i64>) -> Result<i64, EventError> {
        match value {
            None => Err(self.error(format_args!("{field} is null"))),
            Some(n) if n < 0 => Err(self.error(format_args!("{field} is negative: {n}"))),
            Some(n) => Ok(n),
        }
    }
}

impl<'a> TryFrom<StoredEvent<'a>> for RecorderEvent<'a> {
    type Error = EventError;

    fn try_from(stored: StoredEvent<'a>) -> Result<Self, EventError> {
        if let Some(field) = stored.not_text {
            return Err(stored.error(format_args!("{field} is not UTF-8")));
        }
        if let Some(version) = stored.schema_version.filter(|version| *version != EVENT_SCHEMA) {
            return Err(stored.error(format_args!("unknown schema_version {}", quoted(version))));
        }
        let offset = LogOffset {
            segment_id: stored.count("segment_id", stored.segment_id)?,
            ordinal: stored.count("ordinal", stored.ordinal)?,
            byte_offset: stored.count("byte_offset", stored.byte_offset)?,
        };
        let pane_id = stored.count("pane_id", stored.pane_id)?;
        let null = |field: &str| stored.error(format_args!("{field} is null"));
        let event_id = stored.event_id.ok_or_else(|| null("event_id"))?;
        let occurred_at_ms = stored.occurred_at_ms.ok_or_else(|| null("occurred_at_ms"))?;
        let kind = match stored.event_type.ok_or_else(|| null("event_type"))? {
            "ingress_text" => EventKind::Ingress,
            "egress_output" if stored.is_gap == Some(true) => EventKind::Boundary,
            "egress_output" => EventKind::Egress,
            "control_marker" | "lifecycle_marker" => EventKind::Boundary,
            other => {
                return Err(stored.error(format_args!("unknown event_type {}", quoted(other))));
            }
        };
        let text = match (kind, stored.text) {
            (EventKind::Boundary, _) => "",
            (_, None) => return Err(null("text")),
            (_, Some(text)) => text,
        };
        let session_id = stored.session_id;
        Ok(RecorderEvent { offset, event_id, pane_id, session_id, occurred_at_ms, kind, text })
    }
}

impl<'a> RecorderEvent<'a> {
    /// What the log is ordered by.
    #[must_use]
    pub fn log_order(&self) -> (LogOffset, &'a str) {
        (self.offset, self.event_id)
    }

    /// The event's part of a chunk's text: marker and text. Line ends are LF, one final LF is dropped, and Unicode
    /// white space is trimmed from the right end of every line. Empty for a boundary.
    #[must_use]
    pub fn contribution(&self, check_interrupts: &dyn Fn()) -> String {
        let marker = match self.kind {
            EventKind::Ingress => "[IN] ",
            EventKind::Egress => "[OUT] ",
            EventKind::Boundary => return String::new(),
        };
        let interrupts = Interrupts::new(check_interrupts);
        let line_end = |text: &str| {
            let mut before = 0;
            for piece in text.as_bytes().chunks(CHECKED_BYTES) {
                let end = piece.iter().position(|b| matches!(b, b'\r' | b'\n'));
                let seen = end.unwrap_or(piece.len());
                interrupts.bytes(seen + 1);
                before += seen;
                if end.is_some() {
                    break;
                }
            }
            before
        };
        let mut contribution = String::with_capacity(marker.len() + self.text.len());
        contribution.push_str(marker);
        let mut line_start = 0;
        let mut rest = self.text;
        loop {
            let end = line_end(rest);
            interrupts.append(&mut contribution, &rest[..end]);
            let trimmed = interrupts.trimmed_end(&contribution[line_start..]);
            contribution.truncate(line_start + trimmed);
            let line_end = if rest[end..].starts_with("\r\n") { 2 } else { 1 };
            // A line end at the end of the text does not begin another line.
            match rest.get(end + line_end..) {
                None | Some("") => return contribution,
                Some(next) => rest = next,
            }
            contribution.push('\n');
            line_start = contribution.len();
        }
    }
}

/// An event of a JSON array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsonEvent {
    offset: LogOffset,
    event_id: Box<str>,
    pane_id: i64,
    session_id: Option<Box<str>>,
    occurred_at_ms: i64,
    kind: EventKind,
    text: Box<str>,
}

impl JsonEvent {
    /// The event.
    #[must_use]
    pub fn event(&self) -> RecorderEvent<'_> {
        RecorderEvent {
            offset: self.offset,
            event_id: &self.event_id,
            pane_id: self.pane_id,
            session_id: self.session_id.as_deref(),
            occurred_at_ms: self.occurred_at_ms,
            kind: self.kind,
            text: &self.text,
        }
    }
}

/// Why a JSON array of events is not read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventsError {
    /// The text is not JSON, or has more than is read.
    Json(JsonError),
    /// An event is not valid.
    Event(EventError),
}

impl fmt::Display for EventsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Json(error) => write!(f, "events are {error}"),
            Self::Event(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for EventsError {}

impl From<JsonError> for EventsError {
    fn from(error: JsonError) -> Self {
        Self::Json(error)
    }
}

/// The longest text of a JSON array of events, in bytes.
pub const MAX_EVENTS_BYTES: usize = 16 * 1024 * 1024;

/// Bounds memory: a valid event takes a hundred bytes, and no more than 320 000 are held.
const EVENTS_LIMITS: JsonLimits =
    JsonLimits { bytes: MAX_EVENTS_BYTES, values: 4_000_000, token_bytes: MAX_EVENTS_BYTES };

/// The most values where an event has a string, a number or true and false.
const MAX_FIELD_VALUES: usize = 64;

/// The events of a JSON array in log order.
///
/// An event is an object with the fields of [`StoredEvent`]; segment_id, ordinal and byte_offset may
/// stand in an object `offset`. Other keys are not looked at. An `event_id` or `session_id` over 4 KiB becomes
/// `sha256:<hex>` of it. Events at one place are ordered by
/// byte_offset and event_id.
///
/// # Errors
/// The first event in the array that is not valid, by its position in the array and its name.
pub fn events_of_json(
    text: &str,
    check_interrupts: &dyn Fn(),
) -> Result<Vec<JsonEvent>, EventsError> {
    let mut reader = JsonReader::new(text, EVENTS_LIMITS, check_interrupts)?;
    if !reader.at_array() {
        let json = if reader.at_object() {
            JsonValue::Object(Vec::new())
        } else {
            reader.value_within(1)?
        };
        let message = format!("events must be a JSON array, not {json}");
        return Err(EventsError::Event(EventError(message)));
    }
    let mut events = Vec::new();
    reader.array(|reader| {
        let index = events.len();
        let event = event_of_json(reader, check_interrupts)?
            .map_err(|error| EventsError::Event(EventError(format!("events[{index}]: {error}"))));
        events.push(event?);
        Ok::<_, EventsError>(())
    })?;
    reader.finish()?;
    let interrupts = Interrupts::new(check_interrupts);
    events.sort_by(|a, b| {
        interrupts.item();
        a.event().log_order().cmp(&b.event().log_order())
    });
    Ok(events)
}

/// The fields of an event, in the order in which their values are held while it is read.
const FIELDS: [&str; 11] = [
    "segment_id",
    "ordinal",
    "byte_offset",
    "pane_id",
    "occurred_at_ms",
    "event_id",
    "session_id",
    "event_type",
    "text",
    "schema_version",
    "is_gap",
];

type Fields<'a> = [Option<JsonValue<'a>>; FIELDS.len()];

/// The next value of an array of events.
fn event_of_json(
    reader: &mut JsonReader<'_, '_>,
    check_interrupts: &dyn Fn(),
) -> Result<Result<JsonEvent, EventError>, JsonError> {
    if !reader.at_object() {
        let json = if reader.at_array() {
            JsonValue::Array(Vec::new())
        } else {
            reader.value_within(1)?
        };
        return Ok(Err(EventError(format!("an event must be a JSON object, not {json}"))));
    }
    let (mut fields, mut nested) = (Fields::default(), Fields::default());
    reader.object(|reader, key| {
        if key == "offset" && reader.at_object() {
            return reader.object(|reader, key| read_field(reader, &key, &mut nested));
        }
        read_field(reader, &key, &mut fields)
    })?;
    for (field, nested) in fields.iter_mut().zip(nested) {
        if nested.is_some() {
            *field = nested;
        }
    }
    Ok(owned_event(&fields, check_interrupts))
}

fn read_field<'a>(
    reader: &mut JsonReader<'a, '_>,
    key: &str,
    fields: &mut Fields<'a>,
) -> Result<(), JsonError> {
    match FIELDS.iter().position(|field| *field == key) {
        Some(place) => fields[place] = Some(reader.value_within(MAX_FIELD_VALUES)?),
        None => reader.skip()?,
    }
    Ok(())
}

fn owned_event(fields: &Fields<'_>, check_interrupts: &dyn Fn()) -> Result<JsonEvent, EventError> {
    let mut event = StoredEvent::default();
    let mut wrong = Ok(());
    for (key, value) in FIELDS.iter().zip(fields) {
        let Some(value) = value else { continue };
        let read = match *key {
            "segment_id" => bigint(value).map(|n| event.segment_id = n),
            "ordinal" => bigint(value).map(|n| event.ordinal = n),
            "byte_offset" => bigint(value).map(|n| event.byte_offset = n),
            "pane_id" => bigint(value).map(|n| event.pane_id = n),
            "occurred_at_ms" => bigint(value).map(|n| event.occurred_at_ms = n),
            "event_id" => string(value).map(|s| event.event_id = s),
            "session_id" => string(value).map(|s| event.session_id = s),
            "event_type" => string(value).map(|s| event.event_type = s),
            "text" => string(value).map(|s| event.text = s),
            "schema_version" => string(value).map(|s| event.schema_version = s),
            _ => boolean(value).map(|b| event.is_gap = b),
        };
        if let (Err(wanted), Ok(())) = (read, &wrong) {
            wrong = Err((key, wanted, value));
        }
    }
    if let Err((key, wanted, value)) = wrong {
        return Err(event.error(format_args!("{key} must be {wanted}, not {value}")));
    }
    let event = RecorderEvent::try_from(event)?;
    Ok(JsonEvent {
        offset: event.offset,
        event_id: bounded_name(event.event_id, check_interrupts).into(),
        pane_id: event.pane_id,
        session_id: event.session_id.map(|name| bounded_name(name, check_interrupts).into()),
        occurred_at_ms: event.occurred_at_ms,
        kind: event.kind,
        text: event.text.into(),
    })
}

fn bigint(json: &JsonValue<'_>) -> Result<Option<i64>, &'static str> {
    let integer = match json {
        JsonValue::Null => return Ok(None),
        JsonValue::Number(number) => number.written_integer(),
        _ => None,
    };
    integer.map(Some).ok_or("an integer in the range of bigint")
}

fn boolean(json: &JsonValue<'_>) -> Result<Option<bool>, &'static str> {
    match json {
        JsonValue::Null => Ok(None),
        JsonValue::Bool(value) => Ok(Some(*value)),
        _ => Err("true or false"),
    }
}

fn string<'j>(json: &'j JsonValue<'_>) -> Result<Option<&'j str>, &'static str> {
    match json {
        JsonValue::Null => Ok(None),
        JsonValue::String(text) => Ok(Some(text)),
        _ => Err("a string"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contribution(text: &str) -> String {
        let stored = StoredEvent {
            segment_id: Some(0),
            ordinal: Some(0),
            byte_offset: Some(0),
            pane_id: Some(0),
            event_id: Some("e"),
            occurred_at_ms: Some(0),
            event_type: Some("egress_output"),
            text: Some(text),
            ..StoredEvent::default()
        };
        RecorderEvent::try_from(stored).unwrap().contribution(&|| {})
    }

    #[test]
    fn contributions_are_normalised() {
        let cases = [
            ("", "[OUT]"),
            ("\n", "[OUT]"),
            ("\n\n", "[OUT]\n"),
            ("\r\r\n", "[OUT]\n"),
            ("a  \r\n b\t\rc\n", "[OUT] a\n b\nc"),
            ("a\u{3000}\u{2028}\nb\u{feff}", "[OUT] a\nb\u{feff}"),
            ("  a", "[OUT]   a"),
            ("a\n ", "[OUT] a\n"),
        ];
        for (text, expected) in cases {
            assert_eq!(contribution(text), expected, "{text:?}");
        }
    }

    #[test]
    fn long_ids_become_their_hash() {
        let text = |id: &str, session: &str| {
            format!(
                r#"[{{"event_id":"{id}","session_id":"{session}","segment_id":0,"ordinal":1,"byte_offset":0,
                "pane_id":1,"occurred_at_ms":0,"event_type":"egress_output","text":"x"}}]"#
            )
        };
        let (fits, long) = ("é".repeat(2048), "é".repeat(2048) + "x");
        let events = events_of_json(&text(&fits, &long), &|| {}).unwrap();
        let event = events[0].event();
        assert_eq!(event.event_id, fits);
        let hash = crate::graph::content::sha256_hex(long.as_bytes());
        assert_eq!(event.session_id, Some(format!("sha256:{hash}").as_str()));
        let events = events_of_json(&text(&long, &fits), &|| {}).unwrap();
        assert_eq!(events[0].event().event_id, format!("sha256:{hash}"));
    }

    #[test]
    fn bad_events_are_named() {
        let cases = [
            ("{}", "events must be a JSON array, not an object"),
            ("[1]", "events[0]: an event must be a JSON object, not 1"),
            (
                r#"[{"event_id":"a","ordinal":9223372036854775808}]"#,
                "events[0]: event \"a\" at segment null, ordinal null: ordinal must be an integer in the range of \
                 bigint, not 9223372036854775808",
            ),
            (
                r#"[{"event_id":"a","segment_id":0,"ordinal":1}]"#,
                r#"events[0]: event "a" at segment 0, ordinal 1: byte_offset is null"#,
            ),
            (
                r#"[{"event_id":"a","segment_id":0,"ordinal":-1,"schema_version":"v2"}]"#,
                r#"events[0]: event "a" at segment 0, ordinal -1: unknown schema_version "v2""#,
            ),
            (
                r#"[{"event_id":"a","offset":{"segment_id":0,"ordinal":-1,"byte_offset":0}}]"#,
                r#"events[0]: event "a" at segment 0, ordinal -1: ordinal is negative: -1"#,
            ),
            (
                r#"[{"event_id":"a","segment_id":0,"ordinal":1,"byte_offset":0,"pane_id":1,"occurred_at_ms":0,"event_type":"paste"}]"#,
                r#"events[0]: event "a" at segment 0, ordinal 1: unknown event_type "paste""#,
            ),
            (
                r#"[{"segment_id":0,"ordinal":1,"byte_offset":0,"pane_id":1,"event_id":"b","occurred_at_ms":0,"event_type":"ingress_text"}]"#,
                r#"events[0]: event "b" at segment 0, ordinal 1: text is null"#,
            ),
        ];
        for (text, message) in cases {
            assert_eq!(events_of_json(text, &|| {}).unwrap_err().to_string(), message);
        }
    }
}
