//! Searching the bound graph by embeddings and by time.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::ControlFlow;

use kernel::graph::turn::{Turn, TurnId, may_be_hash_of_name, unix_seconds};
use kernel::json::quoted;
use kernel::retrieval::ranking::{Hit, Ranking};
use kernel::retrieval::similarity::{OtherDimensions, QueryEmbedding};
use pgrx::{PgSqlErrorCode, pg_sys};
use uuid::Uuid;

use crate::pg::access::caller::Caller;
use crate::pg::error::{SqlError, Word, with_hints};
use crate::pg::query::{
    Argument, ColumnType, POSTGRES_EPOCH, Planning, Row, Statement, Template, query,
};
use crate::pg::tables::embedding::{EmbeddingColumn, Indexed};
use crate::pg::tables::graph::{Graph, VALID_UNTIL};

/// The most text that a search returns, in bytes.
pub const MAX_CONTENTS_BYTES: usize = 64 * 1024 * 1024;

const EMBEDDINGS: Template = Template::new(
    include_str!("../../../sql/queries/embeddings.sql"),
    &[ColumnType::Id, ColumnType::Floats],
    Planning::Probing,
);

const ALL_EMBEDDINGS: Template = Template::new(
    include_str!("../../../sql/queries/all_embeddings.sql"),
    &[ColumnType::Id, ColumnType::Floats],
    Planning::EachTime,
);

const NEAREST: Template = Template::new(
    include_str!("../../../sql/queries/nearest.sql"),
    &[ColumnType::Id, ColumnType::Floats],
    Planning::EachTime,
);

const CONTENTS: Template = Template::new(
    include_str!("../../../sql/queries/contents.sql"),
    &[ColumnType::Id, ColumnType::Text, ColumnType::Integer],
    Planning::Probing,
);

const LATEST: Template = Template::new(
    include_str!("../../../sql/queries/latest.sql"),
    &[ColumnType::Id, ColumnType::Time],
    Planning::EachTime,
);

const UNDATED: Template = Template::new(
    include_str!("../../../sql/queries/undated.sql"),
    &[ColumnType::Id, ColumnType::Time],
    Planning::EachTime,
);

/// Whether `$1` is the hash that stands for a session's name of more than 4 KiB. A cast of a text whose backslashes are
/// doubled gives its bytes, and fails for none. No literal has a backslash: what it means is a setting's matter.
const LONG_SESSION: &str = "CASE WHEN pg_catalog.octet_length({session}) OPERATOR(pg_catalog.>) 4096
    THEN pg_catalog.concat('sha256:', pg_catalog.encode(pg_catalog.sha256(
             pg_catalog.replace({session}, pg_catalog.chr(92), pg_catalog.repeat(pg_catalog.chr(92), 2))
                 ::pg_catalog.bytea), 'hex'))
         OPERATOR(pg_catalog.=) $1
    ELSE false END";

/// Which turns a search finds, of those that it looks at.
pub struct Sought {
    /// Whose they are; everybody's where it is left out.
    pub owner: Option<String>,
    /// When they are valid, in microseconds since 1970.
    pub at: i64,
}

/// A turn with its time as Unix seconds.
pub type DatedTurn = (TurnId, i64);

/// The bound graph, searched on the caller's snapshot with the caller's rights.
pub struct Searcher<'a> {
    graph: &'a Graph,
    caller: &'a Caller,
}

/// The error for contents of more than [`MAX_CONTENTS_BYTES`].
pub fn contents_too_long() -> SqlError {
    SqlError::new(
        PgSqlErrorCode::ERRCODE_PROGRAM_LIMIT_EXCEEDED,
        format!("contents of the turns found are longer than {MAX_CONTENTS_BYTES} bytes"),
    )
    .word(Word::SearchTooLarge)
    .hint("Use a smaller max_nodes or max_tokens.")
}

impl<'a> Searcher<'a> {
    /// A searcher of this graph for this caller.
    pub fn new(graph: &'a Graph, caller: &'a Caller) -> Self {
        Searcher { graph, caller }
    }

