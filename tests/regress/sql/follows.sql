-- Promise: tables without a parent column are a graph by what their turns follow: the row before, in the session, by the
-- order. Where all rows are visible and none was deleted, slices are those of a table whose parent column is filled in.
CREATE SCHEMA follows;
CREATE DOMAIN follows.session AS varchar(40);
CREATE TABLE follows.messages (
    id bigint PRIMARY KEY, tid uuid NOT NULL UNIQUE, session_id text, v follows.session, u uuid, k integer, role text,
    at timestamptz, ts timestamp, day date, num numeric, f double precision, ulid text, parent uuid, result_of uuid, salience real, n integer
);
-- Sessions are interleaved; one row in eleven has no session, one in nine no time, one in five no n; times have ties.
INSERT INTO follows.messages
SELECT i, turn(i), s, s, graph_turn_id(s), length(s) + ascii(right(s, 1)), CASE i % 3 WHEN 0 THEN 'tool' WHEN 1 THEN 'user' ELSE 'assistant' END, at,
       at::timestamp, at::date, extract(epoch FROM at), extract(epoch FROM at), to_char(i * 7919 % 1009, 'FM0000'),
       NULL, CASE WHEN i % 3 = 0 AND i > 6 THEN turn(i - i * 31 % 6) END, i * 43 % 100 / 100.0,
       CASE WHEN i % 5 <> 2 THEN i % 3 END
FROM (
    SELECT i, CASE WHEN i % 11 <> 0 THEN 's' || i * i % 17 % 3 END AS s,
           CASE WHEN i % 9 <> 0 THEN timestamptz '2026-01-01 00:00:00+00' + i * 29 % 23 * interval '13 hours' END AS at
    FROM generate_series(1, 60) AS i
) AS m;

-- Binds the table as the graphs `follows` and `filled`, and says in how many slices they differ, over a fourth of the anchors.
-- The id is tid, or an expression; as the role, one row in six is hidden.
CREATE ROLE regress_follower;
GRANT USAGE ON SCHEMA follows TO regress_follower;
GRANT SELECT ON follows.messages TO regress_follower;
ALTER TABLE follows.messages ENABLE ROW LEVEL SECURITY;
CREATE POLICY visible ON follows.messages USING (id % 6 <> 4);
CREATE FUNCTION follows.differences(session text, keys text[], turn_id text DEFAULT 'tid', is_hidden boolean DEFAULT false) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    columns jsonb := jsonb_build_object('id', follows.mapped(turn_id), 'phase', null, 'content_text', null, 'created_at', 'at');
    order_by jsonb := (SELECT jsonb_agg(follows.mapped(k)) FROM unnest(keys) AS k);
    other jsonb := '{"parent": "result_of", "edge_type": "reference"}';
    follows jsonb := jsonb_build_object('session', follows.mapped(session), 'order', order_by, 'edge_type', 'reply');
    edges bigint; compared bigint := 0; different bigint := 0; anchors uuid[]; slices text[][]; policy text;
