//! Four readers slice while writers move the graph between states: each slice is that of one committed state.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use postgres::error::SqlState;
use postgres::{Client, IsolationLevel, Row, Statement};

use crate::cluster::{Cluster, catch_up};
use crate::common::export::without_claims;
use crate::common::tell;
use crate::graph::{reason, text};
use crate::states::{ANCHORS, GRAPHS, STATES, Writer, id, put, set_up};
use crate::{CONFIGURATION, Share};

const READERS: u64 = 4;
const WRITERS: u64 = 2;

/// The second reaches every turn there is.
const POLICIES: [&str; 4] = [
    "default",
    r#"{"max_nodes": 1000, "max_radius": 1000, "distance_decay": 1}"#,
    "focused",
    r#"{"version": "slice_policy_v2", "max_tokens": 800, "keep_tool_results": true}"#,
];
const WHOLE: usize = 1;

/// What else changes while readers read.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Change {
    /// Rows alone.
    Rows,
    /// The names of the tables of two graphs.
    Names,
    /// Which of two graphs is bound.
    Binding,
    /// The key that signs.
    Keys,
    /// Whether a partition is attached.
    Partitions,
}

/// A set of states, one bit each.
type StateSet = u32;

const fn only(state: i32) -> StateSet {
    1 << state
}

/// A partition's absence makes another state.
const WITHOUT_PARTITION: u32 = STATES as u32;

fn rows_of(states: StateSet) -> StateSet {
    (states | states >> WITHOUT_PARTITION) & (only(STATES) - 1)
}

/// The exports of each state.
struct Expected {
    change: Change,
    /// The ids of [`ANCHORS`].
    anchors: Vec<String>,
    /// By policy, anchor and state.
    exports: Vec<Vec<Vec<String>>>,
}

impl Expected {
    /// Takes the slices of each state, one state after the other.
    fn prepare(client: &mut Client, change: Change) -> Self {
        let mut expected = Expected {
            change,
            anchors: ANCHORS.iter().map(|turn| id(client, *turn)).collect(),
            exports: vec![vec![Vec::new(); ANCHORS.len()]; POLICIES.len()],
        };
        expected.add_states(client);
        if change == Change::Partitions {
            client.batch_execute(DETACH).unwrap();
            expected.add_states(client);
            client.batch_execute(ATTACH).unwrap();
        }
        for exports in &expected.exports[WHOLE] {
            let mut different = exports.clone();
            different.sort();
            different.dedup();
            assert_eq!(different.len(), exports.len(), "states that cannot be told apart");
        }
        expected
    }

    fn add_states(&mut self, client: &mut Client) {
        let statement = client.prepare(SLICE).unwrap();
        for state in 0..STATES {
            put(client, GRAPHS[0], state);
            for (policy, by_anchor) in POLICIES.iter().zip(&mut self.exports) {
                for (anchor, by_state) in self.anchors.iter().zip(by_anchor) {
                    let row = client.query_one(&statement, &[anchor, policy]).unwrap();
                    let export: String = row.get(0);
                    by_state.push(compared(self.change, &export).to_owned());
                }
            }
        }
    }

    /// The states whose slice this is; panics when there is none.
    fn states(&self, anchor: usize, policy: usize, export: &str) -> StateSet {
        let export = compared(self.change, export);
        let known = &self.exports[policy][anchor];
        let states = (0..).zip(known).filter(|(_, known)| *known == export);
        let states = states.fold(0, |states, (state, _)| states | only(state));
        assert_ne!(
            states,
            0,
            "{:?}: a slice by {} of no state, {}",
            self.change,
            POLICIES[policy],
            difference(known, export)
        );
        states
    }
}

/// The part of an export that is compared: all of it, unless keys or bindings change.
fn compared(change: Change, export: &str) -> &str {
    match change {
        Change::Binding | Change::Keys => without_claims(export),
        Change::Rows | Change::Names | Change::Partitions => export,
    }
}

