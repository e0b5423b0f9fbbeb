-- Promise: the planner estimates how many turns a slice may have: max_nodes of a constant policy, else 256; and that slices cost.
CREATE FUNCTION pg_temp.estimate(statement text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    plan json;
BEGIN
    EXECUTE 'EXPLAIN (FORMAT JSON) ' || statement INTO plan;
    RETURN plan #>> '{0,Plan,Plan Rows}';
END $$;
SELECT call, pg_temp.estimate('SELECT * FROM ' || call) AS rows FROM unnest(ARRAY[
    'graph_slice_turns(turn(2))', $$graph_slice_turns(turn(2), 'default')$$, $$graph_slice_turns(turn(2), 'focused')$$,
    $$graph_slice_turns(turn(2), 'broad')$$, $$graph_slice_turns(turn(2), '{"max_nodes": 7}')$$,
    $$graph_slice_turns(turn(2), '{"max_nodes": 7}'::jsonb)$$, $$graph_slice_turns(turn(2), 'focused'::text::slice_policy)$$,
    $$graph_slice_turns(policy => '{"max_nodes": 10000}', anchor => turn(2))$$, 'graph_slice_turns(turn(2), NULL)',
    $$graph_slice_edges(turn(2))$$, $$graph_slice_edges(turn(2), 'focused')$$
]) AS call;
-- The anchor need not be known.
SELECT pg_temp.estimate($$SELECT s.* FROM (VALUES (turn(1))) AS v (a), graph_slice_turns(a, 'focused') AS s$$) AS rows;
-- Unknown policies, and those of parameters in a generic plan: 256; in a custom plan the parameter's.
CREATE TEMP TABLE policies (policy slice_policy);
INSERT INTO policies VALUES ('focused');
ANALYZE policies;
SELECT pg_temp.estimate('SELECT s.* FROM policies, graph_slice_turns(turn(2), policy) AS s') AS rows;
PREPARE with_policy (slice_policy) AS SELECT * FROM graph_slice_turns(turn(2), $1);
SET plan_cache_mode = force_generic_plan;
SELECT pg_temp.estimate($$EXECUTE with_policy('focused')$$) AS rows;
SET plan_cache_mode = force_custom_plan;
SELECT pg_temp.estimate($$EXECUTE with_policy('focused')$$) AS rows;
RESET plan_cache_mode;
-- Joined to a large table, the turns of a slice are looked up there one by one.
CREATE TEMP TABLE many AS SELECT turn(n) AS id, 'text ' || n AS content FROM generate_series(1, 50000) AS n;
CREATE UNIQUE INDEX ON many (id);
ANALYZE many;
CREATE FUNCTION pg_temp.scans(statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    plan jsonb;
BEGIN
    EXECUTE 'EXPLAIN (FORMAT JSON) ' || statement INTO plan;
    RETURN (SELECT string_agg(DISTINCT coalesce(node ->> 'Index Name', node ->> 'Function Name', 'all of ' || (node ->> 'Relation Name')), ', ')
            FROM jsonb_path_query(plan, '$.**') AS node WHERE node ?| ARRAY['Function Name', 'Relation Name']);
END $$;
SELECT pg_temp.scans($$SELECT * FROM graph_slice_turns(turn(2), 'focused') AS s JOIN many ON many.id = s.turn_id$$) AS scans;
-- Cheap conditions go first.
CREATE FUNCTION pg_temp.seen(id uuid) RETURNS boolean LANGUAGE plpgsql COST 100 AS $$ BEGIN RAISE NOTICE 'asked'; RETURN false; END $$;
SELECT count(*) FROM memory_turns WHERE graph_slice(id) IS NULL AND pg_temp.seen(id);
-- Batches: without a constant the estimate is ten.
SELECT pg_temp.estimate('SELECT * FROM graph_slices(ARRAY[turn(1)])') AS rows;
