//! Policies from text.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use super::SlicePolicy;
use super::quantized::Quantized;
use super::v1::V1Parameters;
use super::v2::{self, V2Parameters};
use crate::graph::turn::TurnId;
use crate::json::object::{Object, ParseError, any_uuid, canonical_uuid};
use crate::json::{JsonError, JsonLimits, JsonValue, quoted};

/// The longest policy text that is read, in bytes.
pub const MAX_POLICY_TEXT_BYTES: usize = 64 * 1024;

/// What the text of any policy may have.
pub(crate) const POLICY_LIMITS: JsonLimits =
    JsonLimits { bytes: MAX_POLICY_TEXT_BYTES, values: 1024, token_bytes: MAX_POLICY_TEXT_BYTES };

/// Why a text is not a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PolicyError {
    /// The text is not JSON.
    Syntax(String),
    /// The text is taken for a preset's name, and no preset of this kind of policy has it.
    UnknownPreset {
        /// The kind of policy: `slice`, `sufficiency`.
        kind: &'static str,
        /// The name.
        name: String,
    },
    /// A key or its value is not allowed; the message names the key.
    Parameter(String),
    /// A key that only policies of another version have.
    OtherVersion {
        /// The key.
        key: &'static str,
        /// The version that has it.
        version: &'static str,
    },
    /// The text is longer than [`MAX_POLICY_TEXT_BYTES`].
    TooLong(String),
}

impl From<ParseError> for PolicyError {
    fn from(message: ParseError) -> Self {
        Self::Parameter(message)
    }
}

impl fmt::Display for PolicyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Syntax(message) | Self::Parameter(message) | Self::TooLong(message) => {
                f.write_str(message)
            }
            Self::OtherVersion { key, .. } => write!(f, "slice policy has no key {key:?}"),
            Self::UnknownPreset { kind, name } => {
                write!(f, "no {kind} policy preset is named {}", quoted(name))
            }
        }
    }
}

impl std::error::Error for PolicyError {}

/// Keys of slice policies that version 1 has, with those in them.
const V1_KEYS: [&str; 14] = [
    "preset",
    "version",
    "max_nodes",
    "max_radius",
    "phase_weights",
    "phase_weights.synthesis",
    "phase_weights.planning",
    "phase_weights.consolidation",
    "phase_weights.debugging",
    "phase_weights.exploration",
    "salience_weight",
    "distance_decay",
    "include_siblings",
    "max_siblings_per_node",
];

/// In how many letters a key may differ from one that exists, to be taken for a slip.
const MAX_SLIPS: usize = 2;

/// How many letters have to be changed, added or taken away to make one text of the other.
fn letters_apart(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (n, letter) in a.chars().enumerate() {
        let mut above = std::mem::replace(&mut row[0], n + 1);
        for (m, other) in b.iter().enumerate() {
            let changed = above + usize::from(letter != *other);
            above = row[m + 1];
            row[m + 1] = changed.min(above + 1).min(row[m] + 1);
        }
    }
    row[b.len()]
}

impl PolicyError {
    /// The key of a slice policy that is nearly the one that does not exist.
    #[must_use]
    pub fn near_key(&self) -> Option<&'static str> {
        let Self::Parameter(message) = self else { return None };
        let key = message.strip_prefix("slice policy has no key \"")?.strip_suffix('"')?;
        let slips = |known: &&str| letters_apart(key, known);
        let is_short = |known: &&str| key.len() <= known.len() + MAX_SLIPS;
        let keys = V1_KEYS.into_iter().chain(v2::KEYS).filter(is_short);
        keys.min_by_key(slips).filter(|known| slips(known) <= MAX_SLIPS)
    }

    /// Why the text of a kind of policy cannot be read.
    pub(crate) fn of_json(kind: &str, error: JsonError) -> Self {
        let message = format!("{kind} policy is {error}");
        match error {
            JsonError::Syntax(..) => Self::Syntax(message),
            // Valid JSON, or it may be.
            JsonError::TooDeep => Self::Parameter(message),
            _ => Self::TooLong(message),
        }
    }

    /// The error for a name that no preset of a kind of policy has.
    pub(crate) fn unknown_preset(kind: &'static str, name: &str) -> Self {
        Self::UnknownPreset { kind, name: name.to_owned() }
    }
}

/// Refuses the text of a kind of policy where it is too long.
pub(crate) fn check_length(kind: &str, text: &str) -> Result<(), PolicyError> {
    if text.len() <= MAX_POLICY_TEXT_BYTES {
        return Ok(());
    }
    Err(PolicyError::TooLong(format!(
        "{kind} policy text of {} bytes is longer than {MAX_POLICY_TEXT_BYTES}",
        text.len()
    )))
}