/// How an export differs from the known one that it agrees with longest.
fn difference(known: &[String], export: &str) -> String {
    let agreement =
        |known: &str| known.bytes().zip(export.bytes()).take_while(|(a, b)| a == b).count();
    let (state, nearest) =
        known.iter().enumerate().max_by_key(|(_, known)| agreement(known)).unwrap();
    let start = agreement(nearest).saturating_sub(100);
    let around = |text: &str| {
        let end = (start + 300).min(text.len());
        String::from_utf8_lossy(&text.as_bytes()[start..end]).into_owned()
    };
    format!("nearest to {state}, at {start}:\n{}\nand not\n{}", around(export), around(nearest))
}

const SLICE: &str = "SELECT graph_slice($1::text::uuid, $2::text::slice_policy)::text";
const SLICES: &str = "SELECT anchor_turn_id::text, slice::text FROM graph_slices($1::text[]::uuid[], \
    $2::text::slice_policy)";
const PAIR: &str = "
    SELECT graph_slice($1::text::uuid, $2::text::slice_policy)::text,
           (SELECT state FROM soak.position WHERE turns = 'public.memory_turns'::regclass),
           graph_slice($3::text::uuid, $4::text::slice_policy)::text";

const SWAP: &str = "
    BEGIN;
    SET LOCAL lock_timeout = '2s';
    LOCK TABLE public.memory_turns, public.memory_turn_edges, public.memory_turns_aside, public.memory_turn_edges_aside;
    ALTER TABLE public.memory_turns RENAME TO memory_turns_kept;
    ALTER TABLE public.memory_turns_aside RENAME TO memory_turns;
    ALTER TABLE public.memory_turns_kept RENAME TO memory_turns_aside;
    ALTER TABLE public.memory_turn_edges RENAME TO memory_turn_edges_kept;
    ALTER TABLE public.memory_turn_edges_aside RENAME TO memory_turn_edges;
    ALTER TABLE public.memory_turn_edges_kept RENAME TO memory_turn_edges_aside;
    COMMIT";
const DETACH: &str = "ALTER TABLE public.memory_turns DETACH PARTITION public.memory_turns_extra";
const DETACH_CONCURRENTLY: &str =
    "ALTER TABLE public.memory_turns DETACH PARTITION public.memory_turns_extra CONCURRENTLY";
const ATTACH: &str = "ALTER TABLE public.memory_turns ATTACH PARTITION public.memory_turns_extra FOR \
    VALUES IN ('extra')";

/// Makes a change of this kind. Which one depends on how many there were.
fn make_change(client: &mut Client, change: Change, count: u32) {
    let statement = match change {
        Change::Rows => return,
        Change::Names => SWAP.to_owned(),
        Change::Binding => {
            let graph = GRAPHS[(count % 2) as usize];
            format!(
                "SELECT graph_kernel.bind_tables('public.memory_turns{graph}', 'public.memory_turn_edges{graph}')"
            )
        }
        Change::Keys => "SELECT graph_kernel.rotate_key()".to_owned(),
        Change::Partitions => {
            [DETACH, ATTACH, DETACH_CONCURRENTLY, ATTACH][(count % 4) as usize].to_owned()
        }
    };
    if let Err(error) = client.batch_execute(&statement) {
        assert_eq!(error.code(), Some(&SqlState::LOCK_NOT_AVAILABLE), "{statement}: {error:?}");
        client.batch_execute("ROLLBACK").unwrap();
    }
}

/// What readers have done together.
#[derive(Default)]
struct Counts {
    slices: AtomicU64,
    pairs: AtomicU64,
    /// Statements that PostgreSQL asked to repeat.
    retries: AtomicU64,
    moves: AtomicU64,
    changes: AtomicU64,
    seen: AtomicU32,
    /// Whether a thread has failed.
    failed: AtomicBool,
}

