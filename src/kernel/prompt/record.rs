//! A prompt as a document that can be kept, checked and shown again (PROMPT.md, Record): its messages in their order,
//! their texts by hash, beside the slice that they are.

use serde::{Serialize, Serializer};
use sha2::{Digest, Sha256};

use crate::export::document::canonical_text;
use crate::export::parse::{MAX_EXPORT_VALUES, ParsedExport, document_reader, items};
use crate::export::writer::JsonWriter;
use crate::graph::turn::{Role, TurnId};
use crate::hex::{from_lower_hex, hex};
use crate::interrupts::Interrupts;
use crate::json::JsonValue;
use crate::json::object::{MAX_ENTRY_VALUES, Object, ParseError};
use crate::named_enum::named_enum;
use crate::slicing::slice::Part;
use crate::trust::attestation::{Attestation, Status, encode};
use crate::trust::keys::{SigningKeys, VerifyingKeys};

/// The version of records.
pub(crate) const RECORD_VERSION: u32 = 1;

/// The most values of a record: those of its slice, and a message of each turn.
const MAX_RECORD_VALUES: usize = MAX_EXPORT_VALUES + 1_000_000;

/// A SHA-256.
pub type Hash = [u8; 32];

/// The hash of a text as it is stored.
#[must_use]
pub fn text_hash(text: &str, check_interrupts: &dyn Fn()) -> Hash {
    let mut hasher = Sha256::new();
    let interrupts = Interrupts::new(check_interrupts);
    interrupts.pieces(text.as_bytes()).for_each(|piece| hasher.update(piece));
    hasher.finalize().into()
}

/// The hash that a caller gives of what a model is shown besides: 64 lower-case hex digits.
#[must_use]
pub fn context_hash(text: &str) -> Option<Hash> {
    from_lower_hex(text)?.try_into().ok()
}

/// What a model was shown of a turn.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RecordedMessage {
    /// The turn.
    pub turn_id: TurnId,
    /// What it is in the slice for.
    pub part: Part,
    /// Who wrote it.
    pub role: Role,
    /// When it was created, in microseconds since 1970; `None` where that is not stored.
    pub created_at: Option<i64>,
    /// What it takes of a token budget.
    pub tokens: u32,
    /// The hash of its content; `None` where none is stored.
    #[serde(serialize_with = "optional_hex")]
    pub content: Option<Hash>,
    /// The hash of its payload, as [`crate::json::jsonb_text`] writes it; `None` where none is stored.
    #[serde(serialize_with = "optional_hex")]
    pub payload: Option<Hash>,
}

fn optional_hex<S: Serializer>(hash: &Option<Hash>, serializer: S) -> Result<S::Ok, S::Error> {
    hash.as_ref().map(|hash| hex(hash)).serialize(serializer)
}

named_enum! {
    /// What became of a recorded message.
    MessageState {
        /// The turn is what it was.
        Unchanged = "unchanged",
        /// Its content, payload, role or time is another one.
        Changed = "changed",
        /// There is no such turn, or its reader may not see it.
        Gone = "gone",
    }
}

/// A message as it stands now: what a [`RecordedMessage`] is compared with.
#[derive(Clone, Copy, Debug)]
pub struct MessageNow<'a> {
    /// Who wrote it.
    pub role: Role,
    /// When it was created, in microseconds since 1970; `None` where that is not stored.
    pub created_at: Option<i64>,
    /// Its content; `None` where none is stored.
    pub content: Option<&'a str>,
    /// Its payload, as [`crate::json::jsonb_text`] writes it; `None` where none is stored.
    pub payload: Option<&'a str>,
}

impl RecordedMessage {
    /// What became of it.
    #[must_use]
    pub fn state(&self, now: Option<MessageNow<'_>>, check_interrupts: &dyn Fn()) -> MessageState {
        let Some(now) = now else { return MessageState::Gone };
        let is_same = now.role == self.role
            && now.created_at == self.created_at
            && self.has_texts_of(now, check_interrupts);
        if is_same { MessageState::Unchanged } else { MessageState::Changed }
    }

    /// Whether content and payload are those that were recorded.
    #[must_use]
    pub fn has_texts_of(&self, now: MessageNow<'_>, check_interrupts: &dyn Fn()) -> bool {
        is_hash_of(self.content, now.content, check_interrupts)
            && is_hash_of(self.payload, now.payload, check_interrupts)
    }
}

/// Whether this is the hash of that text; that there is none, where there is no text.
#[must_use]
pub fn is_hash_of(hash: Option<Hash>, text: Option<&str>, check_interrupts: &dyn Fn()) -> bool {
    hash == text.map(|text| text_hash(text, check_interrupts))
}

