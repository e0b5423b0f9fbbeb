//! Provenance of retrieval: what was asked, in which slice, and what was found. Without its MAC anybody could edit the
//! result of a global search into an admissible one.

use serde::{Serialize, Serializer};
use uuid::Uuid;

use crate::export::document::Export;
use crate::export::parse::{ParsedExport, attestation};
use crate::graph::turn::{Role, TurnId};
use crate::hex::{from_lower_hex, hex};
use crate::json::canonical::json_text;
use crate::json::object::{Object, ParseError};
use crate::json::object::{canonical_uuid, string};
use crate::json::{JsonLimits, JsonValue};
use crate::named_enum::named_enum;
use crate::policy::registry::PolicyRef;
use crate::retrieval::ranking::Filters;
use crate::retrieval::search::SearchFilter;
use crate::trust::attestation::{Attestation, Status, TokenFields, encode};
use crate::trust::keys::SigningKeys;
use crate::verification::verify::{KeyRing, has_published_token};

/// The longest provenance that is read, in bytes.
pub const MAX_PROVENANCE_BYTES: usize = 1024 * 1024;

const PROVENANCE_LIMITS: JsonLimits =
    JsonLimits { bytes: MAX_PROVENANCE_BYTES, values: 20_000, token_bytes: MAX_PROVENANCE_BYTES };

/// The slice that a search was bound to.
#[derive(Clone, Debug, PartialEq)]
pub struct SliceInfo {
    /// How many turns it has.
    pub turn_count: u32,
    /// How many edges it has.
    pub edge_count: u32,
    /// The selection fingerprint.
    pub slice_id: String,
    /// Where it was taken.
    pub anchor: TurnId,
    /// The policy's version.
    pub policy_id: String,
    /// The policy's parameters.
    pub params_hash: String,
    /// The version of the export's shape.
    pub schema_version: String,
    /// The content fingerprint.
    pub graph_snapshot_hash: String,
    /// The published token, none when the slice is not attested.
    pub admissibility_token: Option<String>,
    /// The claim that covers the whole export.
    pub attestation: Attestation,
}

impl SliceInfo {
    /// What an attested export says; `None` of one without an attestation.
    #[must_use]
    pub fn new(export: &Export<'_>) -> Option<Self> {
        Some(SliceInfo {
            turn_count: export.turns.len() as u32,
            edge_count: export.edges.len() as u32,
            slice_id: export.slice_id.clone(),
            anchor: export.anchor_turn_id,
            policy_id: export.policy_id.to_owned(),
            params_hash: export.policy_params_hash.clone(),
            schema_version: export.schema_version.to_owned(),
            graph_snapshot_hash: export.graph_snapshot_hash.clone(),
            admissibility_token: export.admissibility_token.clone(),
            attestation: export.attestation.clone()?,
        })
    }

    /// What an export says that was read; `None` of one without an attestation.
    #[must_use]
    pub fn of(export: &ParsedExport) -> Option<Self> {
        Some(SliceInfo {
            turn_count: export.turns.len() as u32,
            edge_count: export.edges.len() as u32,
            slice_id: export.slice_id.clone(),
            anchor: export.anchor,
            policy_id: export.policy_id.clone(),
            params_hash: export.params_hash.clone(),
            schema_version: export.schema_version.clone(),
            graph_snapshot_hash: export.graph_snapshot_hash.clone()?,
            admissibility_token: export.admissibility_token.clone(),
            attestation: export.attestation.clone()?,
        })
    }

    fn fields(&self) -> TokenFields<'_> {
        TokenFields {
            slice_id: &self.slice_id,
            anchor: self.anchor,
            policy_id: &self.policy_id,
            params_hash: &self.params_hash,
            graph_snapshot_hash: &self.graph_snapshot_hash,
            schema_version: &self.schema_version,
        }
    }

    /// Whether both tokens are the kernel's for these fields.
    fn has_valid_token(&self, ring: &impl KeyRing) -> bool {
        let digest = from_lower_hex(&self.attestation.digest).and_then(|d| d.try_into().ok());
        let (Some(keys), Some(digest)) = (ring.verifying_keys(&self.attestation.kid), digest)
        else {
            return false;
        };
        let fields = self.fields();
        let published = |token: &str| has_published_token(&fields, token, &keys, ring);
        self.attestation.status == Status::Attested
            && !ring.is_revoked(&self.attestation.kid)
            && self.params_hash == self.attestation.policy.params_hash()
            && self.attestation.verify(&keys, &fields, digest)
            && self.admissibility_token.as_deref().is_some_and(published)
    }
}

