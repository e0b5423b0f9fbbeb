//! Who asks is what is signed: no name of another's is borrowed within a transaction, no role changed within a call.

use postgres::Client;

use crate::setup::{Outcome, POLICIES, Setup, attempt, create_role, role, status, text};

const SLICE: &str = "SELECT graph_slice(turn(5))::text";

/// Roles of a test's own: `promoter`, and `sneaky`, whom `creator` may rename, as CREATEROLE does in PostgreSQL 15.
fn setup(name: &str) -> Setup {
    let setup = Setup::new(&format!("roles_{name}"));
    let [promoter, sneaky, creator] = names(name);
    let create: String = [&promoter, &sneaky, &creator].map(|role| create_role(role)).concat();
    setup
        .admin()
        .batch_execute(&format!(
            "{create}
             ALTER ROLE {creator} CREATEROLE;
             GRANT {promoter}, {sneaky} TO {creator} WITH ADMIN OPTION;
             GRANT SELECT ON b2.turns, b2.edges TO {promoter}, {sneaky}"
        ))
        .unwrap();
    setup
}

fn names(name: &str) -> [String; 3] {
    ["promoter", "sneaky", "creator"].map(|role| format!("attack_{role}_{name}"))
}

fn assert_unattested(client: &mut Client, what: &str) {
    if let Some(rows) = attempt(client, SLICE).answer(what) {
        assert_eq!(status(&rows[0]), "uncommitted", "{what}: signed as {}", role(&rows[0]));
    }
    for statement in [
        "SELECT coalesce(max(admissibility_token), 'none') FROM graph_slice_turns(turn(5))",
        "SELECT coalesce(slice ->> 'admissibility_token', 'none') FROM graph_slices(ARRAY[turn(5)])",
    ] {
        if let Some(rows) = attempt(client, statement).answer(what) {
            assert_eq!(rows, ["none"], "{what}");
        }
    }
}

#[test]
fn a_borrowed_name_is_not_attested() {
    let mut setup = setup("borrowed");
    let [promoter, sneaky, creator] = names("borrowed");
    let mut client = setup.connect(&creator);
    let rename = format!(
        "ALTER ROLE {promoter} RENAME TO attack_tmp_borrowed; ALTER ROLE {sneaky} RENAME TO {promoter};"
    );
    for set in ["SET LOCAL ROLE", "SET ROLE"] {
        client.batch_execute(&format!("BEGIN; {rename} {set} {promoter}")).unwrap();
        assert_unattested(&mut client, set);
        client.batch_execute("ROLLBACK").unwrap();
    }
    // The name of whoever asked before.
    client
        .batch_execute(&format!(
            "BEGIN; SET LOCAL ROLE {sneaky}; {SLICE}; SAVEPOINT s; RESET ROLE; {rename}"
        ))
        .unwrap();
    client.batch_execute(&format!("SET LOCAL ROLE {promoter}")).unwrap();
    assert_unattested(&mut client, "within a savepoint");
    // Without the renaming the name is one's own.
    client.batch_execute(&format!("ROLLBACK TO s; RESET ROLE; SET LOCAL ROLE {sneaky}")).unwrap();
    let export = text(&mut client, SLICE);
    assert_eq!((role(&export), status(&export).as_str()), (sneaky.clone(), "attested"));
    client.batch_execute("ROLLBACK").unwrap();

    // In a savepoint that is released.
    client
        .batch_execute(&format!(
            "BEGIN; SAVEPOINT s; {rename} RELEASE s; SET LOCAL ROLE {promoter}"
        ))
        .unwrap();
    assert_unattested(&mut client, "released");
    client.batch_execute("ROLLBACK").unwrap();
    client.batch_execute(&format!("SET ROLE {sneaky}")).unwrap();
    let export = text(&mut client, SLICE);
    assert_eq!((role(&export), status(&export).as_str()), (sneaky, "attested"));
    setup.assert_sound();
}

#[test]
fn what_makes_a_role_what_it_is_is_not_attested_before_it_is_committed() {
    let mut setup = setup("changed");
    let [promoter, sneaky, creator] = names("changed");
    let mut admin = setup.admin();
    for (by, change) in [
        (&creator, format!("GRANT {promoter} TO {sneaky}")),
        (&creator, format!("REVOKE {promoter} FROM {creator}; GRANT {promoter} TO {sneaky}")),
        (
            &creator,
            format!(
                "ALTER ROLE {sneaky} RENAME TO attack_tmp_changed; ALTER ROLE attack_tmp_changed RENAME TO {sneaky}"
            ),
        ),
    ] {
        let mut client = setup.connect(by);
        client.batch_execute(&format!("BEGIN; {change}; SET LOCAL ROLE {sneaky}")).unwrap();
        assert_unattested(&mut client, &change);
        client.batch_execute("ROLLBACK").unwrap();
    }
    for change in [
        format!("ALTER ROLE {sneaky} BYPASSRLS"),
        format!("ALTER ROLE {sneaky} SUPERUSER"),
        format!("GRANT pg_read_all_data TO {sneaky}"),
        format!("GRANT attack_owner TO {sneaky}"),
    ] {
        admin.batch_execute(&format!("BEGIN; {change}; SET LOCAL ROLE {sneaky}")).unwrap();
        assert_unattested(&mut admin, &change);
        admin.batch_execute("ROLLBACK").unwrap();
    }
    setup.assert_sound();
}