impl Counts {
    /// Whether there was something to mix up.
    fn are_enough(&self) -> bool {
        self.seen.load(Ordering::Relaxed).count_ones() > 1 && self.pairs.load(Ordering::Relaxed) > 0
    }
}

/// One of the readers.
struct Reader<'a> {
    client: Client,
    slice: Statement,
    slices: Statement,
    pair: Statement,
    expected: &'a Expected,
    counts: &'a Counts,
    random: fastrand::Rng,
}

impl<'a> Reader<'a> {
    fn new(mut client: Client, expected: &'a Expected, counts: &'a Counts, seed: u64) -> Self {
        let level = ["read committed", "repeatable read"][(seed % 2) as usize];
        client.batch_execute(&format!("SET default_transaction_isolation = '{level}'")).unwrap();
        let [slice, slices, pair] =
            [SLICE, SLICES, PAIR].map(|statement| client.prepare(statement).unwrap());
        let random = fastrand::Rng::with_seed(seed);
        Reader { client, slice, slices, pair, expected, counts, random }
    }

    /// Reads in one way or another.
    fn read(&mut self) {
        let result = match self.random.u8(..8) {
            0..3 => self.single(),
            3 => self.batch(),
            4 | 5 => self.pair_in_statement(),
            6 => self.pair_in_transaction(),
            _ => self.batch_in_transaction(),
        };
        match result {
            Ok(states) => {
                self.counts.seen.fetch_or(states, Ordering::Relaxed);
            }
            Err(error) => {
                let repeatable =
                    [SqlState::T_R_SERIALIZATION_FAILURE, SqlState::T_R_DEADLOCK_DETECTED];
                let detail = error.as_db_error().and_then(|error| error.detail());
                let is_repeatable = error.code().is_some_and(|code| repeatable.contains(code))
                    || (detail == Some("TABLES_CHANGED")
                        && matches!(self.expected.change, Change::Binding | Change::Partitions));
                assert!(is_repeatable, "{:?}: {error:?}", self.expected.change);
                self.counts.retries.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    fn any(&mut self) -> (usize, usize) {
        (self.random.usize(..ANCHORS.len()), self.random.usize(..POLICIES.len()))
    }

    fn single(&mut self) -> Result<StateSet, postgres::Error> {
        let (anchor, policy) = self.any();
        let row = self
            .client
            .query_one(&self.slice, &[&self.expected.anchors[anchor], &POLICIES[policy]])?;
        let export: &str = row.get(0);
        self.counts.slices.fetch_add(1, Ordering::Relaxed);
        let verifies = matches!(self.expected.change, Change::Binding | Change::Keys);
        if verifies && self.random.u8(..10) == 0 {
            let reason = reason(&mut self.client, export);
            let other = self.expected.change == Change::Binding && reason == "other_graph";
            assert!(reason == "ok" || other, "{:?}: {reason}", self.expected.change);
        }
        Ok(self.expected.states(anchor, policy, export))
    }

    fn batch(&mut self) -> Result<StateSet, postgres::Error> {
        let policy = self.random.usize(..POLICIES.len());
        let rows = self.client.query(&self.slices, &[&self.expected.anchors, &POLICIES[policy]])?;
        Ok(self.of_batch(policy, &rows))
    }

    /// The states that all slices of a batch are of.
    fn of_batch(&self, policy: usize, rows: &[Row]) -> StateSet {
        assert_eq!(rows.len(), ANCHORS.len());
        let mut common = StateSet::MAX;
        for (anchor, row) in rows.iter().enumerate() {
            assert_eq!(row.get::<_, &str>(0), self.expected.anchors[anchor]);
            let states = self.expected.states(anchor, policy, row.get(1));
            common &= states;
            assert_ne!(common, 0, "{:?}: a batch mixes states", self.expected.change);
        }
        self.counts.slices.fetch_add(rows.len() as u64, Ordering::Relaxed);
        common
    }

    /// The states that both are of; panics when there is none.
    fn same_state(&self, first: StateSet, second: StateSet, what: &str) -> StateSet {
        let both = match self.expected.change {
            // The binding is read as it was committed last, not as the snapshot has it.
            Change::Binding => second,
            // An attached partition is shown to calls whose snapshot is older: only the rows are of one state.
            Change::Partitions => {
                let rows = rows_of(first) & rows_of(second);
                second & (rows | rows << WITHOUT_PARTITION)
            }
            Change::Rows | Change::Names | Change::Keys => first & second,
        };
        assert_ne!(
            both, 0,
            "{:?}: {what} of states {first:b} and {second:b}",
            self.expected.change
        );
        both
    }

    fn pair_in_statement(&mut self) -> Result<StateSet, postgres::Error> {
        let ((a, p), (b, q)) = (self.any(), self.any());
        let anchors = &self.expected.anchors;
        let row = self
            .client
            .query_one(&self.pair, &[&anchors[a], &POLICIES[p], &anchors[b], &POLICIES[q]])?;
        let first = self.expected.states(a, p, row.get(0));
        let second = self.expected.states(b, q, row.get(2));
        self.counts.slices.fetch_add(2, Ordering::Relaxed);
        self.counts.pairs.fetch_add(1, Ordering::Relaxed);
        let both = self.same_state(first, second, "a pair in a statement");
        // Of which graph the position was, is not known where the graph changes.
        if matches!(self.expected.change, Change::Rows | Change::Keys) {
            let position = only(row.get(1));
            return Ok(self.same_state(both, position, "a pair and a row beside it"));
        }
        Ok(both)
    }

    fn pair_in_transaction(&mut self) -> Result<StateSet, postgres::Error> {
        let ((a, p), (b, q)) = (self.any(), self.any());
        let pause = self.random.u64(..20);
        let anchors = &self.expected.anchors;
        let mut transaction = repeatable_read(&mut self.client)?;
        let first = transaction.query_one(&self.slice, &[&anchors[a], &POLICIES[p]])?;
        thread::sleep(Duration::from_millis(pause));
        let second = transaction.query_one(&self.slice, &[&anchors[b], &POLICIES[q]])?;
        transaction.commit()?;
        let first = self.expected.states(a, p, first.get(0));
        let second = self.expected.states(b, q, second.get(0));
        self.counts.slices.fetch_add(2, Ordering::Relaxed);
        self.counts.pairs.fetch_add(1, Ordering::Relaxed);
        Ok(self.same_state(first, second, "a pair in a transaction"))
    }

    fn batch_in_transaction(&mut self) -> Result<StateSet, postgres::Error> {
        let ((a, p), (_, q)) = (self.any(), self.any());
        let anchors = &self.expected.anchors;
        let mut transaction = repeatable_read(&mut self.client)?;
        let rows = transaction.query(&self.slices, &[anchors, &POLICIES[q]])?;
        let single = transaction.query_one(&self.slice, &[&anchors[a], &POLICIES[p]])?;
        transaction.commit()?;
        let single = self.expected.states(a, p, single.get(0));
        self.counts.slices.fetch_add(1, Ordering::Relaxed);
        self.counts.pairs.fetch_add(1, Ordering::Relaxed);
        let batch = self.of_batch(q, &rows);
        Ok(self.same_state(batch, single, "a batch and a slice in a transaction"))
    }
}

fn repeatable_read(client: &mut Client) -> Result<postgres::Transaction<'_>, postgres::Error> {
    client.build_transaction().isolation_level(IsolationLevel::RepeatableRead).start()
}

/// Repeats `body` until the time is over and readers have seen what they need, or another thread has failed.
fn repeat(share: Share, counts: &Counts, mut body: impl FnMut()) {
    struct Report<'a>(&'a AtomicBool);
    impl Drop for Report<'_> {
        fn drop(&mut self) {
            if thread::panicking() {
                self.0.store(true, Ordering::Relaxed);
            }
        }
    }
    let report = Report(&counts.failed);
    while !(report.0.load(Ordering::Relaxed) || share.is_over() && counts.are_enough()) {
        body();
    }
}

