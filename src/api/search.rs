#![allow(clippy::type_complexity)] // the columns are the SQL signatures

use kernel::json::canonical::json_text;
use kernel::retrieval::ranking::Filters;
use kernel::retrieval::search::{Answer, SearchFilter, SearchResult};
use pgrx::Uuid;
use pgrx::prelude::*;

use super::anchor::elements;
use crate::pg::error::{OrRaise, SqlError};
use crate::pg::sql::types::{JsonText, JsonbText, Policy, Text, from_sql_uuid, to_sql_uuid};
use crate::pg::text::{JsonArg, TextArg};
use crate::service::search::{Question, search_filter, search_options};
use crate::service::words::refresh;

/// A turn that was found in a slice: the columns, which `pg_extern` needs in the signature.
type SliceRow = (
    i32,
    Uuid,
    Option<f32>,
    Text,
    &'static str,
    Option<Text>,
    &'static str,
    f32,
    i32,
    i32,
    f32,
    f32,
    f32,
    i64,
    Option<JsonbText>,
);

/// A turn that was found in the whole graph.
type GraphRow = (
    i32,
    Uuid,
    Option<f32>,
    Option<f32>,
    Option<f32>,
    Text,
    &'static str,
    Option<Text>,
    &'static str,
    f32,
    i32,
    i32,
    f32,
    f32,
    f32,
    i64,
    Option<JsonbText>,
);

