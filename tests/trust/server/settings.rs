//! The settings that name secrets are the server's: no role sets them for itself.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};

use postgres::Client;

use crate::common::variable;
use crate::graph::{attested, connect_as, database, refusal, slice};

const SETTINGS: [&str; 2] = ["graph_kernel.root_key_file", "graph_kernel.v2_secret_file"];

/// A file that would do as a secret, known to the attacker.
fn known_secret(name: &str) -> String {
    let path = format!("{}/{name}-{}", variable("GRAPH_KERNEL_SCRATCH"), std::process::id());
    fs::write(&path, [b'k'; 40]).unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
    let owner = fs::metadata(variable("GRAPH_KERNEL_DATADIR")).unwrap();
    chown(&path, Some(owner.uid()), Some(owner.gid())).unwrap();
    path
}

/// The key id and published token of a slice, or `None` where a key was refused.
fn claims(client: &mut Client) -> Option<(String, String)> {
    match client.query_one("SELECT graph_slice(turn(3))::text", &[]) {
        Ok(row) => {
            let export: String = row.get(0);
            let parsed: serde_json::Value = serde_json::from_str(&export).unwrap();
            Some((attested(&export, "kid"), parsed["admissibility_token"].to_string()))
        }
        Err(error) => {
            assert_eq!(error.code().map(|code| code.code()), Some("55000"), "{error}");
            None
        }
    }
}

#[test]
fn a_setting_made_before_the_library_is_loaded_takes_no_effect() {
    let database = database("placeholder");
    let expected = claims(&mut database.connect()).unwrap();
    let secret = known_secret("session");
    for role in ["trust_reader", "postgres"] {
        for setting in SETTINGS {
            for statement in [
                format!("SET {setting} = '{secret}'"),
                format!("SET {setting} = ''"),
                format!("SET SESSION {setting} TO '/nowhere'"),
                format!("SELECT set_config('{setting}', '{secret}', false)"),
                format!("BEGIN; SET LOCAL {setting} = '{secret}'"),
            ] {
                let mut client = connect_as(&database, role);
                client.batch_execute(&statement).unwrap();
                let claims = claims(&mut client);
                assert!(claims.is_none_or(|claims| claims == expected), "{role}: {statement}");
            }
        }
    }
    fs::remove_file(secret).unwrap();
}

#[test]
fn a_setting_of_a_function_takes_no_effect() {
    let database = database("function_setting");
    let expected = claims(&mut database.connect()).unwrap();
    let secret = known_secret("function");
    let mut client = connect_as(&database, "trust_reader");
    for setting in SETTINGS {
        let create = format!(
            "CREATE FUNCTION pg_temp.sliced() RETURNS json LANGUAGE sql SET {setting} = '{secret}'
                 AS 'SELECT graph_slice(turn(3))'"
        );
        // Refused as a whole, or refused when it runs.
        if client.batch_execute(&create).is_ok() {
            let _ = client.batch_execute("SELECT pg_temp.sliced()");
            let _ = client.batch_execute("DROP FUNCTION pg_temp.sliced()");
        }
        assert!(claims(&mut client).is_none_or(|claims| claims == expected), "{setting}");
    }
    fs::remove_file(secret).unwrap();
}

#[test]
fn nobody_sets_them_once_the_library_is_loaded() {
    let database = database("loaded");
    for role in ["trust_reader", "postgres"] {
        let mut client = connect_as(&database, role);
        slice(&mut client);
        for setting in SETTINGS {
            for statement in [
                format!("SET {setting} = '/tmp/x'"),
                format!("SELECT set_config('{setting}', '/tmp/x', false)"),
                format!("SET LOCAL {setting} = '/tmp/x'"),
            ] {
                assert_eq!(refusal(&mut client, &statement), "55P02", "{role}: {statement}");
            }
        }
        assert_eq!(refusal(&mut client, "SET graph_kernel.no_such_setting = 1"), "42602");
    }
}

#[test]
fn nobody_but_a_superuser_stores_them_for_roles_and_databases() {
    let database = database("stored");
    let name = &database.name;
    database
        .connect()
        .batch_execute(&format!("ALTER DATABASE {name} OWNER TO trust_owner"))
        .unwrap();
    for loaded in [false, true] {
        for role in ["trust_owner", "trust_reader"] {
            let mut client = connect_as(&database, role);
            if loaded {
                slice(&mut client);
            }
            for setting in SETTINGS {
                for statement in [
                    format!("ALTER ROLE {role} SET {setting} = '/tmp/x'"),
                    format!("ALTER ROLE {role} IN DATABASE {name} SET {setting} = '/tmp/x'"),
                    format!("ALTER DATABASE {name} SET {setting} = '/tmp/x'"),
                    format!("ALTER SYSTEM SET {setting} = '/tmp/x'"),
                ] {
                    let code = refusal(&mut client, &statement);
                    // A setting that can only come from the server's files is not a role's.
                    assert!(
                        ["42501", "55P02"].contains(&code.as_str()),
                        "{role}: {statement}: {code}"
                    );
                }
            }
        }
    }
}

#[test]
fn the_paths_are_shown_to_those_who_may_read_all_settings() {
    let database = database("shown");
    let mut client = connect_as(&database, "trust_reader");
    slice(&mut client);
    for setting in SETTINGS {
        assert_eq!(refusal(&mut client, &format!("SHOW {setting}")), "42501");
    }
}

#[test]
fn the_library_is_loaded_by_its_functions_alone() {
    let database = database("load");
    let mut client = connect_as(&database, "trust_reader");
    assert_eq!(refusal(&mut client, "LOAD 'graph_kernel'"), "42501");
    assert_eq!(
        refusal(
            &mut client,
            "CREATE FUNCTION pg_temp.f() RETURNS text LANGUAGE c AS 'graph_kernel', 'add_epoch_wrapper'"
        ),
        "42501"
    );
}