    /// Ranks these turns, every one of them that is sought, by their exact similarity.
    ///
    /// # Errors
    /// 22023 when an embedding has other dimensions than the query, or the owner is not a uuid where all owners are;
    /// 42703 when the table has no owners.
    pub fn rank(
        &self,
        column: &EmbeddingColumn,
        turns: &[&Turn],
        query: &QueryEmbedding,
        sought: &Sought,
        mut ranking: Ranking,
    ) -> Result<Ranking, SqlError> {
        let ids: Vec<TurnId> = turns.iter().map(|turn| turn.id).collect();
        let narrowing = self.narrowing(sought, 1)?;
        let names =
            [("embedding", column.expression.as_str()), ("is_sought", &narrowing.condition)];
        let statement = self.graph.statement(&EMBEDDINGS, &names);
        let arguments: Vec<_> =
            [Argument::Ids(&ids)].into_iter().chain(narrowing.arguments()).collect();
        let mut similarities = HashMap::with_capacity(ids.len());
        self.compare(&statement, &arguments, query, |id, similarity| {
            similarities.insert(id, similarity);
        })?;
        for turn in turns {
            match similarities.get(&turn.id) {
                // A turn that is not sought could not have been found, with an embedding or without.
                None if narrowing.is_any() => {}
                similarity => {
                    ranking.offer(turn.id, turn.salience, similarity.copied().flatten());
                }
            }
        }
        Ok(ranking)
    }

