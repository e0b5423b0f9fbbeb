//! Lists of the sessions and the turns of the bound graph, and of the edges that lead to turns.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet};
use std::ops::ControlFlow;

use kernel::graph::edge::EdgeType;
use kernel::graph::turn::{Phase, Role, TurnId};
use kernel::policy::needs::Needs;

use super::search::{LONG_NAME, Narrowing, Searcher};
use super::store::PgStore;
use crate::pg::error::SqlError;
use crate::pg::query::{Argument, ColumnType, Planning, Row, Template};

const SESSIONS: Template = Template::new(
    include_str!("../../../sql/queries/list_sessions.sql"),
    &[ColumnType::Text, ColumnType::Integer, ColumnType::Time],
    Planning::EachTime,
);

const SESSION_TURNS: Template = Template::new(
    include_str!("../../../sql/queries/list_session_turns.sql"),
    &[ColumnType::Text, ColumnType::Id, ColumnType::Time, ColumnType::Boolean],
    Planning::EachTime,
);

const COLUMNS_OF_TURNS: &[ColumnType] = &[
    ColumnType::Id,
    ColumnType::Text,
    ColumnType::Text,
    ColumnType::Text,
    ColumnType::Time,
    ColumnType::Text,
];

const TURNS: Template = Template::new(
    include_str!("../../../sql/queries/list_turns.sql"),
    COLUMNS_OF_TURNS,
    Planning::EachTime,
);

const ENDS: Template = Template::new(
    include_str!("../../../sql/queries/list_ends.sql"),
    COLUMNS_OF_TURNS,
    Planning::EachTime,
);

/// Where Citus reads the tables: it joins those alone whose rows it has put in the same places.
const DISTRIBUTED_ENDS: Template = Template::new(
    include_str!("../../../sql/queries/distributed/list_ends.sql"),
    &[ColumnType::Id, ColumnType::Time],
    Planning::EachTime,
);

const EDGES: Template = Template::new(
    include_str!("../../../sql/queries/list_edges.sql"),
    &[ColumnType::Id, ColumnType::Id, ColumnType::Text],
    Planning::EachTime,
);

/// How many characters of a content a text is looked for in.
const SEARCHED_CHARS: u32 = 100_000;

/// How many characters are shown before a text that was looked for.
const CHARS_BEFORE: usize = 80;

/// How turns are ordered by the columns of a statement, where they are.
const BY_TIME: &str = "ORDER BY 5 DESC NULLS LAST, 1";

/// How many turns are asked for by their ids at once: their contents are held together.
const ASKED_AT_ONCE: usize = 1000;

/// A part of a list.
#[derive(Clone, Copy)]
pub struct Extent {
    /// How many it has at most.
    pub limit: u32,
    /// How many are passed over.
    pub skip: u32,
    /// How many characters of each text.
    pub length: u32,
}

impl Extent {
    /// The first arguments of a statement that gives this part.
    fn arguments(self) -> [Argument<'static>; 2] {
        [self.limit, self.skip].map(|number| Argument::Number(number.into()))
    }

    /// Those of a statement that gives all, of which this part is taken here.
    fn of_all() -> [Argument<'static>; 2] {
        [i64::MAX, 0].map(Argument::Number)
    }

    /// Takes this part of what it is called for: whether the item is in it, and whether one may be that follows.
    fn taking(self) -> impl FnMut() -> (bool, ControlFlow<()>) {
        let mut seen = 0;
        let end = u64::from(self.skip) + u64::from(self.limit);
        move || {
            seen += 1;
            let next = if seen < end { ControlFlow::Continue(()) } else { ControlFlow::Break(()) };
            (seen > u64::from(self.skip), next)
        }
    }
}

/// A session.
pub struct Session {
    /// Its name; empty where it has none.
    pub name: String,
    /// How many turns it has.
    pub turns: i64,
    /// Its latest turn.
    pub latest: TurnId,
    /// When that was, in microseconds since 2000.
    pub at: Option<i64>,
    /// The beginning of the first text in it.
    pub title: Option<String>,
    /// The beginning of the text of its latest turn.
    pub text: Option<String>,
}

/// A session of which the turns are not known yet.
struct Counted {
    name: String,
    turns: i64,
    at: Option<i64>,
}

/// A turn, ordered as turns are listed: the latest first, those without a time last.
type ByTime = (bool, Reverse<Option<i64>>, TurnId);

/// The turns that are shown of a session.
struct Shown {
    latest: ByTime,
    /// The first of those that have a text, else of all.
    first: (bool, Option<i64>, TurnId),
}

