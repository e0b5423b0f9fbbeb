use pgrx::Uuid;
use pgrx::prelude::*;

use crate::pg::error::OrRaise;
// `pg_extern` finds the columns of a result by the name `TableIterator`.
use crate::pg::sql::rows::MaterializedRows as TableIterator;
use crate::pg::sql::types::{JsonText, JsonbText, Policy, Text, from_sql_uuid, to_sql_uuid};
use crate::pg::text::{JsonArg, TextArg};
use crate::service::prompt::{self, KeptTexts, ShownMessage};

#[pg_extern(stable, parallel_restricted, cost = 10000)]
#[search_path(pg_catalog, pg_temp)]
fn graph_messages_record(
    anchor: Option<Uuid>,
    policy: default!(Option<Policy>, "'chat'::pg_catalog.text::@extschema@.slice_policy"),
    context: default!(Option<TextArg>, "NULL"),
) -> Option<JsonText> {
    let policy = Policy::required(policy).or_raise();
    let context = context.map(|context| context.0);
    Some(JsonText(prompt::record(from_sql_uuid(anchor?), &policy, context).or_raise()))
}

#[pg_extern(stable, parallel_restricted, cost = 10000)]
#[search_path(pg_catalog, pg_temp)]
#[allow(clippy::type_complexity)] // the columns are the SQL signature
fn graph_messages_show(
    record: Option<JsonArg>,
    contents: default!(Option<Array<TextArg>>, "NULL"),
    payloads: default!(Option<Array<JsonbText>>, "NULL"),
) -> TableIterator<
    'static,
    (
        name!(n, i32),
        name!(turn_id, Uuid),
        name!(part, &'static str),
        name!(role, &'static str),
        name!(state, &'static str),
        name!(content, Option<Text>),
        name!(payload, Option<JsonbText>),
        name!(matches, Option<bool>),
    ),
> {
    let Some(record) = record else { return TableIterator::new(|_| {}) };
    let contents = contents.as_ref().map(|texts| KeptTexts {
        count: texts.len(),
        texts: texts.iter().map(|text| text.map(|text| text.0)),
    });
    let payloads = payloads.as_ref().map(|texts| KeptTexts {
        count: texts.len(),
        texts: texts.iter().map(|json| json.map(|json| json.0)),
    });
    let messages = prompt::show(&record, contents, payloads).or_raise();
    TableIterator::new(move |put| {
        for (n, ShownMessage { recorded, state, now, matches }) in (1..).zip(messages) {
            let (content, payload) = now.map_or((None, None), |now| (now.content, now.payload));
            put((
                n,
                to_sql_uuid(recorded.turn_id),
                recorded.part.name(),
                recorded.role.name(),
                state.name(),
                content.map(Text),
                payload.map(JsonbText),
                matches,
            ));
        }
    })
}

#[pg_extern(stable, parallel_restricted, cost = 10000)]
#[search_path(pg_catalog, pg_temp)]
fn graph_messages_json(
    record: Option<JsonArg>,
    format: default!(Option<TextArg>, "'openai'"),
    options: default!(Option<JsonbText>, "'{}'"),
) -> Option<JsonbText> {
    let (record, format, options) = (record?, format?, options?);
    Some(JsonbText(prompt::json(&record, &format, &options.0).or_raise()))
}

extension_sql!(
    r"
COMMENT ON FUNCTION graph_messages_record(uuid, slice_policy, text) IS
    'the record of what a model is shown at an anchor: the messages in their order, by their hashes, signed';
ALTER FUNCTION graph_messages_show(json, text[], jsonb[]) ROWS 256;
COMMENT ON FUNCTION graph_messages_show(json, text[], jsonb[]) IS
    'the messages of a record that verifies, and what became of them';
COMMENT ON FUNCTION graph_messages_json(json, text, jsonb) IS
    'the messages of a record that verifies, in the form that a provider takes';
",
    name = "prompt_comments",
    requires = [graph_messages_record, graph_messages_show, graph_messages_json]
);
