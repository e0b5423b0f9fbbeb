-- Promise: partitioned tables slice as plain ones do; every leaf must be a permanent plain table, and an id stored twice is an error.
SET client_min_messages = warning; -- no notices of missing indexes
CREATE SCHEMA part;
CREATE TABLE part.turns (LIKE memory_turns) PARTITION BY HASH (id);
CREATE TABLE part.turns_0 PARTITION OF part.turns FOR VALUES WITH (MODULUS 3, REMAINDER 0);
CREATE TABLE part.turns_1 PARTITION OF part.turns FOR VALUES WITH (MODULUS 3, REMAINDER 1);
CREATE TABLE part.turns_2 PARTITION OF part.turns FOR VALUES WITH (MODULUS 3, REMAINDER 2) PARTITION BY HASH (id);
CREATE TABLE part.turns_2_0 PARTITION OF part.turns_2 FOR VALUES WITH (MODULUS 1, REMAINDER 0);
CREATE TABLE part.edges (LIKE memory_turn_edges) PARTITION BY LIST (edge_type);
CREATE TABLE part.edges_reply PARTITION OF part.edges FOR VALUES IN ('reply');
CREATE TABLE part.edges_other PARTITION OF part.edges FOR VALUES IN ('branch', 'reference');
INSERT INTO part.turns SELECT * FROM memory_turns;
INSERT INTO part.edges SELECT * FROM memory_turn_edges;
-- The unique index must reach every partition.
SELECT code, message, hint FROM test_error($$SELECT graph_kernel.bind_tables('part.turns', 'part.edges')$$);
CREATE UNIQUE INDEX ON ONLY part.turns (id);
SELECT code FROM test_error($$SELECT graph_kernel.bind_tables('part.turns', 'part.edges')$$);
CREATE UNIQUE INDEX ON part.turns (id);
CREATE INDEX ON part.edges (parent_turn_id);
CREATE INDEX ON part.edges (child_turn_id);
SELECT graph_kernel.bind_tables('part.turns', 'part.edges') IS NOT NULL AS bound;
SELECT anchor, slice_id(anchor) = public_id AS same FROM (VALUES (2, '8d6980384910121d'), (4, '12e69f2c3b2b5252')) AS v (anchor, public_id);
SELECT check_name, ok, count FROM graph_check() WHERE NOT ok OR check_name LIKE 'index%';

-- A leaf that loses what binding asked for, however deep, is refused when slicing, and graph_check names it.
CREATE UNLOGGED TABLE part.unlogged (LIKE part.edges);
ALTER TABLE part.edges ATTACH PARTITION part.unlogged FOR VALUES IN ('default');
SELECT * FROM test_error('SELECT slice_id(2)');
SELECT check_name, ok, detail, hint FROM graph_check();
ALTER TABLE part.unlogged SET LOGGED;
SELECT slice_id(2);
ALTER TABLE part.turns_2_0 SET UNLOGGED;
SELECT code, message FROM test_error('SELECT slice_id(2)');
SELECT code, message FROM test_error($$SELECT graph_kernel.bind_tables('part.turns', 'part.edges')$$);
ALTER TABLE part.turns_2_0 SET LOGGED;
SELECT slice_id(2);
CREATE FOREIGN DATA WRAPPER regress_wrapper;
CREATE SERVER regress_server FOREIGN DATA WRAPPER regress_wrapper;
CREATE FOREIGN TABLE part.away PARTITION OF part.edges DEFAULT SERVER regress_server;
SELECT code, message FROM test_error('SELECT slice_id(2)');
ALTER TABLE part.edges DETACH PARTITION part.away;
SELECT slice_id(2);
-- Rows of a partition come and go with it.
ALTER TABLE part.edges DETACH PARTITION part.edges_other;
SELECT edges FROM test_slice(2);
ALTER TABLE part.edges ATTACH PARTITION part.edges_other FOR VALUES IN ('branch', 'reference');
SELECT slice_id(2);

-- By ids: which leaves have the turns is another question for each batch of a slice.
CREATE TABLE part.by_id (LIKE memory_turns) PARTITION BY RANGE (id);
CREATE TABLE part.by_child (LIKE memory_turn_edges) PARTITION BY RANGE (child_turn_id);
SELECT format('CREATE TABLE part.id_%1$s PARTITION OF part.by_id FOR VALUES FROM (%2$L) TO (%3$L)', n, turn(n), turn(n + 1)),
       format('CREATE TABLE part.child_%1$s PARTITION OF part.by_child FOR VALUES FROM (%2$L) TO (%3$L)', n, turn(n), turn(n + 1))
FROM generate_series(1, 5) AS n \gexec
CREATE TABLE part.child_x PARTITION OF part.by_child DEFAULT;
CREATE UNIQUE INDEX ON part.by_id (id);
CREATE INDEX ON part.by_child (parent_turn_id);
CREATE INDEX ON part.by_child (child_turn_id);
INSERT INTO part.by_id SELECT * FROM memory_turns;
INSERT INTO part.by_child SELECT * FROM memory_turn_edges;
SELECT graph_kernel.bind_tables('part.by_id', 'part.by_child') IS NOT NULL AS bound;
SELECT n AS anchor, slice_id(n) FROM generate_series(1, 5) AS n;