BEGIN
    EXECUTE format('UPDATE follows.messages AS m SET parent = p.parent FROM (SELECT tid, CASE WHEN %1$s IS NOT NULL AND %2$s THEN'
                   ' lag(tid) OVER (PARTITION BY %1$s, %2$s ORDER BY %3$s, tid) END AS parent FROM follows.messages) AS p WHERE p.tid = m.tid',
                   session, (SELECT string_agg(format('(%s) IS NOT NULL', k), ' AND ') FROM unnest(keys || turn_id) AS k)
                   || CASE WHEN is_hidden THEN ' AND id % 6 <> 4' ELSE '' END, array_to_string(keys, ', '));
    PERFORM graph_kernel.bind_tables('follows.messages', name => 'follows', columns => jsonb_build_object('turns', columns
        || jsonb_build_object('parents', jsonb_build_array(other), 'follows', follows)));
    PERFORM graph_kernel.bind_tables('follows.messages', name => 'filled', columns => jsonb_build_object('turns', columns
        || jsonb_build_object('parents', jsonb_build_array(other, '{"parent": "parent", "edge_type": "reply"}'::jsonb))));
    SELECT count(parent) INTO edges FROM follows.messages;
    IF is_hidden THEN SET LOCAL ROLE regress_follower; END IF;
    EXECUTE format('SELECT array_agg(%1$s ORDER BY id) FROM follows.messages WHERE id %% 4 = 1 AND (%1$s) IS NOT NULL', turn_id) INTO anchors;
    FOREACH policy IN ARRAY ARRAY['default', '{"max_radius": 3, "max_nodes": 9}', '{"version": "slice_policy_v2", "max_radius": 4, "max_nodes": 12}'] LOOP
        PERFORM set_config('graph_kernel.graph', 'follows', true);
        slices := ARRAY(SELECT ARRAY[s.slice ->> 'slice_id', s.slice ->> 'edges'] FROM graph_slices(anchors, policy::slice_policy) AS s);
        PERFORM set_config('graph_kernel.graph', 'filled', true);
        SELECT different + count(*) FILTER (WHERE s.slice ->> 'slice_id' IS DISTINCT FROM slices[n][1] OR s.slice ->> 'edges' IS DISTINCT FROM slices[n][2]),
               compared + count(*) INTO different, compared
        FROM graph_slices(anchors, policy::slice_policy) WITH ORDINALITY AS s (anchor, slice, code, error, n);
    END LOOP;
    RESET ROLE;
    RETURN format('%s edges, %s slices, %s differ', edges, compared, different);
END $$;
CREATE FUNCTION follows.mapped(expression text) RETURNS jsonb LANGUAGE sql
RETURN CASE WHEN expression ~ '\W' THEN jsonb_build_object('expression', expression) ELSE to_jsonb(expression) END;
SET client_min_messages = warning;
SELECT s AS session, k AS keys, follows.differences(s, k)
FROM (VALUES
    (1, 'session_id', '{id}'::text[]), (2, 'session_id', '{at}'), (3, 'session_id', '{at,id}'), (4, 'session_id', '{ts,id}'),
    (5, 'session_id', '{day}'), (6, 'session_id', '{num}'), (7, 'session_id', '{f,num}'), (8, 'session_id', '{ulid}'),
    (9, 'session_id', '{tid}'), (10, 'v', '{id}'), (11, 'u', '{at}'), (12, 'k', '{id}'), (13, 'lower(session_id)', '{id}'),
    (14, 'session_id', '{- id}'), (15, 'session_id', '{"(id / 10)::text",role}'), (16, 'CASE WHEN k > 50 THEN v END', '{at,"id % 7"}')
) AS v (n, s, k) ORDER BY n;
-- Any of two keys and the id may be NULL: such a turn is passed over, also where an earlier key tells the order.
CREATE FUNCTION follows.of_nulls(keys text[]) RETURNS TABLE (turn_id text, is_hidden boolean, differences text) LANGUAGE sql AS $$
    SELECT i, h, follows.differences('session_id', keys, i, h)
    FROM (VALUES ('tid'), ('CASE WHEN id % 7 <> 3 THEN tid END')) AS i (i), (VALUES (false), (true)) AS h (h) ORDER BY i DESC, h
