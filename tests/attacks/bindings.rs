//! The extension's owner, a plain role, binds what he may not read or write, and waits for a superuser's call.

use postgres::Client;

use crate::setup::{OWNER, READER, Setup, text};

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
const ROOT: &str = r#"{"id":
    {"expression": "CASE WHEN epoch > 0 THEN '00000000-0000-4000-8000-000000000001'::uuid END"},
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

/// Such as what a publication of all tables copies to its subscribers.
#[test]
fn no_statement_shows_or_makes_a_root() {
    let mut attack = Attack::new("bind_secret");
    for shown in [
        "string_agg(root::text, ' ')",
        "string_agg(DISTINCT format('%s', root), ' ')",
        "json_agg(root) ->> 0",
        "string_agg(to_jsonb(k) ->> 'root', ' ')",
    ] {
        let select = format!("SELECT {shown} FROM graph_kernel.root_keys AS k");
        assert_eq!(text(&mut attack.admin, &select), "hidden", "{shown}");
    }
    for form in ["text", "csv", "binary"] {
        let copy = format!("COPY graph_kernel.root_keys (root) TO STDOUT (FORMAT {form})");
        let mut bytes = Vec::new();
        std::io::Read::read_to_end(&mut attack.admin.copy_out(&copy).unwrap(), &mut bytes).unwrap();
        let is_hidden = if form == "binary" {
            // Signature, flags, an extension, the count of columns, the length of the value, the end.
            bytes.len() == 11 + 4 + 4 + 2 + 4 + 2
        } else {
            bytes == b"hidden\n"
        };
        assert!(is_hidden, "{form}: {bytes:?}");
    }
    let make = "SELECT '\\x00'::graph_kernel.secret::text";
    assert_eq!(answer(&mut attack.admin, make), Err(("0A000".to_owned(), String::new())));
    let cast = "SELECT '\\x00'::bytea::graph_kernel.secret::text";
    assert_eq!(answer(&mut attack.admin, cast), Err(("42846".to_owned(), String::new())));
}

/// The extension's owner has a name stand for a mapping, and for another one when it is read.
#[test]
fn a_graph_has_one_mapping() {
    let mut attack = Attack::new("bind_resolved");
    attack
        .admin
        .batch_execute(
            "CREATE TABLE own.messages (id uuid PRIMARY KEY, parent uuid, other uuid);
             INSERT INTO own.messages VALUES (own.graph_turn_id(1), NULL, NULL),
                 (own.graph_turn_id(2), own.graph_turn_id(1), NULL),
                 (own.graph_turn_id(3), own.graph_turn_id(2), own.graph_turn_id(1));
             CREATE INDEX ON own.messages (parent, id); CREATE INDEX ON own.messages (other, id);
             GRANT SELECT ON own.messages TO PUBLIC; GRANT USAGE ON SCHEMA own TO PUBLIC",
        )
        .unwrap();
    let mapping = r#"{"turns": {"parents": [{"parent": "parent", "edge_type": "reply"}]}}"#;
    attack
        .owner
        .batch_execute(&format!(
            r#"INSERT INTO graph_kernel.binding (name, is_current, turns, columns, resolved, bound_by, binder, database)
               VALUES ('g', true, 'own.messages'::regclass, '{mapping}',
                   '{{"turns": {{"id": "id", "parents": [{{"parent": "other", "edge_type": "reply"}}]}}}}',
                   current_user, 'postgres', 0)"#
        ))
        .unwrap();
    attack.admin.batch_execute("SET graph_kernel.graph = 'g'").unwrap();
    let graph = "SELECT graph_slice(graph_turn_id(3)) #>> '{attestation,graph}'";
    let forged = text(&mut attack.admin, graph);
    let bind = format!(
        "SELECT graph_kernel.bind_tables('own.messages', columns => '{mapping}', name => 'g')::text"
    );
    let honest = text(&mut attack.admin, &bind);
    assert_ne!(honest, forged);
    assert_eq!(text(&mut attack.admin, graph), honest);
    assert_eq!(text(&mut attack.admin, &bind), honest, "the same mapping is the same graph");
}

