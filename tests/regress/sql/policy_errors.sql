-- Promise: a wrong policy is refused where it is written, with its key, 22023 or 22P02, INVALID_POLICY and what to give.
CREATE TEMP TABLE wrong (n int GENERATED ALWAYS AS IDENTITY, policy text);
INSERT INTO wrong (policy) VALUES
    -- no policy at all
    (''), (' '), ('DEFAULT'), ('wide'), ('default focused'), (E'tab\there'), (repeat('x', 100)), (repeat('é', 100)),
    ('null'), ('true'), ('42'), ('"wide"'), ('"{}"'), ('[]'), ('[{}]'),
    -- no JSON
    ('{'), ('{}}'), ('{} {}'), ('{max_nodes: 1}'), ('{"max_nodes": 1,}'), ('{''max_nodes'': 1}'), ('{"max_nodes": 01}'),
    ('{"distance_decay": NaN}'), ('{"distance_decay": Infinity}'), ('{"distance_decay": .5}'), ('{"max_nodes": 1} -- no'),
    ('{"a": "' || E'\n' || '"}'), ('{"max_nodes": 0x10}'), (E'\uFEFF{}'),
    -- keys
    ('{"nodes": 5}'), ('{"Max_nodes": 5}'), ('{"max_nodes ": 5}'), ('{"": 5}'), ('{"maxNodes": 5}'), ('{"max_\u006eodes": 5, "max_nodes": 5}'),
    ('{"max_nodes": 5, "max_nodes": 5}'), ('{"phase_weights": {"planning": 1, "planning": 1}}'), ('{"phase_weights": {}, "phase_weights": {}}'),
    ('{"phase_weights": {"Planning": 1}}'), ('{"phase_weights": {"inquiry": 1}}'), ('{"\n\"": 1}'),
    -- version
    ('{"version": "slice_policy_v2"}'), ('{"version": "SLICE_POLICY_V1"}'), ('{"version": 1}'), ('{"version": null}'),
    -- max_nodes
    ('{"max_nodes": 0}'), ('{"max_nodes": -1}'), ('{"max_nodes": 10001}'), ('{"max_nodes": 256.0}'), ('{"max_nodes": 2.5}'),
    ('{"max_nodes": 1e2}'), ('{"max_nodes": "256"}'), ('{"max_nodes": null}'), ('{"max_nodes": true}'), ('{"max_nodes": [256]}'),
    ('{"max_nodes": {}}'), ('{"max_nodes": 9223372036854775808}'), ('{"max_nodes": 99999999999999999999999999}'),
    -- max_radius, max_siblings_per_node
    ('{"max_radius": -1}'), ('{"max_radius": 2147483648}'), ('{"max_radius": 1.0}'), ('{"max_radius": "3"}'), ('{"max_radius": null}'),
    ('{"max_siblings_per_node": -1}'), ('{"max_siblings_per_node": 2147483648}'), ('{"max_siblings_per_node": 0.5}'), ('{"max_siblings_per_node": null}'),
    -- include_siblings
    ('{"include_siblings": 1}'), ('{"include_siblings": "true"}'), ('{"include_siblings": null}'), ('{"include_siblings": TRUE}'),
    -- weights and decay
    ('{"salience_weight": -0.1}'), ('{"salience_weight": 1.0000001}'), ('{"salience_weight": "0.3"}'), ('{"salience_weight": null}'), ('{"salience_weight": true}'),
    ('{"distance_decay": 1.5}'), ('{"distance_decay": -1}'), ('{"distance_decay": {}}'), ('{"distance_decay": 1e39}'), ('{"distance_decay": 1e400}'),
    ('{"phase_weights": null}'), ('{"phase_weights": 1}'), ('{"phase_weights": [1, 0.9]}'),
    ('{"phase_weights": {"synthesis": 1000000.5}}'), ('{"phase_weights": {"synthesis": -1000001}}'), ('{"phase_weights": {"synthesis": "1"}}'), ('{"phase_weights": {"synthesis": null}}');
\t
\a
SELECT left(to_json(w.policy)::text, 60) AS policy, e.code, e.message
FROM wrong AS w, test_error(format('SELECT %L::slice_policy', w.policy)) AS e ORDER BY w.n;
-- All have the same word; the hint names a key that is nearly the one given, and for what may be the name of a registered policy the hint says how to write it.
SELECT e.detail, e.hint, count(*) FROM wrong AS w, test_error(format('SELECT %L::slice_policy', w.policy)) AS e GROUP BY 1, 2 ORDER BY 3 DESC, 2;
-- The same from jsonb and json: those that are JSON at all, here through the casts.
SELECT e.code, e.message, e.detail FROM test_error($$SELECT '{"max_nodes": 256.0}'::jsonb::slice_policy$$) AS e;
SELECT e.code, e.message, e.detail FROM test_error($$SELECT '{"max_nodes": 5, "max_nodes": 6}'::json::slice_policy$$) AS e;
SELECT e.code, e.message, e.detail FROM test_error($$SELECT graph_slice(turn(2), '["focused"]'::jsonb)$$) AS e;
SELECT e.code, e.message, e.detail FROM test_error($$SELECT graph_slice(turn(2), '{"max_node": 5}')$$) AS e;
-- A time is in seconds: a date is answered with the form that makes them, which is one.
SELECT e.message, e.hint FROM test_error($$SELECT '{"version": "slice_policy_v2", "as_of": "2025-03-01"}'::slice_policy$$) AS e;
SELECT ('{"version": "slice_policy_v2", "as_of": 1740787200}'::slice_policy)::text::json ->> 'as_of' = (extract(epoch FROM timestamptz '2025-03-01+00')::bigint)::text AS as_of;
-- jsonb has one value a key before we see it, so the last one counts.
SELECT graph_policy_hash('{"max_nodes": 5, "max_nodes": 256}'::jsonb) = graph_policy_hash('default');
-- A jsonb is not written out before its limit is looked at: a number of 6 bytes has 131 072 digits.
SELECT code, detail, message FROM unnest('{graph_policy_hash,chunking_policy_hash}'::text[]) AS f,
    test_error(format('SELECT %s((''['' || repeat(''1e131071,'', 600) || ''1]'')::jsonb)', f));
\a
\t
-- As clients see it: an error at parse time with a position, before anything runs.
SELECT graph_slice(turn(99), '{"max_nodes": 0}');
