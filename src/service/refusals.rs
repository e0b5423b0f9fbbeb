//! Results of verifications on their way into the statistics and, where they are refusals, into the server's log.

use crate::pg::error::log;
use crate::pg::guc;
use crate::pg::session::current_role_name;
use crate::pg::statistics::count_verification;

/// The longest text of a caller's that is logged, in characters.
const MAX_LOGGED_CHARS: usize = 32;

/// Counts the result of verifying a slice, a token, a proof, a search or a promotion: `ok` or a reason. With
/// `graph_kernel.log_refusals` a reason is logged, with what claims to be the slice's id.
pub fn note(subject: &str, result: &str, slice_id: Option<&str>) {
    count_verification(result);
    if result == "ok" || !guc::log_refusals() {
        return;
    }
    let slice = slice_id.map_or_else(|| "unknown".to_owned(), logged);
    let role = logged(&current_role_name());
    log(&format!("refused {subject}: reason {result}, role {role}, slice {slice}"));
}

/// The text with control characters and quotes escaped, and cut.
fn logged(text: &str) -> String {
    let mut characters = text.chars();
    let safe: String =
        characters.by_ref().take(MAX_LOGGED_CHARS).flat_map(char::escape_default).collect();
    if characters.next().is_some() { safe + "..." } else { safe }
}