/// Who binds a table runs code of its owner, and says that the mapping is right: no hint is a call that binds what
/// another has bound, whatever its row says.
#[test]
fn no_hint_binds_what_another_role_has_bound() {
    let mut attack = Attack::new("bind_hints");
    attack
        .admin
        .batch_execute(
            "SELECT graph_kernel.create_recorder_table('vault'), graph_kernel.create_slice_store('vault');
             ALTER TABLE vault.recorder_events DROP COLUMN ordinal; ALTER TABLE vault.slice_store DROP COLUMN kind",
        )
        .unwrap();
    let resolved = r#"{"turns": {"id": "id", "salience": "secret", "parents": []}}"#;
    for (name, table, columns) in [
        ("default", "own.turns", r#"{"turns": {"role": "secret"}}"#),
        ("of others", "vault.secrets", r#"{"turns": {"content_text": "secret"}}"#),
    ] {
        attack
            .owner
            .batch_execute(&format!(
                "INSERT INTO graph_kernel.binding (name, is_current, turns, columns, resolved)
                 VALUES ('{name}', true, '{table}', '{columns}', '{resolved}')"
            ))
            .unwrap();
    }
    attack
        .owner
        .batch_execute(
            "INSERT INTO graph_kernel.recorder_binding (events) VALUES ('vault.recorder_events');
             INSERT INTO graph_kernel.store_binding (name, store) VALUES ('default', 'vault.slice_store')",
        )
        .unwrap();
    attack
        .owner
        .batch_execute(
            r#"SELECT graph_kernel.bind_tables('own.turns', name => 'fit', columns => '{"turns": {
                   "content_text": "secret",
                   "parents": [{"parent": {"expression": "null::uuid"}, "edge_type": "reply"}]}}')"#,
        )
        .unwrap();
    let mut refused = 0;
    for graph in ["default", "of others", "fit"] {
        attack.admin.batch_execute(&format!("SET graph_kernel.graph = '{graph}'")).unwrap();
        for call in [
            "SELECT graph_slice('00000000-0000-4000-8000-000000000001')::text",
            "SELECT count(*)::text FROM recorder_chunks()",
            "SELECT count(*)::text FROM graph_kernel.kept",
        ] {
            // The other graphs have no store, and one is sliced.
            let Err(error) = attack.admin.query_one(call, &[]) else { continue };
            refused += 1;
            let hint = error.as_db_error().unwrap().hint().unwrap_or_default().to_owned();
            assert!(!hint.contains("bind_"), "{graph}: {call}: {hint}");
        }
        let hints = "SELECT string_agg(concat(detail, hint), ' ') FROM graph_check()";
        let hints = text(&mut attack.admin, hints);
        assert!(!hints.contains("bind_"), "{graph}: {hints}");
        // Over tables of others that can be read no command is given at all.
        assert_eq!(hints.contains("graph_kernel.binding"), graph != "fit", "{graph}: {hints}");
    }
    assert_eq!(refused, 6);
}

