//! An export from outside, read by value: white space, key order and the spelling of numbers are
//! free, as JavaScript and jsonb rewrite them; keys are exact and unique.

use std::collections::HashMap;

use uuid::Uuid;

use crate::attestation::{ATTESTED, Attestation, UNCOMMITTED};
use crate::canonical::is_lower_hex;
use crate::edge::{Edge, EdgeType};
use crate::json::{Json, shown};
use crate::policy::SlicePolicy;
use crate::turn::{Phase, Role, Turn, TurnId};

/// The longest export that is read, in bytes.
pub const EXPORT_MAX_BYTES: usize = 64 * 1024 * 1024;

/// The most JSON values an export is read with: a full slice's turns and half a million edges.
const EXPORT_MAX_VALUES: usize = 2_500_000;

/// An export as somebody gave it: well-formed, nothing checked.
#[derive(Clone, Debug)]
pub struct ParsedExport {
    /// Where the slice says it was taken.
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
    /// The attestation and the policy in it.
    pub attestation: Option<(Attestation, SlicePolicy)>,
}

/// Why a text is no export: what is wrong, and where.
pub type ParseError = String;

impl ParsedExport {
    /// Reads an export; `tick` is called at least every 256 values.
    ///
    /// # Errors
    /// A sentence that names the key.
    pub fn parse(text: &str, tick: &dyn Fn()) -> Result<Self, ParseError> {
        if text.len() > EXPORT_MAX_BYTES {
            return Err(format!(
                "export of {} bytes is longer than {EXPORT_MAX_BYTES}",
                text.len()
            ));
        }
        let json = Json::parse_within(text, EXPORT_MAX_VALUES, tick)
            .map_err(|error| format!("not valid JSON: {error}"))?;
        let mut object = Object::new("export", json)?;
        let export = ParsedExport {
            anchor: object.id("anchor_turn_id")?,
            turns: object.list("turns", turn)?,
            edges: object.list("edges", edge)?,
            policy_id: object.string("policy_id")?,
            params_hash: object.hex("policy_params_hash", 16)?,
            schema_version: object.string("schema_version")?,
            slice_id: object.hex("slice_id", 16)?,
            graph_snapshot_hash: object.hex("graph_snapshot_hash", 16)?,
            admissibility_token: object.optional_hex("admissibility_token", 32)?,
            attestation: match object.take("attestation")? {
                Json::Null => None,
                json => Some(attestation(json)?),
            },
        };
        object.finish()?;
        Ok(export)
    }

