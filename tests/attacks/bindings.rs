//! The extension's owner, a plain role, binds what he may not read or write, and waits for a superuser's call.

use postgres::Client;

use crate::setup::{OWNER, Setup};

/// The turn that every mapping below gives.
const TURN: &str = "00000000-0000-4000-8000-000000000001";

/// A secret of somebody else's, a table that the owner made a member of the extension, one with such a partition, and
/// tables of his own.
const TABLES: &str = "
    CREATE SCHEMA vault;
    GRANT USAGE ON SCHEMA vault TO PUBLIC;
    CREATE TABLE vault.secrets (id uuid PRIMARY KEY, secret text);
    INSERT INTO vault.secrets VALUES ('00000000-0000-4000-8000-000000000001', 'the secret');";
const OWN_TABLES: &str = "
    CREATE EXTENSION graph_kernel SCHEMA own;
    CREATE TABLE own.member (id uuid PRIMARY KEY, secret text);
    ALTER EXTENSION graph_kernel ADD TABLE own.member;
    CREATE TABLE own.parted (id uuid PRIMARY KEY, secret text) PARTITION BY HASH (id);
    CREATE TABLE own.part PARTITION OF own.parted FOR VALUES WITH (MODULUS 1, REMAINDER 0);
    ALTER EXTENSION graph_kernel ADD TABLE own.part;
    CREATE TABLE own.turns (id uuid PRIMARY KEY, secret text);
    INSERT INTO own.turns VALUES ('00000000-0000-4000-8000-000000000001', 'no secret');";

struct Attack {
    setup: Setup,
    owner: Client,
    admin: Client,
}

impl Attack {
    fn new(name: &str) -> Self {
        let setup = Setup::empty(name);
        let mut admin = setup.admin();
        admin.batch_execute(&format!("CREATE SCHEMA own AUTHORIZATION {OWNER}; {TABLES}")).unwrap();
        let mut owner = setup.owner();
        owner.batch_execute(OWN_TABLES).unwrap();
        owner.batch_execute("SET client_min_messages = error").unwrap();
        admin.batch_execute("SET search_path = own").unwrap();
        Attack { setup, owner, admin }
    }

    /// Binds by INSERT, past the checks of the function.
    fn insert(&mut self, table: &str, columns: &str) {
        let mut rest = serde_json::json!({
            "session_id": null, "role": null, "phase": null, "salience": null, "trajectory_depth": null,
            "trajectory_sibling_order": null, "trajectory_homogeneity": null, "trajectory_temporal": null,
            "trajectory_complexity": null, "created_at": null,
            "parents": [{ "parent": { "expression": "NULL::uuid" }, "edge_type": "reply" }],
        });
        let given: serde_json::Value = serde_json::from_str(columns).unwrap();
        rest.as_object_mut().unwrap().extend(given.as_object().unwrap().clone());
        let columns = serde_json::json!({ "turns": rest }).to_string();
        self.owner.batch_execute("SELECT graph_kernel.unbind_tables()").unwrap();
        self.owner
            .execute(
                "INSERT INTO graph_kernel.binding (name, is_current, turns, columns, resolved, bound_by)
                 VALUES ('default', true, $1::text::regclass, $2::text::jsonb, $2::text::jsonb, 'postgres')",
                &[&table, &columns],
            )
            .unwrap();
    }
}

/// An answer, or the SQLSTATE and DETAIL of the error.
fn answer(client: &mut Client, statement: &str) -> Result<String, (String, String)> {
    client.simple_query(statement).map(|messages| format!("{messages:?}")).map_err(|error| {
        let error = error.as_db_error().unwrap_or_else(|| panic!("{statement}: {error:?}"));
        (error.code().code().to_owned(), error.detail().unwrap_or_default().to_owned())
    })
}

fn refused(code: &str) -> Result<String, (String, String)> {
    Err((code.to_owned(), "GRAPH_TABLES".to_owned()))
}

fn slice() -> String {
    format!("SELECT graph_slice('{TURN}')")
}

/// Columns over the table that holds the roots: the key as the session.
const ROOT: &str = r#"{"id": {"expression": "CASE WHEN epoch > 0 THEN '00000000-0000-4000-8000-000000000001'::uuid END"},
    "session_id": {"expression": "encode(root, 'hex')"}}"#;

