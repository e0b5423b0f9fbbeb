//! Settings that are not the user's: where the library is not preloaded, no session sets one for itself.

use postgres::{Client, NoTls};

use crate::cluster::Cluster;
use crate::graph::{install, text};
use crate::parallel::FORCE_PARALLEL;
use crate::secret_file;

/// Settings that each user may set.
const OF_USERS: [&str; 2] = ["graph_kernel.graph", "graph_kernel.notice_uncommitted"];

/// Each other setting: its context, what is configured, what stands in its place where a session tried to set it, and
/// values to try.
const OTHERS: [(&str, &str, &str, &str, [&str; 3]); 4] = [
    ("graph_kernel.log_refusals", "superuser", "on", "on", ["off", "false", "wrong"]),
    ("graph_kernel.max_nodes_limit", "superuser", "5000", "1", ["10000", "9999", "wrong"]),
    ("graph_kernel.root_key_file", "sighup", "", REFUSED_PATH, ["/nowhere", "root.key", "''"]),
    ("graph_kernel.v2_secret_file", "sighup", "", REFUSED_PATH, ["/nowhere", "root.key", "''"]),
];
const REFUSED_PATH: &str = "refused: this session tried to set it";

const LOAD: &str = "SELECT graph_kernel_version()";

fn value(client: &mut Client, setting: &str) -> String {
    client.query_one("SELECT current_setting($1)", &[&setting]).unwrap().get(0)
}

/// Sessions of a plain role that try to set a setting before the library is loaded.
fn tries(cluster: &Cluster, setting: &str, value: &str) -> Vec<(&'static str, Client)> {
    let mut config = cluster.config("mallory", "postgres");
    config.options(&format!("-c {setting}={value}"));
    let mut sessions = Vec::new();
    for (way, first) in [("options", ""), ("options, in a worker", FORCE_PARALLEL)] {
        let mut client = config.connect(NoTls).unwrap();
        client.batch_execute(first).unwrap();
        sessions.push((way, client));
    }
    for (way, statement) in [
        ("SET", format!("SET {setting} = '{value}'")),
        ("SET LOCAL", format!("BEGIN; SET LOCAL {setting} = '{value}'")),
        ("set_config", format!("SELECT set_config('{setting}', '{value}', false)")),
    ] {
        let mut client = cluster.client_of("mallory", "postgres");
        client.batch_execute(&statement).unwrap();
        sessions.push((way, client));
    }
    let mut owner = cluster.client_of("mallory", "postgres");
    // Some versions let a role keep a setting of a name that is not known.
    let _ = owner.batch_execute(&format!("ALTER ROLE mallory SET {setting} = '{value}'"));
    sessions.push(("ALTER ROLE", cluster.client_of("mallory", "postgres")));
    let _ = owner.batch_execute(&format!("ALTER ROLE mallory RESET {setting}"));
    sessions
}

#[test]
fn no_session_sets_for_itself_what_is_not_the_users() {
    let cluster =
        Cluster::start("graph_kernel.max_nodes_limit = 5000\ngraph_kernel.log_refusals = on");
    let mut admin = cluster.client();
    install(&mut admin);
    let root = secret_file::use_root(&cluster, &secret_file::random(32));
    let secret = cluster.folder.join("v2.secret");
    secret_file::write(&secret, &secret_file::random(32));
    cluster.set("graph_kernel.v2_secret_file", secret.to_str().unwrap());
    let path = |setting: &str, configured: &str| match setting {
        "graph_kernel.root_key_file" => root.to_str().unwrap().to_owned(),
        "graph_kernel.v2_secret_file" => secret.to_str().unwrap().to_owned(),
        _ => configured.to_owned(),
    };

    // Every setting there is, so that a new one is tried too.
    let others = "SELECT string_agg(name || ' ' || context, ', ' ORDER BY name) FROM pg_settings
                  WHERE name LIKE 'graph\\_kernel.%' AND context <> 'user'";
    let expected: Vec<String> =
        OTHERS.iter().map(|(name, context, ..)| format!("{name} {context}")).collect();
    let mut client = cluster.client();
    client.batch_execute(LOAD).unwrap();
    assert_eq!(text(&mut client, others), expected.join(", "));
    let of_users =
        "SELECT name FROM pg_settings WHERE name LIKE 'graph\\_kernel.%' AND context = 'user'";
    for row in client.query(of_users, &[]).unwrap() {
        assert!(OF_USERS.contains(&row.get(0)), "{row:?}");
    }

    admin.batch_execute("CREATE ROLE mallory LOGIN IN ROLE pg_read_all_settings").unwrap();
    let mut untouched = cluster.client_of("mallory", "postgres");
    untouched.batch_execute(LOAD).unwrap();
    for (setting, _, configured, closed, values) in OTHERS {
        let configured = path(setting, configured);
        assert_eq!(value(&mut untouched, setting), configured);
        for tried in values {
            let tried = tried.trim_matches('\'');
            for (way, mut client) in tries(&cluster, setting, tried) {
                let about = format!("{setting} = {tried} by {way}");
                client.batch_execute(LOAD).unwrap();
                let now = value(&mut client, setting);
                assert!(now == closed || now == configured, "{about}: {now}");
                // Nor afterwards, nor once a transaction that set it has ended.
                for after in ["ROLLBACK", "RESET ALL", "DISCARD ALL"] {
                    let _ = client.batch_execute(after);
                    let now = value(&mut client, setting);
                    assert!(now == closed || now == configured, "{about}, {after}: {now}");
                    assert!(client.batch_execute(&format!("SET {setting} = '{tried}'")).is_err());
                }
            }
        }
    }

    // A superuser's own is taken.
    admin.batch_execute("ALTER ROLE mallory SET graph_kernel.log_refusals = off").unwrap();
    let mut client = cluster.client_of("mallory", "postgres");
    client.batch_execute(LOAD).unwrap();
    assert_eq!(value(&mut client, "graph_kernel.log_refusals"), "off");
}
