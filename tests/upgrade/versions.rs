//! A library and objects of different versions: an error that says what to do, and nothing is lost.

use postgres::Client;

use crate::cluster::Cluster;
use crate::contents::{ROLES, answers, assert_same, keep_documents, make_objects};
use crate::graph::{SLICE, text};
use crate::installation::{CURRENT, Installation, next_version};

const OLDEST: &str = "0.0.0";

/// SQLSTATE, message, DETAIL and HINT of the error that a statement must raise.
fn refusal(client: &mut Client, statement: &str) -> [String; 4] {
    let error = client.batch_execute(statement).expect_err(statement);
    let error = error.as_db_error().unwrap_or_else(|| panic!("{statement}: {error}"));
    let part = |part: Option<&str>| part.unwrap_or_default().to_owned();
    [
        error.code().code().to_owned(),
        error.message().to_owned(),
        part(error.detail()),
        part(error.hint()),
    ]
}

fn mismatch(installed: &str, library: &str, hint: &str) -> [String; 4] {
    [
        "55000".to_owned(),
        format!(
            "extension graph_kernel has version {installed} in this database, the loaded library has {library}"
        ),
        "EXTENSION_VERSION".to_owned(),
        hint.to_owned(),
    ]
}

const UPDATE: &str = "Run ALTER EXTENSION graph_kernel UPDATE.";
const RECONNECT: &str = "Open a new session. Where the library is in shared_preload_libraries, restart the server. \
                         Where that does not help, install the package of the extension's version.";

/// Calls that need the private tables.
const CALLS: [&str; 7] = [
    SLICE,
    "SELECT * FROM graph_slice_turns('00000000-0000-4000-8000-000000000003')",
    "SELECT * FROM public.kept, graph_verify(slice)",
    "SELECT * FROM graph_kernel.keys",
    "SELECT graph_kernel.rotate_key()",
    "SELECT * FROM graph_check()",
    "INSERT INTO public.atoms SELECT 2, slice, '{}' FROM public.kept WHERE id = 1",
];

#[test]
fn a_newer_library_asks_for_the_update_and_loses_nothing() {
    let installation = Installation::new();
    let cluster = Cluster::start_with(&installation.programs);
    let mut client = cluster.client();
    client.batch_execute(ROLES).unwrap();
    client.batch_execute("CREATE EXTENSION graph_kernel").unwrap();
    make_objects(&mut client);
    keep_documents(&mut client);
    let before = answers(&mut client);

    let next = next_version();
    installation.use_library(&next);
    let mut client = cluster.client();
    assert_eq!(text(&mut client, "SELECT graph_kernel_version()"), next);
    for call in CALLS {
        assert_eq!(refusal(&mut client, call), mismatch(CURRENT, &next, UPDATE), "{call}");
    }
    // The application can write: what these indexes and this trigger call needs no table of the extension.
    client
        .batch_execute(
            "BEGIN; INSERT INTO public.notes VALUES (10, 9, 'while the versions differ');
             UPDATE public.memory_turns SET content_text = 'edited'; ROLLBACK",
        )
        .unwrap();

    installation.use_library(CURRENT);
    assert_same(&answers(&mut cluster.client()), &before);
}

#[test]
fn an_older_library_runs_no_script() {
    let installation = Installation::new();
    installation.use_library(OLDEST);
    let cluster = Cluster::start_with(&installation.programs);
    let mut client = cluster.client();
    assert_eq!(
        refusal(&mut client, "CREATE EXTENSION graph_kernel"),
        mismatch(CURRENT, OLDEST, RECONNECT)
    );
    assert_eq!(
        text(&mut client, "SELECT count(*)::text FROM pg_namespace WHERE nspname = 'graph_kernel'"),
        "0"
    );
}

#[test]
fn versions_are_compared_by_their_numbers() {
    let installation = Installation::new();
    let later = "0.100.0";
    installation.add_script(later, &installation.script(CURRENT));
    let cluster = Cluster::start_with(&installation.programs);
    let create = format!("CREATE EXTENSION graph_kernel VERSION '{later}'");
    assert_eq!(refusal(&mut cluster.client(), &create), mismatch(later, CURRENT, RECONNECT));
}

#[test]
fn a_session_with_the_old_library_stops_when_another_one_updates() {
    let installation = Installation::new();
    let next = next_version();
    installation
        .add_script(&format!("{CURRENT}--{next}"), "SELECT graph_kernel.require_library();");
    let cluster = Cluster::start_with(&installation.programs);
    let mut old = cluster.client();
    old.batch_execute("CREATE EXTENSION graph_kernel").unwrap();
    crate::graph::create_graph(&mut old);
    text(&mut old, SLICE);
    let update = format!("ALTER EXTENSION graph_kernel UPDATE TO '{next}'");
    // Its library was loaded before the file was replaced.
    installation.use_library(&next);
    assert_eq!(refusal(&mut old, &update), mismatch(&next, CURRENT, RECONNECT));
    text(&mut old, SLICE);
    let mut new = cluster.client();
    new.batch_execute(&update).unwrap();
    text(&mut new, SLICE);
    assert_eq!(refusal(&mut old, SLICE), mismatch(&next, CURRENT, RECONNECT));
    assert_eq!(
        refusal(&mut old, "SELECT * FROM graph_kernel.keys"),
        mismatch(&next, CURRENT, RECONNECT)
    );
}
