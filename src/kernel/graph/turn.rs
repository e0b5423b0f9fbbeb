//! Turns, and how a stored row becomes one.
//!
//! A row never raises an error: NULL and odd values take documented defaults, so that one bad row does not make a
//! conversation unusable.

use std::borrow::Cow;

use serde::Serialize;
use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::graph::content::is_content_hash;
use crate::hex::hex;
use crate::interrupts::Interrupts;
use crate::named_enum::named_enum;

/// The identity of a turn; ordered by its bytes, which is the order of its text.
pub type TurnId = Uuid;

/// A session name longer than this many bytes is replaced by its hash.
pub const MAX_SESSION_ID_BYTES: usize = 4096;

/// What the hash of a longer name begins with.
const BOUNDED_PREFIX: &str = "sha256:";

const DEFAULT_UNIT: f32 = 0.5;
const DEFAULT_COMPLEXITY: f32 = 1.0;

/// Seconds from the Unix epoch to PostgreSQL's (2000-01-01).
const POSTGRES_EPOCH_SECONDS: i64 = 946_684_800;
/// The two infinities of a timestamp in Unix seconds: the ends of PostgreSQL's range.
const CREATED_AT_INFINITY: i64 = 9_224_318_015_999;
const CREATED_AT_MINUS_INFINITY: i64 = -210_866_803_200;

named_enum! {
    /// Who wrote a turn.
    Role, default User {
        /// A person.
        User = "user",
        /// The model.
        Assistant = "assistant",
        /// Instructions.
        System = "system",
        /// The result of a tool.
        Tool = "tool",
    }
}

named_enum! {
    /// What a turn was for (SlicePolicy v1 §3.3).
    Phase, default Exploration {
        /// Brainstorming, tangents.
        Exploration = "exploration",
        /// Problem solving.
        Debugging = "debugging",
        /// Goals and strategy.
        Planning = "planning",
        /// Summaries.
        Consolidation = "consolidation",
        /// New understanding.
        Synthesis = "synthesis",
    }
}

/// A turn as stored: every column may be NULL or odd.
#[derive(Clone, Copy, Debug, Default)]
pub struct StoredTurn<'a> {
    /// The turn's id.
    pub id: TurnId,
    /// Name of the session.
    pub session_id: Option<&'a str>,
    /// Name of the role.
    pub role: Option<&'a str>,
    /// Name of the phase.
    pub phase: Option<&'a str>,
    /// Salience, meant to be in [0, 1].
    pub salience: Option<f64>,
    /// Depth below the root.
    pub trajectory_depth: Option<i64>,
    /// Order among siblings.
    pub trajectory_sibling_order: Option<i64>,
    /// Meant to be in [0, 1].
    pub trajectory_homogeneity: Option<f64>,
    /// Meant to be in [0, 1].
    pub trajectory_temporal: Option<f64>,
    /// Any number.
    pub trajectory_complexity: Option<f64>,
    /// Unix seconds.
    pub created_at: Option<i64>,
    /// SHA-256 hex of the content.
    pub content_hash: Option<&'a str>,
}

/// A turn as slices carry it (SlicePolicy v1 §6.1): defaults applied, numbers in range.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Turn {
    /// The turn's id.
    pub id: TurnId,
    /// Name of the session, '' when there is none; `sha256:<hex>` of a name over 4 KiB.
    pub session_id: String,
    /// Who wrote it.
    pub role: Role,
    /// What it was for.
    pub phase: Phase,
    /// In [0, 1].
    pub salience: f32,
    /// 0 … 2147483647.
    pub trajectory_depth: u32,
    /// 0 … 2147483647.
    pub trajectory_sibling_order: u32,
    /// In [0, 1].
    pub trajectory_homogeneity: f32,
    /// In [0, 1].
    pub trajectory_temporal: f32,
    /// Finite.
    pub trajectory_complexity: f32,
    /// Unix seconds, 0 when unknown.
    pub created_at: i64,
    /// 64 lower-case hex digits, or none.
    pub content_hash: Option<String>,
}

