//! Lists of the sessions and the turns of the bound graph, and of the edges that lead to turns.

use std::collections::HashSet;
use std::ops::ControlFlow;

use kernel::graph::edge::EdgeType;
use kernel::graph::turn::{Phase, Role, TurnId};

use super::search::{LONG_NAME, Narrowing, Searcher};
use crate::pg::error::SqlError;
use crate::pg::query::{Argument, ColumnType, Planning, Row, Template};

const SESSIONS: Template = Template::new(
    include_str!("../../../sql/queries/list_sessions.sql"),
    &[
        ColumnType::Text,
        ColumnType::Integer,
        ColumnType::Id,
        ColumnType::Time,
        ColumnType::Text,
        ColumnType::Text,
    ],
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

const EDGES: Template = Template::new(
    include_str!("../../../sql/queries/list_edges.sql"),
    &[ColumnType::Id, ColumnType::Id, ColumnType::Text],
    Planning::EachTime,
);

/// How many characters of a content a text is looked for in.
const SEARCHED_CHARS: u32 = 100_000;

/// How many characters are shown before a text that was looked for.
const CHARS_BEFORE: usize = 80;

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
    /// The first arguments of a statement that gives this part, with so many characters.
    fn arguments(self, chars: u32) -> [Argument<'static>; 3] {
        [self.limit, self.skip, chars].map(|number| Argument::Number(number.into()))
    }

    /// Those of a statement that gives all, of which this part is taken here.
    fn of_all(chars: u32) -> [Argument<'static>; 3] {
        [i64::MAX, 0, chars.into()].map(Argument::Number)
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

/// Which turns are listed: all that fit.
#[derive(Default)]
pub struct Listed<'a> {
    /// Those of a session; one of no name is called ''.
    pub session: Option<&'a str>,
    /// These.
    pub turns: Option<Vec<TurnId>>,
    /// Those that have this text in any case, in so many characters as are searched.
    pub text: Option<&'a str>,
    /// Those that no other follows.
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
        let name = self.session_name();
        let statement = self.graph.statement(&SESSIONS, &[("name", name.as_str())]);
        let Some(end) = name_end else {
            return self.ask(&statement, &extent.arguments(extent.length), |row| {
                session_of(&row).into_iter().for_each(&mut put);
                ControlFlow::Continue(())
            });
        };
        let mut take = extent.taking();
        self.ask(&statement, &Extent::of_all(extent.length), |row| {
            let Some(session) = session_of(&row).filter(|session| session.name.ends_with(end))
            else {
                return ControlFlow::Continue(());
            };
            let (is_in, next) = take();
            if is_in {
                put(session);
            }
            next
        })
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
        let (name, mut narrowing) = (self.session_name(), Narrowing::after(3));
        if let Some(session) = listed.session {
            self.narrow_to_sessions(&mut narrowing, &[session.to_owned()]);
        }
        if let Some(turns) = &listed.turns {
            let ids = narrowing.texts(turns.iter().map(TurnId::to_string).collect());
            let id = self.graph.turn_expression("id");
            narrowing
                .require(format!("{id} OPERATOR(pg_catalog.=) ANY (({ids})::pg_catalog.uuid[])"));
        }
        let condition = narrowing.condition();
        let names = [("name", name.as_str()), ("is_sought", &condition)];
        let template = if listed.only_ends { ENDS } else { TURNS };
        let statement = self.graph.statement(&template, &names);
        let first = match listed.text {
            None => extent.arguments(extent.length),
            Some(_) => Extent::of_all(SEARCHED_CHARS),
        };
        let arguments: Vec<_> = first.into_iter().chain(narrowing.arguments()).collect();
        let part = listed.text.map(lower);
        let mut take = extent.taking();
        self.ask(&statement, &arguments, |row| {
            let Some(id) = row.id(0) else { return ControlFlow::Continue(()) };
            let text = match &part {
                None => owned(&row, 5),
                Some(part) => match row.text(5, |text| around(text?, part, extent.length)) {
                    None => return ControlFlow::Continue(()),
                    found => found,
                },
            };
            let turn = ListedTurn {
                id,
                session: owned(&row, 1).unwrap_or_default(),
                role: row.text(2, Role::from_stored),
                phase: row.text(3, Phase::from_stored),
                at: row.time(4),
                text,
            };
            if part.is_none() {
                put(turn);
                return ControlFlow::Continue(());
            }
            let (is_in, next) = take();
            if is_in {
                put(turn);
            }
            next
        })
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

fn session_of(row: &Row) -> Option<Session> {
    Some(Session {
        latest: row.id(2)?,
        name: owned(row, 0).unwrap_or_default(),
        turns: row.i64(1).unwrap_or_default(),
        at: row.time(3),
        title: owned(row, 4),
        text: owned(row, 5),
    })
}

/// So many characters of a text around a part of it in lower case, as far as the text in lower case has as many; `None`
/// where it is not in it.
fn around(text: &str, part: &str, length: u32) -> Option<String> {
    let lower = lower(text);
    let before = lower[..lower.find(part)?].chars().count().saturating_sub(CHARS_BEFORE);
    Some(text.chars().skip(before).take(length as usize).collect())
}

/// A text in lower case, each character by itself: what it is does not depend on where in a word it stands.
fn lower(text: &str) -> String {
    text.chars().flat_map(char::to_lowercase).collect()
}

fn owned(row: &Row, column: usize) -> Option<String> {
    row.text(column, |text| text.map(str::to_owned))
}
