//! Documents that are kept: stored once in the store that is bound for a graph, found by the SHA-256 of their canonical
//! text. A row of the store is never believed: whoever may insert there may write anything.

use std::ops::ControlFlow;

use kernel::export::parse::ParsedExport;
use kernel::graph::turn::TurnId;
use kernel::hex::hex;
use kernel::json::quoted;
use kernel::prompt::record::{Document, text_hash};
use kernel::trust::attestation::Status;
use kernel::verification::verify::verify_export;
use pgrx::{PgSqlErrorCode, pg_sys};
use serde_json::{Value, json};

use super::documents::{packed_document, unpacked_if_whole};
use super::export::export_text;
use super::reader::GraphReader;
use super::slices::ReadSlice;
use super::tables::chosen_graph;
use super::verify::{keys_of, not_admissible, verified};
pub use crate::pg::access::kept::KeptRow;
use crate::pg::access::kept::{self as store, KeptDocument, StoredRow, TakenBy};
use crate::pg::catalog::names::literal_of;
use crate::pg::error::{SqlError, Word};
use crate::pg::guc;
use crate::pg::interrupts::check_interrupts;
use crate::pg::private::keys::Keys;
use crate::pg::session::{COMMIT_FIRST, NOT_DISTRIBUTED, current_role_name};
use crate::pg::subtransaction::guarded;
use crate::pg::tables::store::{PromotingRows, StoreTable};

/// The key of a document: the SHA-256 of its canonical text.
fn key_of(canonical: &str) -> String {
    hex(&text_hash(canonical, &check_interrupts))
}

/// Keeps a document that verifies, and returns its key.
///
/// # Errors
/// 22023 where it does not verify; 22000 where the store has another document under its key; 55000 where it has one
/// that the caller does not see; as [`StoreTable::of`].
pub fn keep(text: &str) -> Result<String, SqlError> {
    let graph = guc::graph();
    let verdict = verified(text, &keys_of(&graph)?);
    let Some(document) = verdict.valid() else { return Err(not_admissible(&verdict)) };
    keep_valid(&StoreTable::of(&graph)?, document)
}

fn keep_valid(table: &StoreTable, document: &Document) -> Result<String, SqlError> {
    let claim = document.export.attestation.as_ref().expect("a document that verifies has one");
    let canonical = document.canonical_text(&check_interrupts);
    let key = key_of(&canonical);
    let turns = named_turns(document);
    let is_new = store::insert(
        table,
        &KeptDocument {
            key: &key,
            stored: &packed_document(document)?,
            kind: if document.record.is_some() { "prompt" } else { "slice" },
            graph: &claim.graph,
            role: &claim.role,
            rls: claim.rls,
            anchor: document.export.anchor,
            turns: &turns,
            kept_by: &current_role_name(),
        },
    );
    if is_new {
        return Ok(key);
    }
    let Some(row) = store::row(table, &key) else {
        table.check_settled()?;
        return Err(hidden_row(&key));
    };
    match fault_of(&row)? {
        Some(fault) => Err(other_row(table, &key, fault)),
        None => Ok(key),
    }
}

/// The turns that a document names, by id: those of its slice, and the pins and seeds of its policy, also where these
/// are not in the slice.
fn named_turns(document: &Document) -> Vec<TurnId> {
    let export = &document.export;
    let mut turns: Vec<TurnId> = export.turns.iter().map(|turn| turn.id).collect();
    if let Some(claim) = &export.attestation {
        turns.extend(claim.policy.pins());
        turns.extend(claim.policy.seeds().map(|(turn, _)| turn));
    }
    turns.sort_unstable();
    turns.dedup();
    turns
}

/// What the store has under a key.
pub enum Kept {
    /// The canonical text of the key's document.
    Document(String),
    /// Nothing that the caller sees.
    Missing,
    /// What is not the key's document, and the error that says so.
    Other(SqlError),
}

/// What the store of a graph has under this key.
///
/// # Errors
/// 40001 where the snapshot is older than the table; as [`StoreTable::of`]. Raises 42501 where the caller may not read
/// the store.
pub fn kept(graph: &str, key: &str) -> Result<Kept, SqlError> {
    let table = StoreTable::of(graph)?;
    let stored = store::document(&table, key);
    table.check_settled()?;
    let Some(stored) = stored else { return Ok(Kept::Missing) };
    let found = stored_document(key, &stored)?;
    Ok(found
        .map_or_else(|| Kept::Other(other_document(&table, key)), |(_, text)| Kept::Document(text)))
}