impl From<StoredTurn<'_>> for Turn {
    fn from(row: StoredTurn<'_>) -> Self {
        Turn {
            id: row.id,
            session_id: session_id(row.session_id.unwrap_or_default()).into_owned(),
            role: Role::from_stored(row.role),
            phase: Phase::from_stored(row.phase),
            salience: unit_interval(row.salience),
            trajectory_depth: count(row.trajectory_depth),
            trajectory_sibling_order: count(row.trajectory_sibling_order),
            trajectory_homogeneity: unit_interval(row.trajectory_homogeneity),
            trajectory_temporal: unit_interval(row.trajectory_temporal),
            trajectory_complexity: complexity(row.trajectory_complexity),
            created_at: row.created_at.unwrap_or(0),
            content_hash: row.content_hash.filter(|h| is_content_hash(h)).map(str::to_owned),
        }
    }
}

/// A number meant to be in [0, 1]: NULL and NaN are 0.5, the rest is clamped; no −0.0.
#[must_use]
pub fn unit_interval(value: Option<f64>) -> f32 {
    match value {
        Some(v) if !v.is_nan() => (v as f32).clamp(0.0, 1.0) + 0.0,
        _ => DEFAULT_UNIT,
    }
}

fn complexity(value: Option<f64>) -> f32 {
    match value.map(|v| v as f32) {
        Some(v) if v.is_finite() => v + 0.0,
        _ => DEFAULT_COMPLEXITY,
    }
}

fn count(value: Option<i64>) -> u32 {
    value.unwrap_or(0).clamp(0, i64::from(i32::MAX)) as u32
}

/// The name of a session as it counts: `sha256:<hex>` of one over [`MAX_SESSION_ID_BYTES`]. Of that hash it is the hash
/// itself.
pub(crate) fn session_id(name: &str) -> Cow<'_, str> {
    bounded_name(name, &|| {})
}

/// [`session_id`] of a name of any length: `check_interrupts` is called within long ones.
#[must_use]
pub fn bounded_name<'n>(name: &'n str, check_interrupts: &dyn Fn()) -> Cow<'n, str> {
    if name.len() > MAX_SESSION_ID_BYTES {
        hash_of_name(name.as_bytes(), check_interrupts).into()
    } else {
        name.into()
    }
}

/// What stands for a name of these bytes where it is too long: `check_interrupts` is called within long ones.
#[must_use]
pub fn hash_of_name(name: &[u8], check_interrupts: &dyn Fn()) -> String {
    let mut hash = Sha256::new();
    let interrupts = Interrupts::new(check_interrupts);
    interrupts.pieces(name).for_each(|piece| hash.update(piece));
    format!("{BOUNDED_PREFIX}{}", hex(&hash.finalize()))
}

/// Whether a name may be the hash that stands for a longer one.
#[must_use]
pub fn may_be_hash_of_name(name: &str) -> bool {
    name.strip_prefix(BOUNDED_PREFIX).is_some_and(is_content_hash)
}

/// Unix seconds, rounded down, of a PostgreSQL timestamp (microseconds since 2000-01-01 UTC).
#[must_use]
pub fn unix_seconds(postgres_micros: i64) -> i64 {
    match postgres_micros {
        i64::MAX => CREATED_AT_INFINITY,
        i64::MIN => CREATED_AT_MINUS_INFINITY,
        micros => micros.div_euclid(1_000_000) + POSTGRES_EPOCH_SECONDS,
    }
}

/// The first PostgreSQL timestamp of a second, or of a later one, as [`unix_seconds`] reads them. None where there is
/// no such second.
#[must_use]
pub fn first_of_second(second: i64) -> Option<i64> {
    if second <= CREATED_AT_MINUS_INFINITY {
        return Some(i64::MIN);
    }
    (second <= CREATED_AT_INFINITY).then(|| (second - POSTGRES_EPOCH_SECONDS) * 1_000_000)
}

/// Microseconds since 1970-01-01 UTC of a PostgreSQL timestamp (microseconds since 2000-01-01 UTC). Infinities, and
/// what lies beyond, are the greatest and the least number.
#[must_use]
pub fn unix_micros(postgres_micros: i64) -> i64 {
    match postgres_micros {
        i64::MIN => i64::MIN,
        micros => micros.saturating_add(POSTGRES_EPOCH_SECONDS * 1_000_000),
    }
}

