use pgrx::Uuid;
use pgrx::datum::TimestampWithTimeZone;
use pgrx::prelude::*;

use crate::pg::error::OrRaise;
// `pg_extern` finds the columns of a result by the name `TableIterator`.
use crate::pg::sql::rows::MaterializedRows as TableIterator;
use crate::pg::sql::types::{Text, present_ids, to_sql_uuid};
use crate::pg::text::TextArg;
use crate::service::lists::{self, Listed, extent};

fn time(micros: Option<i64>) -> Option<TimestampWithTimeZone> {
    micros.and_then(|micros| micros.try_into().ok())
}

// Declared in sql/lists.sql, in the private schema.
#[pg_extern(sql = false)]
#[allow(clippy::type_complexity)] // the columns are the SQL signature
fn list_sessions(
    limit_count: Option<i32>,
    skip_count: Option<i32>,
    length: Option<i32>,
    name_end: Option<TextArg>,
) -> TableIterator<
    'static,
    (
        name!(session_id, Text),
        name!(turns, i64),
        name!(latest_turn_id, Uuid),
        name!(latest_at, Option<TimestampWithTimeZone>),
        name!(title, Option<Text>),
        name!(latest_text, Option<Text>),
    ),
> {
    let (Some(limit), Some(skip), Some(length)) = (limit_count, skip_count, length) else {
        return TableIterator::new(|_| {});
    };
    let name_end = name_end.map(|end| end.to_string());
    TableIterator::new(move |put| {
        extent(limit, skip, length)
            .and_then(|extent| {
                lists::sessions(extent, name_end.as_deref(), |session| {
                    put((
                        Text(session.name),
                        session.turns,
                        to_sql_uuid(session.latest),
                        time(session.at),
                        session.title.map(Text),
                        session.text.map(Text),
                    ));
                })
            })
            .or_raise();
    })
}

#[pg_extern(sql = false)]
#[allow(clippy::type_complexity)] // the columns are the SQL signature
fn list_turns(
    session: Option<TextArg>,
    turns: Option<Array<Uuid>>,
    has_text: Option<TextArg>,
    only_ends: Option<bool>,
    limit_count: Option<i32>,
    skip_count: Option<i32>,
    length: Option<i32>,
) -> TableIterator<
    'static,
    (
        name!(turn_id, Uuid),
        name!(session_id, Text),
        name!(role, &'static str),
        name!(phase, &'static str),
        name!(created_at, Option<TimestampWithTimeZone>),
        name!(content, Option<Text>),
    ),
> {
    let (Some(limit), Some(skip), Some(length), Some(only_ends)) =
        (limit_count, skip_count, length, only_ends)
    else {
        return TableIterator::new(|_| {});
    };
    let turns = turns.as_ref().map(present_ids).transpose().or_raise();
    let [session, text] = [session, has_text].map(|text| text.map(|text| text.to_string()));
    TableIterator::new(move |put| {
        let listed =
            Listed { session: session.as_deref(), turns, text: text.as_deref(), only_ends };
        extent(limit, skip, length)
            .and_then(|extent| {
                lists::turns(extent, listed, |turn| {
                    put((
                        to_sql_uuid(turn.id),
                        Text(turn.session),
                        turn.role.name(),
                        turn.phase.name(),
                        time(turn.at),
                        turn.text.map(Text),
                    ));
                })
            })
            .or_raise();
    })
}

#[pg_extern(sql = false)]
fn list_edges(
    turns: Option<Array<Uuid>>,
    limit_count: Option<i32>,
) -> TableIterator<
    'static,
    (name!(parent_turn_id, Uuid), name!(child_turn_id, Uuid), name!(edge_type, &'static str)),
> {
    let (Some(turns), Some(limit)) = (turns, limit_count) else {
        return TableIterator::new(|_| {});
    };
    let turns = present_ids(&turns).or_raise();
    TableIterator::new(move |put| {
        lists::edges(&turns, limit, |parent, child, edge_type| {
            put((to_sql_uuid(parent), to_sql_uuid(child), edge_type.name()));
        })
        .or_raise();
    })
}
