//! Searches: a question asked of a slice or of the whole graph, and the signed record of it.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::ControlFlow;
use std::rc::Rc;
use std::time::Instant;

use kernel::graph::turn::{Turn, TurnId};
use kernel::policy::SlicePolicy;
use kernel::policy::needs::Needs;
use kernel::retrieval::fusion::{Asked, Candidate, Found, MIN_LIST, found_hash, strongest};
use kernel::retrieval::provenance::{Provenance, SliceInfo, iso_utc};
use kernel::retrieval::ranking::{Filters, Hit, MAX_LIMIT, Ranking, result_hash};
use kernel::retrieval::search::{Answer, SearchFilter, SearchResult};
use kernel::retrieval::similarity::QueryEmbedding;
use kernel::slicing::slicer::SliceError;
use kernel::slicing::store::GraphStore;
use kernel::trust::attestation::Status;
use kernel::trust::keys::SigningKeys;
use pgrx::{PgLogLevel, PgSqlErrorCode};

use super::reader::GraphReader;
use super::slices::ReadSlice;
use super::verify::{not_admissible, verdict_of_export};
use crate::pg::access::search::{MAX_CONTENTS_BYTES, Sought, random_uuid, statement_time};
use crate::pg::error::{SqlError, Word};

/// The longest text that is sought, in bytes.
const MAX_QUERY_TEXT_BYTES: usize = 64 * 1024;

/// Refuses a text of more bytes than a search takes.
///
/// # Errors
/// 54000 for one.
pub(super) fn require_short(name: &str, text: Option<&str>) -> Result<(), SqlError> {
    if text.is_none_or(|text| text.len() <= MAX_QUERY_TEXT_BYTES) {
        return Ok(());
    }
    let message = format!("{name} is longer than {MAX_QUERY_TEXT_BYTES} bytes");
    let code = PgSqlErrorCode::ERRCODE_PROGRAM_LIMIT_EXCEEDED;
    Err(SqlError::new(code, message).word(Word::InvalidQuery))
}

/// A question, checked as far as it can be without a graph.
pub struct Question {
    embedding: Option<Vec<Option<f32>>>,
    text: Option<String>,
    limit: u32,
    sought: Sought,
    begun: Instant,
}

/// What a search of the whole graph has found, and the embedding that it was asked by.
pub struct Hits {
    /// The turns, the best first.
    pub found: Vec<Found>,
    query: Option<QueryEmbedding>,
}

/// Turns of a slice in order, with the embedding that they were asked by.
struct Ranked {
    hits: Vec<Hit>,
    shortfall: bool,
    query: Option<QueryEmbedding>,
}

impl Question {
    /// A question by its embedding, by its text or by both, about turns that are valid when the statement begins. In a
    /// slice the text is only recorded where there is an embedding.
    ///
    /// # Errors
    /// 22023 and 54000 for what no graph could answer.
    pub fn new(
        embedding: Option<Vec<Option<f32>>>,
        text: Option<&str>,
        limit: i32,
        filter: SearchFilter,
    ) -> Result<Self, SqlError> {
        let begun = Instant::now();
        let bad = |message: String| {
            let code = PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE;
            SqlError::new(code, message).word(Word::InvalidQuery)
        };
        let Filters { min_similarity, min_salience } = filter.least;
        for (name, least) in [("min_similarity", min_similarity), ("min_salience", min_salience)] {
            if let Some(least) = least.filter(|least| !least.is_finite()) {
                return Err(bad(format!("{name} must be a finite number, not {least}")));
            }
        }
        require_short("query_text", text)?;
        if embedding.is_none() && text.is_none() {
            let error = bad("a search needs query_embedding, query_text or both".to_owned());
            return Err(error
                .hint("Give the question's embedding, by the model of the turns, or its words."));
        }
        let (limit, text) = (checked_limit(limit)?, text.map(str::to_owned));
        let sought = Sought { filter, at: statement_time() };
        Ok(Question { embedding, text, limit, sought, begun })
    }

    /// The same about turns that were valid at this moment, in microseconds since 1970.
    pub fn at(self, at: i64) -> Self {
        Question { sought: Sought { at, ..self.sought }, ..self }
    }

