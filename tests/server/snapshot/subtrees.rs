//! A graph of which every part shows the state it belongs to: a root that stays, and four subtrees,
//! each written by one connection. The rows of a subtree follow from its generation number.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use kernel::graph::turn::TurnId;
use postgres::{Client, GenericClient, Row};

use crate::common::export::read_export;

pub const SUBTREES: RangeInclusive<u64> = 1..=4;
pub const ROOT: TurnId = turn(0, 0);
/// What readers add to the root in transactions of their own.
pub const ADDED_BY_READER: [TurnId; 2] = [turn(9, 0), turn(9, 1)];

/// The generation of each subtree.
pub type Generations = [i64; 4];

type Edge = (TurnId, TurnId, String);

/// Turns of a subtree that stay; in each generation two more come and go together.
const STAYING: u64 = 8;

const fn turn(subtree: u64, number: u64) -> TurnId {
    TurnId::from_u64_pair(subtree, number)
}

/// The turn at the top of a subtree, a child of the root.
pub fn head(subtree: u64) -> TurnId {
    turn(subtree, 0)
}

/// The subtree a turn belongs to.
fn subtree_of(id: TurnId) -> u64 {
    id.as_u64_pair().0
}

/// The two turns that are in a subtree in this generation and not in the four after it.
fn replaced_turns(subtree: u64, generation: i64) -> [TurnId; 2] {
    let first = 100 + 2 * (generation as u64 % 5);
    [turn(subtree, first), turn(subtree, first + 1)]
}

fn expected_turns(subtree: u64, generation: i64) -> BTreeSet<TurnId> {
    let staying = (0..STAYING).map(|number| turn(subtree, number));
    staying.chain(replaced_turns(subtree, generation)).collect()
}

fn expected_edges(subtree: u64, generation: i64) -> BTreeSet<Edge> {
    let edge_type = ["reply", "branch", "reference"][generation as usize % 3];
    let edge = |parent, child| (parent, child, edge_type.to_owned());
    // A binary tree below the head, the first replaced turn on one of its turns, the second on the first.
    let tree =
        (1..STAYING).map(|number| edge(turn(subtree, (number - 1) / 2), turn(subtree, number)));
    let [first, second] = replaced_turns(subtree, generation);
    let parent = turn(subtree, generation as u64 % STAYING);
    tree.chain([edge(ROOT, head(subtree)), edge(parent, first), edge(first, second)]).collect()
}

/// The root and all subtrees in generation 0.
pub fn build(client: &mut Client) {
    let mut script = format!("{};", insert_turns(&[ROOT].into(), 0));
    for subtree in SUBTREES {
        script += &format!(
            "{};{};",
            insert_turns(&expected_turns(subtree, 0), 0),
            insert_edges(&expected_edges(subtree, 0))
        );
    }
    client.batch_execute(&script).unwrap();
}

/// Takes a subtree from its last generation to this one, in one transaction: its edges and the turns of one generation
/// are replaced, the others updated.
pub fn advance(client: &mut Client, subtree: u64, generation: i64) {
    try_advance(client, subtree, generation).unwrap();
}

/// [`advance`], which can be repeated where it fails.
pub fn try_advance(
    client: &mut Client,
    subtree: u64,
    generation: i64,
) -> Result<(), postgres::Error> {
    let [first, last] = [turn(subtree, 0), turn(subtree, u64::MAX)];
    let [first_replaced, _] = replaced_turns(subtree, 0);
    client.batch_execute(&format!(
        "BEGIN;
         DELETE FROM public.memory_turn_edges
             WHERE child_turn_id BETWEEN '{first}' AND '{last}';
         DELETE FROM public.memory_turns WHERE id BETWEEN '{first_replaced}' AND '{last}';
         UPDATE public.memory_turns SET created_at = to_timestamp({generation})
             WHERE id BETWEEN '{first}' AND '{last}';
         {};
         {};
         COMMIT",
        insert_turns(&replaced_turns(subtree, generation).into(), generation),
        insert_edges(&expected_edges(subtree, generation)),
    ))
}

/// Adds one of [`ADDED_BY_READER`] as a child of the root.
pub fn add_turn_of_reader(client: &mut impl GenericClient, number: usize) {
    let added = ADDED_BY_READER[number];
    let edge = (ROOT, added, "reply".to_owned());
    client
        .batch_execute(&format!(
            "{};{}",
            insert_turns(&[added].into(), 0),
            insert_edges(&[edge].into())
        ))
        .unwrap();
}

fn insert_turns(turns: &BTreeSet<TurnId>, generation: i64) -> String {
    let rows: Vec<String> =
        turns.iter().map(|id| format!("('{id}', to_timestamp({generation}))")).collect();
    let rows = rows.join(", ");
    format!("INSERT INTO public.memory_turns (id, created_at) VALUES {rows}")
}

fn insert_edges(edges: &BTreeSet<Edge>) -> String {
    let rows: Vec<String> = edges
        .iter()
        .map(|(parent, child, edge_type)| format!("('{parent}', '{child}', '{edge_type}')"))
        .collect();
    let rows = rows.join(", ");
    format!("INSERT INTO public.memory_turn_edges VALUES {rows}")
}

