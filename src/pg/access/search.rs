//! Searching the bound graph by embeddings and by time.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;

use kernel::graph::turn::{Role, Turn, TurnId, first_of_second, may_be_hash_of_name, unix_seconds};
use kernel::json::canonical::escaped_bytes;
use kernel::json::quoted;
use kernel::retrieval::ranking::{Filters, Hit, Ranking};
use kernel::retrieval::search::SearchFilter;
use kernel::retrieval::similarity::{OtherDimensions, QueryEmbedding};
use kernel::slicing::slicer::SliceError;
use pgrx::{PgSqlErrorCode, pg_sys};
use uuid::Uuid;

use crate::pg::access::caller::Caller;
use crate::pg::catalog::names::literal_of;
use crate::pg::error::{SqlError, Word, with_hints};
use crate::pg::query::{
    Argument, ColumnType, POSTGRES_EPOCH, Planning, Row, Statement, Template, query,
};
use crate::pg::tables::embedding::{EmbeddingColumn, Indexed};
use crate::pg::tables::graph::{Graph, OWNER, VALID_UNTIL};

/// The most text that a search returns, in bytes of JSON.
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

const TURNS: Template = Template::new(
    include_str!("../../../sql/queries/sought_turns.sql"),
    &[ColumnType::Id, ColumnType::Text],
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

/// Whether the name of a session, of more than 4 KiB or of bytes that are not UTF-8, has a hash that is `{names}`.
const HASHED_SESSION: &str =
    "CASE WHEN pg_catalog.octet_length({session}) OPERATOR(pg_catalog.>) 4096
           OR NOT graph_kernel.is_text({session})
    THEN graph_kernel.name_hash({session}) OPERATOR(pg_catalog.=) {names} ELSE false END";

/// The name of a session as it is read: its hash where it has more than 4 KiB, empty where there is none.
pub(super) const LONG_NAME: &str =
    "CASE WHEN pg_catalog.octet_length({session}) OPERATOR(pg_catalog.>) 4096
    THEN graph_kernel.name_hash({session}) ELSE COALESCE({session}, '') END";

/// The name by which a session's events are found: its hash also where its bytes are not UTF-8.
const FOUND_NAME: &str = "CASE WHEN pg_catalog.octet_length({session}) OPERATOR(pg_catalog.>) 4096
           OR NOT graph_kernel.is_text({session})
    THEN graph_kernel.name_hash({session}) ELSE COALESCE({session}, '') END";

/// Which turns a search finds, of those that it looks at.
pub struct Sought {
    /// What narrows it. Similarity and salience are the matter of a ranking in a slice, whose turns are known.
    pub filter: SearchFilter,
    /// When they are valid, in microseconds since 1970.
    pub at: i64,
}

/// A turn with its time as Unix seconds.
pub type DatedTurn = (TurnId, i64);

/// The bound graph, searched on the caller's snapshot with the caller's rights.
pub struct Searcher<'a> {
    pub(super) graph: &'a Graph,
    pub(super) caller: &'a Caller,
}

