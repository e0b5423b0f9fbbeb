//! How many statements a slice starts, and how they are planned.

use std::sync::mpsc::channel;

use crate::common::database::Database;
use crate::common::shape::{Ids, Shape};
use crate::common::tell;
use postgres::error::{DbError, SqlState};

/// A graph of 5 000 turns; `parents` says which a turn has, by its number n.
fn graph(name: &str, parents: &str) -> Database {
    let database = Database::with_loose_tables(name);
    database
        .connect()
        .batch_execute(&format!(
            "CREATE FUNCTION turn(n integer) RETURNS uuid LANGUAGE sql IMMUTABLE
                 RETURN md5(n::text)::uuid;
             INSERT INTO memory_turns (id, salience_score)
                 SELECT turn(n), n % 97 / 97.0 FROM generate_series(1, 5000) AS n;
             INSERT INTO memory_turn_edges (parent_turn_id, child_turn_id, edge_type)
                 SELECT DISTINCT turn(greatest(parent, 1)), turn(n), 'reply'
                 FROM generate_series(2, 5000) AS n, unnest({parents}) AS parent;
             ANALYZE memory_turns, memory_turn_edges"
        ))
        .unwrap();
    database
}

/// A slice: how many turns it has, and the plans of the statements that it started.
type Sliced = (i64, Vec<String>);

/// The slices of fifty anchors; `None` where the server has no auto_explain.
fn slices(database: &Database) -> Option<Vec<Sliced>> {
    let (sender, plans) = channel();
    let note = move |notice: DbError| {
        if notice.message().starts_with("duration: ") {
            let _ = sender.send(notice.message().to_owned());
        }
    };
    let mut client = database.server.connect_noting(&database.name, note);
    if let Err(error) = client.batch_execute("LOAD 'auto_explain'") {
        assert_eq!(error.code(), Some(&SqlState::UNDEFINED_FILE), "{error:?}");
        tell("SKIPPED: the statements of a slice: the server has no auto_explain");
        return None;
    }
    client
        .batch_execute(
            "SET auto_explain.log_min_duration = 0;
             SET auto_explain.log_nested_statements = on;
             SET auto_explain.log_level = notice",
        )
        .unwrap();
    let mut slice = |n: i32| {
        plans.try_iter().for_each(drop);
        let slice = "SELECT json_array_length(graph_slice(turn($1)) -> 'turns')::bigint";
        let turns = client.query_one(slice, &[&n]).unwrap().get(0);
        // The statement that calls the function is none of the slice's, and the last to end.
        let mut plans: Vec<String> = plans.try_iter().collect();
        plans.pop();
        (turns, plans)
    };
    Some((100..5000).step_by(100).map(&mut slice).collect())
}

fn turns(slices: &[Sliced]) -> i64 {
    slices.iter().map(|(turns, _)| turns).sum()
}

/// The most statements that a slice started.
fn statements(slices: &[Sliced]) -> usize {
    slices.iter().map(|(_, plans)| plans.len()).max().unwrap_or(0)
}

#[test]
fn a_slice_of_a_chain_starts_at_most_thirty_statements() {
    let Some(slices) = slices(&graph("statements_chain", "ARRAY[n - 1]")) else { return };
    assert_eq!(turns(&slices), 49 * 21);
    assert!((1..=30).contains(&statements(&slices)), "{}", statements(&slices));
}

#[test]
fn a_slice_of_a_dense_graph_starts_at_most_sixty_statements() {
    let dense = graph("statements_dense", "ARRAY[n - 1 - n % 3, n - 1 - n * 7 % 29]");
    let Some(slices) = slices(&dense) else { return };
    assert_eq!(turns(&slices), 49 * 256);
    assert!((1..=60).contains(&statements(&slices)), "{}", statements(&slices));
}

#[test]
fn a_slice_probes_indexes_though_the_average_turn_has_very_many_children() {
    // Turn 1 has nearly all children, and so has the average of those that have any.
    let hub = graph("statements_hub", "ARRAY[CASE WHEN n % 50 = 0 THEN n - 50 ELSE 1 END]");
    let Some(slices) = slices(&hub) else { return };
    let expected = turns(&slices);
    assert!(expected > 49 * 20);
    check_probes(&slices, "memory_turn", "");
    // In the tables of an application as well, where ids are expressions, without and with statistics.
    for ids in [Ids::Uuid, Ids::Text, Ids::Parts] {
        let shape = Shape { ids, parents: true, expressions: false, partitions: false };
        shape.bind(&mut hub.connect());
        for analyze in ["", "ANALYZE app.messages, app.left_over"] {
            hub.connect().batch_execute(analyze).unwrap();
            let Some(slices) = self::slices(&hub) else { return };
            assert_eq!(turns(&slices), expected, "{shape:?}");
            let function = if ids == Ids::Uuid { "" } else { "public.graph_turn_id" };
            check_probes(&slices, "app", function);
        }
    }
}

/// Every plan over a table finds its rows by an index, on this function of a column where one is named.
fn check_probes(slices: &[Sliced], table: &str, function: &str) {
    let condition = format!("Index Cond: {function}");
    let plans = slices.iter().flat_map(|(_, plans)| plans);
    let plans: Vec<&String> = plans.filter(|plan| plan.contains(table)).collect();
    assert!(plans.len() >= 2 * 49, "{}", plans.len());
    for plan in plans {
        let scans = plan.matches("Index Scan").count() + plan.matches("Index Only Scan").count();
        let others = ["Seq Scan", "Bitmap", "Memoize"].iter().any(|node| plan.contains(node));
        let conditions = plan.replace('(', "").matches(&condition).count();
        assert!(scans > 0 && scans == conditions && !others, "{plan}");
    }
}
