-- Promise: slices work wherever a STABLE function may stand, and see exactly what their caller sees.
-- Read-only transactions, at any isolation level, write nothing and assign no transaction id.
BEGIN READ ONLY;
SELECT slice_id(2);
SELECT count(*) AS slices FROM graph_slices(ARRAY[turn(1), turn(2)]);
SELECT bool_and(ok) AS ok FROM graph_check();
SELECT pg_current_xact_id_if_assigned() IS NULL AS no_xid;
COMMIT;
BEGIN ISOLATION LEVEL SERIALIZABLE READ ONLY DEFERRABLE;
SELECT slice_id(2);
COMMIT;
SET default_transaction_read_only = on;
SELECT slice_id(2);
SELECT code FROM test_error($$SELECT graph_kernel.bind_tables('memory_turns', 'memory_turn_edges')$$);
RESET default_transaction_read_only;

-- A transaction sees its own changes, statement by statement, and what it rolls back it never did.
BEGIN;
INSERT INTO memory_turns (id, trajectory_phase) VALUES (turn(6), 'synthesis');
INSERT INTO memory_turn_edges VALUES (turn(5), turn(6), 'reply');
SELECT selected, edges FROM test_slice(6);
SAVEPOINT s;
DELETE FROM memory_turn_edges WHERE parent_turn_id = turn(2);
SELECT selected FROM test_slice(6);
ROLLBACK TO s;
SELECT selected FROM test_slice(6);
UPDATE memory_turns SET trajectory_phase = 'exploration', salience_score = 0 WHERE id = turn(3);
SELECT selected FROM test_slice(2);
ROLLBACK;
SELECT slice_id(2);
SELECT code FROM test_error('SELECT slice_id(6)');
-- A statement does not see what it is writing: the slice is of the state before.
WITH inserted AS (INSERT INTO memory_turns (id) VALUES (turn(6)) RETURNING id)
SELECT error_code FROM inserted, graph_slices(ARRAY[id]);
-- ... and a volatile function's next statement sees it.
CREATE FUNCTION pg_temp.write_and_slice(n int) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO memory_turn_edges VALUES (turn(5), turn(n), 'reply');
    RETURN (SELECT edges FROM test_slice(n, '{"max_nodes": 2}'));
END $$;
SELECT pg_temp.write_and_slice(6);
DELETE FROM memory_turn_edges WHERE child_turn_id = turn(6);
DELETE FROM memory_turns WHERE id = turn(6);
-- Tables of this transaction.
BEGIN;
CREATE SCHEMA fresh;
SELECT graph_kernel.create_tables('fresh');
SELECT graph_kernel.bind_tables('fresh.memory_turns', 'fresh.memory_turn_edges') IS NOT NULL AS bound;
SELECT code FROM test_error('SELECT slice_id(2)');
INSERT INTO fresh.memory_turns SELECT * FROM public.memory_turns;
INSERT INTO fresh.memory_turn_edges SELECT * FROM public.memory_turn_edges;
SELECT slice_id(2);
TRUNCATE fresh.memory_turn_edges;
SELECT selected FROM test_slice(2);
ROLLBACK;
SELECT slice_id(2);

-- In functions, with exception blocks, loops and dynamic SQL.
CREATE FUNCTION pg_temp.first_slice(VARIADIC anchors int[]) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    n int;
BEGIN
    FOREACH n IN ARRAY anchors LOOP
        BEGIN
            RETURN n || ' ' || (graph_slice(turn(n)) ->> 'slice_id');
        EXCEPTION WHEN SQLSTATE '02000' THEN
            CONTINUE;
        END;
    END LOOP;
    RETURN 'none';
END $$;
SELECT pg_temp.first_slice(77, 78, 2), pg_temp.first_slice(77, 78);
DO $$
DECLARE
    found record;
    list text := '';
BEGIN
    FOR found IN SELECT * FROM graph_slice_turns(turn(2), '{"max_nodes": 3}') LOOP
        list := list || ' ' || turn_number(found.turn_id);
        BEGIN
            PERFORM graph_slice(turn(77));
        EXCEPTION WHEN OTHERS THEN
            list := list || '!';
        END;
    END LOOP;
    RAISE NOTICE 'turns:%', list;
END $$;
-- A procedure that commits while it reads a batch.
CREATE PROCEDURE pg_temp.commit_between() LANGUAGE plpgsql AS $$
DECLARE
    s record;
    list text := '';
BEGIN
    FOR s IN SELECT slice ->> 'slice_id' AS id FROM graph_slices(ARRAY[turn(1), turn(2), turn(3)]) LOOP
        list := list || ' ' || s.id;
        COMMIT;
    END LOOP;
    RAISE NOTICE 'slices:%', list;
END $$;
CALL pg_temp.commit_between();

-- Views, materialized views, LATERAL, joins, subqueries, prepared statements.
CREATE TEMP VIEW slices AS SELECT t.id, s.slice_id, count(*) AS turns FROM memory_turns AS t, graph_slice_turns(t.id, 'focused') AS s GROUP BY 1, 2;
SELECT turn_number(id) AS anchor, slice_id, turns FROM slices ORDER BY id;
SELECT string_agg(content_text, ', ' ORDER BY s.selection_order) FROM graph_slice_turns(turn(4)) AS s JOIN memory_turns AS t ON t.id = s.turn_id;
SELECT turn_number(id) AS turn FROM memory_turns WHERE id IN (SELECT turn_id FROM graph_slice_turns(turn(1), '{"max_radius": 1}')) ORDER BY id;
SELECT turn_number(t.id) AS anchor, e.n FROM memory_turns AS t LEFT JOIN LATERAL (SELECT count(*) AS n FROM graph_slice_edges(t.id, '{"max_nodes": 2}')) AS e ON true ORDER BY t.id;
PREPARE by_anchor (uuid, slice_policy) AS SELECT graph_slice($1, $2) ->> 'slice_id' AS slice_id;
SET plan_cache_mode = force_generic_plan;
EXECUTE by_anchor(turn(2), 'default');
EXECUTE by_anchor(turn(1), 'focused');
EXECUTE by_anchor(turn(5), 'broad');
RESET plan_cache_mode;
-- Cursors: scrolled, held over the end of the transaction.
BEGIN;
DECLARE s SCROLL CURSOR FOR SELECT turn_number(turn_id) AS turn FROM graph_slice_turns(turn(2));
FETCH LAST FROM s;
FETCH FIRST FROM s;
DECLARE h CURSOR WITH HOLD FOR SELECT turn_number(anchor_turn_id) AS anchor, slice ->> 'slice_id' AS slice_id FROM graph_slices(ARRAY[turn(2), turn(3)]);
COMMIT;
FETCH ALL FROM h;
CLOSE h;
-- Two-phase commit and parallel query.
BEGIN;
SELECT slice_id(2);
PREPARE TRANSACTION 'regress_slice';
COMMIT PREPARED 'regress_slice';
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SELECT count(*), count(DISTINCT graph_slice(id)::text) FROM memory_turns;
SELECT count(graph_content_hash(content_text)) > 0 AS parallel_safe FROM memory_turns;
RESET ALL;
-- What is STABLE may not stand where IMMUTABLE is asked.
SELECT code FROM test_error('CREATE INDEX ON memory_turns ((graph_slice(id)::text))');
SELECT code FROM test_error('ALTER TABLE memory_turns ADD s text GENERATED ALWAYS AS (graph_slice(id)::text) STORED');