impl FromStr for SlicePolicy {
    type Err = PolicyError;

    fn from_str(text: &str) -> Result<Self, PolicyError> {
        check_length("slice", text)?;
        let text = text.trim_ascii();
        if let Some(preset) = Self::preset(text).or_else(|| Self::preset_of_text(text)) {
            return Ok(preset);
        }
        match JsonValue::read(text, POLICY_LIMITS, &|| {}) {
            Ok(JsonValue::String(name)) => {
                Self::preset(&name).ok_or_else(|| PolicyError::unknown_preset("slice", &name))
            }
            Ok(json @ JsonValue::Object(_)) => Self::from_object(json, Form::Input),
            Ok(other) => Err(PolicyError::Parameter(format!(
                "slice policy must be a JSON object or a preset name, not {other}"
            ))),
            Err(JsonError::Syntax(..)) if !text.starts_with('{') => {
                Err(PolicyError::unknown_preset("slice", text))
            }
            Err(error) => Err(PolicyError::of_json("slice", error)),
        }
    }
}

impl SlicePolicy {
    /// Reads the policy of an attestation: every key, floats in millionths.
    ///
    /// # Errors
    /// As for text; also for a missing key.
    pub fn from_quantized(json: JsonValue<'_>) -> Result<Self, PolicyError> {
        Self::from_object(json, Form::Quantized)
    }

    fn from_object(json: JsonValue<'_>, form: Form) -> Result<Self, PolicyError> {
        let read = || -> Result<Self, PolicyError> {
            let mut keys = PolicyKeys { object: Object::policy("slice policy", json)?, form };
            let policy = match keys.base()? {
                SlicePolicy::V1(base) => {
                    let parameters = V1Parameters::take(&mut keys, &base)?;
                    if let Some(key) = v2::KEYS.into_iter().find(|key| keys.object.has(key)) {
                        let version = v2::ID;
                        return Err(PolicyError::OtherVersion { key, version });
                    }
                    SlicePolicy::V1(parameters)
                }
                SlicePolicy::V2(base) => {
                    SlicePolicy::V2(V2Parameters::take(&mut keys, &base)?.into())
                }
            };
            keys.finish()?;
            Ok(policy)
        };
        read()
    }
}

/// The two forms in which a policy is written.
#[derive(Clone, Copy, PartialEq)]
enum Form {
    /// What users write: a missing key takes its default.
    Input,
    /// The canonical form of an attestation: every key, floats in millionths.
    Quantized,
}

/// The keys of a policy, taken one by one.
pub(super) struct PolicyKeys<'a> {
    object: Object<'a>,
    form: Form,
}

impl<'a> PolicyKeys<'a> {
    /// Whether the key is not given and takes its default.
    fn is_default(&self, key: &str) -> bool {
        self.form == Form::Input && !self.object.has(key)
    }

