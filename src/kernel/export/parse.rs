//! A reader of exports from outside. White space, key order and the spelling of numbers are free, as JavaScript and
//! jsonb rewrite them; every key must be there, once, and no other.

use std::borrow::Cow;
use std::fmt;

use uuid::Uuid;

use crate::export::canonical::is_lower_hex;
use crate::export::json::{JsonError, JsonLimits, JsonReader, JsonValue, Number, quoted};
use crate::graph::edge::{Edge, EdgeType};
use crate::graph::turn::{Phase, Role, Turn, TurnId};
use crate::interrupts::Interrupts;
use crate::policy::SlicePolicy;
use crate::trust::attestation::{Attestation, Status};

/// The longest export that is read, in bytes.
pub const EXPORT_MAX_BYTES: usize = 64 * 1024 * 1024;

/// Enough for the turns of the largest slice and half a million edges. No text of a turn is as long as a token may be.
const EXPORT_LIMITS: JsonLimits =
    JsonLimits { bytes: EXPORT_MAX_BYTES, values: 2_500_000, token_bytes: 64 * 1024 };

/// The most values of a turn, an edge or any other entry of an export.
const ENTRY_MAX_VALUES: usize = 64;

/// A well-formed export, in which nothing was checked.
#[derive(Clone, Debug)]
pub struct ParsedExport {
    /// Where the slice was taken, as the export says.
    pub anchor: TurnId,
    /// In the order given.
    pub turns: Vec<Turn>,
    /// In the order given.
    pub edges: Vec<Edge>,
    /// The policy's version.
    pub policy_id: String,
    /// 16 lower-case hex digits.
    pub params_hash: String,
    /// The version of the export's shape.
    pub schema_version: String,
    /// 16 lower-case hex digits.
    pub slice_id: String,
    /// 16 lower-case hex digits.
    pub graph_snapshot_hash: String,
    /// 32 lower-case hex digits.
    pub admissibility_token: Option<String>,
    /// The claim that covers the whole export.
    pub attestation: Option<Attestation>,
}

/// Why a text is not an export: what is wrong, and with which key.
pub type ParseError = String;

impl From<JsonError> for ParseError {
    fn from(error: JsonError) -> Self {
        error.to_string()
    }
}

impl ParsedExport {
    /// Reads an export entry by entry, without holding its JSON.
    ///
    /// # Errors
    /// A sentence that names the key.
    pub fn parse(text: &str, check_interrupts: &dyn Fn()) -> Result<Self, ParseError> {
        if text.len() > EXPORT_MAX_BYTES {
            return Err(format!(
                "export of {} bytes is longer than {EXPORT_MAX_BYTES}",
                text.len()
            ));
        }
        let mut reader = JsonReader::new(text, EXPORT_LIMITS, check_interrupts)?;
        if !reader.at_object() {
            let json =
                if reader.at_array() { JsonValue::Array(Vec::new()) } else { reader.value()? };
            return Err(format!("export must be an object, not {json}"));
        }
        let mut object = Object::empty("export");
        let (mut turns, mut edges) = (Vec::new(), Vec::new());
        reader.object(|reader, key| {
            let value = match key.as_ref() {
                "turns" => items(reader, &mut turns, turn)?,
                "edges" => items(reader, &mut edges, edge)?,
                _ => reader.value_within(ENTRY_MAX_VALUES)?,
            };
            object.add(key, value)
        })?;
        reader.finish()?;
        for key in ["turns", "edges"] {
            object
                .read(key, "an array", |json| matches!(json, JsonValue::Array(_)).then_some(()))?;
        }
        let export = ParsedExport {
            anchor: object.id("anchor_turn_id")?,
            turns,
            edges,
            policy_id: object.string("policy_id")?,
            params_hash: object.hex("policy_params_hash", 16)?,
            schema_version: object.string("schema_version")?,
            slice_id: object.hex("slice_id", 16)?,
            graph_snapshot_hash: object.hex("graph_snapshot_hash", 16)?,
            admissibility_token: object.optional_hex("admissibility_token", 32)?,
            attestation: match object.take("attestation")? {
                JsonValue::Null => None,
                json => Some(attestation(json)?),
            },
        };
        object.finish()?;
        Ok(export)
    }