$$;
SELECT k AS keys, n.*
FROM (VALUES (1, '{day,n}'::text[]), (2, '{n,day}'), (3, '{ulid,"NULLIF(id % 7, 5)"}'), (4, '{id}'), (5, '{tid,n}')) AS v (n, k), follows.of_nulls(k) AS n
ORDER BY v.n;
-- No index changes that, whatever its order.
CREATE FUNCTION follows.of_nulls_with(index_keys text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    differences text;
BEGIN
    EXECUTE format('CREATE INDEX nulls ON follows.messages (%s)', index_keys);
    SELECT string_agg(n.differences, '; ') INTO differences FROM follows.of_nulls('{day,n}') AS n WHERE n.is_hidden = (n.turn_id <> 'tid');
    DROP INDEX follows.nulls;
    RETURN differences;
END $$;
SELECT k AS index_keys, follows.of_nulls_with(k)
FROM (VALUES
    (1, 'session_id, day, n, tid'), (2, 'session_id DESC, day DESC, n DESC, tid DESC'), (3, 'session_id, day, n NULLS FIRST, tid'),
    (4, 'session_id, day, n'), (5, 'session_id, day'), (6, 'session_id, day, n, (CASE WHEN id % 7 <> 3 THEN tid END)')
) AS v (n, k) ORDER BY n;
-- The indexes of the hints, with them; the server's plans follow them.
SELECT follows.differences('session_id', '{at}');
SET graph_kernel.graph = 'follows';
SELECT hint FROM graph_check() WHERE check_name = 'index_follows';
CREATE INDEX ON follows.messages (session_id, at, tid);
CREATE INDEX ON follows.messages (result_of, tid);
CREATE INDEX ON follows.messages (session_id DESC, at); -- no scan is in the order of the probes
SELECT check_name, detail, hint FROM graph_check() WHERE check_name ~ 'index_(follows|turn_id|edge)';
ANALYZE follows.messages;
SELECT follows.differences('session_id', '{at}'), follows.differences('v', '{id}');
-- Where a unique index says that no two keys are the same, an index without the id is enough.
SELECT hint FROM graph_check() WHERE check_name = 'index_follows';
ALTER TABLE follows.messages DROP CONSTRAINT messages_pkey;
SELECT hint FROM graph_check() WHERE check_name = 'index_follows';
ALTER TABLE follows.messages ADD PRIMARY KEY (id) DEFERRABLE;
SELECT hint FROM graph_check() WHERE check_name = 'index_follows';
ALTER TABLE follows.messages DROP CONSTRAINT messages_pkey, ADD PRIMARY KEY (id);
SELECT hint FROM graph_check() WHERE check_name = 'index_follows';
SELECT graph_kernel.unbind_tables('filled'), graph_kernel.unbind_tables('follows');
RESET graph_kernel.graph;

-- Ties: of turns with the same keys, that with the lower id is before. NULL sessions and keys: no edge.
CREATE TABLE follows.few (id uuid PRIMARY KEY, session_id text, n integer, owner text DEFAULT 'all');
INSERT INTO follows.few VALUES (turn(1), 'a', 1), (turn(9), 'a', 2), (turn(3), 'a', 2), (turn(5), 'a', 2), (turn(6), 'a', 4), (turn(2), 'b', 3),
    (turn(4), NULL, 2), (turn(7), 'a', NULL), (turn(8), '', 1), (turn(10), '', 2);
SELECT graph_kernel.bind_tables('follows.few', columns => '{"turns": {"follows": {"session": "session_id", "order": ["n"], "edge_type": "branch"}}}') IS NOT NULL AS bound;
SELECT n, s.* FROM generate_series(1, 10) AS n, test_slice(n) AS s;
SELECT check_name, count FROM graph_check() WHERE count > 0 AND check_name NOT LIKE 'turns\_%';
-- A turn that comes later with a lower key is between those that were there; one that is deleted is passed over.
INSERT INTO follows.few VALUES (turn(11), 'a', 3);
SELECT selected, edges FROM test_slice(6);
DELETE FROM follows.few WHERE id IN (turn(3), turn(11));
SELECT selected, edges FROM test_slice(6);
-- Under row security the row before is the one that the caller may see.
GRANT SELECT ON follows.few TO regress_follower;
ALTER TABLE follows.few ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON follows.few USING (owner = 'all');
UPDATE follows.few SET owner = 'admin' WHERE id IN (turn(9), turn(5));
SELECT selected, edges FROM test_slice(6);
SET ROLE regress_follower;
SELECT selected, edges FROM test_slice(6);
SELECT selected, edges FROM test_slice(1);
SELECT code, detail FROM test_error('SELECT test_slice(5)');
RESET ROLE;
-- The binder reads what the turns are ordered by.
GRANT USAGE ON SCHEMA graph_kernel TO regress_follower;
GRANT EXECUTE ON FUNCTION graph_kernel.bind_tables(regclass, regclass, jsonb, text) TO regress_follower;
REVOKE SELECT ON follows.few FROM regress_follower;
GRANT SELECT (id, n) ON follows.few TO regress_follower;
SET ROLE regress_follower;
SELECT code, message, detail FROM test_error($$SELECT graph_kernel.bind_tables('follows.few', name => 'own', columns =>
    '{"turns": {"session_id": null, "follows": {"session": "session_id", "order": ["n"], "edge_type": "reply"}}}')$$);
RESET ROLE;
-- What is not a mapping of it.
CREATE TYPE follows.mood AS ENUM ('calm');
ALTER TABLE follows.few ADD mood follows.mood, ADD j jsonb, ADD c char(3);
SELECT given, e.* FROM unnest(ARRAY[
    '1', '{}', '[]', '{"session": "session_id", "order": [], "edge_type": "reply"}', '{"session": "session_id", "order": ["n"]}',
    '{"session": "session_id", "order": ["n", "id", "owner"], "edge_type": "reply"}', '{"session": "session_id", "order": "n", "edge_type": "reply"}',
    '{"session": "session_id", "order": ["n"], "edge_type": "nope"}', '{"session": null, "order": ["n"], "edge_type": "reply"}',
    '{"session": "session_id", "order": [null], "edge_type": "reply"}', '{"session": "session_id", "order": ["nope"], "edge_type": "reply"}',
    '{"session": "session_id", "order": ["n"], "edge_type": "reply", "more": 1}', '{"session": "mood", "order": ["n"], "edge_type": "reply"}',
    '{"session": "c", "order": ["n"], "edge_type": "reply"}', '{"session": "session_id", "order": ["n", "j"], "edge_type": "reply"}',
    '{"session": "session_id", "order": ["mood"], "edge_type": "reply"}', '{"session": true, "order": ["n"], "edge_type": "reply"}',
    '{"session": {"expression": "pg_backend_pid()::text"}, "order": ["n"], "edge_type": "reply"}',
    '{"session": "session_id", "order": [{"expression": "(j ->> ''at'')::timestamptz"}], "edge_type": "reply"}'
]) AS given, test_error(format('SELECT graph_kernel.bind_tables(''follows.few'', columns => %L)', format('{"turns": {"follows": %s}}', given))) AS e;
-- The binding stays by its names: a column that was renamed is missing, a dropped one too.
SELECT graph_kernel.bind_tables('follows.few', columns => '{"turns": {"session_id": null, "follows": {"session": "session_id", "order": ["n"], "edge_type": "branch"}}}') IS NOT NULL AS bound;
SELECT columns, tables IS NOT NULL AS tables FROM (SELECT resolved #> '{turns,follows}' AS columns, turns AS tables FROM graph_kernel.binding WHERE is_current) AS b;
ALTER TABLE follows.few RENAME n TO position;
SELECT * FROM test_error('SELECT graph_slice(turn(1))');
ALTER TABLE follows.few RENAME position TO n;
ALTER TABLE follows.few ALTER n TYPE text;
SELECT selected, edges FROM test_slice(6);
SELECT graph_kernel.unbind_tables();
-- Partitions: a row's session is in one of them or in several.
CREATE TABLE follows.parts (id bigint, session_id text, at timestamptz, parent bigint, PRIMARY KEY (id)) PARTITION BY HASH (id);
CREATE TABLE follows.parts_0 PARTITION OF follows.parts FOR VALUES WITH (MODULUS 3, REMAINDER 0);
CREATE TABLE follows.parts_1 PARTITION OF follows.parts FOR VALUES WITH (MODULUS 3, REMAINDER 1);
CREATE TABLE follows.parts_2 PARTITION OF follows.parts FOR VALUES WITH (MODULUS 3, REMAINDER 2);
INSERT INTO follows.parts SELECT i, 's' || i % 4 FROM generate_series(1, 100) AS i;
SELECT graph_kernel.bind_tables('follows.parts', columns => '{"turns": {"id": {"expression": "graph_turn_id(id)"},
    "follows": {"session": "session_id", "order": ["id"], "edge_type": "reply"}}}') IS NOT NULL AS bound;
SELECT hint FROM graph_check() WHERE check_name = 'index_follows';
CREATE INDEX ON follows.parts (session_id, id);
SELECT bool_and(c.ok) FROM graph_check() AS c WHERE check_name = 'index_follows';
SELECT count(*), bool_and(p.id = c.id - 4 AND e.edge_type = 'reply') AS ok
FROM graph_slice_edges(graph_turn_id(49), '{"max_radius": 30}') AS e
JOIN follows.parts AS p ON graph_turn_id(p.id) = e.parent JOIN follows.parts AS c ON graph_turn_id(c.id) = e.child;
SELECT graph_kernel.unbind_tables();
-- Each way a probe reads a row or two of an index, wherever in the session the turn is, and in the table the session.
CREATE TABLE follows.many (id bigint PRIMARY KEY, session_id text, tid uuid);
INSERT INTO follows.many SELECT i, CASE WHEN i <= 15000 THEN 's' || i / 10 ELSE 's700x' END, turn(i) FROM generate_series(1, 20000) AS i;
CREATE UNIQUE INDEX ON follows.many (tid);
CREATE FUNCTION follows.blocks_read() RETURNS bigint LANGUAGE sql VOLATILE AS $$
    SELECT sum(pg_stat_get_xact_blocks_fetched(oid))
    FROM (SELECT 'follows.many'::regclass UNION ALL SELECT indexrelid FROM pg_index WHERE indrelid = 'follows.many'::regclass) AS r (oid)
$$;
CREATE FUNCTION follows.blocks_read_for(anchor integer) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    turns integer; blocks bigint := follows.blocks_read();
BEGIN
    turns := json_array_length(graph_slice(turn(anchor)) -> 'turns');
    blocks := follows.blocks_read() - blocks;
    RETURN format('%s turns, %s blocks', turns, CASE WHEN blocks < 20 * turns THEN 'few' ELSE blocks::text END);
END $$;
SELECT graph_kernel.bind_tables('follows.many', columns => '{"turns": {"id": "tid", "follows": {"session": "session_id", "order": ["id"], "edge_type": "reply"}}}') IS NOT NULL AS bound;
CREATE INDEX many_follows ON follows.many (session_id, id);
SELECT check_name, hint FROM graph_check() WHERE check_name LIKE 'index%';
SELECT follows.blocks_read_for(7005), follows.blocks_read_for(15500);
ANALYZE follows.many;
SELECT follows.blocks_read_for(7005), follows.blocks_read_for(15500);
CREATE INDEX ON follows.many (session_id, id, tid);
DROP INDEX follows.many_follows;
ALTER TABLE follows.many DROP CONSTRAINT many_pkey;
SELECT check_name, hint FROM graph_check() WHERE check_name LIKE 'index%';
SELECT follows.blocks_read_for(7005), follows.blocks_read_for(15500);
SELECT graph_kernel.unbind_tables();
RESET client_min_messages;
DROP OWNED BY regress_follower;
DROP ROLE regress_follower;
SET client_min_messages = warning;
DROP SCHEMA follows CASCADE;