    /// The answer within the slice at an anchor.
    ///
    /// # Errors
    /// As for the slice, and 22023, 42703 where the slice cannot be searched.
    pub fn in_slice(self, anchor: TurnId, policy: &SlicePolicy) -> Result<Answer, SqlError> {
        let taken = ReadSlice::at(anchor, policy)?;
        let turns: Vec<&Turn> = taken.turns().collect();
        let ranked = self.ranked(&taken.reader, &turns, &[])?;
        let export = taken.export()?;
        let keys = signing_keys(&taken.reader, export.admissibility_token.is_some())?;
        self.answer(&taken.reader, &turns, ranked, SliceInfo::new(&export), keys)
    }

    /// The answer within a slice that was exported, as it is now: a turn that is missing, or hidden from the caller, is
    /// not found, and makes a shortfall, as it may have been the best.
    ///
    /// # Errors
    /// 22023 where the export does not verify; 22023, 42703 where the slice cannot be searched; 21000 where a turn of
    /// it is stored more than once.
    pub fn in_export(self, export: &str) -> Result<Answer, SqlError> {
        let reader = GraphReader::current()?;
        let verdict = verdict_of_export(export)?;
        let export = match verdict.valid() {
            Some(document) => &document.export,
            None => return Err(not_admissible(&verdict)),
        };
        let mut there = HashSet::with_capacity(export.turns.len());
        let ids: Vec<TurnId> = export.turns.iter().map(|turn| turn.id).collect();
        let mut twice = None;
        reader.ask(Needs::default(), |store| {
            store.turns(&ids, &mut |(turn, _)| {
                twice = twice.or((!there.insert(turn.id)).then_some(turn.id));
                ControlFlow::Continue(())
            })
        })?;
        if let Some(id) = twice {
            return Err(SliceError::<SqlError>::DuplicateTurn(id).into());
        }
        let (turns, gone): (Vec<&Turn>, Vec<&Turn>) =
            export.turns.iter().partition(|turn| there.contains(&turn.id));
        let mut ranked = self.ranked(&reader, &turns, &gone)?;
        let searcher = reader.circumstances()?;
        // What is hidden from who searches decides what is found, even where the export hides nothing.
        let is_of_searcher = export
            .attestation
            .as_ref()
            .is_some_and(|claim| claim.rls && claim.role == searcher.role);
        ranked.shortfall |= searcher.rls && !is_of_searcher;
        let keys = signing_keys(&reader, searcher.status == Status::Attested)?;
        self.answer(&reader, &turns, ranked, SliceInfo::of(export), keys)
    }

    /// Ranks the turns of a slice: by the embedding where one was given, else by words. Those that are gone could have
    /// been found.
    fn ranked(
        &self,
        reader: &GraphReader,
        turns: &[&Turn],
        gone: &[&Turn],
    ) -> Result<Ranked, SqlError> {
        let (graph, searcher) = (reader.graph(), reader.searcher());
        let mut ranking = Ranking::new(self.limit, self.sought.filter.least);
        gone.iter().for_each(|turn| ranking.miss(turn.salience));
        let (ranking, query) = match (&self.embedding, &self.text) {
            (None, Some(text)) => {
                let column = graph.words()?.ok_or_else(|| graph.no_words())?;
                self.check_similarity_is_asked(false)?;
                (searcher.rank_by_words(&column, text, turns, &self.sought, ranking)?, None)
            }
            (embedding, _) => {
                let column = graph.embedding()?;
                let query = column.query(embedding.as_deref().unwrap_or_default())?;
                let ranking = searcher.rank(&column, turns, &query, &self.sought, ranking)?;
                (ranking, Some(query))
            }
        };
        Ok(Ranked { shortfall: ranking.shortfall(), hits: ranking.into_hits(), query })
    }

    /// The answer that a ranking of turns of a slice is: texts, which are not read by rights that are newer than they
    /// are.
    fn answer(
        self,
        reader: &GraphReader,
        turns: &[&Turn],
        ranked: Ranked,
        slice: Option<SliceInfo>,
        keys: Option<Rc<SigningKeys>>,
    ) -> Result<Answer, SqlError> {
        let Ranked { mut hits, shortfall, query } = ranked;
        let ids: Vec<TurnId> = hits.iter().map(|hit| hit.id).collect();
        let (mut contents, left_out) = reader.searcher().contents(&ids)?;
        reader.check_settled()?;
        hits.retain(|hit| !left_out.contains(&hit.id));
        notice_too_long(ids.iter().filter(|id| left_out.contains(id)));
        let ids: Vec<TurnId> = hits.iter().map(|hit| hit.id).collect();
        let by_id: HashMap<TurnId, &Turn> = turns.iter().map(|turn| (turn.id, *turn)).collect();
        let score = |score: f32, asked: bool| asked.then_some(score);
        let results = hits.iter().filter_map(|hit| {
            Some(SearchResult {
                turn: (*by_id.get(&hit.id)?).clone(),
                strength: None,
                similarity: score(hit.similarity, query.is_some()),
                words: score(hit.similarity, query.is_none()),
                content: contents.remove(&hit.id),
            })
        });
        let results: Vec<SearchResult> = results.collect();
        let provenance = Provenance {
            slice,
            result_hash: result_hash(&hits),
            admissibility_shortfall: shortfall || !left_out.is_empty(),
            ..self.record(query.as_ref(), ids)?
        };
        Ok(Answer { results, provenance: signed(provenance, keys) })
    }

