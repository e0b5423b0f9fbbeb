//! The rules for key files: what they may be, and that nothing takes their place.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, chown};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};

use postgres::{Client, NoTls};

use crate::cluster::{Cluster, server_account};
use crate::common::tell;
use crate::graph::{SLICE, install, kid, reason, reasons, refusal, rotate, slice, text};
use crate::parallel::FORCE_PARALLEL;
use crate::secret_file::{self, random, set_mode};

const ROOT: &str = "graph_kernel.root_key_file";
const SECRET: &str = "graph_kernel.v2_secret_file";

fn installed() -> (Cluster, String) {
    let cluster = Cluster::start("");
    let mut client = cluster.client();
    install(&mut client);
    let export = slice(&mut client);
    (cluster, export)
}

/// Everything that needs a key, each as a statement of its own.
fn statements_that_need_a_key(export: &str) -> Vec<String> {
    let anchor = "'00000000-0000-4000-8000-000000000003'";
    let hash = "'0123456789abcdef'";
    vec![
        SLICE.to_owned(),
        format!("SELECT * FROM graph_slices(ARRAY[{anchor}::uuid])"),
        format!("SELECT admissibility_token FROM graph_slice_turns({anchor})"),
        format!("SELECT * FROM graph_verify('{export}')"),
        format!("SELECT * FROM graph_verify_explain('{export}')"),
        format!("SELECT graph_is_admissible('{export}', {anchor})"),
        format!("SELECT graph_filter_admissible('{export}', ARRAY[{anchor}::uuid])"),
        format!(
            "SELECT graph_verify_token('0123456789abcdef0123456789abcdef', {hash}, {anchor},
                 'slice_policy_v1', {hash}, {hash}, '1.0.0')"
        ),
        format!("SELECT graph_proof('{export}')"),
        "SELECT * FROM graph_kernel.keys".to_owned(),
        "SELECT * FROM graph_kernel.proof_keys".to_owned(),
        "SELECT graph_kernel.rotate_key()".to_owned(),
        "SELECT graph_kernel.revoke_key('7-0123456789abcdef')".to_owned(),
    ]
}

fn assert_nothing_works(client: &mut Client, export: &str, why: &str) {
    for statement in statements_that_need_a_key(export) {
        let (code, detail) = refusal(client, &statement);
        assert_eq!((code.as_str(), detail.as_str()), ("55000", "KEYS_UNAVAILABLE"), "{why}");
    }
}

/// Files that must be refused, and why.
fn unusable_files(folder: &Path) -> Vec<(&'static str, PathBuf)> {
    let file = |name: &str, length: usize, mode: u32| {
        let path = folder.join(name);
        secret_file::write(&path, &random(length));
        set_mode(&path, mode);
        path
    };
    let empty_folder = folder.join("empty");
    fs::create_dir(&empty_folder).unwrap();
    crate::cluster::give_to_server(&empty_folder);
    vec![
        ("missing", folder.join("missing")),
        ("empty", file("zero", 0, 0o600)),
        ("too short", file("short", 31, 0o600)),
        ("too long", file("long", 4097, 0o600)),
        ("a folder", empty_folder),
        ("a device", PathBuf::from("/dev/zero")),
        ("read by the group", file("group", 32, 0o640)),
        ("read by all", file("world", 32, 0o604)),
        ("written by all", file("written", 32, 0o602)),
        ("not readable", file("unreadable", 32, 0o200)),
    ]
}

#[test]
fn an_unusable_key_file_stops_everything_and_nothing_takes_its_place() {
    let (cluster, export) = installed();
    for setting in [ROOT, SECRET] {
        let folder = cluster.folder.join(setting);
        fs::create_dir(&folder).unwrap();
        set_mode(&folder, 0o755);
        for (why, path) in unusable_files(&folder) {
            cluster.set(setting, path.to_str().unwrap());
            assert_nothing_works(&mut cluster.client(), &export, why);
        }
        cluster.set(setting, "");
        assert_eq!(reason(&mut cluster.client(), &export), "ok");
    }
}

#[test]
fn files_of_32_and_of_4096_bytes_are_used() {
    let (cluster, export) = installed();
    let mut signers = vec![kid(&export)];
    for length in [32, 4096] {
        secret_file::use_root(&cluster, &random(length));
        let mut client = cluster.client();
        let export = slice(&mut client);
        assert_eq!(reason(&mut client, &export), "ok");
        assert!(!signers.contains(&kid(&export)));
        signers.push(kid(&export));
    }
}