    /// Reads an export and checks that turns and edges are in order, and that the anchor and both ends of every edge
    /// are among the turns. Nothing else is checked.
    ///
    /// # Errors
    /// A sentence that says what is wrong.
    pub fn parse_whole(text: &str, check_interrupts: &dyn Fn()) -> Result<Self, ParseError> {
        let export = Self::parse(text, check_interrupts)?;
        if !export.is_ordered() {
            return Err("turns or edges are not in ascending order, each once".to_owned());
        }
        if !export.contains(export.anchor) {
            return Err(format!("the anchor {} is not among the turns", export.anchor));
        }
        let interrupts = Interrupts::new(check_interrupts);
        let mut ends = export.edges.iter().flat_map(|edge| [edge.parent, edge.child]);
        let outside = ends.find(|end| {
            interrupts.item();
            !export.contains(*end)
        });
        match outside {
            Some(end) => Err(format!("an edge has the end {end}, which is not among the turns")),
            None => Ok(export),
        }
    }

    /// Whether turns and edges ascend, without duplicates (§6.2).
    #[must_use]
    pub fn is_ordered(&self) -> bool {
        self.turns.is_sorted_by(|a, b| a.id < b.id) && self.edges.is_sorted_by(|a, b| a < b)
    }

    /// The turns by reference, as fingerprints take them.
    #[must_use]
    pub fn turn_refs(&self) -> Vec<&Turn> {
        self.turns.iter().collect()
    }

    /// Whether a turn is among the turns, which must ascend as those of a valid export do.
    #[must_use]
    pub fn contains(&self, id: TurnId) -> bool {
        self.turns.binary_search_by_key(&id, |turn| turn.id).is_ok()
    }
}

/// Reads the items of an array one by one, and returns an empty array in its place.
fn items<'a, T>(
    reader: &mut JsonReader<'a, '_>,
    items: &mut Vec<T>,
    item: impl Fn(JsonValue<'_>) -> Result<T, ParseError>,
) -> Result<JsonValue<'a>, ParseError> {
    if !reader.at_array() {
        return Ok(reader.value_within(ENTRY_MAX_VALUES)?);
    }
    reader.array(|reader| {
        items.push(item(reader.value_within(ENTRY_MAX_VALUES)?)?);
        Ok::<_, ParseError>(())
    })?;
    Ok(JsonValue::Array(Vec::new()))
}

fn turn(json: JsonValue<'_>) -> Result<Turn, ParseError> {
    let mut object = Object::new("turn", json)?;
    let turn = Turn {
        id: object.id("id")?,
        session_id: object.string("session_id")?,
        role: object.named("role", Role::from_name)?,
        phase: object.named("phase", Phase::from_name)?,
        salience: object.binary32("salience")?,
        trajectory_depth: object.count("trajectory_depth")?,
        trajectory_sibling_order: object.count("trajectory_sibling_order")?,
        trajectory_homogeneity: object.binary32("trajectory_homogeneity")?,
        trajectory_temporal: object.binary32("trajectory_temporal")?,
        trajectory_complexity: object.binary32("trajectory_complexity")?,
        created_at: object.integer("created_at")?,
        content_hash: object.optional_hex("content_hash", 64)?,
    };
    object.finish()?;
    Ok(turn)
}

fn edge(json: JsonValue<'_>) -> Result<Edge, ParseError> {
    let mut object = Object::new("edge", json)?;
    let edge = Edge {
        parent: object.id("parent")?,
        child: object.id("child")?,
        edge_type: object.named("edge_type", EdgeType::from_name)?,
    };
    object.finish()?;
    Ok(edge)
}

pub(crate) fn attestation(json: JsonValue<'_>) -> Result<Attestation, ParseError> {
    let mut object = Object::new("attestation", json)?;
    let attestation = Attestation {
        v: object.count("v")?,
        kid: object.string("kid")?,
        digest: object.hex("digest", 64)?,
        graph: object.string("graph")?,
        policy: SlicePolicy::from_quantized(object.take("policy")?)
            .map_err(|error| format!("attestation.policy: {error}"))?,
        role: object.string("role")?,
        rls: object.boolean("rls")?,
        status: object.named("status", Status::from_name)?,
        token: object.optional_string("token")?,
    };
    object.finish()?;
    Ok(attestation)
}

