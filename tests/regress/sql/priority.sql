-- Promise: the priorities of a slice have the published bits, and the library says the version the extension was created with.
SET extra_float_digits = 1;
-- Turns at distances 0 to 2, and the formula in the server's own binary32.
SELECT turn_number(turn_id) AS turn, phase, salience, distance, priority, encode(float4send(priority), 'hex') AS bits
FROM graph_slice_turns(turn(4)) ORDER BY turn_id;
SELECT count(*), bool_and(priority = (weight::text::real + salience * salience_weight) * (ARRAY[1, decay, decay * decay])[1 + distance]) AS same
FROM (VALUES ('default'::slice_policy, 0.9::real, 0.3::real), ('focused', 0.8, 0.5), ('{"distance_decay": 1}', 1, 0.3), ('{"distance_decay": 0}', 0, 0.3),
             ('{"phase_weights": {"planning": -1e6}}', 0.9, 0.3)) AS v (policy, decay, salience_weight),
     graph_slice_turns(turn(4), policy) AS s, jsonb_extract_path(policy::jsonb, 'phase_weights', s.phase) AS weight;

SELECT graph_kernel_version() = extversion AS same_version FROM pg_extension WHERE extname = 'graph_kernel';
SELECT graph_kernel_version() ~ '^\d+\.\d+\.\d+$' AS three_numbers;

-- Content as it is hashed: line ends LF, white space of both ends gone, the rest untouched.
SELECT encode(convert_to(graph_normalize_text(content), 'UTF8'), 'escape') AS normal, left(graph_content_hash(content), 16) AS hash
FROM (VALUES (''), ('Hello World'), (E'  Hello World  \n'), (E'a\r\nb\rc'), (E'\u00A0x\u00A0'), (E'\u3000x\u2003'), (E'\u0085x\u000B\u000C'),
             (E'\uFEFFx'), (E'\u200Bx'), (E'x\u2028'), (E'\u001Cx'), (E'e\u0301'), ('é'), (E'\r\r\n'), ('turn one')) AS v (content);
