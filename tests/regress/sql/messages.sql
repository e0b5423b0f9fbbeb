-- Promise: graph_message_text and graph_message_role read messages in JSON, never raise, and serve mappings and indexes.
SELECT oid::regprocedure AS function, provolatile, proisstrict, proparallel, proleakproof, proconfig IS NULL AS no_settings
FROM pg_proc WHERE proname LIKE 'graph_message\_%' ORDER BY oid::regprocedure::text COLLATE "C";
\pset null '(null)'
-- A text that is not JSON is itself the text, JSON without text has none.
SELECT n, m, graph_message_text(m) AS text, graph_message_role(m) AS role
FROM unnest(ARRAY['Hello', '', NULL, '{"answer": 42}', '[1, 2]', '42', 'null', '""', '[]', '"a\u0000b"', '"a\ud800b"', '{"role": "user"',
                  '{"role": "user", "content": "Hi"}', '{"role": "model", "parts": [{"text": "a"}, {"inlineData": {"mimeType": "image/png"}}]}',
                  '{"type": "ai", "data": {"content": null}}']) WITH ORDINALITY AS messages (m, n) ORDER BY n;
-- A column of json is cast, one of jsonb is not.
SELECT graph_message_text(m::text) AS of_json, graph_message_text(m::jsonb) AS of_jsonb, graph_message_role(m::jsonb) AS role
FROM (VALUES ('{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "file", "file": {"filename": "b.txt"}}]}'::json),
             ('"Hello"'::json)) AS messages (m);
-- As deep, as long and with as many values as a text can have.
SELECT length(graph_message_text(repeat('[', 1000000))) AS deep, length(graph_message_text('"' || repeat('x', 100000000) || '"')) AS long,
       graph_message_text('["a",' || repeat('0,', 1000000) || '{"type":"text","text":"b"}]') LIKE '["a",0,0%' AS many,
       length(graph_message_text('{"role":"user","content":"' || repeat('\n', 5000000) || '"}')) AS escapes;
-- A value that is compressed or stored out of line.
CREATE TABLE stored (n int, m text);
ALTER TABLE stored ALTER m SET STORAGE EXTERNAL;
INSERT INTO stored SELECT 1, repeat('not JSON ', 10000) UNION ALL SELECT 2, to_json(repeat('a string ', 10000))::text;
ALTER TABLE stored ALTER m SET STORAGE MAIN;
INSERT INTO stored SELECT n + 2, m FROM stored;
SELECT n, length(graph_message_text(m)) AS length, left(graph_message_text(m), 8) AS starts FROM stored ORDER BY n;
CREATE TABLE copied AS SELECT n, graph_message_text(m) AS t FROM stored;
DROP TABLE stored;
SELECT n, md5(t) = md5(repeat(CASE WHEN n % 2 = 1 THEN 'not JSON ' ELSE 'a string ' END, 10000)) AS is_whole FROM copied ORDER BY n;
DROP TABLE copied;
-- In a mapping, in an index, and in the hash of the content.
CREATE TABLE agent_messages (id bigint PRIMARY KEY, follows bigint, message jsonb);
INSERT INTO agent_messages VALUES
    (1, NULL, '{"role": "user", "content": [{"type": "text", "text": "What is this?"}, {"type": "image_url", "image_url": {"url": "data:"}}]}'),
    (2, 1, '{"role": "assistant", "content": null, "tool_calls": [{"id": "c"}]}'),
    (3, 2, '{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": "a cat"}]}'),
    (4, 3, '"A cat."');