/// The document with this key of the graph that the session has chosen.
///
/// # Errors
/// 22000 where the store has another document under the key; as [`kept`].
pub fn kept_document(key: &str) -> Result<Option<String>, SqlError> {
    match kept(&guc::graph(), key)? {
        Kept::Document(text) => Ok(Some(text)),
        Kept::Missing => Ok(None),
        Kept::Other(error) => Err(error),
    }
}

/// A stored document and its canonical text, where that is the key's.
///
/// # Errors
/// As [`unpacked_if_whole`].
fn stored_document(key: &str, stored: &[u8]) -> Result<Option<(Document, String)>, SqlError> {
    let Some(document) = unpacked_if_whole(stored)? else { return Ok(None) };
    let canonical = document.canonical_text(&check_interrupts);
    Ok((key_of(&canonical) == key).then_some((document, canonical)))
}

/// The same, or the word of what it is instead: another document, bytes of a later version, or too large.
///
/// # Errors
/// 53200.
fn document_or_fault(
    key: &str,
    stored: &[u8],
) -> Result<Result<(Document, String), &'static str>, SqlError> {
    match stored_document(key, stored) {
        Ok(found) => Ok(found.ok_or(OTHER_DOCUMENT)),
        Err(error) if error.word_name() == Word::OutOfMemory.name() => Err(error),
        Err(error) => Ok(Err(word_of(&error))),
    }
}

/// The word of an error, as the status of a slice.
fn word_of(error: &SqlError) -> &'static str {
    match error.word_name() {
        "" => FAILED,
        word => word,
    }
}

fn other_document(table: &StoreTable, key: &str) -> SqlError {
    other_row(table, key, OTHER_DOCUMENT)
}

/// The error of a document that is not stored, as there is a row that hides.
fn hidden_row(key: &str) -> SqlError {
    SqlError::new(
        PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
        format!("a row that you do not see has the key {}", quoted(key)),
    )
    .word(Word::StoredDocument)
    .hint("Keep it as a role that row security of the store lets see the row.")
}

/// The error of a row that is not what its document says.
fn other_row(table: &StoreTable, key: &str, fault: &str) -> SqlError {
    let what = match fault {
        OTHER_DOCUMENT => "the document under the key {} has another SHA-256",
        _ => "the row with the key {} is not what its document says",
    };
    SqlError::new(PgSqlErrorCode::ERRCODE_DATA_EXCEPTION, what.replace("{}", &quoted(key)))
        .word(Word::StoredDocument)
        .hint(format!(
            "SELECT key, kept_by, kept_at FROM {} WHERE key OPERATOR(pg_catalog.=) {};",
            table.qualified_name(),
            literal_of(key)
        ))
}

/// Hands the key of each row of the store that is not what its document says to `put`, and what does not fit. By its
/// other columns a document is found.
///
/// # Errors
/// As [`StoreTable::of`].
pub fn unfit(graph: &str, mut put: impl FnMut(String, &'static str)) -> Result<(), SqlError> {
    let Some(table) = StoreTable::bound_to(graph)? else { return Ok(()) };
    let mut refused = Ok(());
    store::all(&table, |row| match fault_of(&row) {
        Ok(fault) => {
            let impossible = (!row.is_check_possible).then_some("impossible_check");
            if let Some(fault) = fault.or(impossible) {
                put(row.key, fault);
            }
            ControlFlow::Continue(())
        }
        Err(error) => {
            refused = Err(error);
            ControlFlow::Break(())
        }
    });
    refused.and_then(|()| table.check_settled())
}

/// What does not fit in a row of the store.
///
/// # Errors
/// As [`document_or_fault`].
fn fault_of(row: &StoredRow) -> Result<Option<&'static str>, SqlError> {
    let (document, _) = match document_or_fault(&row.key, &row.stored)? {
        Ok(found) => found,
        Err(fault) => return Ok(Some(fault)),
    };
    let Document { export, record } = &document;
    let Some(claim) = &export.attestation else { return Ok(Some("unattested")) };
    let turns: Vec<String> = named_turns(&document).iter().map(TurnId::to_string).collect();
    let kind = if record.is_some() { "prompt" } else { "slice" };
    let (said_kind, graph, role, rls, anchor, said_turns) = &row.says;
    let fits = said_kind == kind
        && (graph, role, *rls, *anchor) == (&claim.graph, &claim.role, claim.rls, export.anchor)
        && *said_turns == turns.join(" ");
    Ok((!fits).then_some("other_columns"))
}

