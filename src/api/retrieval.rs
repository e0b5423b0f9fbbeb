use std::collections::HashMap;
use std::ops::ControlFlow;
use std::rc::Rc;
use std::time::Instant;

use kernel::export::canonical::json_text;
use kernel::graph::turn::{Turn, TurnId};
use kernel::policy::SlicePolicy;
use kernel::retrieval::provenance::{Provenance, SliceInfo, iso_utc};
use kernel::retrieval::ranking::{Filters, Hit, Ranking, result_hash};
use kernel::retrieval::search::{Answer, SearchResult};
use kernel::retrieval::similarity::QueryEmbedding;
use kernel::slicing::store::GraphStore;
use kernel::trust::keys::SigningKeys;
use pgrx::prelude::*;
use pgrx::{PgSqlErrorCode, Uuid};

use super::anchor::{checked_limit, elements};
use super::slice::TakenSlice;
use crate::pg::error::{OrRaise, SqlError, with_policy_hint};
use crate::pg::graph::Graph;
use crate::pg::keys::Keys;
use crate::pg::retrieval::{Searcher, random_uuid, statement_time};
use crate::pg::session::Caller;
use crate::pg::store::PgStore;
use crate::pg::text_type::{JsonText, JsonbText, Policy, to_sql_uuid};

/// The longest question in words, in bytes.
const QUERY_TEXT_MAX_BYTES: usize = 64 * 1024;

type FoundRow = (
    i32,
    Uuid,
    f32,
    String,
    &'static str,
    Option<String>,
    &'static str,
    f32,
    i32,
    i32,
    f32,
    f32,
    f32,
    i64,
    JsonbText,
);

