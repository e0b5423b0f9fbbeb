//! A table's owner sets another search_path while somebody's call reads the table: what the call parses after that must
//! not find the owner's functions and operators. And what a session has made under the name of one of the server's
//! types.

use postgres::Client;

use crate::setup::{OWNER, Setup, attempt};

/// A schema that is first in the path that the owner sets, with all that the bodies of the extension name: each notes
/// when somebody else runs it.
const OVERLOADS: &str = "
    CREATE SCHEMA path AUTHORIZATION attack_owner;
    GRANT USAGE ON SCHEMA path TO PUBLIC;
    CREATE FUNCTION path.set() RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$ BEGIN
        PERFORM pg_catalog.set_config('search_path', 'path, pg_catalog', false);
        RETURN true;
    END $$;
    CREATE FUNCTION path.set(bigint) RETURNS bigint LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN
        PERFORM pg_catalog.set_config('search_path', 'path, pg_catalog', false);
        RETURN 1;
    END $$;
    CREATE FUNCTION path.text_of(text, text) RETURNS text LANGUAGE plpgsql AS
        $$ BEGIN PERFORM planted.f(); RETURN 'ALTER ROLE attack_owner SUPERUSER;'; END $$;
    CREATE OPERATOR path.|| (LEFTARG = text, RIGHTARG = text, FUNCTION = path.text_of);
    CREATE FUNCTION path.true_of(bigint, integer) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RETURN planted.f(); \
    END $$;
    CREATE OPERATOR path.> (LEFTARG = bigint, RIGHTARG = integer, FUNCTION = path.true_of);
    CREATE OPERATOR path.= (LEFTARG = bigint, RIGHTARG = integer, FUNCTION = path.true_of);
    CREATE FUNCTION path.true_of(text, text) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RETURN planted.f(); END $$;
    CREATE OPERATOR path.= (LEFTARG = text, RIGHTARG = text, FUNCTION = path.true_of);
    CREATE FUNCTION path.format(text, regclass, text) RETURNS text LANGUAGE plpgsql AS
        $$ BEGIN PERFORM planted.f(); RETURN 'ALTER ROLE attack_owner SUPERUSER;'; END $$;
    CREATE FUNCTION path.format(text, text, text) RETURNS text LANGUAGE plpgsql AS
        $$ BEGIN PERFORM planted.f(); RETURN 'ALTER ROLE attack_owner SUPERUSER;'; END $$;
    CREATE FUNCTION path.array_to_string(text[], text) RETURNS text LANGUAGE plpgsql AS
        $$ BEGIN PERFORM planted.f(); RETURN ''; END $$;
    CREATE FUNCTION path.to_json(text) RETURNS json LANGUAGE plpgsql AS $$ BEGIN PERFORM planted.f(); RETURN '1'; END \
    $$;
    CREATE DOMAIN path.record AS integer CHECK (planted.f());
    ALTER FUNCTION path.set() OWNER TO attack_owner; ALTER FUNCTION path.set(bigint) OWNER TO attack_owner;";

/// Calls of what PL/pgSQL runs, all over the tables.
const CALLS: [&str; 6] = [
    "SELECT * FROM graph_check()",
    "SELECT graph_api_slice(json_build_object('anchor_turn_id', turn(5)))",
    "SELECT graph_api_slice_batch(json_build_object('anchor_turn_ids', ARRAY[turn(5), turn(99)]))",
    "SELECT graph_api_search_slice(json_build_object('anchor_turn_id', turn(5), 'query_embedding', ARRAY[1, 2]))",
    "SELECT graph_api_search_slice(json_build_object('anchor_turn_id', turn(99), 'query_embedding', ARRAY[1, 2]))",
    "SELECT * FROM recorder_verify_chunks('kept_chunks')",
];

/// Runs the calls, and fails where the owner's code ran, wrote a hint or left a path of its own.
fn assert_untouched(setup: &Setup, mut client: Client) {
    for call in CALLS {
        let answer = format!("{:?}", attempt(&mut client, call));
        assert!(!answer.contains("ALTER ROLE attack_owner"), "{call}: {answer}");
        assert!(!setup.has_caught(), "{call}: the owner's function ran");
        let path: String = client.query_one("SHOW search_path", &[]).unwrap().get(0);
        assert!(!path.contains("path,"), "{call} left search_path as {path}");
    }
}