CREATE UNIQUE INDEX ON agent_messages (graph_turn_id(id));
CREATE INDEX ON agent_messages (graph_turn_id(follows), graph_turn_id(id));
CREATE INDEX ON agent_messages (graph_message_role(message));
SELECT graph_kernel.bind_tables('agent_messages', name => 'agent', columns => $${"turns": {
         "id": {"expression": "graph_turn_id(id)"}, "session_id": null, "phase": null, "salience": null, "created_at": null,
         "role": {"expression": "graph_message_role(message)"},
         "content_text": {"expression": "graph_message_text(message)"},
         "content_hash": {"expression": "graph_content_hash(graph_message_text(message))"},
         "parents": [{"parent": {"expression": "graph_turn_id(follows)"}, "edge_type": "reply"}]}}$$) IS NOT NULL AS bound;
SET graph_kernel.graph = 'agent';
SELECT p.role, p.content, s.content_hash = graph_content_hash(p.content) AS hashed
FROM graph_messages(graph_turn_id(4)) AS p JOIN graph_slice_turns(graph_turn_id(4)) AS s USING (turn_id);
SELECT check_name, count FROM graph_check() WHERE NOT ok;
-- A message whose numbers are long has a text that nobody makes.
INSERT INTO agent_messages SELECT 5, 4, jsonb_build_object('role', 'user', 'content', jsonb_agg('1e131071'::jsonb)) FROM generate_series(1, 9000);
SELECT graph_message_text(message) AS text, graph_message_role(message) AS role FROM agent_messages WHERE id = 5;
SELECT p.role, p.content IS NULL AS has_no_text FROM graph_messages(graph_turn_id(5)) AS p WHERE p.turn_id = graph_turn_id(5);
SELECT count(*) FROM graph_kernel.list_turns();
SET enable_seqscan = off;
EXPLAIN (COSTS OFF) SELECT FROM agent_messages WHERE graph_message_role(message) = 'tool';
RESET enable_seqscan;
RESET graph_kernel.graph;
-- Where an expression is longer than a value may be, the error names what to look at.
SELECT graph_kernel.bind_tables('agent_messages', name => 'agent', columns => $${"turns": {
         "id": {"expression": "graph_turn_id(id)"}, "session_id": null, "phase": null, "salience": null, "created_at": null, "role": null,
         "content_text": {"expression": "repeat(message ->> 'role', 1000000000)"}, "content_hash": null,
         "parents": [{"parent": {"expression": "graph_turn_id(follows)"}, "edge_type": "reply"}]}}$$) IS NOT NULL AS bound;
SET graph_kernel.graph = 'agent';
SELECT * FROM test_error('SELECT * FROM graph_messages(graph_turn_id(5))');
RESET graph_kernel.graph;
SELECT graph_kernel.unbind_tables('agent');
DROP TABLE agent_messages;
-- A payload whose numbers are long has a text that nobody makes: the turn is named, and the error is ours.
SELECT graph_kernel.bind_tables('memory_turns', 'memory_turn_edges', columns => '{"turns": {"payload": "payload"}}', name => 'long') IS NOT NULL AS bound;
SET graph_kernel.graph = 'long';
BEGIN;
UPDATE memory_turns SET payload = (SELECT jsonb_agg('1e131071'::jsonb) FROM generate_series(1, 9000)) WHERE id = turn(2);
SELECT * FROM test_error('SELECT * FROM graph_messages(turn(2))');
ROLLBACK;
-- Nor is one many times as long as what is stored, which a reader would have to wait for.
SELECT n, graph_message_text(message) AS text, graph_message_role(message) AS role
FROM unnest('{5,20}'::int[]) AS n, LATERAL (SELECT jsonb_build_object('role', 'user', 'content', 'hi', 'n', jsonb_agg('1e131071'::jsonb)) FROM generate_series(1, n)) AS m (message);
-- Control characters are escaped in JSON, where each is of six bytes.
BEGIN;
UPDATE memory_turns SET content_text = repeat(chr(1), 12000000) WHERE id = turn(2);
SELECT * FROM test_error('SELECT * FROM graph_messages(turn(2))');
ROLLBACK;
RESET graph_kernel.graph;
SELECT graph_kernel.unbind_tables('long');
