-- Promise: a document can be kept in few bytes, and comes back to the byte; other bytes are an error.
SELECT oid::regprocedure AS function, provolatile, proparallel, proisstrict, proretset FROM pg_proc
WHERE proname IN ('graph_document_bytes', 'graph_document_json', 'graph_export_from_published') ORDER BY oid::regprocedure::text COLLATE "C";
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
-- A beginning of the bytes is not a document.
SELECT count(*) > 30 AS beginnings, count(DISTINCT code) AS codes, min(code) AS code, min(detail) AS detail
FROM (SELECT graph_document_bytes(document) AS bytes FROM kept WHERE name = 'default' AND kind = 'slice') AS b, generate_series(length(bytes) - 1, 0, -13) AS kept_bytes,
     test_error(format('SELECT graph_document_json(%L)', substr(bytes, 1, kept_bytes)));
-- What the published crate and its service gave: an export with capitalised names in any order, and an answer that names turns by their ids.
CREATE FUNCTION pg_temp.capitalised(items jsonb) RETURNS jsonb LANGUAGE sql RETURN
    (SELECT jsonb_agg(item || (SELECT jsonb_object_agg(key, initcap(value)) FROM jsonb_each_text(item) WHERE key IN ('role', 'phase', 'edge_type')) ORDER BY n DESC)
     FROM jsonb_array_elements(items) WITH ORDINALITY AS i (item, n));
CREATE TEMP TABLE published AS
SELECT s AS slice, s::jsonb - 'attestation' || jsonb_build_object('turns', pg_temp.capitalised(s::jsonb -> 'turns'), 'edges', pg_temp.capitalised(s::jsonb -> 'edges')) AS export,
       graph_api_slice(jsonb_build_object('anchor_turn_id', turn(5))::json)::jsonb #- '{slice,edges}' AS answer
FROM graph_slice(turn(5)) AS s;
SELECT what, e::jsonb = jsonb_set(slice::jsonb, '{attestation}', 'null') AS same,
       (SELECT count(*) FROM graph_slice_diff(e, slice)) AS differences, (SELECT string_agg(status, ' ') FROM graph_replay(e, 'default')) AS replay,
       (SELECT reason FROM graph_verify(e)) AS reason, graph_is_admissible(e, turn(5)) AS admissible, length(graph_export_draw(e)) > 100 AS drawn,
       graph_document_json(graph_document_bytes(e))::text = e::text AS kept
FROM published, LATERAL (VALUES ('export', export::json), ('answer', answer::json), ('slice of an answer', (answer -> 'slice')::json), ('canonical', jsonb_set(slice::jsonb, '{attestation}', 'null')::json)) AS p (what, document),
     graph_export_from_published(document) AS e;
-- The locked schema has neither hashes nor tokens.
SELECT e ->> 'graph_snapshot_hash' = slice ->> 'graph_snapshot_hash' AS same_snapshot, e ->> 'admissibility_token' AS token, e #>> '{turns,0,content_hash}' AS content_hash,
       (SELECT count(*) FROM graph_slice_diff(e, slice) WHERE kind <> 'export') AS differences,
       (SELECT string_agg(status || ' ' || field, ', ') FROM graph_replay(e, 'default')) AS replay, (SELECT reason FROM graph_verify(e)) AS reason
FROM published, graph_export_from_published((export - 'graph_snapshot_hash' - 'admissibility_token' || jsonb_build_object('turns', (SELECT jsonb_agg(t - 'content_hash') FROM jsonb_array_elements(export -> 'turns') AS t)))::json) AS e;
-- Other documents, and an export that is attested.
SELECT n, code, detail, message FROM (VALUES (1, '[]'), (2, '{"slices": []}'), (3, '{"slice_id": "0123456789abcdef", "admissibility_token": null}'), (4, '{"slice": null}')) AS v (n, document),
    test_error(format('SELECT graph_export_from_published(%L)', document)) ORDER BY n;
SELECT code, detail, message, hint FROM published, test_error(format('SELECT graph_export_from_published(%L)', slice));
-- An answer whose turns or edges are not what they were cannot be completed.
BEGIN;
DELETE FROM memory_turn_edges WHERE child_turn_id = turn(5);
SELECT code, detail, regexp_replace(message, '[0-9a-f]{16}', 'ID', 'g') AS message FROM published, test_error(format('SELECT graph_export_from_published(%L)', answer));
DELETE FROM memory_turns WHERE id = turn(5);
SELECT code, detail, message FROM published, test_error(format('SELECT graph_export_from_published(%L)', answer));
ROLLBACK;
BEGIN;
UPDATE memory_turns SET salience_score = 0.77 WHERE id = turn(5);
SELECT status, replace(field, turn(5)::text, 'turn 5') AS field FROM published, graph_replay(graph_export_from_published(answer::json), 'default') ORDER BY 2;
ROLLBACK;