#[test]
fn a_running_session_takes_a_good_file_without_a_restart() {
    let (cluster, signed_by_table) = installed();
    let mut client = cluster.client();
    cluster.set(ROOT, "/nowhere");
    cluster.wait_for(&mut client, ROOT, "/nowhere");
    assert_nothing_works(&mut client, &signed_by_table, "missing");

    let path = secret_file::use_root(&cluster, &random(32));
    cluster.wait_for(&mut client, ROOT, path.to_str().unwrap());
    let signed_by_file = slice(&mut client);
    let exports = [signed_by_table, signed_by_file];
    assert_eq!(reasons(&mut client, &exports), ["unknown_key", "ok"]);

    // The same place, another root.
    secret_file::write(&path, &random(32));
    assert_eq!(reasons(&mut client, &exports), ["unknown_key", "unknown_key"]);

    cluster.set(ROOT, "");
    cluster.wait_for(&mut client, ROOT, "");
    assert_eq!(reasons(&mut client, &exports), ["ok", "unknown_key"]);
}

#[test]
fn the_extension_is_not_created_with_an_unusable_key_file() {
    let cluster = Cluster::start(&format!("{ROOT} = '/nowhere'"));
    let mut client = cluster.client();
    let refused = refusal(&mut client, "CREATE EXTENSION graph_kernel");
    assert_eq!(refused, ("55000".to_owned(), "KEYS_UNAVAILABLE".to_owned()));
    secret_file::use_root(&cluster, &random(32));
    let mut client = cluster.client();
    install(&mut client);
    let export = slice(&mut client);
    assert_eq!(reason(&mut client, &export), "ok");
}

#[test]
fn root_may_lend_a_key_file_to_the_servers_group() {
    if fs::metadata("/proc/self").unwrap().uid() != 0 {
        tell("SKIPPED: root_may_lend_a_key_file_to_the_servers_group: not run as root");
        return;
    }
    let (cluster, export) = installed();
    let (_, group) = server_account();
    let path = secret_file::use_root(&cluster, &random(32));
    let mut client = cluster.client();
    for (mode, lent) in [
        (0o640, true),
        (0o440, true),
        (0o600, false), // only root can read it
        (0o644, false),
        (0o660, false),
        (0o641, false),
    ] {
        chown(&path, Some(0), Some(group)).unwrap();
        set_mode(&path, mode);
        if lent {
            let new = slice(&mut client);
            assert_eq!(reason(&mut client, &new), "ok", "{mode:o}");
        } else {
            assert_nothing_works(&mut client, &export, &format!("{mode:o}"));
        }
    }
}

#[test]
fn an_epoch_begun_with_a_key_file_leaves_no_root_in_the_database() {
    let (cluster, signed_by_table) = installed();
    secret_file::use_root(&cluster, &random(32));
    let mut client = cluster.client();
    rotate(&mut client);
    let signed_by_file = slice(&mut client);
    let roots = "SELECT string_agg(epoch || CASE WHEN root IS NULL THEN ' none' ELSE '' END, ', '
                                   ORDER BY epoch) FROM graph_kernel.root_keys";
    assert_eq!(text(&mut client, roots), "1, 2 none");

    // Without the file nothing takes its place until somebody rotates.
    cluster.set(ROOT, "");
    let mut client = cluster.client();
    let refused = refusal(&mut client, SLICE);
    assert_eq!(refused, ("55000".to_owned(), "KEYS_UNAVAILABLE".to_owned()));
    let exports = [signed_by_table, signed_by_file];
    assert_eq!(reasons(&mut client, &exports), ["ok", "unknown_key"]);
    rotate(&mut client);
    let export = slice(&mut client);
    assert_eq!(reason(&mut client, &export), "ok");
    assert_eq!(text(&mut client, roots), "1, 2 none, 3");
}

#[test]
fn a_key_file_of_a_time_to_come_is_read_without_waiting() {
    let cluster = Cluster::start("");
    let mut client = cluster.client();
    install(&mut client);
    let path = secret_file::use_root(&cluster, &random(32));
    let file = fs::File::options().append(true).open(&path).unwrap();
    file.set_modified(SystemTime::now() + Duration::from_secs(3600)).unwrap();
    let mut client = cluster.client();
    slice(&mut client);
    let start = Instant::now();
    (0..20).for_each(|_| drop(slice(&mut client)));
    let time = start.elapsed();
    assert!(time < Duration::from_secs(1), "20 slices take {time:?}");
}

/// What happens to a file in a thread of its own until it is dropped.
struct Meanwhile(Arc<AtomicBool>, Option<JoinHandle<()>>);

