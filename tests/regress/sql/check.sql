-- Promise: graph_check tells what is wrong with a graph, and each of its hints is a command that runs.
SELECT * FROM graph_check();

CREATE SCHEMA dirty;
CREATE TABLE dirty."Turns" (LIKE memory_turns);
CREATE TABLE dirty."Edges" (parent_turn_id uuid, child_turn_id uuid, edge_type text);
CREATE UNIQUE INDEX turn_id ON dirty."Turns" (id);
SELECT graph_kernel.bind_tables('dirty."Turns"', 'dirty."Edges"') IS NOT NULL AS bound;
DROP INDEX dirty.turn_id;
INSERT INTO dirty."Turns" SELECT * FROM memory_turns;
INSERT INTO dirty."Edges" SELECT * FROM memory_turn_edges;
-- Only indexes are missing in a clean graph; an empty graph is clean as well.
SELECT check_name, ok, count FROM graph_check() WHERE NOT ok;
BEGIN;
TRUNCATE dirty."Turns", dirty."Edges";
SELECT check_name, ok, count FROM graph_check() WHERE NOT ok;
ROLLBACK;
-- A mistake of each kind, one or more of each.
INSERT INTO dirty."Turns" SELECT * FROM memory_turns WHERE id = turn(5);                       -- 5 twice
INSERT INTO dirty."Turns" (id, role, trajectory_phase, salience_score, content_text, content_hash)
SELECT turn(n), role, phase, salience, 'turn ' || n, CASE WHEN n <> 15 THEN graph_content_hash('turn ' || n) END
FROM (VALUES (10, 'user', 'planning', 0.5), (11, 'USER', 'Planning', 0), (12, 'robot', 'inquiry', 1.5), (13, NULL, NULL, NULL),
             (14, '', '', 'NaN'), (15, 'tool', 'synthesis', 1), (16, 'user', 'planning', -0.5)) AS v (n, role, phase, salience);
UPDATE dirty."Turns" SET content_hash = upper(content_hash) WHERE id = turn(10);
UPDATE dirty."Turns" SET content_text = content_text || ' edited' WHERE id IN (turn(11), turn(12), turn(16));
INSERT INTO dirty."Edges" VALUES
    (turn(10), turn(11), 'REPLY'), (turn(11), turn(12), NULL), (turn(12), turn(13), ''), (turn(13), turn(14), 'odd'),
    (turn(14), turn(10), 'reply'),                                                              -- a cycle of five
    (turn(15), turn(15), 'reply'),                                                              -- a self-loop
    (turn(15), turn(99), 'reply'), (turn(98), turn(15), 'reply'), (NULL, turn(15), 'reply');    -- dangling
SELECT check_name, ok, count, detail FROM graph_check();
\a
\t
SELECT check_name, hint FROM graph_check() WHERE hint IS NOT NULL;
\a
\t
-- Each hint runs; those that change something leave their check in order. Duplicates are the owner's to choose from.
DELETE FROM dirty."Turns" AS t USING dirty."Turns" AS o WHERE t.id = o.id AND t.ctid > o.ctid;
SELECT slice_id(12) AS before \gset
CREATE TEMP TABLE done AS SELECT row_number() OVER () AS n, check_name, count, hint FROM graph_check() WHERE hint IS NOT NULL;
SELECT d.check_name, e.code, e.message FROM done AS d, test_error(d.hint) AS e ORDER BY d.n;
SELECT check_name, ok, count FROM graph_check() WHERE NOT ok;
-- Slices read the mended rows as they did before, saliences too.
SELECT slice_id(12) = :'before' AS same;
SELECT turn_number(id) AS turn, salience_score FROM dirty."Turns" WHERE id IN (turn(12), turn(13), turn(14), turn(16)) ORDER BY id;
-- What remains is for people: phases and roles to be named, stale content to be judged, cycles to be cut.
UPDATE dirty."Turns" SET role = 'user', trajectory_phase = 'exploration' WHERE id >= turn(12);
UPDATE dirty."Turns" SET content_hash = graph_content_hash(content_text);
DELETE FROM dirty."Edges" WHERE parent_turn_id = turn(14);
UPDATE dirty."Edges" SET edge_type = 'default' WHERE edge_type IS NULL OR edge_type IN ('', 'odd');
SELECT count(*), bool_and(ok) AS ok, count(hint) AS hints FROM graph_check();

-- The cycle count: turns on cycles and between them; long chains are none.
TRUNCATE dirty."Edges", dirty."Turns";
INSERT INTO dirty."Turns" (id) SELECT turn(n) FROM generate_series(1, 2000) AS n;
INSERT INTO dirty."Edges" SELECT turn(n), turn(n + 1), 'reply' FROM generate_series(1, 1999) AS n;
SELECT ok, count FROM graph_check() WHERE check_name = 'cycles';
INSERT INTO dirty."Edges" VALUES (turn(2000), turn(1), 'reply');
SELECT ok, count FROM graph_check() WHERE check_name = 'cycles';

SELECT graph_kernel.unbind_tables();
SET client_min_messages = warning;
DROP SCHEMA dirty CASCADE;

-- As a restore with --disable-triggers leaves it.
ALTER TABLE graph_kernel.revoked_keys DISABLE TRIGGER ALL;
ALTER TABLE graph_kernel.revoked_keys ENABLE TRIGGER ALL;
SELECT ok, count, hint FROM graph_check() WHERE check_name = 'announced_changes';
SELECT hint AS command FROM graph_check() WHERE check_name = 'announced_changes' \gset
:command
SELECT ok, count, hint FROM graph_check() WHERE check_name = 'announced_changes';
