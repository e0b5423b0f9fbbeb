//! Backends and postmasters are killed while everything is done at once; nothing that was committed is lost.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use postgres::error::SqlState;
use postgres::{Client, Error};
use serde_json::json;

use crate::Share;
use crate::cluster::{Cluster, send_signal};
use crate::common::{tell, variable};
use crate::graph::{active_key, rotate, text};
use crate::states::{GRAPHS, set_up};

/// What the server has said it has done.
#[derive(Default)]
struct Committed {
    exports: Vec<String>,
    keys: Vec<String>,
    /// Names and fingerprints of registered policies.
    policies: Vec<(String, String)>,
    /// The name of each graph in attestations, by the name of its binding and its tables.
    bindings: HashMap<(String, &'static str), String>,
    promoted: Vec<i64>,
}

impl Committed {
    fn add(&mut self, other: Committed) {
        // All exports would take longer than the rest: a few of each round stay.
        self.exports.extend(other.exports.into_iter().rev().take(3));
        self.keys.extend(other.keys);
        self.policies.extend(other.policies);
        self.promoted.extend(other.promoted);
        for (binding, graph) in other.bindings {
            let known = self.bindings.entry(binding.clone()).or_insert_with(|| graph.clone());
            assert_eq!(*known, graph, "{binding:?} has got another name");
        }
    }
}

type Step = fn(&mut Client, &mut Committed) -> Result<(), Error>;

/// What is done meanwhile, by its name.
const WORK: [(&str, Step); 6] = [
    ("slicing", slice),
    ("rotating", rotate_key),
    ("registering", register),
    ("binding", bind),
    ("backfilling", backfill),
    ("promoting", promote),
];

fn slice(client: &mut Client, committed: &mut Committed) -> Result<(), Error> {
    let turn = 1 + 50 * fastrand::i32(0..8);
    let row = client.query_one("SELECT graph_slice(soak.turn($1))::text", &[&turn])?;
    committed.exports.push(row.get(0));
    client.batch_execute(
        "SELECT count(*) FROM graph_slices(ARRAY(SELECT soak.turn(n) FROM generate_series(401, 420) AS n)), \
        graph_check()",
    )
}

fn rotate_key(client: &mut Client, committed: &mut Committed) -> Result<(), Error> {
    committed.keys.push(client.query_one("SELECT graph_kernel.rotate_key()", &[])?.get(0));
    thread::sleep(Duration::from_millis(fastrand::u64(..20)));
    Ok(())
}

fn register(client: &mut Client, committed: &mut Committed) -> Result<(), Error> {
    let row = client.query_one(
        "SELECT name, params_hash
           FROM (SELECT 'soak ' || gen_random_uuid() AS name) AS n,
                graph_policy_register(format('{\"max_nodes\": %s, \"salience_weight\": %s}',
                                             1 + floor(random() * 9999), random())::slice_policy, name)",
        &[],
    )?;
    committed.policies.push((row.get(0), row.get(1)));
    thread::sleep(Duration::from_millis(fastrand::u64(..10)));
    Ok(())
}

fn bind(client: &mut Client, committed: &mut Committed) -> Result<(), Error> {
    let name = format!("graph {}", fastrand::u8(..20));
    let tables = GRAPHS[fastrand::usize(..2)];
    let statement = "SELECT graph_kernel.bind_tables(('public.memory_turns' || $1)::regclass,
                                                     ('public.memory_turn_edges' || $1)::regclass, name => $2)::text";
    let graph: String = client.query_one(statement, &[&tables, &name])?.get(0);
    let known = committed.bindings.entry((name, tables)).or_insert_with(|| graph.clone());
    assert_eq!(*known, graph);
    Ok(())
}

fn backfill(client: &mut Client, _: &mut Committed) -> Result<(), Error> {
    client.batch_execute(
        "UPDATE public.memory_turns SET content_hash = NULL, content_text = content_text || '.'
          WHERE id IN (SELECT soak.turn((random() * 420)::int) FROM generate_series(1, 50))",
    )?;
    client.batch_execute("CALL graph_kernel.backfill_content_hashes(10)")
}