/// Whether a time in microseconds, as [`unix_micros`] gives it, lies in the second that a turn has of it.
#[must_use]
pub fn is_in_second(micros: Option<i64>, second: i64) -> bool {
    match micros {
        None => second == 0,
        Some(i64::MAX) => second >= i64::MAX / 1_000_000,
        Some(i64::MIN) => second == CREATED_AT_MINUS_INFINITY,
        Some(micros) => micros.div_euclid(1_000_000) == second,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::content::sha256_hex;

    #[test]
    fn odd_numbers_take_their_defaults() {
        assert_eq!(unit_interval(None), 0.5);
        assert_eq!(unit_interval(Some(f64::NAN)), 0.5);
        assert_eq!(unit_interval(Some(f64::INFINITY)), 1.0);
        assert_eq!(unit_interval(Some(-3.0)), 0.0);
        assert!(unit_interval(Some(-0.0)).is_sign_positive());
        assert_eq!(complexity(Some(f64::NEG_INFINITY)), 1.0);
        assert_eq!(complexity(Some(1e300)), 1.0);
        assert_eq!(complexity(Some(-2.5)), -2.5);
        assert_eq!(complexity(None), 1.0);
        assert!(complexity(Some(-0.0)).is_sign_positive());
        assert_eq!(count(Some(-1)), 0);
        assert_eq!(count(Some(i64::MAX)), 2_147_483_647);
    }

    #[test]
    fn names_ignore_ascii_case_only() {
        assert_eq!(Role::from_stored(Some("ASSISTANT")), Role::Assistant);
        assert_eq!(Role::from_stored(Some(" user")), Role::User);
        assert_eq!(Role::from_stored(Some("robot")), Role::User);
        assert_eq!(Phase::from_stored(Some("Synthesis")), Phase::Synthesis);
        assert_eq!(Phase::from_stored(None), Phase::Exploration);
    }

    #[test]
    fn timestamps_round_down_and_infinities_have_values() {
        assert_eq!(unix_seconds(0), 946_684_800);
        assert_eq!(unix_seconds(-946_684_801_500_000), -2);
        assert_eq!(unix_seconds(i64::MAX), 9_224_318_015_999);
        for second in
            [i64::MIN, -210_866_803_200, -210_866_803_199, -1, 0, 946_684_800, 9_224_318_015_999]
        {
            let first = first_of_second(second).unwrap();
            assert_eq!(unix_seconds(first), second.max(-210_866_803_200));
            assert!(first == i64::MIN || unix_seconds(first - 1) < second);
        }
        assert_eq!(first_of_second(9_224_318_016_000), None);
        assert_eq!(unix_seconds(i64::MIN), -210_866_803_200);
    }

    #[test]
    fn microseconds_saturate() {
        assert_eq!(unix_micros(0), 946_684_800_000_000);
        assert_eq!(unix_micros(-946_684_800_000_001), -1);
        assert_eq!([unix_micros(i64::MAX), unix_micros(i64::MAX - 1)], [i64::MAX; 2]);
        assert_eq!(unix_micros(i64::MIN), i64::MIN);
    }

    #[test]
    fn a_time_lies_in_the_second_of_its_turn() {
        for postgres in [0, 1, -1, -946_684_800_000_001, i64::MAX - 1, i64::MAX, i64::MIN] {
            let (micros, second) = (unix_micros(postgres), unix_seconds(postgres));
            assert!(is_in_second(Some(micros), second), "{postgres}");
            assert!(!is_in_second(Some(micros), 946_684_801), "{postgres}");
            assert!(!is_in_second(None, second) || second == 0, "{postgres}");
        }
        assert!(is_in_second(None, 0) && is_in_second(Some(0), 0) && !is_in_second(Some(-1), 0));
    }

    #[test]
    fn long_session_names_become_their_hash() {
        assert_eq!(session_id(&"x".repeat(4096)).len(), 4096);
        let long = "x".repeat(4097);
        let hash = session_id(&long);
        assert_eq!(hash, format!("sha256:{}", sha256_hex(long.as_bytes())));
        assert!(may_be_hash_of_name(&hash) && !may_be_hash_of_name(&hash[1..]));
        assert_eq!(session_id(&hash), hash);
    }

    #[test]
    fn hashing_a_long_name_can_be_cancelled() {
        let checks = std::cell::Cell::new(0);
        let name = "x".repeat(1 << 20);
        let hash = bounded_name(&name, &|| checks.set(checks.get() + 1));
        assert_eq!(hash, session_id(&name));
        assert_eq!(checks.get(), 16);
    }
}
