//! A reader of exports from outside. White space, key order and the spelling of numbers may differ, because JavaScript
//! and jsonb rewrite them. Every key must be there, once, and no other; to compare and to draw, exports may lack the
//! keys that came after SlicePolicy v1 §6.1: hashes of contents, tokens and the attestation.

use crate::graph::edge::{Edge, EdgeType};
use crate::graph::turn::{Phase, Role, Turn, TurnId};
use crate::interrupts::Interrupts;
use crate::json::object::{MAX_ENTRY_VALUES, Object, ParseError};
use crate::json::{JsonLimits, JsonReader, JsonValue};
use crate::policy::SlicePolicy;
use crate::trust::attestation::{Attestation, Status};

/// The longest export that is read, in bytes.
pub const MAX_EXPORT_BYTES: usize = 64 * 1024 * 1024;

/// The most values of an export: enough for the turns of the largest slice and half a million edges.
pub(crate) const MAX_EXPORT_VALUES: usize = 2_500_000;

/// The longest string or number of a document, in bytes. No text of a turn is as long.
pub(crate) const MAX_TOKEN_BYTES: usize = 64 * 1024;

/// A reader of a document that is an export or holds one, of at most so many values.
pub(crate) fn document_reader<'a, 'c>(
    what: &str,
    text: &'a str,
    values: usize,
    check_interrupts: &'c dyn Fn(),
) -> Result<JsonReader<'a, 'c>, ParseError> {
    if text.len() > MAX_EXPORT_BYTES {
        return Err(format!("{what} of {} bytes is longer than {MAX_EXPORT_BYTES}", text.len()));
    }
    let limits = JsonLimits { bytes: MAX_EXPORT_BYTES, values, token_bytes: MAX_TOKEN_BYTES };
    Ok(JsonReader::new(text, limits, check_interrupts)?)
}

/// The most values of an attestation, whose policy has pins and seeds.
pub(crate) const MAX_ATTESTATION_VALUES: usize = 512;

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
    /// 16 lower-case hex digits. None in an export of the form of SlicePolicy v1 §6.1.
    pub graph_snapshot_hash: Option<String>,
    /// 32 lower-case hex digits.
    pub admissibility_token: Option<String>,
    /// The claim that covers the whole export.
    pub attestation: Option<Attestation>,
}

/// Which keys an export must have.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Keys {
    /// All that the kernel writes.
    All,
    /// Those of SlicePolicy v1 §6.1; the others may be there.
    Locked,
    /// As `Locked`. Names may have any ASCII case, and numbers of turns may be null, as the published crate has them.
    Published,
}

impl Keys {
    /// The value of a key that §6.1 does not have.
    fn later<'a, T>(
        self,
        object: &mut Object<'a>,
        key: &str,
        read: impl FnOnce(&mut Object<'a>) -> Result<Option<T>, ParseError>,
    ) -> Result<Option<T>, ParseError> {
        if self != Keys::All && !object.has(key) { Ok(None) } else { read(object) }
    }

    /// The value of a name.
    fn named<T>(self, from_name: impl Fn(&str) -> Option<T>) -> impl Fn(&str) -> Option<T> {
        move |name| match self {
            Keys::Published => from_name(&name.to_ascii_lowercase()),
            _ => from_name(name),
        }
    }

    /// A number of a turn, and what it is where the crate wrote null for NaN and infinities.
    fn number(self, object: &mut Object<'_>, key: &str, default: f32) -> Result<f32, ParseError> {
        match self {
            Keys::Published => Ok(object.optional_binary32(key)?.unwrap_or(default)),
            _ => object.binary32(key),
        }
    }
}

impl ParsedExport {
    /// Reads an export entry by entry, without holding its JSON.
    ///
    /// # Errors
    /// A sentence that names the key.
    pub fn parse(text: &str, check_interrupts: &dyn Fn()) -> Result<Self, ParseError> {
        Self::parse_with(text, Keys::All, check_interrupts)
    }

    fn parse_with(text: &str, keys: Keys, check_interrupts: &dyn Fn()) -> Result<Self, ParseError> {
        let mut reader = document_reader("export", text, MAX_EXPORT_VALUES, check_interrupts)?;
        let export = Self::read(&mut reader, keys)?;
        reader.finish()?;
        Ok(export)
    }

    /// Reads an export that is a part of another document.
    pub(crate) fn read_nested(reader: &mut JsonReader<'_, '_>) -> Result<Self, ParseError> {
        Self::read(reader, Keys::All)
    }

    fn read(reader: &mut JsonReader<'_, '_>, keys: Keys) -> Result<Self, ParseError> {
        if !reader.at_object() {
            let json =
                if reader.at_array() { JsonValue::Array(Vec::new()) } else { reader.value()? };
            return Err(format!("export must be an object, not {json}"));
        }
        let mut object = Object::empty("export");
        let (mut turns, mut edges) = (Vec::new(), Vec::new());
        reader.object(|reader, key| {
            let value = match key.as_ref() {
                "turns" => items(reader, &mut turns, |json| turn(json, keys))?,
                "edges" => items(reader, &mut edges, |json| edge(json, keys))?,
                "attestation" => reader.value_within(MAX_ATTESTATION_VALUES)?,
                _ => reader.value_within(MAX_ENTRY_VALUES)?,
            };
            object.add(key, value)
        })?;
        for key in ["turns", "edges"] {
            object
                .read(key, "an array", |json| matches!(json, JsonValue::Array(_)).then_some(()))?;
        }
        let export = ParsedExport { turns, edges, ..Self::head(&mut object, keys)? };
        object.finish()?;
        Ok(export)
    }

