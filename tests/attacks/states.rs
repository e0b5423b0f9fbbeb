//! Rows by an old snapshot under a catalog that is newer: a state that never was, which no token is given for.

use crate::setup::{Setup, status, text};

const SLICE: &str = "SELECT graph_slice(turn(5))::text";

/// What a transaction of the tables' owner does: the rows and what the catalog says of them change together.
const CHANGES: [(&str, &str); 10] = [
    (
        "two columns change their names and values",
        "UPDATE b2.turns SET session_id = words, words = session_id;
         ALTER TABLE b2.turns RENAME session_id TO aside; ALTER TABLE b2.turns RENAME words TO session_id;
         ALTER TABLE b2.turns RENAME aside TO words",
    ),
    (
        "two columns of the edges do",
        "ALTER TABLE b2.edges RENAME edge_type TO aside; ALTER TABLE b2.edges RENAME words TO edge_type;
         ALTER TABLE b2.edges RENAME aside TO words",
    ),
    ("the rows are written anew", "ALTER TABLE b2.edges ALTER number TYPE integer"),
    (
        "a partition with other rows takes the place of one",
        "CREATE TABLE b2.new (LIKE b2.edges INCLUDING ALL);
         INSERT INTO b2.new SELECT * FROM b2.edges;
         ALTER TABLE b2.edges DETACH PARTITION b2.edges_1;
         ALTER TABLE b2.edges ATTACH PARTITION b2.new FOR VALUES WITH (MODULUS 1, REMAINDER 0)",
    ),
    (
        "a partition is detached",
        "ALTER TABLE b2.edges DETACH PARTITION b2.edges_1",
    ),
    (
        "the tables are bound by other columns",
        r#"UPDATE b2.turns SET session_id = words, words = session_id;
         SET LOCAL ROLE postgres;
         SELECT graph_kernel.bind_tables('b2.turns', 'b2.edges', '{"turns": {"session_id": "words"}}')"#,
    ),
    ("a column is added", "ALTER TABLE b2.turns ADD COLUMN more integer DEFAULT 1"),
    ("their rights change", "REVOKE SELECT ON b2.turns FROM attack_other"),
    ("those of a column do", "GRANT UPDATE (words) ON b2.edges TO attack_other"),
    ("a policy comes", "CREATE POLICY more ON b2.turns USING (true)"),
];

/// What happens to the role that slices, how, and what a slice of before is then.
const RIGHTS: [(&str, &str, &str); 6] = [
    ("may read past row security", "ALTER ROLE states_bob BYPASSRLS", "uncommitted"),
    ("is given a role", "GRANT states_more TO states_bob", "uncommitted"),
    ("loses a role", "REVOKE states_group FROM states_bob", "uncommitted"),
    ("gets a role by another one", "GRANT states_more TO states_group", "uncommitted"),
    (
        "takes no part",
        "ALTER ROLE states_more NOINHERIT; GRANT states_more TO states_other",
        "attested",
    ),
    ("is as before", "BEGIN; GRANT states_more TO states_bob; ROLLBACK", "attested"),
];

/// Rights are those of now, whatever the snapshot.
#[test]
fn rights_that_are_newer_than_the_rows_are_not_attested() {
    let setup = Setup::new("states_rights");
    let mut admin = setup.admin();
    admin
        .batch_execute(
            "DROP ROLE IF EXISTS states_bob, states_group, states_more, states_other;
             CREATE ROLE states_bob; CREATE ROLE states_group; CREATE ROLE states_more; CREATE ROLE states_other;
             GRANT SELECT ON b2.turns, b2.edges TO PUBLIC",
        )
        .unwrap();
    for (what, change, expected) in RIGHTS {
        for was_read in [false, true] {
            admin
                .batch_execute(
                    "SET client_min_messages = error;
                     ALTER ROLE states_bob NOBYPASSRLS; GRANT states_group TO states_bob;
                     REVOKE states_more FROM states_bob, states_group, states_other",
                )
                .unwrap();
            let mut reader = setup.admin();
            reader
                .batch_execute(
                    "BEGIN ISOLATION LEVEL REPEATABLE READ; SET LOCAL ROLE states_bob; SELECT 1 FROM pg_class LIMIT 1",
                )
                .unwrap();
            if was_read {
                assert_eq!(status(&text(&mut reader, SLICE)), "attested", "{what}");
            }
            admin.batch_execute(change).unwrap();
            assert_eq!(status(&text(&mut reader, SLICE)), expected, "{what}");
            assert_eq!(status(&text(&mut reader, SLICE)), expected, "{what}");
            reader.batch_execute("COMMIT; BEGIN; SET LOCAL ROLE states_bob").unwrap();
            assert_eq!(status(&text(&mut reader, SLICE)), "attested", "{what}");
        }
    }
    admin.batch_execute("DROP ROLE states_bob, states_group, states_more, states_other").unwrap();
}