impl Meanwhile {
    fn again(mut act: impl FnMut() + Send + 'static) -> Self {
        let ended = Arc::new(AtomicBool::new(false));
        let until = Arc::clone(&ended);
        let thread = std::thread::spawn(move || {
            while !until.load(Ordering::Relaxed) {
                act();
            }
        });
        Meanwhile(ended, Some(thread))
    }
}

impl Drop for Meanwhile {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
        self.1.take().unwrap().join().unwrap();
    }
}

/// The kids of slices with these roots.
fn kids_of(cluster: &Cluster, roots: &[Vec<u8>]) -> Vec<String> {
    let mut signer = |root: &Vec<u8>| {
        secret_file::use_root(cluster, root);
        kid(&slice(&mut cluster.client()))
    };
    roots.iter().map(&mut signer).collect()
}

#[test]
fn half_a_key_file_never_signs() {
    let (cluster, _) = installed();
    let roots = [random(64), random(64)];
    let known = kids_of(&cluster, &roots);
    let path = cluster.folder.join("root.key");
    let mut number = 0;
    let _written = Meanwhile::again(move || {
        // In place, in two parts, the first of which is long enough for a root.
        number += 1;
        let root = &roots[number % 2];
        let mut file = fs::OpenOptions::new().write(true).truncate(true).open(&path).unwrap();
        file.write_all(&root[..40]).unwrap();
        std::thread::sleep(Duration::from_micros(500));
        file.write_all(&root[40..]).unwrap();
        std::thread::sleep(Duration::from_millis(3));
    });
    let mut client = cluster.client();
    for _ in 0..20 {
        match client.query_one(SLICE, &[]) {
            Ok(row) => assert!(known.contains(&kid(row.get(0)))),
            Err(error) => {
                let detail = error.as_db_error().unwrap().detail().unwrap();
                assert_eq!(detail, "KEYS_UNAVAILABLE");
            }
        }
    }
}

#[test]
fn a_key_file_that_is_renamed_into_place_always_signs() {
    let (cluster, _) = installed();
    let roots = [random(64), random(64)];
    let known = kids_of(&cluster, &roots);
    let (path, beside) = (cluster.folder.join("root.key"), cluster.folder.join("new.key"));
    let mut number = 0;
    let _renamed = Meanwhile::again(move || {
        number += 1;
        secret_file::write(&beside, &roots[number % 2]);
        fs::rename(&beside, &path).unwrap();
        std::thread::sleep(Duration::from_millis(130));
    });
    let mut client = cluster.client();
    for _ in 0..20 {
        assert!(known.contains(&kid(&slice(&mut client))));
    }
}

#[test]
fn a_relative_path_is_refused() {
    let (cluster, export) = installed();
    // The server's working folder is its data folder.
    secret_file::write(&cluster.data().join("here.key"), &random(32));
    for setting in [ROOT, SECRET] {
        for path in ["here.key", "./here.key"] {
            cluster.set(setting, path);
            assert_nothing_works(&mut cluster.client(), &export, path);
        }
        cluster.set(setting, "");
    }
}

/// What this session makes of the graph and of an export that the table's root has signed: the id
/// of the key it signs with, and the reason; or errors.
fn tries(client: &mut Client, signed_by_table: &str) -> [Result<String, String>; 2] {
    let mut ask = |statement: &str| {
        let answer = client.query_one(statement, &[]);
        answer.map(|row| row.get::<_, String>(0)).map_err(|error| error.to_string())
    };
    let reason = ask(&format!("SELECT reason FROM graph_verify('{signed_by_table}')"));
    [ask(SLICE).map(|export| kid(&export)), reason]
}

/// Sessions of roles whose settings name another file, or none, before the library is loaded: until
/// then the name means nothing to the server.
fn tampered_sessions(cluster: &Cluster, value: &str) -> Vec<(&'static str, Client)> {
    let mut sessions = Vec::new();
    let mut config = cluster.config("mallory", "postgres");
    config.options(&format!("-c {ROOT}={value}"));
    sessions.extend(config.connect(NoTls).map(|client| ("options", client)));
    sessions.extend(config.connect(NoTls).map(|mut client| {
        client.batch_execute(FORCE_PARALLEL).unwrap();
        ("options, in a worker", client)
    }));
    let mut add = |way, role, statement: &str| {
        let mut client = cluster.client_of(role, "postgres");
        let _ = client.batch_execute(statement);
        sessions.push((way, client));
    };
    add("SET", "mallory", &format!("SET {ROOT} = '{value}'"));
    add("SET, in a worker", "mallory", &format!("SET {ROOT} = '{value}'; {FORCE_PARALLEL}"));
    add("SET LOCAL", "mallory", &format!("BEGIN; SET LOCAL {ROOT} = '{value}'"));
    add("to be altered", "mallory", &format!("ALTER ROLE mallory SET {ROOT} = '{value}'"));
    add("after ALTER ROLE", "mallory", "");
    let _ = cluster.client().batch_execute(&format!("ALTER ROLE trent SET {ROOT} = '{value}'"));
    add("after a superuser's ALTER ROLE", "trent", "");
    add("loaded and rolled back", "trent", "BEGIN; SELECT graph_kernel_version(); ROLLBACK");
    sessions
}