/// The error for contents of more than [`MAX_CONTENTS_BYTES`].
pub fn contents_too_long() -> SqlError {
    SqlError::new(
        PgSqlErrorCode::ERRCODE_PROGRAM_LIMIT_EXCEEDED,
        format!(
            "contents and payloads of the turns found are longer than {MAX_CONTENTS_BYTES} bytes as JSON"
        ),
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
    /// 42703 when the table has no owners; 21000 where a turn is stored more than once.
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
        let similarities = self.similarities_of(column, &ids, query, &narrowing, false)?;
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

    /// How similar these turns, which others were found with, are, of those that exist; `None` of one without an
    /// embedding, or with one of other dimensions.
    ///
    /// # Errors
    /// As [`Searcher::rank`].
    pub fn similarities(
        &self,
        column: &EmbeddingColumn,
        ids: &[TurnId],
        query: &QueryEmbedding,
    ) -> Result<HashMap<TurnId, Option<f32>>, SqlError> {
        self.similarities_of(column, ids, query, &Narrowing::default(), true)
    }

    fn similarities_of(
        &self,
        column: &EmbeddingColumn,
        ids: &[TurnId],
        query: &QueryEmbedding,
        narrowing: &Narrowing,
        may_all_differ: bool,
    ) -> Result<HashMap<TurnId, Option<f32>>, SqlError> {
        let condition = narrowing.condition();
        let names = [("embedding", column.expression.as_str()), ("is_sought", &condition)];
        let statement = self.graph.statement(&EMBEDDINGS, &names);
        let arguments: Vec<_> =
            [Argument::Ids(ids)].into_iter().chain(narrowing.arguments()).collect();
        let mut similarities = HashMap::with_capacity(ids.len());
        let mut twice = None;
        self.compare(&statement, &arguments, query, may_all_differ, |id, similarity| {
            twice = twice.or(similarities.insert(id, similarity).map(|_| id));
        })?;
        match twice {
            Some(id) => Err(SliceError::<SqlError>::DuplicateTurn(id).into()),
            None => Ok(similarities),
        }
    }

    /// The condition on a turn that it is sought, after so many parameters of a statement.
    pub(super) fn narrowing(
        &self,
        sought: &Sought,
        parameters: usize,
    ) -> Result<Narrowing, SqlError> {
        let mut narrowing = self.narrowing_by(&sought.filter, parameters)?;
        if let Some(time) = self.graph.stored_value(VALID_UNTIL) {
            let at = narrowing.moment(&time, sought.at.saturating_sub(POSTGRES_EPOCH));
            let (until, _) = time;
            narrowing.require(format!("({until} IS NULL OR {until} OPERATOR(pg_catalog.>=) {at})"));
        }
        Ok(narrowing)
    }

    /// As [`Searcher::narrowing`], whenever the turns are valid.
    fn narrowing_by(
        &self,
        filter: &SearchFilter,
        parameters: usize,
    ) -> Result<Narrowing, SqlError> {
        let mut narrowing = Narrowing::after(parameters);
        let SearchFilter { owner, sessions, roles, from, to, .. } = filter;
        if let Some(owner) = owner {
            let (own, base_type) = self.graph.owner()?;
            let is_uuid = base_type == pg_sys::UUIDOID;
            let given = if is_uuid { owner_as_uuid(owner)? } else { owner.clone() };
            let parameter = narrowing.parameter(Value::Text(given));
            narrowing.require(match is_uuid {
                true => format!("{own} OPERATOR(pg_catalog.=) {parameter}::pg_catalog.uuid"),
                false => self.is_text(OWNER, &own, &parameter),
            });
        }
        if let Some(sessions) = sessions {
            self.narrow_to_sessions(&mut narrowing, sessions);
        }
        if let Some(roles) = roles {
            narrowing.require(of_roles(&self.graph.turn_expression("role"), roles));
        }
        let time = self.graph.stored_value("created_at");
        if let Some(from) = from {
            // A turn without a time is one of 1970.
            let untimed = *from <= 0;
            narrowing.require_time(time.as_ref(), first_of_second(*from), ">=", untimed);
        }
        if let Some(to) = to {
            let untimed = *to >= 0;
            let after = to.checked_add(1).and_then(first_of_second);
            narrowing.require_time(time.as_ref(), after, "<", untimed);
        }
        Ok(narrowing)
    }

    /// Narrows to the turns of sessions of these names; one of no name is called ''.
    pub(super) fn narrow_to_sessions(&self, narrowing: &mut Narrowing, sessions: &[String]) {
        let is_unnamed = sessions.iter().any(String::is_empty);
        let Some((own, base_type)) = self.graph.stored_value("session_id") else {
            return narrowing.require(is_unnamed.to_string());
        };
        let mut conditions = Vec::new();
        if base_type == pg_sys::UUIDOID {
            let ids: Vec<String> = sessions.iter().filter_map(|name| own_uuid(name)).collect();
            let ids = narrowing.parameter(Value::Texts(ids));
            conditions
                .push(format!("{own} OPERATOR(pg_catalog.=) ANY (({ids})::pg_catalog.uuid[])"));
        } else {
            let is_hash = sessions.iter().any(|name| may_be_hash_of_name(name));
            let names = narrowing.parameter(Value::Texts(sessions.to_vec()));
            let names = format!("ANY ({names})");
            conditions.push(self.is_text("session_id", &own, &names));
            if is_hash {
                conditions
                    .push(HASHED_SESSION.replace("{session}", &own).replace("{names}", &names));
            }
        }
        if is_unnamed {
            conditions.push(format!("{own} IS NULL"));
        }
        narrowing.require(format!("({})", conditions.join(" OR ")));
    }

    /// As [`Searcher::narrowing`], for turns whose salience is not known.
    pub(super) fn narrowing_with_salience(
        &self,
        sought: &Sought,
        parameters: usize,
    ) -> Result<Narrowing, SqlError> {
        let mut narrowing = self.narrowing(sought, parameters)?;
        if let Some(least) = sought.filter.least.min_salience {
            self.narrow_to_salience(&mut narrowing, least);
        }
        Ok(narrowing)
    }

    /// Hands each turn that a filter finds, whether or not it is valid still, to `put`, with the row, whose second
    /// column is the name by which the events of its session are found.
    ///
    /// # Errors
    /// As [`Searcher::rank`].
    pub fn turns(
        &self,
        filter: &SearchFilter,
        mut put: impl FnMut(TurnId, &Row) -> ControlFlow<()>,
    ) -> Result<(), SqlError> {
        let mut narrowing = self.narrowing_by(filter, 0)?;
        if let Some(least) = filter.least.min_salience {
            self.narrow_to_salience(&mut narrowing, least);
        }
        let condition = narrowing.condition();
        let name = FOUND_NAME.replace("{session}", &self.graph.turn_expression("session_id"));
        let names = [("name", name.as_str()), ("is_sought", &condition)];
        let statement = self.graph.statement(&TURNS, &names);
        let arguments: Vec<_> = narrowing.arguments().collect();
        self.ask(&statement, &arguments, |row| match row.id(0) {
            Some(id) => put(id, &row),
            None => ControlFlow::Continue(()),
        })
    }

    /// Narrows to turns that have at least this salience, as it is read.
    fn narrow_to_salience(&self, narrowing: &mut Narrowing, least: f32) {
        if least <= 0.0 || least > 1.0 {
            return narrowing.require((least <= 0.0).to_string());
        }
        let salience = self.graph.turn_expression("salience");
        let least = narrowing.parameter(Value::Float(least_that_rounds_to(least)));
        narrowing.require(format!(
            "CASE WHEN {salience} OPERATOR(pg_catalog.<>) 'NaN'::pg_catalog.float8 THEN {salience} ELSE 0.5 END \
             OPERATOR(pg_catalog.>=) {least}"
        ));
    }

    /// The turns of the whole graph that are sought and most similar, so many. An approximate index looks at the
    /// nearest turns of all, and finds few of an owner or of some sessions: of these all are compared. So are all that
    /// are sought where the index finds fewer than are wanted, or does not take the question.
    ///
    /// # Errors
    /// As [`Searcher::rank`].
    pub fn nearest(
        &self,
        column: &EmbeddingColumn,
        query: &QueryEmbedding,
        limit: u32,
        sought: &Sought,
    ) -> Result<Vec<Hit>, SqlError> {
        let Sought { filter, .. } = sought;
        let filters = Filters { min_salience: None, ..filter.least };
        let embedding = ("embedding", column.expression.as_str());
        let indexed = column.indexed.as_ref();
        let serves = |index: &&Indexed| {
            filter.owner.is_none() && filter.sessions.is_none() && index.has(query)
        };
        if let Some(index) = indexed.filter(serves) {
            let Indexed { type_name, operator, .. } = index;
            index.let_find(limit);
            let narrowing = self.narrowing_with_salience(sought, 2)?;
            let condition = narrowing.condition();
            let names = [
                embedding,
                ("is_sought", condition.as_str()),
                ("column", &column.column),
                ("type", type_name),
                ("operator", operator),
            ];
            let statement = self.graph.statement(&NEAREST, &names);
            let text = vector_text(query);
            let arguments = [Argument::Text(Some(&text)), Argument::Number(limit.into())];
            let arguments: Vec<_> = arguments.into_iter().chain(narrowing.arguments()).collect();
            let mut ranking = Ranking::new(limit, filters);
            let mut given = 0;
            self.compare(&statement, &arguments, query, false, |id, similarity| {
                given += 1;
                ranking.offer(id, 0.0, similarity);
            })?;
            // Row security narrows behind the index as well.
            if given >= limit || !(narrowing.is_any() || self.caller.rls) {
                return Ok(ranking.into_hits());
            }
        }
        let narrowing = self.narrowing_with_salience(sought, 0)?;
        let condition = narrowing.condition();
        let statement =
            self.graph.statement(&ALL_EMBEDDINGS, &[embedding, ("is_sought", &condition)]);
        let arguments: Vec<_> = narrowing.arguments().collect();
        let mut ranking = Ranking::new(limit, filters);
        self.compare(&statement, &arguments, query, false, |id, similarity| {
            ranking.offer(id, 0.0, similarity);
        })?;
        Ok(ranking.into_hits())
    }

    /// Runs a statement whose columns are a turn's id and its embedding. Where those of all are of other dimensions
    /// than the query's it is an error, unless they may be.
    fn compare(
        &self,
        statement: &Statement,
        arguments: &[Argument<'_>],
        query: &QueryEmbedding,
        may_all_differ: bool,
        mut sink: impl FnMut(TurnId, Option<f32>),
    ) -> Result<(), SqlError> {
        let (mut odd, mut are_some_alike) = (None, false);
        self.ask(statement, arguments, |row| {
            let Some(id) = row.id(0) else { return ControlFlow::Continue(()) };
            let compared = row.floats(1, |stored| stored.map(|stored| query.similarity(stored)));
            let similarity = match compared {
                Some(Ok(similarity)) => {
                    are_some_alike = true;
                    similarity
                }
                // A few of them are somebody's mistake, which must not end the searches of others.
                Some(Err(dimensions)) => {
                    odd = odd.or(Some((id, dimensions)));
                    None
                }
                None => None,
            };
            sink(id, similarity);
            ControlFlow::Continue(())
        })?;
        match odd.filter(|_| !are_some_alike && !may_all_differ) {
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

    /// The contents of these turns, no entry for one without a content, of as many as fit in [`MAX_CONTENTS_BYTES`],
    /// the first ones first, and which do not.
    ///
    /// # Errors
    /// 21000 where a turn is stored more than once, as the row that was found may be another than the one whose content
    /// is read.
    pub fn contents(
        &self,
        ids: &[TurnId],
    ) -> Result<(HashMap<TurnId, String>, HashSet<TurnId>), SqlError> {
        let mut contents = HashMap::with_capacity(ids.len());
        let (mut seen, mut twice) = (HashSet::with_capacity(ids.len()), None);
        let (mut left, mut left_out) = (MAX_CONTENTS_BYTES, HashSet::new());
        self.ask(&self.graph.statement(&CONTENTS, &[]), &[Argument::Ids(ids)], |row| {
            twice = twice.or(row.id(0).filter(|id| !seen.insert(*id)));
            // What is known to be too long is not read; what returns a content may escape it.
            let is_read = row.i64(2).unwrap_or(0) as usize <= left;
            let content = is_read.then(|| row.text(1, |text| text.map(str::to_owned)));
            let rest = content.as_ref().and_then(|content| {
                left.checked_sub(content.as_ref().map_or(0, |text| escaped_bytes(text.as_bytes())))
            });
            match rest {
                Some(rest) => {
                    left = rest;
                    contents.extend(row.id(0).zip(content.flatten()));
                }
                None => left_out.extend(row.id(0)),
            }
            ControlFlow::Continue(())
        })?;
        match twice {
            Some(id) => Err(SliceError::<SqlError>::DuplicateTurn(id).into()),
            None => Ok((contents, left_out)),
        }
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

    /// Whether a value of this key is this text, or one of `ANY (...)`, byte for byte. An index is of the column's own
    /// collation.
    fn is_text(&self, key: &str, own: &str, texts: &str) -> String {
        let found = format!("{own} OPERATOR(pg_catalog.=) {texts}");
        if !self.graph.takes_texts_as_equal(key) {
            return found;
        }
        format!("({found} AND ({own}) COLLATE pg_catalog.\"C\" OPERATOR(pg_catalog.=) {texts})")
    }

    /// Conditions on `$1`, tried one after the other, with the value of `$1`; none where no turn can have that session.
    fn session_conditions(&self, session: Option<&str>) -> Vec<(String, Option<String>)> {
        let Some(session) = session else { return vec![("$1 IS NULL".to_owned(), None)] };
        let Some((own, base_type)) = self.graph.stored_value("session_id") else {
            return Vec::new();
        };
        if base_type != pg_sys::UUIDOID {
            let mut conditions = vec![self.is_text("session_id", &own, "$1")];
            if may_be_hash_of_name(session) {
                let named = HASHED_SESSION.replace("{session}", &own).replace("{names}", "$1");
                conditions.push(named);
            }
            let with_value = |condition| (condition, Some(session.to_owned()));
            return conditions.into_iter().map(with_value).collect();
        }
        own_uuid(session)
            .map(|id| (format!("{own} OPERATOR(pg_catalog.=) ($1)::pg_catalog.uuid"), Some(id)))
            .into_iter()
            .collect()
    }

    pub(super) fn ask(
        &self,
        statement: &Statement,
        arguments: &[Argument<'_>],
        sink: impl FnMut(Row) -> ControlFlow<()>,
    ) -> Result<(), SqlError> {
        self.caller.check_role()?;
        with_hints(self.caller.reads(self.graph), || query(statement, arguments, sink));
        Ok(())
    }
}

/// Conditions that narrow a search, after so many parameters of a statement, and the values of theirs.
#[derive(Default)]
pub(super) struct Narrowing {
    parameters: usize,
    conditions: Vec<String>,
    values: Vec<Value>,
}

/// The value of a parameter.
enum Value {
    Text(String),
    Texts(Vec<String>),
    Time(i64),
    Float(f64),
}

impl Narrowing {
    /// No condition, after so many parameters.
    pub(super) fn after(parameters: usize) -> Self {
        Narrowing { parameters, ..Narrowing::default() }
    }

    /// A parameter of these texts.
    pub(super) fn texts(&mut self, texts: Vec<String>) -> String {
        self.parameter(Value::Texts(texts))
    }

    /// Whether there may be turns that are not sought.
    fn is_any(&self) -> bool {
        !self.conditions.is_empty()
    }

    /// All of it as one condition.
    pub(super) fn condition(&self) -> String {
        if self.is_any() { self.conditions.join(" AND ") } else { "true".to_owned() }
    }

    pub(super) fn require(&mut self, condition: String) {
        self.conditions.push(condition);
    }

    /// A parameter of this value.
    fn parameter(&mut self, value: Value) -> String {
        self.values.push(value);
        format!("${}", self.parameters + self.values.len())
    }

    /// A parameter of this moment, in microseconds since 2000, to be compared with times of this type.
    fn moment(&mut self, (_, base_type): &(String, pg_sys::Oid), micros: i64) -> String {
        let parameter = self.parameter(Value::Time(micros));
        match *base_type {
            // Without a cast that depends on the session's time zone.
            pg_sys::TIMESTAMPOID => {
                format!("pg_catalog.timezone('0'::pg_catalog.interval, {parameter})")
            }
            _ => parameter,
        }
    }

    /// Requires of a turn's time that it compares like this with a moment, which is later than all where there is none;
    /// of a turn without a time, this.
    fn require_time(
        &mut self,
        time: Option<&(String, pg_sys::Oid)>,
        moment: Option<i64>,
        operator: &str,
        untimed: bool,
    ) {
        let Some(time) = time else { return self.require(untimed.to_string()) };
        let (own, _) = time;
        let compared = match moment.map(|moment| self.moment(time, moment)) {
            Some(moment) => format!("{own} OPERATOR(pg_catalog.{operator}) {moment}"),
            None => (operator == "<").to_string(),
        };
        self.require(match untimed {
            true => format!("({own} IS NULL OR {compared})"),
            false => compared,
        });
    }

    pub(super) fn arguments(&self) -> impl Iterator<Item = Argument<'_>> {
        self.values.iter().map(|value| match value {
            Value::Text(text) => Argument::Text(Some(text)),
            Value::Texts(texts) => Argument::Texts(texts),
            Value::Time(micros) => Argument::Time(*micros),
            Value::Float(number) => Argument::Float(*number),
        })
    }
}

/// The condition on a role, as it is stored, that it is read as one of these: what is not known is the user's.
fn of_roles(role: &str, roles: &[Role]) -> String {
    let is_user = roles.contains(&Role::User);
    let listed = Role::ALL.iter().filter(|role| roles.contains(role) != is_user);
    let listed: Vec<String> = listed.map(|role| literal_of(role.name())).collect();
    // With collation "C", `lower` changes ASCII letters alone.
    let lower = format!("pg_catalog.lower(({role}) COLLATE pg_catalog.\"C\")");
    let listed = format!("(ARRAY[{}]::pg_catalog.text[])", listed.join(", "));
    match is_user {
        true => format!("COALESCE({lower} OPERATOR(pg_catalog.<>) ALL {listed}, true)"),
        false => format!("{lower} OPERATOR(pg_catalog.=) ANY {listed}"),
    }
}

/// A name that is a uuid's own spelling: no other names a session of that type, as in a slice.
fn own_uuid(name: &str) -> Option<String> {
    let id = Uuid::try_parse(name).ok()?.hyphenated().to_string();
    (id == name).then_some(id)
}

/// An owner in a column of type uuid.
fn owner_as_uuid(owner: &str) -> Result<String, SqlError> {
    match Uuid::try_parse(owner) {
        Ok(id) => Ok(id.hyphenated().to_string()),
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

/// The least binary64 that is this positive binary32 or more once it is rounded: halves go to the even one.
fn least_that_rounds_to(number: f32) -> f64 {
    let half = f64::midpoint(number.next_down().into(), number.into());
    if number.to_bits().is_multiple_of(2) { half } else { half.next_up() }
}
