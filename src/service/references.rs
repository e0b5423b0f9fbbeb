//! What names turns beside the graph itself: kept documents, rows that promote, traces, events. Read with the caller's
//! rights, for whoever has to delete a person's or a tenant's.

use std::borrow::Cow;
use std::collections::HashSet;
use std::ops::ControlFlow;

use kernel::graph::turn::{TurnId, bounded_name};
use kernel::graph::turn_id::turn_ids_in;
use kernel::retrieval::provenance::Provenance;
use kernel::retrieval::search::SearchFilter;
use pgrx::{PgSqlErrorCode, pg_sys};
use serde_json::Value;
use uuid::Uuid;

use super::reader::GraphReader;
use super::search::{invalid_filter, search_filter};
use crate::pg::access::{events, kept, trace};
use crate::pg::error::{SqlError, Word};
use crate::pg::interrupts::check_interrupts;
use crate::pg::subtransaction::guarded;
use crate::pg::tables::recorder::RecorderTable;
use crate::pg::tables::store::{PromotingRows, StoreTable};

/// The most turns that are looked for at once: their ids are held in memory.
const MAX_TURNS: usize = 1_000_000;

/// The most bytes of the names of their sessions.
const MAX_SESSION_BYTES: usize = 64 * 1024 * 1024;

/// Of more turns every document is looked at: an index is slow where much is sought, and a comparison without one.
const MAX_INDEXED: usize = 64;

/// The most bytes of the list of tables: its values are held in memory, and a value takes many times its JSON.
const MAX_LIST_BYTES: usize = 4 * 1024 * 1024;

/// What names turns.
pub struct Reference<'a> {
    /// `turn`, `slice`, `prompt`, `trace`, `atom` or `event`.
    pub kind: &'a str,
    /// The table that it is in.
    pub place: pg_sys::Oid,
    /// What finds it there: the key of a document, the id of a trace, the columns of a trigger, the name of a session.
    pub key: Option<&'a str>,
    /// How many turns a document or a trace names, or how many rows there are; `None` for a table that is not read.
    pub count: Option<i64>,
}

/// A table whose rows promote.
pub struct Promoting {
    /// The table.
    place: pg_sys::Oid,
    /// The columns of its trigger: `reference` or `document`, and `turns`; `None` where it must not be read.
    columns: Option<Value>,
    /// The same for who looks at the list.
    shown: String,
}

/// Tables whose rows promote, as SQL code hands them over.
///
/// # Errors
/// 22023 for another form; 54000 for more than 4 MiB.
pub fn promoting(json: &str) -> Result<Vec<Promoting>, SqlError> {
    let bad = || {
        let message = "promoting must be an array of tables and their columns";
        SqlError::new(PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE, message)
            .word(Word::InvalidArgument)
            .hint("SELECT * FROM graph_kernel.references('{}');")
    };
    if json.len() > MAX_LIST_BYTES {
        return Err(SqlError::new(
            PgSqlErrorCode::ERRCODE_PROGRAM_LIMIT_EXCEEDED,
            format!("promoting of {} bytes is longer than {MAX_LIST_BYTES}", json.len()),
        )
        .word(Word::RequestTooLarge)
        .hint("SELECT * FROM graph_kernel.references('{}');"));
    }
    let tables: Vec<Value> = serde_json::from_str(json).map_err(|_| bad())?;
    let table = |table: &Value| {
        let place = u32::try_from(table.get("place")?.as_u64()?).ok()?;
        let columns = table.get("columns").filter(|columns| columns.is_object()).cloned();
        let shown = table.get("shown")?.as_str()?.to_owned();
        Some(Promoting { place: place.into(), columns, shown })
    };
    tables.iter().map(|given| table(given).ok_or_else(bad)).collect()
}

/// The turns that a filter finds, and their sessions.
struct Sought {
    turns: HashSet<TurnId>,
    /// Their names: one of more than 4 KiB, or that is not UTF-8, is its hash.
    sessions: HashSet<String>,
}