/// The provenance of one search.
#[derive(Clone, Debug, PartialEq)]
pub struct Provenance {
    /// Unique to the search.
    pub query_id: Uuid,
    /// The question in words, when it was given.
    pub query_text: Option<String>,
    /// When, as ISO 8601 in UTC.
    pub timestamp: String,
    /// The slice that was searched; none for a global search.
    pub slice: Option<SliceInfo>,
    /// What was found, the best first.
    pub retrieved_turn_ids: Vec<TurnId>,
    /// SHA-256 of the query embedding; none of a question in words alone.
    pub query_embedding_hash: Option<String>,
    /// SHA-256 of the turns found and their similarities, or scores of words where there was no embedding, or strengths
    /// where the whole graph was searched.
    pub result_hash: String,
    /// The most turns asked for.
    pub limit_requested: u32,
    /// Whether turns of the slice without an embedding could have filled the limit.
    pub admissibility_shortfall: bool,
    /// What the search was narrowed by.
    pub filter: SearchFilter,
    /// Time taken in milliseconds; not signed.
    pub elapsed_ms: f64,
    /// `gk3r.<kid>.<64 hex digits>`, none when the transaction had changed the graph itself.
    pub mac: Option<String>,
}

named_enum! {
    /// Where a search looked.
    Mode {
        /// In one slice.
        Slice = "slice",
        /// In the whole graph.
        Global = "global",
    }
}

/// The first text under the MAC, which separates it from other messages.
const DOMAIN: &str = "graph_kernel/retrieval/v3";

/// The canonical form: these keys in this order, compact.
#[derive(Serialize)]
struct SignedJson<'a> {
    query_id: Uuid,
    query_text: Option<&'a str>,
    timestamp: &'a str,
    retrieval_mode: Mode,
    is_admissible: bool,
    retrieved_turn_ids: &'a [TurnId],
    turn_count: Option<u32>,
    edge_count: Option<u32>,
    slice_id: Option<&'a str>,
    anchor_turn_id: Option<TurnId>,
    policy_ref: Option<PolicyRef<'a>>,
    schema_version: Option<&'a str>,
    graph_snapshot_hash: Option<&'a str>,
    admissibility_token: Option<&'a str>,
    attestation: Option<&'a Attestation>,
    query_embedding_hash: Option<&'a str>,
    result_hash: &'a str,
    limit_requested: u32,
    limit_returned: u32,
    admissibility_shortfall: bool,
    filters_applied: FiltersJson<'a>,
}

#[derive(Serialize)]
struct FiltersJson<'a> {
    min_similarity: Option<f32>,
    min_salience: Option<f32>,
    owner: Option<&'a str>,
    sessions: Option<&'a [String]>,
    roles: Option<&'a [Role]>,
    from: Option<i64>,
    to: Option<i64>,
}

#[derive(Serialize)]
struct ProvenanceJson<'a> {
    #[serde(flatten)]
    signed: SignedJson<'a>,
    elapsed_ms: f64,
    mac: Option<&'a str>,
}

impl Provenance {
    /// Where the search looked.
    #[must_use]
    pub fn mode(&self) -> Mode {
        if self.slice.is_some() { Mode::Slice } else { Mode::Global }
    }

    /// What the search itself says of its admissibility; [`Provenance::admissibility`] checks it.
    #[must_use]
    pub fn is_admissible(&self) -> bool {
        let slice = self.slice.as_ref();
        let attested = slice.is_some_and(|slice| slice.attestation.status == Status::Attested);
        attested && !self.admissibility_shortfall
    }

    /// When, in microseconds since 1970; `None` where the timestamp is not as [`iso_utc`] writes it.
    #[must_use]
    pub fn moment(&self) -> Option<i64> {
        from_iso_utc(&self.timestamp)
    }

    /// Adds the MAC.
    pub fn sign(&mut self, keys: &SigningKeys) {
        let mac = keys.retrieval.mac(&self.message(&keys.kid));
        self.mac = Some(format!("gk3r.{}.{}", keys.kid, hex(&mac)));
    }

