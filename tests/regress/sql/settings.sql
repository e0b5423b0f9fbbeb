-- Promise: a session's settings stay as they were, whatever happens while a slice is planned.
CREATE ROLE regress_carol;
CREATE SCHEMA seen;
GRANT USAGE ON SCHEMA seen TO regress_carol;
SELECT graph_kernel.create_tables('seen');
INSERT INTO seen.memory_turns SELECT * FROM memory_turns;
INSERT INTO seen.memory_turn_edges SELECT * FROM memory_turn_edges;
SELECT graph_kernel.bind_tables('seen.memory_turns', 'seen.memory_turn_edges') IS NOT NULL AS bound;
GRANT SELECT ON seen.memory_turns, seen.memory_turn_edges TO regress_carol;
CREATE VIEW seen.settings AS
    SELECT string_agg(name || ' ' || setting, ', ' ORDER BY name COLLATE "C") AS settings FROM pg_settings
    WHERE name IN ('enable_seqscan', 'enable_bitmapscan', 'enable_memoize', 'jit');
GRANT SELECT ON seen.settings TO PUBLIC;
SET jit = on;

-- The planner asks a stable function for an estimate. This one has settings of its own, and may fail.
CREATE FUNCTION seen.lowest_salience() RETURNS real LANGUAGE plpgsql STABLE SET enable_seqscan = on SET jit = on AS $$
BEGIN
    PERFORM set_config('enable_memoize', 'on', true);
    IF current_setting('seen.fails', true) = 'yes' THEN
        RAISE 'no salience';
    END IF;
    RETURN 0;
END $$;
ALTER TABLE seen.memory_turns ENABLE ROW LEVEL SECURITY;
CREATE POLICY carol ON seen.memory_turns TO regress_carol USING (salience_score >= seen.lowest_salience());
SET ROLE regress_carol;
SET seen.fails = 'yes';
SELECT message FROM test_error('SELECT graph_slice(turn(2))');
SELECT settings FROM seen.settings;
SET seen.fails = 'no';
SELECT count(*) FROM graph_slice_turns(turn(2));
SELECT settings FROM seen.settings;
RESET ROLE;

-- What is set for a transaction stays set in it.
BEGIN;
SET LOCAL enable_seqscan = off;
SET LOCAL jit = off;
ANALYZE seen.memory_turn_edges;
SELECT count(*) FROM graph_slice_turns(turn(2));
SELECT settings FROM seen.settings;
ROLLBACK;
SELECT settings FROM seen.settings;

SELECT graph_kernel.unbind_tables();
RESET jit;
RESET seen.fails;
DROP SCHEMA seen CASCADE;
DROP ROLE regress_carol;
