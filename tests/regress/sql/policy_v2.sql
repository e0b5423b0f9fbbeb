-- Promise: a policy of version 2 bounds tokens, keeps calls with their results, and says what exists at all.
CREATE SCHEMA v2;
SELECT graph_kernel.create_tables('v2');
SELECT graph_kernel.bind_tables('v2.memory_turns', 'v2.memory_turn_edges') IS NOT NULL AS bound;
-- A question, a call with two results, an answer, a follow-up a day later in another session, a quote of the question.
INSERT INTO v2.memory_turns (id, session_id, role, created_at, content_text, token_count)
SELECT turn(n), session, role, timestamptz '2026-03-01 12:00+00' + at, content, counted
FROM (VALUES
    (1, 's', 'user', interval '0 s', repeat('question', 5), NULL),
    (2, 's', 'assistant', interval '10 s', 'I look it up.', NULL),
    (3, 's', 'tool', interval '11 s', repeat('r', 401), 50),
    (4, 's', 'tool', interval '12 s', repeat('é', 6), -1),
    (5, 's', 'assistant', interval '20 s', 'Answer.', NULL),
    (6, 'later', 'user', interval '1 day', 'And then?', NULL),
    (7, 'later', 'assistant', interval '1 day 5 s', NULL, NULL)) AS v (n, session, role, at, content, counted);
INSERT INTO v2.memory_turn_edges VALUES
    (turn(1), turn(2), 'reply'), (turn(2), turn(3), 'reply'), (turn(2), turn(4), 'reply'), (turn(3), turn(5), 'reply'),
    (turn(5), turn(6), 'reply'), (turn(6), turn(7), 'reply'), (turn(1), turn(7), 'reference');
CREATE FUNCTION pg_temp.turns(anchor bigint, policy slice_policy) RETURNS text LANGUAGE sql AS $$
    SELECT string_agg(turn_number(turn_id) || '@' || distance || coalesce(' ' || tokens, ''), ', ' ORDER BY selection_order)
    FROM graph_slice_turns(turn(anchor), policy) $$;

-- Both versions, in text, jsonb and json; the whole policy is what comes out.
SELECT graph_policy_hash('{"version": "slice_policy_v2"}') AS defaults, graph_policy_hash('lineage') AS lineage, graph_policy_hash('chat') AS chat;
SELECT '{"preset": "chat", "max_tokens": 100, "edge_weights": {"branch": 0}}'::jsonb::slice_policy;
SELECT '{"preset": "focused", "max_nodes": 4}'::json::slice_policy;
SELECT '"lineage"'::slice_policy::text = 'lineage'::slice_policy::text AS same;
SELECT code, message, hint FROM unnest(ARRAY['{"max_tokens": 100}', '{"preset": "chat", "version": "slice_policy_v1"}',
    '{"preset": "chat", "max_tokens": 1.0}', '{"version": "slice_policy_v2", "edge_weights": {"reply": 2}}']) AS p, test_error(format('SELECT %L::slice_policy', p));

-- Tokens: those counted, else a quarter of the bytes.
SELECT pg_temp.turns(5, '{"version": "slice_policy_v2", "max_tokens": 1000}');
SELECT turns, tokens, token_budget_used, truncated FROM graph_slice_stats(turn(5), '{"version": "slice_policy_v2", "max_tokens": 20}');
-- With one of its results a call is too large: neither comes.
SELECT pg_temp.turns(5, '{"version": "slice_policy_v2", "max_tokens": 60}') AS split,
       pg_temp.turns(5, '{"version": "slice_policy_v2", "max_tokens": 60, "keep_tool_results": true}') AS kept,
       pg_temp.turns(6, '{"version": "slice_policy_v2", "max_tokens": 60, "keep_tool_results": true}') AS passed_over;