fn promote(client: &mut Client, committed: &mut Committed) -> Result<(), Error> {
    let promote = "INSERT INTO public.promoted (slice, turns)
        SELECT graph_slice(soak.turn(51), 'focused'), ARRAY[soak.turn($1)] RETURNING id";
    committed.promoted.push(client.query_one(promote, &[&51])?.get(0));
    // What is not in the slice is refused, whatever else goes on.
    match client.query_one(promote, &[&-1]) {
        Err(error) if error.code() == Some(&SqlState::CHECK_VIOLATION) => Ok(()),
        Err(error) => Err(error),
        Ok(_) => panic!("a turn that is not in its slice was promoted"),
    }
}

/// Does something again and again until the connection is lost.
fn work_until_it_breaks(mut client: Client, step: Step) -> Committed {
    let mut committed = Committed::default();
    loop {
        let Err(error) = step(&mut client, &mut committed) else { continue };
        // Ended by the server, or without a word.
        let ended = error.code().is_none_or(|code| code.code().starts_with("57P"));
        assert!(ended || client.is_closed(), "{error:?}");
        return committed;
    }
}

/// The program that imports conversations, whose account is the number of a round.
struct Import {
    file: String,
    database: String,
}

const CONVERSATIONS: u64 = 20;
const MESSAGES: u64 = 6;

impl Import {
    fn new(cluster: &Cluster) -> Self {
        let id = |number| format!("c1a0de00-0000-4000-8000-{number:012}");
        let conversation = |conversation| {
            let message = |number| {
                json!({
                    "uuid": id(1000 + conversation * 100 + number), "text": "text ".repeat(200), "sender": "human",
                    "created_at": "2025-03-02T09:00:00Z",
                })
            };
            let messages: Vec<_> = (0..MESSAGES).map(message).collect();
            json!({ "uuid": id(conversation), "name": "", "chat_messages": messages })
        };
        let conversations: Vec<_> = (0..CONVERSATIONS).map(conversation).collect();
        let file = cluster.folder.join("conversations.json").to_str().unwrap().to_owned();
        fs::write(&file, json!(conversations).to_string()).unwrap();
        let server = &cluster.server;
        let database =
            format!("host={} port={} user=postgres dbname=postgres", server.socket, server.port);
        Import { file, database }
    }

    /// Runs the program to its end; whether it has stored all.
    fn run(&self, account: u32) -> bool {
        Command::new(variable("GRAPH_KERNEL_PROGRAM"))
            .args(["import", "claude", &self.file, "--database", &self.database])
            .args(["--account", &account.to_string()])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .unwrap()
            .success()
    }

    /// That each conversation is stored whole or not at all; how many there are. Removes them.
    fn check_and_remove(client: &mut Client) -> i64 {
        let row = client
            .query_one(
                &format!(
                    "SELECT count(*), coalesce(bool_and(turns = {MESSAGES} AND edges = {MESSAGES} - 1), true)
                       FROM (SELECT session_id, count(DISTINCT t.id) AS turns, count(e.child_turn_id) AS edges
                               FROM public.memory_turns AS t
                               LEFT JOIN public.memory_turn_edges AS e ON e.child_turn_id = t.id
                              WHERE session_id LIKE 'claude:%' GROUP BY 1) AS c"
                ),
                &[],
            )
            .unwrap();
        assert!(row.get::<_, bool>(1), "a conversation is stored in part");
        client
            .batch_execute(
                "DELETE FROM public.memory_turn_edges WHERE child_turn_id IN
                     (SELECT id FROM public.memory_turns WHERE session_id LIKE 'claude:%');
                 DELETE FROM public.memory_turns WHERE session_id LIKE 'claude:%'",
            )
            .unwrap();
        row.get(0)
    }
}