    /// What is left of an export without its turns and edges.
    pub(super) fn head(object: &mut Object<'_>, keys: Keys) -> Result<Self, ParseError> {
        Ok(ParsedExport {
            anchor: object.id("anchor_turn_id")?,
            turns: Vec::new(),
            edges: Vec::new(),
            policy_id: object.string("policy_id")?,
            params_hash: object.hex("policy_params_hash", 16)?,
            schema_version: object.string("schema_version")?,
            slice_id: object.hex("slice_id", 16)?,
            graph_snapshot_hash: keys.later(object, "graph_snapshot_hash", |object| {
                object.hex("graph_snapshot_hash", 16).map(Some)
            })?,
            admissibility_token: keys.later(object, "admissibility_token", |object| {
                object.optional_hex("admissibility_token", 32)
            })?,
            attestation: keys.later(object, "attestation", |object| {
                match object.take("attestation")? {
                    JsonValue::Null => Ok(None),
                    json => attestation(json).map(Some),
                }
            })?,
        })
    }

    /// Reads an export to compare or draw it: keys that SlicePolicy v1 §6.1 does not have may be missing. Checks that
    /// turns and edges are in order, and that the anchor and both ends of every edge are turns of it. Nothing else is
    /// checked.
    ///
    /// # Errors
    /// A sentence that says what is wrong.
    pub fn parse_whole(text: &str, check_interrupts: &dyn Fn()) -> Result<Self, ParseError> {
        let export = Self::parse_with(text, Keys::Locked, check_interrupts)?;
        export.expect_whole(check_interrupts)?;
        Ok(export)
    }

    /// Refuses an export that is not in order, or whose anchor or ends of edges are not turns of it.
    pub(super) fn expect_whole(&self, check_interrupts: &dyn Fn()) -> Result<(), ParseError> {
        if !self.is_ordered() {
            return Err("turns or edges are not in ascending order, each once".to_owned());
        }
        if !self.contains(self.anchor) {
            return Err(format!("the anchor {} is not among the turns", self.anchor));
        }
        let interrupts = Interrupts::new(check_interrupts);
        let mut ends = self.edges.iter().flat_map(|edge| [edge.parent, edge.child]);
        let outside = ends.find(|end| {
            interrupts.item();
            !self.contains(*end)
        });
        match outside {
            Some(end) => Err(format!("an edge has the end {end}, which is not among the turns")),
            None => Ok(()),
        }
    }

    /// Whether it says anything of contents. An export of the form of SlicePolicy v1 §6.1 does not, nor what was made
    /// of one.
    #[must_use]
    pub fn has_contents(&self) -> bool {
        self.graph_snapshot_hash.is_some()
            && (self.admissibility_token.is_some()
                || self.attestation.is_some()
                || self.turns.iter().any(|turn| turn.content_hash.is_some()))
    }

    /// Whether turns and edges ascend, without duplicates (§6.2).
    #[must_use]
    pub fn is_ordered(&self) -> bool {
        self.turns.is_sorted_by(|a, b| a.id < b.id) && self.edges.is_sorted_by(|a, b| a < b)
    }

    /// The content fingerprint; empty where there is none.
    pub(crate) fn snapshot_hash(&self) -> &str {
        self.graph_snapshot_hash.as_deref().unwrap_or_default()
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
pub(crate) fn items<'a, T>(
    reader: &mut JsonReader<'a, '_>,
    items: &mut Vec<T>,
    item: impl Fn(JsonValue<'_>) -> Result<T, ParseError>,
) -> Result<JsonValue<'a>, ParseError> {
    if !reader.at_array() {
        return Ok(reader.value_within(MAX_ENTRY_VALUES)?);
    }
    reader.array(|reader| {
        items.push(item(reader.value_within(MAX_ENTRY_VALUES)?)?);
        Ok::<_, ParseError>(())
    })?;
    Ok(JsonValue::Array(Vec::new()))
}

pub(super) fn turn(json: JsonValue<'_>, keys: Keys) -> Result<Turn, ParseError> {
    let mut object = Object::new("turn", json)?;
    let turn = Turn {
        id: object.id("id")?,
        session_id: object.string("session_id")?,
        role: object.named("role", keys.named(Role::from_name))?,
        phase: object.named("phase", keys.named(Phase::from_name))?,
        salience: keys.number(&mut object, "salience", 0.5)?,
        trajectory_depth: object.count("trajectory_depth")?,
        trajectory_sibling_order: object.count("trajectory_sibling_order")?,
        trajectory_homogeneity: keys.number(&mut object, "trajectory_homogeneity", 0.5)?,
        trajectory_temporal: keys.number(&mut object, "trajectory_temporal", 0.5)?,
        trajectory_complexity: keys.number(&mut object, "trajectory_complexity", 1.0)?,
        created_at: object.integer("created_at")?,
        content_hash: keys
            .later(&mut object, "content_hash", |object| object.optional_hex("content_hash", 64))?,
    };
    object.finish()?;
    Ok(turn)
}

pub(super) fn edge(json: JsonValue<'_>, keys: Keys) -> Result<Edge, ParseError> {
    let mut object = Object::new("edge", json)?;
    let edge = Edge {
        parent: object.id("parent")?,
        child: object.id("child")?,
        edge_type: object.named("edge_type", keys.named(EdgeType::from_name))?,
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
