//! Slices of rows that row security filters: whose rights applied, and that rows were hidden, is signed.

use postgres::Client;

use crate::common::database::Database;
use crate::graph::{
    attested, connect_as, database, db_error, reason, refusal, slice, status, text, turns,
};

/// Row security that hides the turns a setting names.
const FILTER_POLICY: &str = "
    CREATE POLICY filtered ON memory_turns USING (
        id::text <> ALL (string_to_array(current_setting('trust.hidden', true), ',')) IS NOT FALSE);
    ALTER TABLE memory_turns ENABLE ROW LEVEL SECURITY";

fn filtered(name: &str) -> (Database, Client) {
    let database = database(&format!("filtered_{name}"));
    let mut owner = connect_as(&database, "trust_owner");
    owner.batch_execute(FILTER_POLICY).unwrap();
    (database, owner)
}

fn hide(client: &mut Client, turn: u32) {
    client
        .batch_execute(&format!("SELECT set_config('trust.hidden', turn({turn})::text, false)"))
        .unwrap();
}

#[test]
fn a_filtered_slice_says_so() {
    let (database, mut owner) = filtered("setting");
    let mut reader = connect_as(&database, "trust_reader");
    hide(&mut reader, 4);
    let export = slice(&mut reader);
    assert_eq!(turns(&export), [1, 2, 3]);
    assert_eq!(
        (attested(&export, "role"), attested(&export, "rls")),
        ("trust_reader".into(), "true".into())
    );
    assert_eq!(reason(&mut owner, &export), "ok");
    // To say otherwise is a forgery.
    assert_eq!(reason(&mut owner, &export.replace(r#""rls":true"#, r#""rls":false"#)), "bad_mac");
    assert_eq!(reason(&mut owner, &export.replace("trust_reader", "trust_owner")), "bad_mac");
}

#[test]
fn a_filtered_slice_is_not_promoted_by_default() {
    let (database, mut owner) = filtered("promotion");
    let mut admin = database.connect();
    admin
        .batch_execute(
            "CREATE TABLE atoms (slice json, turns uuid[]);
             CREATE CONSTRAINT TRIGGER admissible AFTER INSERT OR UPDATE ON atoms
                 NOT DEFERRABLE FOR EACH ROW EXECUTE FUNCTION graph_require_admissible('slice', 'turns');
             GRANT INSERT ON atoms TO trust_reader, trust_owner",
        )
        .unwrap();
    let insert = "INSERT INTO atoms SELECT graph_slice(turn(3)), ARRAY[turn(3)]";
    let mut reader = connect_as(&database, "trust_reader");
    assert_eq!(refusal(&mut reader, insert), "23514");
    hide(&mut reader, 4);
    assert_eq!(refusal(&mut reader, insert), "23514");
    owner.batch_execute(insert).unwrap();
}

#[test]
fn whether_row_security_applied_is_signed() {
    let (database, mut owner) = filtered("applies");
    let rls = |client: &mut Client| attested(&slice(client), "rls");
    assert_eq!(rls(&mut owner), "false");
    assert_eq!(rls(&mut database.connect()), "false");
    assert_eq!(rls(&mut connect_as(&database, "trust_bypass")), "false");
    assert_eq!(rls(&mut connect_as(&database, "trust_reader")), "true");
    owner.batch_execute("ALTER TABLE memory_turns FORCE ROW LEVEL SECURITY").unwrap();
    assert_eq!(rls(&mut owner), "true");
    owner.batch_execute("ALTER TABLE memory_turns DISABLE ROW LEVEL SECURITY").unwrap();
    assert_eq!(rls(&mut connect_as(&database, "trust_reader")), "false");
    // On the edges alone.
    owner
        .batch_execute(
            "ALTER TABLE memory_turn_edges ENABLE ROW LEVEL SECURITY;
             CREATE POLICY all_edges ON memory_turn_edges USING (true)",
        )
        .unwrap();
    assert_eq!(rls(&mut connect_as(&database, "trust_reader")), "true");
}

#[test]
fn row_security_switched_off_hides_nothing_silently() {
    let (database, _owner) = filtered("off");
    let mut reader = connect_as(&database, "trust_reader");
    reader.batch_execute("SET row_security = off").unwrap();
    assert_eq!(refusal(&mut reader, "SELECT graph_slice(turn(3))"), "42501");
}

/// A policy whose function sets the role that a setting names, at the fourth turn.
const SWITCHING: &str = "
    CREATE SCHEMA switching;
    GRANT USAGE ON SCHEMA switching TO PUBLIC;
    CREATE FUNCTION switching.allows(id uuid) RETURNS boolean LANGUAGE plpgsql
        SET search_path = pg_catalog AS $$ BEGIN
            IF id = '00000000-0000-4000-8000-000000000004' THEN
                PERFORM set_config('role', current_setting('trust.role'), false);
                RETURN false;
            END IF;
            IF current_setting('trust.back')::boolean THEN
                PERFORM set_config('role', 'none', false);
            END IF;
            RETURN true;
        END $$;
    DROP POLICY filtered ON memory_turns;
    CREATE POLICY filtered ON memory_turns USING (switching.allows(id))";

#[test]
fn a_policy_that_switches_roles_does_not_change_who_signs() {
    let (database, _owner) = filtered("switching");
    database.connect().batch_execute(SWITCHING).unwrap();
    for back in [false, true] {
        for role in ["trust_owner", "trust_bypass"] {
            let mut member = connect_as(&database, "trust_member");
            let set = format!("SET trust.role = {role}; SET trust.back = {back}");
            member.batch_execute(&set).unwrap();
            match member.query_one("SELECT graph_slice(turn(3))::text", &[]) {
                Ok(row) => {
                    let export: String = row.get(0);
                    let signed = (attested(&export, "role"), attested(&export, "rls"));
                    assert_eq!(signed, ("trust_member".into(), "true".into()), "{set}");
                }
                Err(error) => {
                    let error = error.as_db_error().unwrap();
                    let word = (error.code().code(), error.detail());
                    assert_eq!(word, ("55000", Some("RIGHTS_CHANGED")), "{set}");
                }
            }
        }
    }
}

#[test]
fn a_wrapper_with_definers_rights_signs_the_definer() {
    let (database, mut owner) = filtered("definer");
    let mut admin = database.connect();
    admin
        .batch_execute(
            "CREATE FUNCTION sliced(anchor uuid) RETURNS json LANGUAGE sql STABLE SECURITY DEFINER
                 SET search_path = pg_catalog, public, pg_temp AS 'SELECT graph_slice(anchor)';
             ALTER FUNCTION sliced(uuid) OWNER TO trust_definer",
        )
        .unwrap();
    for role in ["trust_reader", "trust_owner", "postgres"] {
        let mut client = connect_as(&database, role);
        hide(&mut client, 4);
        let export = text(&mut client, "SELECT sliced(turn(3))::text");
        assert_eq!(attested(&export, "role"), "trust_definer", "{role}");
        assert_eq!(attested(&export, "rls"), "true", "{role}");
        assert_eq!(turns(&export), [1, 2, 3], "{role}");
    }
    admin.batch_execute("ALTER FUNCTION sliced(uuid) OWNER TO trust_owner").unwrap();
    let export = text(&mut connect_as(&database, "trust_reader"), "SELECT sliced(turn(3))::text");
    let signed = (attested(&export, "role"), attested(&export, "rls"));
    assert_eq!(signed, ("trust_owner".into(), "false".into()));
    assert_eq!(reason(&mut owner, &export), "ok");
}

#[test]
fn a_role_that_is_set_is_the_one_that_is_signed() {
    let (database, _owner) = filtered("set_role");
    let mut admin = database.connect();
    for role in ["trust_reader", "trust_bypass", "trust_owner"] {
        admin.batch_execute(&format!("SET ROLE {role}")).unwrap();
        let export = slice(&mut admin);
        assert_eq!(attested(&export, "role"), role);
        assert_eq!(attested(&export, "rls"), (role == "trust_reader").to_string());
        admin.batch_execute("RESET ROLE").unwrap();
    }
}

#[test]
fn a_view_slices_with_the_rights_of_who_reads_it() {
    let (database, mut owner) = filtered("view");
    database
        .connect()
        .batch_execute(
            "CREATE VIEW sliced AS SELECT graph_slice(turn(3)) AS export;
             ALTER VIEW sliced OWNER TO trust_owner;
             GRANT SELECT ON sliced TO trust_reader",
        )
        .unwrap();
    let mut reader = connect_as(&database, "trust_reader");
    hide(&mut reader, 4);
    let export = text(&mut reader, "SELECT export::text FROM sliced");
    assert_eq!(attested(&export, "role"), "trust_reader");
    assert_eq!((attested(&export, "rls").as_str(), turns(&export)), ("true", vec![1, 2, 3]));
    let export = text(&mut owner, "SELECT export::text FROM sliced");
    assert_eq!(attested(&export, "role"), "trust_owner");
}

#[test]
fn a_materialized_view_slices_with_the_rights_of_its_owner() {
    let (database, mut owner) = filtered("matview");
    let mut admin = database.connect();
    admin
        .batch_execute(
            "CREATE MATERIALIZED VIEW sliced AS SELECT graph_slice(turn(3)) AS export;
             ALTER MATERIALIZED VIEW sliced OWNER TO trust_owner;
             REFRESH MATERIALIZED VIEW sliced",
        )
        .unwrap();
    let export = text(&mut admin, "SELECT export::text FROM sliced");
    assert_eq!(attested(&export, "role"), "trust_owner");
    assert_eq!(reason(&mut owner, &export), "ok");
}

#[test]
fn who_may_not_read_the_tables_gets_no_slice() {
    let database = database("no_rights");
    let mut admin = database.connect();
    admin.batch_execute("REVOKE SELECT ON memory_turns FROM trust_reader").unwrap();
    let mut reader = connect_as(&database, "trust_reader");
    for statement in [
        "SELECT graph_slice(turn(3))",
        "SELECT * FROM graph_slices(ARRAY[turn(3)])",
        "SELECT * FROM graph_slice_turns(turn(3))",
        "SELECT * FROM graph_slice_edges(turn(3))",
    ] {
        assert_eq!(refusal(&mut reader, statement), "42501", "{statement}");
    }
    // One column is not enough, and does not allow filtering.
    admin.batch_execute("GRANT SELECT (id) ON memory_turns TO trust_reader").unwrap();
    assert_eq!(refusal(&mut reader, "SELECT graph_slice(turn(3))"), "42501");
    // Verifying needs no rights on the graph.
    let export = slice(&mut admin);
    assert_eq!(reason(&mut reader, &export), "ok");
}

#[test]
fn a_hidden_anchor_and_a_missing_one_give_one_error() {
    let (database, _owner) = filtered("anchor");
    let mut reader = connect_as(&database, "trust_reader");
    hide(&mut reader, 4);
    let [hidden, missing] = [4, 404].map(|n| {
        let error = db_error(&mut reader, &format!("SELECT graph_slice(turn({n}))"));
        let id = text(&mut reader, &format!("SELECT turn({n})::text"));
        let message = error.message().replace(&id, "…");
        (
            error.code().code().to_owned(),
            message,
            error.detail().map(str::to_owned),
            error.hint().map(str::to_owned),
        )
    });
    assert_eq!(hidden, missing);
    assert_eq!(hidden.2.as_deref(), Some("ANCHOR_NOT_FOUND"));
}

#[test]
fn rows_that_a_policy_writes_on_the_way_are_not_attested() {
    let (database, mut owner) = filtered("writing");
    database.connect().batch_execute("GRANT CREATE ON SCHEMA public TO trust_owner").unwrap();
    owner
        .batch_execute(
            "CREATE FUNCTION notes() RETURNS boolean LANGUAGE plpgsql VOLATILE SECURITY DEFINER
                 SET search_path = pg_catalog AS
                 $$ BEGIN UPDATE public.memory_turns SET role = 'tool'; RETURN true; END $$;
             DROP POLICY filtered ON memory_turns;
             CREATE POLICY filtered ON memory_turns USING (notes())",
        )
        .unwrap();
    let mut reader = connect_as(&database, "trust_reader");
    // Refused, or not attested.
    let export = reader.query_one("SELECT graph_slice(turn(3))::text", &[]);
    if let Ok(row) = export {
        assert_eq!(status(row.get(0)), "uncommitted");
    }
}
