//! A hot standby answers what its primary answers.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use crate::alone;
use crate::common::database::{Database, load_graph};
use crate::common::process::{run, server_program};
use crate::common::{Server, variable};
use kernel::graph::turn::TurnId;
use postgres::Client;

/// A hot standby of the primary, stopped and removed when it goes out of scope.
struct Standby {
    server: Server,
    data: PathBuf,
}

impl Standby {
    fn start() -> Self {
        let primary = Server::primary();
        let data = Path::new(&variable("GRAPH_KERNEL_SCRATCH")).join("standby");
        let standby = Standby {
            // In the primary's socket folder, as a path of its own might be too long for a socket.
            server: Server { port: primary.port + 1, ..primary.clone() },
            data,
        };
        standby.remove();
        run(server_program("pg_basebackup")
            .arg("--pgdata")
            .arg(&standby.data)
            .args(["--host", &primary.socket])
            .args(["--port", &primary.port.to_string()])
            .args(["--username", &primary.user])
            .args(["--write-recovery-conf", "--checkpoint=fast", "--no-sync"]));
        run(standby
            .control("start")
            .arg("--log")
            .arg(standby.data.join("standby.log"))
            .args(["--options", &format!("-p {}", standby.server.port)]));
        standby
    }

    fn control(&self, action: &str) -> std::process::Command {
        let mut command = server_program("pg_ctl");
        command.args([action, "--silent", "--wait", "--pgdata"]);
        command.arg(&self.data);
        command
    }