    /// The condition on a turn that it is sought, after so many parameters of a statement.
    fn narrowing<'s>(
        &self,
        sought: &'s Sought,
        parameters: usize,
    ) -> Result<Narrowing<'s>, SqlError> {
        let mut narrowing = Narrowing::default();
        let mut next = parameters;
        let mut parameter = || {
            next += 1;
            format!("${next}")
        };
        let mut conditions = Vec::new();
        if let Some(owner) = &sought.owner {
            let (own, base_type) = self.graph.owner()?;
            let is_uuid = base_type == pg_sys::UUIDOID;
            let given = if is_uuid { owner_as_uuid(owner)? } else { Cow::Borrowed(owner.as_str()) };
            let cast = if is_uuid { "::pg_catalog.uuid" } else { "" };
            conditions.push(format!("{own} OPERATOR(pg_catalog.=) {}{cast}", parameter()));
            narrowing.owner = Some(given);
        }
        if let Some((until, base_type)) = self.graph.stored_value(VALID_UNTIL) {
            let at = match base_type {
                // Without a cast that depends on the session's time zone.
                pg_sys::TIMESTAMPOID => format!("pg_catalog.timezone('UTC', {})", parameter()),
                _ => parameter(),
            };
            conditions.push(format!("({until} IS NULL OR {until} OPERATOR(pg_catalog.>=) {at})"));
            narrowing.at = Some(sought.at);
        }
        if !conditions.is_empty() {
            narrowing.condition = conditions.join(" AND ");
        }
        Ok(narrowing)
    }

    /// The turns of the whole graph that are most similar, as far as the column's index finds them; of one owner all
    /// are compared: an approximate index looks at the nearest turns of all, and finds few or none of that owner's.
    ///
    /// # Errors
    /// As [`Searcher::rank`].
    pub fn nearest(
        &self,
        column: &EmbeddingColumn,
        query: &QueryEmbedding,
        limit: u32,
        sought: &Sought,
        mut ranking: Ranking,
    ) -> Result<Vec<Hit>, SqlError> {
        let embedding = ("embedding", column.expression.as_str());
        let indexed = column.indexed.as_ref().filter(|_| sought.owner.is_none());
        let parameters = if indexed.is_some() { 2 } else { 0 };
        let narrowing = self.narrowing(sought, parameters)?;
        let is_sought = ("is_sought", narrowing.condition.as_str());
        let (statement, text) = match indexed {
            None => (self.graph.statement(&ALL_EMBEDDINGS, &[embedding, is_sought]), None),
            Some(Indexed { type_name, operator }) => {
                let names = [
                    embedding,
                    is_sought,
                    ("column", &column.column),
                    ("type", type_name),
                    ("operator", operator),
                ];
                (self.graph.statement(&NEAREST, &names), Some(vector_text(query)))
            }
        };
        let arguments = text
            .as_deref()
            .map(|text| [Argument::Text(Some(text)), Argument::Number(limit.into())]);
        let arguments: Vec<_> =
            arguments.into_iter().flatten().chain(narrowing.arguments()).collect();
        self.compare(&statement, &arguments, query, |id, similarity| {
            ranking.offer(id, 0.0, similarity);
        })?;
        Ok(ranking.into_hits())
    }

    /// Runs a statement whose columns are a turn's id and its embedding.
    fn compare(
        &self,
        statement: &Statement,
        arguments: &[Argument<'_>],
        query: &QueryEmbedding,
        mut sink: impl FnMut(TurnId, Option<f32>),
    ) -> Result<(), SqlError> {
        let mut odd = None;
        self.ask(statement, arguments, |row| {
            let Some(id) = row.id(0) else { return ControlFlow::Continue(()) };
            match row.floats(1, |stored| stored.map_or(Ok(None), |s| query.similarity(s))) {
                Ok(similarity) => {
                    sink(id, similarity);
                    ControlFlow::Continue(())
                }
                Err(dimensions) => {
                    odd = Some((id, dimensions));
                    ControlFlow::Break(())
                }
            }
        })?;
        match odd {
            None => Ok(()),
            Some((id, OtherDimensions { stored, query })) => Err(SqlError::new(
                PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
                format!(
                    "embedding of turn {id} has {stored} dimensions, the query embedding has {query}"
                ),
            )
            .word(Word::EmbeddingDimensions)
            .hint("Embed questions with the model that embedded the turns.")),
        }
    }

    /// The contents of these turns; no entry for one without a content.
    ///
    /// # Errors
    /// 54000 when they are longer than [`MAX_CONTENTS_BYTES`] together.
    pub fn contents(&self, ids: &[TurnId]) -> Result<HashMap<TurnId, String>, SqlError> {
        let mut contents = HashMap::with_capacity(ids.len());
        let mut left = Some(MAX_CONTENTS_BYTES);
        self.ask(&self.graph.statement(&CONTENTS, &[]), &[Argument::Ids(ids)], |row| {
            let bytes = row.i64(2).unwrap_or(0) as usize;
            left = left.and_then(|left| left.checked_sub(bytes));
            let text = left.and_then(|_| row.text(1, |text| text.map(str::to_owned)));
            contents.extend(row.id(0).zip(text));
            if left.is_some() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        if left.is_some() {
            return Ok(contents);
        }
        Err(contents_too_long().hint("Use a smaller limit_count."))
    }

    /// The latest turns, of a session where one is named: by time downwards, then by id. A session of this very name
    /// goes before one that the name is the hash of, for which no index serves.
    pub fn latest(&self, session: Option<&str>, limit: u32) -> Result<Vec<DatedTurn>, SqlError> {
        for (in_session, session) in self.session_conditions(session) {
            let turns = self.latest_where(&in_session, session.as_deref(), limit)?;
            if !turns.is_empty() {
                return Ok(turns);
            }
        }
        Ok(Vec::new())
    }

    fn latest_where(
        &self,
        in_session: &str,
        session: Option<&str>,
        limit: u32,
    ) -> Result<Vec<DatedTurn>, SqlError> {
        let mut turns = Vec::new();
        for template in [LATEST, UNDATED] {
            let left = limit as usize - turns.len();
            if left == 0 {
                break;
            }
            let statement = self.graph.statement(&template, &[("in_session", in_session)]);
            let arguments = [Argument::Text(session), Argument::Number(left as i64)];
            self.ask(&statement, &arguments, |row| {
                let created_at = row.time(1).map_or(0, unix_seconds);
                turns.extend(row.id(0).map(|id| (id, created_at)));
                ControlFlow::Continue(())
            })?;
        }
        Ok(turns)
    }

    /// Conditions on `$1`, tried one after the other, with the value of `$1`; none where no turn can have that session.
    fn session_conditions(&self, session: Option<&str>) -> Vec<(String, Option<String>)> {
        let Some(session) = session else { return vec![("$1 IS NULL".to_owned(), None)] };
        let Some((own, base_type)) = self.graph.stored_value("session_id") else {
            return Vec::new();
        };
        if base_type != pg_sys::UUIDOID {
            let mut conditions = vec![format!("{own} OPERATOR(pg_catalog.=) $1")];
            if may_be_hash_of_name(session) {
                conditions.push(LONG_SESSION.replace("{session}", &own));
            }
            let with_value = |condition| (condition, Some(session.to_owned()));
            return conditions.into_iter().map(with_value).collect();
        }
        // Only a uuid's own spelling names a session, as in a slice.
        Uuid::try_parse(session)
            .ok()
            .map(|id| id.hyphenated().to_string())
            .filter(|id| id == session)
            .map(|id| (format!("{own} OPERATOR(pg_catalog.=) ($1)::pg_catalog.uuid"), Some(id)))
            .into_iter()
            .collect()
    }

    fn ask(
        &self,
        statement: &Statement,
        arguments: &[Argument<'_>],
        sink: impl FnMut(Row) -> ControlFlow<()>,
    ) -> Result<(), SqlError> {
        self.caller.check_role()?;
        let expressions = self.graph.has_expressions();
        with_hints(self.caller.rls, expressions, || query(statement, arguments, sink));
        Ok(())
    }
}

/// A condition that narrows a search, and the values of its parameters.
struct Narrowing<'s> {
    condition: String,
    owner: Option<Cow<'s, str>>,
    at: Option<i64>,
}

impl Default for Narrowing<'_> {
    fn default() -> Self {
        Narrowing { condition: "true".to_owned(), owner: None, at: None }
    }
}

impl Narrowing<'_> {
    /// Whether there may be turns that are not sought.
    fn is_any(&self) -> bool {
        self.owner.is_some() || self.at.is_some()
    }

    fn arguments(&self) -> impl Iterator<Item = Argument<'_>> {
        let owner = self.owner.as_deref().map(|owner| Argument::Text(Some(owner)));
        owner.into_iter().chain(self.at.map(Argument::Time))
    }
}

