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
    fn arguments(&self) -> [Argument<'static>; 3] {
        [self.limit, self.skip, self.length].map(|number| Argument::Number(number.into()))
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
        let (name, mut narrowing) = (self.session_name(), Narrowing::after(3));
        if let Some(end) = name_end {
            let end = narrowing.text(end);
            let session = self.graph.turn_expression("session_id");
            narrowing.require(format!(
                "pg_catalog.\"right\"({session}, pg_catalog.length({end})) COLLATE pg_catalog.\"C\" \
                 OPERATOR(pg_catalog.=) {end}"
            ));
        }
        let condition = narrowing.condition();
        let names = [("name", name.as_str()), ("is_sought", &condition)];
        let statement = self.graph.statement(&SESSIONS, &names);
        let arguments: Vec<_> =
            extent.arguments().into_iter().chain(narrowing.arguments()).collect();
        self.ask(&statement, &arguments, |row| {
            if let Some(latest) = row.id(2) {
                put(Session {
                    name: owned(&row, 0).unwrap_or_default(),
                    turns: row.i64(1).unwrap_or_default(),
                    latest,
                    at: row.time(3),
                    title: owned(&row, 4),
                    text: owned(&row, 5),
                });
            }
            ControlFlow::Continue(())
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
        // Case is that of the database's locale; the collation of the column may not be one for searches.
        let lower = |text: &str| {
            format!("pg_catalog.lower(({text})::pg_catalog.text COLLATE pg_catalog.\"default\")")
        };
        let prefix = |text: &str, chars: &str| {
            format!("graph_kernel.text_prefix({text}, {chars}::pg_catalog.int4)")
        };
        let text = match listed.text {
            None => prefix("s.content", "($3)"),
            Some(part) => {
                let part = lower(&narrowing.text(part));
                let searched = |content: &str| prefix(content, &SEARCHED_CHARS.to_string());
                let position = |content: &str| {
                    format!("pg_catalog.strpos({}, {part})", lower(&searched(content)))
                };
                let content = self.graph.turn_expression("content_text");
                narrowing.require(format!("{} OPERATOR(pg_catalog.>) 0", position(&content)));
                format!(
                    "pg_catalog.substr({}, GREATEST(1, {} OPERATOR(pg_catalog.-) 80), ($3)::pg_catalog.int4)",
                    searched("s.content"),
                    position("s.content"),
                )
            }
        };
        let condition = narrowing.condition();
        let names = [("name", name.as_str()), ("is_sought", &condition), ("text", &text)];
        let template = if listed.only_ends { ENDS } else { TURNS };
        let statement = self.graph.statement(&template, &names);
        let arguments: Vec<_> =
            extent.arguments().into_iter().chain(narrowing.arguments()).collect();
        self.ask(&statement, &arguments, |row| {
            if let Some(id) = row.id(0) {
                put(ListedTurn {
                    id,
                    session: owned(&row, 1).unwrap_or_default(),
                    role: row.text(2, Role::from_stored),
                    phase: row.text(3, Phase::from_stored),
                    at: row.time(4),
                    text: owned(&row, 5),
                });
            }
            ControlFlow::Continue(())
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
        let arguments = [Argument::Ids(turns), Argument::Number(limit.into())];
        // Types of several names are one.
        let mut seen = HashSet::new();
        self.ask(&statement, &arguments, |row| {
            if let (Some(parent), Some(child)) = (row.id(0), row.id(1)) {
                let edge_type = row.text(2, EdgeType::from_stored);
                if seen.insert((parent, child, edge_type.name())) {
                    put(parent, child, edge_type);
                }
            }
            ControlFlow::Continue(())
        })
    }

    /// The name of a turn's session as it is read.
    fn session_name(&self) -> String {
        let session = self.graph.turn_expression("session_id");
        LONG_NAME.replace("{session}", &session)
    }
}

fn owned(row: &Row, column: usize) -> Option<String> {
    row.text(column, |text| text.map(str::to_owned))
}