#[pg_extern(stable, parallel_restricted)]
#[allow(clippy::type_complexity, clippy::too_many_arguments)] // the SQL signature
fn graph_search_slice(
    query_embedding: Option<Array<f32>>,
    anchor: Option<Uuid>,
    policy: default!(Option<Policy>, "'default'"),
    limit_count: default!(Option<i32>, 10),
    min_similarity: default!(Option<f32>, "NULL"),
    min_salience: default!(Option<f32>, "NULL"),
    query_text: default!(Option<&str>, "NULL"),
) -> TableIterator<
    'static,
    (
        name!(rank, i32),
        name!(turn_id, Uuid),
        name!(similarity, f32),
        name!(session_id, String),
        name!(role, &'static str),
        name!(content, Option<String>),
        name!(phase, &'static str),
        name!(salience, f32),
        name!(trajectory_depth, i32),
        name!(trajectory_sibling_order, i32),
        name!(trajectory_homogeneity, f32),
        name!(trajectory_temporal, f32),
        name!(trajectory_complexity, f32),
        name!(created_at, i64),
        name!(provenance, JsonbText),
    ),
> {
    let policy = Policy::required(policy).or_raise();
    let (Some(embedding), Some(limit)) = (query_embedding, limit_count) else {
        return TableIterator::empty();
    };
    let Some(anchor) = anchor else { return TableIterator::empty() };
    let filters = Filters { min_similarity, min_salience };
    let asked = Asked::new(&embedding, limit, filters, query_text);
    rows(asked.and_then(|asked| asked.in_slice(anchor, &policy)).or_raise())
}

#[pg_extern(stable, parallel_restricted)]
#[allow(clippy::type_complexity)] // the columns are the SQL signature
fn graph_search_global(
    query_embedding: Option<Array<f32>>,
    limit_count: default!(Option<i32>, 10),
    min_similarity: default!(Option<f32>, "NULL"),
    query_text: default!(Option<&str>, "NULL"),
) -> TableIterator<
    'static,
    (
        name!(rank, i32),
        name!(turn_id, Uuid),
        name!(similarity, f32),
        name!(session_id, String),
        name!(role, &'static str),
        name!(content, Option<String>),
        name!(phase, &'static str),
        name!(salience, f32),
        name!(trajectory_depth, i32),
        name!(trajectory_sibling_order, i32),
        name!(trajectory_homogeneity, f32),
        name!(trajectory_temporal, f32),
        name!(trajectory_complexity, f32),
        name!(created_at, i64),
        name!(provenance, JsonbText),
    ),
> {
    let (Some(embedding), Some(limit)) = (query_embedding, limit_count) else {
        return TableIterator::empty();
    };
    let filters = Filters { min_similarity, min_salience: None };
    let asked = Asked::new(&embedding, limit, filters, query_text);
    rows(asked.and_then(Asked::anywhere).or_raise())
}

// The bodies of responses, with a provenance also where nothing was found. Declared in
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
    query_text: Option<&str>,
) -> Option<JsonText> {
    let policy = Policy::required(policy).or_raise();
    let filters = Filters { min_similarity, min_salience };
    let asked = Asked::new(&query_embedding?, limit_count?, filters, query_text).or_raise();
    let answer = asked.in_slice(anchor?, &policy).or_raise();
    Some(JsonText(json_text(&answer)))
}

#[pg_extern(sql = false)]
fn search_global_body(
    query_embedding: Option<Array<f32>>,
    limit_count: Option<i32>,
    min_similarity: Option<f32>,
    query_text: Option<&str>,
) -> Option<JsonText> {
    let filters = Filters { min_similarity, min_salience: None };
    let asked = Asked::new(&query_embedding?, limit_count?, filters, query_text).or_raise();
    Some(JsonText(json_text(&asked.anywhere().or_raise())))
}

/// What somebody asks.
pub struct Asked {
    embedding: Vec<Option<f32>>,
    limit: u32,
    filters: Filters,
    text: Option<String>,
    begun: Instant,
}

/// What somebody asks, of a graph's embeddings.
struct Search {
    asked: Asked,
    query: QueryEmbedding,
    id: uuid::Uuid,
}

impl Asked {
    /// A question, checked as far as it can be without a graph.
    pub fn new(
        embedding: &Array<f32>,
        limit: i32,
        filters: Filters,
        text: Option<&str>,
    ) -> Result<Self, SqlError> {
        let begun = Instant::now();
        let embedding = elements(embedding)?;
        let bad = |code, message: String| Err(SqlError::new(code, message).detail("INVALID_QUERY"));
        for (name, least) in
            [("min_similarity", filters.min_similarity), ("min_salience", filters.min_salience)]
        {
            if let Some(least) = least.filter(|least| !least.is_finite()) {
                let message = format!("{name} must be a finite number, not {least}");
                return bad(PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE, message);
            }
        }
        if text.is_some_and(|text| text.len() > QUERY_TEXT_MAX_BYTES) {
            let message = format!("query_text is longer than {QUERY_TEXT_MAX_BYTES} bytes");
            return bad(PgSqlErrorCode::ERRCODE_PROGRAM_LIMIT_EXCEEDED, message);
        }
        let (limit, text) = (checked_limit(limit)?, text.map(str::to_owned));
        Ok(Asked { embedding, limit, filters, text, begun })
    }

    /// The answer within the slice at an anchor.
    pub fn in_slice(self, anchor: Uuid, policy: &SlicePolicy) -> Result<Answer, SqlError> {
        let taken = TakenSlice::new(anchor, policy)?;
        let graph = taken.graph();
        let column = graph.embedding()?;
        let query = column.query(&self.embedding)?;
        let search = Search { query, id: random_uuid()?, asked: self };
        let searcher = Searcher::new(graph, taken.caller());
        let turns: Vec<&Turn> = taken.turns().collect();
        let ranking = Ranking::new(search.asked.limit, search.asked.filters);
        let ranking = searcher.rank(&column, &turns, &search.query, ranking)?;
        let shortfall = ranking.shortfall();
        let hits = ranking.into_hits();
        let contents = searcher.contents(&ids(&hits))?;
        let found = turns.iter().map(|turn| (turn.id, (*turn).clone())).collect();
        let export = taken.export(policy)?;
        let slice = SliceInfo::new(&export);
        let uncommitted = export.admissibility_token.is_none();
        let keys = signing_keys(graph, uncommitted)?;
        Ok(search.answer(hits, found, contents, slice, shortfall, keys))
    }

    /// The answer over the whole graph: never admissible.
    pub fn anywhere(self) -> Result<Answer, SqlError> {
        let graph = Graph::current()?;
        let caller = Caller::current(&graph);
        let column = graph.embedding()?;
        let search =
            Search { query: column.query(&self.embedding)?, id: random_uuid()?, asked: self };
        let searcher = Searcher::new(&graph, &caller);
        let Asked { limit, filters, .. } = search.asked;
        let ranking = Ranking::new(limit, filters);
        let hits = searcher.nearest(&column, &search.query, limit, ranking)?;
        let ids = ids(&hits);
        let contents = searcher.contents(&ids)?;
        let mut turns = HashMap::with_capacity(ids.len());
        with_policy_hint(caller.rls, || {
            PgStore::new(&graph, &caller).turns(&ids, &mut |turn| {
                turns.insert(turn.id, turn);
                ControlFlow::Continue(())
            })
        })?;
        let uncommitted = caller.circumstances(&graph)?.uncommitted;
        let keys = signing_keys(&graph, uncommitted)?;
        Ok(search.answer(hits, turns, contents, None, false, keys))
    }
}

impl Search {
    fn answer(
        self,
        hits: Vec<Hit>,
        mut turns: HashMap<TurnId, Turn>,
        mut contents: HashMap<TurnId, String>,
        slice: Option<SliceInfo>,
        admissibility_shortfall: bool,
        keys: Option<Rc<SigningKeys>>,
    ) -> Answer {
        let Asked { limit, filters, text, begun, .. } = self.asked;
        let mut provenance = Provenance {
            query_id: self.id,
            query_text: text,
            timestamp: iso_utc(statement_time()),
            slice,
            retrieved_turn_ids: ids(&hits),
            query_embedding_hash: self.query.hash(),
            result_hash: result_hash(&hits),
            limit_requested: limit,
            admissibility_shortfall,
            filters,
            elapsed_ms: (begun.elapsed().as_secs_f64() * 1e6).round() / 1e3,
            mac: None,
        };
        if let Some(keys) = keys {
            provenance.sign(&keys);
        }
        let found = hits.iter().filter_map(|hit| {
            let turn = turns.remove(&hit.id)?;
            Some(SearchResult {
                turn,
                similarity: hit.similarity,
                content: contents.remove(&hit.id),
            })
        });
        Answer { results: found.collect(), provenance }
    }
}

/// The keys that sign, unless the transaction has changed the graph itself.
fn signing_keys(graph: &Graph, uncommitted: bool) -> Result<Option<Rc<SigningKeys>>, SqlError> {
    if uncommitted {
        return Ok(None);
    }
    Keys::load(graph.name.clone())?.active().map(Some)
}

fn ids(hits: &[Hit]) -> Vec<TurnId> {
    hits.iter().map(|hit| hit.id).collect()
}

fn rows(answer: Answer) -> TableIterator<'static, FoundRow> {
    let provenance = answer.provenance.to_json();
    TableIterator::new(answer.results.into_iter().enumerate().map(move |(index, found)| {
        let SearchResult { turn, similarity, content } = found;
        (
            index as i32 + 1,
            to_sql_uuid(turn.id),
            similarity,
            turn.session_id,
            turn.role.name(),
            content,
            turn.phase.name(),
            turn.salience,
            turn.trajectory_depth as i32,
            turn.trajectory_sibling_order as i32,
            turn.trajectory_homogeneity,
            turn.trajectory_temporal,
            turn.trajectory_complexity,
            turn.created_at,
            JsonbText(provenance.clone()),
        )
    }))
}
