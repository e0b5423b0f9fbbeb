//! Roots are nowhere but in their table or file.

use std::fs;
use std::process::Command;

use postgres::Client;

use crate::cluster::Cluster;
use crate::common::{Server, tell};
use crate::graph::{install, refusal, rotate, slice, text};
use crate::secret_file;

/// Bytes as one character each, so that any output can be searched as a text.
fn characters(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| char::from(*byte)).collect()
}

/// Parts of secrets in every spelling they might be written in.
struct Spellings(Vec<String>);

impl Spellings {
    /// Of the roots in a database and of more secrets.
    fn of(client: &mut Client, secrets: &[&[u8]]) -> Self {
        // A superuser alone can make such a cast.
        let cast = "CAST (graph_kernel.secret AS bytea)";
        client.batch_execute(&format!("CREATE {cast} WITHOUT FUNCTION")).unwrap();
        let roots = "SELECT root::bytea FROM graph_kernel.root_keys WHERE root IS NOT NULL";
        let rows = client.query(roots, &[]).unwrap();
        client.batch_execute(&format!("DROP {cast}")).unwrap();
        let mut all: Vec<Vec<u8>> = rows.iter().map(|row| row.get(0)).collect();
        assert!(!all.is_empty());
        all.extend(secrets.iter().map(|secret| secret.to_vec()));
        // Spelled by another server, so that this one never hears of it.
        let mut speller = Server::primary().connect_admin();
        let spelled = "SELECT upper(encode($1, 'hex')) UNION ALL
                       SELECT encode($1, form) FROM unnest('{hex,escape,base64}'::text[]) AS form";
        let mut spellings = Vec::new();
        for secret in all {
            // Multiples of three, as base64 goes.
            for part in [&secret[..12], &secret[18..30]] {
                let rows = speller.query(spelled, &[&part]).unwrap();
                spellings.extend(rows.iter().map(|row| row.get::<_, String>(0)));
                spellings.push(characters(part));
                let debug = format!("{part:?}");
                spellings.push(debug.trim_matches(['[', ']']).to_owned());
            }
        }
        Spellings(spellings)
    }

    fn assert_absent(&self, what: &str, output: &[u8]) {
        let output = characters(output);
        for spelling in &self.0 {
            assert!(!output.contains(spelling), "{what} holds a secret: {spelling:?}");
        }
    }
}

#[test]
fn a_secret_is_found_in_every_spelling() {
    let secret: Vec<u8> = (0..32).map(|n| n * 8 + 3).collect();
    let spellings = Spellings(vec![characters(&secret[..12]), "3, 11, 19".to_owned()]);
    for output in [secret.clone(), format!("{secret:?}").into_bytes()] {
        let found = std::panic::catch_unwind(|| spellings.assert_absent("it", &output));
        assert!(found.is_err());
    }
    spellings.assert_absent("nothing", b"");
}

/// What makes, uses and changes keys.
fn use_keys(client: &mut Client) {
    install(client);
    let export = slice(client);
    client.execute("SELECT graph_proof($1::text::json)", &[&export]).unwrap();
    client.execute("SELECT * FROM graph_kernel.proof_keys", &[]).unwrap();
    rotate(client);
    text(client, "SELECT graph_kernel.rotate_key(revoke_old => true)");
}

#[test]
fn logical_decoding_shows_no_root() {
    let cluster = Cluster::start("");
    let mut client = cluster.client();
    let mut plugins = vec!["pgoutput"];
    let slot = |plugin: &str| {
        format!("SELECT pg_create_logical_replication_slot('slot_{plugin}', '{plugin}')")
    };
    client.batch_execute(&slot("pgoutput")).unwrap();
    match client.batch_execute(&slot("test_decoding")) {
        Ok(()) => plugins.push("test_decoding"),
        Err(error) => tell(&format!("SKIPPED: decoding with test_decoding: {error}")),
    }
    client.batch_execute("CREATE PUBLICATION everything FOR ALL TABLES").unwrap();
    use_keys(&mut client);
    client.batch_execute("VACUUM FULL graph_kernel.root_keys").unwrap();
    rotate(&mut client);

    let spellings = Spellings::of(&mut client, &[]);
    for plugin in plugins {
        let options = match plugin {
            "pgoutput" => ", 'proto_version', '1', 'publication_names', 'everything'",
            _ => "",
        };
        let statement = format!(
            "SELECT data FROM pg_logical_slot_get_binary_changes('slot_{plugin}', NULL, NULL{options})"
        );
        let rows = client.query(&statement, &[]).unwrap();
        let decoded = rows.iter().flat_map(|row| row.get::<_, Vec<u8>>(0)).collect::<Vec<u8>>();
        let readable = characters(&decoded);
        assert!(readable.contains("revoked_keys"), "{plugin} decodes");
        assert!(!readable.contains("root_keys"), "{plugin} decodes a row of root_keys");
        spellings.assert_absent(plugin, &decoded);
    }
}

/// Errors of every kind in handling keys.
fn provoke_errors(cluster: &Cluster, client: &mut Client) {
    for statement in [
        "SELECT graph_kernel.revoke_key('garbage')",
        "SELECT graph_kernel.revoke_key(kid) FROM graph_kernel.keys WHERE state = 'active'",
        "SELECT graph_kernel.rotate_key('neither')",
        "SELECT graph_kernel.add_epoch(1)",
        "BEGIN READ ONLY; SELECT graph_kernel.rotate_key()",
        "ROLLBACK; SELECT root FROM graph_kernel.root_keys GROUP BY epoch",
        "SELECT 1 / (epoch - epoch) FROM graph_kernel.root_keys",
        "ALTER TABLE graph_kernel.root_keys ADD CHECK (epoch > 5)",
        "CREATE UNIQUE INDEX ON graph_kernel.root_keys ((epoch * 0))",
        "SELECT graph_slice('00000000-0000-4000-8000-00000000dead')",
    ] {
        refusal(client, statement);
    }
    for bad in ["/nowhere", "/dev/null", "/"] {
        cluster.set("graph_kernel.root_key_file", bad);
        refusal(&mut cluster.client(), "SELECT * FROM graph_kernel.keys");
    }
}