    /// Reads an export that is whole: turns and edges in their order, the anchor and both ends of
    /// every edge among the turns. Nothing else is checked.
    ///
    /// # Errors
    /// A sentence that says what is wrong.
    pub fn parse_whole(text: &str, tick: &dyn Fn()) -> Result<Self, ParseError> {
        let export = Self::parse(text, tick)?;
        if !export.is_ordered() {
            return Err("turns or edges are not in ascending order, each once".to_owned());
        }
        if !export.contains(export.anchor) {
            return Err(format!("the anchor {} is not among the turns", export.anchor));
        }
        let ends = export.edges.iter().flat_map(|edge| [edge.parent, edge.child]);
        match ends.into_iter().find(|end| !export.contains(*end)) {
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

fn turn(json: Json) -> Result<Turn, ParseError> {
    let mut object = Object::new("turn", json)?;
    let turn = Turn {
        id: object.id("id")?,
        session_id: object.string("session_id")?,
        role: object.named("role", |name| Role::ALL.iter().find(|role| role.name() == name))?,
        phase: object.named("phase", |name| Phase::ALL.iter().find(|p| p.name() == name))?,
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

fn edge(json: Json) -> Result<Edge, ParseError> {
    let mut object = Object::new("edge", json)?;
    let edge = Edge {
        parent: object.id("parent")?,
        child: object.id("child")?,
        edge_type: object
            .named("edge_type", |name| EdgeType::ALL.iter().find(|t| t.name() == name))?,
    };
    object.finish()?;
    Ok(edge)
}

pub(crate) fn attestation(json: Json) -> Result<(Attestation, SlicePolicy), ParseError> {
    let mut object = Object::new("attestation", json)?;
    let policy = SlicePolicy::from_quantized(object.take("policy")?)
        .map_err(|error| format!("attestation.policy: {error}"))?;
    let attestation = Attestation {
        v: object.count("v")?,
        kid: object.string("kid")?,
        digest: object.hex("digest", 64)?,
        graph: object.string("graph")?,
        policy: policy.quantized(),
        role: object.string("role")?,
        rls: object.boolean("rls")?,
        status: object
            .named("status", |name| [ATTESTED, UNCOMMITTED].iter().find(|s| **s == name))?,
        token: object.optional_string("token")?,
    };
    object.finish()?;
    Ok((attestation, policy))
}

/// An object whose keys are taken out one by one.
pub(crate) struct Object {
    what: &'static str,
    entries: HashMap<String, Json>,
}

impl Object {
    pub(crate) fn new(what: &'static str, json: Json) -> Result<Self, ParseError> {
        let Json::Object(list) = json else {
            return Err(format!("{what} must be an object, not {json}"));
        };
        let mut entries = HashMap::with_capacity(list.len());
        for (key, value) in list {
            if entries.contains_key(&key) {
                return Err(format!("{what} has the key {} twice", shown(&key)));
            }
            entries.insert(key, value);
        }
        Ok(Object { what, entries })
    }

    pub(crate) fn take(&mut self, key: &str) -> Result<Json, ParseError> {
        self.entries.remove(key).ok_or_else(|| format!("{}.{key} is missing", self.what))
    }

    pub(crate) fn finish(self) -> Result<(), ParseError> {
        match self.entries.keys().min() {
            Some(key) => Err(format!("{} has no key {}", self.what, shown(key))),
            None => Ok(()),
        }
    }

    fn read<T>(
        &mut self,
        key: &str,
        wanted: &str,
        read: impl FnOnce(&Json) -> Option<T>,
    ) -> Result<T, ParseError> {
        let json = self.take(key)?;
        read(&json).ok_or_else(|| format!("{}.{key} must be {wanted}, not {json}", self.what))
    }

    pub(crate) fn list<T>(
        &mut self,
        key: &str,
        item: impl FnMut(Json) -> Result<T, ParseError>,
    ) -> Result<Vec<T>, ParseError> {
        match self.take(key)? {
            Json::Array(items) => items.into_iter().map(item).collect(),
            json => Err(format!("{}.{key} must be an array, not {json}", self.what)),
        }
    }

    pub(crate) fn string(&mut self, key: &str) -> Result<String, ParseError> {
        self.read(key, "a string", |json| string(json).map(str::to_owned))
    }

    pub(crate) fn optional_string(&mut self, key: &str) -> Result<Option<String>, ParseError> {
        self.read(key, "a string or null", |json| match json {
            Json::Null => Some(None),
            json => string(json).map(|text| Some(text.to_owned())),
        })
    }

    pub(crate) fn hex(&mut self, key: &str, length: usize) -> Result<String, ParseError> {
        self.read(key, &format!("{length} lower-case hex digits"), |json| {
            string(json).filter(|text| is_lower_hex(text, length)).map(str::to_owned)
        })
    }

    pub(crate) fn optional_hex(
        &mut self,
        key: &str,
        length: usize,
    ) -> Result<Option<String>, ParseError> {
        match self.entries.get(key) {
            Some(Json::Null) => self.take(key).map(|_| None),
            _ => self.hex(key, length).map(Some),
        }
    }

    pub(crate) fn id(&mut self, key: &str) -> Result<TurnId, ParseError> {
        self.read(key, "a lower-case UUID", |json| string(json).and_then(canonical_uuid))
    }

    pub(crate) fn boolean(&mut self, key: &str) -> Result<bool, ParseError> {
        self.read(key, "true or false", |json| match json {
            Json::Bool(value) => Some(*value),
            _ => None,
        })
    }

    pub(crate) fn named<T: Copy + 'static>(
        &mut self,
        key: &str,
        find: impl FnOnce(&str) -> Option<&'static T>,
    ) -> Result<T, ParseError> {
        self.read(key, "one of its names", |json| string(json).and_then(find).copied())
    }

    fn integer(&mut self, key: &str) -> Result<i64, ParseError> {
        self.read(key, "an integer", integer)
    }

    pub(crate) fn count(&mut self, key: &str) -> Result<u32, ParseError> {
        self.read(key, "a count", |json| integer(json).and_then(|n| u32::try_from(n).ok()))
    }

    fn binary32(&mut self, key: &str) -> Result<f32, ParseError> {
        self.read(key, "a binary32 number", binary32)
    }

    pub(crate) fn optional_binary32(&mut self, key: &str) -> Result<Option<f32>, ParseError> {
        self.read(key, "a binary32 number or null", |json| match json {
            Json::Null => Some(None),
            json => binary32(json).map(Some),
        })
    }

    pub(crate) fn number(&mut self, key: &str) -> Result<f64, ParseError> {
        self.read(key, "a number", Json::as_f64)
    }

    pub(crate) fn null(&mut self, key: &str) -> Result<(), ParseError> {
        self.read(key, "null", |json| (*json == Json::Null).then_some(()))
    }
}

/// A string that PostgreSQL can hold: without NUL.
pub(crate) fn string(json: &Json) -> Option<&str> {
    match json {
        Json::String(text) if !text.contains('\0') => Some(text),
        _ => None,
    }
}

/// The one spelling that exports have.
pub(crate) fn canonical_uuid(text: &str) -> Option<TurnId> {
    let id = Uuid::try_parse(text).ok()?;
    let mut buffer = Uuid::encode_buffer();
    (id.hyphenated().encode_lower(&mut buffer) == text).then_some(id)
}

/// An integer, also when written with a fraction of zero.
fn integer(json: &Json) -> Option<i64> {
    match json {
        Json::Integer(n) => i64::try_from(*n).ok(),
        // Beyond 2^53 a binary64 no longer says which integer was meant.
        Json::Float(n) if n.fract() == 0.0 && n.abs() <= 9_007_199_254_740_992.0 => Some(*n as i64),
        _ => None,
    }
}

/// A binary32: in its shortest decimal form, or widened to binary64.
fn binary32(json: &Json) -> Option<f32> {
    let wide = json.as_f64()?;
    let narrow = wide as f32;
    let spells = |number: &f32| {
        let shortest = || serde_json::to_string(number).ok()?.parse::<f64>().ok();
        number.is_finite() && (f64::from(*number) == wide || shortest() == Some(wide))
    };
    // The shortest form read as a binary64 can lie just past the middle between two binary32.
    [narrow, narrow.next_up(), narrow.next_down()].into_iter().find(spells)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_binary32_reads_back_from_both_spellings() {
        let mut bits = 1u32;
        for _ in 0..200_000 {
            bits = bits.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let number = f32::from_bits(bits);
            if number.is_finite() {
                let shortest = Json::parse(&serde_json::to_string(&number).unwrap()).unwrap();
                assert_eq!(binary32(&shortest).map(f32::to_bits), Some(bits), "{number:?}");
                assert_eq!(binary32(&Json::Float(number.into())).map(f32::to_bits), Some(bits));
            }
        }
        assert_eq!(binary32(&Json::Float(0.123_456_789_012)), None);
    }
}
