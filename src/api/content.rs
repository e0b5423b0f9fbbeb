use kernel::graph::turn::hash_of_name;
use pgrx::prelude::*;
use pgrx::{Uuid, pg_sys};

use crate::pg::error::OrRaise;
use crate::pg::interrupts::check_interrupts;
// `pg_extern` finds the columns of a result by the name `TableIterator`.
use crate::pg::sql::rows::MaterializedRows as TableIterator;
use crate::pg::sql::types::{
    MAX_JSON_TEXT_BYTES, Name, StoredJsonb, Text, TextOrStored, from_sql_uuid, present_ids,
    to_sql_uuid,
};
use crate::pg::text::{StoredText, TextArg, checked, replaced};
use crate::pg::trigger::TriggerCall;
use crate::service::content::{
    Backfilled, audit, hash, hash_written, normalised, page, rehash, rehash_free,
};

#[pg_extern(immutable, parallel_safe)]
fn graph_normalize_text(content: TextArg) -> Text {
    Text(normalised(&content).into_owned())
}

#[pg_extern(immutable, parallel_safe, cost = 100)]
fn graph_content_hash(content: TextArg) -> Text {
    Text(hash(&content))
}

// Declared in sql/content.sql, as a trigger function.
#[pg_extern(sql = false)]
fn graph_content_hash_trigger(call: TriggerCall) -> pgrx::Internal {
    hash_written(&call).or_raise()
}

#[pg_extern(stable, parallel_restricted, cost = 10000000)]
#[search_path(pg_catalog, pg_temp)]
fn graph_content_audit(
    limit_count: default!(Option<i64>, "NULL"),
) -> TableIterator<
    'static,
    (name!(turn_id, Uuid), name!(stored, Option<Text>), name!(computed, Option<Text>)),
> {
    TableIterator::new(move |put| {
        audit(limit_count, |turn, stored, computed| {
            put((to_sql_uuid(turn), stored.map(Text), computed.map(Text)))
        })
        .or_raise();
    })
}

// These and the next are declared in sql/content.sql, in the private schema. Statements use them for what is stored,
// which may be any bytes.
#[pg_extern(sql = false)]
fn content_hash_or_null(content: StoredText) -> Option<Text> {
    content.with_bytes(|bytes| checked(bytes).ok().map(|content| Text(hash(content))))
}

#[pg_extern(sql = false)]
fn is_text(content: StoredText) -> bool {
    content.with_bytes(|bytes| checked(bytes).is_ok())
}

#[pg_extern(sql = false)]
fn name_hash(name: StoredText) -> Text {
    name.with_bytes(|bytes| Text(hash_of_name(bytes, &check_interrupts)))
}

/// Its argument is a bytea, which is laid out as a text.
#[pg_extern(sql = false)]
fn name_of(bytes: StoredText) -> Option<Name> {
    bytes.with_bytes(Name::of)
}

#[pg_extern(sql = false)]
fn char_count(content: StoredText) -> i32 {
    content.with_bytes(|bytes| match checked(bytes) {
        Ok(text) => text.chars().count(),
        // As of the text with what is replaced, which would take three times the bytes.
        Err(_) => {
            let chunks = bytes.utf8_chunks();
            let invalid = chunks.clone().filter(|chunk| !chunk.invalid().is_empty()).count();
            invalid + chunks.map(|chunk| chunk.valid().chars().count()).sum::<usize>()
        }
    }) as i32
}

#[pg_extern(sql = false)]
fn json_text(json: StoredJsonb) -> Option<Text> {
    json.shown_text().map(Text)
}

#[pg_extern(sql = false)]
fn json_to_look_through(json: StoredJsonb) -> Option<Text> {
    json.text_to_look_through().map(Text)
}

/// A json is stored as its text. The server's own conversion copies it twice.
#[pg_extern(sql = false)]
fn json_as_text(json: StoredText) -> Option<TextOrStored> {
    if json.bytes() > MAX_JSON_TEXT_BYTES {
        return None;
    }
    Some(json.with_bytes(|bytes| match checked(bytes) {
        Ok(_) => TextOrStored::Stored(json),
        Err(_) => TextOrStored::Text(replaced(bytes).into_owned()),
    }))
}

#[pg_extern(sql = false)]
fn text_prefix(content: StoredText, chars: i32) -> Text {
    Text(content.prefix(chars.max(0) as usize))
}

#[pg_extern(sql = false)]
#[allow(clippy::type_complexity)] // the columns are the SQL signature
fn content_page(
    graph: Option<TextArg>,
    table: Option<pg_sys::Oid>,
    after: Option<Uuid>,
    most: Option<i32>,
) -> TableIterator<
    'static,
    (name!(turns, i64), name!(last, Option<Uuid>), name!(stale, Vec<Uuid>), name!(not_text, i64)),
> {
    let (Some(graph), Some(turns), Some(most)) = (graph, table, most) else {
        return TableIterator::new(|_| {});
    };
    let page = page(Backfilled { graph: &graph, turns }, after.map(from_sql_uuid), most).or_raise();
    let stale = page.stale.into_iter().map(to_sql_uuid).collect();
    let row = (page.turns, page.last.map(to_sql_uuid), stale, page.not_text);
    TableIterator::new(|put| put(row))
}

#[pg_extern(sql = false)]
fn rehash_free_turns(
    graph: TextArg,
    table: pg_sys::Oid,
    turns: Array<Uuid>,
) -> TableIterator<'static, (name!(changed, i64), name!(held, Vec<Uuid>))> {
    let turns = present_ids(&turns).or_raise();
    let (changed, held) =
        rehash_free(Backfilled { graph: &graph, turns: table }, &turns).or_raise();
    let row = (changed, held.into_iter().map(to_sql_uuid).collect());
    TableIterator::new(|put| put(row))
}

#[pg_extern(sql = false)]
fn rehash_turn(graph: TextArg, table: pg_sys::Oid, turn: Uuid) -> i64 {
    rehash(Backfilled { graph: &graph, turns: table }, from_sql_uuid(turn)).or_raise()
}

extension_sql!(
    r"
COMMENT ON FUNCTION graph_normalize_text(text) IS
    'content as it is hashed: line ends LF, outer white space trimmed';
COMMENT ON FUNCTION graph_content_hash(text) IS 'SHA-256 of the normalised content, in hex';
ALTER FUNCTION graph_content_audit(bigint) ROWS 10;
COMMENT ON FUNCTION graph_content_audit(bigint) IS
    'turns whose content_hash is missing or not that of their content, by ascending id';
",
    name = "content_comments",
    requires = [graph_normalize_text, graph_content_hash, graph_content_audit]
);