#[test]
fn old_rows_under_a_newer_catalog_are_not_attested() {
    for (number, (what, change)) in CHANGES.iter().enumerate() {
        let mut setup = Setup::new(&format!("states_{number}"));
        let (mut reader, mut owner) = (setup.admin(), setup.admin());
        reader
            .batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1 FROM pg_class LIMIT 1")
            .unwrap();
        owner
            .batch_execute(&format!("BEGIN; SET LOCAL ROLE attack_owner; {change}; COMMIT"))
            .unwrap_or_else(|error| panic!("{what}: {error:?}"));
        assert_eq!(status(&text(&mut reader, SLICE)), "uncommitted", "{what}");
        // Asked again, by a graph that was looked up before.
        assert_eq!(status(&text(&mut reader, SLICE)), "uncommitted", "{what}");
        reader.batch_execute("COMMIT").unwrap();
        assert_eq!(status(&text(&mut reader, SLICE)), "attested", "{what}");
        setup.assert_sound();
    }
}

/// The graph was looked up, and a slice signed, before the change.
#[test]
fn a_graph_that_was_read_before_is_looked_at_again() {
    let setup = Setup::new("states_again");
    let (mut reader, mut owner) = (setup.admin(), setup.owner());
    reader.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ").unwrap();
    assert_eq!(status(&text(&mut reader, SLICE)), "attested");
    // No lock stops a GRANT; the tables are held by the slice.
    owner.batch_execute("GRANT UPDATE ON b2.edges TO attack_other").unwrap();
    assert_eq!(status(&text(&mut reader, SLICE)), "uncommitted");
    reader.batch_execute("COMMIT").unwrap();
    assert_eq!(status(&text(&mut reader, SLICE)), "attested");
}

/// An enum's labels are not rows of a table's.
#[test]
fn renamed_labels_of_an_enum_are_a_newer_catalog() {
    let setup = Setup::new("states_enum");
    let mut owner = setup.admin();
    owner
        .batch_execute(
            "CREATE TYPE b2.phase AS ENUM ('planning', 'execution');
             ALTER TABLE b2.turns ALTER trajectory_phase TYPE b2.phase USING 'planning'",
        )
        .unwrap();
    let mut reader = setup.admin();
    reader.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ").unwrap();
    assert_eq!(status(&text(&mut reader, SLICE)), "attested");
    owner.batch_execute("ALTER TYPE b2.phase RENAME VALUE 'planning' TO 'debugging'").unwrap();
    assert_eq!(status(&text(&mut reader, SLICE)), "uncommitted");
    reader.batch_execute("COMMIT").unwrap();
    assert_eq!(status(&text(&mut reader, SLICE)), "attested");
}

/// The default tables are found by name.
#[test]
fn schemas_that_change_their_names_are_a_newer_catalog() {
    let setup = Setup::new("states_schema");
    let mut owner = setup.admin();
    // The extension's schema goes with its name.
    let slice = "SELECT other.graph_slice('00000000-0000-4000-8000-000000000005')::text";
    owner
        .batch_execute(
            "SELECT graph_kernel.unbind_tables(), graph_kernel.create_tables();
             CREATE SCHEMA aside; SELECT graph_kernel.create_tables('aside');
             INSERT INTO public.memory_turns (id, session_id) VALUES (turn(5), 'one');
             INSERT INTO aside.memory_turns (id, session_id) VALUES (turn(5), 'two');
             SET search_path = public",
        )
        .unwrap();
    let mut reader = setup.admin();
    reader
        .batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1 FROM pg_class LIMIT 1")
        .unwrap();
    owner
        .batch_execute(
            "BEGIN;
             ALTER SCHEMA public RENAME TO other; ALTER SCHEMA aside RENAME TO public;
             COMMIT",
        )
        .unwrap();
    let export = text(&mut reader, slice);
    assert!(export.contains("two"), "{export}");
    assert_eq!(status(&export), "uncommitted");
    reader.batch_execute("COMMIT").unwrap();
    assert_eq!(status(&text(&mut reader, slice)), "attested");
}