impl Sought {
    fn of(reader: &GraphReader, filter: &SearchFilter) -> Result<Self, SqlError> {
        let mut turns = HashSet::new();
        let name = |session: &String| bounded_name(session, &check_interrupts).into_owned();
        let mut sessions: HashSet<String> = filter.sessions.iter().flatten().map(name).collect();
        sessions.remove("");
        let mut left = Some(MAX_SESSION_BYTES);
        reader.searcher().turns(filter, |turn, row| {
            turns.insert(turn);
            row.text(1, |session| {
                let Some(session) = session.filter(|name| !name.is_empty()) else { return };
                if !sessions.contains(session) {
                    left = left.and_then(|left| left.checked_sub(session.len()));
                    sessions.insert(session.to_owned());
                }
            });
            match left.is_some() && turns.len() <= MAX_TURNS {
                true => ControlFlow::Continue(()),
                false => ControlFlow::Break(()),
            }
        })?;
        match left.is_some() && turns.len() <= MAX_TURNS {
            true => Ok(Sought { turns, sessions }),
            false => Err(SqlError::new(
                PgSqlErrorCode::ERRCODE_PROGRAM_LIMIT_EXCEEDED,
                format!(
                    "the filter finds more than {MAX_TURNS} turns, or names of sessions of more than \
                     {MAX_SESSION_BYTES} bytes"
                ),
            )
            .word(Word::SearchTooLarge)
            .hint("Take some sessions, or one span of time after the other: '{\"from\": ..., \"to\": ...}'.")),
        }
    }

    /// How many of the turns a text names, each once.
    fn count_in(&self, text: &str) -> i64 {
        let text = unescaped(text);
        let named = turn_ids_in(&text, &check_interrupts).filter(|id| self.turns.contains(id));
        named.collect::<HashSet<_>>().len() as i64
    }

    fn is_in(&self, text: &str) -> bool {
        turn_ids_in(&unescaped(text), &check_interrupts).any(|id| self.turns.contains(&id))
    }

    /// Whether a search was narrowed to the owner of the filter, or to one of the sessions.
    fn narrowed(&self, filter: &SearchFilter, provenance: &str) -> bool {
        let Ok(Provenance { filter: applied, .. }) =
            Provenance::parse(provenance, &check_interrupts)
        else {
            return false;
        };
        filter.owner.as_ref().zip(applied.owner.as_ref()).is_some_and(|(a, b)| is_same_owner(a, b))
            || applied
                .sessions
                .iter()
                .flatten()
                .any(|name| self.sessions.contains(bounded_name(name, &check_interrupts).as_ref()))
    }
}

/// Whether two texts name an owner. One of type uuid is found by any spelling.
fn is_same_owner(one: &str, other: &str) -> bool {
    let id = |text| Uuid::try_parse(text).ok();
    one == other || id(one).is_some_and(|one| id(other) == Some(one))
}

