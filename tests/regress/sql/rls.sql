-- Promise: a slice is what its caller may see, and a hidden anchor cannot be distinguished from a missing one.
CREATE ROLE regress_alice;
CREATE ROLE regress_bob;
CREATE ROLE regress_nobody;
CREATE SCHEMA seen;
GRANT USAGE ON SCHEMA seen TO regress_alice, regress_bob, regress_nobody;
SELECT graph_kernel.create_tables('seen');
INSERT INTO seen.memory_turns SELECT * FROM memory_turns;
INSERT INTO seen.memory_turn_edges SELECT * FROM memory_turn_edges;
SELECT graph_kernel.bind_tables('seen.memory_turns', 'seen.memory_turn_edges') IS NOT NULL AS bound;
GRANT SELECT ON seen.memory_turns, seen.memory_turn_edges TO regress_alice, regress_bob;
GRANT DELETE ON seen.memory_turn_edges TO regress_bob;
-- A batch that streams goes on with the rights of who fetches; it slices some ahead.
BEGIN;
DECLARE c CURSOR FOR SELECT graph_slices(array_fill(turn(2), ARRAY[7]));
MOVE 3 FROM c;
SET LOCAL ROLE regress_nobody;
FETCH c;
ROLLBACK;
-- Alice sees everything, Bob only what assistants said and turn 1.
ALTER TABLE seen.memory_turns ENABLE ROW LEVEL SECURITY;
CREATE POLICY alice ON seen.memory_turns TO regress_alice USING (true);
CREATE POLICY bob ON seen.memory_turns TO regress_bob USING (role = 'assistant' OR id = public.turn(1));
PREPARE slice AS SELECT selected, edges, slice_id FROM test_slice(2);
EXECUTE slice;
SET ROLE regress_alice;
EXECUTE slice;
SET ROLE regress_bob;
EXECUTE slice;
-- Bob's siblings of 5 are none: 3 and 4 are hidden, and so are edges to them.
SELECT * FROM test_slice(5);
-- Hidden and missing read the same.
SELECT * FROM test_error('SELECT graph_slice(turn(3))');
SELECT * FROM test_error('SELECT graph_slice(turn(77))');
SELECT turn_number(anchor_turn_id) AS anchor, slice ->> 'slice_id' AS slice_id, error_code, error FROM graph_slices(ARRAY[turn(2), turn(3), turn(77)]);
-- What Bob cannot see dangles for him only: no hint may propose to delete it.
SELECT hint FROM graph_check() WHERE hint ~ 'DELETE|UPDATE';
RESET ROLE;
SELECT hint FROM graph_check() WHERE hint ~ 'DELETE|UPDATE';
EXECUTE slice;
SET ROLE regress_alice;
EXECUTE slice;
SET row_security = off;
SELECT code, message FROM test_error('SELECT slice_id(2)');
RESET row_security;
RESET ROLE;

-- A batch that streams goes on with the eyes of who fetches, and with what a policy then depends on.
BEGIN;
DECLARE c CURSOR FOR SELECT (r).slice -> 'attestation' ->> 'role' AS role, (r).slice ->> 'slice_id' AS slice_id
    FROM (SELECT graph_slices(array_fill(turn(2), ARRAY[31])) AS r) AS s;
SET LOCAL ROLE regress_alice;
FETCH 3 FROM c;
SET LOCAL ROLE regress_bob;
FETCH 4 FROM c;
RESET ROLE;
CREATE POLICY hidden ON seen.memory_turns AS RESTRICTIVE TO regress_alice
    USING (id IS DISTINCT FROM nullif(current_setting('seen.hidden', true), '')::uuid);
SET LOCAL ROLE regress_alice;
FETCH 8 FROM c;
SELECT set_config('seen.hidden', turn(5)::text, true) IS NOT NULL AS hidden;
FETCH 2 FROM c;
ROLLBACK;

-- The same on edges: Bob may see replies only.
ALTER TABLE seen.memory_turn_edges ENABLE ROW LEVEL SECURITY;
CREATE POLICY alice ON seen.memory_turn_edges TO regress_alice USING (true);
CREATE POLICY bob ON seen.memory_turn_edges TO regress_bob USING (edge_type = 'reply');
SET ROLE regress_bob;
SELECT * FROM test_slice(5);
SELECT * FROM test_slice(2);
RESET ROLE;