    fn value<T>(
        &mut self,
        key: &str,
        wanted: impl fmt::Display,
        default: T,
        read: impl FnOnce(&JsonValue<'a>) -> Option<T>,
    ) -> Result<T, ParseError> {
        if self.is_default(key) {
            return Ok(default);
        }
        self.object.read(key, wanted, read)
    }

    /// The policy of `preset` or, where that is not given, the one of `version` with every key at its default.
    fn base(&mut self) -> Result<SlicePolicy, ParseError> {
        let preset = if self.form == Form::Input && self.object.has("preset") {
            let wanted = alternatives(&SlicePolicy::PRESETS);
            Some(self.object.read("preset", wanted, |json| match json {
                JsonValue::String(name) => SlicePolicy::preset(name),
                _ => None,
            })?)
        } else {
            None
        };
        let of_preset = preset.as_ref().map(SlicePolicy::id);
        if self.is_default("version") {
            return Ok(preset.unwrap_or_default());
        }
        let ids: Vec<&'static str> = SlicePolicy::IDS
            .into_iter()
            .filter(|id| of_preset.is_none_or(|of| of == *id))
            .collect();
        let version = self.object.read("version", alternatives(&ids), |json| match json {
            JsonValue::String(given) => ids.iter().copied().find(|id| id == given),
            _ => None,
        })?;
        Ok(preset.unwrap_or_else(|| match version {
            v2::ID => SlicePolicy::V2(Box::default()),
            _ => SlicePolicy::default(),
        }))
    }

    /// The integer of a key; `None` where it is null.
    pub(super) fn optional_integer(
        &mut self,
        key: &str,
        range: RangeInclusive<i64>,
        default: Option<i64>,
    ) -> Result<Option<i64>, ParseError> {
        let form = self.form;
        let (min, max) = (range.start(), range.end());
        let wanted = format_args!("null or an integer between {min} and {max}");
        self.value(key, wanted, default, |json| match json {
            JsonValue::Null => Some(None),
            json => integer(json, form).filter(|integer| range.contains(integer)).map(Some),
        })
    }

    /// The integer of a key.
    pub(super) fn integer(
        &mut self,
        key: &str,
        range: RangeInclusive<u32>,
        default: u32,
    ) -> Result<u32, ParseError> {
        let form = self.form;
        let (min, max) = (range.start(), range.end());
        let wanted = format_args!("an integer between {min} and {max}");
        self.value(key, wanted, default, |json| {
            let integer = u32::try_from(integer(json, form)?).ok();
            integer.filter(|integer| range.contains(integer))
        })
    }

    /// The float of a key.
    pub(super) fn float(
        &mut self,
        key: &str,
        range: RangeInclusive<f64>,
        default: Quantized,
    ) -> Result<Quantized, ParseError> {
        let form = self.form;
        let (min, max) = (range.start(), range.end());
        let wanted = format_args!("a number between {min} and {max}");
        self.value(key, wanted, default, |json| match (form, json) {
            (Form::Input, JsonValue::Number(number)) => {
                number.as_f64().filter(|number| range.contains(number)).map(Quantized::new)
            }
            (Form::Input, _) => None,
            (Form::Quantized, _) => {
                let range = Quantized::new(*min).millionths()..=Quantized::new(*max).millionths();
                let millionths = integer(json, form).filter(|n| range.contains(n));
                millionths.map(Quantized::from_millionths)
            }
        })
    }

    /// The float of a key whose range is one of millionths.
    pub(super) fn millionths(
        &mut self,
        key: &str,
        range: RangeInclusive<i64>,
        default: Quantized,
    ) -> Result<Quantized, ParseError> {
        let form = self.form;
        let bound = |millionths: &i64| *millionths as f64 / 1e6;
        let (min, max) = (bound(range.start()), bound(range.end()));
        self.value(key, format_args!("a number between {min} and {max}"), default, |json| {
            millionths(json, form).filter(|found| range.contains(&found.millionths()))
        })
    }

    /// The ids of the key `pins`; none where it is null or not given.
    pub(super) fn pins(&mut self, most: usize) -> Result<Vec<TurnId>, ParseError> {
        if self.is_default("pins") {
            return Ok(Vec::new());
        }
        let form = self.form;
        let is_list = |json: &JsonValue<'a>| match json {
            JsonValue::Null => Some(Vec::new()),
            JsonValue::Array(items) => Some(items.clone()).filter(|items| !items.is_empty()),
            _ => None,
        };
        let wanted = format_args!("null or an array of 1 to {most} uuids");
        let items = self.object.read("pins", wanted, is_list)?;
        too_many("pins", items.len(), most)?;
        let mut pins: Vec<TurnId> = Vec::with_capacity(items.len());
        for item in &items {
            let id = match item {
                JsonValue::String(text) => uuid(text, form),
                _ => None,
            };
            let id = id.ok_or_else(|| {
                format!("slice policy key \"pins\" has {item}, which is not a uuid")
            })?;
            if pins.contains(&id) {
                return Err(format!("slice policy key \"pins\" has {id} twice"));
            }
            pins.push(id);
        }
        Ok(pins)
    }