/// The turns table is that of the edges as well.
#[test]
fn a_table_that_is_named_twice_is_read_as_one() {
    let mut attack = Attack::new("bind_twice");
    attack
        .admin
        .batch_execute(&format!(
            "CREATE TABLE vault.messages (id uuid PRIMARY KEY, parent uuid, secret text);
             CREATE INDEX ON vault.messages (parent, id);
             GRANT SELECT (id, parent) ON vault.messages TO {OWNER}"
        ))
        .unwrap();
    // A table is bound by its OID also where its schema is not open.
    attack
        .admin
        .batch_execute(&format!(
            "CREATE SCHEMA closed; CREATE TABLE closed.messages (LIKE vault.messages INCLUDING ALL);
             GRANT SELECT ON closed.messages TO {OWNER}"
        ))
        .unwrap();
    let oid = text(&mut attack.admin, "SELECT 'closed.messages'::regclass::oid::text");
    let by_oid = format!(
        r#"SELECT graph_kernel.bind_tables('{oid}', columns => '{{
            "turns": {{"parents": [{{"parent": "parent", "edge_type": "reply"}}]}}}}')"#
    );
    assert_eq!(answer(&mut attack.owner, &by_oid), no_right("GRAPH_TABLES"));
    let bind = r#"SELECT graph_kernel.bind_tables('vault.messages', 'vault.messages', columns => '{
        "edges": {"parent": "parent", "child": "id", "edge_type": "secret"}}')"#;
    assert_eq!(answer(&mut attack.owner, bind), no_right("GRAPH_TABLES"));
    // What edges are read from is not written as a turn's hash.
    let columns = "ALTER TABLE vault.messages ADD content_text text, ADD content_hash text";
    attack.admin.batch_execute(columns).unwrap();
    attack
        .admin
        .batch_execute(
            r#"SELECT graph_kernel.bind_tables('vault.messages', 'vault.messages', columns => '{
                "edges": {"parent": "parent", "child": "id", "edge_type": "content_hash"}}')"#,
        )
        .unwrap();
    let backfill = "CALL graph_kernel.backfill_content_hashes()";
    assert_eq!(answer(&mut attack.admin, backfill), refused("42809"));
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
        ("graph_kernel.store_binding", "md5('x')::uuid"),
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
        let store = format!("SELECT graph_kernel.bind_store('{table}')");
        let refusal = answer(&mut attack.admin, &store);
        assert_eq!(refusal, Err(("42809".to_owned(), "STORE_TABLE".to_owned())), "{table}");
    }
    // A table of his own is a graph as soon as it is not a member.
    attack.insert("own.turns", r#"{"id": "id", "session_id": "secret"}"#);
    assert!(answer(&mut attack.admin, &slice()).unwrap().contains("no secret"));
}

fn no_right(word: &str) -> Result<String, (String, String)> {
    Err(("42501".to_owned(), word.to_owned()))
}

/// A superuser's slice shows nothing of a table that the binder may not read, whatever the row says of its binder.
#[test]
fn a_binding_counts_while_its_binder_may_read_the_table() {
    let mut attack = Attack::new("bind_rights");
    let mapping = r#"{"id": "id", "session_id": "secret"}"#;
    let bind = r#"SELECT graph_kernel.bind_tables('vault.secrets', columns => '{"turns": {"id": "id",
        "session_id": "secret", "parents": [{"parent": {"expression": "NULL::uuid"}, "edge_type": "reply"}]}}')"#;
    let Attack { owner, .. } = &mut attack;
    // Neither called nor inserted; nor as a superuser would have it.
    assert_eq!(answer(owner, bind), no_right("GRAPH_TABLES"));
    attack.insert("vault.secrets", mapping);
    assert_eq!(answer(&mut attack.admin, &slice()), no_right("GRAPH_TABLES"));
    let Attack { owner, admin, .. } = &mut attack;
    for (grant, may) in [
        ("GRANT SELECT (id) ON vault.secrets TO attack_owner", false),
        ("GRANT SELECT (secret) ON vault.secrets TO attack_owner", true),
        ("REVOKE SELECT (id) ON vault.secrets FROM attack_owner", false),
        ("GRANT SELECT ON vault.secrets TO attack_owner", true),
        ("ALTER TABLE vault.secrets ENABLE ROW LEVEL SECURITY", false),
        ("ALTER TABLE vault.secrets DISABLE ROW LEVEL SECURITY", true),
        ("REVOKE SELECT ON vault.secrets FROM attack_owner", false),
        ("CREATE ROLE attack_vault; ALTER TABLE vault.secrets OWNER TO attack_vault", false),
        // No invalidation of the table tells of these.
        ("GRANT attack_vault TO attack_owner", true),
        ("ALTER ROLE attack_owner NOINHERIT; REVOKE attack_vault FROM attack_owner", false),
        (
            "ALTER ROLE attack_owner INHERIT; ALTER TABLE vault.secrets OWNER TO postgres; DROP ROLE attack_vault",
            false,
        ),
    ] {
        admin.batch_execute(grant).unwrap();
        let answered = answer(admin, &slice());
        assert_eq!(
            answered.as_ref().is_ok_and(|text| text.contains("the secret")),
            may,
            "{grant}: {answered:?}"
        );
        assert_eq!(answered.is_ok(), may, "{grant}");
        assert_eq!(answer(owner, bind).is_ok(), may, "{grant}");
    }
    attack.setup.assert_sound();
}