/// How many rows of a table refer to documents that the store of a graph has not; `None` where the table cannot be
/// read at once, or is newer than the snapshot.
///
/// # Errors
/// As [`StoreTable::of`].
pub fn missing_references(
    graph: &str,
    table: pg_sys::Oid,
    column: &str,
) -> Result<Option<i64>, SqlError> {
    let store = StoreTable::of(graph)?;
    let missing = || {
        let rows = PromotingRows::of(table, &json!({ "reference": column }))?;
        let missing = store::missing_references(&store, &rows);
        rows.check_settled().and_then(|()| store.check_settled())?;
        Ok::<_, SqlError>(missing)
    };
    Ok(guarded(missing).and_then(Result::ok))
}

/// The documents in the store of the graph that the session has chosen which rows of a table refer to, each with their
/// number; `None` where the table cannot be read at once, or is newer than the snapshot.
pub fn references(table: pg_sys::Oid, column: &str) -> Option<Vec<(String, i64)>> {
    let counts = || {
        let store = StoreTable::of(&chosen_graph())?;
        let rows = PromotingRows::of(table, &json!({ "reference": column }))?;
        let counts = store::references(&store, &rows);
        rows.check_settled()?;
        Ok::<_, SqlError>(counts)
    };
    guarded(counts)?.ok()
}

/// Whose slices the current role takes: those that it took itself, of the graph that the session has chosen, with row
/// security as it applies to it now.
struct Mine {
    graph: String,
    role: String,
    rls: bool,
}

impl Mine {
    fn of(reader: &GraphReader) -> Self {
        let (graph, role) = (reader.graph().name.clone(), current_role_name());
        Mine { graph, role, rls: reader.row_security() }
    }

    fn taken_by(&self) -> TakenBy<'_> {
        TakenBy { graph: &self.graph, role: &self.role, rls: self.rls }
    }
}

/// Hands what the store of the chosen graph says of each document to `put`. The status of a slice that the current role
/// would not take again says why.
///
/// # Errors
/// As [`StoreTable::of`] and [`GraphReader::current`].
pub fn rows(mut put: impl FnMut(KeptRow)) -> Result<(), SqlError> {
    let Some(table) = StoreTable::bound_to(&guc::graph())? else { return Ok(()) };
    let mine = Mine::of(&GraphReader::current()?);
    store::rows(&table, |mut row| {
        if row.graph != mine.graph {
            row.status = Some("other_graph".to_owned());
        } else if row.role != mine.role || row.rls != mine.rls {
            row.status = Some("other_role".to_owned());
        }
        put(row);
    });
    table.check_settled()
}

/// How many slices of the chosen graph are another role's, or were taken with other row security.
///
/// # Errors
/// As [`rows`].
pub fn of_others() -> Result<i64, SqlError> {
    let table = StoreTable::of(&guc::graph())?;
    let others = store::of_others(&table, Mine::of(&GraphReader::current()?).taken_by());
    table.check_settled().map(|()| others)
}

/// What taking slices again has found.
#[derive(Default)]
pub struct Refreshed {
    /// How many were taken again.
    pub taken: i64,
    /// How many of them differ: what they are now is kept beside them.
    pub changed: i64,
    /// How many could not be taken.
    pub failed: i64,
}

/// Takes at most so many kept slices again that were not since a moment, in microseconds since 1970. All are taken
/// before anything is written: what a transaction has written to may not be attested.
///
/// # Errors
/// 55000 where a slice is not attested; 40001 where the snapshot is older than the tables; as [`StoreTable::of`] and
/// [`GraphReader::current`]. Raises 42501 where the caller may not write to the store.
pub fn refresh(since: i64, most: i64) -> Result<Refreshed, SqlError> {
    let graph = guc::graph();
    let table = StoreTable::of(&graph)?;
    let reader = GraphReader::current()?;
    let mine = Mine::of(&reader);
    let keys = keys_of(&graph)?;
    let mut found = Vec::new();
    let (since, most) = (since.max(FIRST_MOMENT), most.clamp(0, MAX_BATCH));
    let mut held = 0;
    for (key, stored) in store::due(&table, mine.taken_by(), since, most) {
        check_interrupts();
        let now = guarded(|| taken_again(&key, &stored, &mine, &keys));
        let now = now.unwrap_or(Ok(Again::Failed(FAILED)))?;
        if let Again::Changed(document) = &now {
            held += document.export.turns.len();
        }
        found.push((key, now));
        // The others stay due.
        if held > MAX_HELD_TURNS {
            break;
        }
    }
    // Else what is not found would be noted as gone.
    reader.check_settled().and_then(|()| table.check_settled())?;
    let mut refreshed = Refreshed::default();
    for (key, now) in found {
        refreshed.taken += 1;
        let (status, superseded_by) = match now {
            Again::Identical => ("identical", None),
            Again::Failed(why) => (why, None),
            Again::Changed(document) => match keep_valid(&table, &document) {
                Ok(key) => ("changed", Some(key)),
                Err(error)
                    if [Word::StoredDocument, Word::SliceTooLarge]
                        .iter()
                        .any(|word| word.name() == error.word_name()) =>
                {
                    (word_of(&error), None)
                }
                Err(error) => return Err(error),
            },
        };
        // It would be due for ever.
        if !store::note_check(&table, &key, status, superseded_by.as_deref(), since) {
            return Err(not_noted(&table));
        }
        match (status, superseded_by) {
            (_, Some(now)) => {
                refreshed.changed += 1;
                // It may have been kept before, and superseded by this one: now it is what the graph gives.
                store::note_check(&table, &now, "identical", None, since);
            }
            ("identical", None) => {}
            (_, None) => refreshed.failed += 1,
        }
    }
    Ok(refreshed)
}

