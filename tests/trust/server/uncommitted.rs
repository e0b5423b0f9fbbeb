//! What a transaction has changed itself is never attested, so nothing that is rolled back is.

use std::io::Write;

use postgres::Client;

use crate::graph::{database, reason, slice, status, text, turns};

/// More ways to the tables: a view, a trigger, a foreign key, a rule, functions.
const PATHS: &str = "
    CREATE VIEW turns_view AS SELECT id, role FROM public.memory_turns;
    CREATE TABLE inbox (id uuid);
    CREATE FUNCTION take_in() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN INSERT INTO public.memory_turns (id) VALUES (NEW.id); RETURN NEW; END $$;
    CREATE TRIGGER take_in AFTER INSERT ON inbox FOR EACH ROW EXECUTE FUNCTION take_in();
    CREATE TABLE topics (id int PRIMARY KEY);
    INSERT INTO topics VALUES (1);
    ALTER TABLE public.memory_turns
        ADD COLUMN topic int REFERENCES topics ON DELETE SET NULL ON UPDATE CASCADE;
    UPDATE public.memory_turns SET topic = 1 WHERE id = turn(5);
    CREATE TABLE outbox (id uuid);
    CREATE RULE pass_on AS ON INSERT TO outbox DO INSTEAD
        INSERT INTO public.memory_turns (id) VALUES (NEW.id);
    CREATE TABLE elsewhere (x int);
    CREATE FUNCTION write_turn() RETURNS void LANGUAGE sql AS
        $$ INSERT INTO public.memory_turns (id) VALUES (turn(9)) $$;
    CREATE FUNCTION write_and_slice() RETURNS json LANGUAGE plpgsql AS
        $$ BEGIN PERFORM write_turn(); RETURN graph_slice(turn(3)); END $$;";

const WRITES: [&str; 21] = [
    "INSERT INTO memory_turns (id) VALUES (turn(9))",
    "INSERT INTO memory_turn_edges VALUES (turn(1), turn(5))",
    "UPDATE memory_turns SET salience_score = 1",
    "UPDATE memory_turns SET role = role WHERE id = turn(5)",
    "DELETE FROM memory_turn_edges WHERE child_turn_id = turn(5)",
    "TRUNCATE memory_turn_edges",
    "MERGE INTO memory_turns AS t USING (SELECT turn(9) AS id) AS s ON t.id = s.id
         WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)",
    "INSERT INTO memory_turns (id) VALUES (turn(1))
         ON CONFLICT (id) DO UPDATE SET role = 'system'",
    "WITH written AS (INSERT INTO memory_turns (id) VALUES (turn(9)) RETURNING id)
         SELECT count(*) FROM written",
    "INSERT INTO turns_view VALUES (turn(9), 'tool')",
    "INSERT INTO inbox VALUES (turn(9))",
    "INSERT INTO outbox VALUES (turn(9))",
    "DELETE FROM topics",
    "UPDATE topics SET id = 2",
    "SELECT write_turn()",
    "DO $$ BEGIN PERFORM write_turn(); END $$",
    "DO $$ BEGIN PERFORM write_turn(); EXCEPTION WHEN OTHERS THEN END $$",
    "SAVEPOINT s; SELECT write_turn(); RELEASE s",
    "SAVEPOINT s; SAVEPOINT t; SELECT write_turn(); RELEASE t; RELEASE s",
    "SELECT write_turn(); SAVEPOINT s; SELECT 1; ROLLBACK TO s",
    "SELECT write_turn(); SAVEPOINT s; DELETE FROM memory_turns WHERE id = turn(9);
         ROLLBACK TO s; RELEASE s",
];