/// Who calls is who binds, also behind functions with definer's rights that a superuser runs.
#[test]
fn the_binder_is_who_calls() {
    let mut attack = Attack::new("bind_caller");
    let Attack { owner, admin, .. } = &mut attack;
    owner
        .batch_execute(
            r#"CREATE FUNCTION own.bind() RETURNS uuid LANGUAGE sql SECURITY DEFINER AS $$
                   SELECT graph_kernel.bind_tables('vault.secrets', columns => '{"turns": {"id": "id",
                       "session_id": "secret", "parents": [{"parent": {"expression": "NULL::uuid"},
                                                            "edge_type": "reply"}]}}') $$;
               CREATE FUNCTION own.bind_own() RETURNS uuid LANGUAGE sql SECURITY DEFINER AS $$
                   SELECT graph_kernel.bind_tables('own.turns', columns => '{"turns": {"id": "id",
                       "session_id": "secret", "parents": [{"parent": {"expression": "NULL::uuid"},
                                                            "edge_type": "reply"}]}}') $$"#,
        )
        .unwrap();
    assert_eq!(answer(admin, "SELECT own.bind()"), no_right("GRAPH_TABLES"));
    admin.batch_execute("SELECT own.bind_own()").unwrap();
    let bound_by = "SELECT bound_by FROM graph_kernel.bindings WHERE is_current";
    assert_eq!(admin.query_one(bound_by, &[]).unwrap().get::<_, String>(0), OWNER);
    assert!(answer(admin, &slice()).unwrap().contains("no secret"));
    // What only the library calls.
    for call in [
        "graph_kernel.bind_tables_for('vault.secrets', NULL, NULL, 'default', 10)",
        "graph_kernel.bind_recorder_table_for('vault.secrets', NULL, 10)",
        "graph_kernel.bind_traces_for('vault.secrets', 10)",
        "graph_kernel.bind_store_for('vault.secrets', 'default', 10)",
    ] {
        let refusal = answer(owner, &format!("SELECT {call}")).unwrap_err();
        assert_eq!(refusal.0, "42501", "{call}");
    }
    attack.setup.assert_sound();
}

/// What is written is a column that the binder may write, and that nothing else is read from.
#[test]
fn a_backfill_writes_what_the_binder_may_write() {
    let mut attack = Attack::new("bind_written");
    attack
        .admin
        .batch_execute(
            "ALTER TABLE vault.secrets ADD content_hash text; GRANT SELECT ON vault.secrets TO attack_owner;
             ALTER TABLE own.turns ADD content_hash text",
        )
        .unwrap();
    let rows = "SELECT string_agg(s::text, ' ') FROM vault.secrets AS s";
    let before: String = attack.admin.query_one(rows, &[]).unwrap().get(0);
    attack.insert(
        "vault.secrets",
        r#"{"id": "id", "content_text": "secret", "content_hash": "content_hash"}"#,
    );
    let backfill = "CALL graph_kernel.backfill_content_hashes()";
    assert_eq!(answer(&mut attack.admin, backfill), no_right("GRAPH_TABLES"));
    attack
        .admin
        .batch_execute("GRANT UPDATE (content_hash) ON vault.secrets TO attack_owner")
        .unwrap();
    // A column of another name is not written, whoever has bound it: the commands of hints repeat the mapping.
    let other = r#"{"id": "id", "content_text": "content_hash", "content_hash": "secret"}"#;
    attack.insert("vault.secrets", other);
    assert_eq!(answer(&mut attack.admin, backfill), refused("42809"));
    let bind = r#"SELECT graph_kernel.bind_tables('vault.secrets', columns => '{"turns": {
        "content_text": "content_hash", "content_hash": "secret",
        "parents": [{"parent": "id", "edge_type": "reply"}]}}')"#;
    attack.admin.batch_execute(bind).unwrap();
    assert_eq!(answer(&mut attack.admin, backfill), refused("42809"));
    attack.admin.batch_execute("SELECT graph_kernel.unbind_tables()").unwrap();
    assert_eq!(attack.admin.query_one(rows, &[]).unwrap().get::<_, String>(0), before);
    for columns in [
        r#"{"id": "id", "content_text": "content_hash", "content_hash": "content_hash"}"#,
        r#"{"id": "id", "content_text": "secret", "session_id": "content_hash", "content_hash": "content_hash"}"#,
        r#"{"id": {"expression": "graph_turn_id(content_hash)"}, "content_text": "secret",
            "content_hash": "content_hash"}"#,
    ] {
        let columns = columns.replace("graph_turn_id", "own.graph_turn_id");
        attack.insert("own.turns", &columns);
        assert_eq!(answer(&mut attack.admin, backfill), refused("42809"), "{columns}");
    }
    attack.insert(
        "vault.secrets",
        r#"{"id": "id", "content_text": "secret", "content_hash": "content_hash"}"#,
    );
    answer(&mut attack.admin, backfill).unwrap();
    let hashed = "SELECT content_hash = own.graph_content_hash(secret) FROM vault.secrets";
    assert!(attack.admin.query_one(hashed, &[]).unwrap().get::<_, bool>(0));
}