    /// Whether embeddings are compared where the filter has a least similarity.
    fn check_similarity_is_asked(&self, by_embedding: bool) -> Result<(), SqlError> {
        if by_embedding || self.sought.filter.least.min_similarity.is_none() {
            return Ok(());
        }
        let code = PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE;
        Err(SqlError::new(code, "min_similarity needs query_embedding and embeddings")
            .word(Word::InvalidQuery)
            .hint("Leave min_similarity out, or give the question's embedding."))
    }

    /// The turns of the whole graph that fit best. A graph without embeddings is searched by words alone, and the other
    /// way round, where both are given.
    ///
    /// # Errors
    /// 22023, 42703 where the graph cannot be searched; else as any reading.
    pub fn hits(&self, reader: &GraphReader) -> Result<Hits, SqlError> {
        let (graph, searcher, sought) = (reader.graph(), reader.searcher(), &self.sought);
        let by_words = match &self.text {
            Some(text) => graph.words()?.map(|column| (column, text)),
            None => None,
        };
        let by_embedding = match &self.embedding {
            Some(embedding) => match graph.embedding() {
                Ok(column) => Some((column.query(embedding)?, column)),
                Err(_) if by_words.is_some() && !graph.names_embedding() => None,
                Err(error) => return Err(error),
            },
            None => None,
        };
        if by_embedding.is_none() && by_words.is_none() {
            return Err(graph.no_words());
        }
        let least = sought.filter.least.min_similarity;
        self.check_similarity_is_asked(by_embedding.is_some())?;
        let asked = Asked { embedding: by_embedding.is_some(), words: by_words.is_some() };
        let list = self.limit.max(MIN_LIST);
        let mut candidates: BTreeMap<TurnId, Candidate> = BTreeMap::new();
        let none = |id| Candidate { id, similarity: None, words: 0.0 };
        if let Some((query, column)) = &by_embedding {
            for hit in searcher.nearest(column, query, list, sought)? {
                let similarity = Some(hit.similarity);
                let candidate = Candidate { similarity, ..none(hit.id) };
                if candidates.insert(hit.id, candidate).is_some() {
                    return Err(SliceError::<SqlError>::DuplicateTurn(hit.id).into());
                }
            }
        }
        if let Some((column, text)) = &by_words {
            let nearest: HashSet<TurnId> = candidates.keys().copied().collect();
            let matches = searcher.words(column, text, list, &nearest, sought)?;
            for (id, words) in &matches.others {
                candidates.entry(*id).and_modify(|turn| turn.words = *words);
            }
            let others = matches.best.iter().filter(|hit| !candidates.contains_key(&hit.id));
            let others: Vec<Candidate> =
                others.map(|hit| Candidate { words: hit.score, ..none(hit.id) }).collect();
            for turn in &others {
                if candidates.insert(turn.id, *turn).is_some() {
                    return Err(SliceError::<SqlError>::DuplicateTurn(turn.id).into());
                }
            }
            if let Some((query, column)) = &by_embedding {
                let ids: Vec<TurnId> = others.iter().map(|turn| turn.id).collect();
                for (id, similarity) in searcher.similarities(column, &ids, query)? {
                    candidates.entry(id).and_modify(|turn| turn.similarity = similarity);
                }
            }
        }
        let mut candidates: Vec<Candidate> = candidates.into_values().collect();
        if let Some(least) = least {
            candidates.retain(|turn| turn.similarity.is_some_and(|similarity| similarity >= least));
        }
        let found = strongest(&candidates, asked, self.limit);
        Ok(Hits { found, query: by_embedding.map(|(query, _)| query) })
    }

