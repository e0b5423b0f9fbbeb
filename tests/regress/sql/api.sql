-- Promise: requests and answers are those of the published REST service; errors carry the status for PostgREST and a stable word.
CREATE TEMP TABLE answers (name text PRIMARY KEY, body json);
GRANT ALL ON answers TO PUBLIC;

-- The turns of the published answers: 1 ─reply→ 2 ─reply→ 4. Its slice_id is theirs.
CREATE SCHEMA service;
SELECT graph_kernel.create_tables('service');
INSERT INTO service.memory_turns (id, created_at) SELECT turn(n), 'epoch' FROM unnest('{1,2,4}'::int[]) AS n;
INSERT INTO service.memory_turn_edges SELECT turn(p), turn(c), 'reply' FROM (VALUES (1, 2), (2, 4)) AS v (p, c);
SELECT graph_kernel.bind_tables('service.memory_turns', 'service.memory_turn_edges') IS NOT NULL AS bound;
SELECT graph_api_register_policy('{"policy":{"version":"slice_policy_v1","max_nodes":3,"max_radius":2,"phase_weights":{"synthesis":1.0,"planning":0.9,"consolidation":0.6,"debugging":0.5,"exploration":0.3},"salience_weight":0.3,"distance_decay":0.9,"include_siblings":true,"max_siblings_per_node":5}}');
INSERT INTO answers SELECT 'slice', graph_api_slice('{"anchor_turn_id":"00000000-0000-0000-0000-000000000001","policy_ref":{"policy_id":"slice_policy_v1","params_hash":"94e7a021c0486b8f"}}');
SELECT regexp_replace(body::text, '"admissibility_token":"[0-9a-f]{32}"', '"admissibility_token":"…"') AS body FROM answers WHERE name = 'slice';
INSERT INTO answers SELECT 'batch', graph_api_slice_batch('{"anchor_turn_ids":["00000000-0000-0000-0000-000000000001","bad","00000000-0000-0000-0000-0000000fffff",null,7],"policy_ref":{"policy_id":"slice_policy_v1","params_hash":"94e7a021c0486b8f"}}');
SELECT k.key, CASE k.key WHEN 'slices' THEN (k.value::text = format('[%s]', (SELECT body -> 'slice' FROM answers WHERE name = 'slice')))::text ELSE k.value::text END AS value
FROM answers, json_each(body) AS k WHERE name = 'batch';
-- It is what graph_slice says.
SELECT bool_and(e.value::text = (s.body -> 'slice' ->> e.key) OR (s.body -> 'slice' -> e.key)::text = e.value::text) AS same, string_agg(e.key, ' ') AS keys
FROM answers AS s, json_each(graph_slice(turn(1), graph_policy('94e7a021c0486b8f'))) AS e
WHERE s.name = 'slice' AND e.key NOT IN ('turns', 'attestation');
SELECT json_array_elements_text(body -> 'slice' -> 'turn_ids') AS turn_id FROM answers WHERE name = 'slice';
SELECT graph_kernel.unbind_tables();

-- Without policy_ref the policy is the default one.
SELECT graph_api_slice(json_build_object('anchor_turn_id', turn(2))) ->> 'policy_ref' AS policy_ref,
       graph_api_slice(json_build_object('anchor_turn_id', turn(2), 'policy_ref', NULL)) #>> '{slice,slice_id}' = slice_id(2) AS same;
SELECT graph_api_slice_batch('{"anchor_turn_ids": []}');
SELECT graph_api_policies()::text = format('{"policies":[%s],"registry_fingerprint":"%s"}', string_agg(DISTINCT format('{"policy_id":"slice_policy_v1","params_hash":"%s"}', params_hash), ','),
                                           graph_policy_registry_fingerprint()) AS all_policies FROM graph_policies WHERE name IS NULL OR name NOT IN ('lineage', 'chat', 'recall');
