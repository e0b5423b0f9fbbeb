//! How varied the turns of a slice are, and whether they are enough.

use kernel::evidence::diversity::Diversity;
use kernel::evidence::sufficiency::{SufficiencyPolicy, Violation};
use kernel::policy::PolicyError;
use pgrx::PgSqlErrorCode;

use super::verify::{not_admissible, verdict_of_export};
use crate::pg::error::{SqlError, Word};

/// The diversity of an export that verifies.
///
/// # Errors
/// 22023 when it does not; else as [`verdict_of_export`].
pub fn diversity(export: &str) -> Result<Diversity, SqlError> {
    let verdict = verdict_of_export(export)?;
    let valid = verdict.valid().map(|valid| Diversity::of(&valid.export.turns));
    valid.ok_or_else(|| not_admissible(&verdict))
}

/// What an export that verifies lacks to be sufficient by a policy, which is JSON; without one by the default policy.
///
/// # Errors
/// 22023 for a bad policy; else as [`diversity`].
pub fn insufficiencies(export: &str, policy: Option<&str>) -> Result<Vec<Violation>, SqlError> {
    let policy = policy.map_or_else(|| Ok(SufficiencyPolicy::default()), sufficiency_policy)?;
    Ok(policy.violations(&diversity(export)?))
}

fn sufficiency_policy(json: &str) -> Result<SufficiencyPolicy, SqlError> {
    json.parse().map_err(|error: PolicyError| {
        SqlError::new(PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE, error.to_string())
        .word(Word::InvalidSufficiencyPolicy)
        .hint(
            "Give a preset ('\"default\"', '\"lenient\"', '\"strict\"') or a JSON object such as \
             '{\"min_turns\": 5}'.",
        )
    })
}