#[pg_extern(stable, parallel_restricted, cost = 10000)]
#[search_path(pg_catalog, pg_temp)]
#[allow(clippy::too_many_arguments)] // the SQL signature
fn graph_search_slice(
    query_embedding: Option<Array<f32>>,
    anchor: Option<Uuid>,
    policy: default!(Option<Policy>, "'default'::pg_catalog.text::@extschema@.slice_policy"),
    limit_count: default!(Option<i32>, 10),
    min_similarity: default!(Option<f32>, "NULL"),
    min_salience: default!(Option<f32>, "NULL"),
    query_text: default!(Option<TextArg>, "NULL"),
    options: default!(Option<JsonbText>, "'{}'"),
) -> TableIterator<
    'static,
    (
        name!(rank, i32),
        name!(turn_id, Uuid),
        name!(similarity, Option<f32>),
        name!(session_id, Text),
        name!(role, &'static str),
        name!(content, Option<Text>),
        name!(phase, &'static str),
        name!(salience, f32),
        name!(trajectory_depth, i32),
        name!(trajectory_sibling_order, i32),
        name!(trajectory_homogeneity, f32),
        name!(trajectory_temporal, f32),
        name!(trajectory_complexity, f32),
        name!(created_at, i64),
        name!(provenance, Option<JsonbText>),
    ),
> {
    let policy = Policy::required(policy).or_raise();
    let (Some(anchor), Some(limit), Some(options)) = (anchor, limit_count, options) else {
        return TableIterator::empty();
    };
    if query_embedding.is_none() && query_text.is_none() {
        return TableIterator::empty();
    }
    let least = Filters { min_similarity, min_salience };
    let question = question(query_embedding, limit, least, query_text, &options.0).or_raise();
    found_in_slice(question.in_slice(from_sql_uuid(anchor), &policy).or_raise())
}

#[pg_extern(stable, parallel_restricted, cost = 10000)]
#[search_path(pg_catalog, pg_temp)]
fn graph_search_export(
    query_embedding: Option<Array<f32>>,
    slice: Option<JsonArg>,
    limit_count: default!(Option<i32>, 10),
    min_similarity: default!(Option<f32>, "NULL"),
    min_salience: default!(Option<f32>, "NULL"),
    query_text: default!(Option<TextArg>, "NULL"),
    options: default!(Option<JsonbText>, "'{}'"),
) -> TableIterator<
    'static,
    (
        name!(rank, i32),
        name!(turn_id, Uuid),
        name!(similarity, Option<f32>),
        name!(session_id, Text),
        name!(role, &'static str),
        name!(content, Option<Text>),
        name!(phase, &'static str),
        name!(salience, f32),
        name!(trajectory_depth, i32),
        name!(trajectory_sibling_order, i32),
        name!(trajectory_homogeneity, f32),
        name!(trajectory_temporal, f32),
        name!(trajectory_complexity, f32),
        name!(created_at, i64),
        name!(provenance, Option<JsonbText>),
    ),
> {
    let (Some(slice), Some(limit), Some(options)) = (slice, limit_count, options) else {
        return TableIterator::empty();
    };
    if query_embedding.is_none() && query_text.is_none() {
        return TableIterator::empty();
    }
    let least = Filters { min_similarity, min_salience };
    let question = question(query_embedding, limit, least, query_text, &options.0).or_raise();
    found_in_slice(question.in_export(&slice).or_raise())
}

#[pg_extern(stable, parallel_restricted, cost = 10000)]
#[search_path(pg_catalog, pg_temp)]
fn graph_search(
    query_embedding: default!(Option<Array<f32>>, "NULL"),
    query_text: default!(Option<TextArg>, "NULL"),
    limit_count: default!(Option<i32>, 10),
    filter: default!(Option<JsonbText>, "'{}'"),
) -> TableIterator<
    'static,
    (
        name!(rank, i32),
        name!(turn_id, Uuid),
        name!(strength, Option<f32>),
        name!(similarity, Option<f32>),
        name!(words, Option<f32>),
        name!(session_id, Text),
        name!(role, &'static str),
        name!(content, Option<Text>),
        name!(phase, &'static str),
        name!(salience, f32),
        name!(trajectory_depth, i32),
        name!(trajectory_sibling_order, i32),
        name!(trajectory_homogeneity, f32),
        name!(trajectory_temporal, f32),
        name!(trajectory_complexity, f32),
        name!(created_at, i64),
        name!(provenance, Option<JsonbText>),
    ),
> {
    let (Some(limit), Some(filter)) = (limit_count, filter) else {
        return TableIterator::empty();
    };
    let question = graph_question(query_embedding, query_text, limit, &filter.0).or_raise();
    found_in_graph(question.in_graph().or_raise())
}

// Response bodies, which have a provenance even where nothing was found. Declared in
// sql/retrieval.sql, in the private schema.
#[pg_extern(sql = false)]
#[allow(clippy::too_many_arguments)] // as graph_search_slice
fn search_slice_body(
    query_embedding: Option<Array<f32>>,
    anchor: Option<Uuid>,
    policy: Option<Policy>,
    limit_count: Option<i32>,
    min_similarity: Option<f32>,
    min_salience: Option<f32>,
    query_text: Option<TextArg>,
    options: Option<JsonbText>,
) -> Option<JsonText> {
    let policy = Policy::required(policy).or_raise();
    let least = Filters { min_similarity, min_salience };
    let (limit, options) = (limit_count?, options?);
    let question = question(query_embedding, limit, least, query_text, &options.0).or_raise();
    let answer = question.in_slice(from_sql_uuid(anchor?), &policy).or_raise();
    Some(JsonText(json_text(&answer)))
}

#[pg_extern(sql = false)]
fn search_export_body(
    query_embedding: Option<Array<f32>>,
    slice: Option<JsonArg>,
    limit_count: Option<i32>,
    min_similarity: Option<f32>,
    min_salience: Option<f32>,
    query_text: Option<TextArg>,
    options: Option<JsonbText>,
) -> Option<JsonText> {
    let least = Filters { min_similarity, min_salience };
    let (limit, options) = (limit_count?, options?);
    let question = question(query_embedding, limit, least, query_text, &options.0).or_raise();
    Some(JsonText(json_text(&question.in_export(&slice?).or_raise())))
}

#[pg_extern(sql = false)]
fn search_body(
    query_embedding: Option<Array<f32>>,
    query_text: Option<TextArg>,
    limit_count: Option<i32>,
    filter: Option<JsonbText>,
) -> Option<JsonText> {
    let question = graph_question(query_embedding, query_text, limit_count?, &filter?.0);
    Some(JsonText(json_text(&question.and_then(Question::in_graph).or_raise())))
}

// Declared in sql/words.sql, in the private schema.
#[pg_extern(sql = false)]
fn refresh_words(name: Option<TextArg>) {
    if let Some(name) = name {
        refresh(&name).or_raise();
    }
}

/// A question about a slice as it came from SQL.
fn question(
    embedding: Option<Array<'_, f32>>,
    limit: i32,
    least: Filters,
    text: Option<TextArg<'_>>,
    options: &str,
) -> Result<Question, SqlError> {
    let filter = SearchFilter { least, ..search_options(options)? };
    let embedding = embedding.as_ref().map(elements).transpose()?;
    Question::new(embedding, text.as_deref(), limit, filter)
}

/// A question about the whole graph as it came from SQL.
fn graph_question(
    embedding: Option<Array<'_, f32>>,
    text: Option<TextArg<'_>>,
    limit: i32,
    filter: &str,
) -> Result<Question, SqlError> {
    let embedding = embedding.as_ref().map(elements).transpose()?;
    Question::new(embedding, text.as_deref(), limit, search_filter(filter)?)
}

fn found_in_slice(answer: Answer) -> TableIterator<'static, SliceRow> {
    rows(answer, |rank, found, provenance| {
        let SearchResult { turn, similarity, content, .. } = found;
        (
            rank,
            to_sql_uuid(turn.id),
            similarity,
            Text(turn.session_id),
            turn.role.name(),
            content.map(Text),
            turn.phase.name(),
            turn.salience,
            turn.trajectory_depth as i32,
            turn.trajectory_sibling_order as i32,
            turn.trajectory_homogeneity,
            turn.trajectory_temporal,
            turn.trajectory_complexity,
            turn.created_at,
            provenance,
        )
    })
}

fn found_in_graph(answer: Answer) -> TableIterator<'static, GraphRow> {
    rows(answer, |rank, found, provenance| {
        let SearchResult { turn, strength, similarity, words, content } = found;
        (
            rank,
            to_sql_uuid(turn.id),
            strength,
            similarity,
            words,
            Text(turn.session_id),
            turn.role.name(),
            content.map(Text),
            turn.phase.name(),
            turn.salience,
            turn.trajectory_depth as i32,
            turn.trajectory_sibling_order as i32,
            turn.trajectory_homogeneity,
            turn.trajectory_temporal,
            turn.trajectory_complexity,
            turn.created_at,
            provenance,
        )
    })
}

fn rows<Row: 'static>(
    answer: Answer,
    row: fn(i32, SearchResult, Option<JsonbText>) -> Row,
) -> TableIterator<'static, Row> {
    // On the first row alone: it names every turn that was found.
    let mut provenance = Some(JsonbText(answer.provenance.to_json()));
    let results = answer.results.into_iter().zip(1..);
    TableIterator::new(results.map(move |(found, rank)| row(rank, found, provenance.take())))
}

extension_sql!(
    r"
ALTER FUNCTION graph_search_slice(real[], uuid, slice_policy, integer, real, real, text, jsonb) ROWS 10;
COMMENT ON FUNCTION graph_search_slice(real[], uuid, slice_policy, integer, real, real, text, jsonb) IS
    'the turns of a slice that are most similar to an embedding, with signed provenance';
ALTER FUNCTION graph_search_export(real[], json, integer, real, real, text, jsonb) ROWS 10;
COMMENT ON FUNCTION graph_search_export(real[], json, integer, real, real, text, jsonb) IS
    'the turns of an exported slice that are most similar to an embedding, with signed provenance';
ALTER FUNCTION graph_search(real[], text, integer, jsonb) ROWS 10;
COMMENT ON FUNCTION graph_search(real[], text, integer, jsonb) IS
    'the turns of the whole graph that fit a question best, by its embedding and its words: never admissible';
",
    name = "search_comments",
    requires = [graph_search_slice, graph_search_export, graph_search]
);