/// Which turns are listed: all that fit.
#[derive(Default)]
pub struct Listed<'a> {
    /// Those of a session; one of no name is called ''.
    pub session: Option<&'a str>,
    /// These.
    pub turns: Option<Vec<TurnId>>,
    /// Those that have this text in any case, in so many characters as are searched.
    pub text: Option<&'a str>,
    /// Those that no other of their session follows; what refers to a turn does not follow it.
    pub only_ends: bool,
}

/// A turn of a list.
pub struct ListedTurn {
    /// The turn.
    pub id: TurnId,
    /// The name of its session; empty where it has none.
    pub session: String,
    /// Its role.
    pub role: Role,
    /// Its phase.
    pub phase: Phase,
    /// When it was, in microseconds since 2000.
    pub at: Option<i64>,
    /// The beginning of its text; of a turn with a text that was looked for, what is around that.
    pub text: Option<String>,
}

impl Searcher<'_> {
    /// Hands sessions to `put`, the latest first; where an end is given those whose names end with it.
    ///
    /// # Errors
    /// As any reading.
    pub fn list_sessions(
        &self,
        extent: Extent,
        name_end: Option<&str>,
        mut put: impl FnMut(Session),
    ) -> Result<(), SqlError> {
        let counted = self.counted(extent, name_end)?;
        let shown = self.shown(&counted, extent.length)?;
        let store = PgStore::new(self.graph, self.caller, Needs::default());
        for part in counted.chunks(ASKED_AT_ONCE / 2) {
            let of_part =
                || part.iter().filter_map(|session| Some((session, shown.get(&session.name)?)));
            let ids: Vec<TurnId> = match extent.length {
                0 => Vec::new(),
                _ => of_part().flat_map(|(_, shown)| [shown.first.2, shown.latest.2]).collect(),
            };
            let texts = store.beginnings(&ids, extent.length.cast_signed())?;
            for (counted, shown) in of_part() {
                put(Session {
                    name: counted.name.clone(),
                    turns: counted.turns,
                    latest: shown.latest.2,
                    at: counted.at,
                    title: texts.get(&shown.first.2).cloned(),
                    text: texts.get(&shown.latest.2).cloned(),
                });
            }
        }
        Ok(())
    }

    /// The sessions of a part of their list, without their turns.
    fn counted(&self, extent: Extent, name_end: Option<&str>) -> Result<Vec<Counted>, SqlError> {
        let name = self.session_name();
        let statement = self.graph.statement(&SESSIONS, &[("name", name.as_str())]);
        let (asked, mut take) = match name_end {
            None => (extent.arguments(), None),
            Some(_) => (Extent::of_all(), Some(extent.taking())),
        };
        let mut counted = Vec::new();
        self.ask(&statement, &asked, |row| {
            let is_sought = |name: &&str| name_end.is_none_or(|end| name.ends_with(end));
            let name = row.text(0, |name| name.filter(is_sought).map(str::to_owned));
            let Some(name) = name else { return ControlFlow::Continue(()) };
            let (is_in, next) =
                take.as_mut().map_or((true, ControlFlow::Continue(())), |take| take());
            if is_in {
                let turns = row.i64(1).unwrap_or_default();
                counted.push(Counted { name, turns, at: row.time(2) });
            }
            next
        })?;
        Ok(counted)
    }

    /// What is shown of these sessions, by their names.
    fn shown(&self, sessions: &[Counted], length: u32) -> Result<HashMap<String, Shown>, SqlError> {
        let (name, mut narrowing) = (self.session_name(), Narrowing::after(1));
        let names: Vec<String> = sessions.iter().map(|session| session.name.clone()).collect();
        // Bytes that are not UTF-8 are read as this character: no value finds them.
        if !names.iter().any(|name| name.contains(char::REPLACEMENT_CHARACTER)) {
            self.narrow_to_sessions(&mut narrowing, &names);
        }
        let mut found: HashMap<String, Option<Shown>> =
            names.into_iter().map(|name| (name, None)).collect();
        let condition = narrowing.condition();
        let names = [("name", name.as_str()), ("is_sought", &condition)];
        let statement = self.graph.statement(&SESSION_TURNS, &names);
        let arguments: Vec<_> =
            [Argument::Number(length.into())].into_iter().chain(narrowing.arguments()).collect();
        self.ask(&statement, &arguments, |row| {
            let Some(id) = row.id(1) else { return ControlFlow::Continue(()) };
            row.text(0, |name| {
                let Some(found) = name.and_then(|name| found.get_mut(name)) else { return };
                let (at, is_empty) = (row.time(2), row.bool(3).unwrap_or_default());
                let (latest, first) = (by_time(at, id), (is_empty, at, id));
                let shown = found.get_or_insert(Shown { latest, first });
                shown.latest = shown.latest.min(latest);
                shown.first = shown.first.min(first);
            });
            ControlFlow::Continue(())
        })?;
        Ok(found.into_iter().filter_map(|(name, shown)| Some((name, shown?))).collect())
    }

    /// Hands turns to `put`, the latest first.
    ///
    /// # Errors
    /// As any reading.
    pub fn list_turns(
        &self,
        extent: Extent,
        listed: &Listed<'_>,
        mut put: impl FnMut(ListedTurn),
    ) -> Result<(), SqlError> {
        let mut narrowing = Narrowing::after(3);
        if let Some(session) = listed.session {
            self.narrow_to_sessions(&mut narrowing, &[session.to_owned()]);
        }
        if let Some(turns) = &listed.turns {
            self.narrow_to_turns(&mut narrowing, turns.iter());
        }
        let part = listed.text.map(lower);
        let apart = listed.only_ends && self.graph.is_distributed();
        let template = if listed.only_ends && !apart { &ENDS } else { &TURNS };
        if part.is_none() && !apart {
            let asked = (extent.arguments(), extent.length, BY_TIME);
            return self.rows(template, asked, &narrowing, |row, id| {
                put(turn_of(&row, id, owned(&row, 5)));
            });
        }
        // Which turns they are comes first: contents are not sorted, nor moved where they are not shown.
        let mut matching = HashSet::new();
        let mut latest = BinaryHeap::new();
        let end = (u64::from(extent.skip) + u64::from(extent.limit)) as usize;
        if let Some(part) = &part {
            self.rows(template, (Extent::of_all(), SEARCHED_CHARS, ""), &narrowing, |row, id| {
                if row.text(5, |text| text.is_none_or(|text| !lower(text).contains(part))) {
                    return;
                }
                if apart {
                    matching.insert(id);
                    return;
                }
                latest.push(by_time(row.time(4), id));
                if latest.len() > end {
                    latest.pop();
                }
            })?;
        }
        let page = match apart {
            true => {
                self.distributed_ends(extent, &narrowing, part.is_some().then_some(&matching))?
            }
            false => latest.into_sorted_vec().into_iter().skip(extent.skip as usize).collect(),
        };
        let chars = if part.is_some() { SEARCHED_CHARS } else { extent.length };
        for page in page.chunks(ASKED_AT_ONCE) {
            let mut narrowing = Narrowing::after(3);
            self.narrow_to_turns(&mut narrowing, page.iter().map(|(_, _, id)| id));
            self.rows(&TURNS, (Extent::of_all(), chars, BY_TIME), &narrowing, |row, id| {
                let text = match &part {
                    None => Some(owned(&row, 5)),
                    Some(part) => row.text(5, |text| around(text?, part, extent.length)).map(Some),
                };
                // A turn may be stored twice.
                if let Some(text) =
                    text.filter(|_| page.binary_search(&by_time(row.time(4), id)).is_ok())
                {
                    put(turn_of(&row, id, text));
                }
            })?;
        }
        Ok(())
    }

    /// A part of the ends of sessions, of tables that Citus reads, the latest first: of all that are sought,
    /// or of these.
    fn distributed_ends(
        &self,
        extent: Extent,
        narrowing: &Narrowing,
        of: Option<&HashSet<TurnId>>,
    ) -> Result<Vec<ByTime>, SqlError> {
        let condition = narrowing.condition();
        let statement = self.graph.statement(&DISTRIBUTED_ENDS, &[("is_sought", &condition)]);
        let asked = of.map_or(extent.arguments(), |_| Extent::of_all());
        // The statement has no use for characters, the narrowing's parameters come after them.
        let arguments: Vec<_> =
            asked.into_iter().chain([Argument::Number(0)]).chain(narrowing.arguments()).collect();
        let mut ends = Vec::new();
        let mut take = extent.taking();
        self.ask(&statement, &arguments, |row| {
            let id = row.id(0).filter(|id| of.is_none_or(|of| of.contains(id)));
            let Some(id) = id else { return ControlFlow::Continue(()) };
            let (is_in, next) = match of {
                None => (true, ControlFlow::Continue(())),
                Some(_) => take(),
            };
            if is_in {
                ends.push(by_time(row.time(1), id));
            }
            next
        })?;
        Ok(ends)
    }

    /// Hands rows of a statement of turns to `put`: a part of them, with so many characters, ordered so.
    fn rows(
        &self,
        template: &Template,
        (part, chars, by_time): ([Argument<'static>; 2], u32, &str),
        narrowing: &Narrowing,
        mut put: impl FnMut(Row, TurnId),
    ) -> Result<(), SqlError> {
        let (name, condition) = (self.session_name(), narrowing.condition());
        let names =
            [("name", name.as_str()), ("is_sought", condition.as_str()), ("by_time", by_time)];
        let statement = self.graph.statement(template, &names);
        let chars = Argument::Number(chars.into());
        let arguments: Vec<_> =
            part.into_iter().chain([chars]).chain(narrowing.arguments()).collect();
        self.ask(&statement, &arguments, |row| {
            if let Some(id) = row.id(0) {
                put(row, id);
            }
            ControlFlow::Continue(())
        })
    }

    fn narrow_to_turns<'b>(
        &self,
        narrowing: &mut Narrowing,
        turns: impl Iterator<Item = &'b TurnId>,
    ) {
        let ids = narrowing.texts(turns.map(TurnId::to_string).collect());
        let id = self.graph.turn_expression("id");
        narrowing.require(format!("{id} OPERATOR(pg_catalog.=) ANY (({ids})::pg_catalog.uuid[])"));
    }
    /// Hands edges that lead to these turns to `put`, parent, child and type, so many at most.
    ///
    /// # Errors
    /// As any reading.
    pub fn list_edges(
        &self,
        turns: &[TurnId],
        limit: u32,
        mut put: impl FnMut(TurnId, TurnId, EdgeType),
    ) -> Result<(), SqlError> {
        let statement = self.graph.statement(&EDGES, &[]);
        // Types of several names are one.
        let mut seen = HashSet::new();
        self.ask(&statement, &[Argument::Ids(turns)], |row| {
            if let (Some(parent), Some(child)) = (row.id(0), row.id(1)) {
                let edge_type = row.text(2, EdgeType::from_stored);
                if seen.insert((parent, child, edge_type.name())) {
                    put(parent, child, edge_type);
                }
            }
            if seen.len() < limit as usize {
                ControlFlow::Continue(())
            } else {
                ControlFlow::Break(())
            }
        })
    }

    /// The name of a turn's session as it is read.
    pub(super) fn session_name(&self) -> String {
        let session = self.graph.turn_expression("session_id");
        LONG_NAME.replace("{session}", &session)
    }
}