    /// The ids of the key `seeds` with their strengths; none where it is null or not given.
    pub(super) fn seeds(&mut self, most: usize) -> Result<BTreeMap<TurnId, Quantized>, ParseError> {
        if self.is_default("seeds") {
            return Ok(BTreeMap::new());
        }
        let form = self.form;
        let is_object = |json: &JsonValue<'a>| match json {
            JsonValue::Null => Some(Vec::new()),
            JsonValue::Object(entries) => Some(entries.clone()).filter(|all| !all.is_empty()),
            _ => None,
        };
        let wanted = format_args!("null or an object of 1 to {most} uuids with their strengths");
        let entries = self.object.read("seeds", wanted, is_object)?;
        too_many("seeds", entries.len(), most)?;
        let mut seeds = BTreeMap::new();
        for (key, json) in &entries {
            let id = uuid(key, form).ok_or_else(|| {
                format!("slice policy key \"seeds\" has {}, which is not a uuid", quoted(key))
            })?;
            let strength = millionths(json, form)
                .filter(|found| (1..=1_000_000).contains(&found.millionths()))
                .ok_or_else(|| {
                    format!(
                        "slice policy key \"seeds.{id}\" must be a number above 0 and up to 1, not {json}"
                    )
                })?;
            if seeds.insert(id, strength).is_some() {
                return Err(format!("slice policy key \"seeds\" has {id} twice"));
            }
        }
        Ok(seeds)
    }

    /// The boolean of a key.
    pub(super) fn boolean(&mut self, key: &str, default: bool) -> Result<bool, ParseError> {
        self.value(key, "true or false", default, |json| match json {
            JsonValue::Bool(value) => Some(*value),
            _ => None,
        })
    }

    /// The keys of an object in this one, where it is given.
    pub(super) fn nested(
        &mut self,
        key: &'static str,
        wanted: impl fmt::Display,
    ) -> Result<Option<PolicyKeys<'a>>, ParseError> {
        if self.is_default(key) {
            return Ok(None);
        }
        let object = self.object.nested(key, wanted)?;
        Ok(Some(PolicyKeys { object, form: self.form }))
    }

    /// Refuses keys that were not taken.
    pub(super) fn finish(self) -> Result<(), ParseError> {
        self.object.finish()
    }
}

/// Refuses a list that is too long.
fn too_many(key: &str, count: usize, most: usize) -> Result<(), ParseError> {
    match count > most {
        true => Err(format!("slice policy key {key:?} has {count} uuids, more than {most}")),
        false => Ok(()),
    }
}

/// A UUID: of input in any spelling that PostgreSQL reads, else in the one that exports have.
fn uuid(text: &str, form: Form) -> Option<TurnId> {
    match form {
        Form::Input => any_uuid(text),
        Form::Quantized => canonical_uuid(text),
    }
}

/// A number that is not an integer, in millionths.
fn millionths(json: &JsonValue<'_>, form: Form) -> Option<Quantized> {
    match (form, json) {
        (Form::Input, JsonValue::Number(number)) => number.as_f64().map(Quantized::new),
        (Form::Input, _) => None,
        (Form::Quantized, _) => integer(json, form).map(Quantized::from_millionths),
    }
}

/// The texts, quoted, with "or" between.
fn alternatives(texts: &[&str]) -> String {
    texts.iter().map(|text| format!("{text:?}")).collect::<Vec<_>>().join(" or ")
}