/// What a record says beside its slice.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// The caller's word of what a model was shown besides.
    pub context: Option<Hash>,
    /// In the order in which the model was shown them.
    pub messages: Vec<RecordedMessage>,
    /// The digest of the messages, their context and their slice.
    pub digest: Hash,
    /// The claim, none where the slice has none.
    pub token: Option<String>,
}

impl Record {
    /// The record of these messages, which are those of a slice with this attestation. `keys` are those that signed it.
    #[must_use]
    pub fn new(
        context: Option<Hash>,
        messages: Vec<RecordedMessage>,
        attestation: &Attestation,
        keys: &SigningKeys,
        check_interrupts: &dyn Fn(),
    ) -> Self {
        let mut record = Record { context, messages, digest: Hash::default(), token: None };
        record.digest = record.computed_digest(attestation, check_interrupts);
        if attestation.status == Status::Attested {
            let mac = keys.prompt.mac(&record.signed(attestation));
            record.token = Some(format!("gkp1.{}.{}", keys.kid, hex(&mac)));
        }
        record
    }

    /// The digest of what is recorded, computed again.
    #[must_use]
    pub fn computed_digest(&self, attestation: &Attestation, check_interrupts: &dyn Fn()) -> Hash {
        let interrupts = Interrupts::new(check_interrupts);
        let mut hasher = Sha256::new();
        let mut put = |bytes: &[u8]| {
            interrupts.bytes(bytes.len());
            hasher.update(bytes);
        };
        encode(&mut put, "graph_kernel/prompt/v1");
        put(&from_lower_hex(&attestation.digest).unwrap_or_default());
        put_optional(&mut put, self.context.as_ref().map(Hash::as_slice));
        put(&(self.messages.len() as u32).to_le_bytes());
        for message in &self.messages {
            put(message.turn_id.as_bytes());
            encode(&mut put, message.part.name());
            encode(&mut put, message.role.name());
            let time = message.created_at.map(i64::to_le_bytes);
            put_optional(&mut put, time.as_ref().map(<[u8; 8]>::as_slice));
            put(&message.tokens.to_le_bytes());
            put_optional(&mut put, message.content.as_ref().map(Hash::as_slice));
            put_optional(&mut put, message.payload.as_ref().map(Hash::as_slice));
        }
        hasher.finalize().into()
    }

    /// Whether the token is that of this record under the keys of the epoch.
    #[must_use]
    pub fn verify(&self, attestation: &Attestation, keys: &VerifyingKeys) -> bool {
        let mac = self
            .token
            .as_deref()
            .and_then(|token| token.strip_prefix(&format!("gkp1.{}.", attestation.kid)))
            .and_then(from_lower_hex)
            .filter(|mac| mac.len() == 32);
        attestation.kid == keys.kid
            && mac.is_some_and(|mac| keys.prompt.verify(&self.signed(attestation), &mac))
    }

    /// What the token signs.
    fn signed(&self, attestation: &Attestation) -> Vec<u8> {
        let mut message = Vec::new();
        let mut put = |bytes: &[u8]| message.extend_from_slice(bytes);
        encode(&mut put, "graph_kernel/prompt/token/v1");
        encode(&mut put, &attestation.kid);
        encode(&mut put, &attestation.graph);
        encode(&mut put, &attestation.role);
        put(&[u8::from(attestation.rls)]);
        put(&self.digest);
        message
    }

    /// What all messages take of a token budget.
    #[must_use]
    pub fn tokens(&self) -> u64 {
        self.messages.iter().map(|message| u64::from(message.tokens)).sum()
    }

    /// The canonical JSON text, with the text of the slice's export.
    #[must_use]
    pub fn to_json(&self, slice: &str, check_interrupts: &dyn Fn()) -> String {
        let interrupts = Interrupts::new(check_interrupts);
        let mut json = JsonWriter::with_capacity(self.expected_bytes() + slice.len());
        json.raw("{\"v\":1,\"context\":");
        json.value(&self.context.as_ref().map(|hash| hex(hash)));
        json.raw(",\"messages\":");
        json.list(&self.messages, &interrupts, JsonWriter::value);
        json.raw(",\"digest\":");
        json.value(&hex(&self.digest));
        json.raw(",\"token\":");
        json.value(&self.token);
        json.raw(",\"slice\":");
        json.raw(slice);
        json.raw("}");
        json.finish()
    }

    /// How long [`Record::to_json`] expects the text to be without that of the slice.
    #[must_use]
    pub fn expected_bytes(&self) -> usize {
        512 + 384 * self.messages.len()
    }
}

