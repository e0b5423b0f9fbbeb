//! The graph store over SQL: each statement reads for a whole batch.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::ControlFlow;

use kernel::graph::edge::EdgeType;
use kernel::graph::facts::SessionKey;
use kernel::graph::facts::TurnFacts;
use kernel::graph::snapshot::{GraphSnapshot, SnapshotBuilder};
use kernel::graph::turn::{
    Phase, Role, StoredTurn, Turn, TurnId, bounded_name, unit_interval, unix_micros, unix_seconds,
};
use kernel::json::canonical::{escaped_bytes, json_text};
use kernel::json::jsonb_text;
use kernel::policy::needs::Needs;
use kernel::slicing::slicer::SliceError;
use kernel::slicing::store::{ChildEdge, GraphStore, Neighbour, ParentEdge, ScoredTurn, Sink};

use crate::pg::access::caller::Caller;
use crate::pg::access::search::{MAX_CONTENTS_BYTES, contents_too_long};
use crate::pg::error::SqlError;
use crate::pg::interrupts::check_interrupts;
use crate::pg::query::{
    Argument, BatchStatement, ColumnType, Planning, Row, Statement, Template, query,
};
use crate::pg::statistics;
use crate::pg::tables::graph::Graph;

static SCORED: Template = Template::new(
    include_str!("../../../sql/queries/scored.sql"),
    &[
        ColumnType::Id,
        ColumnType::Text,
        ColumnType::Number,
        ColumnType::Time,
        ColumnType::Text,
        ColumnType::Text,
        ColumnType::Integer,
    ],
    Planning::Probing,
);

static NEIGHBOURS: Template = Template::new(
    include_str!("../../../sql/queries/neighbours.sql"),
    &[ColumnType::Id, ColumnType::Boolean, ColumnType::Id, ColumnType::Text],
    Planning::Probing,
);

static EDGES_INTO: Template = Template::new(
    include_str!("../../../sql/queries/distributed/edges_into.sql"),
    &[ColumnType::Id, ColumnType::Boolean, ColumnType::Id, ColumnType::Text],
    Planning::EachTime,
);

static EDGES_OUT_OF: Template = Template::new(
    include_str!("../../../sql/queries/distributed/edges_out_of.sql"),
    &[ColumnType::Id, ColumnType::Boolean, ColumnType::Id, ColumnType::Text],
    Planning::EachTime,
);

static CHILDREN: Template = Template::new(
    include_str!("../../../sql/queries/children.sql"),
    &[
        ColumnType::Integer,
        ColumnType::Id,
        ColumnType::Text,
        ColumnType::Number,
        ColumnType::Time,
        ColumnType::Text,
        ColumnType::Text,
        ColumnType::Integer,
        ColumnType::Text,
    ],
    Planning::Probing,
);

static MISSING_CHILDREN: Template = Template::new(
    include_str!("../../../sql/queries/missing_children.sql"),
    &[ColumnType::Integer, ColumnType::Id, ColumnType::Text],
    Planning::Probing,
);

static TURNS: Template = Template::new(
    include_str!("../../../sql/queries/turns.sql"),
    &[
        ColumnType::Id,
        ColumnType::Text,
        ColumnType::Text,
        ColumnType::Text,
        ColumnType::Number,
        ColumnType::Integer,
        ColumnType::Integer,
        ColumnType::Number,
        ColumnType::Number,
        ColumnType::Number,
        ColumnType::Time,
        ColumnType::Text,
        ColumnType::Integer,
    ],
    Planning::Probing,
);

static EDGES: Template = Template::new(
    include_str!("../../../sql/queries/edges.sql"),
    &[ColumnType::Id, ColumnType::Id],
    Planning::Once,
);

static CONTENT_CHARS: Template = Template::new(
    include_str!("../../../sql/queries/content_chars.sql"),
    &[ColumnType::Integer],
    Planning::Probing,
);

