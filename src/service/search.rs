//! Retrieval: a question asked of a slice or of the whole graph, and the signed record of it.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::rc::Rc;
use std::time::Instant;

use kernel::graph::turn::{Turn, TurnId};
use kernel::policy::SlicePolicy;
use kernel::policy::needs::Needs;
use kernel::retrieval::provenance::{Provenance, SliceInfo, iso_utc};
use kernel::retrieval::ranking::{Filters, Hit, MAX_LIMIT, Ranking, result_hash};
use kernel::retrieval::search::{Answer, SearchOptions, SearchResult};
use kernel::retrieval::similarity::QueryEmbedding;
use kernel::slicing::store::GraphStore;
use kernel::trust::keys::SigningKeys;
use pgrx::PgSqlErrorCode;

use super::reader::GraphReader;
use super::slices::ReadSlice;
use crate::pg::access::search::{Sought, random_uuid, statement_time};
use crate::pg::error::{SqlError, Word};

/// The longest question in words, in bytes.
const MAX_QUERY_TEXT_BYTES: usize = 64 * 1024;

/// A question, checked as far as it can be without a graph.
pub struct Question {
    embedding: Vec<Option<f32>>,
    limit: u32,
    filters: Filters,
    text: Option<String>,
    sought: Sought,
    begun: Instant,
}

impl Question {
    /// A question by its embedding, about turns that are valid when the statement begins; the text is only recorded.
    ///
    /// # Errors
    /// 22023 and 54000 for what no graph could answer.
    pub fn new(
        embedding: Vec<Option<f32>>,
        limit: i32,
        filters: Filters,
        text: Option<&str>,
        options: SearchOptions,
    ) -> Result<Self, SqlError> {
        let begun = Instant::now();
        let bad =
            |code, message: String| Err(SqlError::new(code, message).word(Word::InvalidQuery));
        for (name, least) in
            [("min_similarity", filters.min_similarity), ("min_salience", filters.min_salience)]
        {
            if let Some(least) = least.filter(|least| !least.is_finite()) {
                let message = format!("{name} must be a finite number, not {least}");
                return bad(PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE, message);
            }
        }
        if text.is_some_and(|text| text.len() > MAX_QUERY_TEXT_BYTES) {
            let message = format!("query_text is longer than {MAX_QUERY_TEXT_BYTES} bytes");
            return bad(PgSqlErrorCode::ERRCODE_PROGRAM_LIMIT_EXCEEDED, message);
        }
        let (limit, text) = (checked_limit(limit)?, text.map(str::to_owned));
        let sought = Sought { owner: options.owner, at: statement_time() };
        Ok(Question { embedding, limit, filters, text, sought, begun })
    }

    /// The same about turns that were valid at this moment, in microseconds since 1970.
    pub fn at(self, at: i64) -> Self {
        Question { sought: Sought { at, ..self.sought }, ..self }
    }

    /// The answer within the slice at an anchor.
    ///
    /// # Errors
    /// As for the slice, and 22023, 42703 where the embeddings cannot be searched.
    pub fn in_slice(self, anchor: TurnId, policy: &SlicePolicy) -> Result<Answer, SqlError> {
        let taken = ReadSlice::at(anchor, policy)?;
        let column = taken.reader.graph().embedding()?;
        let query = column.query(&self.embedding)?;
        let searcher = taken.reader.searcher();
        let turns: Vec<&Turn> = taken.turns().collect();
        let ranking = Ranking::new(self.limit, self.filters);
        let ranking = searcher.rank(&column, &turns, &query, &self.sought, ranking)?;
        let shortfall = ranking.shortfall();
        let hits = ranking.into_hits();
        let contents = searcher.contents(&ids(&hits))?;
        let found = turns.iter().map(|turn| (turn.id, (*turn).clone())).collect();
        let export = taken.export()?;
        let keys = signing_keys(&taken.reader, export.admissibility_token.is_none())?;
        let slice = SliceInfo::new(&export);
        self.answer(&query, &hits, found, contents, slice, shortfall, keys)
    }

    /// The answer over the whole graph: never admissible.
    ///
    /// # Errors
    /// 22023, 42703 where the embeddings cannot be searched; else as any reading.
    pub fn in_graph(self) -> Result<Answer, SqlError> {
        let reader = GraphReader::current()?;
        let column = reader.graph().embedding()?;
        let query = column.query(&self.embedding)?;
        let searcher = reader.searcher();
        let ranking = Ranking::new(self.limit, self.filters);
        let hits = searcher.nearest(&column, &query, self.limit, &self.sought, ranking)?;
        let ids = ids(&hits);
        let contents = searcher.contents(&ids)?;
        let mut turns = HashMap::with_capacity(ids.len());
        reader.ask(Needs::default(), |store| {
            store.turns(&ids, &mut |(turn, _)| {
                turns.insert(turn.id, turn);
                ControlFlow::Continue(())
            })
        })?;
        let keys = signing_keys(&reader, reader.circumstances()?.uncommitted)?;
        self.answer(&query, &hits, turns, contents, None, false, keys)
    }

    #[allow(clippy::too_many_arguments)] // the parts of a record
    fn answer(
        self,
        query: &QueryEmbedding,
        hits: &[Hit],
        mut turns: HashMap<TurnId, Turn>,
        mut contents: HashMap<TurnId, String>,
        slice: Option<SliceInfo>,
        admissibility_shortfall: bool,
        keys: Option<Rc<SigningKeys>>,
    ) -> Result<Answer, SqlError> {
        let mut provenance = Provenance {
            query_id: random_uuid()?,
            query_text: self.text,
            timestamp: iso_utc(self.sought.at),
            slice,
            retrieved_turn_ids: ids(hits),
            query_embedding_hash: query.hash(),
            result_hash: result_hash(hits),
            limit_requested: self.limit,
            admissibility_shortfall,
            filters: self.filters,
            owner: self.sought.owner,
            elapsed_ms: (self.begun.elapsed().as_secs_f64() * 1e6).round() / 1e3,
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
        Ok(Answer { results: found.collect(), provenance })
    }
}

/// The options of searches that a JSON object says.
///
/// # Errors
/// 22023 when it has other keys or values.
pub fn search_options(json: &str) -> Result<SearchOptions, SqlError> {
    json.parse().map_err(|why: String| {
        SqlError::new(PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE, why)
            .word(Word::InvalidOptions)
            .hint("Give options such as '{\"owner\": \"alice\"}'; without an owner '{}' finds everybody's turns.")
    })
}

/// A limit within its range.
///
/// # Errors
/// 22023.
pub fn checked_limit(limit: i32) -> Result<u32, SqlError> {
    match u32::try_from(limit) {
        Ok(limit @ 1..=MAX_LIMIT) => Ok(limit),
        _ => Err(SqlError::new(
            PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
            format!("limit_count must be 1 to {MAX_LIMIT}, not {limit}"),
        )
        .word(Word::InvalidLimit)),
    }
}

/// The keys that sign, unless the transaction has changed the graph itself.
fn signing_keys(
    reader: &GraphReader,
    uncommitted: bool,
) -> Result<Option<Rc<SigningKeys>>, SqlError> {
    if uncommitted {
        reader.notice_uncommitted();
        return Ok(None);
    }
    reader.keys()?.active().map(Some)
}

fn ids(hits: &[Hit]) -> Vec<TurnId> {
    hits.iter().map(|hit| hit.id).collect()
}