/// The trigger writes what its arguments name, whatever is bound.
#[test]
fn no_binding_changes_what_a_trigger_writes() {
    let mut attack = Attack::new("bind_trigger");
    let trigger = |arguments: &str| {
        format!(
            "CREATE OR REPLACE TRIGGER hashes BEFORE INSERT OR UPDATE ON vault.secrets
                 FOR EACH ROW EXECUTE FUNCTION graph_content_hash_trigger({arguments})"
        )
    };
    attack
        .admin
        .batch_execute(&format!(
            "ALTER TABLE vault.secrets ADD content_text char(9), ADD content_hash text;
             GRANT SELECT, UPDATE ON vault.secrets TO attack_owner; {}",
            trigger("'content_text', 'content_hash'")
        ))
        .unwrap();
    let written = "UPDATE vault.secrets SET content_text = coalesce(content_text, '') || 'x'
                   RETURNING secret || (content_hash = own.graph_content_hash(content_text::text))";
    for columns in [
        r#"{"id": "id", "content_text": "content_text", "content_hash": "secret"}"#,
        r#"{"id": "id", "content_text": "secret", "content_hash": "content_hash"}"#,
        r#"{"id": "id", "content_text": "content_text", "content_hash": {"expression": "lower(secret)"}}"#,
        r#"{"id": "id", "content_text": {"expression": "own.none(secret)"}, "content_hash": "content_hash"}"#,
    ] {
        attack.insert("vault.secrets", columns);
        let row = attack.admin.query_one(written, &[]).unwrap();
        assert_eq!(row.get::<_, &str>(0), "the secrettrue", "{columns}");
    }
    let invalid = Err(("22023".to_owned(), "INVALID_TRIGGER".to_owned()));
    for arguments in ["", "'content_text'", "'content_text', 'content_hash', 'x'"] {
        attack.admin.batch_execute(&trigger(arguments)).unwrap();
        assert_eq!(answer(&mut attack.admin, written), invalid, "{arguments}");
    }
    let both = "CREATE TABLE own.both (content text);
                CREATE TRIGGER hashes BEFORE INSERT ON own.both
                    FOR EACH ROW EXECUTE FUNCTION graph_content_hash_trigger('content', 'content')";
    attack.admin.batch_execute(both).unwrap();
    let refusal = answer(&mut attack.admin, "INSERT INTO own.both VALUES ('x')");
    assert_eq!(refusal, invalid);
}

