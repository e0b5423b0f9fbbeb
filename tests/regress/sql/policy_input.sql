-- Promise: a policy is read from a preset name or a JSON object in any of text, jsonb, json; output is canonical.
SELECT p AS preset, graph_policy_hash(p::slice_policy) FROM unnest(ARRAY['default', 'focused', 'broad']) AS p;
\t
\a
SELECT p::slice_policy FROM unnest(ARRAY['default', 'focused', 'broad']) AS p;
-- Missing keys take the default policy's values, key order and white space are free, white space around too.
SELECT '{}'::slice_policy::text = 'default'::slice_policy::text;
SELECT E' \n\t{ "max_radius" : 2,"phase_weights": {"planning" : 1} , "max_nodes":7 } '::slice_policy;
SELECT E'\tfocused\n'::slice_policy::text = 'focused'::slice_policy::text;
SELECT '{"version": "slice_policy_v1"}'::slice_policy = 'default';
-- A preset's name may come as a JSON string.
SELECT '"focused"'::slice_policy = 'focused', '"broad"'::jsonb::slice_policy = 'broad', '"default"'::json::slice_policy = 'default';
-- The edges of each range.
SELECT '{"max_nodes": 1, "max_radius": 0, "max_siblings_per_node": 0, "include_siblings": false, "salience_weight": 0, "distance_decay": 0}'::slice_policy;
SELECT '{"max_nodes": 10000, "max_radius": 2147483647, "max_siblings_per_node": 2147483647, "salience_weight": 1, "distance_decay": 1}'::slice_policy;
SELECT '{"phase_weights": {"synthesis": 1000000, "planning": -1e6, "consolidation": 1e-7, "debugging": -0.0, "exploration": -0.0000004}}'::slice_policy;
-- Floats are what they hash to: millionths of the binary32, rounded half away from zero.
SELECT '{"salience_weight": 0.12345649, "distance_decay": 0.0078125, "phase_weights": {"planning": 100.3}}'::slice_policy;
SELECT graph_policy_hash('{"salience_weight": 0.3000001}') = graph_policy_hash('{"salience_weight": 0.3000004}'),
       '{"salience_weight": 0.3000001}'::slice_policy = '{"salience_weight": 0.3000004}';
\a
\t

-- Output reads back as the same policy, hash and text.
CREATE TEMP TABLE policies AS
SELECT p::slice_policy AS policy FROM unnest(ARRAY[
    'default', 'focused', 'broad', '{"max_nodes": 3}', '{"salience_weight": 0.3333333}', '{"distance_decay": 0.1}',
    '{"phase_weights": {"debugging": 123456.789}}', '{"phase_weights": {"debugging": -0.000001}}',
    '{"include_siblings": false}', '{"max_siblings_per_node": 0}'
]) AS p;
SELECT count(*), bool_and(policy::text::slice_policy = policy) AS text, bool_and(policy::text::slice_policy::text = policy::text) AS bytes,
       bool_and(policy::json::slice_policy = policy) AS json, bool_and(policy::jsonb::slice_policy = policy) AS jsonb,
       bool_and(graph_policy_hash(policy::text::slice_policy) = graph_policy_hash(policy)) AS hash,
       bool_and(policy::json::text = policy::text) AS json_bytes
FROM policies;

-- Casts: implicit from jsonb; explicit from json and text; drivers that send text write $1::slice_policy.
SELECT graph_policy_hash('{"max_nodes": 10, "max_radius": 3, "include_siblings": false}'::jsonb);
SELECT graph_policy_hash(jsonb_build_object('max_nodes', 10, 'max_radius', 3, 'include_siblings', false));
SELECT graph_policy_hash('{"max_nodes": 10, "max_radius": 3, "include_siblings": false}'::json::slice_policy);
SELECT code, message FROM test_error($$SELECT graph_policy_hash('{}'::json)$$);
SELECT code, message FROM test_error($$SELECT graph_policy_hash('{}'::text)$$);
PREPARE by_text (text) AS SELECT graph_policy_hash($1::slice_policy);
EXECUTE by_text('focused');
EXECUTE by_text('{"max_nodes": 32}');
EXECUTE by_text(NULL);
PREPARE untyped AS SELECT graph_policy_hash($1);
EXECUTE untyped('broad');
EXECUTE untyped('{}'::jsonb);
SELECT parameter_types FROM pg_prepared_statements WHERE name = 'untyped';
DEALLOCATE ALL;
-- Named notation, as PostgREST calls.
SELECT graph_slice(anchor => turn(2), policy => 'focused') ->> 'policy_params_hash' AS focused,
       graph_slice(policy => '{"max_nodes": 1}'::jsonb, anchor => turn(2)) #>> '{turns,0,id}' AS one;

-- Users' json and jsonb keep their own operators.
SELECT code, message FROM test_error($$SELECT '{}'::json = '{}'::json$$);
SELECT code, message FROM test_error($$SELECT DISTINCT j FROM (VALUES ('{}'::json)) AS v (j)$$);
SELECT '{"a": 1}'::jsonb = '{"a": 1.0}'::jsonb AS jsonb_equals, '{"a": 1}'::jsonb < '{"a": 2}'::jsonb AS jsonb_less;
SELECT code, message FROM test_error($$SELECT 'focused'::slice_policy < 'broad'::slice_policy$$);
SELECT code, message FROM test_error($$SELECT 'focused'::text = 'focused'::slice_policy$$);

-- Equality is equality of what is hashed.
SELECT count(*) AS pairs, count(*) FILTER (WHERE a.policy = b.policy) AS equal,
       bool_and((a.policy = b.policy) = (graph_policy_hash(a.policy) = graph_policy_hash(b.policy))) AS as_hashed,
       bool_and((a.policy <> b.policy) = NOT (a.policy = b.policy)) AS negated
FROM policies AS a, policies AS b;
SELECT 'focused'::slice_policy = '{"max_nodes": 32}' AS other, 'default'::slice_policy = '{}'::jsonb AS jsonb, 'focused' <> 'broad'::slice_policy AS differ;

-- Hash joins, grouping, hash indexes and sets work on policies; there is no order to sort them by.
INSERT INTO policies VALUES ('{"max_nodes": 32, "max_radius": 3, "salience_weight": 0.5, "distance_decay": 0.8, "include_siblings": false, "max_siblings_per_node": 0}');
SELECT count(*), count(DISTINCT graph_policy_hash(policy)) FROM policies;
SELECT graph_policy_hash(policy), count(*) FROM policies GROUP BY policy HAVING count(*) > 1;
SELECT count(*) FROM (SELECT DISTINCT policy FROM policies) AS d;
SET enable_nestloop = off;
SELECT count(*) FROM policies AS a JOIN policies AS b ON a.policy = b.policy;
RESET enable_nestloop;
SELECT count(*) FROM policies WHERE policy IN (SELECT '{}'::slice_policy);
CREATE INDEX ON policies USING hash (policy);
SET enable_seqscan = off;
SELECT count(*) FROM policies WHERE policy = 'focused';
RESET enable_seqscan;
SELECT code, message FROM test_error('SELECT policy FROM policies ORDER BY policy');
SELECT ARRAY['focused', '{}']::slice_policy[] = ARRAY['focused', 'default']::slice_policy[] AS arrays;
