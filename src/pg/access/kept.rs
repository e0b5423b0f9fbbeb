//! Documents in the bound store, read and written with the caller's rights.

use std::ops::ControlFlow;

use kernel::graph::turn::TurnId;

use crate::pg::query::{
    Argument, ColumnType, POSTGRES_EPOCH, Planning, Row, Statement, Template, query, with_latest,
    with_own_writes,
};
use crate::pg::tables::store::{PromotingRows, StoreTable};

const KEEP: Template = Template::new(
    include_str!("../../../sql/queries/keep.sql"),
    &[ColumnType::Boolean],
    Planning::Once,
);

const DOCUMENT: Template = Template::new(
    include_str!("../../../sql/queries/kept_document.sql"),
    &[ColumnType::Bytes],
    Planning::Once,
);

const STORED_ROW: [ColumnType; 9] = [
    ColumnType::Text,
    ColumnType::Bytes,
    ColumnType::Text,
    ColumnType::Text,
    ColumnType::Text,
    ColumnType::Boolean,
    ColumnType::Id,
    ColumnType::Text,
    ColumnType::Boolean,
];

const ALL: Template =
    Template::new(include_str!("../../../sql/queries/kept_all.sql"), &STORED_ROW, Planning::Once);

/// The same of the key `$1`.
const ROW: Template = Template::new(
    concat!(
        include_str!("../../../sql/queries/kept_all.sql"),
        "WHERE {s.key} OPERATOR(pg_catalog.=) $1"
    ),
    &STORED_ROW,
    Planning::Once,
);

const ROWS: Template = Template::new(
    include_str!("../../../sql/queries/kept_rows.sql"),
    &[
        ColumnType::Text,
        ColumnType::Text,
        ColumnType::Text,
        ColumnType::Text,
        ColumnType::Boolean,
        ColumnType::Id,
        ColumnType::Integer,
        ColumnType::Text,
        ColumnType::Time,
        ColumnType::Time,
        ColumnType::Text,
        ColumnType::Text,
    ],
    Planning::Once,
);

const DUE: Template = Template::new(
    include_str!("../../../sql/queries/kept_due.sql"),
    &[ColumnType::Text, ColumnType::Bytes],
    Planning::EachTime,
);

const DUE_SUPERSEDED: Template = Template::new(
    include_str!("../../../sql/queries/kept_due_superseded.sql"),
    &[ColumnType::Text, ColumnType::Bytes],
    Planning::EachTime,
);

const CHECK: Template = Template::new(
    include_str!("../../../sql/queries/kept_check.sql"),
    &[ColumnType::Boolean],
    Planning::Once,
);

const OTHERS: Template = Template::new(
    include_str!("../../../sql/queries/kept_others.sql"),
    &[ColumnType::Integer],
    Planning::Once,
);

const REFERENCE_COUNTS: Template = Template::new(
    include_str!("../../../sql/queries/reference_counts.sql"),
    &[ColumnType::Text, ColumnType::Integer],
    Planning::Once,
);

const REFERENCE_MISSING: Template = Template::new(
    include_str!("../../../sql/queries/reference_missing.sql"),
    &[ColumnType::Integer],
    Planning::Once,
);

const TURNS: Template = Template::new(
    include_str!("../../../sql/queries/kept_turns.sql"),
    &[ColumnType::Text, ColumnType::Text, ColumnType::Text],
    Planning::EachTime,
);

const PROMOTING: Template = Template::new(
    include_str!("../../../sql/queries/promoting_rows.sql"),
    &[ColumnType::Text, ColumnType::Text, ColumnType::Text],
    Planning::Once,
);

/// After so many bytes no more documents are held in memory at once.
const MAX_BATCH_BYTES: usize = 32 * 1024 * 1024;

/// What is stored of a document, beside when.
pub struct KeptDocument<'a> {
    /// The SHA-256 of its canonical text, in hex.
    pub key: &'a str,
    /// The document as it is stored.
    pub stored: &'a [u8],
    /// `slice` or `prompt`.
    pub kind: &'a str,
    /// The graph that it is of, as its attestation has it.
    pub graph: &'a str,
    /// The role that took it.
    pub role: &'a str,
    /// Whether row security applied.
    pub rls: bool,
    /// Where it was taken.
    pub anchor: TurnId,
    /// Its turns.
    pub turns: &'a [TurnId],
    /// Who keeps it.
    pub kept_by: &'a str,
}

