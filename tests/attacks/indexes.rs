//! The tables' owner lets an index or a constraint decide what is read: its function is called IMMUTABLE and reads a
//! setting.

use postgres::Client;

use crate::world::{OWNER, World, status, turn_count};

/// A function that says what a setting says.
const FUNCTIONS: &str = "
    CREATE FUNCTION trap.shown() RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS
        $$ BEGIN RETURN coalesce(current_setting('trap.shown', true), 'off') = 'on'; END $$;
    CREATE FUNCTION trap.shown(int) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT trap.shown()';
    CREATE FUNCTION trap.shown(uuid) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS
        $$ BEGIN RETURN trap.shown(); END $$;
    CREATE OPERATOR trap.! (RIGHTARG = int, FUNCTION = trap.shown);
    GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA trap TO PUBLIC;";

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
        made: "CREATE INDEX liar ON b2.plain_edges (child_turn_id) INCLUDE (parent_turn_id, edge_type)
                   WHERE trap.shown();
               CREATE INDEX liar2 ON b2.plain_edges (parent_turn_id) INCLUDE (child_turn_id) WHERE trap.shown()",
        set: "SET trap.shown = on",
    },
    Lie {
        name: "edges_predicate_argument",
        made: "CREATE INDEX liar ON b2.plain_edges (child_turn_id) INCLUDE (parent_turn_id, edge_type)
                   WHERE trap.shown(1);
               CREATE INDEX liar2 ON b2.plain_edges (parent_turn_id) INCLUDE (child_turn_id) WHERE trap.shown(1)",
        set: "SET trap.shown = on",
    },
    Lie {
        name: "operator",
        made: "CREATE INDEX liar ON b2.plain_edges (child_turn_id) INCLUDE (parent_turn_id, edge_type)
                   WHERE OPERATOR(trap.!) 1;
               CREATE INDEX liar2 ON b2.plain_edges (parent_turn_id) INCLUDE (child_turn_id) WHERE OPERATOR(trap.!) 1",
        set: "SET trap.shown = on",
    },
    Lie {
        name: "turns_predicate",
        made: "CREATE UNIQUE INDEX liar ON b2.plain_turns (id) WHERE trap.shown() OR id = turn(500)",
        set: "SET trap.shown = on; SET enable_indexonlyscan = off",
    },
    Lie {
        name: "constraint",
        made: "SET trap.shown = on;
               ALTER TABLE b2.plain_edges ADD CONSTRAINT liar CHECK (trap.shown() OR parent_turn_id IS NULL)",
        set: "SET trap.shown = off; SET constraint_exclusion = on",
    },
    Lie {
        name: "constraint_not_valid",
        made: "ALTER TABLE b2.plain_edges
                   ADD CONSTRAINT liar CHECK (trap.shown() OR parent_turn_id IS NULL) NOT VALID",
        set: "SET constraint_exclusion = on",
    },
    // The function of an expression may be called, but must not decide what is read.
    Lie {
        name: "expression",
        made: "CREATE INDEX liar ON b2.plain_edges (trap.shown(1), child_turn_id);
               CREATE INDEX liar2 ON b2.plain_edges (child_turn_id, trap.shown(parent_turn_id))",
        set: "SET trap.shown = on",
    },
    Lie {
        name: "statistics",
        made: "CREATE STATISTICS b2.liar ON (trap.shown(1)), (trap.shown(parent_turn_id)) FROM b2.plain_edges;
               ANALYZE b2.plain_edges",
        set: "SET trap.shown = on",
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
            assert!(error.message().contains("liar"), "{name}: names it: {error:?}");
            assert!(error.detail().is_some() && error.hint().is_some(), "{name}: {error:?}");
        }
    }
}

fn lie(lie: &Lie) {
    let mut world = World::new(&format!("indexes_{}", lie.name));
    let mut owner = world.owner();
    owner.batch_execute("SET search_path = pg_catalog, public").unwrap();
    owner.batch_execute(&format!("{FUNCTIONS} {PLAIN}")).unwrap();
    let bind = "SELECT graph_kernel.bind_tables('b2.plain_turns', 'b2.plain_edges')";
    world.admin().batch_execute(bind).unwrap();
    let export = crate::world::text(&mut world.owner(), SLICE);
    assert_eq!((turn_count(&export), status(&export).as_str()), (21, "attested"));

    // A session that knows the tables already, and new ones.
    let mut known = world.owner();
    crate::world::text(&mut known, SLICE);
    owner.batch_execute(lie.made).unwrap();
    known.batch_execute(lie.set).unwrap();
    check(&mut known, lie.name);
    for role in [OWNER, "attack_reader", "postgres"] {
        let mut client = world.connect(role);
        client.batch_execute(lie.set).unwrap();
        check(&mut client, lie.name);
        // The graph itself is as whole.
        let snapshot = "SELECT graph_snapshot()";
        let hashes = [lie.set, "RESET ALL"].map(|set| {
            client.batch_execute(set).unwrap();
            crate::world::attempt(&mut client, snapshot).answer(snapshot)
        });
        assert!(hashes[0].is_none() || hashes[0] == hashes[1], "{}: {hashes:?}", lie.name);
    }
    // Bound anew it is seen at once, or slices are whole.
    crate::world::attempt(&mut world.admin(), bind).answer(bind);
    world.assert_sound();
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
    let mut world = World::new("indexes_partition");
    let mut owner = world.owner();
    owner
        .batch_execute(&format!(
            "SET search_path = pg_catalog, public; {FUNCTIONS}
             INSERT INTO b2.turns (id) SELECT turn(n) FROM generate_series(11, 3000) AS n;
             INSERT INTO b2.edges SELECT turn(n), turn(n + 1), 'reply' FROM generate_series(10, 2999) AS n;
             ANALYZE b2.turns, b2.edges"
        ))
        .unwrap();
    let before = crate::world::text(&mut owner, SLICE);
    assert_eq!(turn_count(&before), 21);
    owner
        .batch_execute(
            "CREATE INDEX liar ON b2.edges_1 (child_turn_id) INCLUDE (parent_turn_id, edge_type) WHERE trap.shown(1);
             CREATE INDEX liar2 ON b2.edges_1 (parent_turn_id) INCLUDE (child_turn_id) WHERE trap.shown(1)",
        )
        .unwrap();
    let mut client = world.owner();
    client.batch_execute("SET trap.shown = on").unwrap();
    check(&mut client, "partition");
    world.assert_sound();
}