static MESSAGES: Template = Template::new(
    include_str!("../../../sql/queries/messages.sql"),
    &[
        ColumnType::Id,
        ColumnType::Text,
        ColumnType::Integer,
        ColumnType::Text,
        ColumnType::Integer,
        ColumnType::Time,
    ],
    Planning::Probing,
);

static BEGINNINGS: Template = Template::new(
    include_str!("../../../sql/queries/beginnings.sql"),
    &[ColumnType::Id, ColumnType::Text],
    Planning::Probing,
);

static TURN_IDS: Template = Template::new(
    include_str!("../../../sql/queries/turn_ids.sql"),
    &[ColumnType::Id, ColumnType::Time],
    Planning::Once,
);

static EDGE_PAIRS: Template = Template::new(
    include_str!("../../../sql/queries/edge_pairs.sql"),
    &[ColumnType::Id, ColumnType::Id],
    Planning::Once,
);

/// The bound graph, read on the caller's snapshot with the caller's rights.
pub struct PgStore<'a> {
    graph: &'a Graph,
    caller: &'a Caller,
    needs: Needs,
    neighbours: BatchStatement,
    scored: BatchStatement,
    turns: BatchStatement,
    /// Rows of turns so far.
    turns_read: u64,
}

impl<'a> PgStore<'a> {
    /// A store over this graph for this caller, for policies that need so much.
    pub fn new(graph: &'a Graph, caller: &'a Caller, needs: Needs) -> Self {
        let [neighbours, scored, turns] = [&NEIGHBOURS, &SCORED, &TURNS]
            .map(|template| BatchStatement::new(graph.kept(template, needs)));
        PgStore { graph, caller, needs, neighbours, scored, turns, turns_read: 0 }
    }

    /// How many characters the contents of these turns have together; `None` where none is stored.
    ///
    /// # Errors
    /// 55000 when the role changed; the caller needs SELECT on the column.
    pub fn content_chars(&self, ids: &[TurnId]) -> Result<Option<i64>, SqlError> {
        let mut chars = None;
        self.ask(
            &self.graph.kept(&CONTENT_CHARS, Needs::default()),
            &[Argument::Ids(ids)],
            |row| {
                chars = row.i64(0);
                ControlFlow::Continue(())
            },
        )?;
        Ok(chars)
    }

    /// What a model is shown of these turns.
    ///
    /// # Errors
    /// 54000 when contents and payloads are longer than [`MAX_CONTENTS_BYTES`] together; 55000 when the role changed.
    /// The caller needs SELECT on the columns of the content and the payload.
    pub fn messages(&self, ids: &[TurnId]) -> Result<HashMap<TurnId, Message>, SqlError> {
        let mut texts = FittingTexts::default();
        self.read_messages(ids, true, &mut texts)?;
        Ok(texts.read.into_iter().map(|(id, (message, _))| (id, message)).collect())
    }

    /// As [`PgStore::messages`], of as many as fit in [`MAX_CONTENTS_BYTES`]: first what was read of them before, then
    /// the first ones. What did not fit before is left out.
    ///
    /// # Errors
    /// As [`PgStore::messages`], but not when they are too long.
    pub fn read_what_fits(&self, ids: &[TurnId], texts: &mut FittingTexts) -> Result<(), SqlError> {
        let wanted: HashSet<TurnId> = ids.iter().copied().collect();
        texts.read.retain(|id, _| wanted.contains(id));
        let is_new = |id: &TurnId| !texts.read.contains_key(id) && !texts.left_out.contains(id);
        let new: Vec<TurnId> = ids.iter().copied().filter(is_new).collect();
        self.read_messages(&new, false, texts)
    }

