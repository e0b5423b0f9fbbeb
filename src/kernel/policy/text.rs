//! Policies from text.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use super::quantized::Quantized;
use super::{SlicePolicy, v1};
use crate::export::json::{JsonError, JsonLimits, JsonValue, quoted};
use crate::export::parse::{Object, ParseError};

/// The longest policy text that is read, in bytes.
pub const POLICY_TEXT_MAX_BYTES: usize = 64 * 1024;

/// What the text of any policy may have.
pub(crate) const POLICY_LIMITS: JsonLimits =
    JsonLimits { bytes: POLICY_TEXT_MAX_BYTES, values: 1024, token_bytes: POLICY_TEXT_MAX_BYTES };

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
    /// The text is longer than [`POLICY_TEXT_MAX_BYTES`].
    TooLong(String),
}

impl fmt::Display for PolicyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Syntax(message) | Self::Parameter(message) | Self::TooLong(message) => {
                f.write_str(message)
            }
            Self::UnknownPreset { kind, name } => {
                write!(f, "no {kind} policy preset is named {}", quoted(name))
            }
        }
    }
}

impl std::error::Error for PolicyError {}

impl PolicyError {
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
    if text.len() <= POLICY_TEXT_MAX_BYTES {
        return Ok(());
    }
    Err(PolicyError::TooLong(format!(
        "{kind} policy text of {} bytes is longer than {POLICY_TEXT_MAX_BYTES}",
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
        let read = || {
            let mut keys = PolicyKeys { object: Object::policy("slice policy", json)?, form };
            keys.version()?;
            let parameters = v1::Parameters::take(&mut keys)?;
            keys.finish()?;
            Ok(SlicePolicy::V1(parameters))
        };
        read().map_err(PolicyError::Parameter)
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

    fn version(&mut self) -> Result<(), ParseError> {
        if self.is_default("version") {
            return Ok(());
        }
        let wanted = SlicePolicy::IDS.map(|id| format!("{id:?}")).join(" or ");
        self.value("version", wanted, (), |json| match json {
            JsonValue::String(id) => SlicePolicy::IDS.contains(&id.as_ref()).then_some(()),
            _ => None,
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
                r#"{"version":"slice_policy_v2"}"#,
                r#"slice policy key "version" must be "slice_policy_v1", not "slice_policy_v2""#,
            ),
            (r#"{"radius":1}"#, r#"slice policy has no key "radius""#),
            ("[]", "slice policy must be a JSON object or a preset name, not an array"),
            ("wide", r#"no slice policy preset is named "wide""#),
        ];
        for (text, message) in cases {
            assert_eq!(parse(text).unwrap_err(), message);
        }
    }
}