SELECT turn_number(turn_id) AS turn, outcome, distance, priority IS NULL AS unranked, reason
FROM graph_slice_explain(turn(6), '{"version": "slice_policy_v2", "max_tokens": 60, "keep_tool_results": true}');
SELECT turn_number(turn_id) AS turn, outcome, reason
FROM graph_slice_explain(turn(6), '{"version": "slice_policy_v2", "max_tokens": 10, "same_session": true}');
SELECT turn_number(turn_id) AS turn, outcome, reason
FROM graph_slice_explain(turn(5), '{"version": "slice_policy_v2", "max_seconds_before": 5, "max_seconds_after": 60}');
-- What a call with its results leads to is found from the turn of them that was expanded.
SELECT turn_number(turn_id) AS turn, outcome, turn_number(discovered_from) AS from, reason
FROM graph_slice_explain(turn(2), '{"preset": "lineage", "include_children": true, "max_nodes": 4}');
SELECT turn_number(turn_id) AS turn, outcome, turn_number(discovered_from) AS from, reason
FROM graph_slice_explain(turn(5), '{"preset": "lineage", "max_nodes": 3}');
-- What exists: sessions, windows, a moment, types of edges, directions.
SELECT name, pg_temp.turns(5, policy::slice_policy) FROM (VALUES
    ('session', '{"version": "slice_policy_v2", "same_session": true}'), ('before', '{"version": "slice_policy_v2", "max_seconds_before": 9}'),
    ('after', '{"version": "slice_policy_v2", "max_seconds_after": 9}'), ('as of', '{"version": "slice_policy_v2", "as_of": 1772366412}'),
    ('no replies', '{"version": "slice_policy_v2", "edge_weights": {"reply": 0}}'), ('lineage', 'lineage'),
    ('no parents', '{"version": "slice_policy_v2", "include_parents": false, "include_siblings": false}')) AS v (name, policy) WHERE name <> 'as of';
SELECT code, detail FROM test_error($$SELECT graph_slice(turn(5), '{"version": "slice_policy_v2", "as_of": 1772366412}')$$);
-- Why not, and what would change it.
SELECT turn, explanation FROM (VALUES (2, '{"preset": "chat", "max_tokens": 20}'), (1, '{"preset": "lineage", "max_seconds_before": 5}'), (6, 'lineage'),
    (3, '{"version": "slice_policy_v2", "same_session": true, "max_nodes": 2}'), (6, '{"version": "slice_policy_v2", "same_session": true}'),
    (7, '{"version": "slice_policy_v2", "edge_weights": {"reply": 0}, "include_siblings": false}'), (1, '{"version": "slice_policy_v2", "max_tokens": 1, "same_session": true}')
) AS v (turn, policy), graph_why(turn(5), turn(turn), policy::slice_policy);

-- The conversation as a model reads it, and as people see it.
SELECT n, turn_number(turn_id) AS turn, part, role, left(content, 12) AS content, payload, session_id, created_at, tokens, cumulative_tokens FROM graph_messages(turn(7));
SELECT graph_slice_draw(turn(5), 'chat', options => '{"chars": 10}');
SELECT graph_slice_draw(turn(5), '{"max_nodes": 2}', 'dot', '{"max_turns": 1, "chars": 0, "frontier": true}');
SELECT code, message, hint FROM unnest(ARRAY['format => ''svg''', 'options => ''{"max_turns": 0}''', 'options => ''{"chars": 1001}''',
    'options => ''{"frontier": 1}''', 'options => ''{"title": "x"}''', 'options => ''[]''']) AS a, test_error(format('SELECT graph_slice_draw(turn(5), %s)', a));

-- Pins come right after the anchor, seeds and what is around them last; the line leaves them their tokens. What does
-- not exist is as if it were not named.
SELECT turn_number(turn_id) AS turn, outcome, part, via, turn_number(discovered_from) AS from, distance, reason
FROM graph_slice_explain(turn(7), '{"preset": "chat", "max_tokens": 40, "recall_tokens": 30, "max_radius": 1,
    "pins": ["00000000-0000-0000-0000-000000000001", "00000000-0000-0000-0000-00000000ffff"],
    "seeds": {"00000000-0000-0000-0000-000000000005": 0.9, "00000000-0000-0000-0000-00000000fffe": 1}}');