fn turn_of(row: &Row, id: TurnId, text: Option<String>) -> ListedTurn {
    ListedTurn {
        id,
        session: owned(row, 1).unwrap_or_default(),
        role: row.text(2, Role::from_stored),
        phase: row.text(3, Phase::from_stored),
        at: row.time(4),
        text,
    }
}

fn by_time(at: Option<i64>, id: TurnId) -> ByTime {
    (at.is_none(), Reverse(at), id)
}

/// So many characters of a text around a part of it in lower case; `None` where it is not in it.
fn around(text: &str, part: &str, length: u32) -> Option<String> {
    let found = lower(text).find(part)?;
    // A character may have more or fewer bytes in lower case, or be several.
    let ends = text.chars().scan(0, |end, char| {
        *end += lower_chars(char).map(char::len_utf8).sum::<usize>();
        Some(*end)
    });
    let before = ends.take_while(|end| *end <= found).count().saturating_sub(CHARS_BEFORE);
    Some(text.chars().skip(before).take(length as usize).collect())
}

/// A text in lower case, each character by itself: what it is does not depend on where in a word it stands.
fn lower(text: &str) -> String {
    let mut lower = String::with_capacity(text.len());
    let mut left = text.chars();
    loop {
        // Most are ASCII.
        let rest = left.as_str();
        let (ascii, others) = rest.split_at(rest.bytes().take_while(u8::is_ascii).count());
        lower.push_str(ascii);
        let start = lower.len() - ascii.len();
        lower[start..].make_ascii_lowercase();
        left = others.chars();
        match left.next() {
            Some(other) => lower.extend(lower_chars(other)),
            None => return lower,
        }
    }
}

/// A character in lower case. The sigma at the end of a word is as any other.
fn lower_chars(char: char) -> impl Iterator<Item = char> {
    (if char == 'ς' { 'σ' } else { char }).to_lowercase()
}

fn owned(row: &Row, column: usize) -> Option<String> {
    row.text(column, |text| text.map(str::to_owned))
}