    /// The canonical form, of which the MAC is computed: without elapsed time and MAC.
    #[must_use]
    pub fn canonical_text(&self) -> String {
        json_text(&self.signed())
    }

    /// All of it as JSON.
    #[must_use]
    pub fn to_json(&self) -> String {
        json_text(self)
    }

    /// `ok`, or the reason why what was retrieved must not be promoted.
    #[must_use]
    pub fn admissibility(&self, ring: &impl KeyRing) -> &'static str {
        let signature = self.signature(ring);
        if signature != "ok" {
            let status = self.slice.as_ref().map(|slice| slice.attestation.status);
            let is_distributed = self.mac.is_none() && status == Some(Status::Distributed);
            return if is_distributed { Status::Distributed.reason() } else { signature };
        }
        match &self.slice {
            None => Mode::Global.name(),
            Some(slice) if slice.attestation.graph != ring.graph() => "other_graph",
            Some(slice) if !slice.has_valid_token(ring) => "bad_token",
            Some(_) if self.admissibility_shortfall => "shortfall",
            Some(_) => "ok",
        }
    }

    /// The values that a repeated search must give again, by key.
    #[must_use]
    pub fn replayed(&self) -> [(&'static str, String); 6] {
        let slice = |read: fn(&SliceInfo) -> &str| {
            self.slice.as_ref().map_or_else(String::new, |slice| read(slice).to_owned())
        };
        let ids: Vec<String> = self.retrieved_turn_ids.iter().map(Uuid::to_string).collect();
        [
            ("slice_id", slice(|s| &s.slice_id)),
            ("graph_snapshot_hash", slice(|s| &s.graph_snapshot_hash)),
            ("params_hash", slice(|s| &s.params_hash)),
            ("query_embedding_hash", self.query_embedding_hash.clone().unwrap_or_default()),
            ("retrieved_turn_ids", ids.join(" ")),
            ("result_hash", self.result_hash.clone()),
        ]
    }

    /// `ok`, or what is wrong with the MAC.
    #[must_use]
    pub fn signature(&self, ring: &impl KeyRing) -> &'static str {
        let Some(mac) = self.mac.as_deref() else { return "unsigned" };
        let parts = mac.strip_prefix("gk3r.").and_then(|rest| rest.split_once('.'));
        let bytes = parts.and_then(|(_, digits)| from_lower_hex(digits));
        let (Some((kid, _)), Some(bytes)) = (parts, bytes.filter(|bytes| bytes.len() == 32)) else {
            return "bad_mac";
        };
        let Some(keys) = ring.verifying_keys(kid) else { return "unknown_key" };
        if ring.is_revoked(kid) {
            return "revoked_key";
        }
        if keys.retrieval.verify(&self.message(kid), &bytes) { "ok" } else { "bad_mac" }
    }

    fn message(&self, kid: &str) -> Vec<u8> {
        let mut message = Vec::new();
        let mut put = |bytes: &[u8]| message.extend_from_slice(bytes);
        encode(&mut put, DOMAIN);
        encode(&mut put, kid);
        encode(&mut put, &self.canonical_text());
        message
    }

    fn signed(&self) -> SignedJson<'_> {
        let slice = self.slice.as_ref();
        SignedJson {
            query_id: self.query_id,
            query_text: self.query_text.as_deref(),
            timestamp: &self.timestamp,
            retrieval_mode: self.mode(),
            is_admissible: self.is_admissible(),
            retrieved_turn_ids: &self.retrieved_turn_ids,
            turn_count: slice.map(|s| s.turn_count),
            edge_count: slice.map(|s| s.edge_count),
            slice_id: slice.map(|s| s.slice_id.as_str()),
            anchor_turn_id: slice.map(|s| s.anchor),
            policy_ref: slice
                .map(|s| PolicyRef { policy_id: &s.policy_id, params_hash: &s.params_hash }),
            schema_version: slice.map(|s| s.schema_version.as_str()),
            graph_snapshot_hash: slice.map(|s| s.graph_snapshot_hash.as_str()),
            admissibility_token: slice.and_then(|s| s.admissibility_token.as_deref()),
            attestation: slice.map(|s| &s.attestation),
            query_embedding_hash: self.query_embedding_hash.as_deref(),
            result_hash: &self.result_hash,
            limit_requested: self.limit_requested,
            limit_returned: self.retrieved_turn_ids.len() as u32,
            admissibility_shortfall: self.admissibility_shortfall,
            filters_applied: FiltersJson {
                min_similarity: self.filter.least.min_similarity,
                min_salience: self.filter.least.min_salience,
                owner: self.filter.owner.as_deref(),
                sessions: self.filter.sessions.as_deref(),
                roles: self.filter.roles.as_deref(),
                from: self.filter.from,
                to: self.filter.to,
            },
        }
    }

    /// Reads a provenance: every key, once, and no other; values that follow from others must agree.
    ///
    /// # Errors
    /// A sentence that names the key.
    pub fn parse(text: &str, check_interrupts: &dyn Fn()) -> Result<Self, ParseError> {
        if text.len() > MAX_PROVENANCE_BYTES {
            return Err(format!(
                "provenance of {} bytes is longer than {MAX_PROVENANCE_BYTES}",
                text.len()
            ));
        }
        let json = JsonValue::read(text, PROVENANCE_LIMITS, check_interrupts)?;
        let mut object = Object::new("provenance", json)?;
        let claimed = object.boolean("is_admissible")?;
        let returned = object.count("limit_returned")?;
        let filter = take_filter(&mut object)?;
        let provenance = Provenance {
            query_id: object.id("query_id")?,
            query_text: object.optional_string("query_text")?,
            timestamp: object.string("timestamp")?,
            retrieved_turn_ids: object.list("retrieved_turn_ids", |json| {
                string(&json)
                    .and_then(canonical_uuid)
                    .ok_or_else(|| "retrieved_turn_ids must be lower-case UUIDs".to_owned())
            })?,
            slice: take_slice_info(&mut object)?,
            query_embedding_hash: object.optional_hex("query_embedding_hash", 64)?,
            result_hash: object.hex("result_hash", 64)?,
            limit_requested: object.count("limit_requested")?,
            admissibility_shortfall: object.boolean("admissibility_shortfall")?,
            filter,
            elapsed_ms: object.number("elapsed_ms")?,
            mac: object.optional_string("mac")?,
        };
        object.finish()?;
        if claimed != provenance.is_admissible() {
            return Err("provenance.is_admissible does not follow from the rest".to_owned());
        }
        if provenance.moment().is_none() {
            return Err("provenance.timestamp must be a moment as ISO 8601 in UTC".to_owned());
        }
        if returned as usize != provenance.retrieved_turn_ids.len() {
            return Err("provenance.limit_returned does not count retrieved_turn_ids".to_owned());
        }
        Ok(provenance)
    }
}

