//! How many turns have each lexeme, as it was counted last.

use std::collections::{BTreeMap, HashMap};

use kernel::retrieval::words::Corpus;
use pgrx::pg_sys;

use crate::pg::private::members::{call_with_word_counts, call_with_word_totals};
use crate::pg::private::private_table::{Key, PrivateTable};

const TOTALS: PrivateTable = PrivateTable {
    name: c"word_totals",
    columns: &[
        pg_sys::OIDOID,
        pg_sys::INT4OID,
        pg_sys::INT8OID,
        pg_sys::INT8OID,
        pg_sys::TIMESTAMPTZOID,
    ],
};

const COUNTS: PrivateTable = PrivateTable {
    name: c"word_counts",
    columns: &[pg_sys::OIDOID, pg_sys::INT4OID, pg_sys::TEXTARRAYOID, pg_sys::INT8OID],
};

/// How many bytes of lexemes are given to the database at once.
const PART_BYTES: usize = 4 << 20;

/// What is known of the turns of this table that have words in this column; `None` before they were counted.
pub fn corpus(table: pg_sys::Oid, column: i16) -> Option<Corpus> {
    let key = vec![Key::Oid(table), Key::Integer(column.into())];
    let found = TOTALS.look_up(c"word_totals_pkey", &[key], |row| {
        Some(Corpus::new(row.bigint(2)?.try_into().ok()?, row.bigint(3)?.try_into().ok()?))
    });
    found.into_iter().flatten().next()
}

/// These lexemes, each with the number of turns that had it; `None` of one that no two had.
pub fn counted(
    table: pg_sys::Oid,
    column: i16,
    lexemes: Vec<String>,
) -> Vec<(String, Option<u64>)> {
    let key = |lexeme| vec![Key::Oid(table), Key::Integer(column.into()), Key::Texts(lexeme)];
    let keys: Vec<_> = lexemes.iter().map(|lexeme| key(lexeme.as_str())).collect();
    let found = COUNTS.look_up(c"word_counts_pkey", &keys, |row| row.bigint(3)?.try_into().ok());
    drop(keys);
    lexemes.into_iter().zip(found).collect()
}

/// Keeps in place of what is there: how many turns have words, how many different lexemes they have together, and how
/// many have each lexeme, where it is more than one.
///
/// Raises 42P01, 42883 or 55000 where the extension has another version.
pub fn store(
    table: pg_sys::Oid,
    column: i16,
    turns: u64,
    lexemes: u64,
    with: &HashMap<String, u64>,
) {
    call_with_word_totals(table, column, turns, lexemes);
    // In parts, as a jsonb has room for 256 MiB.
    let (mut part, mut bytes) = (BTreeMap::new(), 0);
    for (lexeme, turns) in with.iter().filter(|(_, turns)| **turns > 1) {
        part.insert(lexeme.as_str(), *turns);
        bytes += lexeme.len();
        if bytes > PART_BYTES {
            call_with_word_counts(table, column, &std::mem::take(&mut part));
            bytes = 0;
        }
    }
    call_with_word_counts(table, column, &part);
}
