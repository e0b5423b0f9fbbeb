//! Verification in parallel workers.

use postgres::Client;

use crate::cluster::Cluster;
use crate::graph::{install, rotate, slice, text};
use crate::secret_file;

/// Has whatever may run in a worker run in one; the setting's name depends on the server.
pub const FORCE_PARALLEL: &str = "
    SELECT set_config(name, 'on', false) FROM pg_settings
    WHERE name IN ('force_parallel_mode', 'debug_parallel_query')";

/// A table of exports, half of them edited.
fn store_exports(client: &mut Client) {
    let mut exports = vec![slice(client)];
    rotate(client);
    exports.push(slice(client));
    exports.extend(exports.clone().iter().map(|export| export.replace("planning", "synthesis")));
    client.batch_execute("CREATE TABLE public.exports (export json NOT NULL)").unwrap();
    let insert = "INSERT INTO public.exports
                  SELECT e::json FROM unnest($1::text[]) AS e, generate_series(1, 25)";
    client.execute(insert, &[&exports]).unwrap();
    client.batch_execute("ANALYZE public.exports").unwrap();
}

/// A session that leaves to workers what they can do.
fn delegating_session(cluster: &Cluster) -> Client {
    let mut client = cluster.client();
    client
        .batch_execute(
            "SET max_parallel_workers_per_gather = 2;
             SET parallel_leader_participation = off;
             SET parallel_setup_cost = 0;
             SET parallel_tuple_cost = 0;
             SET min_parallel_table_scan_size = 0",
        )
        .unwrap();
    client
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

const ADMISSIBLE: &str = "
    SELECT count(*)::text FROM public.exports
    WHERE graph_is_admissible(export, '00000000-0000-4000-8000-000000000003')";
const VERIFIED: &str = "
    SELECT count(*) FILTER (WHERE v.reason = 'ok') || ' ' || count(*)
    FROM public.exports, graph_verify(export) AS v";

/// In new sessions, where nothing but a worker has called the library yet, and once it is loaded.
fn verifies_in_workers(cluster: &Cluster) {
    store_exports(&mut cluster.client());
    let mut client = delegating_session(cluster);
    assert_eq!(text(&mut client, ADMISSIBLE), "50");
    assert_runs_in_workers(&mut client, ADMISSIBLE);

    let mut client = delegating_session(cluster);
    client.batch_execute(FORCE_PARALLEL).unwrap();
    assert_eq!(text(&mut client, VERIFIED), "50 100");
    assert_runs_in_workers(&mut client, VERIFIED);
    slice(&mut client);
    assert_eq!(text(&mut client, VERIFIED), "50 100");
}

#[test]
fn parallel_workers_verify_with_the_keys_of_the_database() {
    let cluster = Cluster::start("");
    install(&mut cluster.client());
    verifies_in_workers(&cluster);
}

#[test]
fn parallel_workers_verify_with_the_key_file() {
    let cluster = Cluster::start("");
    install(&mut cluster.client());
    secret_file::use_root(&cluster, &secret_file::random(32));
    verifies_in_workers(&cluster);
}

#[test]
fn slicing_stays_with_the_leader() {
    let cluster = Cluster::start("");
    let mut client = cluster.client();
    install(&mut client);
    client.batch_execute(FORCE_PARALLEL).unwrap();
    // A worker would not see that its leader has written.
    client.batch_execute("BEGIN; UPDATE public.memory_turns SET salience_score = 1").unwrap();
    let export = slice(&mut client);
    assert!(export.contains(r#""status":"uncommitted""#), "{export}");
}