impl Serialize for Provenance {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (signed, mac) = (self.signed(), self.mac.as_deref());
        ProvenanceJson { signed, elapsed_ms: self.elapsed_ms, mac }.serialize(serializer)
    }
}

/// The keys that are null in a global search.
const SLICE_KEYS: [&str; 9] = [
    "turn_count",
    "edge_count",
    "slice_id",
    "anchor_turn_id",
    "policy_ref",
    "schema_version",
    "graph_snapshot_hash",
    "admissibility_token",
    "attestation",
];

/// The slice that was searched; the keys of a global search are null.
fn take_slice_info(object: &mut Object<'_>) -> Result<Option<SliceInfo>, ParseError> {
    if object.named("retrieval_mode", Mode::from_name)? == Mode::Global {
        SLICE_KEYS.into_iter().try_for_each(|key| object.null(key))?;
        return Ok(None);
    }
    let mut policy_ref = Object::new("policy_ref", object.take("policy_ref")?)?;
    let slice = SliceInfo {
        turn_count: object.count("turn_count")?,
        edge_count: object.count("edge_count")?,
        slice_id: object.hex("slice_id", 16)?,
        anchor: object.id("anchor_turn_id")?,
        policy_id: policy_ref.string("policy_id")?,
        params_hash: policy_ref.hex("params_hash", 16)?,
        schema_version: object.string("schema_version")?,
        graph_snapshot_hash: object.hex("graph_snapshot_hash", 16)?,
        admissibility_token: object.optional_hex("admissibility_token", 32)?,
        attestation: attestation(object.take("attestation")?)?,
    };
    policy_ref.finish()?;
    Ok(Some(slice))
}

