-- See documents.sh. Slices at 100 turns, by their hashes, of three policies; without hashes of contents and with them.
SET client_min_messages = warning;
VACUUM ANALYZE memory_turns, memory_turn_edges;

CREATE FUNCTION median_of(numeric[]) RETURNS numeric LANGUAGE sql IMMUTABLE RETURN
    (SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY v)::numeric FROM unnest($1) AS v);
CREATE AGGREGATE median(numeric) (SFUNC = array_append, STYPE = numeric[], INITCOND = '{}', FINALFUNC = median_of);

CREATE TABLE taken (hashes boolean, kind text, policy text, document json);
CREATE PROCEDURE take(hashes boolean) LANGUAGE sql AS $$
    INSERT INTO taken
    SELECT $1, k.kind, p.policy,
           CASE k.kind WHEN 'slice' THEN graph_slice(a.id, p.policy::slice_policy)
                       ELSE graph_messages_record(a.id, p.policy::slice_policy) END
    FROM (SELECT id FROM memory_turns ORDER BY md5(id::text) LIMIT 100) AS a,
         (VALUES ('default'), ('lineage'), ('chat')) AS p (policy), (VALUES ('slice'), ('record')) AS k (kind)
$$;
-- Its trigger would write them again.
ALTER TABLE memory_turns DISABLE TRIGGER USER;
UPDATE memory_turns SET content_hash = NULL;
CALL take(false);
-- Each its own, so that none is found twice.
UPDATE memory_turns SET content_hash = encode(sha256(convert_to(id::text, 'UTF8')), 'hex');
CALL take(true);
CREATE TABLE kept (
    n int, hashes boolean, kind text, policy text, document text COMPRESSION pglz, packed bytea,
    in_lz4 text COMPRESSION lz4, in_pglz text COMPRESSION pglz);
ALTER TABLE kept ALTER packed SET STORAGE EXTERNAL;
INSERT INTO kept (n, hashes, kind, policy, document, packed, in_lz4, in_pglz)
SELECT row_number() OVER (ORDER BY hashes, kind, policy), hashes, kind, policy, document,
       graph_document_bytes(document), document, document
FROM taken;
SELECT bool_and(graph_document_json(packed)::text = document) AS same FROM kept;
\timing on
SELECT count(graph_document_bytes(document)), sum(length(document::text)) AS json_bytes
  FROM taken WHERE hashes AND kind = 'slice';
SELECT count(graph_document_json(packed)) FROM kept WHERE hashes AND kind = 'slice';