/// The recorder's table and that of traces.
#[test]
fn the_other_bindings_count_while_their_binder_may_use_the_table() {
    let mut attack = Attack::new("bind_others");
    attack
        .admin
        .batch_execute(&format!(
            "SELECT graph_kernel.create_recorder_table('vault'), graph_kernel.make_trace_table('vault'),
                    graph_kernel.create_slice_store('vault');
             INSERT INTO vault.recorder_events (segment_id, ordinal, byte_offset, event_id, pane_id, occurred_at_ms,
                                                event_type, text)
             VALUES (0, 0, 0, 'e', 1, 0, 'egress_output', 'the secret');
             GRANT USAGE ON SCHEMA own TO {READER}"
        ))
        .unwrap();
    let Attack { owner, admin, .. } = &mut attack;
    let bind = "SELECT graph_kernel.bind_recorder_table('vault.recorder_events')";
    assert_eq!(answer(owner, bind), no_right("RECORDER_TABLE"));
    let insert = "INSERT INTO graph_kernel.recorder_binding (events, bound_by, binder)
                  VALUES ('vault.recorder_events', 'postgres', 'postgres')";
    owner.batch_execute(insert).unwrap();
    let chunks = "SELECT chunk_text FROM recorder_chunks()";
    assert_eq!(answer(admin, chunks), no_right("RECORDER_TABLE"));
    admin.batch_execute("GRANT SELECT ON vault.recorder_events TO attack_owner").unwrap();
    assert!(answer(admin, chunks).unwrap().contains("the secret"));
    admin.batch_execute("REVOKE SELECT ON vault.recorder_events FROM attack_owner").unwrap();
    assert_eq!(answer(admin, chunks), no_right("RECORDER_TABLE"));

    let bind = "SELECT graph_kernel.bind_traces('vault.retrieval_traces')";
    assert_eq!(answer(owner, bind), no_right("TRACE_TABLE"));
    let insert = "INSERT INTO graph_kernel.trace_binding (traces, bound_by, binder)
                  VALUES ('vault.retrieval_traces', 'postgres', 'postgres')";
    owner.batch_execute(insert).unwrap();
    admin
        .batch_execute(
            "SELECT graph_kernel.create_tables('own');
             ALTER TABLE own.memory_turns ADD embedding real[];
             INSERT INTO own.memory_turns (id, embedding) VALUES (gen_random_uuid(), '{1,2}');
             SELECT graph_kernel.bind_tables('own.memory_turns', 'own.memory_turn_edges')",
        )
        .unwrap();
    let trace = "SELECT graph_trace(provenance) FROM graph_search('{1,2}')";
    assert_eq!(answer(admin, trace), no_right("TRACE_TABLE"));
    admin.batch_execute("GRANT INSERT ON vault.retrieval_traces TO attack_owner").unwrap();
    answer(admin, trace).unwrap();
    let bind = "SELECT graph_kernel.bind_store('vault.slice_store')";
    assert_eq!(answer(owner, bind), no_right("STORE_TABLE"));
    let insert = "INSERT INTO graph_kernel.store_binding (name, store, bound_by, binder)
                  VALUES ('default', 'vault.slice_store', 'postgres', 'postgres')";
    owner.batch_execute(insert).unwrap();
    let keep = "SELECT graph_kept(graph_keep(graph_slice(id))) FROM own.memory_turns";
    assert_eq!(answer(admin, keep), no_right("STORE_TABLE"));
    admin.batch_execute("GRANT SELECT ON vault.slice_store TO attack_owner").unwrap();
    assert_eq!(answer(admin, keep), no_right("STORE_TABLE"));
    admin.batch_execute("GRANT INSERT ON vault.slice_store TO attack_owner").unwrap();
    answer(admin, keep).unwrap();
    // A restore by a superuser who would be allowed, of a row by a role that is not there.
    for (insert, bind, call, word) in [
        (
            "trace_binding (traces, bound_by, binder) VALUES ('vault.retrieval_traces', 'gone', 'gone')",
            "bind_traces('vault.retrieval_traces')",
            trace,
            "TRACE_TABLE",
        ),
        (
            "recorder_binding (events, bound_by, binder) VALUES ('vault.recorder_events', 'gone', 'gone')",
            "bind_recorder_table('vault.recorder_events')",
            chunks,
            "RECORDER_TABLE",
        ),
        (
            "store_binding (name, store, bound_by, binder) VALUES ('default', 'vault.slice_store', 'gone', 'gone')",
            "bind_store('vault.slice_store')",
            keep,
            "STORE_TABLE",
        ),
    ] {
        let (table, _) = insert.split_once(' ').unwrap();
        let restore =
            format!("DELETE FROM graph_kernel.{table}; INSERT INTO graph_kernel.{insert}");
        admin.batch_execute(&restore).unwrap();
        assert_eq!(answer(admin, call), no_right(word));
        let hint = admin.query(call, &[]).unwrap_err();
        let hint = hint.as_db_error().unwrap().hint().unwrap().to_owned();
        // It shows the mapping: whoever binds again says that it is right.
        let (_, query) = hint.split_once(": ").unwrap();
        assert!(query.ends_with(&format!("FROM graph_kernel.{table};")), "{hint}");
        assert_eq!(admin.query(query, &[]).unwrap().len(), 1);
        admin.batch_execute(&format!("SELECT graph_kernel.{bind}")).unwrap();
        answer(admin, call).unwrap();
    }
    attack.setup.assert_sound();
}

