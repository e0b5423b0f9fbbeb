//! Verification in parallel workers.

use postgres::Client;

use crate::cluster::Cluster;
use crate::graph::{install, rotate, slice, text};
use crate::secret_file;

/// A table of exports, half of them edited, and settings that leave all work to workers.
fn prepare(client: &mut Client) {
    let mut exports = vec![slice(client)];
    rotate(client);
    exports.push(slice(client));
    exports.extend(exports.clone().iter().map(|export| export.replace("planning", "synthesis")));
    client
        .batch_execute(
            "CREATE TABLE public.exports (export json NOT NULL);
             SET max_parallel_workers_per_gather = 2;
             SET parallel_leader_participation = off;
             SET parallel_setup_cost = 0;
             SET parallel_tuple_cost = 0;
             SET min_parallel_table_scan_size = 0",
        )
        .unwrap();
    let insert = "INSERT INTO public.exports
                  SELECT e::json FROM unnest($1::text[]) AS e, generate_series(1, 25)";
    client.execute(insert, &[&exports]).unwrap();
    client.batch_execute("ANALYZE public.exports").unwrap();
}

fn assert_runs_in_workers(client: &mut Client, statement: &str) {
    let explain = format!("EXPLAIN (ANALYZE, COSTS off, TIMING off) {statement}");
    let plan: Vec<String> =
        client.query(&explain, &[]).unwrap().iter().map(|row| row.get(0)).collect();
    let launched = plan.iter().any(|line| {
        line.trim().strip_prefix("Workers Launched: ").is_some_and(|count| count != "0")
    });
    assert!(launched, "{plan:#?}");
}

fn verifies_in_workers(client: &mut Client) {
    prepare(client);
    let admissible = "
        SELECT count(*)::text FROM public.exports
        WHERE graph_is_admissible(export, '00000000-0000-4000-8000-000000000003')";
    assert_runs_in_workers(client, admissible);
    assert_eq!(text(client, admissible), "50");

    force_parallel(client);
    let verified = "SELECT count(*) FILTER (WHERE v.reason = 'ok') || ' ' || count(*)
                    FROM public.exports, graph_verify(export) AS v";
    assert_runs_in_workers(client, verified);
    assert_eq!(text(client, verified), "50 100");
}

/// Has whatever may run in a worker run in one.
fn force_parallel(client: &mut Client) {
    let name = "SELECT name FROM pg_settings
                WHERE name IN ('force_parallel_mode', 'debug_parallel_query')";
    let name = text(client, name);
    client.batch_execute(&format!("SET {name} = on")).unwrap();
}

#[test]
fn parallel_workers_verify_with_the_keys_of_the_database() {
    let cluster = Cluster::start("");
    let mut client = cluster.client();
    install(&mut client);
    verifies_in_workers(&mut client);
}

#[test]
fn parallel_workers_verify_with_the_key_file() {
    let cluster = Cluster::start("");
    install(&mut cluster.client());
    secret_file::use_root(&cluster, &secret_file::random(32));
    verifies_in_workers(&mut cluster.client());
}

#[test]
fn slicing_stays_with_the_leader() {
    let cluster = Cluster::start("");
    let mut client = cluster.client();
    install(&mut client);
    force_parallel(&mut client);
    // A worker would not see that its leader has written.
    client.batch_execute("BEGIN; UPDATE public.memory_turns SET salience_score = 1").unwrap();
    let export = slice(&mut client);
    assert!(export.contains(r#""status":"uncommitted""#), "{export}");
}