#[test]
fn no_session_switches_the_key_file_off_for_itself() {
    let (cluster, signed_by_table) = installed();
    cluster
        .client()
        .batch_execute(
            "CREATE ROLE mallory LOGIN; CREATE ROLE trent LOGIN;
             GRANT SELECT ON public.memory_turns, public.memory_turn_edges TO PUBLIC",
        )
        .unwrap();
    let path = secret_file::use_root(&cluster, &random(32));
    let other = cluster.folder.join("other.key");
    secret_file::write(&other, &random(32));
    let by_file = kid(&slice(&mut cluster.client()));

    for value in ["", "/nowhere", path.to_str().unwrap(), other.to_str().unwrap()] {
        for (way, mut client) in tampered_sessions(&cluster, value) {
            // Whatever is refused, a second try gets no more.
            for _ in 0..2 {
                let [signer, reason] = tries(&mut client, &signed_by_table);
                assert!(signer.as_ref().map_or(true, |kid| *kid == by_file), "{way}: {signer:?}");
                assert!(reason.as_ref().map_or(true, |r| r == "unknown_key"), "{way}: {reason:?}");
                let _ = client.batch_execute("ROLLBACK");
            }
        }
    }
    assert_eq!(kid(&slice(&mut cluster.client())), by_file);
}

/// Under a file an epoch that is rolled back has the key of one that may come: nothing is signed with it.
#[test]
fn nothing_is_signed_while_the_own_transaction_changes_keys() {
    let (cluster, _) = installed();
    secret_file::use_root(&cluster, &random(32));
    let mut client = cluster.client();
    rotate(&mut client);
    let record = "SELECT graph_messages_record('00000000-0000-4000-8000-000000000003')::text";
    for change in [
        "SELECT graph_kernel.rotate_key(), graph_kernel.rotate_key()",
        "INSERT INTO graph_kernel.revoked_keys SELECT kid FROM graph_kernel.keys WHERE state = 'active'",
    ] {
        client.batch_execute("BEGIN").unwrap();
        client.batch_execute(change).unwrap();
        let (export, prompt) = (slice(&mut client), text(&mut client, record));
        client.batch_execute("ROLLBACK").unwrap();
        assert!(export.contains(r#""status":"uncommitted""#), "{export}");
        assert_eq!(reason(&mut client, &export), "unattested", "{change}");
        assert!(!prompt.contains("gkm"), "{change}: {prompt}");
        let export = slice(&mut client);
        assert_eq!(reason(&mut client, &export), "ok");
    }
}

/// Also where the next epoch was revoked before, as by a restore from a database that was further on.
#[test]
fn the_key_that_signed_is_the_one_that_rotation_revokes() {
    let (cluster, _) = installed();
    secret_file::use_root(&cluster, &random(32));
    let mut client = cluster.client();
    rotate(&mut client);
    let revoke_next = "INSERT INTO graph_kernel.revoked_keys (kid) VALUES ($1)";
    client.batch_execute("BEGIN").unwrap();
    let next = rotate(&mut client);
    client.batch_execute("ROLLBACK").unwrap();
    client.execute(revoke_next, &[&next]).unwrap();
    let rotate_and_revoke = "SELECT graph_kernel.rotate_key(revoke_old => true)";
    for _ in 0..3 {
        let export = slice(&mut client);
        assert_eq!(reason(&mut client, &export), "ok");
        text(&mut client, rotate_and_revoke);
        assert_eq!(reason(&mut client, &export), "revoked_key");
        // The key is listed for whoever looks for it.
        let listed = "SELECT state FROM graph_kernel.keys WHERE kid = $1";
        let row = client.query_one(listed, &[&kid(&export)]).unwrap();
        assert_eq!(row.get::<_, &str>(0), "revoked");
    }
}