    /// Waits until it has replayed all that the primary has written.
    fn catch_up(&self) {
        let mut primary = Server::primary().connect_admin();
        let mut standby = self.server.connect_admin();
        let row = primary.query_one("SELECT pg_current_wal_lsn()::text", &[]);
        let target: String = row.unwrap().get(0);
        let start = Instant::now();
        let mut reached = || -> bool {
            let statement = "SELECT pg_last_wal_replay_lsn() >= $1::text::pg_lsn";
            standby.query_one(statement, &[&target]).unwrap().get(0)
        };
        while !reached() {
            assert!(start.elapsed() < Duration::from_secs(60), "it lags behind");
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// Changes a setting of it.
    fn set(&self, name: &str, value: &str) {
        let mut client = self.server.connect_admin();
        client.batch_execute(&format!("ALTER SYSTEM SET {name} = {value}")).unwrap();
        client.batch_execute("SELECT pg_reload_conf()").unwrap();
        let shown = format!("SELECT current_setting('{name}') = $1");
        let shown_value = value.trim_matches('\'');
        let start = Instant::now();
        while !self
            .server
            .connect_admin()
            .query_one(&shown, &[&shown_value])
            .unwrap()
            .get::<_, bool>(0)
        {
            assert!(start.elapsed() < Duration::from_secs(60), "{name} is not {value}");
        }
    }

    fn remove(&self) {
        if self.data.exists() {
            fs::remove_dir_all(&self.data).unwrap();
        }
    }
}

impl Drop for Standby {
    fn drop(&mut self) {
        let pid_file = self.data.join("postmaster.pid");
        if !pid_file.exists() {
            return;
        }
        let mut stop = self.control("stop");
        stop.arg("--mode=fast");
        if thread::panicking() {
            // The failure is reported already; the log stays.
            let _ = stop.status();
            return;
        }
        run(&mut stop);
        assert!(!pid_file.exists());
        self.remove();
    }
}

/// What the extension answers about these turns, in the words of SQL; of a few more than slices.
fn answers(client: &mut Client, anchors: &[TurnId]) -> Vec<String> {
    let mut answers = Vec::new();
    let mut ask = |statement: &str, anchors: &[TurnId]| {
        let rows = client.query(statement, &[&anchors]).unwrap();
        answers.extend(rows.iter().map(|row| row.get::<_, String>(0)));
    };
    let few = &anchors[..5];
    ask("SELECT graph_slice(id)::text FROM unnest($1::uuid[]) AS id", anchors);
    ask("SELECT s::text FROM graph_slices($1, 'focused') AS s", anchors);
    for function in
        ["graph_slice_turns", "graph_slice_edges", "graph_slice_explain", "graph_slice_stats"]
    {
        let statement =
            format!("SELECT s::text FROM unnest($1::uuid[]) AS id, {function}(id, 'broad') AS s");
        ask(&statement, few);
    }
    ask("SELECT graph_atlas($1, 'focused')::text", anchors);
    ask(
        "SELECT o::text FROM graph_overlap($1) AS o UNION ALL SELECT i::text FROM graph_influence($1) AS i",
        few,
    );
    ask("SELECT graph_diversity(graph_slice(id))::text FROM unnest($1::uuid[]) AS id", few);
    ask(
        "SELECT s::text FROM unnest($1::uuid[]) AS id, graph_sufficiency(graph_slice(id)) AS s
         UNION ALL SELECT a::text FROM graph_content_audit(3) AS a",
        few,
    );
    ask(
        "SELECT g::text FROM graph_check() AS g WHERE $1::uuid[] IS NOT NULL
         UNION ALL SELECT graph_policy_hash('broad')
         UNION ALL SELECT graph_kernel_version()",
        few,
    );
    ask(
        "SELECT c::text FROM recorder_chunks() AS c WHERE $1::uuid[] IS NOT NULL
         UNION ALL SELECT c::text FROM recorder_chunks_since(0, 25) AS c",
        few,
    );
    ask(
        "SELECT p::text FROM graph_policies AS p WHERE $1::uuid[] IS NOT NULL
         UNION ALL SELECT graph_policy('small')::text
         UNION ALL SELECT graph_policy_registry_fingerprint()
         UNION ALL SELECT graph_api_policies()::text
         UNION ALL SELECT graph_api_health()::text
         UNION ALL SELECT graph_api_slice(json_build_object('anchor_turn_id', $1[1]))::text
         UNION ALL SELECT graph_api_slice_batch(json_build_object('anchor_turn_ids', $1))::text",
        few,
    );
    ask(
        "SELECT concat_ws(' ', s.turn_id, s.similarity, graph_can_promote(s.provenance, s.turn_id))
         FROM unnest($1::uuid[]) AS id, graph_search_slice('{1,2,3}', id, 'broad') AS s
         UNION ALL SELECT a::text FROM graph_anchor(query_embedding => '{1,2,3}') AS a
         UNION ALL SELECT a::text FROM graph_anchors_recent() AS a",
        few,
    );
    answers
}

/// A log of recorder events.
const EVENTS: &str = "SELECT graph_kernel.create_recorder_table();
    INSERT INTO recorder_events (segment_id, ordinal, byte_offset, event_id, pane_id,
        occurred_at_ms, event_type, text)
    SELECT 0, i, i, 'e' || i, i / 20, i * 1000, 'egress_output', repeat('x', i * 20)
    FROM generate_series(0, 50) AS i";

/// Fifty turns from all over the graph.
fn fifty_turns(client: &mut Client) -> Vec<TurnId> {
    let rows = client
        .query("SELECT id FROM public.memory_turns ORDER BY md5(id::text) LIMIT 50", &[])
        .unwrap();
    assert_eq!(rows.len(), 50);
    rows.iter().map(|row| row.get(0)).collect()
}

#[test]
fn a_standby_slices_byte_for_byte_as_its_primary() {
    let _alone = alone();
    let database = Database::with_loose_tables("standby");
    let mut primary = database.connect();
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("golden/data/hard");
    load_graph(&mut primary, &data);
    primary.batch_execute(EVENTS).unwrap();
    primary.batch_execute(r#"SELECT graph_policy_register('{"max_nodes": 9}', 'small')"#).unwrap();
    primary
        .batch_execute(
            "ALTER TABLE public.memory_turns ADD COLUMN embedding real[];
             UPDATE public.memory_turns SET embedding = ARRAY[1, salience_score, trajectory_depth]::real[]",
        )
        .unwrap();
    let anchors = fifty_turns(&mut primary);
    // Dropped, hence stopped, before the database is.
    let standby = Standby::start();
    standby.catch_up();

    let mut replica = standby.server.connect(&database.name);
    let recovering = replica.query_one("SELECT pg_is_in_recovery()", &[]);
    assert!(recovering.unwrap().get::<_, bool>(0));
    let loaded = answers(&mut primary, &anchors);
    assert_eq!(answers(&mut replica, &anchors), loaded);

    // The standby follows what happens to rows, and to the binding.
    for change in [
        "UPDATE public.memory_turns SET salience_score = 1 - salience_score",
        "CREATE TABLE public.other_turns AS SELECT * FROM public.memory_turns;
         ALTER TABLE public.other_turns ADD PRIMARY KEY (id);
         UPDATE public.other_turns SET created_at = '2001-01-01';
         SELECT graph_kernel.bind_tables('public.other_turns', 'public.memory_turn_edges')",
    ] {
        primary.batch_execute(change).unwrap();
        standby.catch_up();
        let changed = answers(&mut primary, &anchors);
        assert_ne!(changed, loaded);
        assert_eq!(answers(&mut replica, &anchors), changed);
    }
    what_is_not_replayed_is_not_there(&standby, &mut primary, &mut replica);
    a_conflict_with_recovery_is_an_error(&standby, &database, &anchors);
}

/// A turn that the primary has committed and the standby has not replayed is not found; what is found is of one state,
/// and verifies on the primary.
fn what_is_not_replayed_is_not_there(
    standby: &Standby,
    primary: &mut Client,
    replica: &mut Client,
) {
    standby.set("recovery_min_apply_delay", "'1h'");
    let turn: TurnId = primary
        .query_one(
            "WITH n AS (INSERT INTO public.other_turns (id, session_id, role, trajectory_phase, salience_score,
                            trajectory_depth, trajectory_sibling_order, trajectory_homogeneity, trajectory_temporal,
                            trajectory_complexity, created_at)
                        SELECT gen_random_uuid(), session_id, role, trajectory_phase, salience_score, trajectory_depth,
                            trajectory_sibling_order, trajectory_homogeneity, trajectory_temporal,
                            trajectory_complexity, created_at
                        FROM public.other_turns LIMIT 1 RETURNING id)
             SELECT id FROM n",
            &[],
        )
        .unwrap()
        .get(0);
    let slice = "SELECT graph_slice($1)::text";
    let refused = replica.query_one(slice, &[&turn]).expect_err("it is not replayed");
    assert_eq!(refused.as_db_error().unwrap().detail(), Some("ANCHOR_NOT_FOUND"), "{refused:?}");
    standby.set("recovery_min_apply_delay", "0");
    standby.catch_up();
    let there: String = replica.query_one(slice, &[&turn]).unwrap().get(0);
    assert_eq!(there, primary.query_one(slice, &[&turn]).unwrap().get::<_, String>(0));
    let verify = "SELECT (graph_verify($1::text::json)).reason";
    assert_eq!(primary.query_one(verify, &[&there]).unwrap().get::<_, String>(0), "ok");
}

/// Where the standby must remove rows that a transaction reads, that transaction has one state until it is cancelled.
fn a_conflict_with_recovery_is_an_error(
    standby: &Standby,
    database: &Database,
    anchors: &[TurnId],
) {
    standby.set("max_standby_streaming_delay", "0");
    let mut replica = standby.server.connect(&database.name);
    let slice = "SELECT graph_slice($1, 'broad')::text";
    replica.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ").unwrap();
    let before: String = replica.query_one(slice, &[&anchors[0]]).unwrap().get(0);
    let mut primary = database.connect();
    primary.batch_execute("UPDATE public.other_turns SET created_at = '2002-01-01'").unwrap();
    primary.batch_execute("VACUUM public.other_turns").unwrap();
    let start = Instant::now();
    loop {
        match replica.query_one(slice, &[&anchors[0]]) {
            Ok(row) => assert_eq!(row.get::<_, String>(0), before),
            Err(error) => {
                let code = error.code().map(|code| code.code().to_owned());
                // The session may have been ended, which a broken pipe says as well.
                assert!(matches!(code.as_deref(), Some("40001") | None), "{error:?}");
                break;
            }
        }
        assert!(start.elapsed() < Duration::from_secs(60), "no conflict");
    }
    standby.catch_up();
    let mut replica = standby.server.connect(&database.name);
    let after: String = replica.query_one(slice, &[&anchors[0]]).unwrap().get(0);
    assert_ne!(after, before);
    assert_eq!(after, primary.query_one(slice, &[&anchors[0]]).unwrap().get::<_, String>(0));
}
