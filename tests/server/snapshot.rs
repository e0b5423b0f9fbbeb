//! One call sees one snapshot: while four writers change the graph, no slice mixes two states.

mod subtrees;

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::database::Database;
use kernel::graph::turn::TurnId;
use postgres::{Client, IsolationLevel, Row};
use subtrees::{ADDED_BY_READER, Generations, ROOT, Reading, SUBTREES, head};

/// How long a test reads, and how long at most where the machine is slow.
const READING: Duration = Duration::from_secs(3);
const PATIENCE: Duration = Duration::from_secs(60);

/// A reader who saw fewer states could hardly mix them.
const STATES: usize = 20;

/// Reaches every turn there is.
const POLICY: &str = r#"{"max_nodes": 1000, "max_radius": 100}"#;

/// Runs `read` again and again while four connections change the graph, each its own subtree of it.
/// `read` panics when it sees a mixed state, and returns the state it saw.
fn while_writers_write(name: &str, mut read: impl FnMut(&mut Client) -> Generations) {
    let database = Database::with_tables(&format!("snapshot_{name}"));
    let mut client = database.connect();
    subtrees::build(&mut client);
    let mut states = HashSet::new();
    with_writers(&database, || {
        let start = Instant::now();
        while start.elapsed() < READING || states.len() < STATES {
            states.insert(read(&mut client));
            assert!(start.elapsed() < PATIENCE, "saw {} states", states.len());
        }
    });
}

fn with_writers(database: &Database, body: impl FnOnce()) {
    /// Stops the writers, also when the body panics.
    struct Stop<'a>(&'a AtomicBool);
    impl Drop for Stop<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        for subtree in SUBTREES {
            let mut client = database.connect();
            let stop = &stop;
            scope.spawn(move || {
                for generation in 1.. {
                    if stop.load(Ordering::Relaxed) {
                        break;
                    }
                    subtrees::advance(&mut client, subtree, generation);
                }
            });
        }
        let _stop = Stop(&stop);
        body();
    });
}

fn slice(client: &mut impl postgres::GenericClient) -> Reading {
    let row = client
        .query_one("SELECT graph_slice($1, $2::text::slice_policy)::text", &[&ROOT, &POLICY])
        .unwrap();
    Reading::of_export(row.get(0))
}

#[test]
fn a_slice_sees_one_state() {
    while_writers_write("slice", |client| slice(client).one_state());
}

#[test]
fn a_slice_joined_to_its_table_sees_one_state() {
    // Turns and edges come from two calls, the stored times and the count from the table itself.
    let statement = "
        SELECT s.turn_id, s.created_at, extract(epoch FROM t.created_at)::bigint AS stored,
               (SELECT count(*) FROM public.memory_turns) AS turns,
               NULL::uuid AS parent, NULL::uuid AS child, NULL AS edge_type
        FROM graph_slice_turns($1, $2::text::slice_policy) AS s
        LEFT JOIN public.memory_turns AS t ON t.id = s.turn_id
        UNION ALL
        SELECT NULL, NULL, NULL, NULL, e.parent, e.child, e.edge_type
        FROM graph_slice_edges($1, $2::text::slice_policy) AS e";
    while_writers_write("join", |client| {
        let rows = client.query(statement, &[&ROOT, &POLICY]).unwrap();
        let (turns, edges): (Vec<Row>, Vec<Row>) =
            rows.into_iter().partition(|row| row.get::<_, Option<TurnId>>("turn_id").is_some());
        for row in &turns {
            let stored: Option<i64> = row.get("stored");
            assert_eq!(stored, row.get("created_at"), "table and slice differ");
            assert_eq!(row.get::<_, i64>("turns"), turns.len() as i64);
        }
        Reading::of_rows(&turns, &edges).one_state()
    });
}