#[test]
fn no_slice_shows_a_root_key() {
    let mut attack = Attack::new("bind_roots");
    attack.owner.batch_execute("SET search_path = own").unwrap();
    let bind = r#"SELECT graph_kernel.bind_tables('graph_kernel.root_keys', columns => '{"turns": {
        "id": {"expression": "CASE WHEN epoch > 0 THEN ''00000000-0000-4000-8000-000000000001''::uuid END"},
        "session_id": {"expression": "encode(root, ''hex'')"},
        "parents": [{"parent": {"expression": "NULL::uuid"}, "edge_type": "reply"}]}}')"#;
    assert_eq!(answer(&mut attack.owner, bind), refused("42809"));
    attack.insert("graph_kernel.root_keys", ROOT);
    for call in [
        slice(),
        format!("SELECT * FROM graph_slice_turns('{TURN}')"),
        "SELECT graph_snapshot()".to_owned(),
        "SELECT graph_kernel.describe_graph('default')".to_owned(),
    ] {
        assert_eq!(answer(&mut attack.admin, &call), refused("42809"), "{call}");
    }
    attack.setup.assert_sound();
}

#[test]
fn no_backfill_writes_a_private_table() {
    let mut attack = Attack::new("bind_kids");
    let columns =
        r#"{"id": {"expression": "md5(kid)::uuid"}, "content_text": "kid", "content_hash": "kid"}"#;
    attack.owner.batch_execute("SELECT graph_kernel.rotate_key(revoke_old => true)").unwrap();
    let kids = "SELECT kid FROM graph_kernel.revoked_keys";
    let kid: String = attack.admin.query_one(kids, &[]).unwrap().get(0);
    attack.insert("graph_kernel.revoked_keys", columns);
    let backfill = "CALL graph_kernel.backfill_content_hashes()";
    assert_eq!(answer(&mut attack.admin, backfill), refused("42809"));
    assert_eq!(attack.admin.query_one(kids, &[]).unwrap().get::<_, String>(0), kid);
}

#[test]
fn catalogs_and_members_of_extensions_are_no_graph() {
    let mut attack = Attack::new("bind_members");
    let tables = [
        ("pg_catalog.pg_authid", "md5(rolname)::uuid"),
        ("pg_catalog.pg_class", "md5(relkind::text)::uuid"),
        ("information_schema.sql_features", "md5('x')::uuid"),
        ("graph_kernel.root_keys", "md5('x')::uuid"),
        ("graph_kernel.revoked_keys", "md5('x')::uuid"),
        ("graph_kernel.binding", "graph"),
        ("graph_kernel.recorder_binding", "md5('x')::uuid"),
        ("graph_kernel.trace_binding", "md5('x')::uuid"),
        ("graph_kernel.policies", "md5('x')::uuid"),
        ("own.member", "id"),
        ("own.parted", "id"),
    ];
    for (table, id) in tables {
        let columns = serde_json::json!({ "id": { "expression": id } }).to_string();
        attack.insert(table, &columns);
        assert_eq!(answer(&mut attack.admin, &slice()), refused("42809"), "{table}");
        let columns = serde_json::json!({ "turns": {
            "id": { "expression": id },
            "parents": [{ "parent": { "expression": "NULL::uuid" }, "edge_type": "reply" }],
        } });
        let bind = format!(
            "SELECT graph_kernel.bind_tables('{table}', columns => '{}')",
            columns.to_string().replace('\'', "''")
        );
        assert_eq!(answer(&mut attack.admin, &bind), refused("42809"), "{table}");
        let events = format!("SELECT graph_kernel.bind_recorder_table('{table}')");
        let refusal = answer(&mut attack.admin, &events);
        assert_eq!(refusal, Err(("42809".to_owned(), "RECORDER_TABLE".to_owned())), "{table}");
        let traces = format!("SELECT graph_kernel.bind_traces('{table}')");
        let refusal = answer(&mut attack.admin, &traces);
        assert_eq!(refusal, Err(("42809".to_owned(), "TRACE_TABLE".to_owned())), "{table}");
    }
    // A table of his own is a graph as soon as it is no member.
    attack.insert("own.turns", r#"{"id": "id", "session_id": "secret"}"#);
    assert!(answer(&mut attack.admin, &slice()).unwrap().contains("no secret"));
}