/// Stores a document. Returns whether it was not there.
pub fn insert(store: &StoreTable, document: &KeptDocument<'_>) -> bool {
    let rls = document.rls.to_string();
    let arguments = [
        Argument::Text(Some(document.key)),
        Argument::Bytes(document.stored),
        Argument::Text(Some(document.kind)),
        Argument::Text(Some(document.graph)),
        Argument::Text(Some(document.role)),
        Argument::Text(Some(&rls)),
        Argument::Id(document.anchor),
        Argument::Ids(document.turns),
        Argument::Text(Some(document.kept_by)),
    ];
    let mut is_new = false;
    query(&store.writing(&KEEP), &arguments, |_| {
        is_new = true;
        ControlFlow::Continue(())
    });
    is_new
}

/// The document of a key as it is stored, also where this transaction has just stored it, and empty where it is longer
/// than one is; `None` where the caller sees none.
pub fn document(store: &StoreTable, key: &str) -> Option<Vec<u8>> {
    let mut found = None;
    with_own_writes(|| {
        query(&store.statement(&DOCUMENT), &[Argument::Text(Some(key))], |row| {
            found = Some(row.bytes(0).unwrap_or_default());
            ControlFlow::Break(())
        });
    });
    found
}

/// A row of the store, whoever has written it.
pub struct StoredRow {
    /// What it says its key is.
    pub key: String,
    /// The document as it is stored; empty where it is longer than one is.
    pub stored: Vec<u8>,
    /// What else it says: kind, graph, role, whether row security applied, anchor, turns.
    pub says: (String, String, String, bool, TurnId, String),
    /// Whether what it says of being taken again can be so: all of it or nothing, at a time that has come.
    pub is_check_possible: bool,
}

impl StoredRow {
    fn of(row: &Row) -> Self {
        let text = |column| row.text(column, |text| text.unwrap_or_default().to_owned());
        StoredRow {
            key: text(0),
            stored: row.bytes(1).unwrap_or_default(),
            says: (
                text(2),
                text(3),
                text(4),
                row.bool(5).unwrap_or_default(),
                row.id(6).unwrap_or_default(),
                text(7),
            ),
            is_check_possible: row.bool(8) == Some(true),
        }
    }
}

/// Hands every row of the store to `put`.
pub fn all(store: &StoreTable, mut put: impl FnMut(StoredRow) -> ControlFlow<()>) {
    query(&store.statement(&ALL), &[], |row| put(StoredRow::of(&row)));
}

/// The row of a key, also where it was stored just now, by whomever; `None` where the caller sees none.
pub fn row(store: &StoreTable, key: &str) -> Option<StoredRow> {
    let mut found = None;
    with_latest(|| {
        query(&store.statement(&ROW), &[Argument::Text(Some(key))], |row| {
            found = Some(StoredRow::of(&row));
            ControlFlow::Break(())
        });
    });
    found
}

/// What the store says of a document.
pub struct KeptRow {
    /// Its key.
    pub key: String,
    /// `slice` or `prompt`.
    pub kind: String,
    /// The graph that it is of, as its attestation has it.
    pub graph: String,
    /// The role that took it.
    pub role: String,
    /// Whether row security applied.
    pub rls: bool,
    /// Where it was taken.
    pub anchor: Option<TurnId>,
    /// How many turns it has.
    pub turns: i64,
    /// Who keeps it.
    pub kept_by: String,
    /// When it was kept, in microseconds since 2000.
    pub kept_at: Option<i64>,
    /// When it was taken again, likewise.
    pub checked_at: Option<i64>,
    /// What that has found.
    pub status: Option<String>,
    /// The key of the document that has taken its place.
    pub superseded_by: Option<String>,
}

/// Hands what the store says of each document to `put`.
pub fn rows(store: &StoreTable, mut put: impl FnMut(KeptRow)) {
    query(&store.statement(&ROWS), &[], |row| {
        let optional = |column| row.text(column, |text| text.map(str::to_owned));
        let text = |column| optional(column).unwrap_or_default();
        put(KeptRow {
            key: text(0),
            kind: text(1),
            graph: text(2),
            role: text(3),
            rls: row.bool(4).unwrap_or_default(),
            anchor: row.id(5),
            turns: row.i64(6).unwrap_or_default(),
            kept_by: text(7),
            kept_at: row.time(8),
            checked_at: row.time(9),
            status: optional(10),
            superseded_by: optional(11),
        });
        ControlFlow::Continue(())
    });
}

/// Whose slices are meant: of a graph, as attestations name it, taken by a role with or without row security.
#[derive(Clone, Copy)]
pub struct TakenBy<'a> {
    /// The graph.
    pub graph: &'a str,
    /// The role.
    pub role: &'a str,
    /// Whether row security applied.
    pub rls: bool,
}

