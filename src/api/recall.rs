use pgrx::Uuid;
use pgrx::datum::TimestampWithTimeZone;
use pgrx::prelude::*;

use super::anchor::elements;
use crate::pg::error::OrRaise;
// `pg_extern` finds the columns of a result by the name `TableIterator`.
use crate::pg::sql::rows::MaterializedRows as TableIterator;
use crate::pg::sql::types::{JsonText, JsonbText, Policy, Text, from_sql_uuid, to_sql_uuid};
use crate::pg::text::TextArg;
use crate::service::recall::recall;
use crate::service::search::search_filter;

#[pg_extern(stable, parallel_restricted, cost = 20000)]
#[search_path(pg_catalog, pg_temp)]
#[allow(clippy::type_complexity)] // the columns are the SQL signature
fn graph_recall(
    query_embedding: default!(Option<Array<f32>>, "NULL"),
    query_text: default!(Option<TextArg>, "NULL"),
    policy: default!(Option<Policy>, "'recall'::pg_catalog.text::@extschema@.slice_policy"),
    anchor: default!(Option<Uuid>, "NULL"),
    filter: default!(Option<JsonbText>, "'{}'"),
) -> TableIterator<
    'static,
    (
        name!(n, i32),
        name!(turn_id, Uuid),
        name!(part, &'static str),
        name!(role, &'static str),
        name!(content, Option<Text>),
        name!(payload, Option<JsonbText>),
        name!(session_id, Text),
        name!(created_at, Option<TimestampWithTimeZone>),
        name!(tokens, i32),
        name!(cumulative_tokens, i64),
        name!(distance, i32),
        name!(score, f32),
        name!(seed, Option<Uuid>),
        name!(slice, Option<JsonText>),
    ),
> {
    let policy = Policy::required(policy).or_raise();
    let Some(filter) = filter else { return TableIterator::new(|_| {}) };
    let filter = search_filter(&filter.0).or_raise();
    let embedding = query_embedding.as_ref().map(elements).transpose().or_raise();
    let anchor = anchor.map(from_sql_uuid);
    let answer = recall(embedding, query_text.as_deref(), &policy, anchor, filter).or_raise();
    TableIterator::new(move |put| {
        let Some(answer) = answer else { return };
        // On the first row alone.
        let mut slice = Some(JsonText(answer.export));
        let mut cumulative = 0;
        for (n, found) in (1..).zip(answer.turns) {
            cumulative += i64::from(found.tokens);
            put((
                n,
                to_sql_uuid(found.turn.id),
                found.part.name(),
                found.turn.role.name(),
                found.message.content.map(Text),
                found.message.payload.map(JsonbText),
                Text(found.turn.session_id.clone()),
                found.message.created_at.and_then(|micros| micros.try_into().ok()),
                found.tokens as i32,
                cumulative,
                found.distance as i32,
                found.score,
                found.seed.map(to_sql_uuid),
                slice.take(),
            ));
        }
    })
}

extension_sql!(
    r"
ALTER FUNCTION graph_recall(real[], text, slice_policy, uuid, jsonb) ROWS 256;
COMMENT ON FUNCTION graph_recall(real[], text, slice_policy, uuid, jsonb) IS
    'what a search finds and what was said around it, in the order in which a model is shown it, with the signed slice';
",
    name = "recall_comments",
    requires = [graph_recall]
);