    /// Adds what is read of these turns.
    fn read_messages(
        &self,
        ids: &[TurnId],
        is_whole: bool,
        texts: &mut FittingTexts,
    ) -> Result<(), SqlError> {
        let before = texts.read.values().map(|(_, bytes)| bytes).sum();
        let mut left = MAX_CONTENTS_BYTES.checked_sub(before);
        let mut longest = (0, None);
        self.ask(&self.graph.kept(&MESSAGES, Needs::default()), &[Argument::Ids(ids)], |row| {
            let known = [2, 4].map(|column| row.i64(column).map_or(0, |bytes| bytes as usize));
            let take = |left: Option<usize>, bytes| left.and_then(|left| left.checked_sub(bytes));
            let before = left;
            left = known.into_iter().fold(left, take);
            // A payload that is too long to be written out is read as an empty text. What is known to be is not read.
            let is_empty = |payload: Option<&str>| payload.is_some_and(str::is_empty);
            let is_too_long = left.is_some() && row.text(3, is_empty);
            let bytes = if is_too_long { usize::MAX } else { known.into_iter().sum() };
            longest = longest.max((bytes, row.id(0)));
            if left.is_none() || is_too_long {
                if is_whole {
                    left = None;
                    return ControlFlow::Break(());
                }
                left = before;
                texts.left_out.extend(row.id(0));
                return ControlFlow::Continue(());
            }
            let text = |column| row.text(column, |text| text.map(str::to_owned));
            let (content, payload) = (text(1), text(3));
            // Values of type json keep their spelling, and may be what no jsonb is: then their text is the value.
            let payload = match self.graph.has_json_payloads() {
                true => payload.map(|json| {
                    let text = jsonb_text(&json, usize::MAX, &check_interrupts);
                    text.unwrap_or_else(|| json_text(&json))
                }),
                false => payload,
            };
            // Texts that are computed may be of another length than what is stored, and are longer as JSON.
            let content_bytes = content.as_ref().map_or(0, |text| escaped_bytes(text.as_bytes()));
            let read = [content_bytes, payload.as_ref().map_or(0, String::len)];
            longest = longest.max((read.into_iter().sum(), row.id(0)));
            let more = read.into_iter().zip(known).map(|(read, known)| read.saturating_sub(known));
            left = more.fold(left, take);
            if left.is_none() && !is_whole {
                left = before;
                texts.left_out.extend(row.id(0));
                return ControlFlow::Continue(());
            }
            let message = Message { content, payload, created_at: row.time(5) };
            let taken = before.unwrap_or(0).saturating_sub(left.unwrap_or(0));
            texts.read.extend(row.id(0).map(|id| (id, (message, taken))));
            if left.is_some() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        match (left, longest) {
            (Some(_), _) => Ok(()),
            (None, (bytes, Some(id))) => {
                let has = match bytes {
                    usize::MAX => "whose payload is too long to be written out".to_owned(),
                    bytes => format!("with {bytes} bytes of content and payload, or more as JSON"),
                };
                Err(contents_too_long().hint(format!(
                    "Use a smaller max_nodes or max_tokens. The longest turn read is {id}, {has}."
                )))
            }
            (None, _) => Err(contents_too_long()),
        }
    }

    /// The beginnings of the contents of these turns, of at most so many characters, where there are any.
    ///
    /// # Errors
    /// 55000 when the role changed. The caller needs SELECT on the content's column.
    pub fn beginnings(
        &self,
        ids: &[TurnId],
        chars: i32,
    ) -> Result<HashMap<TurnId, String>, SqlError> {
        let mut beginnings = HashMap::with_capacity(ids.len());
        self.ask(
            &self.graph.kept(&BEGINNINGS, Needs::default()),
            &[Argument::Ids(ids), Argument::Number(chars.into())],
            |row| {
                let text = row.text(1, |text| text.map(str::to_owned));
                beginnings.extend(row.id(0).zip(text));
                ControlFlow::Continue(())
            },
        )?;
        Ok(beginnings)
    }

    /// The snapshot of the whole graph.
    ///
    /// # Errors
    /// 55000 when the role changed.
    pub fn snapshot(&self) -> Result<GraphSnapshot, SqlError> {
        let mut snapshot = SnapshotBuilder::default();
        self.ask(&self.graph.kept(&TURN_IDS, Needs::default()), &[], |row| {
            if let Some(id) = row.id(0) {
                snapshot.turn(id, row.time(1).map_or(0, unix_seconds));
            }
            ControlFlow::Continue(())
        })?;
        self.ask(&self.graph.kept(&EDGE_PAIRS, Needs::default()), &[], |row| {
            if let (Some(parent), Some(child)) = (row.id(0), row.id(1)) {
                snapshot.edge(parent, child);
            }
            ControlFlow::Continue(())
        })?;
        Ok(snapshot.finish())
    }

    /// The edges of these turns, from each source of edges by itself: Citus joins nothing that it has put in different
    /// places, and a union asks all servers.
    fn edges(
        &self,
        template: &Template,
        of: &[TurnId],
        sink: Sink<'_, (TurnId, Neighbour)>,
    ) -> Result<ControlFlow<()>, SqlError> {
        let mut flow = ControlFlow::Continue(());
        for statement in self.graph.of_each_source(template, self.needs) {
            if of.is_empty() || flow.is_break() {
                break;
            }
            self.ask(&statement, &[Argument::Ids(of)], |row| {
                let edge = row.id(0).zip(neighbour(&row));
                flow = edge.map_or(ControlFlow::Continue(()), &mut *sink);
                flow
            })?;
        }
        Ok(flow)
    }

    /// Each edge out of these turns, with the index of its turn and the turns that exist of its child: first the edges
    /// are read, then the children.
    ///
    /// # Errors
    /// 54000 where they are more than are held in memory; 55000 when the role changed.
    fn children_by_edges(
        &mut self,
        of: &[TurnId],
        mut sink: impl FnMut(usize, ChildEdge, &[ScoredTurn]) -> ControlFlow<()>,
    ) -> Result<(), SqlError> {
        let places: HashMap<TurnId, usize> =
            of.iter().enumerate().map(|(place, id)| (*id, place)).collect();
        let mut edges: Vec<(ChildEdge, usize)> = Vec::new();
        let whole = self.edges(&EDGES_OUT_OF, of, &mut |(parent, edge)| {
            if let (Neighbour::Child(edge), Some(place)) = (edge, places.get(&parent)) {
                edges.push((edge, *place));
            }
            if edges.len() > MAX_IDS { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        if whole.is_break() {
            return Err(SliceError::<SqlError>::TooManyIds(MAX_IDS).into());
        }
        edges.sort_unstable_by_key(|(edge, place)| (edge.child, *place));
        let mut left = &edges[..];
        while !left.is_empty() {
            check_interrupts();
            let mut asked: Vec<TurnId> = Vec::new();
            let fits = |(edge, _): &&(ChildEdge, usize)| {
                if asked.last() != Some(&edge.child) {
                    asked.push(edge.child);
                }
                asked.len() <= CHILDREN_ASKED
            };
            let count = left.iter().take_while(fits).count();
            asked.truncate(CHILDREN_ASKED);
            let mut found: HashMap<TurnId, Vec<ScoredTurn>> = HashMap::new();
            self.scored(&asked, &mut |turn| {
                found.entry(turn.id).or_default().push(turn);
                ControlFlow::Continue(())
            })?;
            let (now, later) = left.split_at(count);
            for (edge, place) in now {
                let turns = found.get(&edge.child).map_or(&[][..], Vec::as_slice);
                if sink(*place, *edge, turns).is_break() {
                    return Ok(());
                }
            }
            left = later;
        }
        Ok(())
    }

    fn ask(
        &self,
        statement: &Statement,
        arguments: &[Argument<'_>],
        sink: impl FnMut(Row) -> ControlFlow<()>,
    ) -> Result<(), SqlError> {
        self.caller.check_role()?;
        query(statement, arguments, sink);
        Ok(())
    }
}

impl Drop for PgStore<'_> {
    fn drop(&mut self) {
        statistics::count_read(self.turns_read);
    }
}

impl GraphStore for PgStore<'_> {
    type Error = SqlError;

    fn scored(&mut self, ids: &[TurnId], sink: Sink<'_, ScoredTurn>) -> Result<(), SqlError> {
        self.caller.check_role()?;
        let needs = self.needs;
        let read = &mut self.turns_read;
        self.scored.ask([ids, &[]], |row| {
            *read += 1;
            scored_turn(&row, 0, needs).map_or(ControlFlow::Continue(()), &mut *sink)
        });
        Ok(())
    }

    fn neighbours(
        &mut self,
        parents_of: &[TurnId],
        children_of: &[TurnId],
        sink: Sink<'_, (TurnId, Neighbour)>,
    ) -> Result<(), SqlError> {
        if self.graph.is_distributed() {
            let flow = self.edges(&EDGES_INTO, parents_of, &mut *sink)?;
            let asked = if flow.is_break() { &[] } else { children_of };
            return self.edges(&EDGES_OUT_OF, asked, sink).map(drop);
        }
        self.caller.check_role()?;
        self.neighbours.ask([parents_of, children_of], |row| {
            let turn = row.id(0).zip(neighbour(&row));
            turn.map_or(ControlFlow::Continue(()), &mut *sink)
        });
        Ok(())
    }

    fn children(
        &mut self,
        of: &[TurnId],
        sink: Sink<'_, (usize, ScoredTurn, EdgeType)>,
    ) -> Result<(), SqlError> {
        if self.graph.is_distributed() {
            return self.children_by_edges(of, |position, edge, turns| {
                let mut found = turns.iter().map(|turn| sink((position, *turn, edge.edge_type)));
                found.find(ControlFlow::is_break).unwrap_or(ControlFlow::Continue(()))
            });
        }
        let mut read = 0;
        let asked =
            self.ask(&self.graph.kept(&CHILDREN, self.needs), &[Argument::Ids(of)], |row| {
                read += 1;
                let edge_type = row.text(8, EdgeType::from_stored);
                let turn = scored_turn(&row, 1, self.needs);
                turn.map_or(ControlFlow::Continue(()), |turn| {
                    sink((position(&row), turn, edge_type))
                })
            });
        self.turns_read += read;
        asked
    }

    fn missing_children(
        &mut self,
        of: &[TurnId],
        sink: Sink<'_, (usize, ChildEdge)>,
    ) -> Result<(), SqlError> {
        if self.graph.is_distributed() {
            return self.children_by_edges(of, |position, edge, turns| match turns {
                [] => sink((position, edge)),
                _ => ControlFlow::Continue(()),
            });
        }
        self.ask(&self.graph.kept(&MISSING_CHILDREN, self.needs), &[Argument::Ids(of)], |row| {
            let edge_type = row.text(2, EdgeType::from_stored);
            let edge = row.id(1).map(|child| ChildEdge { child, edge_type });
            edge.map_or(ControlFlow::Continue(()), |edge| sink((position(&row), edge)))
        })
    }

    fn turns(&mut self, ids: &[TurnId], sink: Sink<'_, (Turn, TurnFacts)>) -> Result<(), SqlError> {
        self.caller.check_role()?;
        let needs = self.needs;
        let read = &mut self.turns_read;
        self.turns.ask([ids, &[]], |row| {
            *read += 1;
            turn(&row).map_or(ControlFlow::Continue(()), |turn| {
                let micros = row.time(10).map_or(0, unix_micros);
                let facts = needs.facts_of(&turn, micros, tokens(&row, 12));
                sink((turn, facts))
            })
        });
        Ok(())
    }

    fn check_interrupts(&mut self) {
        check_interrupts();
    }
}

/// How many edges are held in memory at once, and how many children are asked for by one statement.
const MAX_IDS: usize = 1_000_000;
const CHILDREN_ASKED: usize = 10_000;

/// What a model is shown of a turn.
pub struct Message {
    /// Its content; `None` where none is stored.
    pub content: Option<String>,
    /// The message as the application stores it, as the text of a jsonb; `None` where none is stored.
    pub payload: Option<String>,
    /// When it was created, in microseconds since 2000; `None` where that is not stored.
    pub created_at: Option<i64>,
}

/// What is read of the turns of one slice after the other.
#[derive(Default)]
pub struct FittingTexts {
    /// What was read of those of the last slice, with its bytes.
    read: HashMap<TurnId, (Message, usize)>,
    /// Those that did not fit.
    pub left_out: BTreeSet<TurnId>,
}

impl FittingTexts {
    /// Takes what was read of a turn.
    pub fn take(&mut self, id: TurnId) -> Option<Message> {
        self.read.remove(&id).map(|(message, _)| message)
    }
}

/// Column 0 as the index of the id it belongs to: `WITH ORDINALITY` counts from 1.
fn position(row: &Row) -> usize {
    row.i64(0).map_or(0, |ordinality| ordinality as usize - 1)
}

/// Columns 1 to 3 of sql/queries/neighbours.sql.
fn neighbour(row: &Row) -> Option<Neighbour> {
    let other = row.id(2)?;
    let edge_type = row.text(3, EdgeType::from_stored);
    Some(match row.bool(1) {
        Some(true) => Neighbour::Parent(ParentEdge { parent: other, edge_type }),
        _ => Neighbour::Child(ChildEdge { child: other, edge_type }),
    })
}

/// Seven columns: id (NULL where there is no turn), phase, salience, and what is NULL where it is not needed.
fn scored_turn(row: &Row, first: usize, needs: Needs) -> Option<ScoredTurn> {
    let id = row.id(first)?;
    let phase = row.text(first + 1, Phase::from_stored);
    let scoring = TurnFacts::scoring(phase, unit_interval(row.f64(first + 2)));
    let tokens = tokens(row, first + 6);
    if !needs.facts {
        return Some(ScoredTurn { id, facts: TurnFacts { tokens, ..scoring } });
    }
    let session = |name: Option<&str>| SessionKey::of(name.unwrap_or_default());
    let facts = TurnFacts {
        created_at: row.time(first + 3).map_or(0, unix_seconds),
        micros: row.time(first + 3).map_or(0, unix_micros),
        session: if needs.sessions { row.text(first + 4, session) } else { SessionKey::default() },
        is_tool: row.text(first + 5, Role::from_stored) == Role::Tool,
        tokens,
        ..scoring
    };
    Some(ScoredTurn { id, facts })
}

/// A column of tokens, which are in the range of an integer; 0 where they are not needed.
fn tokens(row: &Row, column: usize) -> u32 {
    row.i64(column).map_or(0, |tokens| tokens as u32)
}

/// The first twelve columns of sql/queries/turns.sql.
fn turn(row: &Row) -> Option<Turn> {
    let id = row.id(0)?;
    row.text(1, |session_id| {
        let session_id = session_id.map(|name| bounded_name(name, &check_interrupts));
        let session_id = session_id.as_deref();
        row.text(2, |role| {
            row.text(3, |phase| {
                row.text(11, |content_hash| {
                    Some(Turn::from(StoredTurn {
                        id,
                        session_id,
                        role,
                        phase,
                        salience: row.f64(4),
                        trajectory_depth: row.i64(5),
                        trajectory_sibling_order: row.i64(6),
                        trajectory_homogeneity: row.f64(7),
                        trajectory_temporal: row.f64(8),
                        trajectory_complexity: row.f64(9),
                        created_at: row.time(10).map(unix_seconds),
                        content_hash,
                    }))
                })
            })
        })
    })
}

/// Every edge of the graph, in no order.
pub fn all_edges(graph: &Graph, mut sink: impl FnMut(TurnId, TurnId) -> ControlFlow<()>) {
    query(&graph.kept(&EDGES, Needs::default()), &[], |row| match (row.id(0), row.id(1)) {
        (Some(parent), Some(child)) => sink(parent, child),
        _ => ControlFlow::Continue(()),
    });
}
