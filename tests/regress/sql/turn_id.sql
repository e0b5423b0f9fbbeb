-- Promise: graph_turn_id gives the published ids, never raises, and an index over it serves a join, under row security too.
SELECT graph_turn_id('msg_123'), graph_turn_id(''), graph_turn_id('42') = graph_turn_id(42) AS number_is_text;
SELECT graph_turn_id('00000000-0000-4000-8000-0000000000AF') AS itself, graph_turn_id('{00000000-0000-4000-8000-0000000000af}') AS braces,
       graph_turn_id('000000000000400080000000000000af') AS simple;
SELECT graph_turn_id((-9223372036854775808)::bigint) = graph_turn_id('-9223372036854775808') AS least;
-- Parts are that of the joined text.
SELECT graph_turn_id('msg', '_', '123') = graph_turn_id('msg_123') AS joined, graph_turn_id('00000000-0000-4000-', '8000-0000000000af') AS spelt,
       graph_turn_id(VARIADIC '{}'::text[]) = graph_turn_id('') AS none, graph_turn_id('a', NULL) AS with_null, graph_turn_id(VARIADIC NULL::text[]) AS null,
       graph_turn_id(NULL::text) AS null_text, graph_turn_id(NULL::bigint) AS null_number;
SELECT graph_turn_id(VARIADIC '{{a,b},{c,d}}'::text[]) = graph_turn_id('abcd') AS two_dimensions;
-- As long as a text can be.
SELECT graph_turn_id(repeat('x', 100000000)) = graph_turn_id(repeat('x', 50000000), repeat('x', 50000000)) AS long;
SELECT graph_turn_id(VARIADIC array_fill(''::text, ARRAY[3000000])) = graph_turn_id('') AS very_many_parts;
SELECT oid::regprocedure AS function, provolatile, proisstrict, proparallel, proleakproof, proconfig IS NULL AS no_settings
FROM pg_proc WHERE proname = 'graph_turn_id' ORDER BY oid::regprocedure::text COLLATE "C";
-- An index over it serves a join with a slice, also where row security applies.
CREATE TABLE message (id text PRIMARY KEY, owner name DEFAULT current_user);
INSERT INTO message SELECT 'msg_' || n FROM generate_series(1, 2000) AS n;
CREATE UNIQUE INDEX ON message (graph_turn_id(id));
ANALYZE message;
CREATE ROLE regress_messages;
GRANT SELECT ON message TO regress_messages;
ALTER TABLE message ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON message USING (length(owner) > 0);
SET ROLE regress_messages;
EXPLAIN (COSTS OFF) SELECT * FROM message WHERE graph_turn_id(id) = '342df4dc-b632-5f78-b687-838a8c522b5f';
SELECT id FROM message WHERE graph_turn_id(id) = '342df4dc-b632-5f78-b687-838a8c522b5f';
RESET ROLE;
DROP TABLE message;
DROP ROLE regress_messages;
