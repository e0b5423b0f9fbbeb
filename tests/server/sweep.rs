//! Every function of the extension, called with every odd value of its arguments' types: an answer or a clear error,
//! never an internal error, and never the end of the server's process.

use crate::common::calls::{ANCHOR, functions, values};
use crate::common::database::Database;
use crate::common::tell;
use postgres::Client;
use postgres::error::SqlState;

/// How many calls with random values are made for each function and role.
const RANDOM_CALLS: usize = 40;

/// What is wrong with the answer to a call, which changes nothing.
fn fault(client: &mut Client, call: &str, is_procedure: bool) -> Option<String> {
    // A procedure commits, and cannot within a transaction.
    let (begin, end) = if is_procedure { ("", "") } else { ("BEGIN", "ROLLBACK") };
    client.batch_execute(begin).unwrap();
    let result = client.batch_execute(call);
    if client.is_closed() {
        return Some(format!("{call}: the connection is lost"));
    }
    if let Err(error) = client.batch_execute(end) {
        return Some(format!("{call}: afterwards {error:?}"));
    }
    let error = result.err()?;
    let code = error.code().cloned()?;
    let is_internal = code.code().starts_with("XX") || code == SqlState::QUERY_CANCELED;
    is_internal.then(|| format!("{call}: {} {error:?}", code.code()))
}

#[test]
fn no_function_answers_with_an_internal_error() {
    let database = Database::with_tables("sweep");
    let mut admin = database.connect();
    for statement in [
        format!(
            "SELECT graph_kernel.create_recorder_table(), graph_kernel.create_trace_table('public');
             INSERT INTO memory_turns (id, content_text) VALUES ('{ANCHOR}', 'anchor');
             INSERT INTO memory_turns (id, session_id, content_text) SELECT gen_random_uuid(), 's', 'x' \
             FROM generate_series(1, 50);
             INSERT INTO memory_turn_edges (parent_turn_id, child_turn_id) SELECT '{ANCHOR}', id FROM memory_turns \
             WHERE id <> '{ANCHOR}'"
        ),
        "DROP ROLE IF EXISTS gk_test_sweep; CREATE ROLE gk_test_sweep LOGIN;
         GRANT SELECT ON ALL TABLES IN SCHEMA public TO gk_test_sweep"
            .to_owned(),
        format!("CREATE TABLE kept AS SELECT graph_slice('{ANCHOR}') AS slice; GRANT SELECT ON kept TO gk_test_sweep"),
    ] {
        admin.batch_execute(&statement).unwrap();
    }
    let functions = functions(&mut admin);
    assert!(functions.len() > 100, "{} functions", functions.len());
    let mut random = fastrand::Rng::with_seed(7);
    let (mut calls, mut faults) = (0, Vec::new());
    for role in ["postgres", "gk_test_sweep"] {
        let mut config = postgres::Config::new();
        config
            .host_path(&database.server.socket)
            .port(database.server.port)
            .user(role)
            .dbname(&database.name);
        let connect = || {
            let mut client = config.connect(postgres::NoTls).unwrap();
            client
                .batch_execute("SET statement_timeout = '20s'; SET client_min_messages = error")
                .unwrap();
            client
        };
        let mut client = connect();
        for function in &functions {
            let values: Vec<_> = function.kinds.iter().map(|kind| values(kind)).collect();
            let good: Vec<String> = values.iter().map(|(good, _)| good.clone()).collect();
            let mut tried = vec![function.call(&good)];
            for (n, (_, odd)) in values.iter().enumerate() {
                for value in odd {
                    let mut arguments = good.clone();
                    arguments[n].clone_from(value);
                    tried.push(function.call(&arguments));
                }
            }
            if values.len() > 1 {
                for _ in 0..RANDOM_CALLS {
                    let arguments: Vec<String> = values
                        .iter()
                        .map(|(_, odd)| odd[random.usize(..odd.len())].clone())
                        .collect();
                    tried.push(function.call(&arguments));
                }
            }
            for call in tried {
                calls += 1;
                faults.extend(fault(&mut client, &call, function.is_procedure));
                if client.is_closed() {
                    client = connect();
                }
            }
        }
    }
    tell(&format!("sweep: {calls} calls of {} functions", functions.len()));
    assert!(
        faults.is_empty(),
        "{} faults:\n{}",
        faults.len(),
        faults[..faults.len().min(20)].join("\n")
    );
    database.drop_role("gk_test_sweep");
}