/// An object with exactly the keys that are taken out of it, each once.
pub(crate) struct Object<'a> {
    /// What the object is, for messages.
    what: &'static str,
    /// Whether messages write `slice policy key "max_nodes"`, or `turn.salience`.
    is_policy: bool,
    /// The prefix of its keys in messages, where it is nested in the object of that name.
    path: String,
    entries: Vec<(Cow<'a, str>, JsonValue<'a>)>,
}

impl<'a> Object<'a> {
    pub(crate) fn new(what: &'static str, json: JsonValue<'a>) -> Result<Self, ParseError> {
        Object::empty(what).of(json)
    }

    /// The object of a policy.
    pub(crate) fn policy(what: &'static str, json: JsonValue<'a>) -> Result<Self, ParseError> {
        Object { is_policy: true, ..Object::empty(what) }.of(json)
    }

    fn empty(what: &'static str) -> Self {
        Object { what, is_policy: false, path: String::new(), entries: Vec::new() }
    }

    fn of(self, json: JsonValue<'a>) -> Result<Self, ParseError> {
        match json {
            JsonValue::Object(entries) => self.with(entries),
            json => Err(format!("{} must be an object, not {json}", self.what)),
        }
    }

    fn with(mut self, entries: Vec<(Cow<'a, str>, JsonValue<'a>)>) -> Result<Self, ParseError> {
        self.entries.reserve_exact(entries.len().min(ENTRY_MAX_VALUES));
        entries.into_iter().try_for_each(|(key, value)| self.add(key, value))?;
        Ok(self)
    }

    fn add(&mut self, key: Cow<'a, str>, value: JsonValue<'a>) -> Result<(), ParseError> {
        if self.has(&key) {
            return Err(format!("{} key {} is given twice", self.what, self.quoted(&key)));
        }
        // No object has so many keys; a text from outside may have millions.
        if self.entries.len() == ENTRY_MAX_VALUES {
            return Err(self.unknown(&key));
        }
        self.entries.push((key, value));
        Ok(())
    }

    /// A known key as messages name it.
    fn name(&self, key: &str) -> String {
        match self.is_policy {
            true => format!("{} key {}", self.what, self.quoted(key)),
            false => format!("{}.{}{key}", self.what, self.path),
        }
    }

    /// A key that may be any text.
    fn quoted(&self, key: &str) -> String {
        quoted(&format!("{}{key}", self.path))
    }

    fn unknown(&self, key: &str) -> ParseError {
        format!("{} has no key {}", self.what, self.quoted(key))
    }