fn integer(json: &JsonValue<'_>, form: Form) -> Option<i64> {
    match (form, json) {
        (Form::Input, JsonValue::Number(number)) => number.written_integer(),
        // Other programs may have written the export anew.
        (Form::Quantized, JsonValue::Number(number)) => number.integer(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<SlicePolicy, String> {
        text.parse().map_err(|error: PolicyError| error.to_string())
    }

    #[test]
    fn a_slip_in_a_key_is_answered_with_the_key() {
        let near = |text: &str| text.parse::<SlicePolicy>().unwrap_err().near_key();
        assert_eq!(near(r#"{"max_node":1}"#), Some("max_nodes"));
        let in_v2 = |key: &str| near(&format!(r#"{{"version":"slice_policy_v2","{key}":1}}"#));
        assert_eq!(in_v2("max_token"), Some("max_tokens"));
        assert_eq!(in_v2("same_sesion"), Some("same_session"));
        assert_eq!(in_v2("radius"), None);
        assert_eq!(in_v2(&"x".repeat(5000)), None);
        // Each of them is a key: it is never answered as one that does not exist.
        for key in V1_KEYS.into_iter().chain(v2::KEYS).filter(|key| *key != "version") {
            let text = match key.split_once('.') {
                Some((outer, inner)) => format!(r#""{outer}":{{"{inner}":"x"}}"#),
                None => format!(r#""{key}":"x""#),
            };
            let text = format!(r#"{{"version":"slice_policy_v2",{text}}}"#);
            let error = text.parse::<SlicePolicy>().map_err(|error| error.to_string());
            assert!(error.is_err_and(|error| !error.contains("has no key")), "{text}");
        }
    }

    #[test]
    fn missing_keys_take_defaults_and_the_canonical_text_reads_back() {
        assert_eq!(parse("{}").unwrap(), SlicePolicy::default());
        let policy = parse(r#"{"max_nodes":3,"phase_weights":{"synthesis":0.12345649}}"#).unwrap();
        assert_eq!(parse(&policy.canonical_text()).unwrap(), policy);
        assert!(policy.canonical_text().contains(r#""synthesis":0.123456,"planning":0.9"#));
    }

    #[test]
    fn the_quantized_form_reads_back_and_has_every_key() {
        let read = |text: &str| {
            let json = JsonValue::read(text, POLICY_LIMITS, &|| {}).unwrap();
            SlicePolicy::from_quantized(json).map_err(|error| error.to_string())
        };
        let text = SlicePolicy::broad().quantized_text();
        assert_eq!(read(&text), Ok(SlicePolicy::broad()));
        for (key, missing) in [
            (r#""version":"slice_policy_v1","#, "version"),
            (r#""include_siblings":true,"#, "include_siblings"),
            (r#""planning":900000,"#, "phase_weights.planning"),
        ] {
            assert!(text.contains(key), "{text}");
            let expected = format!("slice policy key \"{missing}\" is missing");
            assert_eq!(read(&text.replace(key, "")), Err(expected));
        }
    }

    #[test]
    fn a_preset_stands_in_for_the_defaults() {
        let chat = SlicePolicy::preset("chat").unwrap();
        assert_eq!(parse(r#"{"preset":"chat"}"#).unwrap(), chat);
        assert_eq!(parse(r#"{"version":"slice_policy_v2","preset":"chat"}"#).unwrap(), chat);
        assert_eq!(parse(&chat.canonical_text()).unwrap(), chat);
        assert!(!chat.canonical_text().contains("preset"));
        let wider = parse(r#"{"preset":"chat","max_tokens":4000,"edge_weights":{"reply":0.5}}"#);
        let text = wider.unwrap().canonical_text();
        assert!(text.contains(r#""max_tokens":4000,"#), "{text}");
        assert!(
            text.contains(r#""edge_weights":{"reply":0.5,"branch":1.0,"reference":0.0,"#),
            "{text}"
        );
        assert_eq!(
            parse(r#"{"preset":"focused","max_nodes":32}"#).unwrap(),
            SlicePolicy::focused()
        );
    }

    #[test]
    fn pins_and_seeds_are_inputs_and_not_hashed() {
        let chat = parse("chat").unwrap();
        let text = r#"{"preset":"chat",
            "pins":["00000000000040008000-00000000000B","00000000-0000-4000-8000-000000000001"],
            "seeds":{"00000000-0000-4000-8000-00000000000C":0.5,"00000000-0000-4000-8000-00000000000a":1}}"#;
        let given = parse(text).unwrap();
        assert_eq!(given.params_hash(), chat.params_hash());
        assert_ne!(given, chat);
        assert!(given.has_inputs() && !chat.has_inputs());
        assert!(
            chat.quantized_text().ends_with(r#","cut_to_user":true,"pins":null,"seeds":null}"#)
        );
        let inputs = [
            r#","cut_to_user":true,"#,
            r#""pins":["00000000-0000-4000-8000-00000000000b","00000000-0000-4000-8000-000000000001"],"#,
            r#""seeds":{"00000000-0000-4000-8000-00000000000a":1000000,"#,
            r#""00000000-0000-4000-8000-00000000000c":500000}}"#,
        ];
        assert!(given.quantized_text().ends_with(&inputs.concat()), "{}", given.quantized_text());
        assert_eq!(parse(&given.canonical_text()).unwrap(), given);
        let json = given.quantized_text();
        let json = JsonValue::read(&json, POLICY_LIMITS, &|| {}).unwrap();
        assert_eq!(SlicePolicy::from_quantized(json).unwrap(), given);
        let upper = given.quantized_text().replace("00000000000b", "00000000000B");
        let json = JsonValue::read(&upper, POLICY_LIMITS, &|| {}).unwrap();
        assert!(SlicePolicy::from_quantized(json).is_err());
    }

    #[test]
    fn parameters_act_as_they_are_hashed() {
        let a = parse(r#"{"salience_weight":0.3000001}"#).unwrap();
        let b = parse(r#"{"salience_weight":0.3000004}"#).unwrap();
        assert_eq!(a.params_hash(), b.params_hash());
        assert_eq!(a, b);
    }

    #[test]
    fn bad_policies_name_their_key() {
        let cases = [
            (
                r#"{"max_nodes":0}"#,
                r#"slice policy key "max_nodes" must be an integer between 1 and 10000, not 0"#,
            ),
            (
                r#"{"max_nodes":256.0}"#,
                r#"slice policy key "max_nodes" must be an integer between 1 and 10000, not 256.0"#,
            ),
            (
                r#"{"distance_decay":1.5}"#,
                r#"slice policy key "distance_decay" must be a number between 0 and 1, not 1.5"#,
            ),
            (
                r#"{"phase_weights":{"Synthesis":1}}"#,
                r#"slice policy has no key "phase_weights.Synthesis""#,
            ),
            (
                r#"{"phase_weights":{"planning":1,"planning":1}}"#,
                r#"slice policy key "phase_weights.planning" is given twice"#,
            ),
            (r#"{"max_nodes":1,"max_nodes":1}"#, r#"slice policy key "max_nodes" is given twice"#),
            (
                r#"{"version":"slice_policy_v3"}"#,
                r#"slice policy key "version" must be "slice_policy_v1" or "slice_policy_v2", not "slice_policy_v3""#,
            ),
            (r#"{"max_tokens":100}"#, r#"slice policy has no key "max_tokens""#),
            (r#"{"preset":"broad","as_of":1}"#, r#"slice policy has no key "as_of""#),
            (
                r#"{"preset":"chat","version":"slice_policy_v1"}"#,
                r#"slice policy key "version" must be "slice_policy_v2", not "slice_policy_v1""#,
            ),
            (
                r#"{"preset":"deep"}"#,
                "slice policy key \"preset\" must be \"default\" or \"focused\" or \"broad\" or \"lineage\" or \
                 \"chat\" or \"recall\", not \"deep\"",
            ),
            (
                r#"{"preset":"chat","max_tokens":0}"#,
                r#"slice policy key "max_tokens" must be null or an integer between 1 and 2147483647, not 0"#,
            ),
            (
                r#"{"preset":"chat","edge_weights":{"reply":1.5}}"#,
                r#"slice policy key "edge_weights.reply" must be a number between 0 and 1, not 1.5"#,
            ),
            (
                r#"{"preset":"chat","edge_weights":{"answer":1}}"#,
                r#"slice policy has no key "edge_weights.answer""#,
            ),
            (
                r#"{"preset":"chat","as_of":9007199254740992}"#,
                "slice policy key \"as_of\" must be null or an integer between -9007199254740991 and \
                 9007199254740991, not 9007199254740992",
            ),
            (r#"{"radius":1}"#, r#"slice policy has no key "radius""#),
            (
                r#"{"pins":["00000000-0000-4000-8000-000000000001"]}"#,
                r#"slice policy has no key "pins""#,
            ),
            (
                r#"{"preset":"chat","pins":[]}"#,
                r#"slice policy key "pins" must be null or an array of 1 to 64 uuids, not an array"#,
            ),
            (
                r#"{"preset":"chat","pins":["goal"]}"#,
                r#"slice policy key "pins" has "goal", which is not a uuid"#,
            ),
            (
                r#"{"preset":"chat",
                    "pins":["00000000-0000-4000-8000-00000000000A","{000000000000400080000000-0000000a}"]}"#,
                r#"slice policy key "pins" has 00000000-0000-4000-8000-00000000000a twice"#,
            ),
            (
                r#"{"preset":"chat","seeds":{}}"#,
                "slice policy key \"seeds\" must be null or an object of 1 to 256 uuids with their strengths, \
                 not an object",
            ),
            (
                r#"{"preset":"chat","seeds":{"00000000-0000-4000-8000-000000000001":4e-7}}"#,
                "slice policy key \"seeds.00000000-0000-4000-8000-000000000001\" must be a number above 0 and up to \
                 1, not 4e-7",
            ),
            (
                r#"{"preset":"chat",
                    "seeds":{"00000000-0000-4000-8000-000000000001":1,"00000000000040008000000000000001":1}}"#,
                r#"slice policy key "seeds" has 00000000-0000-4000-8000-000000000001 twice"#,
            ),
            (
                r#"{"preset":"chat","cut_share":0.900001}"#,
                r#"slice policy key "cut_share" must be a number between 0 and 0.9, not 0.900001"#,
            ),
            (
                r#"{"preset":"chat","recall_radius":17}"#,
                r#"slice policy key "recall_radius" must be an integer between 0 and 16, not 17"#,
            ),
            ("[]", "slice policy must be a JSON object or a preset name, not an array"),
            ("wide", r#"no slice policy preset is named "wide""#),
        ];
        for (text, message) in cases {
            assert_eq!(parse(text).unwrap_err(), message);
        }
    }
}
