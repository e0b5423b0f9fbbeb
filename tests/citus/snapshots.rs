//! While other connections write: what is attested is of one state, and what Citus reads is never attested.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use postgres::Client;

use crate::cluster::Cluster;
use crate::common::tell;
use crate::subtrees::{self, Generations, ROOT, Reading, SUBTREES};

/// How many slices each test takes, unless `GRAPH_KERNEL_CITUS_SLICES` says another number.
const SLICES: usize = 300;

/// Reaches every turn there is.
const POLICY: &str = r#"{"max_nodes": 1000, "max_radius": 100}"#;

// Tables in the order in which writers lock them.
const DISTRIBUTE: &str =
    "SELECT create_distributed_table('memory_turn_edges', 'parent_turn_id', colocate_with => 'none');
     SELECT create_distributed_table('memory_turns', 'id', colocate_with => 'none')";

const UNDISTRIBUTE: &str =
    "SELECT undistribute_table('memory_turn_edges'); SELECT undistribute_table('memory_turns')";

/// How many of the slices were attested, read by Citus, mixed, or refused.
#[derive(Default)]
struct Seen {
    attested: usize,
    distributed: usize,
    mixed: usize,
    refused: usize,
    states: HashSet<Generations>,
}

/// Takes slices at the root; an attested one must be of one state.
fn slices(client: &mut Client, name: &str) -> Seen {
    let number = std::env::var("GRAPH_KERNEL_CITUS_SLICES");
    let number = number.map_or(SLICES, |number| number.parse().expect("a number"));
    let mut seen = Seen::default();
    for _ in 0..number {
        let statement = "SELECT graph_slice($1, $2::text::slice_policy)::text";
        let Ok(row) = client.query_one(statement, &[&ROOT, &POLICY]) else {
            seen.refused += 1;
            continue;
        };
        let text: &str = row.get(0);
        let is_attested = text.contains(r#""status":"attested""#);
        assert!(is_attested || text.contains(r#""status":"distributed""#), "{text}");
        seen.attested += usize::from(is_attested);
        seen.distributed += usize::from(!is_attested);
        match Reading::of_export(text).generations() {
            Ok(state) => {
                seen.states.insert(state);
            }
            Err(mixed) => {
                assert!(!is_attested, "an attested slice is mixed: {mixed}");
                seen.mixed += 1;
            }
        }
    }
    let Seen { attested, distributed, mixed, refused, .. } = &seen;
    tell(&format!(
        "citus: {name}: {attested} slices attested, {distributed} distributed, of which {mixed} mix states, {refused} \
         refused; {} states",
        seen.states.len()
    ));
    seen
}

/// Takes slices while each subtree is written by a connection of its own; that of the first distributes the tables, or
/// takes them back, each time after this many writes.
fn while_all_write(name: &str, distribute: bool, toggled_after: Option<i64>) -> Seen {
    let cluster = Cluster::new(&format!("citus_snapshots_{name}"));
    let mut first = cluster.database.connect();
    subtrees::build(&mut first);
    if distribute {
        first.batch_execute(DISTRIBUTE).unwrap();
    }
    let mut client = cluster.database.connect();
    let stop = AtomicBool::new(false);
    let [written, repeated] = [AtomicUsize::new(0), AtomicUsize::new(0)];
    let write = |subtree: u64| {
        let mut writer = cluster.database.connect();
        let mut layouts = [DISTRIBUTE, UNDISTRIBUTE].into_iter().cycle();
        // Citus may cancel one of several writers, and a table may be gone that one waits for.
        let mut until_done = |act: &dyn Fn(&mut Client) -> Result<(), postgres::Error>| {
            while !stop.load(Ordering::Relaxed) && act(&mut writer).is_err() {
                repeated.fetch_add(1, Ordering::Relaxed);
                writer.batch_execute("ROLLBACK").unwrap();
            }
        };
        for generation in 1.. {
            if stop.load(Ordering::Relaxed) {
                return;
            }
            until_done(&|writer| subtrees::try_advance(writer, subtree, generation));
            written.fetch_add(1, Ordering::Relaxed);
            if subtree == 1 && toggled_after.is_some_and(|writes| generation % writes == 0) {
                let layout = layouts.next().unwrap();
                until_done(&|writer| writer.batch_execute(layout));
            }
        }
    };
    let seen = thread::scope(|scope| {
        SUBTREES.for_each(|subtree| {
            drop(scope.spawn({
                let write = &write;
                move || write(subtree)
            }))
        });
        let seen =
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| slices(&mut client, name)));
        stop.store(true, Ordering::Relaxed);
        seen.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    });
    let [written, repeated] = [written.into_inner(), repeated.into_inner()];
    tell(&format!("citus: {name}: 4 writers, {written} transactions, {repeated} times repeated"));
    assert!(written > 40);
    assert!(repeated == 0 || distribute || toggled_after.is_some());
    seen
}

#[test]
fn slices_of_tables_of_the_coordinator_are_attested_and_see_one_state() {
    let seen = while_all_write("local", false, None);
    assert_eq!((seen.distributed, seen.mixed, seen.refused), (0, 0, 0));
    assert!(seen.states.len() > 20, "{} states", seen.states.len());
}

#[test]
fn slices_of_distributed_tables_may_mix_states_and_are_not_attested() {
    let seen = while_all_write("distributed", true, None);
    assert_eq!((seen.attested, seen.refused), (0, 0));
}

/// The tables are replaced by others of their names meanwhile, and a call may find none.
#[test]
fn no_attested_slice_mixes_states_while_tables_become_distributed() {
    let seen = while_all_write("toggled", false, Some(4));
    assert!(seen.attested > 0 && seen.distributed > 0);
}