/// An owner in a column of type uuid.
fn owner_as_uuid(owner: &str) -> Result<Cow<'_, str>, SqlError> {
    match Uuid::try_parse(owner) {
        Ok(id) => Ok(id.hyphenated().to_string().into()),
        Err(_) => Err(SqlError::new(
            PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
            format!("owner {} is not a uuid, as those of the turns table are", quoted(owner)),
        )
        .word(Word::InvalidOptions)
        .hint("Give the owner as the table has it: '{\"owner\": \"00000000-0000-0000-0000-000000000000\"}'.")),
    }
}

/// A query as pgvector reads it.
fn vector_text(query: &QueryEmbedding) -> String {
    let numbers: Vec<String> = query.values().iter().map(f32::to_string).collect();
    format!("[{}]", numbers.join(","))
}

/// A random UUID (version 4).
///
/// # Errors
/// 58000 when the system gives no random bytes.
pub fn random_uuid() -> Result<Uuid, SqlError> {
    let mut bytes = [0; 16];
    // SAFETY: the buffer has the length given.
    if unsafe { pg_sys::pg_strong_random(bytes.as_mut_ptr().cast(), bytes.len()) } {
        Ok(uuid::Builder::from_random_bytes(bytes).into_uuid())
    } else {
        Err(SqlError::new(PgSqlErrorCode::ERRCODE_SYSTEM_ERROR, "the system gave no random bytes"))
    }
}

/// When the statement began, in microseconds since 1970.
pub fn statement_time() -> i64 {
    // SAFETY: reads the session's state.
    unsafe { pg_sys::GetCurrentStatementStartTimestamp() + POSTGRES_EPOCH }
}