fn not_noted(table: &StoreTable) -> SqlError {
    SqlError::new(
        PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
        "a row of the store that is read cannot be written: a policy or a trigger keeps it",
    )
    .word(Word::StoreTable)
    .hint(format!(
        "SELECT polname, polcmd FROM pg_catalog.pg_policy \
         WHERE polrelid OPERATOR(pg_catalog.=) {}::pg_catalog.regclass;",
        literal_of(&table.qualified_name())
    ))
}

/// The first moment of the server, in microseconds since 1970.
const FIRST_MOMENT: i64 = -210_866_803_200_000_000;

/// The most slices that are held in memory at once.
const MAX_BATCH: i64 = 1000;

/// After slices of so many turns that have changed, no more are held in memory at once.
const MAX_HELD_TURNS: usize = 20_000;

/// The status of a slice that raises an error of others than this extension.
const FAILED: &str = "failed";

/// What is wrong with a row whose document is not its key's.
const OTHER_DOCUMENT: &str = "other_document";

/// A slice taken again.
enum Again {
    Identical,
    Changed(Box<Document>),
    /// A reason of a verification, or the word of an error.
    Failed(&'static str),
}

fn taken_again(key: &str, stored: &[u8], mine: &Mine, keys: &Keys) -> Result<Again, SqlError> {
    let text = match document_or_fault(key, stored)? {
        Ok((_, text)) => text,
        Err(fault) => return Ok(Again::Failed(fault)),
    };
    // What is not the role's own is not taken for it, whatever the row says: who reads the store reads the slice.
    let verdict = verify_export(&text, keys);
    let (Some(valid), Some(claim)) = (verdict.valid(), verdict.attestation()) else {
        return Ok(Again::Failed(verdict.reason()));
    };
    if claim.role != mine.role || claim.rls != mine.rls {
        return Ok(Again::Failed("other_role"));
    }
    let failed = |error: SqlError| Ok(Again::Failed(word_of(&error)));
    let taken = match ReadSlice::at(valid.export.anchor, &claim.policy) {
        Ok(taken) => taken,
        Err(error) => return failed(error),
    };
    let now = match taken.export() {
        Ok(now) => now,
        Err(error) => return failed(error),
    };
    let digest = now.attestation.as_ref().map(|claim| (claim.status, claim.digest.as_str()));
    match digest {
        Some((Status::Attested, digest)) if digest == claim.digest => Ok(Again::Identical),
        Some((Status::Attested, _)) => {
            let text = match export_text(&now) {
                Ok(text) => text,
                Err(error) => return failed(error),
            };
            let export = ParsedExport::parse(&text, &check_interrupts)
                .expect("an export is read as it was written");
            Ok(Again::Changed(Box::new(Document { export, record: None })))
        }
        other => {
            let (message, word, hint) = match other {
                Some((Status::Distributed, _)) => {
                    ("Citus reads the tables of the graph", Word::Distributed, NOT_DISTRIBUTED)
                }
                _ => {
                    let message = "the graph has changes that are not committed";
                    (message, Word::Uncommitted, COMMIT_FIRST)
                }
            };
            let code = PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE;
            Err(SqlError::new(code, message).word(word).hint(hint))
        }
    }
}

/// A table that is to be the store of a graph, as `binder` binds it, checked.
///
/// # Errors
/// As [`StoreTable::resolve`].
pub fn store_of(table: pg_sys::Oid, graph: &str, binder: pg_sys::Oid) -> Result<Value, SqlError> {
    Ok(StoreTable::resolve(table, graph, binder)?.description())
}

/// The store that is bound for a graph; `None` where there is none.
///
/// # Errors
/// As [`StoreTable::bound_to`].
pub fn bound_store(graph: &str) -> Result<Option<Value>, SqlError> {
    Ok(StoreTable::bound_to(graph)?.map(|table| table.description()))
}
