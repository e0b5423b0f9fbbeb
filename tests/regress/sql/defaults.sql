-- Promise: rows never raise; every NULL and odd value takes its documented default.
SET client_min_messages = warning; -- no notices of missing indexes
CREATE SCHEMA odd;
CREATE TABLE odd.turns (LIKE public.memory_turns);
ALTER TABLE odd.turns ALTER created_at DROP DEFAULT, ALTER trajectory_complexity TYPE double precision,
    ALTER salience_score TYPE double precision, ALTER trajectory_depth TYPE bigint, ADD PRIMARY KEY (id);
CREATE TABLE odd.edges (parent_turn_id uuid, child_turn_id uuid, edge_type text);
SELECT graph_kernel.bind_tables('odd.turns', 'odd.edges') IS NOT NULL AS bound;
CREATE FUNCTION pg_temp.set_odd(n bigint, field text, value text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('INSERT INTO odd.turns (id, %I) VALUES (turn(%s), %L)', field, n, value);
END $$;

-- A turn of NULLs: the anchor's whole export.
INSERT INTO odd.turns (id) VALUES (turn(1));
SELECT graph_slice(turn(1), '{"max_nodes": 1}') -> 'turns' AS turns;

-- One odd value a turn; all are neighbours of turn 1, so that one slice reads them all.
\pset null '(null)'
CREATE TEMP TABLE odd_value (n bigint GENERATED ALWAYS AS IDENTITY (START 2), field text, value text);
INSERT INTO odd_value (field, value) VALUES
    ('role', 'ASSISTANT'), ('role', 'Tool'), ('role', ' system'), ('role', 'robot'), ('role', ''), ('role', 'aſſistant'),
    ('trajectory_phase', 'SYNTHESIS'), ('trajectory_phase', 'Planning '), ('trajectory_phase', 'inquiry'), ('trajectory_phase', ''),
    ('salience_score', 'NaN'), ('salience_score', 'Infinity'), ('salience_score', '-Infinity'), ('salience_score', '1.5'), ('salience_score', '-0.1'),
    ('salience_score', '-0'), ('salience_score', '1e-45'), ('salience_score', '1e-300'), ('salience_score', '1e300'), ('salience_score', '0.1'),
    ('trajectory_depth', '-5'), ('trajectory_depth', '2147483648'), ('trajectory_depth', '9223372036854775807'), ('trajectory_depth', '2147483647'),
    ('trajectory_sibling_order', '-1'), ('trajectory_sibling_order', '2147483647'),
    ('trajectory_homogeneity', 'NaN'), ('trajectory_homogeneity', '1.5'), ('trajectory_homogeneity', '-0'), ('trajectory_homogeneity', '1e-45'),
    ('trajectory_temporal', '-1'), ('trajectory_temporal', 'Infinity'),
    ('trajectory_complexity', 'NaN'), ('trajectory_complexity', 'Infinity'), ('trajectory_complexity', '-Infinity'), ('trajectory_complexity', '-2.5'),
    ('trajectory_complexity', '-0'), ('trajectory_complexity', '1e39'), ('trajectory_complexity', '3.4e38'), ('trajectory_complexity', '1e-46'),
    ('created_at', 'infinity'), ('created_at', '-infinity'), ('created_at', '1970-01-01 00:00:00+00'), ('created_at', '1969-12-31 23:59:59.5+00'),
    ('created_at', '2024-01-01 00:00:00.999999+00'), ('created_at', '4714-11-24 00:00:00+00 BC'), ('created_at', '294276-12-31 23:59:59.999999+00'),
    ('content_hash', repeat('a', 64)), ('content_hash', repeat('A', 64)), ('content_hash', repeat('a', 63)), ('content_hash', repeat('g', 64)),
    ('content_hash', repeat('é', 32)), ('content_hash', ''),
    ('session_id', ''), ('session_id', E'quote " backslash \\ newline \n tab \t bell \007'), ('session_id', 'Ωμέγα'), ('session_id', '{"json": 1}');
SELECT count(pg_temp.set_odd(n, field, value)) AS rows FROM odd_value;
INSERT INTO odd.edges SELECT turn(1), turn(n), 'reply' FROM odd_value;
-- What is exported where it differs from a turn of NULLs: nothing where the default stands.
WITH exported AS MATERIALIZED (
    SELECT t.value ->> 'id' AS id, f.key, f.value
    FROM json_array_elements(graph_slice(turn(1)) -> 'turns') AS t, json_each(t.value) AS f
)
SELECT v.field, left(v.value, 30) AS stored, e.key AS exported_field, left(e.value::text, 50) AS exported
FROM odd_value AS v
LEFT JOIN (exported AS e JOIN exported AS nulls ON nulls.id = turn(1)::text AND nulls.key = e.key
                                                AND nulls.value::text <> e.value::text)
    ON e.id = turn(v.n)::text AND e.key <> 'id'
ORDER BY v.n;
-- The same by column: scores use what is exported.
SELECT v.value AS salience, t.salience, t.priority FROM odd_value AS v JOIN graph_slice_turns(turn(1)) AS t ON t.turn_id = turn(v.n)
WHERE v.field = 'salience_score' ORDER BY v.n;

-- Sessions: 4096 bytes are kept, longer names are hashed; compressed and stored outside of the row, too.
TRUNCATE odd.turns, odd.edges;
INSERT INTO odd.turns (id, session_id)
SELECT turn(n), session_id
FROM (VALUES (1, repeat('x', 4096)), (2, repeat('x', 4097)), (3, repeat('é', 2049)), (4, repeat('long', 1000000)),
             (5, (SELECT string_agg(md5(i::text), '') FROM generate_series(1, 10000) AS i)), (6, U&'\+01F701')) AS v (n, session_id);
SELECT n, left(t.session_id, 10) = left(o.session_id, 10) AS kept, octet_length(t.session_id) AS bytes,
       t.session_id = 'sha256:' || encode(sha256(convert_to(o.session_id, 'UTF8')), 'hex') AS hashed
FROM generate_series(1, 6) AS n, graph_slice_turns(turn(n)) AS t JOIN odd.turns AS o ON o.id = t.turn_id ORDER BY n;

-- Edges: NULL and unknown types are default; NULL ends are not edges.
TRUNCATE odd.turns, odd.edges;
INSERT INTO odd.turns (id) SELECT turn(n) FROM generate_series(1, 8) AS n;
INSERT INTO odd.edges VALUES (turn(1), turn(2), NULL), (turn(1), turn(3), ''), (turn(1), turn(4), 'BRANCH'), (turn(1), turn(5), 'reply '),
    (turn(1), turn(6), 'odd'), (turn(1), turn(7), 'Reference'), (NULL, turn(1), 'reply'), (turn(1), NULL, 'reply'), (NULL, NULL, NULL),
    (NULL, turn(8), 'reply');
SELECT * FROM test_slice(1);
SELECT * FROM test_slice(8);
-- A turn without an id is not a turn.
ALTER TABLE odd.turns DROP CONSTRAINT turns_pkey, ALTER id DROP NOT NULL;
CREATE UNIQUE INDEX ON odd.turns (id);
INSERT INTO odd.turns (session_id) VALUES ('nameless'), ('nameless');
SELECT s.selected FROM test_slice(1) AS s;

SELECT graph_kernel.unbind_tables();
SET client_min_messages = warning;
DROP SCHEMA odd CASCADE;