#[test]
fn slices_of_a_batch_see_the_same_state() {
    let anchors: Vec<TurnId> = std::iter::once(ROOT).chain(SUBTREES.map(head)).collect();
    while_writers_write("batch", |client| {
        let rows = client
            .query(
                "SELECT slice::text FROM graph_slices($1, $2::text::slice_policy)",
                &[&anchors, &POLICY],
            )
            .unwrap();
        the_same_state(rows.iter().map(|row| Reading::of_export(row.get(0))), 5)
    });
}

#[test]
fn slices_fetched_from_a_cursor_see_the_same_state() {
    let anchors: Vec<TurnId> = std::iter::once(ROOT).chain(SUBTREES.map(head)).collect();
    while_writers_write("cursor", |client| {
        let mut transaction = client.transaction().unwrap();
        // OFFSET 0 keeps the call in the select list, where it streams.
        let portal = transaction
            .bind(
                "SELECT (s).slice::text
                 FROM (SELECT graph_slices($1, $2::text::slice_policy) AS s OFFSET 0) AS q",
                &[&anchors, &POLICY],
            )
            .unwrap();
        let fetched = std::iter::from_fn(|| {
            let row = transaction.query_portal(&portal, 1).unwrap().pop()?;
            Some(Reading::of_export(row.get(0)))
        });
        the_same_state(fetched, 5)
    });
}

/// The state that all of these slices saw.
fn the_same_state(slices: impl Iterator<Item = Reading>, expected: usize) -> Generations {
    let states: Vec<Generations> = slices.map(|slice| slice.one_state()).collect();
    assert_eq!(states.len(), expected);
    assert!(
        states.windows(2).all(|pair| pair[0] == pair[1]),
        "one call saw several states: {states:?}"
    );
    states[0]
}

#[test]
fn a_slice_after_a_write_of_its_own_transaction_sees_one_state() {
    while_writers_write("own_write", |client| {
        let mut transaction = client.transaction().unwrap();
        subtrees::add_turn_of_reader(&mut transaction, 0);
        let first = slice(&mut transaction);
        assert_eq!(first.added_by_reader(), &ADDED_BY_READER[..1]);
        first.one_state();
        subtrees::add_turn_of_reader(&mut transaction, 1);
        let second = slice(&mut transaction);
        assert_eq!(second.added_by_reader(), &ADDED_BY_READER[..]);
        second.one_state()
    });
}

#[test]
fn slices_of_a_repeatable_read_transaction_see_the_same_state_and_their_own_writes() {
    while_writers_write("repeatable_read", |client| {
        let mut transaction = client
            .build_transaction()
            .isolation_level(IsolationLevel::RepeatableRead)
            .start()
            .unwrap();
        let before = slice(&mut transaction);
        assert!(before.added_by_reader().is_empty());
        subtrees::add_turn_of_reader(&mut transaction, 0);
        let after = slice(&mut transaction);
        assert_eq!(after.added_by_reader(), &ADDED_BY_READER[..1]);
        let state = before.one_state();
        assert_eq!(state, after.one_state());
        state
    });
}

/// That these tests can fail: a slice read in two statements is found to be mixed.
#[test]
fn turns_and_edges_read_in_two_statements_are_caught() {
    let database = Database::with_tables("snapshot_torn");
    let mut client = database.connect();
    subtrees::build(&mut client);
    with_writers(&database, || {
        let start = Instant::now();
        let mut read_mixed = || {
            let turns = client
                .query(
                    "SELECT id AS turn_id, extract(epoch FROM created_at)::bigint AS created_at
                     FROM public.memory_turns",
                    &[],
                )
                .unwrap();
            let edges = client
                .query(
                    "SELECT parent_turn_id AS parent, child_turn_id AS child, edge_type
                     FROM public.memory_turn_edges",
                    &[],
                )
                .unwrap();
            Reading::of_rows(&turns, &edges).generations().is_err()
        };
        while !read_mixed() {
            assert!(start.elapsed() < PATIENCE, "no mixed state was seen");
        }
    });
}
