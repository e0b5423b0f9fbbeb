//! The tables' owner lets an index or a constraint decide what is read: its function is called IMMUTABLE and reads a
//! setting.

use postgres::Client;

use crate::setup::{OWNER, Setup, status, turn_count};

/// A function that says what a setting says.
const FUNCTIONS: &str = "
    CREATE FUNCTION planted.shown() RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS
        $$ BEGIN RETURN coalesce(current_setting('planted.shown', true), 'off') = 'on'; END $$;
    CREATE FUNCTION planted.shown(int) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT planted.shown()';
    CREATE FUNCTION planted.shown(uuid) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS
        $$ BEGIN RETURN planted.shown(); END $$;
    CREATE OPERATOR planted.! (RIGHTARG = int, FUNCTION = planted.shown);
    GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA planted TO PUBLIC;";

/// A graph of plain tables, as planners like indexes of small ones less.
const PLAIN: &str = "
    CREATE TABLE b2.plain_turns (LIKE b2.turns INCLUDING ALL);
    INSERT INTO b2.plain_turns (id, session_id) SELECT turn(n), 's' FROM generate_series(1, 3000) AS n;
    CREATE TABLE b2.plain_edges (LIKE b2.edges INCLUDING ALL);
    INSERT INTO b2.plain_edges SELECT turn(n), turn(n + 1), 'reply' FROM generate_series(1, 2999) AS n;
    GRANT SELECT ON b2.plain_turns, b2.plain_edges TO PUBLIC;
    ANALYZE b2.plain_turns, b2.plain_edges;";

const SLICE: &str = "SELECT graph_slice(turn(500))::text";

/// What the owner makes, and what is set when a slice is taken.
struct Lie {
    name: &'static str,
    made: &'static str,
    set: &'static str,
}

const LIES: [Lie; 8] = [
    Lie {
        name: "edges_predicate",
        made: "CREATE INDEX misleading ON b2.plain_edges (child_turn_id) INCLUDE (parent_turn_id, edge_type)
                   WHERE planted.shown();
               CREATE INDEX liar2 ON b2.plain_edges (parent_turn_id) INCLUDE (child_turn_id) WHERE planted.shown()",
        set: "SET planted.shown = on",
    },
    Lie {
        name: "edges_predicate_argument",
        made: "CREATE INDEX misleading ON b2.plain_edges (child_turn_id) INCLUDE (parent_turn_id, edge_type)
                   WHERE planted.shown(1);
               CREATE INDEX liar2 ON b2.plain_edges (parent_turn_id) INCLUDE (child_turn_id) WHERE planted.shown(1)",
        set: "SET planted.shown = on",
    },
    Lie {
        name: "operator",
        made: "CREATE INDEX misleading ON b2.plain_edges (child_turn_id) INCLUDE (parent_turn_id, edge_type)
                   WHERE OPERATOR(planted.!) 1;
               CREATE INDEX liar2 ON b2.plain_edges (parent_turn_id) INCLUDE (child_turn_id) \
               WHERE OPERATOR(planted.!) 1",
        set: "SET planted.shown = on",
    },
    Lie {
        name: "turns_predicate",
        made: "CREATE UNIQUE INDEX misleading ON b2.plain_turns (id) WHERE planted.shown() OR id = turn(500)",
        set: "SET planted.shown = on; SET enable_indexonlyscan = off",
    },
    Lie {
        name: "constraint",
        made: "SET planted.shown = on;
               ALTER TABLE b2.plain_edges ADD CONSTRAINT misleading CHECK (planted.shown() OR parent_turn_id IS NULL)",
        set: "SET planted.shown = off; SET constraint_exclusion = on",
    },
    Lie {
        name: "constraint_not_valid",
        made: "ALTER TABLE b2.plain_edges
                   ADD CONSTRAINT misleading CHECK (planted.shown() OR parent_turn_id IS NULL) NOT VALID",
        set: "SET constraint_exclusion = on",
    },
    // The function of an expression may be called, but must not decide what is read.
    Lie {
        name: "expression",
        made: "CREATE INDEX misleading ON b2.plain_edges (planted.shown(1), child_turn_id);
               CREATE INDEX liar2 ON b2.plain_edges (child_turn_id, planted.shown(parent_turn_id))",
        set: "SET planted.shown = on",
    },
    Lie {
        name: "statistics",
        made: "CREATE STATISTICS b2.misleading ON (planted.shown(1)), (planted.shown(parent_turn_id)) \
            FROM b2.plain_edges;
               ANALYZE b2.plain_edges",
        set: "SET planted.shown = on",
    },
];

