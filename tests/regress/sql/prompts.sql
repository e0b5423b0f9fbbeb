-- Promise: a prompt can be kept as a signed document, checked, proven, and shown again with what became of its texts.
SELECT oid::regprocedure AS function, provolatile, proparallel, proretset, pg_get_function_result(oid) AS result
FROM pg_proc WHERE proname IN ('graph_messages_record', 'graph_messages_show') ORDER BY oid::regprocedure::text COLLATE "C";
\pset null '(null)'
CREATE TEMP TABLE before AS SELECT * FROM memory_turns;
SELECT graph_kernel.bind_tables('memory_turns', 'memory_turn_edges', columns => '{"turns": {"payload": "payload"}}') IS NOT NULL AS bound;
UPDATE memory_turns SET payload = '{"id": "call-1", "n": [1.50, null]}' WHERE id = turn(2);
UPDATE memory_turns SET content_text = NULL, content_hash = NULL WHERE id = turn(3);
CREATE TEMP TABLE kept AS
SELECT p.name, graph_messages_record(turn(5), p.name::slice_policy, encode(sha256('model'), 'hex')) AS record FROM (VALUES ('default'), ('chat')) AS p (name);
-- The keys in their order, and the messages in that of graph_messages.
SELECT name, (SELECT string_agg(key, ' ' ORDER BY n) FROM json_object_keys(record) WITH ORDINALITY AS k (key, n)) AS keys,
       (SELECT string_agg(key, ' ' ORDER BY n) FROM json_object_keys(record #> '{messages,0}') WITH ORDINALITY AS k (key, n)) AS of_message
FROM kept ORDER BY 1;
SELECT k.name, m.n, m.part, m.role, turn_number(m.turn_id) AS turn, r ->> 'turn_id' = m.turn_id::text AND r ->> 'part' = m.part AND r ->> 'role' = m.role AS same,
       (r ->> 'created_at')::bigint = extract(epoch FROM m.created_at) * 1000000 AS time, (r ->> 'tokens')::int = m.tokens AS tokens,
       r ->> 'content' IS NOT DISTINCT FROM encode(sha256(convert_to(m.content, 'UTF8')), 'hex') AS content,
       r ->> 'payload' IS NOT DISTINCT FROM encode(sha256(convert_to(m.payload::text, 'UTF8')), 'hex') AS payload
FROM kept AS k, graph_messages(turn(5), k.name::slice_policy) AS m, LATERAL (SELECT k.record #> ARRAY['messages', (m.n - 1)::text] AS r) AS r ORDER BY 1, 2;
SELECT name, record ->> 'v' AS v, record ->> 'context' = encode(sha256('model'), 'hex') AS context, record ->> 'digest' ~ '^[0-9a-f]{64}$' AS digest,
       split_part(record ->> 'token', '.', 2) = record #>> '{slice,attestation,kid}' AS kid, record ->> 'token' ~ '^gkp1\.[^.]+\.[0-9a-f]{64}$' AS token,
       (record -> 'slice')::text = graph_slice(turn(5), name::slice_policy)::text AS slice
FROM kept ORDER BY 1;
SELECT v.* FROM kept, graph_verify_explain(record) AS v (check_name, ok, detail) WHERE name = 'chat' AND check_name ~ 'message|prompt' AND check_name <> 'prompt_digest';
-- Rewritten on the way it is the same record; another order, another hash, another context is not what was signed.
SELECT what, v.valid, v.reason FROM (SELECT record, record::jsonb AS j FROM kept WHERE name = 'chat') AS k,
    LATERAL (VALUES (1, 'record', k.record), (2, 'jsonb', k.j::json), (3, 'its slice', k.record -> 'slice'),
        (4, 'order', jsonb_set(jsonb_set(k.j, '{messages,0}', k.j #> '{messages,1}'), '{messages,1}', k.j #> '{messages,0}')::json),
        (5, 'left out', (k.j #- '{messages,0}')::json), (6, 'hash', jsonb_set(k.j, '{messages,0,content}', k.j #> '{messages,1,content}')::json),
        (7, 'context', jsonb_set(k.j, '{context}', 'null')::json), (8, 'token', jsonb_set(k.j, '{token}', 'null')::json),
        (9, 'of another', jsonb_set(k.j, '{slice}', (SELECT (o.record -> 'slice')::jsonb FROM kept AS o WHERE o.name = 'default'))::json),
        (10, 'key', (k.j - 'context')::json), (11, 'keys', (k.j || '{"extra": 1}')::json), (12, 'null', NULL)) AS e (n, what, document),
    graph_verify(document) AS v ORDER BY n;
SELECT n, code, detail, message, hint FROM (VALUES (1, 'context => '''''), (2, 'context => upper(repeat(''ab'', 32))'), (3, 'policy => NULL'), (4, 'context => NULL'))
    AS v (n, argument), test_error(format('SELECT graph_messages_record(turn(5), %s)', argument)) ORDER BY n;
-- A proof is of one or the other.
CREATE TEMP TABLE proven AS SELECT record, graph_proof(record) AS proof, public_key FROM kept, graph_kernel.proof_keys WHERE name = 'chat' AND state = 'active';
SELECT s ->> 'predicateType' AS predicate, s #>> '{subject,0,name}' = 'prompt/' || (record ->> 'digest') AS name,
       s #>> '{subject,0,digest,sha256}' = encode(sha256(convert_to(record::text, 'UTF8')), 'hex') AS digest,
       s #> '{predicate,messages}' AS messages, (s #>> '{predicate,tokens}')::int = (SELECT sum(tokens) FROM graph_messages(turn(5))) AS tokens
FROM proven, LATERAL (SELECT convert_from(decode(proof ->> 'payload', 'base64'), 'UTF8')::json AS s) AS t;
SELECT what, v.valid, v.reason FROM proven AS p, LATERAL (VALUES (1, 'record', p.record, p.proof), (2, 'jsonb', p.record::jsonb::json, p.proof),
        (3, 'slice for record', p.record -> 'slice', p.proof), (4, 'record for slice', p.record, graph_proof(p.record -> 'slice')),
        (5, 'slice', p.record -> 'slice', graph_proof(p.record -> 'slice'))) AS e (n, what, document, proof),
    graph_verify_proof(document, e.proof, public_key) AS v ORDER BY n;
-- A payload may be nested deeper than what is read of it.
UPDATE memory_turns SET payload = (repeat('[', 200) || repeat(']', 200))::jsonb WHERE id = turn(2);
CREATE TEMP TABLE deep AS SELECT graph_messages_record(turn(5)) AS record;
SELECT record #>> '{messages,1,payload}' = encode(sha256(convert_to(repeat('[', 200) || repeat(']', 200), 'UTF8')), 'hex') AS payload,
       graph_messages_json(record) #> '{messages,1}' AS message FROM deep;
UPDATE memory_turns SET payload = (repeat('[', 201) || repeat(']', 201))::jsonb WHERE id = turn(2);
SELECT m.n, m.state FROM deep, graph_messages_show(record) AS m WHERE m.n = 2;
DROP TABLE deep;
UPDATE memory_turns SET payload = '{"id": "call-1", "n": [1.50, null]}' WHERE id = turn(2);
-- As providers take it: what was recorded, whoever said it and when, or an error.
SELECT format, graph_messages_json(record, format) FROM kept, unnest(ARRAY['openai', 'responses', 'anthropic', 'plain']) AS f (format) WHERE name = 'chat';
SELECT n, code, detail, message, hint FROM (VALUES (1, 'record -> ''slice'''), (2, '''{}'''), (3, '(record::jsonb #- ''{messages,0}'')::json'), (4, 'record, ''OpenAI'''),
    (5, 'record, options => ''{"open_calls": "drop"}'''), (6, 'record, options => ''[]'''), (7, 'record, NULL'), (8, 'record, options => ''{"open_calls": "omit"}'''))
    AS v (n, arguments), test_error(format('SELECT graph_messages_json(%s) FROM kept WHERE name = ''chat''', arguments)) ORDER BY n;
BEGIN;
UPDATE memory_turns SET role = 'tool', created_at = created_at + interval '1 day' WHERE id = turn(5);
SELECT graph_messages_json(record, 'plain') #> '{messages,-1}' AS last FROM kept WHERE name = 'chat';
UPDATE memory_turns SET content_text = content_text || '.' WHERE id = turn(5);
SELECT code, detail, message, hint FROM test_error('SELECT graph_messages_json(record) FROM kept WHERE name = ''chat''');
DELETE FROM memory_turn_edges WHERE turn(5) IN (parent_turn_id, child_turn_id);
DELETE FROM memory_turns WHERE id = turn(5);
SELECT code, detail, message, hint FROM test_error('SELECT graph_messages_json(record) FROM kept WHERE name = ''chat''');
ROLLBACK;
-- Shown again: what stands there now, and whether what somebody has kept is what was shown.
PREPARE shown AS SELECT m.n, turn_number(m.turn_id) AS turn, m.part, m.role, m.state, m.content, m.payload, m.matches FROM kept, graph_messages_show(record) AS m WHERE name = 'chat';
EXECUTE shown;
SELECT m.n, m.matches FROM kept, graph_messages_show(record, ARRAY['turn one', 'turn two', '', 'turn five']) AS m WHERE name = 'chat';
SELECT m.n, m.matches FROM kept, graph_messages_show(record, payloads => ARRAY[NULL, '{"n": [1.50, null], "id": "call-1"}', NULL, 'null']::jsonb[]) AS m WHERE name = 'chat';
UPDATE memory_turns SET content_text = 'turn one, edited' WHERE id = turn(1);
UPDATE memory_turns SET payload = '{"id": "call-1", "n": [1.5, null]}' WHERE id = turn(2);
DELETE FROM memory_turn_edges WHERE turn(3) IN (parent_turn_id, child_turn_id);
DELETE FROM memory_turns WHERE id = turn(3);
EXECUTE shown;
UPDATE memory_turns SET content_text = 'turn one' WHERE id = turn(1);
EXECUTE shown;
SELECT n, code, detail, message, hint FROM (VALUES (1, 'record, ARRAY[''turn one'']'), (2, 'record, payloads => ''{}'''), (3, 'record -> ''slice'''), (4, '''{}'''), (5, 'NULL'),
    (6, '(record::jsonb #- ''{messages,0}'')::json'), (7, 'record, ARRAY[repeat(''x'', 70000000), NULL, NULL, NULL, NULL]'),
    -- Texts are not looked at before the record and their number.
    (8, '''{}'', ARRAY[repeat(''x'', 70000000)]'), (9, 'record, array_fill(NULL::text, ARRAY[1000000])')) AS v (n, arguments), test_error(format('SELECT m.* FROM kept, graph_messages_show(%s) AS m', arguments)) ORDER BY n;
-- Uncommitted state is not attested, and not shown.
BEGIN;
UPDATE memory_turns SET content_text = 'another' WHERE id = turn(1);
SELECT r -> 'token' AS token, v.reason FROM graph_messages_record(turn(5)) AS r, graph_verify(r) AS v;
SELECT code, detail, message FROM test_error('SELECT m.* FROM graph_messages_record(turn(5)) AS r, graph_messages_show(r) AS m');
ROLLBACK;
-- Promotion takes slices alone.
CREATE TABLE promoted (slice json, turn uuid);
CREATE CONSTRAINT TRIGGER admissible AFTER INSERT OR UPDATE ON promoted NOT DEFERRABLE FOR EACH ROW EXECUTE FUNCTION graph_require_admissible('slice', 'turn');
SELECT n, code, detail FROM (VALUES (1, 'record'), (2, 'record -> ''slice''')) AS v (n, document),
    test_error(format('INSERT INTO promoted SELECT %s, turn(1) FROM kept WHERE name = ''chat''', document)) ORDER BY n;
DROP TABLE promoted;
-- As it was.
SELECT graph_kernel.unbind_tables();
INSERT INTO memory_turns SELECT * FROM before WHERE id = turn(3);
UPDATE memory_turns AS t SET content_text = b.content_text, content_hash = b.content_hash, payload = b.payload FROM before AS b WHERE b.id = t.id;
INSERT INTO memory_turn_edges VALUES (turn(2), turn(3), 'reply'), (turn(3), turn(5), 'reply');
SELECT slice_id(2);