fn setup(name: &str) -> Setup {
    let setup = Setup::new(name);
    let keep = "CREATE TABLE public.kept_chunks AS SELECT * FROM recorder_chunks();
                GRANT SELECT ON public.kept_chunks TO PUBLIC;
                INSERT INTO b2.edges VALUES (turn(4), turn(3), 'reply');";
    setup.admin().batch_execute(&format!("{OVERLOADS} {keep}")).unwrap();
    setup
}

#[test]
fn a_policy_that_sets_a_path_does_not_change_what_a_call_parses() {
    let setup = setup("path_of_a_policy");
    setup
        .owner()
        .batch_execute(
            "CREATE POLICY path ON b2.edges USING (path.set()); CREATE POLICY path ON b2.turns USING (path.set());
             CREATE POLICY path ON b2.events USING (path.set());
             ALTER TABLE b2.edges ENABLE ROW LEVEL SECURITY; ALTER TABLE b2.turns ENABLE ROW LEVEL SECURITY;
             ALTER TABLE b2.events ENABLE ROW LEVEL SECURITY",
        )
        .unwrap();
    let reader = setup.reader();
    assert_untouched(&setup, reader);
}

#[test]
fn statistics_that_set_a_path_do_not_change_what_a_call_parses() {
    let setup = setup("path_of_statistics");
    let mapping = r#"{"turns": {"salience": {"expression": "(words::float8)"}}}"#;
    setup
        .admin()
        .batch_execute(&format!(
            "SELECT graph_kernel.bind_tables('b2.turns', 'b2.edges', '{mapping}')"
        ))
        .unwrap();
    setup
        .owner()
        .batch_execute(
            "CREATE STATISTICS b2.path_of_turns ON (path.set(1) + number) FROM b2.turns_1;
             CREATE STATISTICS b2.path_of_turns_too ON (path.set(1) + number) FROM b2.turns;
             CREATE STATISTICS b2.path_of_edges ON (path.set(1) + number) FROM b2.edges_1;
             CREATE STATISTICS b2.path_of_events ON (path.set(1) + number) FROM b2.events_1",
        )
        .unwrap();
    let mut reader = setup.reader();
    let raising = "SELECT c.hint, r.row_table::text \
         FROM graph_check() AS c, graph_kernel.raising_row('default', 'turns.salience') AS r \
         WHERE c.check_name = 'raising_expression' AND NOT c.ok";
    let row = reader.query_one(raising, &[]).unwrap();
    // The reader owns neither the table nor its schema: no query over it is given.
    assert_eq!(row.get::<_, Option<String>>(0), None);
    assert_eq!(row.get::<_, String>(1), "b2.turns_1");
    assert_untouched(&setup, reader);
}

#[test]
fn a_backfill_takes_no_type_of_the_sessions() {
    let setup = setup("backfill_types");
    let mut admin = setup.admin();
    admin
        .batch_execute(&format!(
            "SET ROLE {OWNER};
             CREATE DOMAIN pg_temp.record AS integer CHECK (planted.f());
             CREATE DOMAIN pg_temp.text AS pg_catalog.text CHECK (planted.f());
             CREATE DOMAIN pg_temp.uuid AS pg_catalog.uuid CHECK (planted.f());
             CREATE DOMAIN pg_temp.regclass AS pg_catalog.regclass CHECK (planted.f());
             RESET ROLE"
        ))
        .unwrap();
    admin.batch_execute("CALL graph_kernel.backfill_content_hashes()").unwrap();
    assert!(!setup.has_caught(), "a type of the session's was taken");
    let mut other = setup.admin();
    other.batch_execute("SET search_path = path, pg_catalog").unwrap();
    other.batch_execute("CALL graph_kernel.backfill_content_hashes()").unwrap();
    assert!(!setup.has_caught(), "a type of the path's was taken");
    let hashed = "SELECT count(*) FROM b2.turns WHERE content_hash IS NULL";
    assert_eq!(setup.admin().query_one(hashed, &[]).unwrap().get::<_, i64>(0), 0);
}
