//! Recorder events: what chunking reads of them, and what each contributes to a chunk's text.

use std::fmt;

use serde::Serialize;

use crate::json::{Json, shown};

/// The only version of events there is.
pub const EVENT_SCHEMA: &str = "ft.recorder.event.v1";

/// A place in the log. Ordered as the log is; each number is 0 or more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Offset {
    /// The segment.
    pub segment_id: i64,
    /// The event's position in its segment.
    pub ordinal: i64,
    /// Where the event begins in the segment's file, in bytes.
    pub byte_offset: i64,
}

impl Offset {
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
    /// NULL is an error, as is a negative number; so for the next three.
    pub segment_id: Option<i64>,
    /// See `segment_id`.
    pub ordinal: Option<i64>,
    /// See `segment_id`.
    pub byte_offset: Option<i64>,
    /// See `segment_id`.
    pub pane_id: Option<i64>,
    /// NULL is an error.
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
}

/// A valid event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecorderEvent<'a> {
    /// Where it is in the log.
    pub offset: Offset,
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
            Some(id) => format!("event {} {place}", shown(id)),
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
        if let Some(version) = stored.schema_version.filter(|version| *version != EVENT_SCHEMA) {
            return Err(stored.error(format_args!("unknown schema_version {}", shown(version))));
        }
        let offset = Offset {
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
                return Err(stored.error(format_args!("unknown event_type {}", shown(other))));
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
    pub fn log_order(&self) -> (Offset, &'a str) {
        (self.offset, self.event_id)
    }

    /// The event's part of a chunk's text: marker and text, line ends LF, one final LF dropped,
    /// the right end of every line trimmed of Unicode white space. Empty for a boundary.
    #[must_use]
    pub fn contribution(&self) -> String {
        let marker = match self.kind {
            EventKind::Ingress => "[IN] ",
            EventKind::Egress => "[OUT] ",
            EventKind::Boundary => return String::new(),
        };
        let mut contribution = String::with_capacity(marker.len() + self.text.len());
        contribution.push_str(marker);
        let mut line_start = 0;
        let mut rest = self.text;
        loop {
            let end = rest.bytes().position(|b| matches!(b, b'\r' | b'\n')).unwrap_or(rest.len());
            contribution.push_str(&rest[..end]);
            let trimmed = contribution[line_start..].trim_end().len();
            contribution.truncate(line_start + trimmed);
            let line_end = if rest[end..].starts_with("\r\n") { 2 } else { 1 };
            // A line end that nothing follows ends the last line and begins no other.
            match rest.get(end + line_end..) {
                None | Some("") => return contribution,
                Some(next) => rest = next,
            }
            contribution.push('\n');
            line_start = contribution.len();
        }
    }
}

/// The events of a JSON array in log order.
///
/// An event is an object with the fields of [`StoredEvent`]; segment_id, ordinal and byte_offset may
/// stand in an object `offset`. Other keys are not looked at. Events at one place are ordered by
/// byte_offset and event_id.
///
/// # Errors
/// The first event in the array that is not valid, by its position in the array and its name.
pub fn events_of_json(json: &Json) -> Result<Vec<RecorderEvent<'_>>, EventError> {
    let Json::Array(items) = json else {
        return Err(EventError(format!("events must be a JSON array, not {json}")));
    };
    let mut events = Vec::with_capacity(items.len());
    for (index, item) in items.iter().enumerate() {
        let event = event_of_json(item)
            .and_then(RecorderEvent::try_from)
            .map_err(|error| EventError(format!("events[{index}]: {error}")))?;
        events.push(event);
    }
    events.sort_by_key(RecorderEvent::log_order);
    Ok(events)
}

fn event_of_json(json: &Json) -> Result<StoredEvent<'_>, EventError> {
    let Json::Object(entries) = json else {
        return Err(EventError(format!("an event must be a JSON object, not {json}")));
    };
    let mut event = StoredEvent::default();
    let mut wrong = Ok(());
    let nested = entries.iter().find_map(|(key, value)| match value {
        Json::Object(offset) if key == "offset" => Some(offset.as_slice()),
        _ => None,
    });
    for (key, value) in entries.iter().chain(nested.unwrap_or_default()) {
        let read = match key.as_str() {
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
            "is_gap" => boolean(value).map(|b| event.is_gap = b),
            _ => Ok(()),
        };
        if let (Err(wanted), Ok(())) = (read, &wrong) {
            wrong = Err((key, wanted, value));
        }
    }
    match wrong {
        Ok(()) => Ok(event),
        Err((key, wanted, value)) => {
            Err(event.error(format_args!("{key} must be {wanted}, not {value}")))
        }
    }
}

fn bigint(json: &Json) -> Result<Option<i64>, &'static str> {
    match json {
        Json::Null => Ok(None),
        Json::Integer(n) => {
            i64::try_from(*n).map(Some).map_err(|_| "an integer in the range of bigint")
        }
        _ => Err("an integer in the range of bigint"),
    }
}

fn boolean(json: &Json) -> Result<Option<bool>, &'static str> {
    match json {
        Json::Null => Ok(None),
        Json::Bool(value) => Ok(Some(*value)),
        _ => Err("true or false"),
    }
}

fn string(json: &Json) -> Result<Option<&str>, &'static str> {
    match json {
        Json::Null => Ok(None),
        Json::String(text) => Ok(Some(text)),
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
        RecorderEvent::try_from(stored).unwrap().contribution()
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
    fn bad_events_are_named() {
        let cases = [
            ("{}", "events must be a JSON array, not an object"),
            ("[1]", "events[0]: an event must be a JSON object, not 1"),
            (
                r#"[{"event_id":"a","ordinal":9223372036854775808}]"#,
                r#"events[0]: event "a" at segment null, ordinal null: ordinal must be an integer in the range of bigint, not 9223372036854775808"#,
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
            let json = Json::parse(text).unwrap();
            assert_eq!(events_of_json(&json).unwrap_err().to_string(), message);
        }
    }
}