/// What a role may read is granted and, once the slice is taken, never was.
#[test]
fn rights_that_the_transaction_itself_grants_are_not_attested() {
    for (number, grant) in [
        "GRANT SELECT ON b2.turns TO attack_new",
        "GRANT SELECT ON b2.edges TO attack_new",
        "GRANT SELECT (id, session_id, role, trajectory_phase, salience_score, trajectory_depth,
                       trajectory_sibling_order, trajectory_homogeneity, trajectory_temporal,
                       trajectory_complexity, created_at, content_hash, content_text) ON b2.turns TO attack_new",
        "GRANT USAGE ON SCHEMA b2 TO attack_new",
    ]
    .iter()
    .enumerate()
    {
        let setup = Setup::new(&format!("states_grant_{number}"));
        let mut admin = setup.admin();
        admin.batch_execute(&crate::setup::create_role("attack_new")).unwrap();
        admin
            .batch_execute(
                "REVOKE USAGE ON SCHEMA b2 FROM PUBLIC;
                 GRANT USAGE ON SCHEMA b2 TO attack_new; GRANT SELECT ON b2.turns, b2.edges TO attack_new",
            )
            .unwrap();
        match *grant {
            grant if grant.contains("SCHEMA") => admin.batch_execute("REVOKE USAGE ON SCHEMA b2 FROM attack_new"),
            grant if grant.contains("b2.edges") => admin.batch_execute("REVOKE SELECT ON b2.edges FROM attack_new"),
            _ => admin.batch_execute("REVOKE SELECT ON b2.turns FROM attack_new"),
        }
        .unwrap();
        admin.batch_execute("SET ROLE attack_new").unwrap();
        admin.query_one(SLICE, &[]).expect_err("the role may not read it");
        admin.batch_execute("RESET ROLE").unwrap();
        admin.batch_execute(&format!("BEGIN; {grant}; SET LOCAL ROLE attack_new")).unwrap();
        assert_eq!(status(&text(&mut admin, SLICE)), "uncommitted", "{grant}");
        admin.batch_execute("COMMIT; SET ROLE attack_new").unwrap();
        assert_eq!(status(&text(&mut admin, SLICE)), "attested", "{grant}");
    }
}

/// What has nothing to do with the graph does not unsettle it.
#[test]
fn other_changes_are_attested() {
    let setup = Setup::new("states_others");
    let (mut reader, mut owner) = (setup.admin(), setup.admin());
    owner.batch_execute("CREATE TABLE b2.others (id int)").unwrap();
    reader
        .batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1 FROM pg_class LIMIT 1")
        .unwrap();
    owner
        .batch_execute(
            "ALTER TABLE b2.others ADD other int; GRANT SELECT ON b2.others TO attack_other;
             INSERT INTO b2.turns (id, session_id) VALUES (turn(50), 's');
             CREATE ROLE attack_states; DROP ROLE attack_states",
        )
        .unwrap();
    owner.batch_execute("VACUUM b2.turns, b2.edges").unwrap();
    reader
        .batch_execute(
            "INSERT INTO b2.others VALUES (1); GRANT INSERT ON b2.others TO attack_other",
        )
        .unwrap();
    assert_eq!(status(&text(&mut reader, SLICE)), "attested");
    reader.batch_execute("SAVEPOINT before; GRANT INSERT ON b2.turns TO attack_other").unwrap();
    assert_eq!(status(&text(&mut reader, SLICE)), "uncommitted");
    reader.batch_execute("ROLLBACK TO before").unwrap();
    assert_eq!(status(&text(&mut reader, SLICE)), "attested");
}

/// The name of the graph goes back to the default tables, which are emptied of what was not meant for anybody.
#[test]
fn the_default_tables_are_no_graph_of_a_time_when_others_were() {
    let setup = Setup::new("states_unbound");
    let (mut reader, mut admin) = (setup.admin(), setup.admin());
    admin
        .batch_execute(
            "SELECT graph_kernel.create_tables();
             INSERT INTO public.memory_turns (id, session_id) VALUES (turn(5), 'draft')",
        )
        .unwrap();
    reader.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1").unwrap();
    admin
        .batch_execute(
            "BEGIN; DELETE FROM public.memory_turns; SELECT graph_kernel.unbind_tables(); COMMIT",
        )
        .unwrap();
    assert_eq!(status(&text(&mut reader, SLICE)), "uncommitted");
    reader.batch_execute("COMMIT").unwrap();
    admin.batch_execute("INSERT INTO public.memory_turns (id) VALUES (turn(5))").unwrap();
    assert_eq!(status(&text(&mut reader, SLICE)), "attested");
}

