//! What the extension's functions name when they run, and what becomes of it when somebody puts
//! something else in the place of a name.

use std::thread;
use std::time::Duration;

use postgres::Client;

use crate::attempts::CALLS;
use crate::common::Server;
use crate::common::database::Database;

/// A role that may do nothing but create schemas in its database; it owns the extension there.
const OWNER: &str = "privileges_names_owner";

/// The extension's functions, with what decides when their names are resolved.
const FUNCTIONS: &str = "
    SELECT p.oid::regprocedure::text AS function, p.prosrc AS source, p.prosqlbody IS NOT NULL AS parsed,
           p.prosecdef AS definer, p.prorettype = 'trigger'::regtype AS trigger, l.lanname AS language
    FROM pg_proc AS p JOIN pg_language AS l ON l.oid = p.prolang
    JOIN pg_depend AS d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e'
    JOIN pg_extension AS x ON d.refclassid = 'pg_extension'::regclass AND x.oid = d.refobjid
    WHERE x.extname = 'graph_kernel' ORDER BY p.proname";

/// The functions that run with other rights than those of the role that called them, and why nothing that
/// somebody else owns can stand for what they name.
const WITH_OTHER_RIGHTS: &[(&str, &str)] = &[
    (
        "graph_content_hash_trigger()",
        "a trigger in C of the writer's rights: looks no name up but that of the next one, a member of the extension",
    ),
    (
        "graph_kernel.add_word_counts(oid,integer,jsonb)",
        "parsed at creation; holds the extension before it writes a private table",
    ),
    (
        "graph_kernel.announce_change()",
        "a trigger of the writer's rights, in C: it looks at the trigger's own relation",
    ),
    (
        "graph_kernel.bind_recorder_table_for(regclass,jsonb,oid)",
        "parsed at creation; holds the extension before it calls",
    ),
    (
        "graph_kernel.bind_store_for(regclass,text,oid)",
        "parsed at creation; holds the extension before it calls",
    ),
    (
        "graph_kernel.bind_tables_for(regclass,regclass,jsonb,text,oid)",
        "parsed at creation; holds the extension before it calls",
    ),
    (
        "graph_kernel.bind_traces_for(regclass,oid)",
        "parsed at creation; holds the extension before it calls",
    ),
    (
        "graph_kernel.content_hash_trigger_internal()",
        "a trigger of the writer's rights: DROP EXTENSION waits for the table it is on; names pg_catalog and the \
         private schema, and reads the content through its type's output function",
    ),
    ("graph_kernel.epoch_times()", "parsed at creation; reads a private table"),
    (
        "graph_kernel.guard_table()",
        "a trigger of the writer's rights on private tables, for whose lock DROP EXTENSION waits; names pg_catalog \
         and the private schema",
    ),
    (
        "graph_kernel.revoke_key_for(text)",
        "parsed at creation; holds the extension before it calls",
    ),
    (
        "graph_kernel.rotate_key_for(boolean)",
        "parsed at creation; holds the extension before it calls",
    ),
    (
        "graph_kernel.set_binder()",
        "a trigger of the writer's rights on private tables, for whose lock DROP EXTENSION waits; names pg_catalog \
         and the private schema",
    ),
    (
        "graph_kernel.store_word_totals(oid,integer,bigint,bigint)",
        "parsed at creation; holds the extension before it writes private tables",
    ),
    ("graph_kernel.unbind_recorder_table()", "parsed at creation; writes a private table"),
    ("graph_kernel.unbind_store(text)", "parsed at creation; writes a private table"),
    (
        "graph_kernel.unbind_tables_for(text)",
        "parsed at creation; holds the extension before it calls",
    ),
    (
        "graph_require_admissible()",
        "a trigger of the writer's rights, in C: it reads columns of types of pg_catalog alone",
    ),
    (
        "graph_require_admissible_result()",
        "a trigger of the writer's rights, in C: it reads columns of types of pg_catalog alone",
    ),
];

