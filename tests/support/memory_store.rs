//! A graph store in memory.

use std::collections::HashMap;
use std::convert::Infallible;

use kernel::graph::edge::{Edge, EdgeType};
use kernel::graph::facts::TurnFacts;
use kernel::graph::turn::{Turn, TurnId};
use kernel::policy::needs::Needs;
use kernel::slicing::store::{ChildEdge, GraphStore, Neighbour, ParentEdge, ScoredTurn, Sink};

use crate::data::Graph;

/// A [`GraphStore`] over rows as they were given: ids may repeat, edges may repeat and dangle.
///
/// It answers in storage order, or shuffled differently at every call.
pub struct MemoryStore {
    turns: Vec<Turn>,
    edges: Vec<Edge>,
    /// Positions in `turns` and `edges`.
    turns_by_id: HashMap<TurnId, Vec<usize>>,
    edges_by_child: HashMap<TurnId, Vec<usize>>,
    edges_by_parent: HashMap<TurnId, Vec<usize>>,
    shuffle: Option<fastrand::Rng>,
    /// Of the turns that have any.
    tokens: HashMap<TurnId, u32>,
    /// Of the turns whose times are not whole seconds.
    micros: HashMap<TurnId, i64>,
}

impl MemoryStore {
    /// A store that answers in storage order.
    #[must_use]
    pub fn new(graph: Graph) -> Self {
        let Graph { turns, edges } = graph;
        MemoryStore {
            turns_by_id: positions(turns.iter().map(|turn| turn.id)),
            edges_by_child: positions(edges.iter().map(|edge| edge.child)),
            edges_by_parent: positions(edges.iter().map(|edge| edge.parent)),
            turns,
            edges,
            shuffle: None,
            tokens: HashMap::new(),
            micros: HashMap::new(),
        }
    }

    /// The same store, with these tokens.
    #[must_use]
    pub fn with_tokens(mut self, tokens: HashMap<TurnId, u32>) -> Self {
        self.tokens = tokens;
        self
    }

    /// The same store, with these times in microseconds since 1970; of other turns the seconds count.
    #[must_use]
    pub fn with_micros(mut self, micros: HashMap<TurnId, i64>) -> Self {
        self.micros = micros;
        self
    }

    fn facts(&self, turn: &Turn) -> TurnFacts {
        let needs = Needs { facts: true, tokens: true, sessions: true, anchor: false };
        let seconds = || turn.created_at.saturating_mul(1_000_000);
        let micros = self.micros.get(&turn.id).copied().unwrap_or_else(seconds);
        needs.facts_of(turn, micros, self.tokens.get(&turn.id).copied().unwrap_or(0))
    }

    fn scored_turn(&self, turn: &Turn) -> ScoredTurn {
        ScoredTurn { id: turn.id, facts: self.facts(turn) }
    }

    /// The same store, answering in an order that the seed decides.
    #[must_use]
    pub fn shuffled(mut self, seed: u64) -> Self {
        self.shuffle = Some(fastrand::Rng::with_seed(seed));
        self
    }

    fn rows(&self, id: TurnId) -> impl Iterator<Item = (usize, &Turn)> {
        at(&self.turns_by_id, id).map(|position| (position, &self.turns[position]))
    }

    /// Gives rows, each with its storage position, to the sink until it has enough.
    fn answer<T>(
        &mut self,
        mut rows: Vec<(usize, T)>,
        sink: Sink<'_, T>,
    ) -> Result<(), Infallible> {
        match &mut self.shuffle {
            Some(random) => random.shuffle(&mut rows),
            None => rows.sort_by_key(|(position, _)| *position),
        }
        for (_, row) in rows {
            if sink(row).is_break() {
                break;
            }
        }
        Ok(())
    }
}

fn positions(ids: impl Iterator<Item = TurnId>) -> HashMap<TurnId, Vec<usize>> {
    let mut positions: HashMap<TurnId, Vec<usize>> = HashMap::new();
    for (position, id) in ids.enumerate() {
        positions.entry(id).or_default().push(position);
    }
    positions
}

fn at(positions: &HashMap<TurnId, Vec<usize>>, id: TurnId) -> impl Iterator<Item = usize> {
    positions.get(&id).into_iter().flatten().copied()
}

impl GraphStore for MemoryStore {
    type Error = Infallible;

    fn scored(&mut self, ids: &[TurnId], sink: Sink<'_, ScoredTurn>) -> Result<(), Infallible> {
        let rows = ids.iter().flat_map(|id| self.rows(*id));
        let rows = rows.map(|(at, turn)| (at, self.scored_turn(turn))).collect();
        self.answer(rows, sink)
    }

    fn neighbours(
        &mut self,
        parents_of: &[TurnId],
        children_of: &[TurnId],
        sink: Sink<'_, (TurnId, Neighbour)>,
    ) -> Result<(), Infallible> {
        let mut rows = Vec::new();
        for child in parents_of {
            rows.extend(at(&self.edges_by_child, *child).map(|position| {
                let Edge { parent, edge_type, .. } = self.edges[position];
                (position, (*child, Neighbour::Parent(ParentEdge { parent, edge_type })))
            }));
        }
        for parent in children_of {
            rows.extend(at(&self.edges_by_parent, *parent).map(|position| {
                let Edge { child, edge_type, .. } = self.edges[position];
                (position, (*parent, Neighbour::Child(ChildEdge { child, edge_type })))
            }));
        }
        self.answer(rows, sink)
    }

    fn children(
        &mut self,
        of: &[TurnId],
        sink: Sink<'_, (usize, ScoredTurn, EdgeType)>,
    ) -> Result<(), Infallible> {
        let mut rows = Vec::new();
        for (index, parent) in of.iter().enumerate() {
            for position in at(&self.edges_by_parent, *parent) {
                let Edge { child, edge_type, .. } = self.edges[position];
                rows.extend(
                    self.rows(child)
                        .map(|(_, turn)| (position, (index, self.scored_turn(turn), edge_type))),
                );
            }
        }
        self.answer(rows, sink)
    }

    fn missing_children(
        &mut self,
        of: &[TurnId],
        sink: Sink<'_, (usize, ChildEdge)>,
    ) -> Result<(), Infallible> {
        let mut rows = Vec::new();
        for (index, parent) in of.iter().enumerate() {
            for position in at(&self.edges_by_parent, *parent) {
                let Edge { child, edge_type, .. } = self.edges[position];
                if self.rows(child).next().is_none() {
                    rows.push((position, (index, ChildEdge { child, edge_type })));
                }
            }
        }
        self.answer(rows, sink)
    }

    fn turns(
        &mut self,
        ids: &[TurnId],
        sink: Sink<'_, (Turn, TurnFacts)>,
    ) -> Result<(), Infallible> {
        let rows = ids.iter().flat_map(|id| self.rows(*id));
        let rows = rows.map(|(at, turn)| (at, (turn.clone(), self.facts(turn)))).collect();
        self.answer(rows, sink)
    }
}