/// Every committed thing is there, nothing is half done, and the indexes agree with their tables.
fn check(client: &mut Client, committed: &mut Committed) {
    let faults = |client: &mut Client,
                  what: &str,
                  statement: &str,
                  parameters: &[&(dyn postgres::types::ToSql + Sync)]| {
        let rows = client.query(statement, parameters).unwrap();
        let faults: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
        assert!(faults.is_empty(), "{what}: {faults:?}");
    };
    faults(
        client,
        "keys that are lost",
        "SELECT * FROM unnest($1::text[]) EXCEPT SELECT kid FROM graph_kernel.keys WHERE state IN ('active', \
        'verifying')",
        &[&committed.keys],
    );
    let active = active_key(client);
    faults(
        client,
        "epochs that were begun twice",
        "SELECT epoch::text FROM graph_kernel.root_keys GROUP BY 1 HAVING count(*) > 1",
        &[],
    );
    faults(
        client,
        "exports that do not verify",
        "SELECT reason || ' ' || (e::json -> 'attestation')::text FROM unnest($1::text[]) AS e, graph_verify(e::json) \
        WHERE reason <> 'ok'",
        &[&committed.exports],
    );
    let next = rotate(client);
    assert_ne!(next, active);
    assert_eq!(active_key(client), next);
    committed.keys.push(next);

    let (names, hashes): (Vec<&str>, Vec<&str>) =
        committed.policies.iter().map(|(name, hash)| (name.as_str(), hash.as_str())).unzip();
    faults(
        client,
        "policies that are lost",
        "SELECT n FROM unnest($1::text[], $2::text[]) AS v (n, h) EXCEPT SELECT name FROM graph_policies \
        WHERE params_hash = graph_policy_hash(policy)",
        &[&names, &hashes],
    );
    faults(
        client,
        "policies under another name's hash",
        "SELECT n FROM unnest($1::text[], $2::text[]) AS v (n, h) JOIN graph_policies ON name = n \
        WHERE params_hash <> h",
        &[&names, &hashes],
    );
    text(client, "SELECT graph_policy_registry_fingerprint()");

    // A binding that was replaced keeps its name: found when it is bound again, by `Committed::add`.
    let (names, graphs): (Vec<&str>, Vec<&str>) =
        committed.bindings.iter().map(|((name, _), graph)| (name.as_str(), graph.as_str())).unzip();
    faults(
        client,
        "bindings that are lost",
        "SELECT n || ' ' || g FROM unnest($1::text[], $2::text[]) AS v (n, g)
         EXCEPT SELECT name || ' ' || graph FROM graph_kernel.bindings",
        &[&names, &graphs],
    );
    faults(
        client,
        "names with several current bindings",
        "SELECT name FROM graph_kernel.bindings WHERE is_current GROUP BY 1 HAVING count(*) > 1",
        &[],
    );

    faults(
        client,
        "promoted rows that are lost",
        "SELECT i::text FROM unnest($1::bigint[]) AS i EXCEPT SELECT id::text FROM public.promoted",
        &[&committed.promoted],
    );
    faults(
        client,
        "promoted rows that are not admissible",
        "SELECT id::text FROM public.promoted WHERE NOT graph_is_admissible(slice, turns[1])",
        &[],
    );
    faults(
        client,
        "content hashes of other contents",
        "SELECT id::text FROM public.memory_turns WHERE content_hash <> graph_content_hash(content_text)",
        &[],
    );
    if committed.promoted.len() > 200 {
        client.batch_execute("DELETE FROM public.promoted").unwrap();
        committed.promoted.clear();
    }
    if has_amcheck(client) {
        faults(client, "corrupt tables", CORRUPT_TABLES, &[]);
        // An error says which index.
        client.batch_execute(CHECK_INDEXES).unwrap();
    }
}

fn has_amcheck(client: &mut Client) -> bool {
    text(client, "SELECT (count(*) > 0)::text FROM pg_extension WHERE extname = 'amcheck'")
        == "true"
}

const CORRUPT_TABLES: &str = "
    SELECT c.oid::regclass || ': ' || msg FROM pg_class AS c, verify_heapam(c.oid)
     WHERE relkind IN ('r', 't', 'm') AND relpersistence = 'p'";
const CHECK_INDEXES: &str = "
    SELECT bt_index_check(c.oid, true) FROM pg_class AS c JOIN pg_am AS a ON a.oid = c.relam
      JOIN pg_index ON indexrelid = c.oid
     WHERE amname = 'btree' AND c.relkind = 'i' AND c.relpersistence = 'p' AND indisvalid";