#[test]
fn neither_log_nor_statistics_hold_a_secret() {
    let statements = has_pg_stat_statements();
    let mut configuration = "
        log_statement = all
        log_min_messages = debug5
        log_min_duration_statement = 0
        log_error_verbosity = verbose
        log_parameter_max_length = -1
        log_parameter_max_length_on_error = -1
        debug_print_parse = on
        debug_print_rewritten = on
        debug_print_plan = on\n"
        .to_owned();
    if statements {
        configuration += "shared_preload_libraries = 'pg_stat_statements'
                          pg_stat_statements.track = all\n";
    } else {
        tell("SKIPPED: what pg_stat_statements holds: the server has no pg_stat_statements");
    }
    let cluster = Cluster::start(&configuration);
    let mut client = cluster.client();
    use_keys(&mut client);
    let export = slice(&mut client);
    let (root, secret) = (secret_file::random(32), secret_file::random(40));
    let shared = cluster.folder.join("v2.secret");
    secret_file::write(&shared, &secret);
    cluster.set("graph_kernel.v2_secret_file", shared.to_str().unwrap());
    provoke_errors(&cluster, &mut client);
    secret_file::use_root(&cluster, &root);
    let mut client = cluster.client();
    rotate(&mut client);
    let exports = [slice(&mut client), export];
    for export in &exports {
        client.query("SELECT * FROM graph_verify($1::text::json)", &[export]).unwrap();
        client.query("SELECT * FROM graph_verify_explain($1::text::json)", &[export]).unwrap();
    }
    // A copy of the root where another secret belongs.
    secret_file::write(&shared, &root);
    refusal(&mut client, "SELECT * FROM graph_kernel.keys");

    let mut shown = text(&mut client, "SELECT string_agg(a::text, ' ') FROM pg_stat_activity AS a");
    if statements {
        client.batch_execute("CREATE EXTENSION pg_stat_statements").unwrap();
        shown += &text(&mut client, "SELECT string_agg(query, ' ') FROM pg_stat_statements");
        assert!(shown.contains("rotate_key"));
    }
    let spellings = Spellings::of(&mut client, &[&root, &secret]);
    client.batch_execute("ANALYZE graph_kernel.root_keys").unwrap();
    shown += &text(
        &mut client,
        "SELECT coalesce(string_agg(s::text, ' '), '') FROM pg_statistic AS s
         WHERE starelid = 'graph_kernel.root_keys'::regclass",
    );
    spellings.assert_absent("statistics", shown.as_bytes());
    let log = cluster.log();
    assert!(characters(&log).contains("graph_kernel.rotate_key"));
    spellings.assert_absent("the log", &log);
    for export in &exports {
        spellings.assert_absent("an export", export.as_bytes());
    }
}

fn has_pg_stat_statements() -> bool {
    let mut client = Server::primary().connect_admin();
    let statement = "SELECT count(*)::text FROM pg_available_extensions
                     WHERE name = 'pg_stat_statements'";
    text(&mut client, statement) == "1"
}

#[test]
fn dumps_hold_no_root() {
    let cluster = Cluster::start("");
    let mut client = cluster.client();
    use_keys(&mut client);
    let root = secret_file::random(32);
    secret_file::use_root(&cluster, &root);
    rotate(&mut cluster.client());
    let spellings = Spellings::of(&mut client, &[&root]);
    let dumps: [(&str, &[&str]); 4] = [
        ("pg_dumpall", &[]),
        ("pg_dump", &["--inserts", "postgres"]),
        ("pg_dump", &["--schema=graph_kernel", "postgres"]),
        ("pg_dump", &["--table=graph_kernel.*", "postgres"]),
    ];
    for (program, arguments) in dumps {
        let output = cluster.folder.join("dump.sql");
        let mut dump: Command = cluster.program(program, "postgres");
        crate::common::process::run(dump.arg("--file").arg(&output).args(arguments));
        spellings.assert_absent(program, &fs::read(&output).unwrap());
    }
}

#[test]
fn plain_roles_are_not_shown_where_the_key_file_is() {
    let cluster = Cluster::start("");
    let mut client = cluster.client();
    install(&mut client);
    client.batch_execute("CREATE ROLE somebody LOGIN").unwrap();
    let path = secret_file::use_root(&cluster, &secret_file::random(32));
    let mut client = cluster.client();
    client.batch_execute("SELECT graph_kernel_version()").unwrap();
    assert_eq!(text(&mut client, "SHOW graph_kernel.root_key_file"), path.to_str().unwrap());

    let mut somebody = cluster.client_of("somebody", "postgres");
    somebody.batch_execute("SELECT graph_kernel_version()").unwrap();
    for name in ["graph_kernel.root_key_file", "graph_kernel.v2_secret_file"] {
        assert_eq!(refusal(&mut somebody, &format!("SHOW {name}")).0, "42501");
        let statement = format!("SELECT current_setting('{name}')");
        assert_eq!(refusal(&mut somebody, &statement).0, "42501");
        assert_eq!(refusal(&mut somebody, &format!("SET {name} = '/tmp'")).0, "55P02");
        let listed = format!("SELECT count(*)::text FROM pg_settings WHERE name = '{name}'");
        assert_eq!(text(&mut somebody, &listed), "0");
    }
}