SELECT graph_api_register_policy('{"policy": "focused", "name": "short"}');
SELECT graph_policy('short') = 'focused' AS named;
SELECT k.key, CASE k.key WHEN 'version' THEN (k.value #>> '{}' = graph_kernel_version())::text
                         WHEN 'policy_count' THEN (k.value::text::int = (SELECT count(DISTINCT params_hash) FROM graph_policies WHERE policy_id = 'slice_policy_v1'))::text
                         WHEN 'registry_fingerprint' THEN (k.value #>> '{}' = graph_policy_registry_fingerprint())::text
                         WHEN 'schema_version' THEN (k.value #>> '{}' = graph_slice(turn(2)) ->> 'schema_version')::text
                         ELSE k.value::text END AS value
FROM json_each(graph_api_health()) AS k;

-- Tokens.
INSERT INTO answers SELECT 'token', json_build_object('admissibility_token', s ->> 'admissibility_token', 'slice_id', s ->> 'slice_id', 'anchor_turn_id', s ->> 'anchor_turn_id',
    'policy_id', s ->> 'policy_id', 'policy_params_hash', s ->> 'policy_params_hash', 'graph_snapshot_hash', s ->> 'graph_snapshot_hash', 'schema_version', s ->> 'schema_version')
FROM (SELECT graph_api_slice(json_build_object('anchor_turn_id', turn(2))) -> 'slice') AS v (s);
SELECT change, graph_api_verify_token((body::jsonb || change)::json) AS answer FROM answers, unnest(ARRAY['{}', '{"schema_version": "1.0.1"}', '{"anchor_turn_id": "zz"}',
    '{"admissibility_token": ""}', '{"slice_id": "x"}']::jsonb[]) AS change WHERE name = 'token';

-- Errors: the status in the SQLSTATE, the word in DETAIL.
SELECT request, e.* FROM unnest(ARRAY[
    '{"anchor_turn_id": "zzz"}', '{"anchor_turn_id": 7}', '{"anchor_turn_id": ""}', '{"anchor_turn_id": ["x"]}',
    '{"anchor_turn_id": "00000000-0000-0000-0000-0000000fffff"}',
    '{"anchor_turn_id": "00000000-0000-0000-0000-000000000001", "policy_ref": {"policy_id": "slice_policy_v1", "params_hash": "nope"}}',
    '{"anchor_turn_id": "00000000-0000-0000-0000-000000000001", "policy_ref": {"policy_id": "slice_policy_v2", "params_hash": "02005444cae1117d"}}',
    '{"anchor_turn_id": "00000000-0000-0000-0000-000000000001", "policy_ref": {"policy_id": "slice_policy_v1"}}',
    '{"anchor_turn_id": "00000000-0000-0000-0000-000000000001", "policy_ref": "default"}',
    '{"anchor_turn_id": "00000000-0000-0000-0000-000000000001", "policy_ref": {"policy_id": "slice_policy_v1", "params_hash": "02005444cae1117d", "x": 1}}',
    '{"bogus": 1}', '{}', '{"anchor_turn_id": null}', '{"anchor_turn_id": "a", "anchor_turn_id": "b"}', '{"anchor_turn_id": "a", "policy_reff": null}',
    'null', '[]', '"x"', '1']) AS request, test_error(format('SELECT graph_api_slice(%L)', request)) AS e;
SELECT request, e.code, e.message, e.detail FROM unnest(ARRAY['{}', '{"anchor_turn_ids": {}}', '{"anchor_turn_ids": "x"}', '{"anchor_turn_ids": [], "limit": 1}',
    '{"anchor_turn_ids": [], "policy_ref": {"policy_id": "slice_policy_v1", "params_hash": "nope"}}']) AS request,
    test_error(format('SELECT graph_api_slice_batch(%L)', request)) AS e;
SELECT request, e.code, e.message, e.detail FROM unnest(ARRAY['{}', '{"policy": {"max_nodes": 0}}', '{"policy": "none"}', '{"policy": {"max_nodes": 1}, "name": "broad"}', '{"policy": {}, "name": ""}']) AS request,
    test_error(format('SELECT graph_api_register_policy(%L)', request)) AS e;
SELECT request, e.code, e.message, e.detail FROM unnest(ARRAY['{}', '{"slice_id": "x"}', NULL]) AS request, test_error(format('SELECT graph_api_verify_token(%L)', request)) AS e;
-- A batch has at most 100 anchors.
SELECT n, e.* FROM (VALUES (100), (101)) AS v (n), test_error(format('SELECT graph_api_slice_batch(%L)',
    json_build_object('anchor_turn_ids', array_fill(turn(2), ARRAY[n])))) AS e;
SELECT graph_api_slice_batch(json_build_object('anchor_turn_ids', array_fill(turn(2), ARRAY[100]))) ->> 'success_count' AS success_count;

-- What is wrong for every anchor is an error of a batch too; what is wrong with the server is 503.
SET graph_kernel.max_nodes_limit = 100;
SELECT request, e.code, e.detail FROM unnest(ARRAY['graph_api_slice(''{"anchor_turn_id": "00000000-0000-0000-0000-000000000001"}'')', 'graph_api_slice_batch(''{"anchor_turn_ids": ["x"]}'')']) AS request, test_error('SELECT ' || request) AS e;
RESET graph_kernel.max_nodes_limit;
BEGIN;
ALTER TABLE memory_turns RENAME TO elsewhere;
SELECT request, e.code, e.message, e.detail FROM unnest(ARRAY['graph_api_slice(''{"anchor_turn_id": "00000000-0000-0000-0000-000000000001"}'')', 'graph_api_slice_batch(''{"anchor_turn_ids": ["x"]}'')', 'graph_api_health()']) AS request, test_error('SELECT ' || request) AS e;
ROLLBACK;

-- As PostgREST finds them: an argument without a name where there is one; all that read are STABLE, so that they run read-only.
SELECT oid::regprocedure AS function, proargnames IS NULL AS unnamed, provolatile AS volatility FROM pg_proc WHERE proname LIKE 'graph\_api\_%' AND proname NOT LIKE '%search%' ORDER BY proname COLLATE "C";
BEGIN READ ONLY;
SELECT graph_api_slice(json_build_object('anchor_turn_id', turn(2))) IS NOT NULL AS slice, graph_api_slice_batch(json_build_object('anchor_turn_ids', ARRAY[turn(2)])) IS NOT NULL AS batch,
       graph_api_policies() IS NOT NULL AS policies, graph_api_health() IS NOT NULL AS health, (SELECT graph_api_verify_token(body) ->> 'valid' FROM answers WHERE name = 'token') AS token;
COMMIT;
SET client_min_messages = warning;
DROP SCHEMA service CASCADE;
