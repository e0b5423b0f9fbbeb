//! Results of verifications on their way into the statistics and, where they are refusals, into the server's log.

use crate::pg::error::log;
use crate::pg::guc;
use crate::pg::session::current_role_name;
use crate::pg::statistics::count_verification;

/// The longest id of a slice that is logged, in characters.
const MAX_SLICE_CHARS: usize = 32;

/// The longest name of a role, in characters: one that is not UTF-8 is [`shared_name`](crate::pg::text::shared_name).
const MAX_ROLE_CHARS: usize = 256;

/// Counts the result of verifying a slice, a token, a proof, a search or a promotion: `ok` or a reason. With
/// `graph_kernel.log_refusals` a reason is logged, with what claims to be the slice's id.
pub fn note(subject: &str, result: &str, slice_id: Option<&str>) {
    count_verification(result);
    if result == "ok" || !guc::log_refusals() {
        return;
    }
    let slice = slice_id.map_or_else(|| "unknown".to_owned(), |id| logged(id, MAX_SLICE_CHARS));
    let role = logged(&current_role_name(), MAX_ROLE_CHARS);
    log(&format!("refused {subject}: reason {result}, role \"{role}\", slice {slice}"));
}

/// The text with control characters and quotes escaped, so that it ends where it seems to, and cut.
fn logged(text: &str, most: usize) -> String {
    let mut characters = text.chars();
    let safe: String = characters.by_ref().take(most).flat_map(char::escape_default).collect();
    if characters.next().is_some() { safe + "..." } else { safe }
}
