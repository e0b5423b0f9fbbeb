//! Rows that promote: each must carry a slice, or the signed record of a search, that verifies, and name only turns
//! that are in it.

use std::borrow::Cow;
use std::collections::HashSet;

use kernel::export::parse::MAX_EXPORT_BYTES;
use kernel::graph::turn::TurnId;
use kernel::retrieval::provenance::Provenance;
use kernel::trust::attestation::Attestation;
use kernel::verification::verify::verify_export;
use pgrx::PgSqlErrorCode;

use super::kept::{Kept, kept};
use super::refusals;
use super::verify::{keys_of, way_out};
use crate::pg::catalog::names::literal_of;
use crate::pg::error::{SqlError, Word};
use crate::pg::interrupts::check_interrupts;
use crate::pg::private::keys::Keys;
use crate::pg::session::{COMMIT_FIRST, NOT_DISTRIBUTED};
use crate::pg::trigger::{Column, Guard, TriggerCall, invalid};

/// What the arguments of a trigger say: the columns, whose slices are trusted, and which graph. The writer's setting
/// `graph_kernel.graph` decides nothing here.
struct Requirement<'a> {
    document: &'a str,
    /// Whether that column holds the key of a document that is kept, not the document.
    is_reference: bool,
    turns: &'a str,
    /// The roles whose slices are trusted; `None` for those taken without row security.
    roles: Option<&'a str>,
    graph: &'a str,
}

impl<'a> Requirement<'a> {
    fn of(guard: &'a Guard, usage: &str, takes_references: bool) -> Result<Self, SqlError> {
        let bad = || invalid(format!("trigger {} has bad arguments", guard.name())).hint(usage);
        let [document, turns, rest @ ..] = guard.arguments() else { return Err(bad()) };
        let (graph, trust) = match rest {
            [trust @ .., graph] if graph.starts_with("graph=") => (&graph["graph=".len()..], trust),
            trust => ("default", trust),
        };
        let roles = match trust {
            [] => None,
            [trust] if trust == "no_rls" => None,
            [trust] => Some(trust.strip_prefix("roles=").ok_or_else(bad)?),
            _ => return Err(bad()),
        };
        let reference = document.strip_prefix("ref=").filter(|_| takes_references);
        if graph.is_empty() || roles == Some("") || reference == Some("") {
            return Err(bad());
        }
        let (is_reference, document) = (reference.is_some(), reference.unwrap_or(document));
        Ok(Requirement { document, is_reference, turns, roles, graph })
    }

    /// The keys that verify what was signed for its graph.
    ///
    /// # Errors
    /// As [`keys_of`].
    fn keys(&self) -> Result<Keys, SqlError> {
        keys_of(self.graph).map_err(|error| match error {
            error if error.is(Word::GraphNotFound) => error.hint(format!(
                "Create the trigger with another argument than {}: SELECT name FROM graph_kernel.bindings \
                WHERE is_current;",
                literal_of(&format!("graph={}", self.graph))
            )),
            _ => error,
        })
    }

    /// Why what this role took must not be promoted on.
    fn distrust(&self, claim: &Attestation, what: &str) -> Option<Refusal> {
        let role = &claim.role;
        let (reason, message, trusted) = match self.roles {
            None if claim.rls => (
                "row_security",
                format!("{what} was taken under row security by role {role}"),
                role.clone(),
            ),
            Some(roles) if !roles.split(',').any(|trusted| trusted == role) => (
                "untrusted_role",
                format!("{what} was taken by role {role}"),
                format!("{roles},{role}"),
            ),
            _ => return None,
        };
        let argument = literal_of(&format!("roles={trusted}"));
        let how = match role.contains(',') {
            // It would be taken for several.
            true => "a role whose name has a comma cannot be named there".to_owned(),
            false => format!("one that trusts this role has the third argument {argument}"),
        };
        let hint = format!("Have it taken by a role that the trigger trusts; {how}.");
        Some(Refusal { reason, message, hint: hint.into() })
    }
}

/// What to do about a row of another graph than the trigger says.
const OTHER_GRAPH: &str = "If another binding is meant, create the trigger with it as its last argument, 'graph=NAME': \
                           SELECT name, graph FROM graph_kernel.bindings WHERE is_current;";

/// Why a row must not be written.
struct Refusal {
    /// A stable word.
    reason: &'static str,
    message: String,
    hint: Cow<'static, str>,
}

/// What is wrong with the turns that a row names, if something is.
fn outside(
    turns: &[Option<TurnId>],
    reason: &'static str,
    message: &str,
    contains: impl Fn(TurnId) -> bool,
) -> Option<Refusal> {
    let (reason, message) = if turns.is_empty() || turns.contains(&None) {
        ("no_turns", "it names no source turns")
    } else if !turns.iter().flatten().all(|turn| contains(*turn)) {
        (reason, message)
    } else {
        return None;
    };
    let hint = "Name the turns that the row was made from, no others.";
    Some(Refusal { reason, message: message.to_owned(), hint: hint.into() })
}

/// The trigger function that holds rows to slices.
///
/// # Errors
/// 23514 for a row that is not admissible, 39P01 and 22023 for a trigger that cannot guard; else as [`keys_of`].
pub fn require_admissible(call: &TriggerCall) -> Result<(), SqlError> {
    let guard = Guard::of(call, "graph_require_admissible")?;
    let usage = "graph_require_admissible('slice_column' | 'ref=key_column', 'turns_column'\
                 [, 'no_rls' | 'roles=a,b'][, 'graph=name'])";
    let required = Requirement::of(&guard, usage, true)?;
    check(&guard, &required, |export, turns| {
        let verdict = verify_export(export, &required.keys()?);
        let refusal = match (verdict.valid(), verdict.attestation()) {
            (Some(valid), Some(claim)) => required.distrust(claim, "its slice").or_else(|| {
                let message = "a source turn is not in its slice";
                outside(turns, "turn_outside", message, |turn| valid.export.contains(turn))
            }),
            _ => Some(Refusal {
                reason: verdict.reason(),
                message: format!("its slice does not verify: {}", verdict.reason()),
                hint: match verdict.reason() {
                    "unattested" => COMMIT_FIRST,
                    "distributed" => NOT_DISTRIBUTED,
                    "other_graph" => OTHER_GRAPH,
                    reason => way_out(reason),
                }
                .into(),
            }),
        };
        Ok((refusal, verdict.slice_id().map(str::to_owned)))
    })
}