/// The functions that name the private schema when they run, and what keeps the extension from being
/// dropped, and another schema of that name from being made, meanwhile.
const HELD: &[(&str, &str)] = &[
    ("graph_kernel.api_search(json,boolean)", "graph_api_search_slice and graph_api_search_global"),
    (
        "graph_kernel.api_summaries(text[],slice_policy,boolean)",
        "graph_api_slice, graph_api_slice_batch and graph_api_health",
    ),
    ("graph_kernel.api_verify_token(json)", "graph_api_verify_token"),
    (
        "graph_kernel.backfill_content_hashes(integer)",
        "takes a lock in each transaction and looks what it is on",
    ),
    ("graph_kernel.bind_recorder_table_internal(regclass,jsonb,oid)", "bind_recorder_table"),
    ("graph_kernel.bind_store_internal(regclass,text,oid)", "bind_store"),
    ("graph_kernel.bind_tables_internal(regclass,regclass,jsonb,text,oid)", "bind_tables"),
    ("graph_kernel.bind_traces_internal(regclass,oid)", "bind_traces"),
    ("graph_kernel.check_code(text,jsonb)", "graph_check"),
    ("graph_kernel.check_expressions(text,jsonb)", "graph_check"),
    ("graph_kernel.check_graph(text)", "graph_check"),
    ("graph_kernel.check_kept(text)", "graph_check"),
    ("graph_kernel.check_policy(slice_policy,text)", "register_policy, or the lock of policies"),
    ("graph_kernel.check_promotion(text,jsonb)", "graph_check"),
    ("graph_kernel.check_rows(text,jsonb)", "graph_check"),
    ("graph_kernel.check_tables(jsonb)", "graph_check"),
    ("graph_kernel.content_hash_trigger_internal()", "graph_content_hash_trigger"),
    ("graph_kernel.create_tables_internal(name,jsonb)", "create_tables"),
    ("graph_kernel.guard_table()", "its table's lock"),
    ("graph_kernel.make_recorder_table(name)", "create_recorder_table"),
    ("graph_kernel.make_slice_store(name)", "create_slice_store"),
    ("graph_kernel.make_trace_table(name)", "create_trace_table"),
    ("graph_kernel.mapping_commands(text,jsonb)", "graph_check"),
    ("graph_kernel.policy_not_found(text)", "graph_policy: the lock of policies"),
    (
        "graph_kernel.refresh_kept(bigint,interval)",
        "takes a lock in each transaction and looks what it is on",
    ),
    ("graph_kernel.requested_anchors(json)", "graph_api_slice_batch"),
    ("graph_kernel.requested_policy_not_found(json)", "requested_policy: the lock of policies"),
    ("graph_kernel.revoke_key_internal(text)", "revoke_key"),
    ("graph_kernel.rotate_key_internal(boolean)", "rotate_key"),
    ("graph_kernel.row_checks(text,jsonb)", "graph_check"),
    ("graph_kernel.set_binder()", "its table's lock"),
    ("graph_kernel.unbind_tables_internal(text)", "unbind_tables"),
    ("graph_kernel.verify_chunks(regclass,chunking_policy,boolean)", "recorder_verify_chunks"),
    ("graph_kernel.whole_command(text)", "graph_check"),
];

struct Function {
    name: String,
    source: String,
    parsed: bool,
    definer: bool,
    trigger: bool,
    language: String,
}

/// The extension's functions where its schema has a name that nothing else has.
fn functions(name: &str) -> Vec<Function> {
    let database = Database::empty(name);
    let mut client = database.connect();
    client
        .batch_execute("CREATE SCHEMA zwxqv; CREATE EXTENSION graph_kernel SCHEMA zwxqv; SET search_path = zwxqv")
        .unwrap();
    let rows = client.query(FUNCTIONS, &[]).unwrap();
    let functions = rows.iter().map(|row| Function {
        name: row.get("function"),
        source: row.get("source"),
        parsed: row.get("parsed"),
        definer: row.get("definer"),
        trigger: row.get("trigger"),
        language: row.get("language"),
    });
    functions.collect()
}