/// Row security that sets the role while turns are read.
const SETS_ROLE: &str = "
    CREATE FUNCTION planted.sets_role() RETURNS boolean LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog AS $$
    DECLARE
        now_at bigint := nextval('planted.calls');
    BEGIN
        IF now_at = current_setting('planted.moment')::bigint THEN
            PERFORM set_config('role', 'attack_other', false);
        ELSIF now_at > current_setting('planted.moment')::bigint AND current_setting('planted.back') = 'on' THEN
            PERFORM set_config('role', 'attack_reader', false);
        END IF;
        RETURN true;
    END $$;
    GRANT USAGE ON SEQUENCE planted.calls TO PUBLIC;
    CREATE POLICY sets_role ON b2.turns USING (planted.sets_role());
    CREATE POLICY sets_role ON b2.edges USING (planted.sets_role());
    ALTER TABLE b2.turns ENABLE ROW LEVEL SECURITY;
    ALTER TABLE b2.edges ENABLE ROW LEVEL SECURITY;";

#[test]
fn a_role_set_in_the_middle_signs_nothing() {
    let mut setup = Setup::new("roles_middle");
    setup.owner().batch_execute(SETS_ROLE).unwrap();
    let mut admin = setup.admin();
    let mut refused = 0;
    for back in ["on", "off"] {
        for moment in [1, 2, 5, 10, 20, 40, 80] {
            for call in [
                "SELECT slice ->> 'slice_id', slice #>> '{attestation,role}', error_code
                 FROM graph_slices(ARRAY[turn(5), turn(2), turn(9), turn(7)])",
                "SELECT slice_id, role, NULL FROM (
                     SELECT s ->> 'slice_id' AS slice_id, s #>> '{attestation,role}' AS role
                     FROM graph_slice(turn(5)) AS s) AS s",
            ] {
                let mut reader = setup.reader();
                reader
                    .batch_execute(&format!(
                        "SET planted.moment = {moment}; SET planted.back = {back};"
                    ))
                    .unwrap();
                admin.batch_execute("SELECT setval('planted.calls', 1, false)").unwrap();
                match attempt(&mut reader, call) {
                    // Refused as a whole, or signed as who asked.
                    Outcome::Refused(code) => {
                        assert_eq!(code, "55000", "{call} at {moment}");
                        refused += 1;
                    }
                    Outcome::Answer(rows) => {
                        for row in rows {
                            assert!(
                                row.contains("|attack_reader|NULL"),
                                "{call} at {moment}: {row}"
                            );
                        }
                    }
                    Outcome::Unsafe(fault) => panic!("{call} at {moment}: {fault}"),
                }
            }
        }
    }
    assert!(refused > 0, "the role was set within a call");
    setup.assert_sound();
}

/// The same in the functions that sign nothing: they do not go on under another role.
#[test]
fn a_role_set_in_the_middle_reads_nothing_more() {
    let mut setup = Setup::new("roles_reads");
    setup.owner().batch_execute(POLICIES).unwrap();
    setup
        .owner()
        .batch_execute(
            "CREATE FUNCTION planted.other() RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$ BEGIN
                 IF current_user = 'attack_other' THEN PERFORM pg_catalog.nextval('planted.caught'); END IF;
                 RETURN true;
             END $$;
             CREATE FUNCTION planted.leaves() RETURNS boolean LANGUAGE plpgsql VOLATILE AS
                 $$ BEGIN PERFORM set_config('role', 'attack_other', false); RETURN true; END $$;
             DROP POLICY act ON b2.turns; DROP POLICY act ON b2.edges;
             CREATE POLICY leaves ON b2.turns USING (planted.leaves());
             CREATE POLICY other ON b2.edges USING (planted.other())",
        )
        .unwrap();
    for call in [
        SLICE,
        "SELECT graph_snapshot()",
        "SELECT * FROM graph_slices(ARRAY[turn(5), turn(6)])",
        "SELECT * FROM graph_slice_explain(turn(5))",
        "SELECT * FROM graph_search_slice('{1,2}', turn(5))",
    ] {
        attempt(&mut setup.reader(), call).answer(call);
        assert!(!setup.has_caught(), "{call}");
    }
    setup.assert_sound();
}

/// Plans are kept for the roles that come later in a session, and the server asks whether a table may be named when it
/// analyses a statement.
#[test]
fn a_role_that_may_not_name_the_tables_reads_nothing_after_one_that_may() {
    let setup = Setup::new("roles_usage");
    setup
        .admin()
        .batch_execute(
            "REVOKE USAGE ON SCHEMA b2 FROM PUBLIC; GRANT USAGE ON SCHEMA b2 TO attack_reader",
        )
        .unwrap();
    let calls = [
        SLICE,
        "SELECT count(*) FROM graph_messages(turn(5))",
        "SELECT graph_messages_record(turn(5))",
        "SELECT * FROM graph_slices(ARRAY[turn(5)])",
        "SELECT turn_id FROM graph_search('{1,2}')",
        "SELECT count(*) FROM recorder_chunks()",
        "SELECT count(*) FROM recorder_chunk_span(0, 3, 0, 0, 31, 10)",
    ];
    let mut client = setup.reader();
    for call in calls {
        assert!(attempt(&mut client, call).answer(call).is_some(), "{call}");
    }
    client.batch_execute("SET ROLE attack_other").unwrap();
    for call in calls {
        assert_eq!(attempt(&mut client, call), Outcome::Refused("42501".to_owned()), "{call}");
    }
    client.batch_execute("RESET ROLE").unwrap();
    for call in calls {
        assert!(attempt(&mut client, call).answer(call).is_some(), "{call}");
    }
}