    /// The answer over the whole graph: never admissible.
    ///
    /// # Errors
    /// As [`Question::hits`].
    pub fn in_graph(self) -> Result<Answer, SqlError> {
        let reader = GraphReader::current()?;
        let Hits { mut found, query } = self.hits(&reader)?;
        let ids: Vec<TurnId> = found.iter().map(|turn| turn.id).collect();
        let (mut contents, left_out) = reader.searcher().contents(&ids)?;
        found.retain(|turn| !left_out.contains(&turn.id));
        notice_too_long(ids.iter().filter(|id| left_out.contains(id)));
        let ids: Vec<TurnId> = found.iter().map(|turn| turn.id).collect();
        let mut turns = HashMap::with_capacity(ids.len());
        reader.ask(Needs::default(), |store| {
            store.turns(&ids, &mut |(turn, _)| {
                turns.insert(turn.id, turn);
                ControlFlow::Continue(())
            })
        })?;
        reader.check_settled()?;
        let keys = signing_keys(&reader, reader.circumstances()?.status == Status::Attested)?;
        let results = found.iter().filter_map(|hit| {
            Some(SearchResult {
                turn: turns.remove(&hit.id)?,
                strength: Some(hit.strength),
                similarity: hit.similarity,
                words: hit.words,
                content: contents.remove(&hit.id),
            })
        });
        let results = results.collect();
        let provenance = Provenance {
            result_hash: found_hash(&found),
            admissibility_shortfall: !left_out.is_empty(),
            ..self.record(query.as_ref(), ids)?
        };
        Ok(Answer { results, provenance: signed(provenance, keys) })
    }

    /// The record of a search of the whole graph that has found these turns, without their hash.
    fn record(
        self,
        query: Option<&QueryEmbedding>,
        found: Vec<TurnId>,
    ) -> Result<Provenance, SqlError> {
        Ok(Provenance {
            query_id: random_uuid()?,
            query_text: self.text,
            timestamp: iso_utc(self.sought.at),
            slice: None,
            retrieved_turn_ids: found,
            query_embedding_hash: query.map(QueryEmbedding::hash),
            result_hash: String::new(),
            limit_requested: self.limit,
            admissibility_shortfall: false,
            filter: self.sought.filter,
            elapsed_ms: (self.begun.elapsed().as_secs_f64() * 1e6).round() / 1e3,
            mac: None,
        })
    }
}

/// How many turns that are left out are named.
const MAX_NAMED: usize = 10;

/// Says which turns are left out of what was found, as their texts are too long.
pub fn notice_too_long<'a>(left_out: impl Iterator<Item = &'a TurnId>) {
    let mut ids: Vec<String> = left_out.map(TurnId::to_string).collect();
    let turns = ids.len();
    if turns == 0 {
        return;
    }
    ids.truncate(MAX_NAMED);
    let more = if turns > MAX_NAMED { " and others" } else { "" };
    let message = format!(
        "{turns} turns are left out, as contents and payloads of more than {MAX_CONTENTS_BYTES} bytes are not \
         returned: {}{more}",
        ids.join(", ")
    );
    SqlError::new(PgSqlErrorCode::ERRCODE_SUCCESSFUL_COMPLETION, message)
        .word(Word::TurnLeftOut)
        .hint("Ask for less at a time, and look at the longest of these turns.")
        .report(PgLogLevel::NOTICE);
}

fn signed(mut provenance: Provenance, keys: Option<Rc<SigningKeys>>) -> Provenance {
    if let Some(keys) = keys {
        provenance.sign(&keys);
    }
    provenance
}

/// The filter that a JSON object says.
///
/// # Errors
/// 22023 when it has other keys or values.
pub fn search_filter(json: &str) -> Result<SearchFilter, SqlError> {
    json.parse().map_err(invalid_filter)
}

/// The error for a filter that cannot be used, and why.
pub fn invalid_filter(why: String) -> SqlError {
    SqlError::new(PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE, why)
        .word(Word::InvalidFilter)
        .hint(
            "Keys are owner, sessions, roles, from, to, min_salience and min_similarity: \
             '{\"owner\": \"alice\", \"roles\": [\"user\"]}'; '{}' finds everybody's turns.",
        )
}

/// The options of a search within a slice that a JSON object says.
///
/// # Errors
/// 22023 when it has other keys or values.
pub fn search_options(json: &str) -> Result<SearchFilter, SqlError> {
    SearchFilter::of_options(json).map_err(|why: String| {
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

/// The keys that sign, where what was read is attested.
fn signing_keys(
    reader: &GraphReader,
    is_attested: bool,
) -> Result<Option<Rc<SigningKeys>>, SqlError> {
    if !is_attested {
        reader.notice_unattested();
        return Ok(None);
    }
    reader.keys()?.active().map(Some)
}