/// At most so many slices that were not taken again since a moment, in microseconds since 1970: their keys, and the
/// documents as they are stored. They end where they have [`MAX_BATCH_BYTES`].
pub fn due(store: &StoreTable, by: TakenBy<'_>, since: i64, most: i64) -> Vec<(String, Vec<u8>)> {
    let rls = by.rls.to_string();
    let (mut due, mut bytes) = (Vec::new(), 0);
    // The second has no index.
    for template in [&DUE, &DUE_SUPERSEDED] {
        let left = most - due.len() as i64;
        if left <= 0 || bytes >= MAX_BATCH_BYTES {
            break;
        }
        let arguments = [
            Argument::Text(Some(by.graph)),
            Argument::Text(Some(by.role)),
            Argument::Text(Some(&rls)),
            Argument::Time(since - POSTGRES_EPOCH),
            Argument::Number(left),
        ];
        query(&store.statement(template), &arguments, |row| {
            let key = row.text(0, |text| text.unwrap_or_default().to_owned());
            let stored = row.bytes(1).unwrap_or_default();
            bytes += stored.len();
            due.push((key, stored));
            if bytes < MAX_BATCH_BYTES { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
    }
    due
}

/// How many slices of the graph others have taken.
pub fn of_others(store: &StoreTable, by: TakenBy<'_>) -> i64 {
    let rls = by.rls.to_string();
    let arguments =
        [Argument::Text(Some(by.graph)), Argument::Text(Some(by.role)), Argument::Text(Some(&rls))];
    count(&store.statement(&OTHERS), &arguments)
}

/// Notes what taking a slice again has found, and the key of the document that has taken its place. Returns whether it
/// is noted that it was taken again since a moment, as for [`due`]: not where no row was written, or a trigger has set
/// the time back.
pub fn note_check(
    store: &StoreTable,
    key: &str,
    status: &str,
    superseded_by: Option<&str>,
    since: i64,
) -> bool {
    let note = |is_rounded_up| {
        let arguments = [
            Argument::Text(Some(key)),
            Argument::Text(Some(status)),
            Argument::Text(superseded_by),
            Argument::Time(since - POSTGRES_EPOCH),
            Argument::Text(Some(is_rounded_up)),
        ];
        let mut is_noted = None;
        with_own_writes(|| {
            query(&store.statement(&CHECK), &arguments, |row| {
                is_noted = Some(row.bool(0) == Some(true));
                ControlFlow::Continue(())
            });
        });
        is_noted
    };
    match note("false") {
        Some(false) => note("true") == Some(true),
        noted => noted == Some(true),
    }
}

/// The keys that rows refer to, each with their number.
pub fn references(store: &StoreTable, rows: &PromotingRows) -> Vec<(String, i64)> {
    let mut counts = Vec::new();
    query(&store.statement_with(&REFERENCE_COUNTS, rows), &[], |row| {
        let key = row.text(0, |text| text.unwrap_or_default().to_owned());
        counts.push((key, row.i64(1).unwrap_or_default()));
        ControlFlow::Continue(())
    });
    counts
}

/// Hands key and kind of each kept document to `put`, with the text of the turns that it names; where there are ids,
/// of each that names one of them.
pub fn naming(store: &StoreTable, turns: &[TurnId], mut put: impl FnMut(&str, &str, &str)) {
    query(&store.statement(&TURNS), &[Argument::Ids(turns)], |row| {
        row.text(0, |key| {
            row.text(1, |kind| {
                row.text(2, |turns| {
                    put(
                        key.unwrap_or_default(),
                        kind.unwrap_or_default(),
                        turns.unwrap_or_default(),
                    );
                });
            });
        });
        ControlFlow::Continue(())
    });
}

/// Hands what each row that promotes refers to, carries and names to `put`.
pub fn promoting(rows: &PromotingRows, mut put: impl FnMut([&str; 3])) {
    query(&rows.statement(&PROMOTING), &[], |row| {
        row.text(0, |reference| {
            row.text(1, |document| {
                row.text(2, |turns| {
                    put([reference, document, turns].map(Option::unwrap_or_default))
                });
            });
        });
        ControlFlow::Continue(())
    });
}

/// How many rows refer to documents that are not in the store.
pub fn missing_references(store: &StoreTable, rows: &PromotingRows) -> i64 {
    count(&store.statement_with(&REFERENCE_MISSING, rows), &[])
}

fn count(statement: &Statement, arguments: &[Argument<'_>]) -> i64 {
    let mut counted = 0;
    query(statement, arguments, |row| {
        counted = row.i64(0).unwrap_or_default();
        ControlFlow::Continue(())
    });
    counted
}
