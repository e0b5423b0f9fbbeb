//! Standbys, restored dumps and subscribers of logical replication slice as their origin.

use postgres::Client;

use crate::calls::Size;
use crate::cluster::{Cluster, catch_up, wait_until};
use crate::common::export::without_claims;
use crate::common::process::run;
use crate::common::tell;
use crate::graph::{reason, text};
use crate::secret_file;
use crate::{CONFIGURATION, Share};

const SIZE: Size = Size { turns: 10_000, events: 10, policy: "default", anchors: 1 };

const POLICIES: [&str; 3] =
    ["default", "focused", r#"{"version": "slice_policy_v2", "max_tokens": 300}"#];

/// How many anchors are sliced by one statement.
const CHUNK: usize = 50;

/// What changes rows in ways that a replica could miss.
const CHANGES: &str = "
    UPDATE public.memory_turns SET salience_score = 1 - salience_score WHERE id < \
    '80000000-0000-0000-0000-000000000000';
    DELETE FROM public.memory_turn_edges WHERE child_turn_id > 'f0000000-0000-0000-0000-000000000000';
    INSERT INTO public.memory_turn_edges
    SELECT turn(n), turn(n + 50), 'reference' FROM generate_series(1, 9900, 17) AS n ON CONFLICT DO NOTHING;
    UPDATE public.memory_turns SET content_text = content_text || ' edited', session_id = NULL
     WHERE id BETWEEN '20000000-0000-0000-0000-000000000000' AND '40000000-0000-0000-0000-000000000000'";

/// The exports at these anchors.
fn slices(client: &mut Client, anchors: &[String], policy: &str) -> Vec<String> {
    let statement =
        "SELECT slice::text FROM graph_slices($1::text[]::uuid[], $2::text::slice_policy)";
    let rows = client.query(statement, &[&anchors, &policy]).unwrap();
    rows.iter().map(|row| row.get(0)).collect()
}

fn single_slice(client: &mut Client, anchor: &str, policy: &str) -> String {
    let statement = "SELECT graph_slice($1::text::uuid, $2::text::slice_policy)::text";
    client.query_one(statement, &[&anchor, &policy]).unwrap().get(0)
}

/// A copy of the origin, and how much of its exports is the same.
struct Replica {
    name: &'static str,
    client: Client,
    /// Whether it has the origin's key: then all of an export is the same.
    same_key: bool,
}

impl Replica {
    fn compare(&mut self, origin: &[String], anchors: &[String], policy: &str) {
        let compare = |export: &str, expected: &str| {
            let [export, expected] = [export, expected]
                .map(|export| if self.same_key { export } else { without_claims(export) });
            assert!(export == expected, "{}:\n{export}\nand on the origin\n{expected}", self.name);
        };
        for (export, expected) in slices(&mut self.client, anchors, policy).iter().zip(origin) {
            compare(export, expected);
        }
        compare(&single_slice(&mut self.client, &anchors[0], policy), &origin[0]);
    }
}

/// Compares until the time is over, each copy at least once; how many anchors.
fn compare_all(
    origin: &mut Client,
    copies: &mut [&mut Replica],
    anchors: &[String],
    share: Share,
) -> usize {
    let mut compared = 0;
    for (number, anchors) in anchors.chunks(CHUNK).cycle().enumerate() {
        let policy = POLICIES[number % POLICIES.len()];
        let exports = slices(origin, anchors, policy);
        assert_eq!(exports.len(), anchors.len());
        for copy in copies.iter_mut() {
            copy.compare(&exports, anchors, policy);
        }
        compared += anchors.len();
        if share.is_over() {
            break;
        }
    }
    compared
}

/// Restores a dump of the origin into a cluster of its own, with the root key file's bytes if there are any.
fn restored(origin: &Cluster, root: Option<&[u8]>) -> Cluster {
    let other = Cluster::start("");
    if let Some(root) = root {
        secret_file::use_root(&other, root);
    }
    let dump = other.folder.join("dump.sql");
    run(origin.program("pg_dump", "postgres").args(["--dbname=postgres", "--file"]).arg(&dump));
    run(other
        .program("psql", "postgres")
        .args(["-X", "--quiet", "--set=ON_ERROR_STOP=1", "--dbname=postgres", "--file"])
        .arg(&dump));
    other
}

/// A cluster that subscribes to the origin's tables.
fn subscriber(origin: &Cluster, root: &[u8]) -> Cluster {
    let other = Cluster::start("");
    secret_file::use_root(&other, root);
    let mut client = other.client();
    client
        .batch_execute(
            "CREATE EXTENSION graph_kernel;
             SELECT graph_kernel.create_tables();
             ALTER TABLE public.memory_turns ADD embedding real[]",
        )
        .unwrap();
    origin
        .client()
        .batch_execute(
            "CREATE PUBLICATION soak FOR TABLE public.memory_turns, public.memory_turn_edges",
        )
        .unwrap();
    client
        .batch_execute(&format!(
            "CREATE SUBSCRIPTION soak CONNECTION 'host={} port={} user=postgres dbname=postgres' PUBLICATION soak",
            origin.server.socket, origin.server.port
        ))
        .unwrap();
    let ready = "SELECT bool_and(srsubstate = 'r') FROM pg_subscription_rel";
    wait_until(&mut client, ready);
    other
}

/// Waits until the subscriber has all that the origin has committed.
fn wait_for_subscriber(origin: &mut Client) {
    let target = text(origin, "SELECT pg_current_wal_insert_lsn()::text");
    wait_until(
        origin,
        &format!(
            "SELECT replay_lsn >= '{target}' FROM pg_stat_replication WHERE application_name = 'soak'"
        ),
    );
}

#[test]
fn copies_slice_as_their_origin() {
    let share = Share::begin(8);
    let root = secret_file::random(32);
    let primary = Cluster::start(CONFIGURATION);
    secret_file::use_root(&primary, &root);
    let mut origin = primary.client();
    SIZE.set_up(&mut origin);
    let anchors = "SELECT id::text FROM public.memory_turns ORDER BY md5(id::text)";
    let anchors: Vec<String> =
        origin.query(anchors, &[]).unwrap().iter().map(|row| row.get(0)).collect();

    let standby = Cluster::standby_of(&primary);
    secret_file::use_root(&standby, &root);
    let with_key = restored(&primary, Some(&root));
    let without_key = restored(&primary, None);
    let subscribed = subscriber(&primary, &root);
    let copy =
        |name, cluster: &Cluster, same_key| Replica { name, client: cluster.client(), same_key };
    let mut standby = copy("the standby", &standby, true);
    let mut with_key = copy("the restored dump with the key file", &with_key, false);
    let mut without_key = copy("the restored dump", &without_key, false);
    let mut subscribed = copy("the subscriber", &subscribed, false);

    catch_up(&mut origin, &mut standby.client);
    let compared = compare_all(
        &mut origin,
        &mut [&mut standby, &mut with_key, &mut without_key, &mut subscribed],
        &anchors,
        share.part(2),
    );
    // With the key file each takes the other's exports for its own.
    let export = single_slice(&mut origin, &anchors[0], POLICIES[0]);
    assert_eq!(reason(&mut with_key.client, &export), "ok");
    let export = single_slice(&mut with_key.client, &anchors[0], POLICIES[0]);
    assert_eq!(reason(&mut origin, &export), "ok");
    assert_eq!(reason(&mut without_key.client, &export), "unknown_key");

    let mut changed = 0;
    let mut before = single_slice(&mut origin, &anchors[0], POLICIES[0]);
    for part in (1..=3).rev() {
        origin.batch_execute(CHANGES).unwrap();
        catch_up(&mut origin, &mut standby.client);
        wait_for_subscriber(&mut origin);
        changed += compare_all(
            &mut origin,
            &mut [&mut standby, &mut subscribed],
            &anchors,
            share.part(part),
        );
        let after = single_slice(&mut origin, &anchors[0], POLICIES[0]);
        assert_ne!(after, before, "a change that changes nothing shows nothing");
        before = after;
    }
    tell(&format!(
        "copies: {compared} anchors the same on the origin, a standby, two restored dumps and a subscriber; \
         after changes {changed} on the origin, the standby and the subscriber"
    ));
}