fn named(list: &[(&'static str, &str)]) -> Vec<&'static str> {
    list.iter().map(|(function, _)| *function).collect()
}

#[test]
fn no_body_names_the_extensions_schema_when_it_runs() {
    let functions = functions("names_schema");
    let naming = functions.iter().filter(|f| !f.parsed && f.source.contains("zwxqv"));
    assert_eq!(naming.map(|f| &f.name).collect::<Vec<_>>(), Vec::<&String>::new());
}

#[test]
fn every_function_that_runs_with_other_rights_says_why_it_may() {
    let functions = functions("names_rights");
    let mut other: Vec<&str> =
        functions.iter().filter(|f| f.definer || f.trigger).map(|f| f.name.as_str()).collect();
    other.sort_unstable();
    assert_eq!(other, named(WITH_OTHER_RIGHTS));
    // Definer's rights are a superuser's: nothing is resolved while they hold.
    let resolving = functions.iter().filter(|f| f.definer && !f.parsed).map(|f| &f.name);
    assert_eq!(resolving.collect::<Vec<_>>(), Vec::<&String>::new());
}

#[test]
fn every_function_that_names_the_private_schema_is_held() {
    let functions = functions("names_held");
    let naming = functions
        .iter()
        .filter(|f| !f.parsed && !["c", "internal"].contains(&f.language.as_str()))
        .filter(|f| f.source.contains("graph_kernel."));
    let mut naming: Vec<&str> = naming.map(|f| f.name.as_str()).collect();
    naming.sort_unstable();
    assert_eq!(naming, named(HELD));
}

/// A database whose extension, in schema cs, belongs to [`OWNER`].
fn owned(name: &str) -> Database {
    let database = Database::empty(name);
    let mut superuser = database.connect();
    superuser
        .batch_execute(&format!(
            "DO $$ BEGIN CREATE ROLE {OWNER} LOGIN;
             EXCEPTION WHEN duplicate_object OR unique_violation THEN END $$;
             GRANT CREATE ON DATABASE {} TO {OWNER}",
            database.name
        ))
        .unwrap();
    owner(&database)
        .batch_execute("CREATE SCHEMA cs; CREATE EXTENSION graph_kernel SCHEMA cs")
        .unwrap();
    database
}

fn owner(database: &Database) -> Client {
    let server = Server { user: OWNER.to_owned(), ..database.server.clone() };
    server.connect(&database.name)
}

/// Everything a graph, a recorder and a search need.
const TABLES: &str = "
    SELECT graph_kernel.create_tables(options => jsonb_build_object('content_hash', false));
    INSERT INTO memory_turns (id, content_text) VALUES ('00000000-0000-4000-8000-000000000001', 'one'),
                                                       ('00000000-0000-4000-8000-000000000002', 'two');
    ALTER TABLE memory_turns ADD COLUMN embedding real[] DEFAULT '{1}';
    SELECT graph_kernel.create_recorder_table();
    INSERT INTO recorder_events VALUES (0, 0, 0, NULL, 'e', 1, NULL, 0, 'egress_output', 'text');
    CREATE TABLE kept_chunks AS SELECT * FROM recorder_chunks();
    SELECT graph_kernel.create_trace_table();
    SELECT graph_kernel.bind_store(graph_kernel.create_slice_store());
    CREATE SCHEMA open;
    CREATE TABLE promoted (slice json, turns uuid[]);
    CREATE CONSTRAINT TRIGGER promoted AFTER INSERT OR UPDATE ON promoted NOT DEFERRABLE FOR EACH ROW
        EXECUTE FUNCTION graph_require_admissible('slice', 'turns');
    CREATE TABLE hashed (content_text text, content_hash text);
    CREATE TRIGGER hashed BEFORE INSERT ON hashed FOR EACH ROW
        EXECUTE FUNCTION graph_content_hash_trigger('content_text', 'content_hash')";

/// The owner's own schema in the place of the extension's, full of planted functions of the same names.
const PLANTED_FUNCTIONS: &str = r#"
    ALTER SCHEMA cs RENAME TO cs_old;
    CREATE SCHEMA cs;
    GRANT USAGE ON SCHEMA cs, cs_old TO PUBLIC;
    CREATE FUNCTION cs.planted() RETURNS text LANGUAGE plpgsql AS
        $$ BEGIN RAISE EXCEPTION 'the planted function runs as %', current_user; END $$;
    CREATE FUNCTION cs.trap_of(cs_old.slice_policy, cs_old.slice_policy) RETURNS boolean LANGUAGE plpgsql AS
        $$ BEGIN RAISE EXCEPTION 'the planted function runs as %', current_user; END $$;
    CREATE OPERATOR cs.= (LEFTARG = cs_old.slice_policy, RIGHTARG = cs_old.slice_policy, FUNCTION = cs.trap_of);
    CREATE OPERATOR cs.<> (LEFTARG = cs_old.slice_policy, RIGHTARG = cs_old.slice_policy, FUNCTION = cs.trap_of);
    DO $do$
    DECLARE
        f record;
    BEGIN
        FOR f IN SELECT p.proname, pg_get_function_identity_arguments(p.oid) AS arguments,
                        pg_get_function_result(p.oid) AS result
                 FROM pg_proc AS p
                 WHERE p.pronamespace = 'cs_old'::regnamespace AND p.prorettype <> 'trigger'::regtype
                   AND NOT p.proargtypes::oid[] && '{internal,cstring}'::regtype[]::oid[]
                   AND p.prorettype <> 'cstring'::regtype
        LOOP
            EXECUTE format('CREATE FUNCTION cs.%I(%s) RETURNS %s LANGUAGE plpgsql AS %L', f.proname, f.arguments,
                           f.result, 'BEGIN RAISE EXCEPTION ''the planted function runs as %'', current_user; END');
        END LOOP;
    END
    $do$;
    CREATE DOMAIN cs.slice_policy AS text CHECK (cs.planted() IS NULL);
    CREATE DOMAIN cs.chunking_policy AS text CHECK (cs.planted() IS NULL);
    CREATE DOMAIN cs.recorder_chunk AS text CHECK (cs.planted() IS NULL);
    CREATE VIEW cs.graph_policies AS
        SELECT cs.planted() AS name, p.policy_id, p.params_hash, p.policy, p.registered_by, p.registered_at
        FROM cs_old.graph_policies AS p"#;

#[test]
fn who_takes_the_schemas_name_gets_no_code_run() {
    let database = owned("names_taken");
    let mut superuser = database.connect();
    superuser.batch_execute(&format!("SET search_path = cs, public; {TABLES}")).unwrap();
    owner(&database).batch_execute(PLANTED_FUNCTIONS).unwrap();
    let statements = CALLS.iter().filter_map(|(_, call)| *call).chain([
        "SELECT graph_policy('default')",
        "SELECT graph_policy_register('focused')",
        "SELECT graph_policy_register('{\"max_nodes\": 7}', 'seven')",
        "SELECT graph_api_slice('{\"anchor_turn_id\": \"00000000-0000-4000-8000-000000000001\", \"policy_ref\":
             {\"policy_id\": \"slice_policy_v1\", \"params_hash\": \"02005444cae1117d\"}}')",
        "INSERT INTO promoted SELECT graph_slice('00000000-0000-4000-8000-000000000001'),
             '{00000000-0000-4000-8000-000000000001}'",
        "INSERT INTO hashed VALUES ('x')",
    ]);
    let statements: Vec<&str> = statements.collect();
    let mut caught = Vec::new();
    for (role, mut client) in [("superuser", database.connect()), ("owner", owner(&database))] {
        client.batch_execute("SET search_path = cs_old, public").unwrap();
        for statement in &statements {
            let mut transaction = client.transaction().unwrap();
            if let Err(error) = transaction.batch_execute(statement) {
                let message = error.as_db_error().unwrap().message().to_owned();
                if message.contains("planted") {
                    caught.push(format!("{role}: {statement}: {message}"));
                }
            }
        }
        if let Err(error) = client.batch_execute("CALL graph_kernel.backfill_content_hashes()") {
            let message = error.as_db_error().unwrap().message().to_owned();
            if message.contains("planted") {
                caught.push(format!("{role}: backfill_content_hashes: {message}"));
            }
        }
    }
    assert_eq!(caught, Vec::<String>::new());
}

/// What the extension's owner does to take the private schema's name: drop the extension and make a
/// schema of his own.
const OWN_SCHEMA: &str = "
    DROP EXTENSION graph_kernel CASCADE;
    CREATE SCHEMA graph_kernel;
    CREATE TABLE graph_kernel.root_keys (epoch int, root bytea, created_at timestamptz);
    CREATE TABLE graph_kernel.binding (x int);
    GRANT ALL ON SCHEMA graph_kernel TO PUBLIC;
    GRANT ALL ON ALL TABLES IN SCHEMA graph_kernel TO PUBLIC;
    CREATE FUNCTION graph_kernel.list_keys() RETURNS TABLE (kid text, state text) LANGUAGE plpgsql AS
        $$ BEGIN RAISE EXCEPTION 'the planted function runs as %', current_user; END $$;
    CREATE FUNCTION graph_kernel.chosen_graph() RETURNS text LANGUAGE plpgsql AS
        $$ BEGIN RAISE EXCEPTION 'the planted function runs as %', current_user; END $$;
    CREATE FUNCTION graph_kernel.describe_graph(text) RETURNS jsonb LANGUAGE plpgsql AS
        $$ BEGIN RAISE EXCEPTION 'the planted function runs as %', current_user; END $$;
    CREATE FUNCTION graph_kernel.content_page(text, oid, uuid, int) RETURNS TABLE (turns bigint, last_id uuid, \
    stale uuid[], not_text bigint)
        LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'the planted function runs as %', current_user; END $$;
    CREATE FUNCTION graph_kernel.rehash_turn(text, oid, uuid) RETURNS bigint LANGUAGE plpgsql AS
        $$ BEGIN RAISE EXCEPTION 'the planted function runs as %', current_user; END $$;";

/// Waits until as many sessions as said wait for a lock.
fn until_waiting(client: &mut Client, sessions: i64) {
    let waiting = "SELECT count(*) FROM pg_stat_activity
                   WHERE datname = current_database() AND wait_event_type = 'Lock'";
    for _ in 0..600 {
        if client.query_one(waiting, &[]).unwrap().get::<_, i64>(0) >= sessions {
            return;
        }
        thread::sleep(Duration::from_millis(20));
    }
    panic!("{sessions} sessions should wait for a lock");
}

#[test]
fn who_drops_the_extension_gets_no_code_run_with_its_rights() {
    let database = owned("names_dropped");
    let mut dropping = owner(&database);
    dropping.batch_execute(&format!("BEGIN; {OWN_SCHEMA}")).unwrap();
    // It waits for the table that is being dropped, as the superuser that the function's owner is.
    let mut calling = owner(&database);
    let call = thread::spawn(move || calling.batch_execute("SELECT graph_kernel.rotate_key()"));
    until_waiting(&mut database.connect(), 1);
    dropping.batch_execute("COMMIT").unwrap();
    let error = call.join().unwrap().unwrap_err();
    let message = error.as_db_error().unwrap().message().to_owned();
    assert!(!message.contains("planted"), "{message}");
}

#[test]
fn who_drops_the_extension_gets_no_code_run_by_a_backfill() {
    let database = owned("names_backfill");
    let mut superuser = database.connect();
    superuser
        .batch_execute(&format!(
            "SET search_path = cs, public; {TABLES}; DROP TABLE promoted, hashed"
        ))
        .unwrap();
    let mut writer = database.connect();
    writer.batch_execute("BEGIN; SELECT FROM memory_turns FOR UPDATE").unwrap();
    // Both turns are another's: it waits for the first, and will be in a transaction of its own for the second.
    let mut calling = database.connect();
    let call =
        thread::spawn(move || calling.batch_execute("CALL graph_kernel.backfill_content_hashes()"));
    until_waiting(&mut superuser, 1);
    let mut dropping = owner(&database);
    let drop =
        thread::spawn(move || dropping.batch_execute(&format!("BEGIN; {OWN_SCHEMA}; COMMIT")));
    until_waiting(&mut superuser, 2);
    writer.batch_execute("COMMIT").unwrap();
    drop.join().unwrap().unwrap();
    // It may have been done with both turns before the extension was dropped.
    if let Err(error) = call.join().unwrap() {
        let message = error.as_db_error().unwrap().message().to_owned();
        assert!(!message.contains("planted"), "{message}");
    }
}

/// A type of the owner's with casts that are planted functions.
const TYPES: &str = "
    SET search_path = open;
    CREATE TYPE kind AS ENUM ('{}', '{00000000-0000-4000-8000-000000000001}', 'x');
    CREATE FUNCTION to_json(kind) RETURNS json LANGUAGE plpgsql AS
        $$ BEGIN RAISE EXCEPTION 'the planted function runs as %', current_user; END $$;
    CREATE FUNCTION to_ids(kind) RETURNS uuid[] LANGUAGE plpgsql AS
        $$ BEGIN RAISE EXCEPTION 'the planted function runs as %', current_user; END $$;
    CREATE FUNCTION to_words(kind) RETURNS text LANGUAGE plpgsql AS
        $$ BEGIN RAISE EXCEPTION 'the planted function runs as %', current_user; END $$;
    CREATE CAST (kind AS json) WITH FUNCTION to_json(kind) AS IMPLICIT;
    CREATE CAST (kind AS uuid[]) WITH FUNCTION to_ids(kind) AS IMPLICIT;
    CREATE CAST (kind AS text) WITH FUNCTION to_words(kind) AS IMPLICIT";

#[test]
fn who_owns_a_columns_type_gets_no_code_run() {
    let database = owned("names_types");
    let mut superuser = database.connect();
    superuser
        .batch_execute(&format!(
            "SET search_path = cs, public; {TABLES}; GRANT ALL ON SCHEMA open TO PUBLIC"
        ))
        .unwrap();
    owner(&database).batch_execute(TYPES).unwrap();
    // Rows of a table whose triggers read columns of the type, or other columns beside one.
    superuser
        .batch_execute(
            "DROP TABLE promoted, hashed;
             SET search_path = public, cs;
             CREATE TABLE promoted (slice open.kind, turns open.kind);
             CREATE CONSTRAINT TRIGGER promoted AFTER INSERT OR UPDATE ON promoted NOT DEFERRABLE FOR EACH ROW
                 EXECUTE FUNCTION graph_require_admissible('slice', 'turns');
             CREATE TABLE hashed (content_text open.kind, content_hash text, other open.kind);
             CREATE TRIGGER hashed BEFORE INSERT ON hashed FOR EACH ROW
                 EXECUTE FUNCTION graph_content_hash_trigger('content_text', 'content_hash');
             CREATE TABLE chunks AS SELECT * FROM recorder_chunks();
             ALTER TABLE chunks ALTER COLUMN direction TYPE open.kind USING 'x'::open.kind",
        )
        .unwrap();
    let mut message = |statement: &str| {
        let error = superuser.batch_execute(statement).err();
        error.map(|error| error.as_db_error().unwrap().message().to_owned())
    };
    assert_eq!(
        message("INSERT INTO promoted VALUES ('{}', '{00000000-0000-4000-8000-000000000001}')")
            .as_deref(),
        Some(
            "trigger promoted names no stored column of public.promoted of type json, jsonb or text: slice"
        )
    );
    assert_eq!(message("INSERT INTO hashed VALUES ('x', NULL, 'x')"), None);
    assert_eq!(
        message(
            "DO $$ BEGIN ASSERT (SELECT content_hash = graph_content_hash('x') FROM hashed); END $$"
        ),
        None
    );
    assert_eq!(
        message("SELECT * FROM recorder_verify_chunks('chunks')").as_deref(),
        Some(
            "column direction of table public.chunks has type open.kind, which is not one of pg_catalog"
        )
    );
}