fn first_session(reader: &mut postgres::Client) -> Result<String, String> {
    let export = "SELECT s #>> '{attestation,status}' || ' ' || (s #>> '{turns,0,session_id}')
                  FROM graph_slice(turn(1)) AS s";
    let row = reader.query_one(export, &[]);
    let error = |error: postgres::Error| {
        error.as_db_error().and_then(|error| error.detail()).unwrap_or_default().to_owned()
    };
    row.map(|row| row.get(0)).map_err(error)
}

/// A statement that is prepared after a policy has run means what the mapping does, whatever the policy has set.
#[test]
fn a_path_that_a_policy_sets_captures_no_operator() {
    let setup = Setup::new("states_path");
    let mut admin = setup.admin();
    admin
        .batch_execute(
            r#"CREATE TABLE b2.paths (id uuid PRIMARY KEY, s text, parent uuid);
               CREATE INDEX ON b2.paths (parent);
               INSERT INTO b2.paths VALUES (turn(1), 'ss', NULL), (turn(2), 'ss', turn(1));
               GRANT SELECT ON b2.paths TO PUBLIC;
               GRANT USAGE ON SCHEMA planted TO PUBLIC;
               CREATE FUNCTION planted.path(text) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN
                   PERFORM set_config('search_path', 'planted, pg_catalog', false);
                   RETURN true;
               END $$;
               CREATE OPERATOR planted.|| (LEFTARG = text, RIGHTARG = text, FUNCTION = pg_catalog.btrim);
               SET client_min_messages = error;
               SELECT graph_kernel.bind_tables('b2.paths', name => 'paths', columns => '{"turns":
                   {"session_id": {"expression": "s || lower(''X'')"},
                    "parents": [{"parent": "parent", "edge_type": "reply"}]}}');
               CREATE POLICY path ON b2.paths USING (planted.path(s));
               ALTER TABLE b2.paths ENABLE ROW LEVEL SECURITY"#,
        )
        .unwrap();
    let mut reader = setup.reader();
    reader.batch_execute("SET graph_kernel.graph = paths").unwrap();
    assert_eq!(first_session(&mut reader), Ok("attested ssx".to_owned()));
}

/// What rolling back a savepoint takes away again: a role that may read, its being a superuser, rights to the schema.
const UNDONE: [(&str, &str); 3] = [
    ("a role is given", "GRANT states_reading TO states_writing"),
    ("it is a superuser", "ALTER ROLE states_writing SUPERUSER"),
    ("the tables are readable", "GRANT SELECT ON b2.turns, b2.edges TO states_writing"),
];

/// Rows that were read by rights of a savepoint are not those of who reads after it was rolled back.
#[test]
fn what_a_savepoint_let_read_is_not_attested_after_it() {
    let setup = Setup::new("states_savepoint");
    let mut admin = setup.admin();
    admin
        .batch_execute(
            "DROP ROLE IF EXISTS states_reading, states_writing;
             CREATE ROLE states_reading; CREATE ROLE states_writing;
             REVOKE ALL ON b2.turns, b2.edges FROM PUBLIC;
             GRANT USAGE ON SCHEMA b2 TO PUBLIC;
             GRANT SELECT ON b2.turns, b2.edges TO states_reading;
             GRANT INSERT ON b2.turns, b2.edges TO states_writing",
        )
        .unwrap();
    for (what, change) in UNDONE {
        for end in ["ROLLBACK TO s", "SAVEPOINT inner_one; RELEASE s; ROLLBACK TO o"] {
            admin
                .batch_execute(
                    "BEGIN; SAVEPOINT before; SET LOCAL ROLE states_writing;
                     DECLARE c CURSOR FOR SELECT (graph_slices(array_fill(turn(5), ARRAY[8]))).slice::text;
                     RESET ROLE; SAVEPOINT o; SAVEPOINT s",
                )
                .unwrap();
            admin.batch_execute(&format!("{change}; SET LOCAL ROLE states_writing")).unwrap();
            assert_eq!(status(&text(&mut admin, "FETCH 1 FROM c")), "uncommitted", "{what}");
            admin.batch_execute(&format!("{end}; SET LOCAL ROLE states_writing")).unwrap();
            let after = admin.query("FETCH 1 FROM c", &[]);
            let code = after.err().and_then(|error| error.code().cloned());
            let denied = Some(postgres::error::SqlState::INSUFFICIENT_PRIVILEGE);
            assert_eq!(code, denied, "{what}, {end}");
            admin.batch_execute("ROLLBACK").unwrap();
        }
    }
    admin
        .batch_execute(
            "REVOKE ALL ON b2.turns, b2.edges FROM states_reading, states_writing;
             DROP ROLE states_reading, states_writing",
        )
        .unwrap();
}
