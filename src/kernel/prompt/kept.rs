//! Texts that somebody has kept of the messages of a prompt, as a JSON array.

use super::record::{Hash, RecordedMessage, is_hash_of, text_hash};
use crate::export::parse::MAX_EXPORT_BYTES;
use crate::json::object::{MAX_ENTRY_VALUES, ParseError};
use crate::json::{JsonLimits, JsonReader, JsonValue, quoted, read_jsonb};

const LIMITS: JsonLimits =
    JsonLimits { bytes: MAX_EXPORT_BYTES, values: usize::MAX, token_bytes: MAX_EXPORT_BYTES };

/// A payload that is null.
const NULL: &str = "null";

/// What was kept of a message, by its hashes.
#[derive(Clone, Debug, PartialEq)]
pub struct KeptMessage {
    /// Of its content, if that was kept; inside, `None` where there was no content.
    content: Option<Option<Hash>>,
    /// Of its payload, likewise.
    payload: Option<Option<Hash>>,
}

impl KeptMessage {
    /// What was kept of each message, in their order: a string is its content, null that it has none; an object has the
    /// keys `content`, `payload` or both.
    ///
    /// # Errors
    /// A sentence that says what is wrong with the text.
    pub fn read_all(text: &str, check_interrupts: &dyn Fn()) -> Result<Vec<Self>, ParseError> {
        // What no jsonb can hold is read as a payload of type json is.
        let mut reader = JsonReader::new(text, LIMITS, check_interrupts)?.replacing_surrogates();
        if !reader.at_array() {
            return Err("contents must be an array".to_owned());
        }
        let mut kept = Vec::new();
        reader.array(|reader| {
            let message = Self::read(reader, check_interrupts);
            kept.push(message.map_err(|why| format!("item {}: {why}", kept.len() + 1))?);
            Ok::<_, ParseError>(())
        })?;
        reader.finish()?;
        Ok(kept)
    }

    fn read(
        reader: &mut JsonReader<'_, '_>,
        check_interrupts: &dyn Fn(),
    ) -> Result<Self, ParseError> {
        let content = |json: &JsonValue<'_>| match json {
            JsonValue::Null => Some(None),
            JsonValue::String(text) => Some(Some(text_hash(text, check_interrupts))),
            _ => None,
        };
        let mut kept = KeptMessage { content: None, payload: None };
        if !reader.at_object() {
            let json = reader.value_within(MAX_ENTRY_VALUES)?;
            let content = content(&json)
                .ok_or_else(|| format!("must be a string, null or an object, not {json}"))?;
            return Ok(KeptMessage { content: Some(content), ..kept });
        }
        reader.object(|reader, key| match &*key {
            "content" if kept.content.is_none() => {
                let json = reader.value_within(MAX_ENTRY_VALUES)?;
                let read = content(&json);
                kept.content = Some(
                    read.ok_or_else(|| format!("content must be a string or null, not {json}"))?,
                );
                Ok(())
            }
            "payload" if kept.payload.is_none() => {
                let text = read_jsonb(reader, check_interrupts)?;
                kept.payload = Some((text != NULL).then(|| text_hash(&text, check_interrupts)));
                Ok(())
            }
            "content" | "payload" => Err(format!("key {} is given twice", quoted(&key))),
            _ => Err(format!("message has no key {}", quoted(&key))),
        })?;
        match kept {
            KeptMessage { content: None, payload: None } => {
                Err("message has neither content nor payload".to_owned())
            }
            kept => Ok(kept),
        }
    }

    /// Whether what was kept is what was shown. In JSON, no payload and the payload `null` are one.
    #[must_use]
    pub fn matches(&self, shown: &RecordedMessage) -> bool {
        let payload = |kept: Option<Hash>| {
            kept == shown.payload || kept.is_none() && is_hash_of(shown.payload, Some(NULL), &|| {})
        };
        self.content.is_none_or(|kept| kept == shown.content) && self.payload.is_none_or(payload)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::turn::{Role, TurnId};
    use crate::json::jsonb_text;
    use crate::slicing::slice::Part;

    fn shown(content: Option<&str>, payload: Option<&str>) -> RecordedMessage {
        RecordedMessage {
            turn_id: TurnId::from_u128(1),
            part: Part::Line,
            role: Role::User,
            created_at: None,
            tokens: 0,
            content: content.map(|text| text_hash(text, &|| {})),
            payload: payload
                .map(|json| text_hash(&jsonb_text(json, usize::MAX, &|| {}).unwrap(), &|| {})),
        }
    }

    #[test]
    fn what_was_kept_matches_what_was_shown() {
        let payload = r#"{"content": [1.50, "a\u0000\n"], "a": 1e2, "id": null}"#;
        let both = shown(Some("é"), Some(payload));
        let neither = shown(None, None);
        for (json, of_both, of_neither) in [
            (r#""\u00e9""#.to_owned(), true, false),
            (r#""e""#.to_owned(), false, false),
            ("null".to_owned(), false, true),
            (r#"{"content":"é"}"#.to_owned(), true, false),
            (r#"{"content":null,"payload":null}"#.to_owned(), false, true),
            (r#"{"payload":null}"#.to_owned(), false, true),
            (format!(r#"{{"payload":{payload}}}"#), true, false),
            (format!(r#"{{"payload":{payload},"content":"é"}}"#), true, false),
            (format!(r#"{{"payload":{payload},"content":"e"}}"#), false, false),
            (
                r#"{"payload":{"id":null,"a":100,"content":[1.50,"a\ufffd\n"]}}"#.to_owned(),
                true,
                false,
            ),
            (
                r#"{"payload":{"id":null,"a":100,"content":[1.5,"a\ufffd\n"]}}"#.to_owned(),
                false,
                false,
            ),
            (r#"{"payload":{},"content":"é"}"#.to_owned(), false, false),
        ] {
            let kept = KeptMessage::read_all(&format!("[{json}]"), &|| {}).unwrap();
            assert_eq!(
                (kept[0].matches(&both), kept[0].matches(&neither)),
                (of_both, of_neither),
                "{json}"
            );
        }
        // A payload that is null is stored as one, or not at all.
        let kept = KeptMessage::read_all(r#"[{"payload":null}]"#, &|| {}).unwrap();
        assert!(kept[0].matches(&shown(None, Some("null"))));
    }

    #[test]
    fn other_texts_are_refused() {
        for (text, wanted) in [
            ("", "must be an array"),
            ("[", "EOF"),
            ("{}", "must be an array"),
            ("[1]", "item 1: must be a string, null or an object, not 1"),
            ("[\"\",[]]", "item 2: must be"),
            ("[{}]", "neither content nor payload"),
            (r#"[{"content":1}]"#, "content must be a string or null"),
            (r#"[{"content":"","extra":1}]"#, "no key \"extra\""),
            (r#"[{"content":"","content":""}]"#, "given twice"),
            (r#"[{"payload":1e400000}]"#, "no numeric is"),
            ("[null] x", "trailing characters"),
        ] {
            let error = KeptMessage::read_all(text, &|| {}).unwrap_err();
            assert!(error.contains(wanted), "{text}: {error}");
        }
        assert_eq!(KeptMessage::read_all(" [ ] ", &|| {}), Ok(Vec::new()));
    }
}