/// Readers on `read`, writers on `written`, and changes of this kind.
fn run(written: &Cluster, read: &Cluster, expected: &Expected, share: Share) {
    let counts = Counts::default();
    let change = expected.change;
    let graphs = match change {
        Change::Names | Change::Binding => &GRAPHS[..],
        _ => &GRAPHS[..1],
    };
    thread::scope(|scope| {
        let counts = &counts;
        for seed in 0..READERS {
            let mut reader = Reader::new(read.client(), expected, counts, seed);
            scope.spawn(move || repeat(share, counts, || reader.read()));
        }
        for seed in 0..WRITERS {
            let mut writer = Writer::new(written.client(), 100 + seed);
            let mut turn = seed as usize;
            scope.spawn(move || {
                repeat(share, counts, || {
                    turn += 1;
                    writer.advance(graphs[turn % graphs.len()]);
                    counts.moves.fetch_add(1, Ordering::Relaxed);
                    writer.pause(10);
                });
            });
        }
        let mut client = written.client();
        scope.spawn(move || {
            let mut count = 0;
            repeat(share, counts, || {
                make_change(&mut client, change, count);
                count += 1;
                counts.changes.fetch_add(1, Ordering::Relaxed);
                thread::sleep(Duration::from_millis(fastrand::u64(5..60)));
            });
            // As it was, for whoever comes next.
            if change == Change::Partitions && count % 2 == 1 {
                client.batch_execute(ATTACH).unwrap();
            }
        });
    });
    let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    let seen = counts.seen.load(Ordering::Relaxed).count_ones();
    let [slices, pairs, retries] = [&counts.slices, &counts.pairs, &counts.retries].map(count);
    let place = if std::ptr::eq(written, read) { "" } else { " on a standby" };
    let changes = if change == Change::Rows { 0 } else { count(&counts.changes) };
    tell(&format!(
        "snapshots{place}, {change:?}: {slices} slices of {seen} states, {pairs} pairs, {} moves, {changes} changes, \
        {retries} retries",
        count(&counts.moves)
    ));
}