/// What the search was narrowed by.
fn take_filter(object: &mut Object<'_>) -> Result<SearchFilter, ParseError> {
    let mut filter = Object::new("filters_applied", object.take("filters_applied")?)?;
    let least = Filters {
        min_similarity: filter.optional_binary32("min_similarity")?,
        min_salience: filter.optional_binary32("min_salience")?,
    };
    let read = SearchFilter {
        least,
        owner: filter.optional_string("owner")?,
        sessions: filter.optional_list("sessions", |name| Some(name.to_owned()))?,
        roles: filter.optional_list("roles", Role::from_name)?,
        from: filter.optional_integer("from")?,
        to: filter.optional_integer("to")?,
    };
    filter.finish()?;
    Ok(read)
}

/// A moment, in microseconds since 1970, as ISO 8601 in UTC.
#[must_use]
pub fn iso_utc(microseconds: i64) -> String {
    const DAY: i64 = 86_400_000_000;
    let (days, time) = (microseconds.div_euclid(DAY), microseconds.rem_euclid(DAY));
    // Days since 0000-03-01, in eras of 400 years, so that leap days come last.
    let shifted = days + 719_468;
    let (era, day) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let (day, month) = (day - (153 * month + 2) / 5 + 1, (month + 2) % 12 + 1);
    let year = year + era * 400 + i64::from(month <= 2);
    let (seconds, micros) = (time / 1_000_000, time % 1_000_000);
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{micros:06}Z")
}

/// The moment that [`iso_utc`] has written so, from the year 0 to 9999.
fn from_iso_utc(text: &str) -> Option<i64> {
    // At these places are other characters than digits, which writing the moment again compares.
    let number = |from: usize, to: usize| -> Option<i64> { text.get(from..to)?.parse().ok() };
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let (hour, minute) = (number(11, 13)?, number(14, 16)?);
    let (second, micros) = (number(17, 19)?, number(20, 26)?);
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = 365 * year + year.div_euclid(4) - year.div_euclid(100)
        + year.div_euclid(400)
        + (153 * month + 2) / 5
        + day
        - 1
        - 719_468;
    let seconds = ((days * 24 + hour) * 60 + minute) * 60 + second;
    let moment = seconds * 1_000_000 + micros;
    (iso_utc(moment) == text).then_some(moment)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_written_as_the_calendar_has_them() {
        for (seconds, expected) in [
            (0, "1970-01-01T00:00:00.000000Z"),
            (951_782_399, "2000-02-28T23:59:59.000000Z"),
            (951_782_400, "2000-02-29T00:00:00.000000Z"),
            (1_767_268_800, "2026-01-01T12:00:00.000000Z"),
            (4_107_542_399, "2100-02-28T23:59:59.000000Z"),
            (4_107_542_400, "2100-03-01T00:00:00.000000Z"),
            (-1, "1969-12-31T23:59:59.000000Z"),
        ] {
            assert_eq!(iso_utc(seconds * 1_000_000), expected);
            assert_eq!(from_iso_utc(expected), Some(seconds * 1_000_000));
        }
        assert_eq!(iso_utc(1_767_268_800_000_042), "2026-01-01T12:00:00.000042Z");
    }

    #[test]
    fn moments_are_read_as_they_are_written_and_no_other_text_is_one() {
        for day in (-719_528_i64..2_932_897).step_by(5) {
            let moment = day * 86_400_000_000 + (day * 7_919).rem_euclid(86_400_000_000);
            assert_eq!(from_iso_utc(&iso_utc(moment)), Some(moment));
        }
        for text in [
            "",
            "now",
            "2026-01-01T12:00:00.000042",
            "2026-01-01 12:00:00.000042Z",
            "2026-01-01T12:00:00.000042z",
            "2026-01-01T12:00:00.000042ZZ",
            "2026-02-29T12:00:00.000000Z",
            "2026-13-01T12:00:00.000000Z",
            "2026-01-01T24:00:00.000000Z",
            "2026-01-01T12:00:00.+00042Z",
            "2026-01-01T12:00:00.00004éZ",
            "+026-01-01T12:00:00.000042Z",
            "12026-01-01T12:00:00.000042Z",
        ] {
            assert_eq!(from_iso_utc(text), None, "{text}");
        }
    }
}