/// Hands what names the turns that a filter finds in the graph of this name to `put`.
///
/// # Errors
/// 22023 for a filter that is none; 54000 where it finds more than can be held; 40001 where the snapshot is older than
/// a table that is read; else as a search, as [`StoreTable::of`] and [`RecorderTable::current`]. What others than the
/// owners of these tables have made, rows that promote and traces, ends no call: what cannot be read has no count.
pub fn list(
    graph: &str,
    filter: &str,
    promoting: &[Promoting],
    mut put: impl FnMut(Reference<'_>),
) -> Result<(), SqlError> {
    let filter = search_filter(filter)?;
    if filter.least.min_similarity.is_some() {
        return Err(invalid_filter(
            "min_similarity needs a question, and there is none".to_owned(),
        ));
    }
    let reader = GraphReader::of(graph)?;
    let sought = Sought::of(&reader, &filter)?;
    reader.check_settled()?;
    let count = Some(sought.turns.len() as i64);
    put(Reference { kind: "turn", place: reader.graph().turns_table(), key: None, count });
    let keys = documents(graph, &sought, &mut put)?;
    if let Some(place) = trace::bound()? {
        let traces = guarded(|| {
            trace::all(|id, provenance| {
                let count = provenance.map(|provenance| sought.count_in(provenance));
                let is_narrowed =
                    || provenance.is_some_and(|provenance| sought.narrowed(&filter, provenance));
                if count != Some(0) || is_narrowed() {
                    put(Reference { kind: "trace", place, key: Some(id), count });
                }
            })
        });
        match traces {
            Some(Ok(Some(rows))) => rows.check_settled()?,
            Some(Ok(None)) => {}
            _ => put(Reference { kind: "trace", place, key: None, count: None }),
        }
    }
    for Promoting { place, columns, shown } in promoting {
        let place = *place;
        let counted = columns.as_ref().and_then(|columns| {
            guarded(|| {
                let rows = PromotingRows::of(place, columns).ok()?;
                let count = atoms(&rows, &sought, &keys);
                Some(rows.check_settled().map(|()| count))
            })?
        });
        let count = counted.transpose()?;
        if count != Some(0) {
            put(Reference { kind: "atom", place, key: Some(shown), count });
        }
    }
    if let Some(table) = RecorderTable::bound()? {
        let (place, mut sessions) = (table.oid(), Vec::from_iter(sought.sessions));
        sessions.sort_unstable();
        let events = guarded(|| {
            events::of_sessions(&table, &sessions, |session, count| {
                put(Reference { kind: "event", place, key: Some(session), count: Some(count) });
            });
        });
        if events.is_none() {
            put(Reference { kind: "event", place, key: None, count: None });
        }
        table.check_settled()?;
    } else if let Some(place) = RecorderTable::default_table() {
        // Whoever owns it could have code run by who reads it.
        put(Reference { kind: "event", place, key: None, count: None });
    }
    Ok(())
}

/// The keys of the documents that name the turns.
fn documents(
    graph: &str,
    sought: &Sought,
    put: &mut impl FnMut(Reference<'_>),
) -> Result<HashSet<String>, SqlError> {
    let mut keys = HashSet::new();
    let Some(store) = StoreTable::bound_to(graph)? else { return Ok(keys) };
    if sought.turns.is_empty() {
        return Ok(keys);
    }
    let few: Vec<TurnId> = match sought.turns.len() <= MAX_INDEXED {
        true => sought.turns.iter().copied().collect(),
        false => Vec::new(),
    };
    kept::naming(&store, &few, |key, kind, turns| {
        let count = sought.count_in(turns);
        if count > 0 {
            keys.insert(key.to_owned());
            put(Reference { kind, place: store.oid(), key: Some(key), count: Some(count) });
        }
    });
    store.check_settled()?;
    Ok(keys)
}

/// How many rows name one of the turns, or refer to one of the documents.
fn atoms(rows: &PromotingRows, sought: &Sought, keys: &HashSet<String>) -> i64 {
    let mut count = 0;
    kept::promoting(rows, |[reference, document, turns]| {
        let names = keys.contains(reference) || sought.is_in(turns) || sought.is_in(document);
        count += i64::from(names);
    });
    count
}

/// A text in which JSON's escapes of characters of one byte are these: JSON may spell an id in them.
fn unescaped(text: &str) -> Cow<'_, str> {
    const ESCAPE: &str = "\\u00";
    let Some((first, rest)) = text.split_once(ESCAPE) else { return text.into() };
    let mut plain = first.to_owned();
    for part in rest.split(ESCAPE) {
        let byte = part.get(..2).and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match byte.filter(u8::is_ascii) {
            Some(byte) => {
                plain.push(char::from(byte));
                plain.push_str(&part[2..]);
            }
            None => plain.push_str(part),
        }
    }
    plain.into()
}