/// Kills again and again while all work is done.
fn survives(what: &str, share: Share, kill: fn(&mut Cluster, &mut Client) -> String) {
    let mut cluster = Cluster::start("max_connections = 50\n");
    let mut client = cluster.client();
    set_up(&mut client, false);
    client
        .batch_execute(
            "CREATE TABLE public.promoted (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, slice json, \
            turns uuid[]);
             CREATE CONSTRAINT TRIGGER admissible AFTER INSERT OR UPDATE ON public.promoted
                 NOT DEFERRABLE FOR EACH ROW EXECUTE FUNCTION graph_require_admissible('slice', 'turns', 'no_rls');
             DO $$ BEGIN CREATE EXTENSION amcheck; EXCEPTION WHEN OTHERS THEN END $$",
        )
        .unwrap();
    let amcheck = if has_amcheck(&mut client) {
        "amcheck clean"
    } else {
        "without amcheck, which is not there"
    };
    let import = Import::new(&cluster);
    let mut committed = Committed::default();
    let mut victims = BTreeMap::new();
    let mut rounds = 0;
    let mut conversations = 0;
    while rounds < 3 || !share.is_over() {
        rounds += 1;
        let mut watcher = cluster.client();
        let clients: Vec<_> = WORK
            .iter()
            .map(|(name, step)| {
                let mut client = cluster.client();
                client
                    .batch_execute(&format!(
                        "SET application_name = '{name}'; SET client_min_messages = error"
                    ))
                    .unwrap();
                (client, *step)
            })
            .collect();
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            let workers: Vec<_> = clients
                .into_iter()
                .map(|(client, step)| scope.spawn(move || work_until_it_breaks(client, step)))
                .collect();
            let (import, done) = (&import, &done);
            let importing = scope.spawn(move || {
                // Again, where the conversations are all there before anything is killed.
                let mut account = rounds * 1000;
                while import.run(account) && !done.load(Ordering::Relaxed) {
                    account += 1;
                }
            });
            thread::sleep(Duration::from_millis(fastrand::u64(5..300)));
            *victims.entry(kill(&mut cluster, &mut watcher)).or_insert(0) += 1;
            done.store(true, Ordering::Relaxed);
            for worker in workers {
                committed.add(worker.join().unwrap());
            }
            importing.join().unwrap();
        });
        let mut client = cluster.client();
        conversations += Import::check_and_remove(&mut client);
        check(&mut client, &mut committed);
        assert!(import.run(rounds * 1000), "the import does not go on");
        assert_eq!(Import::check_and_remove(&mut client), CONVERSATIONS as i64);
    }
    let victims: Vec<String> =
        victims.iter().map(|(victim, count)| format!("{victim} {count}")).collect();
    tell(&format!(
        "kills: {rounds} {what} ({}); {} exports, {} keys, {} policies, {} bindings, \
        {conversations} conversations: nothing lost; {amcheck}",
        victims.join(", "),
        committed.exports.len(),
        committed.keys.len(),
        committed.policies.len(),
        committed.bindings.len(),
    ));
}

/// Kills any of the backends; the name of what it did.
fn kill_backend(_: &mut Cluster, watcher: &mut Client) -> String {
    let backends = "SELECT pid, application_name FROM pg_stat_activity
                     WHERE backend_type = 'client backend' AND pid <> pg_backend_pid() AND application_name <> ''
                     ORDER BY random() LIMIT 1";
    let victim = watcher.query_one(backends, &[]).unwrap();
    send_signal("KILL", victim.get::<_, i32>(0).try_into().unwrap());
    // With it the server ends every other session.
    while watcher.batch_execute("SELECT 1").is_ok() {
        thread::sleep(Duration::from_millis(5));
    }
    victim.get(1)
}

fn kill_postmaster(cluster: &mut Cluster, _: &mut Client) -> String {
    cluster.kill();
    cluster.recover();
    "of all work".to_owned()
}

#[test]
fn nothing_is_lost_with_a_killed_backend() {
    survives("backends", Share::begin(5), kill_backend);
}

#[test]
fn nothing_is_lost_with_a_killed_postmaster() {
    survives("postmasters", Share::begin(5), kill_postmaster);
}