-- Without SELECT there is no slice: an error, for a batch as well, whether the anchor is there or not.
SET ROLE regress_nobody;
SELECT * FROM test_error('SELECT graph_slice(turn(2))');
SELECT code, message FROM test_error('SELECT graph_slice(turn(77))');
SELECT code, message FROM test_error('SELECT * FROM graph_slices(ARRAY[turn(2)])');
SELECT detail, count(*) FROM graph_check() WHERE NOT ok GROUP BY 1 ORDER BY detail COLLATE "C";
RESET ROLE;
-- SELECT on the columns that a slice reads is enough.
REVOKE SELECT ON seen.memory_turns FROM regress_alice;
GRANT SELECT (id, session_id, role, trajectory_phase, salience_score, trajectory_depth, trajectory_sibling_order, trajectory_homogeneity,
              trajectory_temporal, trajectory_complexity, created_at, content_hash) ON seen.memory_turns TO regress_alice;
SET ROLE regress_alice;
EXECUTE slice;
SELECT code, message FROM test_error('SELECT content_text FROM seen.memory_turns');
RESET ROLE;
-- A function with its owner's rights slices with the owner's eyes.
CREATE FUNCTION seen.alices_slice(n int) RETURNS text LANGUAGE sql STABLE SECURITY DEFINER AS $$ SELECT selected FROM public.test_slice(n) $$;
ALTER FUNCTION seen.alices_slice OWNER TO regress_alice;
SET ROLE regress_bob;
SELECT seen.alices_slice(2) AS alice, selected AS bob FROM test_slice(2);
RESET ROLE;
-- A view, too, as far as rows go: it is read with the caller's rights inside functions.
CREATE VIEW seen.slices AS SELECT id, graph_slice(id) ->> 'slice_id' AS slice_id FROM seen.memory_turns WHERE id = turn(2);
GRANT SELECT ON seen.slices TO regress_bob;
SET ROLE regress_bob;
SELECT slice_id FROM seen.slices;
RESET ROLE;

-- Slices run with search_path = pg_catalog, pg_temp: a policy's function that relies on the caller's path fails until it has its own.
CREATE TABLE seen.allowed (role text);
INSERT INTO seen.allowed VALUES ('assistant');
GRANT SELECT ON seen.allowed TO regress_bob;
CREATE FUNCTION seen.may_see(role text) RETURNS boolean LANGUAGE plpgsql STABLE AS $$ BEGIN RETURN EXISTS (SELECT FROM allowed AS a WHERE a.role = may_see.role); END $$;
DROP POLICY bob ON seen.memory_turns;
CREATE POLICY bob ON seen.memory_turns TO regress_bob USING (seen.may_see(role));
SET ROLE regress_bob;
SET search_path = seen, public;
SELECT count(*) FROM memory_turns;
SELECT * FROM test_error('SELECT graph_slice(turn(2))');
-- graph_check says so to who can alter the function; following the hint fixes it.
SELECT check_name, ok, count, hint FROM graph_check() WHERE check_name = 'policy_search_path';
RESET search_path;
RESET ROLE;
-- Where others can create functions, that schema does not come into the path.
GRANT CREATE ON SCHEMA seen TO regress_alice;
SELECT ok, count, hint FROM graph_check() WHERE check_name = 'policy_search_path';
REVOKE CREATE ON SCHEMA seen FROM regress_alice;
SELECT ok, count, hint FROM graph_check() WHERE check_name = 'policy_search_path';
SELECT hint AS command FROM graph_check() WHERE check_name = 'policy_search_path' \gset
:command
SELECT ok, count, hint FROM graph_check() WHERE check_name = 'policy_search_path';
SET ROLE regress_bob;
SELECT selected FROM test_slice(2);
RESET ROLE;
-- What a policy's function raises arrives as it was raised.
CREATE OR REPLACE FUNCTION seen.may_see(role text) RETURNS boolean LANGUAGE plpgsql STABLE SET search_path = pg_catalog, seen, pg_temp AS $$
BEGIN
    RAISE EXCEPTION 'not today' USING ERRCODE = '28000', DETAIL = 'closed', HINT = 'come tomorrow';
END $$;
SET ROLE regress_bob;
SELECT * FROM test_error('SELECT graph_slice(turn(2))');
SELECT * FROM test_error('SELECT * FROM graph_slices(ARRAY[turn(2)])');
RESET ROLE;

DEALLOCATE slice;
SELECT graph_kernel.unbind_tables();
SET client_min_messages = warning;
DROP SCHEMA seen CASCADE;
DROP ROLE regress_alice, regress_bob, regress_nobody;