const DDL: [&str; 16] = [
    "ALTER TABLE memory_turns ADD COLUMN more text",
    "ALTER TABLE memory_turns ALTER COLUMN session_id TYPE varchar(9)",
    "ALTER TABLE memory_turns RENAME COLUMN content_text TO words",
    "ALTER TABLE memory_turns RENAME TO aside; ALTER TABLE aside RENAME TO memory_turns",
    "ALTER TABLE memory_turns RENAME TO aside;
         CREATE TABLE memory_turns (LIKE aside INCLUDING ALL);
         INSERT INTO memory_turns SELECT * FROM aside",
    "ALTER SCHEMA public RENAME TO aside; ALTER SCHEMA aside RENAME TO public",
    "CREATE SCHEMA away; ALTER TABLE memory_turn_edges SET SCHEMA away;
         ALTER TABLE away.memory_turn_edges SET SCHEMA public",
    "ALTER TABLE memory_turns ENABLE ROW LEVEL SECURITY",
    "CREATE POLICY everything ON memory_turns USING (true)",
    "ALTER TABLE memory_turns OWNER TO trust_reader",
    "ALTER TABLE memory_turn_edges DISABLE TRIGGER ALL",
    "CREATE INDEX ON memory_turn_edges (edge_type)",
    "CREATE TRIGGER again AFTER INSERT ON memory_turns FOR EACH ROW EXECUTE FUNCTION take_in()",
    "CLUSTER memory_turns USING memory_turns_pkey",
    "SELECT graph_kernel.bind_tables('memory_turns', 'memory_turn_edges')",
    "SELECT graph_kernel.bind_tables('memory_turns', 'memory_turn_edges');
         SELECT graph_kernel.unbind_tables()",
];

/// The same state as before, or changes elsewhere.
const HARMLESS: [&str; 13] = [
    "SELECT 1",
    "SELECT txid_current()",
    "SELECT FROM memory_turns FOR KEY SHARE",
    "SELECT FROM memory_turns FOR UPDATE",
    "SELECT FROM memory_turn_edges FOR NO KEY UPDATE",
    "LOCK TABLE memory_turns IN ROW SHARE MODE; SELECT txid_current()",
    "INSERT INTO elsewhere VALUES (1)",
    "CREATE TEMP TABLE notes (x int); INSERT INTO notes VALUES (1)",
    "SAVEPOINT s; SELECT write_turn(); ROLLBACK TO s",
    "SAVEPOINT s; SAVEPOINT t; SELECT write_turn(); RELEASE t; ROLLBACK TO s; RELEASE s",
    "SAVEPOINT s; TRUNCATE memory_turn_edges; ROLLBACK TO s",
    "SAVEPOINT s; ALTER TABLE memory_turns RENAME TO aside; ROLLBACK TO s",
    "DO $$ BEGIN PERFORM write_turn(); RAISE division_by_zero;
         EXCEPTION WHEN division_by_zero THEN END $$",
];

fn client(name: &str) -> (crate::common::database::Database, Client) {
    let database = database(name);
    let mut client = database.connect();
    client.batch_execute(PATHS).unwrap();
    (database, client)
}

/// Slices taken in a transaction after each change, which is then rolled back.
fn sliced_after(changes: &[&str], name: &str, mut check: impl FnMut(&str, &str, &mut Client)) {
    let (_database, mut client) = client(name);
    for change in changes {
        let mut transaction = client.transaction().unwrap();
        transaction.batch_execute(change).unwrap_or_else(|error| panic!("{change}: {error}"));
        let export = slice(&mut transaction);
        transaction.rollback().unwrap();
        check(change, &export, &mut client);
    }
}

fn assert_unattested(change: &str, export: &str, client: &mut Client) {
    assert_eq!(status(export), "uncommitted", "{change}");
    assert_eq!(reason(client, export), "unattested", "{change}");
    let now = slice(client);
    assert_eq!(status(&now), "attested", "{change}");
    assert_eq!(turns(&now), [1, 2, 3, 4, 5], "{change}");
}

#[test]
fn written_rows_are_not_attested() {
    sliced_after(&WRITES, "writes", assert_unattested);
}

#[test]
fn changed_definitions_are_not_attested() {
    sliced_after(&DDL, "ddl", assert_unattested);
}

#[test]
fn what_was_not_changed_is_attested_as_before() {
    sliced_after(&HARMLESS, "harmless", |change, export, client| {
        assert_eq!(status(export), "attested", "{change}");
        assert_eq!(export, slice(client), "{change}");
        assert_eq!(reason(client, export), "ok", "{change}");
    });
}

