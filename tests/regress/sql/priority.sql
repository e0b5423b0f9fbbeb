-- Promise: graph_priority gives the published bits, and the library says the version the extension was created with.
SET extra_float_digits = 1;
-- The reference values: turns 1 to 5 at distances 0 to 3.
SELECT t.n, graph_priority(phase, salience, 0) AS d0, graph_priority(phase, salience, 1) AS d1,
       graph_priority(phase, salience, 2) AS d2, graph_priority(phase, salience, 3) AS d3
FROM (VALUES (1, 'exploration', 0.3::real), (2, 'planning', 0.8), (3, 'synthesis', 0.9), (4, 'debugging', 0.1), (5, 'consolidation', 0.5))
    AS t (n, phase, salience);
SELECT encode(float4send(graph_priority('exploration', 0.3, 0)), 'hex') AS d0, encode(float4send(graph_priority('planning', 0.8, 1)), 'hex') AS d1,
       encode(float4send(graph_priority('synthesis', 0.9, 2)), 'hex') AS d2, encode(float4send(graph_priority('debugging', 0.1, 3)), 'hex') AS d3;
-- Phases and salience are read as those of stored turns are.
SELECT graph_priority('SYNTHESIS', 1, 0) AS any_case, graph_priority('inquiry', 1, 0) AS unknown, graph_priority('', 'NaN', 0) AS nan,
       graph_priority('planning', 'Infinity', 0) AS above, graph_priority('planning', -5, 0) AS below, graph_priority('planning', 1e-45, 0) AS denormal;
-- Far away, and other policies.
SELECT graph_priority('synthesis', 1, 100) AS d100, graph_priority('synthesis', 1, 2147483647) AS farthest,
       graph_priority('planning', 0.5, 3, 'focused') AS focused, graph_priority('planning', 0.5, 3, policy => '{"distance_decay": 1}') AS level,
       graph_priority('planning', 0.5, 1, '{"distance_decay": 0}') AS none, graph_priority('planning', 0.5, 0, '{"distance_decay": 0}') AS at_anchor,
       graph_priority('planning', 0.5, 1, '{"phase_weights": {"planning": -1e6}}') AS negative;
SELECT * FROM test_error($$SELECT graph_priority('planning', 0.5, -1)$$);
-- A slice's priorities are these.
SELECT bool_and(priority = graph_priority(phase, salience, distance)) AS same FROM graph_slice_turns(turn(4));
-- Immutable: usable in an index.
BEGIN;
CREATE INDEX ON memory_turns (graph_priority(trajectory_phase, salience_score, 0) DESC, id);
ROLLBACK;

SELECT graph_kernel_version() = extversion AS same_version FROM pg_extension WHERE extname = 'graph_kernel';
SELECT graph_kernel_version() ~ '^\d+\.\d+\.\d+$' AS three_numbers;

-- Content as it is hashed: line ends LF, white space of both ends gone, the rest untouched.
SELECT encode(convert_to(graph_normalize_text(content), 'UTF8'), 'escape') AS normal, left(graph_content_hash(content), 16) AS hash
FROM (VALUES (''), ('Hello World'), (E'  Hello World  \n'), (E'a\r\nb\rc'), (E'\u00A0x\u00A0'), (E'\u3000x\u2003'), (E'\u0085x\u000B\u000C'),
             (E'\uFEFFx'), (E'\u200Bx'), (E'x\u2028'), (E'\u001Cx'), (E'e\u0301'), ('é'), (E'\r\r\n'), ('turn one')) AS v (content);