/// A cluster with the graph; deadlocks are found late, since no reader may be ended for one.
fn primary(change: Change) -> (Cluster, Expected) {
    let configuration =
        format!("{}\ndeadlock_timeout = 10s\nautovacuum_naptime = 5s\n", CONFIGURATION);
    let cluster = Cluster::start(&configuration);
    let mut client = cluster.client();
    set_up(&mut client, change == Change::Partitions);
    let expected = Expected::prepare(&mut client, change);
    (cluster, expected)
}

/// Takes one of so many parts of the time.
fn check(change: Change, share: Share, parts: u32) {
    let (cluster, expected) = primary(change);
    run(&cluster, &cluster, &expected, share.part(parts));
}

#[test]
fn slices_are_of_one_state_while_rows_change() {
    check(Change::Rows, Share::begin(4), 1);
}

#[test]
fn slices_are_of_one_state_while_names_bindings_and_keys_change() {
    let share = Share::begin(8);
    let changes = [Change::Names, Change::Binding, Change::Keys];
    for (change, left) in changes.into_iter().zip((1..=3).rev()) {
        check(change, share, left);
    }
}

#[test]
fn slices_are_of_one_state_while_partitions_come_and_go() {
    check(Change::Partitions, Share::begin(4), 1);
}

#[test]
fn slices_on_a_standby_are_of_one_state_while_it_replays() {
    let share = Share::begin(6);
    for (change, left) in [(Change::Rows, 2), (Change::Names, 1)] {
        let (cluster, expected) = primary(change);
        let standby = Cluster::standby_of(&cluster);
        catch_up(&mut cluster.client(), &mut standby.client());
        assert_eq!(text(&mut standby.client(), "SELECT pg_is_in_recovery()::text"), "true");
        run(&cluster, &standby, &expected, share.part(left));
    }
}