/// The whole graph as a reader saw it.
pub struct Reading {
    turns: Vec<(TurnId, i64)>,
    edges: Vec<Edge>,
}

impl Reading {
    /// From the text of `graph_slice`.
    pub fn of_export(text: &str) -> Self {
        let export = read_export(text);
        let turns = export.turns.iter();
        let edges = export.edges.into_iter();
        Reading {
            turns: turns.map(|turn| (turn.id, turn.created_at)).collect(),
            edges: edges.map(|edge| (edge.parent, edge.child, edge.edge_type)).collect(),
        }
    }

    /// From rows with columns named as those of `graph_slice_turns` and `graph_slice_edges`.
    pub fn of_rows(turns: &[Row], edges: &[Row]) -> Self {
        let turn = |row: &Row| (row.get("turn_id"), row.get("created_at"));
        let edge = |row: &Row| (row.get("parent"), row.get("child"), row.get("edge_type"));
        Reading { turns: turns.iter().map(turn).collect(), edges: edges.iter().map(edge).collect() }
    }

    /// The turns of [`ADDED_BY_READER`] in it.
    pub fn added_by_reader(&self) -> Vec<TurnId> {
        let ids = self.turns.iter().map(|(id, _)| *id);
        ids.filter(|id| ADDED_BY_READER.contains(id)).collect()
    }

    /// The generation of each subtree; panics when parts of several states are mixed.
    pub fn one_state(&self) -> Generations {
        self.generations().unwrap_or_else(|mixed| panic!("{mixed}"))
    }

    /// The generation of each subtree, or what is mixed.
    pub fn generations(&self) -> Result<Generations, String> {
        let mut generations = [0; 4];
        for (generation, subtree) in generations.iter_mut().zip(SUBTREES) {
            *generation = self.generation(subtree)?;
        }
        Ok(generations)
    }

    fn generation(&self, subtree: u64) -> Result<i64, String> {
        let of_subtree = || self.turns.iter().filter(|(id, _)| subtree_of(*id) == subtree);
        let Some((_, generation)) = of_subtree().next() else {
            return Err(format!("subtree {subtree} is missing"));
        };
        if let Some((id, other)) = of_subtree().find(|(_, other)| other != generation) {
            return Err(format!(
                "subtree {subtree} is of generation {generation}, its turn {id} of {other}"
            ));
        }
        let turns: BTreeSet<TurnId> = of_subtree().map(|(id, _)| *id).collect();
        same(&turns, &expected_turns(subtree, *generation), subtree)?;
        let edges = self.edges.iter();
        let edges = edges.filter(|(_, child, _)| subtree_of(*child) == subtree);
        let expected = expected_edges(subtree, *generation);
        same(&edges.cloned().collect(), &expected, subtree)?;
        Ok(*generation)
    }
}

fn same<T: Ord + std::fmt::Debug>(
    found: &BTreeSet<T>,
    expected: &BTreeSet<T>,
    subtree: u64,
) -> Result<(), String> {
    let Some(odd) = found.symmetric_difference(expected).next() else {
        return Ok(());
    };
    let what = if found.contains(odd) { "too many" } else { "missing" };
    Err(format!("subtree {subtree} is mixed: {odd:?} is {what}"))
}

mod tests {
    use super::{BTreeSet, Reading, SUBTREES, expected_edges, expected_turns};

    fn reading(turns: [i64; 4], edges: [i64; 4]) -> Reading {
        let stamped = |(subtree, generation)| {
            let ids: BTreeSet<_> = expected_turns(subtree, generation);
            ids.into_iter().map(move |id| (id, generation))
        };
        let edges_of = |(subtree, generation)| expected_edges(subtree, generation);
        Reading {
            turns: SUBTREES.zip(turns).flat_map(stamped).collect(),
            edges: SUBTREES.zip(edges).flat_map(edges_of).collect(),
        }
    }

    #[test]
    fn a_whole_state_is_recognised() {
        let whole = reading([7, 1, 0, 12], [7, 1, 0, 12]);
        assert_eq!(whole.generations(), Ok([7, 1, 0, 12]));
    }

    #[test]
    fn edges_of_another_generation_are_caught() {
        // 22 has the replaced turns and the edge types of 7; only the parent of the replaced turns is another.
        for other in [6, 8, 9, 12, 22] {
            let mixed = reading([7, 7, 7, 7], [7, 7, other, 7]);
            assert!(mixed.generations().is_err(), "edges of generation {other}");
        }
    }

    #[test]
    fn one_turn_of_another_generation_is_caught() {
        let mut mixed = reading([7; 4], [7; 4]);
        mixed.turns[30].1 = 8;
        assert!(mixed.generations().is_err());
    }

    #[test]
    fn a_missing_turn_and_a_missing_edge_are_caught() {
        let mut without_turn = reading([7; 4], [7; 4]);
        without_turn.turns.pop();
        assert!(without_turn.generations().is_err());
        let mut without_edge = reading([7; 4], [7; 4]);
        without_edge.edges.pop();
        assert!(without_edge.generations().is_err());
    }
}
