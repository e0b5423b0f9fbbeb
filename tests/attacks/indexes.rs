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

/// The slice is whole, whatever the index says.
fn check(client: &mut Client, name: &str) {
    let export = crate::setup::text(client, SLICE);
    assert_eq!((turn_count(&export), status(&export).as_str()), (21, "attested"), "{name}");
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
    setup.admin().batch_execute(bind).unwrap();
    check(&mut setup.reader(), lie.name);
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

/// Indexes whose expression or predicate is another one, when a slice is planned, than it was when rows were written.
const FOLDED: [(&str, &str); 9] = [
    (
        "expression_settings",
        "SET extra_float_digits = -14;
         CREATE INDEX misleading ON b2.plain_edges \
         ((CASE WHEN (0.1234567::float8)::text = '0.1234567' THEN child_turn_id ELSE other END));
         CREATE INDEX misleading2 ON b2.plain_edges \
         ((CASE WHEN (0.1234567::float8)::text = '0.1234567' THEN parent_turn_id ELSE other END))",
    ),
    (
        "expression_function",
        "CREATE FUNCTION planted.is_so(int) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT false';
         GRANT EXECUTE ON FUNCTION planted.is_so TO PUBLIC;
         CREATE INDEX misleading ON b2.plain_edges ((CASE WHEN planted.is_so(1) THEN child_turn_id ELSE other END));
         CREATE INDEX misleading2 ON b2.plain_edges ((CASE WHEN planted.is_so(1) THEN parent_turn_id ELSE other END));
         CREATE OR REPLACE FUNCTION planted.is_so(int) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT true'",
    ),
    (
        "expression_inlined",
        "CREATE FUNCTION planted.same(uuid, uuid) RETURNS uuid LANGUAGE sql IMMUTABLE AS 'SELECT $2';
         GRANT EXECUTE ON FUNCTION planted.same TO PUBLIC;
         CREATE INDEX misleading ON b2.plain_edges (planted.same(child_turn_id, other));
         CREATE INDEX misleading2 ON b2.plain_edges (planted.same(parent_turn_id, other));
         CREATE OR REPLACE FUNCTION planted.same(uuid, uuid) RETURNS uuid LANGUAGE sql IMMUTABLE AS 'SELECT $1'",
    ),
    (
        "expression_configuration",
        "CREATE TEXT SEARCH CONFIGURATION planted.words (PARSER = pg_catalog.\"default\");
         CREATE INDEX misleading ON b2.plain_edges ((CASE WHEN to_tsvector('planted.words', 'dog') @@ 'dog'::tsquery \
         THEN child_turn_id ELSE other END));
         CREATE INDEX misleading2 ON b2.plain_edges ((CASE WHEN to_tsvector('planted.words', 'dog') @@ 'dog'::tsquery \
         THEN parent_turn_id ELSE other END));
         ALTER TEXT SEARCH CONFIGURATION planted.words ADD MAPPING FOR asciiword WITH pg_catalog.simple",
    ),
    (
        "configuration",
        "CREATE TEXT SEARCH CONFIGURATION planted.words (PARSER = pg_catalog.\"default\");
         CREATE INDEX misleading ON b2.plain_edges (child_turn_id, parent_turn_id, edge_type) \
         WHERE to_tsvector('planted.words', 'dog') @@ 'dog'::tsquery OR other IS NULL;
         CREATE INDEX misleading2 ON b2.plain_edges (parent_turn_id, child_turn_id, edge_type) \
         WHERE to_tsvector('planted.words', 'dog') @@ 'dog'::tsquery OR other IS NULL;
         ALTER TEXT SEARCH CONFIGURATION planted.words ADD MAPPING FOR asciiword WITH pg_catalog.simple",
    ),
    (
        "dictionary",
        "CREATE TEXT SEARCH DICTIONARY planted.words (TEMPLATE = pg_catalog.simple, Accept = false);
         CREATE INDEX misleading ON b2.plain_edges (child_turn_id, parent_turn_id, edge_type) \
         WHERE ts_lexize('planted.words', 'dog') IS NOT NULL OR other IS NULL;
         CREATE INDEX misleading2 ON b2.plain_edges (parent_turn_id, child_turn_id, edge_type) \
         WHERE ts_lexize('planted.words', 'dog') IS NOT NULL OR other IS NULL;
         ALTER TEXT SEARCH DICTIONARY planted.words (Accept)",
    ),
    (
        "encoding",
        "SET client_encoding = LATIN1;
         CREATE INDEX misleading ON b2.plain_edges (child_turn_id, parent_turn_id, edge_type) \
         WHERE unknownsend(U&'\\00e9'::unknown) = '\\xc3a9' OR other IS NULL;
         CREATE INDEX misleading2 ON b2.plain_edges (parent_turn_id, child_turn_id, edge_type) \
         WHERE unknownsend(U&'\\00e9'::unknown) = '\\xc3a9' OR other IS NULL;
         SET client_encoding = UTF8",
    ),
    (
        "dropped_attribute",
        "CREATE TYPE planted.pair AS (a int4, b int4);
         CREATE INDEX misleading ON b2.plain_edges (child_turn_id, parent_turn_id, edge_type) \
         WHERE '(1,2)'::planted.pair = '(1,3)'::planted.pair OR other IS NULL;
         CREATE INDEX misleading2 ON b2.plain_edges (parent_turn_id, child_turn_id, edge_type) \
         WHERE '(1,2)'::planted.pair = '(1,3)'::planted.pair OR other IS NULL;
         ALTER TYPE planted.pair DROP ATTRIBUTE b",
    ),
    (
        "hash_partition",
        "CREATE TABLE planted.parted (n int) PARTITION BY HASH (n);
         DO $do$ BEGIN EXECUTE format('CREATE INDEX misleading ON b2.plain_edges (child_turn_id, parent_turn_id, \
         edge_type) WHERE satisfies_hash_partition(%s::oid, 2, 1, 1) OR other IS NULL', \
         'planted.parted'::regclass::oid); END $do$",
    ),
];

#[test]
fn no_index_that_folds_to_another_one_decides_what_is_read() {
    for (name, made) in FOLDED {
        let mut setup = Setup::new(&format!("indexes_folded_{name}"));
        let mut owner = setup.owner();
        owner
            .batch_execute(&format!(
                "SET search_path = pg_catalog, public; {PLAIN}
                 ALTER TABLE b2.plain_edges ADD COLUMN other uuid DEFAULT gen_random_uuid(); ANALYZE b2.plain_edges"
            ))
            .unwrap();
        let bind = "SELECT graph_kernel.bind_tables('b2.plain_turns', 'b2.plain_edges')";
        setup.admin().batch_execute(bind).unwrap();
        let mut known = setup.reader();
        let export = crate::setup::text(&mut known, SLICE);
        let whole = (turn_count(&export), edge_count(&export));
        assert_eq!(whole, (21, 20), "{name}");
        owner
            .batch_execute(&format!(
                "DROP INDEX IF EXISTS b2.plain_edges_child_turn_id_idx; {made}; RESET extra_float_digits; \
                ANALYZE b2.plain_edges"
            ))
            .unwrap();
        for client in [&mut known, &mut setup.reader(), &mut setup.admin()] {
            let export = crate::setup::text(client, SLICE);
            assert_eq!((turn_count(&export), edge_count(&export)), whole, "{name}");
        }
        setup.assert_sound();
    }
}

/// Those of full-text search, of vectors, and of the server's own functions.
#[test]
fn indexes_on_expressions_that_no_slice_seeks_by_stay_allowed() {
    let setup = Setup::new("indexes_allowed");
    let mut admin = setup.admin();
    admin
        .batch_execute(&format!(
            "SET search_path = pg_catalog, public; {PLAIN}
             ALTER TABLE b2.plain_edges ADD COLUMN body text;
             CREATE FUNCTION planted.cleaned(text) RETURNS text LANGUAGE sql IMMUTABLE AS 'SELECT lower($1)';
             CREATE TEXT SEARCH CONFIGURATION planted.words (COPY = pg_catalog.english);
             CREATE INDEX ON b2.plain_edges USING gin (to_tsvector('planted.words', planted.cleaned(body)));
             CREATE INDEX ON b2.plain_edges USING gin (to_tsvector('english', body));
             CREATE INDEX ON b2.plain_edges (lower(edge_type), child_turn_id);
             CREATE INDEX ON b2.plain_edges (child_turn_id) WHERE to_tsvector('english', body) @@ 'dog'::tsquery;
             SELECT graph_kernel.bind_tables('b2.plain_turns', 'b2.plain_edges')"
        ))
        .unwrap();
    assert_eq!(turn_count(&crate::setup::text(&mut setup.reader(), SLICE)), 21);
    admin
        .batch_execute(
            "CREATE EXTENSION vector; ALTER TABLE b2.plain_turns ADD COLUMN v vector;
             CREATE INDEX ON b2.plain_turns USING hnsw ((v::vector(3)) vector_l2_ops);
             CREATE INDEX ON b2.plain_turns USING hnsw ((binary_quantize(v)::bit(3)) bit_hamming_ops)",
        )
        .unwrap();
    assert_eq!(turn_count(&crate::setup::text(&mut setup.reader(), SLICE)), 21);
}

/// The server believes a CHECK constraint when a partition is attached, and folds the key when it reads it.
#[test]
fn no_bound_of_a_partition_decides_what_is_read() {
    let attached = "
        CREATE FUNCTION planted.is_so(int) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT true';
        CREATE TABLE b2.parted (LIKE b2.plain_edges) PARTITION BY RANGE (parent_turn_id);
        CREATE TABLE b2.parted_1 PARTITION OF b2.parted \
        FOR VALUES FROM (MINVALUE) TO ('80000000-0000-0000-0000-000000000000');
        CREATE TABLE b2.parted_2 (LIKE b2.plain_edges, CONSTRAINT believed \
        CHECK (planted.is_so(1) OR parent_turn_id >= '80000000-0000-0000-0000-000000000000'));
        ALTER TABLE b2.parted_2 ALTER parent_turn_id SET NOT NULL;
        INSERT INTO b2.parted_2 SELECT * FROM b2.plain_edges;
        CREATE OR REPLACE FUNCTION planted.is_so(int) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT false';
        ALTER TABLE b2.parted ATTACH PARTITION b2.parted_2 \
        FOR VALUES FROM ('80000000-0000-0000-0000-000000000000') TO (MAXVALUE);
        ALTER TABLE b2.parted_2 DROP CONSTRAINT believed";
    let folded = "
        CREATE FUNCTION planted.is_so(int) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT false';
        GRANT EXECUTE ON FUNCTION planted.is_so TO PUBLIC;
        CREATE TABLE b2.parted (LIKE b2.plain_edges, \
        other uuid DEFAULT 'f0000000-0000-0000-0000-000000000001') \
        PARTITION BY RANGE ((CASE WHEN planted.is_so(1) THEN parent_turn_id ELSE other END));
        CREATE TABLE b2.parted_1 PARTITION OF b2.parted \
        FOR VALUES FROM (MINVALUE) TO ('80000000-0000-0000-0000-000000000000');
        CREATE TABLE b2.parted_2 PARTITION OF b2.parted \
        FOR VALUES FROM ('80000000-0000-0000-0000-000000000000') TO (MAXVALUE);
        INSERT INTO b2.parted SELECT * FROM b2.plain_edges;
        CREATE OR REPLACE FUNCTION planted.is_so(int) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT true'";
    // What the bounds of a table above say of a partition with a default one.
    let default = "
        CREATE FUNCTION planted.is_there(uuid) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT $1 IS NOT NULL';
        GRANT EXECUTE ON FUNCTION planted.is_there TO PUBLIC;
        CREATE TABLE b2.parted (parent_turn_id uuid, child_turn_id uuid, edge_type text) \
        PARTITION BY LIST (parent_turn_id);
        CREATE TABLE b2.parted_1 (parent_turn_id uuid, child_turn_id uuid, edge_type text) \
        PARTITION BY LIST (edge_type);
        CREATE TABLE b2.parted_2 PARTITION OF b2.parted_1 DEFAULT;
        INSERT INTO b2.parted_1 SELECT parent_turn_id, child_turn_id, edge_type FROM b2.plain_edges;
        ALTER TABLE b2.parted_1 ADD CHECK (planted.is_there(parent_turn_id));
        CREATE OR REPLACE FUNCTION planted.is_there(uuid) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT $1 IS NULL';
        ALTER TABLE b2.parted ATTACH PARTITION b2.parted_1 FOR VALUES IN (NULL)";
    for (name, made) in [("attached", attached), ("folded", folded), ("default", default)] {
        let mut setup = Setup::new(&format!("indexes_parted_{name}"));
        let mut owner = setup.owner();
        owner
            .batch_execute(&format!(
                "SET search_path = pg_catalog, public; {PLAIN}
                 INSERT INTO b2.plain_edges
                 SELECT turn(500), turn(n), 'reply' FROM generate_series(1000, 1149) AS n;
                 {made};
                 CREATE INDEX ON b2.parted (child_turn_id, parent_turn_id);
                 CREATE INDEX ON b2.parted (parent_turn_id, child_turn_id);
                 GRANT SELECT ON b2.parted TO PUBLIC; ANALYZE b2.parted"
            ))
            .unwrap();
        let bind = "SELECT graph_kernel.bind_tables('b2.plain_turns', 'b2.plain_edges')";
        setup.admin().batch_execute(bind).unwrap();
        let whole = edge_count(&crate::setup::text(&mut setup.reader(), SLICE));
        assert!(whole > 150, "{whole} edges");
        let bind = "SELECT graph_kernel.bind_tables('b2.plain_turns', 'b2.parted')";
        setup.admin().batch_execute(bind).unwrap();
        for set in [
            "",
            "SET enable_partition_pruning = on; SET constraint_exclusion = on",
            "SET enable_partitionwise_join = on; SET enable_partitionwise_aggregate = on",
        ] {
            let mut client = setup.reader();
            client.batch_execute(set).unwrap();
            let export = crate::setup::text(&mut client, SLICE);
            assert_eq!(edge_count(&export), whole, "{name}: {set}");
            assert_eq!(crate::setup::text(&mut client, "SHOW enable_partition_pruning"), "on");
        }
        setup.assert_sound();
    }
}

/// Partitions of ranges follow one another, as their bounds say; what is in them says something else.
#[test]
fn no_order_of_partitions_decides_what_is_the_row_before() {
    let mut setup = Setup::new("indexes_ordered");
    let mut owner = setup.owner();
    owner
        .batch_execute(
            "SET search_path = pg_catalog, public;
             CREATE TABLE b2.log (id uuid NOT NULL, session_id text, n int NOT NULL);
             INSERT INTO b2.log SELECT turn(n), 's', n FROM generate_series(1, 2000) AS n;
             CREATE FUNCTION planted.is_so(int) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT true';
             CREATE TABLE b2.parted (LIKE b2.log) PARTITION BY RANGE (session_id);
             CREATE TABLE b2.parted_1 PARTITION OF b2.parted FOR VALUES FROM (MINVALUE) TO ('t');
             CREATE TABLE b2.parted_2 (LIKE b2.log, CONSTRAINT believed CHECK (planted.is_so(1) OR session_id >= 't'));
             ALTER TABLE b2.parted_2 ALTER session_id SET NOT NULL;
             INSERT INTO b2.parted_1 SELECT * FROM b2.log WHERE n % 2 = 0;
             INSERT INTO b2.parted_2 SELECT * FROM b2.log WHERE n % 2 = 1;
             CREATE OR REPLACE FUNCTION planted.is_so(int) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT false';
             ALTER TABLE b2.parted ATTACH PARTITION b2.parted_2 FOR VALUES FROM ('t') TO (MAXVALUE);
             ALTER TABLE b2.parted_2 DROP CONSTRAINT believed;
             CREATE UNIQUE INDEX ON b2.log (id); CREATE INDEX ON b2.log (session_id, n);
             CREATE UNIQUE INDEX ON b2.parted (id, session_id); CREATE INDEX ON b2.parted (session_id, n);
             GRANT SELECT ON b2.log, b2.parted TO PUBLIC; ANALYZE b2.log, b2.parted",
        )
        .unwrap();
    let columns = r#"{"turns": {"follows": {"session": "session_id", "order": ["n"], "edge_type": "reply"}}}"#;
    let exports = ["b2.log", "b2.parted"].map(|table| {
        let bind = format!("SELECT graph_kernel.bind_tables('{table}', columns => '{columns}')");
        setup.admin().batch_execute(&bind).unwrap();
        let export = crate::setup::text(&mut setup.reader(), SLICE);
        let edges = serde_json::from_str::<serde_json::Value>(&export).unwrap()["edges"].clone();
        (turn_count(&export), edges)
    });
    assert_eq!(exports[0].0, 21);
    assert_eq!(exports[0], exports[1]);
    setup.assert_sound();
}

fn edge_count(export: &str) -> usize {
    export.matches("\"edge_type\"").count()
}

/// The owner of a table makes an index over rows whose older versions have other keys. The server uses it for snapshots
/// alone that do not see these, and looks at the snapshot when it plans.
#[test]
fn no_index_that_is_too_new_for_an_imported_snapshot_is_used() {
    let setup = Setup::new("indexes_snapshot");
    let mut owner = setup.owner();
    owner
        .batch_execute(
            "CREATE TABLE b2.late_turns (LIKE b2.turns INCLUDING ALL);
             INSERT INTO b2.late_turns (id, session_id) SELECT turn(n), 's' FROM generate_series(1, 20) AS n;
             CREATE TABLE b2.late_edges (parent_turn_id uuid, child_turn_id uuid, edge_type text);
             INSERT INTO b2.late_edges SELECT turn(n), turn(n + 1), 'reply' FROM generate_series(1, 9) AS n;
             GRANT SELECT ON b2.late_turns, b2.late_edges TO PUBLIC",
        )
        .unwrap();
    let bind = "SELECT graph_kernel.bind_tables('b2.late_turns', 'b2.late_edges')";
    setup.admin().batch_execute(bind).unwrap();
    let slice = "SELECT graph_slice(turn(1))::text";
    let mut before = setup.reader();
    before.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ").unwrap();
    let snapshot = crate::setup::text(&mut before, "SELECT pg_export_snapshot()");
    let whole = crate::setup::text(&mut before, slice);
    assert_eq!(turn_count(&whole), 10);
    owner
        .batch_execute(
            "BEGIN; UPDATE b2.late_edges SET parent_turn_id = turn(20) WHERE child_turn_id = turn(3);
             DELETE FROM b2.late_edges WHERE child_turn_id = turn(2); COMMIT",
        )
        .unwrap();
    owner
        .batch_execute(
            "CREATE INDEX ON b2.late_edges (parent_turn_id, child_turn_id, edge_type);
             CREATE INDEX ON b2.late_edges (child_turn_id, parent_turn_id, edge_type)",
        )
        .unwrap();
    let mut later = setup.reader();
    // Over so few rows the server would read the whole table.
    later.batch_execute("SET enable_seqscan = off").unwrap();
    for _ in 0..2 {
        assert_eq!(turn_count(&crate::setup::text(&mut later, slice)), 1);
        later
            .batch_execute(&format!(
                "BEGIN ISOLATION LEVEL REPEATABLE READ; SET TRANSACTION SNAPSHOT '{snapshot}'"
            ))
            .unwrap();
        assert_eq!(turn_count(&crate::setup::text(&mut later, slice)), 10);
        later.batch_execute("COMMIT").unwrap();
    }
}

/// The comparison of an extension's type may be no order. From 18 on the server skips from one value of a leading key
/// to the next.
#[test]
fn no_leading_key_of_an_extensions_type_hides_rows() {
    let setup = Setup::new("indexes_cube");
    if let Err(error) = setup.admin().batch_execute("CREATE EXTENSION cube") {
        crate::common::tell(&format!("SKIPPED: attacks: no cube: {error}"));
        return;
    }
    setup
        .owner()
        .batch_execute(
            "CREATE TABLE b2.cube_turns (LIKE b2.turns INCLUDING ALL);
             INSERT INTO b2.cube_turns (id, session_id) SELECT turn(n), 's' FROM generate_series(1, 6) AS n;
             CREATE TABLE b2.cube_edges (parent_turn_id uuid, child_turn_id uuid, edge_type text, c cube);
             CREATE INDEX ON b2.cube_edges (c, parent_turn_id, child_turn_id, edge_type);
             CREATE INDEX ON b2.cube_edges (c, child_turn_id, parent_turn_id, edge_type);
             INSERT INTO b2.cube_edges SELECT turn(0), turn(0), 'reply', cube('NaN'::float8);
             INSERT INTO b2.cube_edges
             SELECT turn(n), turn(n + 1), 'reply', cube(CASE WHEN n IN (3, 4) THEN 2 ELSE 1 END)
               FROM unnest(ARRAY[1, 2, 5, 3, 4]) AS n;
             GRANT SELECT ON b2.cube_turns, b2.cube_edges TO PUBLIC",
        )
        .unwrap();
    let bind = "SELECT graph_kernel.bind_tables('b2.cube_turns', 'b2.cube_edges')";
    setup.admin().batch_execute(bind).unwrap();
    let export = crate::setup::text(&mut setup.reader(), "SELECT graph_slice(turn(1))::text");
    assert_eq!((turn_count(&export), edge_count(&export)), (6, 5));
}

/// What is computed of constants may be another value with the next version of the server, or of a library.
#[test]
fn no_index_with_a_computed_constant_is_used() {
    let setup = Setup::new("indexes_computed");
    let mut owner = setup.owner();
    owner.batch_execute(&format!("SET search_path = pg_catalog, public; {PLAIN}")).unwrap();
    let bind = "SELECT graph_kernel.bind_tables('b2.plain_turns', 'b2.plain_edges')";
    setup.admin().batch_execute(bind).unwrap();
    for (predicate, is_used) in [
        ("edge_type IN ('reply', 'branch') OR parent_turn_id IS NOT NULL", true),
        ("edge_type = 'x'::varchar OR parent_turn_id IS NOT NULL", true),
        ("parent_turn_id IS NOT NULL AND '1-1' < '11'", false),
        ("parent_turn_id IS NOT NULL AND lower('X') = 'x'", false),
        ("CASE 'x' WHEN 'x' THEN parent_turn_id IS NOT NULL END", false),
    ] {
        owner
            .batch_execute(&format!(
                "DROP INDEX IF EXISTS b2.computed;
                 ALTER TABLE b2.plain_edges DROP CONSTRAINT IF EXISTS plain_edges_pkey;
                 CREATE INDEX computed ON b2.plain_edges (parent_turn_id, child_turn_id, edge_type)
                     WHERE {predicate};
                 ANALYZE b2.plain_edges"
            ))
            .unwrap();
        let mut reader = setup.reader();
        check(&mut reader, predicate);
        drop(reader);
        let scans = "SELECT pg_stat_clear_snapshot(), idx_scan > 0 FROM pg_stat_user_indexes \
                     WHERE indexrelname = 'computed'";
        let mut admin = setup.admin();
        // Counts are reported at a session's end.
        for _ in 0..20 {
            std::thread::sleep(std::time::Duration::from_millis(50));
            let row = admin.query_one(scans, &[]).unwrap();
            if row.get::<_, bool>(1) {
                break;
            }
        }
        let row = admin.query_one(scans, &[]).unwrap();
        assert_eq!(row.get::<_, bool>(1), is_used, "{predicate}");
    }
}

/// Whoever makes an index CONCURRENTLY waits for older snapshots, once: not for one that is imported then.
#[test]
fn no_index_that_was_made_concurrently_is_used_for_an_older_snapshot() {
    let setup = Setup::new("indexes_concurrently");
    let mut owner = setup.owner();
    owner
        .batch_execute(
            "CREATE TABLE b2.late_turns (LIKE b2.turns INCLUDING ALL);
             INSERT INTO b2.late_turns (id, session_id) SELECT turn(n), 's' FROM generate_series(1, 20) AS n;
             CREATE TABLE b2.late_edges (parent_turn_id uuid, child_turn_id uuid, edge_type text);
             INSERT INTO b2.late_edges SELECT turn(n), turn(n + 1), 'reply' FROM generate_series(1, 9) AS n;
             GRANT SELECT ON b2.late_turns, b2.late_edges TO PUBLIC",
        )
        .unwrap();
    let bind = "SELECT graph_kernel.bind_tables('b2.late_turns', 'b2.late_edges')";
    setup.admin().batch_execute(bind).unwrap();
    let slice = "SELECT graph_slice(turn(1))::text";
    // Anybody's transaction holds back what is known to be over.
    let mut idle = setup.reader();
    idle.batch_execute("BEGIN; SELECT pg_current_xact_id()").unwrap();
    for made in [
        "CREATE INDEX CONCURRENTLY late ON b2.late_edges (parent_turn_id, child_turn_id, edge_type)",
        "REINDEX INDEX CONCURRENTLY b2.late",
    ] {
        let mut waited_for = setup.reader();
        waited_for.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ").unwrap();
        let snapshot = crate::setup::text(&mut waited_for, "SELECT pg_export_snapshot()");
        let whole = turn_count(&crate::setup::text(&mut waited_for, slice));
        owner
            .batch_execute(
                "DELETE FROM b2.late_edges WHERE child_turn_id =
                     (SELECT child_turn_id FROM b2.late_edges ORDER BY 1 DESC LIMIT 1)",
            )
            .unwrap();
        let mut maker = setup.owner();
        let pid = crate::common::process::backend_pid(&mut maker);
        let making = std::thread::spawn(move || maker.batch_execute(made).unwrap());
        let waits = "SELECT EXISTS (SELECT FROM pg_locks WHERE pid = $1 AND NOT granted)";
        while !setup.admin().query_one(waits, &[&pid]).unwrap().get::<_, bool>(0) {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        let mut importer = setup.reader();
        // Plans are known, and were used more than once.
        for _ in 0..3 {
            crate::setup::text(&mut importer, slice);
        }
        importer
            .batch_execute(&format!(
                "BEGIN ISOLATION LEVEL REPEATABLE READ; SET TRANSACTION SNAPSHOT '{snapshot}'"
            ))
            .unwrap();
        assert_eq!(turn_count(&crate::setup::text(&mut importer, slice)), whole, "{made}");
        waited_for.batch_execute("COMMIT").unwrap();
        // It may wait for the importer as well, and then no index is there yet.
        for _ in 0..20 {
            assert_eq!(turn_count(&crate::setup::text(&mut importer, slice)), whole, "{made}");
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        // A session whose plans use the index imports the snapshot of before it.
        let give_up = std::time::Instant::now() + std::time::Duration::from_secs(5);
        while !making.is_finished() && std::time::Instant::now() < give_up {
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        let again = crate::setup::text(&mut importer, "SELECT pg_export_snapshot()");
        let mut planned = setup.reader();
        for _ in 0..3 {
            for _ in 0..3 {
                assert_eq!(
                    turn_count(&crate::setup::text(&mut planned, slice)),
                    whole - 1,
                    "{made}"
                );
            }
            planned
                .batch_execute(&format!(
                    "BEGIN ISOLATION LEVEL REPEATABLE READ; SET TRANSACTION SNAPSHOT '{again}'"
                ))
                .unwrap();
            for _ in 0..3 {
                assert_eq!(turn_count(&crate::setup::text(&mut planned, slice)), whole, "{made}");
            }
            planned.batch_execute("COMMIT").unwrap();
        }
        importer.batch_execute("COMMIT").unwrap();
        making.join().unwrap();
        assert_eq!(turn_count(&crate::setup::text(&mut importer, slice)), whole - 1, "{made}");
    }
}

/// Any role can leave a transaction open, in any database.
#[test]
fn no_old_transaction_of_others_keeps_an_index_from_being_used() {
    let setup = Setup::new("indexes_old_transaction");
    let mut owner = setup.owner();
    owner.batch_execute(&format!("SET search_path = pg_catalog, public; {PLAIN}")).unwrap();
    let bind = "SELECT graph_kernel.bind_tables('b2.plain_turns', 'b2.plain_edges')";
    setup.admin().batch_execute(bind).unwrap();
    let mut idle = setup.reader();
    idle.batch_execute("BEGIN; SELECT pg_current_xact_id()").unwrap();
    owner.batch_execute("REINDEX TABLE b2.plain_edges; REINDEX TABLE b2.plain_turns").unwrap();
    let scans = "SELECT pg_stat_clear_snapshot(), sum(seq_scan)::text FROM pg_stat_user_tables
                 WHERE relname IN ('plain_edges', 'plain_turns')";
    let count = |setup: &Setup| {
        // Counts are reported at a session's end.
        std::thread::sleep(std::time::Duration::from_millis(500));
        setup.admin().query_one(scans, &[]).unwrap().get::<_, String>(1)
    };
    let before = count(&setup);
    for _ in 0..2 {
        check(&mut setup.reader(), "after REINDEX");
    }
    assert_eq!(count(&setup), before);
    idle.batch_execute("COMMIT").unwrap();
}