/// The slice is whole, or nothing of it is attested.
fn check(client: &mut Client, name: &str) {
    match client.query_one(SLICE, &[]) {
        Ok(row) => {
            let export: String = row.get(0);
            let counted = (turn_count(&export), status(&export));
            assert!(counted.0 == 21 || counted.1 == "uncommitted", "{name}: {counted:?}");
        }
        Err(error) => {
            let error = error.as_db_error().unwrap_or_else(|| panic!("{name}: {error}"));
            assert!(!error.code().code().starts_with("XX"), "{name}: {error:?}");
            assert!(error.message().contains("misleading"), "{name}: names it: {error:?}");
            assert!(error.detail().is_some() && error.hint().is_some(), "{name}: {error:?}");
        }
    }
}

fn lie(lie: &Lie) {
    let mut setup = Setup::new(&format!("indexes_{}", lie.name));
    let mut owner = setup.owner();
    owner.batch_execute("SET search_path = pg_catalog, public").unwrap();
    owner.batch_execute(&format!("{FUNCTIONS} {PLAIN}")).unwrap();
    let bind = "SELECT graph_kernel.bind_tables('b2.plain_turns', 'b2.plain_edges')";
    setup.admin().batch_execute(bind).unwrap();
    let export = crate::setup::text(&mut setup.owner(), SLICE);
    assert_eq!((turn_count(&export), status(&export).as_str()), (21, "attested"));

    // A session that has cached the tables, and new ones.
    let mut known = setup.owner();
    crate::setup::text(&mut known, SLICE);
    owner.batch_execute(lie.made).unwrap();
    known.batch_execute(lie.set).unwrap();
    check(&mut known, lie.name);
    for role in [OWNER, "attack_reader", "postgres"] {
        let mut client = setup.connect(role);
        client.batch_execute(lie.set).unwrap();
        check(&mut client, lie.name);
        // The graph itself is as whole.
        let snapshot = "SELECT graph_snapshot()";
        let hashes = [lie.set, "RESET ALL"].map(|set| {
            client.batch_execute(set).unwrap();
            crate::setup::attempt(&mut client, snapshot).answer(snapshot)
        });
        assert!(hashes[0].is_none() || hashes[0] == hashes[1], "{}: {hashes:?}", lie.name);
    }
    // Bound anew it is seen at once, or slices are whole.
    crate::setup::attempt(&mut setup.admin(), bind).answer(bind);
    setup.assert_sound();
}

macro_rules! lies {
    ($($name:ident $index:literal)*) => { $(#[test] fn $name() { lie(&LIES[$index]); })* };
}

lies! {
    an_index_predicate_without_an_argument 0
    an_index_predicate_with_a_constant 1
    an_index_predicate_with_an_operator 2
    a_unique_index_of_the_turns 3
    a_check_constraint 4
    a_check_constraint_that_is_not_valid 5
    an_index_expression 6
    extended_statistics 7
}

#[test]
fn an_index_of_a_partition_alone() {
    let mut setup = Setup::new("indexes_partition");
    let mut owner = setup.owner();
    owner
        .batch_execute(&format!(
            "SET search_path = pg_catalog, public; {FUNCTIONS}
             INSERT INTO b2.turns (id) SELECT turn(n) FROM generate_series(11, 3000) AS n;
             INSERT INTO b2.edges SELECT turn(n), turn(n + 1), 'reply' FROM generate_series(10, 2999) AS n;
             ANALYZE b2.turns, b2.edges"
        ))
        .unwrap();
    let before = crate::setup::text(&mut owner, SLICE);
    assert_eq!(turn_count(&before), 21);
    owner
        .batch_execute(
            "CREATE INDEX misleading ON b2.edges_1 (child_turn_id) INCLUDE (parent_turn_id, edge_type) \
            WHERE planted.shown(1);
             CREATE INDEX liar2 ON b2.edges_1 (parent_turn_id) INCLUDE (child_turn_id) WHERE planted.shown(1)",
        )
        .unwrap();
    let mut client = setup.owner();
    client.batch_execute("SET planted.shown = on").unwrap();
    check(&mut client, "partition");
    setup.assert_sound();
}