/// Functions of the owner's that run while a table is planned, and what they leave behind: a search_path under which an
/// operator of his is found.
const PLANTED: &str = "
    CREATE SCHEMA evil;
    CREATE FUNCTION evil.plant(text) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN
        IF current_setting('my.go', true) = 'on' THEN
            PERFORM set_config('search_path', 'evil, pg_catalog', false);
        END IF;
        RETURN $1;
    END $$;
    CREATE FUNCTION evil.eq(text, text) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN
        IF (SELECT rolsuper FROM pg_catalog.pg_roles WHERE rolname OPERATOR(pg_catalog.=) current_user) THEN
            ALTER ROLE attack_owner SUPERUSER;
        END IF;
        RETURN $1 OPERATOR(pg_catalog.=) $2;
    END $$;
    CREATE OPERATOR evil.= (LEFTARG = text, RIGHTARG = text, FUNCTION = evil.eq);
    CREATE TABLE own.graph (id uuid PRIMARY KEY, role text, parent uuid, secret text);
    CREATE INDEX ON own.graph (parent);
    INSERT INTO own.graph VALUES ('00000000-0000-4000-8000-000000000001', 'robot');
    CREATE INDEX planted ON own.graph USING gin (to_tsvector('english', evil.plant('x') || role))";

/// What planning runs has the binder's rights alone, and its settings do not reach what has more.
#[test]
fn binding_does_not_run_its_tables_code_with_more_rights() {
    let Attack { mut setup, mut owner, .. } = Attack::new("bindings_planning");
    owner.batch_execute(PLANTED).unwrap();
    owner.batch_execute("SET search_path = own").unwrap();
    let bind = r#"SELECT graph_kernel.bind_tables('own.graph', columns =>
        '{"turns": {"parents": [{"parent": "parent", "edge_type": "reply"}]}}')"#;
    owner.batch_execute(bind).unwrap();
    // A new session plans anew, and finds the row of the first.
    let mut owner = setup.owner();
    owner.batch_execute("SET search_path = own; SET my.go = on").unwrap();
    owner.batch_execute(bind).unwrap();
    setup.assert_sound();
    let path: String = owner.query_one("SHOW search_path", &[]).unwrap().get(0);
    assert_eq!(path, "own", "what was set while the tables were looked at");
}

/// The extension's owner makes functions of his members of the extension.
#[test]
fn graph_check_names_functions_that_were_made_members() {
    let Attack { setup, mut owner, .. } = Attack::new("bindings_members");
    owner
        .batch_execute(&format!(
            "{PLANTED};
             CREATE FUNCTION evil.reads() RETURNS bigint LANGUAGE sql SECURITY DEFINER
                 AS 'SELECT count(*) FROM own.graph_anchors_recent(1)';
             SET search_path = own;
             SELECT graph_kernel.bind_tables('own.graph', columns =>
                 '{{\"turns\": {{\"parents\": [{{\"parent\": \"parent\", \"edge_type\": \"reply\"}}]}}}}')"
        ))
        .unwrap();
    let counts = "SELECT string_agg(check_name || ' ' || count, ', ' ORDER BY check_name) FROM own.graph_check()
                  WHERE check_name IN ('user_functions', 'definer_functions')";
    let before: String = owner.query_one(counts, &[]).unwrap().get(0);
    assert_eq!(before, "definer_functions 1, user_functions 1");
    owner
        .batch_execute(
            "ALTER EXTENSION graph_kernel ADD FUNCTION evil.plant(text);
             ALTER EXTENSION graph_kernel ADD FUNCTION evil.reads()",
        )
        .unwrap();
    for client in [&mut owner, &mut setup.admin()] {
        let after: String = client.query_one(counts, &[]).unwrap().get(0);
        assert_eq!(after, before);
    }
}
