//! How many statements a slice starts.

mod common;

use std::sync::mpsc::channel;

use common::database::Database;
use postgres::error::DbError;

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

/// How many turns the slices of fifty anchors have, and the most statements that one of them starts.
fn sliced(database: &Database) -> (i64, usize) {
    let (sender, plans) = channel();
    let note = move |notice: DbError| {
        if notice.message().starts_with("duration: ") {
            let _ = sender.send(());
        }
    };
    let mut client = database.server.connect_noting(&database.name, note);
    client
        .batch_execute(
            "LOAD 'auto_explain';
             SET auto_explain.log_min_duration = 0;
             SET auto_explain.log_nested_statements = on;
             SET auto_explain.log_level = notice",
        )
        .unwrap();
    let (mut turns, mut most) = (0, 0);
    for n in (100..5000).step_by(100) {
        plans.try_iter().for_each(drop);
        let slice = "SELECT json_array_length(graph_slice(turn($1)) -> 'turns')::bigint";
        turns += client.query_one(slice, &[&n]).unwrap().get::<_, i64>(0);
        // The statement that calls the function is none of the slice's.
        most = most.max(plans.try_iter().count() - 1);
    }
    (turns, most)
}

#[test]
fn a_slice_of_a_chain_starts_at_most_thirty_statements() {
    let (turns, statements) = sliced(&graph("statements_chain", "ARRAY[n - 1]"));
    assert_eq!(turns, 49 * 21);
    assert!((1..=30).contains(&statements), "{statements}");
}

#[test]
fn a_slice_of_a_dense_graph_starts_at_most_sixty_statements() {
    let dense = graph("statements_dense", "ARRAY[n - 1 - n % 3, n - 1 - n * 7 % 29]");
    let (turns, statements) = sliced(&dense);
    assert_eq!(turns, 49 * 256);
    assert!((1..=60).contains(&statements), "{statements}");
}