fn put_optional(put: &mut impl FnMut(&[u8]), bytes: Option<&[u8]>) {
    match bytes {
        None => put(&[0]),
        Some(bytes) => {
            put(&[1]);
            put(bytes);
        }
    }
}

/// A document that can be verified: an export, or a record with the export that it holds.
#[derive(Clone, Debug)]
pub struct Document {
    /// The slice.
    pub export: ParsedExport,
    /// The prompt, where the document is the record of one.
    pub record: Option<Record>,
}

impl Document {
    /// Reads either. Nothing is checked but its form.
    ///
    /// # Errors
    /// A sentence that names the key.
    pub fn parse(text: &str, check_interrupts: &dyn Fn()) -> Result<Self, ParseError> {
        if is_record(text, check_interrupts) {
            let (record, export) = parse_record(text, check_interrupts)?;
            Ok(Document { export, record: Some(record) })
        } else {
            Ok(Document { export: ParsedExport::parse(text, check_interrupts)?, record: None })
        }
    }

    /// Reads either to show it, an export as [`ParsedExport::parse_whole`] does.
    ///
    /// # Errors
    /// A sentence that says what is wrong.
    pub fn parse_whole(text: &str, check_interrupts: &dyn Fn()) -> Result<Self, ParseError> {
        if is_record(text, check_interrupts) {
            return Self::parse(text, check_interrupts);
        }
        let export = ParsedExport::parse_whole(text, check_interrupts)?;
        Ok(Document { export, record: None })
    }

    /// The canonical JSON text.
    #[must_use]
    pub fn canonical_text(&self, check_interrupts: &dyn Fn()) -> String {
        let slice = canonical_text(&self.export, check_interrupts);
        match &self.record {
            Some(record) => record.to_json(&slice, check_interrupts),
            None => slice,
        }
    }
}

/// The keys of a record, none of which an export has.
const KEYS: [&str; 6] = ["v", "context", "messages", "digest", "token", "slice"];

/// Whether a document is to be read as a record. Keys are exact in both, so that the first one decides.
fn is_record(text: &str, check_interrupts: &dyn Fn()) -> bool {
    let Ok(mut reader) = document_reader("", text, MAX_RECORD_VALUES, check_interrupts) else {
        return false;
    };
    let mut first = None;
    // It ends at the first key.
    let _ = reader.object(|_, key| {
        first = Some(KEYS.contains(&key.as_ref()));
        Err(ParseError::new())
    });
    first == Some(true)
}

fn parse_record(
    text: &str,
    check_interrupts: &dyn Fn(),
) -> Result<(Record, ParsedExport), ParseError> {
    let mut reader = document_reader("record", text, MAX_RECORD_VALUES, check_interrupts)?;
    let mut object = Object::empty("record");
    let (mut messages, mut slice) = (Vec::new(), None);
    reader.object(|reader, key| {
        let value = match key.as_ref() {
            "messages" => items(reader, &mut messages, message)?,
            "slice" if slice.is_none() && reader.at_object() => {
                slice = Some(ParsedExport::read_nested(reader)?);
                JsonValue::Object(Vec::new())
            }
            _ => reader.value_within(MAX_ENTRY_VALUES)?,
        };
        object.add(key, value)
    })?;
    reader.finish()?;
    object.read("v", RECORD_VERSION, |json| match json {
        JsonValue::Number(number) => {
            (number.integer() == Some(RECORD_VERSION.into())).then_some(())
        }
        _ => None,
    })?;
    object
        .read("messages", "an array", |json| matches!(json, JsonValue::Array(_)).then_some(()))?;
    object.read("slice", "an object", |json| matches!(json, JsonValue::Object(_)).then_some(()))?;
    let record = Record {
        context: object.optional_hash("context")?,
        messages,
        digest: object.hash("digest")?,
        token: object.optional_string("token")?,
    };
    object.finish()?;
    Ok((record, slice.ok_or("record.slice is missing")?))
}

fn message(json: JsonValue<'_>) -> Result<RecordedMessage, ParseError> {
    let mut object = Object::new("message", json)?;
    let message = RecordedMessage {
        turn_id: object.id("turn_id")?,
        part: object.named("part", Part::from_name)?,
        role: object.named("role", Role::from_name)?,
        created_at: object.optional_integer("created_at")?,
        tokens: object.read("tokens", "a count", |json| match json {
            JsonValue::Number(number) => u32::try_from(i32::try_from(number.integer()?).ok()?).ok(),
            _ => None,
        })?,
        content: object.optional_hash("content")?,
        payload: object.optional_hash("payload")?,
    };
    object.finish()?;
    Ok(message)
}
