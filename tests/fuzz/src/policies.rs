//! Policies: what is accepted has a canonical text that reads back as the same policy, with the same fingerprint.

use std::fmt::Debug;
use std::str::FromStr;

use kernel::chunking::policy::ChunkingPolicy;
use kernel::evidence::sufficiency::SufficiencyPolicy;
use kernel::json::JsonValue;
use kernel::policy::{MAX_NODES_LIMIT, PolicyError, SlicePolicy};
use serde_json::Value;

use crate::documents::NO_LIMITS;
use crate::is_message;
use crate::memory::bounded;

fn read<P: FromStr<Err = PolicyError>>(text: &str) -> Option<P> {
    let read = bounded(text.len(), || text.parse::<P>());
    read.map_err(is_message).ok()
}

/// A policy's canonical text is read as the policy, also as jsonb would write it.
fn reads_back<P: FromStr<Err = PolicyError> + PartialEq + Debug>(policy: &P, canonical: &str) {
    assert_eq!(canonical.parse().as_ref(), Ok(policy));
    let value: Value = serde_json::from_str(canonical).unwrap();
    assert_eq!(serde_json::to_string_pretty(&value).unwrap().parse().as_ref(), Ok(policy));
}

/// SlicePolicy v1 and v2, as users write them and as attestations have them.
pub fn slice_policy(text: &str) {
    let Some(policy) = read::<SlicePolicy>(text) else { return };
    assert!((1..=MAX_NODES_LIMIT as usize).contains(&policy.max_nodes()));
    assert!(!policy.description().is_empty());
    let canonical = policy.canonical_text();
    reads_back(&policy, &canonical);
    let again: SlicePolicy = canonical.parse().unwrap();
    assert_eq!((again.canonical_text(), again.params_hash()), (canonical, policy.params_hash()));
    let quantized = policy.quantized_text();
    let json = JsonValue::read(&quantized, NO_LIMITS, &|| ()).unwrap();
    let attested = SlicePolicy::from_quantized(json).unwrap();
    assert_eq!((attested.quantized_text(), &attested), (quantized, &policy));
}

/// The policy of sufficient evidence.
pub fn sufficiency_policy(text: &str) {
    let Some(policy) = read::<SufficiencyPolicy>(text) else { return };
    assert!((0.0..=1.0).contains(&policy.min_mean_salience));
    reads_back(&policy, &serde_json::to_string(&policy).unwrap());
}

/// The policy of chunking.
pub fn chunking_policy(text: &str) {
    let Some(policy) = read::<ChunkingPolicy>(text) else { return };
    assert!(policy.max_chunk_chars() > 0 && policy.max_chunk_events() > 0);
    let canonical = policy.canonical_text();
    reads_back(&policy, &canonical);
    let again: ChunkingPolicy = canonical.parse().unwrap();
    assert_eq!((again.canonical_text(), again.hash()), (canonical, policy.hash()));
}
