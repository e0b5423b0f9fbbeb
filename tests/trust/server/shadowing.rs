//! Objects that stand in front of the real ones change nothing.

use crate::graph::{connect_as, database, reason, refusal, slice};

/// Everything a role can make in a schema of its own to catch an unqualified name.
const DECOYS: &str = r#"
    CREATE TABLE memory_turns (LIKE public.memory_turns);
    CREATE TABLE memory_turn_edges (LIKE public.memory_turn_edges);
    INSERT INTO memory_turns (id, role) VALUES (public.turn(3), 'tool'), (public.turn(9), 'tool');
    INSERT INTO memory_turn_edges VALUES (public.turn(3), public.turn(9), 'reply');
    CREATE FUNCTION same(uuid, uuid) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT true';
    CREATE FUNCTION unnest(uuid[]) RETURNS SETOF uuid LANGUAGE sql AS 'SELECT public.turn(9)';
    CREATE FUNCTION textin(cstring) RETURNS text LANGUAGE internal IMMUTABLE STRICT AS 'textin';
    CREATE FUNCTION now() RETURNS timestamptz LANGUAGE sql AS $$ SELECT '-infinity'::timestamptz $$;
    CREATE OPERATOR = (LEFTARG = uuid, RIGHTARG = uuid, FUNCTION = same);
    CREATE OPERATOR <> (LEFTARG = uuid, RIGHTARG = uuid, FUNCTION = same);
    CREATE FUNCTION graph_verify(text) RETURNS TABLE (valid boolean, reason text)
        LANGUAGE sql AS $$ SELECT true, 'ok' $$;
    CREATE DOMAIN uuid_array AS uuid[];"#;

#[test]
fn a_schema_in_front_of_the_search_path_changes_no_slice() {
    let database = database("search_path");
    let mut client = database.connect();
    let before = slice(&mut client);
    client
        .batch_execute(&format!(
            "CREATE SCHEMA decoys; SET search_path = decoys, pg_catalog, public; {DECOYS}"
        ))
        .unwrap();
    for path in
        ["decoys, pg_catalog, public", "decoys, public, pg_catalog", "pg_temp, decoys, public"]
    {
        client.batch_execute(&format!("SET search_path = {path}")).unwrap();
        assert_eq!(slice(&mut client), before, "{path}");
        assert_eq!(reason(&mut client, &before), "ok", "{path}");
        let edited = before.replacen("planning", "synthesis", 1);
        assert_eq!(reason(&mut client, &edited), "digest_mismatch", "{path}");
    }
    // A new session resolves everything anew.
    let mut fresh = database.connect();
    fresh.batch_execute("SET search_path = decoys, public").unwrap();
    assert_eq!(slice(&mut fresh), before);
}

#[test]
fn temporary_objects_change_no_slice() {
    let database = database("temporary");
    let mut client = database.connect();
    let before = slice(&mut client);
    for path in ["pg_temp, public", "public", "public, pg_temp"] {
        let mut fresh = database.connect();
        fresh.batch_execute(&format!("SET search_path = {path}")).unwrap();
        fresh
            .batch_execute(
                "CREATE TEMP TABLE memory_turns (LIKE public.memory_turns);
                 CREATE TEMP TABLE memory_turn_edges (LIKE public.memory_turn_edges);
                 CREATE TEMP TABLE root_keys (epoch int, root bytea, created_at timestamptz);
                 CREATE TEMP TABLE revoked_keys (kid text, revoked_at timestamptz);
                 CREATE TEMP TABLE binding (LIKE graph_kernel.binding);
                 CREATE TEMP TABLE pg_class (oid oid);
                 CREATE DOMAIN pg_temp.json AS pg_catalog.text;
                 INSERT INTO pg_temp.memory_turns (id, role) VALUES (public.turn(3), 'tool')",
            )
            .unwrap();
        assert_eq!(slice(&mut fresh), before, "{path}");
        assert_eq!(reason(&mut fresh, &before), "ok", "{path}");
    }
}

#[test]
fn nobody_puts_anything_into_the_private_schema() {
    let database = database("private_schema");
    let mut admin = database.connect();
    admin.batch_execute(&format!("ALTER DATABASE {} OWNER TO trust_owner", database.name)).unwrap();
    for role in ["trust_owner", "trust_reader"] {
        let mut client = connect_as(&database, role);
        for statement in [
            "CREATE TABLE graph_kernel.binding_of_mine (x int)",
            "CREATE FUNCTION graph_kernel.describe_tables(regclass, regclass, jsonb) RETURNS jsonb
                 LANGUAGE sql AS 'SELECT $3'",
            "CREATE OPERATOR graph_kernel.= (LEFTARG = uuid, RIGHTARG = uuid, FUNCTION = uuid_eq)",
            "ALTER SCHEMA graph_kernel RENAME TO mine",
            "ALTER SCHEMA graph_kernel OWNER TO CURRENT_USER",
            "DROP SCHEMA graph_kernel CASCADE",
            "CREATE OR REPLACE FUNCTION public.graph_verify(json)
                 RETURNS TABLE (valid boolean, reason text, kid text, role text, rls boolean)
                 LANGUAGE sql AS $$ SELECT true, 'ok', '', '', false $$",
            "ALTER FUNCTION public.graph_verify(json) SET search_path = public",
            "ALTER FUNCTION public.graph_slice(uuid, slice_policy) SECURITY DEFINER",
        ] {
            assert_eq!(refusal(&mut client, statement), "42501", "{role}: {statement}");
        }
    }
}
