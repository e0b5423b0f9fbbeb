-- Promise: NULL or an empty value in any argument of any function gives NULL, no row or a clean error.
SELECT graph_kernel.create_recorder_table();
CREATE TEMP TABLE sample (type regtype, good text, empty text);
INSERT INTO sample VALUES
    ('uuid', quote_literal(turn(2)), quote_literal(turn(0))),
    ('uuid[]', quote_literal(ARRAY[turn(2)]), $$'{}'$$),
    ('slice_policy', $$'default'$$, $$'{}'$$),
    ('chunking_policy', $$'default'$$, $$'{}'$$),
    ('text', $$'x'$$, $$''$$),
    ('text[]', $$'{x}'$$, $$'{}'$$),
    ('name', $$'no_such_schema'$$, $$''$$),
    ('cstring', $$'default'$$, $$''$$),
    ('real', '0.5', '0'),
    ('integer', '1', '0'),
    ('bigint', '1', '0'),
    ('real[]', $$'{1,2}'$$, $$'{}'$$),
    ('boolean', 'true', 'false'),
    ('json', $$'{}'$$, $$'{}'$$),
    ('jsonb', $$'{}'$$, $$'{}'$$),
    ('jsonb[]', $$'{}'$$, $$'{NULL}'$$),
    ('bytea', $$'\x00'$$, $$''$$),
    ('interval', $$'1 s'$$, $$'0'$$),
    ('oid', $$'memory_turns'::regclass$$, '0'),
    ('oid[]', $$'{10}'$$, $$'{}'$$),
    ('regclass', $$'memory_turns'$$, '0'),
    ('regproc', $$'graph_content_hash_trigger'$$, '0');

ALTER TABLE memory_turns ADD COLUMN embedding real[] DEFAULT '{1,2}';

-- Each function is called with good values, except for one position; what it did is undone.
CREATE FUNCTION pg_temp.call(fn regprocedure, odd_position int, odd_value text) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    arguments text := (
        SELECT string_agg(CASE WHEN a.position <> odd_position AND a.position = 2 THEN replace(s.good, 'turns', 'turn_edges')
                               WHEN a.position <> odd_position AND p.proargnames[a.position] = 'graph' THEN quote_literal('default')
                               WHEN a.position <> odd_position AND p.proargnames[a.position] = 'binder' THEN 'current_user::regrole'
                               WHEN a.position <> odd_position THEN s.good
                               WHEN odd_value = 'null' THEN 'NULL' ELSE s.empty END
                          || '::' || a.type::regtype, ', ' ORDER BY a.position)
        FROM pg_proc AS p, unnest(p.proargtypes::oid[]) WITH ORDINALITY AS a (type, position)
        LEFT JOIN sample AS s ON s.type = a.type
        WHERE p.oid = fn);
    answer text;
BEGIN
    EXECUTE format('SELECT CASE WHEN count(*) = 0 THEN ''no rows'' WHEN bool_and(r::text IS NULL) THEN ''null'''
                   ' ELSE ''a value'' END FROM %s(%s) AS r', fn::oid::regproc, arguments) INTO answer;
    RAISE triggered_action_exception;
EXCEPTION WHEN triggered_action_exception THEN
    RETURN answer;
WHEN OTHERS THEN
    RETURN SQLSTATE || ' ' || SQLERRM;
END $$;

SELECT p.oid::regproc AS function, a.position, v.value, pg_temp.call(p.oid, a.position::int, v.value)
FROM pg_depend AS d JOIN pg_extension AS x ON x.oid = d.refobjid AND x.extname = 'graph_kernel'
JOIN pg_proc AS p ON p.oid = d.objid
CROSS JOIN LATERAL unnest(p.proargtypes::oid[]) WITH ORDINALITY AS a (type, position)
CROSS JOIN (VALUES ('null'), ('empty')) AS v (value)
WHERE d.classid = 'pg_proc'::regclass AND d.refclassid = 'pg_extension'::regclass AND d.deptype = 'e'
  AND NOT 'internal'::regtype = ANY (p.proargtypes::oid[])
ORDER BY p.pronamespace::regnamespace::text COLLATE "C" = 'graph_kernel', p.proname COLLATE "C", p.oid::regprocedure::text COLLATE "C", a.position, v.value DESC;

ALTER TABLE memory_turns DROP COLUMN embedding;

-- Functions with an internal argument cannot be called by SQL at all: 42883, in PostgreSQL 16 0A000.
SELECT call, code IN ('42883', '0A000') AS refused
FROM unnest('{slice_policy_recv(NULL),graph_kernel.slice_support(NULL),chunking_policy_recv(NULL)}'::text[]) AS call,
     test_error('SELECT ' || call);

-- Every argument NULL at once, and columns of NULLs.
SELECT graph_slice(NULL) IS NULL AS slice, graph_policy(NULL) IS NULL AS policy,
       NULL::text::slice_policy IS NULL AS text, NULL::jsonb::slice_policy IS NULL AS jsonb, NULL::slice_policy::json IS NULL AS json;
-- A policy that is NULL is an error: a parameter that was not set.
SELECT call, e.* FROM unnest(ARRAY['graph_policy_hash(NULL)', 'graph_policy_register(NULL)',
                                   'recorder_verify_chunks(''recorder_events'', NULL)']) AS call, test_error('SELECT ' || call) AS e;
SELECT n, x.turn_id FROM (VALUES (1), (NULL)) AS v (n) LEFT JOIN LATERAL graph_slice_turns(turn(n), '{"max_nodes": 1}') AS x ON true;
SELECT count(*), count(graph_slice(id)) FROM (VALUES (turn(1)), (NULL), (turn(2))) AS v (id);
DROP TABLE recorder_events;