SELECT n, turn_number(turn_id) AS turn, part FROM graph_messages(turn(7), '{"preset": "recall", "seeds": {"00000000-0000-0000-0000-000000000002": 0.5}}');
SELECT graph_slice_draw(turn(7), '{"preset": "recall", "max_nodes": 4, "pins": ["00000000-0000-0000-0000-000000000001"], "seeds": {"00000000-0000-0000-0000-000000000005": 0.5}}', options => '{"chars": 0}');
SELECT turn, included, explanation, (SELECT array_agg(turn_number(id)) FROM unnest(path) AS id) AS path
FROM unnest('{1,5,6,3}'::int[]) AS turn, graph_why(turn(7), turn(turn),
    '{"preset": "recall", "recall_radius": 1, "keep_tool_results": false, "pins": ["00000000-0000-0000-0000-000000000001"], "seeds": {"00000000-0000-0000-0000-000000000005": 0.5}}');
-- A pin that does not fit is told, once for many slices.
SELECT pg_temp.turns(7, '{"preset": "chat", "max_nodes": 1, "pins": ["00000000-0000-0000-0000-000000000001", "00000000-0000-0000-0000-00000000ffff"]}');
-- Nobody puts them into the registry, a restore neither.
INSERT INTO graph_kernel.policies (policy, name, registered_by)
VALUES ('{"preset": "chat", "pins": ["00000000-0000-0000-0000-000000000001"]}', 'pinned', 'x'),
       ('{"preset": "recall", "seeds": {"00000000-0000-0000-0000-000000000001": 1}}', NULL, 'x');
SELECT count(*) FROM graph_policies WHERE name = 'pinned';
SELECT count(*) FROM graph_slices(ARRAY[turn(5), turn(6), turn(7)], '{"preset": "chat", "max_nodes": 1, "pins": ["00000000-0000-0000-0000-000000000001", "00000000-0000-0000-0000-000000000002"]}');
SELECT turn_number(turn_id) AS turn, outcome, via, reason
FROM graph_slice_explain(turn(7), '{"preset": "chat", "max_tokens": 5, "pins": ["00000000-0000-0000-0000-000000000001"]}');
-- What would bring in what was cut.
SELECT turn, explanation FROM unnest('{5,1}'::int[]) AS turn, graph_why(turn(7), turn(turn), '{"preset": "chat", "max_tokens": 5}');
-- Pins and seeds are not in the hash; they are attested, replayed and compared.
BEGIN;
CREATE TEMP TABLE given AS SELECT p.policy::slice_policy AS policy, graph_slice(turn(7), p.policy::slice_policy) AS slice
FROM (VALUES ('{"preset": "recall", "pins": ["{00000000-0000-0000-0000-000000000001}"], "seeds": {"00000000-0000-0000-0000-00000000000A": 1, "00000000-0000-0000-0000-000000000005": 0.25}}')) AS p (policy);
SELECT graph_policy_hash(policy) = graph_policy_hash('recall') AS same_hash, policy = 'recall' AS same_policy,
       slice ->> 'policy_params_hash' AS params_hash, slice #> '{attestation,policy,pins}' AS pins, slice #> '{attestation,policy,seeds}' AS seeds
FROM given;
SELECT v.valid, v.reason, r.status, again.status AS by_the_name FROM given, graph_verify(slice) AS v, graph_replay(slice) AS r, graph_replay(slice, 'recall') AS again;
SELECT v.valid, v.reason FROM given, graph_verify(replace(slice::text, ':250000', ':250001')::json) AS v;
SELECT field, was, now FROM given, graph_slice_diff(graph_slice(turn(7), 'recall'), slice) WHERE field LIKE 'policy%' OR field IN ('slice_id');
SELECT code, message, detail, hint FROM given, test_error(format('SELECT graph_policy_register(%L, ''mine'')', policy)) AS e;
SELECT code, message, detail FROM given, test_error(format('SELECT graph_api_register_policy(%L)', json_build_object('policy', policy::text::json, 'name', 'mine'))) AS e;
ROLLBACK;
SELECT code, message FROM unnest(ARRAY['"pins": []', '"pins": ["x"]', '"seeds": {"00000000-0000-0000-0000-000000000001": 0}', '"cut_share": 1', '"recall_radius": 17']) AS key,
    test_error(format('SELECT %L::slice_policy', '{"preset": "chat", ' || key || '}'));