#[test]
fn copied_rows_are_not_attested() {
    let (_database, mut client) = client("copy");
    let mut transaction = client.transaction().unwrap();
    let mut copy = transaction.copy_in("COPY memory_turns (id) FROM STDIN").unwrap();
    copy.write_all(b"00000000-0000-4000-8000-000000000009\n").unwrap();
    copy.finish().unwrap();
    assert_eq!(status(&slice(&mut transaction)), "uncommitted");
}

#[test]
fn every_slicing_function_leaves_the_token_out() {
    let (_database, mut client) = client("functions");
    let mut transaction = client.transaction().unwrap();
    transaction.batch_execute("SELECT write_turn()").unwrap();
    for statement in [
        "SELECT coalesce(max(admissibility_token), 'none') FROM graph_slice_turns(turn(3))",
        "SELECT coalesce(slice ->> 'admissibility_token', 'none')
             FROM graph_slices(ARRAY[turn(3)])",
        "SELECT coalesce(slice #>> '{attestation,token}', 'none')
             FROM graph_slices(ARRAY[turn(3)])",
    ] {
        assert_eq!(text(&mut transaction, statement), "none", "{statement}");
    }
}

#[test]
fn a_function_that_writes_and_slices_gets_no_token() {
    let (_database, mut client) = client("write_and_slice");
    let export = text(&mut client, "SELECT write_and_slice()::text");
    assert_eq!(status(&export), "uncommitted");
    // It has committed by now.
    assert_eq!(status(&slice(&mut client)), "attested");
}

#[test]
fn a_statement_that_writes_and_slices_gets_no_token() {
    let (_database, mut client) = client("one_statement");
    let export = text(
        &mut client,
        "WITH written AS (INSERT INTO memory_turns (id) VALUES (turn(9)) RETURNING id)
         SELECT graph_slice(turn(3))::text FROM written",
    );
    assert_eq!(status(&export), "uncommitted");
}

#[test]
fn a_renamed_label_of_an_enum_is_not_attested() {
    let database = database("enum");
    let mut client = database.connect();
    client
        .batch_execute(
            "CREATE TYPE speaker AS ENUM ('user', 'tool');
             ALTER TABLE memory_turns ALTER COLUMN role TYPE speaker USING role::speaker;
             CREATE TYPE kind AS ENUM ('reply', 'branch');
             ALTER TABLE memory_turn_edges ALTER COLUMN edge_type DROP DEFAULT,
                 ALTER COLUMN edge_type TYPE kind USING edge_type::kind",
        )
        .unwrap();
    assert_eq!(status(&slice(&mut client)), "attested");
    for (rename, shown) in [
        ("ALTER TYPE speaker RENAME VALUE 'user' TO 'system'", r#""role":"system""#),
        ("ALTER TYPE kind RENAME VALUE 'reply' TO 'reference'", r#""edge_type":"reference""#),
    ] {
        let mut transaction = client.transaction().unwrap();
        transaction.batch_execute(rename).unwrap();
        let export = slice(&mut transaction);
        transaction.rollback().unwrap();
        assert!(export.contains(shown), "{export}");
        assert_eq!(reason(&mut client, &export), "unattested", "{rename}");
    }
}

#[test]
fn another_schema_in_the_place_of_public_is_not_attested() {
    let (_database, mut client) = client("schema_swap");
    client
        .batch_execute(
            "CREATE SCHEMA evil;
             SELECT graph_kernel.create_tables('evil');
             INSERT INTO evil.memory_turns (id) VALUES (turn(3))",
        )
        .unwrap();
    let mut transaction = client.transaction().unwrap();
    transaction
        .batch_execute("ALTER SCHEMA public RENAME TO aside; ALTER SCHEMA evil RENAME TO public")
        .unwrap();
    let statement = "SELECT aside.graph_slice('00000000-0000-4000-8000-000000000003')::text";
    let export = text(&mut transaction, statement);
    transaction.rollback().unwrap();
    assert_eq!(turns(&export), [3]);
    assert_eq!(reason(&mut client, &export), "unattested");
}