/// The trigger function that holds rows to searches.
///
/// # Errors
/// As [`require_admissible`].
pub fn require_admissible_result(call: &TriggerCall) -> Result<(), SqlError> {
    let guard = Guard::of(call, "graph_require_admissible_result")?;
    let usage = "graph_require_admissible_result('provenance_column', 'turns_column'\
                 [, 'no_rls' | 'roles=a,b'][, 'graph=name'])";
    let required = Requirement::of(&guard, usage, false)?;
    check(&guard, &required, |record, turns| {
        let keys = required.keys()?;
        let record = Provenance::parse(record, &check_interrupts).ok();
        let slice = record.as_ref().and_then(|record| record.slice.as_ref());
        let slice_id = slice.map(|slice| slice.slice_id.clone());
        let reason = record.as_ref().map_or("malformed", |record| record.admissibility(&keys));
        let refusal = match (&record, slice) {
            (Some(record), Some(slice)) if reason == "ok" => {
                required.distrust(&slice.attestation, "the slice of its search").or_else(|| {
                    let message = "a source turn was not retrieved by its search";
                    let found: HashSet<TurnId> =
                        record.retrieved_turn_ids.iter().copied().collect();
                    outside(turns, "not_retrieved", message, |turn| found.contains(&turn))
                })
            }
            _ => Some(Refusal {
                reason,
                message: format!("its search is not admissible: {reason}"),
                hint: match reason {
                    "global" => "Search within a slice: graph_search_slice.",
                    "unsigned" => COMMIT_FIRST,
                    "distributed" => NOT_DISTRIBUTED,
                    "other_graph" => OTHER_GRAPH,
                    "unknown_key" | "revoked_key" => {
                        "Search again, and give the column provenance of graph_search_slice."
                    }
                    "shortfall" => {
                        "Embed the turns of the slice that have no embedding, or ask for fewer results. Search an \
                         export as a role from which row security hides nothing, while its turns are there."
                    }
                    _ => "Give the column provenance of graph_search_slice as it is.",
                }
                .into(),
            }),
        };
        Ok((refusal, slice_id))
    })
}

/// The most bytes of a stored document that is read. As jsonb an export may be larger than its text.
const MAX_STORED_BYTES: usize = 2 * MAX_EXPORT_BYTES;

/// As many of a key: no key is longer.
const MAX_KEY_BYTES: usize = 256;

/// The document that a row carries, or refers to; a refusal where the store has none that is its key's.
///
/// # Errors
/// As [`kept`]: whoever writes the row needs SELECT on the store.
fn document_of(
    guard: &Guard,
    column: &Column,
    required: &Requirement<'_>,
) -> Result<Result<String, Refusal>, SqlError> {
    // A longer one is malformed, or no key, and is not read.
    let longest = if required.is_reference { MAX_KEY_BYTES } else { MAX_STORED_BYTES };
    let text = match guard.document_size(column) > longest {
        true => String::new(),
        false => guard.document(column)?,
    };
    if !required.is_reference {
        return Ok(Ok(text));
    }
    // Where there is no such graph, this says so.
    required.keys()?;
    Ok(match kept(required.graph, &text)? {
        Kept::Document(document) => Ok(document),
        Kept::Missing => Err(Refusal {
            reason: "not_kept",
            message: "its slice is not in the store".to_owned(),
            hint: "Keep the slice first, and give the key that graph_keep returns.".into(),
        }),
        Kept::Other(error) => Err(Refusal {
            reason: "other_document",
            message: error.message().to_owned(),
            hint: error.into_hint().into(),
        }),
    })
}

/// Raises the refusal of the row that a guard was fired for, unless it is none. An update that leaves both columns as
/// they are is not checked. So a row whose key was revoked later can still be corrected in its other columns.
fn check(
    guard: &Guard,
    required: &Requirement<'_>,
    refuse: impl FnOnce(&str, &[Option<TurnId>]) -> Result<(Option<Refusal>, Option<String>), SqlError>,
) -> Result<(), SqlError> {
    let column = match required.is_reference {
        true => guard.key_column(required.document)?,
        false => guard.document_column(required.document)?,
    };
    let turns = guard.turns_column(required.turns)?;
    let is_too_long = guard.document_size(&column) > MAX_STORED_BYTES;
    if !is_too_long && guard.is_unchanged(&column, &turns)? {
        return Ok(());
    }
    let (refusal, slice_id) = match document_of(guard, &column, required)? {
        Ok(text) => refuse(&text, &guard.turns(&turns)?)?,
        Err(refusal) => (Some(refusal), None),
    };
    let reason = refusal.as_ref().map_or("ok", |refusal| refusal.reason);
    refusals::note("promotion", reason, slice_id.as_deref());
    match refusal {
        None => Ok(()),
        Some(Refusal { reason, message, hint }) => Err(SqlError::new(
            PgSqlErrorCode::ERRCODE_CHECK_VIOLATION,
            format!("row of {} is not admissible: {message}", guard.table()),
        )
        .word(Word::NotAdmissible)
        .reason(reason)
        .hint(hint)),
    }
}