    /// Whether the key is given, and was not taken yet.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.entries.iter().any(|(name, _)| name == key)
    }

    pub(crate) fn take(&mut self, key: &str) -> Result<JsonValue<'a>, ParseError> {
        let place = self.entries.iter().position(|(name, _)| name == key);
        let place = place.ok_or_else(|| format!("{} is missing", self.name(key)))?;
        Ok(self.entries.swap_remove(place).1)
    }

    /// Refuses keys that were not taken.
    pub(crate) fn finish(self) -> Result<(), ParseError> {
        match self.entries.iter().map(|(key, _)| key).min() {
            Some(key) => Err(self.unknown(key)),
            None => Ok(()),
        }
    }

    fn wrong(&self, key: &str, wanted: impl fmt::Display, json: &JsonValue<'_>) -> ParseError {
        format!("{} must be {wanted}, not {json}", self.name(key))
    }

    pub(crate) fn read<T>(
        &mut self,
        key: &str,
        wanted: impl fmt::Display,
        read: impl FnOnce(&JsonValue<'a>) -> Option<T>,
    ) -> Result<T, ParseError> {
        let json = self.take(key)?;
        read(&json).ok_or_else(|| self.wrong(key, wanted, &json))
    }

    /// A nested object. Messages name its keys with this key as prefix.
    pub(crate) fn nested(
        &mut self,
        key: &str,
        wanted: impl fmt::Display,
    ) -> Result<Self, ParseError> {
        match self.take(key)? {
            JsonValue::Object(entries) => {
                let path = format!("{}{key}.", self.path);
                let Object { what, is_policy, .. } = *self;
                Object { what, is_policy, path, entries: Vec::new() }.with(entries)
            }
            json => Err(self.wrong(key, wanted, &json)),
        }
    }

    pub(crate) fn list<T>(
        &mut self,
        key: &str,
        item: impl FnMut(JsonValue<'a>) -> Result<T, ParseError>,
    ) -> Result<Vec<T>, ParseError> {
        match self.take(key)? {
            JsonValue::Array(items) => items.into_iter().map(item).collect(),
            json => Err(self.wrong(key, "an array", &json)),
        }
    }

    pub(crate) fn string(&mut self, key: &str) -> Result<String, ParseError> {
        self.read(key, "a string", |json| string(json).map(str::to_owned))
    }

    pub(crate) fn optional_string(&mut self, key: &str) -> Result<Option<String>, ParseError> {
        self.read(key, "a string or null", |json| match json {
            JsonValue::Null => Some(None),
            json => string(json).map(|text| Some(text.to_owned())),
        })
    }

    pub(crate) fn hex(&mut self, key: &str, length: usize) -> Result<String, ParseError> {
        self.read(key, format_args!("{length} lower-case hex digits"), |json| hex(json, length))
    }

    pub(crate) fn optional_hex(
        &mut self,
        key: &str,
        length: usize,
    ) -> Result<Option<String>, ParseError> {
        self.read(key, format_args!("{length} lower-case hex digits"), |json| match json {
            JsonValue::Null => Some(None),
            json => hex(json, length).map(Some),
        })
    }

    pub(crate) fn id(&mut self, key: &str) -> Result<TurnId, ParseError> {
        self.read(key, "a lower-case UUID", |json| string(json).and_then(canonical_uuid))
    }

    pub(crate) fn boolean(&mut self, key: &str) -> Result<bool, ParseError> {
        self.read(key, "true or false", |json| match json {
            JsonValue::Bool(value) => Some(*value),
            _ => None,
        })
    }

    pub(crate) fn named<T>(
        &mut self,
        key: &str,
        from_name: impl FnOnce(&str) -> Option<T>,
    ) -> Result<T, ParseError> {
        self.read(key, "one of its names", |json| string(json).and_then(from_name))
    }

    fn integer(&mut self, key: &str) -> Result<i64, ParseError> {
        self.read(key, "an integer", |json| number(json).and_then(Number::integer))
    }

    pub(crate) fn count(&mut self, key: &str) -> Result<u32, ParseError> {
        self.read(key, "a count", |json| u32::try_from(number(json)?.integer()?).ok())
    }

    fn binary32(&mut self, key: &str) -> Result<f32, ParseError> {
        self.read(key, "a binary32 number", |json| number(json).and_then(Number::binary32))
    }

    pub(crate) fn optional_binary32(&mut self, key: &str) -> Result<Option<f32>, ParseError> {
        self.read(key, "a binary32 number or null", |json| match json {
            JsonValue::Null => Some(None),
            json => number(json)?.binary32().map(Some),
        })
    }

    pub(crate) fn number(&mut self, key: &str) -> Result<f64, ParseError> {
        self.read(key, "a number", |json| number(json).and_then(Number::as_f64))
    }

    pub(crate) fn null(&mut self, key: &str) -> Result<(), ParseError> {
        self.read(key, "null", |json| (*json == JsonValue::Null).then_some(()))
    }
}

/// A string that PostgreSQL can hold: without NUL.
pub(crate) fn string<'j>(json: &'j JsonValue<'_>) -> Option<&'j str> {
    match json {
        JsonValue::String(text) if !text.contains('\0') => Some(text),
        _ => None,
    }
}

/// A UUID in the only spelling that exports have.
pub(crate) fn canonical_uuid(text: &str) -> Option<TurnId> {
    let id = Uuid::try_parse(text).ok()?;
    let mut buffer = Uuid::encode_buffer();
    (id.hyphenated().encode_lower(&mut buffer) == text).then_some(id)
}

fn hex(json: &JsonValue<'_>, length: usize) -> Option<String> {
    string(json).filter(|text| is_lower_hex(text, length)).map(str::to_owned)
}

fn number<'a>(json: &JsonValue<'a>) -> Option<Number<'a>> {
    match json {
        JsonValue::Number(number) => Some(*number),
        _ => None,
    }
}
