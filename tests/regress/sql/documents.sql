-- Promise: a document can be kept in few bytes, and comes back to the byte; other bytes are an error.
SELECT oid::regprocedure AS function, provolatile, proparallel, proisstrict, proretset FROM pg_proc
WHERE proname IN ('graph_document_bytes', 'graph_document_json') ORDER BY oid::regprocedure::text COLLATE "C";
\pset null '(null)'
CREATE TEMP TABLE kept AS
SELECT p.name, d.kind, CASE d.kind WHEN 'slice' THEN graph_slice(turn(5), p.name::slice_policy) ELSE graph_messages_record(turn(5), p.name::slice_policy) END AS document
FROM (VALUES ('default'), ('chat')) AS p (name), (VALUES ('slice'), ('record')) AS d (kind);
SELECT name, kind, graph_document_json(bytes)::text = document::text AS same, graph_document_json(graph_document_bytes(document::jsonb::json))::text = document::text AS canonical,
       length(bytes) < length(document::text) * 0.35 AS small, substr(bytes, 1, 6) AS header, bytes = graph_document_bytes(document) AS deterministic,
       (SELECT reason FROM graph_verify(graph_document_json(bytes))) AS reason
FROM kept, graph_document_bytes(document) AS bytes ORDER BY 1, 2 DESC;
-- What does not verify comes back as it is: nothing is checked but the form.
SELECT graph_document_json(graph_document_bytes(changed))::text = changed::text AS same, (SELECT reason FROM graph_verify(graph_document_json(graph_document_bytes(changed)))) AS reason
FROM kept, LATERAL (SELECT replace(document::text, '"role":"user"', '"role":"tool"')::json AS changed) AS c WHERE name = 'default' ORDER BY kind DESC;
BEGIN;
UPDATE memory_turns SET salience_score = 0.6 WHERE id = turn(1);
SELECT graph_document_json(graph_document_bytes(s))::text = s::text AS same, s #>> '{attestation,status}' AS status FROM graph_slice(turn(2)) AS s;
ROLLBACK;
SELECT graph_document_bytes(NULL) AS bytes, graph_document_json(NULL) AS json;
-- What is not a document, and what are not its bytes.
SELECT n, code, detail, message, hint FROM (VALUES (1, '{}'), (2, '[]'), (3, '{"v":1}'), (4, '{"anchor_turn_id":"x","extra":1}'))
    AS v (n, document), test_error(format('SELECT graph_document_bytes(%L)', document)) ORDER BY n;
SELECT n, code, detail, message, hint FROM (VALUES (1, ''), (2, 'x89'), (3, 'x89474b44'), (4, 'x89474b440101'), (5, 'x89474b440102'), (6, 'x89474b440201'), (7, 'x7b7d'),
    -- A frame that announces 2⁶² bytes, one that is empty, one that holds 0x82 alone.
    (8, 'x89474b44010128b52ffde00000000000000040'), (9, 'x89474b44010128b52ffd2000010000'), (10, 'x89474b44010128b52ffd200109000082'))
    AS v (n, bytes), test_error(format('SELECT graph_document_json(%L)', CASE WHEN bytes <> '' THEN '\' || bytes ELSE '' END)) ORDER BY n;
-- Each byte is needed.
SELECT count(*) = max(length(bytes)) AS each, count(DISTINCT code) AS codes, min(code) AS code, min(detail) AS detail
FROM (SELECT graph_document_bytes(document) AS bytes FROM kept WHERE name = 'default' AND kind = 'slice') AS b, generate_series(0, length(bytes) - 1) AS kept_bytes,
     test_error(format('SELECT graph_document_json(%L)', substr(bytes, 1, kept_bytes)));