-- Exports of one version never verify as the other's; replay and REST take both.
CREATE TEMP TABLE kept AS SELECT graph_slice(turn(5), 'lineage') AS slice;
SELECT slice ->> 'policy_id' AS policy_id, v.valid, v.reason FROM kept, graph_verify(slice) AS v;
SELECT v.valid, v.reason FROM kept, graph_verify(replace(slice::text, 'slice_policy_v2', 'slice_policy_v1')::json) AS v;
SELECT r.status FROM kept, graph_replay(slice) AS r;
SELECT field, was, now FROM kept, graph_slice_diff(graph_slice(turn(5)), slice) WHERE field LIKE 'policy%';
BEGIN;
SELECT graph_api_slice(json_build_object('anchor_turn_id', turn(5), 'policy_ref', r.ref)) #>> '{slice,policy_id}' AS policy_id
FROM (SELECT graph_api_register_policy('{"policy": "lineage", "name": "back"}') -> 'policy_ref' AS ref) AS r;
SELECT name, policy_id, params_hash FROM graph_policies WHERE policy_id = 'slice_policy_v2';
SELECT graph_policy_registry_fingerprint() <> 'cafe77a21173bb02' AS counted;
ROLLBACK;
SELECT graph_policy_registry_fingerprint() = 'cafe77a21173bb02' AS published;
SELECT code, detail FROM test_error($$SELECT graph_policy_register('default', 'chat')$$);
-- The presets of version 2 have the only names that cannot be given, and are listed once where they are registered.
BEGIN;
SELECT code, detail, message FROM unnest('{chat,lineage,default}'::text[]) AS name, test_error(format('SELECT graph_policy_register(%1$L, %1$L)', name));
SELECT policy_id FROM graph_policy_register('chat');
SELECT name, registered_by IS NULL AS preset FROM graph_policies WHERE policy_id = 'slice_policy_v2' ORDER BY name;
SELECT graph_policy_registry_fingerprint() <> 'cafe77a21173bb02' AS counted;
ROLLBACK;
-- Without a right to the contents, what is not counted cannot be.
CREATE ROLE regress_counter;
GRANT USAGE ON SCHEMA v2 TO regress_counter;
GRANT SELECT ON v2.memory_turn_edges TO regress_counter;
GRANT SELECT (id, session_id, role, trajectory_phase, salience_score, trajectory_depth, trajectory_sibling_order, trajectory_homogeneity,
              trajectory_temporal, trajectory_complexity, created_at, content_hash, token_count) ON v2.memory_turns TO regress_counter;
-- A pin or a seed that is hidden is as if it were not named: in slices, explanations and notices.
ALTER TABLE v2.memory_turns ENABLE ROW LEVEL SECURITY;
CREATE POLICY visible ON v2.memory_turns TO regress_counter USING (id <> turn(1));
SET ROLE regress_counter;
SELECT turn_number(turn_id) AS turn, outcome, part FROM graph_slice_explain(turn(7), '{"preset": "recall", "max_nodes": 1, "max_tokens": null,
    "pins": ["00000000-0000-0000-0000-000000000001"], "seeds": {"00000000-0000-0000-0000-000000000001": 1}}');
RESET ROLE;
DROP POLICY visible ON v2.memory_turns;
ALTER TABLE v2.memory_turns DISABLE ROW LEVEL SECURITY;
SET ROLE regress_counter;
SELECT json_array_length(graph_slice(turn(5), 'lineage') -> 'turns') AS lineage;
SELECT code FROM test_error($$SELECT graph_slice(turn(5), 'chat')$$);
SELECT code FROM unnest('{0,1}'::int[]) AS chars, test_error(format($$SELECT graph_slice_draw(turn(5), 'lineage', options => '{"chars": %s}')$$, chars));
RESET ROLE;
SELECT graph_kernel.unbind_tables();
SET client_min_messages = warning;
DROP SCHEMA v2 CASCADE;
DROP ROLE regress_counter;