-- So it is where a policy's subquery decides as well.
CREATE TABLE part.by_tenant (tenant int DEFAULT 1, LIKE memory_turn_edges) PARTITION BY RANGE (tenant, child_turn_id);
SELECT format('CREATE TABLE part.tenant_%1$s PARTITION OF part.by_tenant FOR VALUES FROM (1, %2$L) TO (1, %3$L)', n, turn(n), turn(n + 1))
FROM generate_series(1, 5) AS n \gexec
CREATE INDEX ON part.by_tenant (parent_turn_id);
CREATE INDEX ON part.by_tenant (child_turn_id);
INSERT INTO part.by_tenant (parent_turn_id, child_turn_id, edge_type)
    SELECT parent_turn_id, child_turn_id, edge_type FROM memory_turn_edges;
CREATE TABLE part.tenants AS SELECT 1 AS tenant;
CREATE ROLE regress_tenant;
GRANT USAGE ON SCHEMA part TO regress_tenant;
GRANT SELECT ON part.by_id, part.by_tenant, part.tenants TO regress_tenant;
ALTER TABLE part.by_tenant ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant ON part.by_tenant TO regress_tenant USING (tenant = (SELECT t.tenant FROM part.tenants AS t));
SELECT graph_kernel.bind_tables('part.by_id', 'part.by_tenant') IS NOT NULL AS bound;
SET ROLE regress_tenant;
SELECT n AS anchor, slice_id(n) FROM generate_series(1, 5) AS n;
RESET ROLE;

-- By session: the index holds id and session, so one id may be stored twice. Read by a slice, it is 21000.
CREATE TABLE part.by_session (LIKE memory_turns) PARTITION BY LIST (session_id);
CREATE TABLE part.session_1 PARTITION OF part.by_session FOR VALUES IN ('11111111-1111-1111-1111-111111111111');
CREATE TABLE part.session_x PARTITION OF part.by_session DEFAULT;
CREATE UNIQUE INDEX ON part.by_session (id, session_id);
INSERT INTO part.by_session SELECT * FROM memory_turns;
SELECT graph_kernel.bind_tables('part.by_session', 'part.edges') IS NOT NULL AS bound;
SELECT slice_id(2);
INSERT INTO part.by_session (id, session_id, trajectory_phase, salience_score) VALUES (turn(4), 'x', 'synthesis', 1);
SELECT anchor, policy, e.* FROM (VALUES (4, 'default'), (2, 'default'), (3, 'default'), (2, '{"max_nodes": 1}'), (5, '{"max_radius": 0}')) AS v (anchor, policy),
    test_error(format('SELECT graph_slice(turn(%s), %L)', anchor, policy)) AS e;
SELECT turn_number(anchor_turn_id) AS anchor, error_code, error FROM graph_slices(ARRAY[turn(2), turn(4)]);
SELECT check_name, count, hint FROM graph_check() WHERE check_name = 'duplicate_turns';
-- Rows that are the same in all that scores are found as well.
DELETE FROM part.by_session WHERE session_id = 'x';
INSERT INTO part.by_session SELECT id, 'x', role, trajectory_phase, salience_score FROM memory_turns WHERE id = turn(4);
SELECT anchor, e.code, e.message FROM unnest(ARRAY[2, 3, 4]) AS anchor, test_error(format('SELECT graph_slice(turn(%s))', anchor)) AS e;
DELETE FROM part.by_session WHERE session_id = 'x';
SELECT slice_id(2);

-- A leaf may be bound by itself, with a unique index of its own; inheritance children of a plain table are not read.
CREATE UNIQUE INDEX ON part.session_1 (id);
SELECT graph_kernel.bind_tables('part.session_1', 'part.edges') IS NOT NULL AS bound;
SELECT slice_id(2);
CREATE TABLE part.parent (LIKE memory_turns INCLUDING INDEXES);
CREATE TABLE part.parent_edges (LIKE memory_turn_edges);
CREATE TABLE part.child () INHERITS (part.parent);
CREATE TABLE part.child_edges () INHERITS (part.parent_edges);
INSERT INTO part.parent SELECT * FROM memory_turns WHERE id <= turn(2);
INSERT INTO part.child SELECT * FROM memory_turns;
INSERT INTO part.parent_edges VALUES (turn(1), turn(2), 'reply');
INSERT INTO part.child_edges SELECT * FROM memory_turn_edges;
SELECT graph_kernel.bind_tables('part.parent', 'part.parent_edges') IS NOT NULL AS bound;
SELECT selected, edges FROM test_slice(2);
SELECT code, message FROM test_error('SELECT slice_id(3)');
SELECT check_name, ok, count FROM graph_check() WHERE check_name IN ('duplicate_turns', 'dangling_edges');

SELECT graph_kernel.unbind_tables();
SET client_min_messages = warning;
DROP SCHEMA part CASCADE;
DROP FOREIGN DATA WRAPPER regress_wrapper CASCADE;
DROP ROLE regress_tenant;
