-- Promise: deleted in the order of docs/erasure.md, a session leaves nothing in any table: no id, no name, no text, no hash of one, no
-- word, neither in the extension's own tables nor in what the server samples of them.
ALTER TABLE memory_turns ADD words tsvector GENERATED ALWAYS AS (to_tsvector('simple', coalesce(content_text, ''))) STORED, ADD embedding real[] DEFAULT '{1,2}';
SELECT graph_kernel.bind_tables('memory_turns', 'memory_turn_edges') IS NOT NULL AS bound;
INSERT INTO memory_turns (id, session_id, role, owner, content_text, content_hash, created_at)
SELECT turn(9000 + n), 'session-of-mallory', 'user', 'mallory', 'xyzzyword ' || n, graph_content_hash('xyzzyword ' || n), now() FROM generate_series(1, 4) AS n;
INSERT INTO memory_turn_edges VALUES (turn(9001), turn(9002), 'reply'), (turn(9002), turn(9003), 'reply'), (turn(5), turn(9001), 'branch');
CALL graph_kernel.refresh_words();
SELECT graph_kernel.bind_store(graph_kernel.create_slice_store('public')), graph_kernel.create_trace_table();
CREATE TABLE atoms (slice text, turns uuid[]);
CREATE CONSTRAINT TRIGGER admissible AFTER INSERT OR UPDATE ON atoms NOT DEFERRABLE FOR EACH ROW EXECUTE FUNCTION graph_require_admissible('ref=slice', 'turns');
ALTER TABLE atoms ENABLE ALWAYS TRIGGER admissible;
-- Of the session, of a neighbour whose slice reaches it, of one that it is pinned to without being there, and of one that it is nothing to.
INSERT INTO atoms SELECT graph_keep(graph_slice(turn(9002))), ARRAY[turn(9002), turn(9001)];
INSERT INTO atoms SELECT graph_keep(graph_slice(turn(5))), ARRAY[turn(5)];
INSERT INTO atoms SELECT graph_keep(graph_slice(turn(4), jsonb_build_object('version', 'slice_policy_v2', 'max_radius', 0, 'pins', jsonb_build_array(turn(9999), turn(9004))))), ARRAY[turn(4)];
INSERT INTO atoms SELECT graph_keep(graph_slice(turn(4), '{"max_radius": 0}')), ARRAY[turn(4)];
SELECT graph_keep(graph_messages_record(turn(9003))) IS NOT NULL AS record;
SELECT count(graph_trace(s.provenance)) AS traces FROM (SELECT (SELECT provenance FROM graph_search_slice('{1,2}', turn(a), limit_count => 9) WHERE rank = 1) FROM unnest('{9003,4}'::int[]) AS a) AS s;
SELECT count(graph_trace(provenance)) AS global FROM graph_search('{1,2}', filter => '{"owner": "mallory"}') WHERE rank = 1;
ANALYZE;

-- Every row of every table but the server's own, as text, and a document as what it says.
CREATE FUNCTION left_over() RETURNS TABLE (place text, rows bigint) LANGUAGE plpgsql AS $$
DECLARE
    pattern CONSTANT text := concat_ws('|', 'mallory', 'xyzzyword', '00000000-0000-0000-0000-00000000900', (SELECT string_agg(encode(sha256(convert_to('xyzzyword ' || n, 'UTF8')), 'hex'), '|') FROM generate_series(1, 4) AS n));
BEGIN
    FOR place IN SELECT c.oid::regclass FROM pg_class AS c WHERE c.relkind IN ('r', 'm') AND c.relnamespace::regnamespace::text !~ '^pg_|^information_schema' AND c.relname <> 'slice_store' LOOP
        EXECUTE format('SELECT count(*) FROM %s AS t WHERE t::text ~ $1', place) INTO rows USING pattern;
        IF rows > 0 THEN RETURN NEXT; END IF;
    END LOOP;
    RETURN QUERY SELECT 'slice_store', count(*) FROM slice_store AS s WHERE concat(graph_document_json(s.document), ' ', s::text) ~ pattern HAVING count(*) > 0;
    RETURN QUERY SELECT 'statistics of ' || s.tablename, count(*) FROM pg_stats AS s WHERE s::text ~ pattern GROUP BY s.tablename;
    RETURN QUERY SELECT 'counters', count(*) FROM graph_kernel.statistics AS s WHERE s::text ~ pattern HAVING count(*) > 0;
END $$;
-- A server that does not count says so.
SET client_min_messages = warning;
SELECT place FROM left_over() WHERE place !~ '^statistics' ORDER BY place;

CREATE TEMP TABLE forgotten AS SELECT t.id FROM memory_turns AS t WHERE t.session_id = 'session-of-mallory';
CREATE TEMP TABLE forgotten_documents AS SELECT s.key FROM slice_store AS s WHERE s.turns && ARRAY(SELECT id FROM forgotten);
SELECT (SELECT count(*) FROM forgotten) AS turns, (SELECT count(*) FROM forgotten_documents) AS documents;
BEGIN;
DELETE FROM atoms WHERE slice IN (TABLE forgotten_documents) OR turns && ARRAY(SELECT id FROM forgotten);
DELETE FROM slice_store WHERE key IN (TABLE forgotten_documents);
DELETE FROM retrieval_traces AS r WHERE r.provenance #>> '{filters_applied,owner}' = 'mallory'
    OR EXISTS (SELECT FROM regexp_matches(r.provenance::text, '[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}', 'g') AS m (found) WHERE m.found[1]::uuid IN (TABLE forgotten));
DELETE FROM memory_turn_edges WHERE parent_turn_id IN (TABLE forgotten) OR child_turn_id IN (TABLE forgotten);
DELETE FROM memory_turns WHERE id IN (TABLE forgotten);
COMMIT;
DROP TABLE forgotten, forgotten_documents;
CALL graph_kernel.refresh_words();
ANALYZE;
SELECT * FROM left_over();
SELECT (SELECT count(*) FROM atoms) AS atoms, (SELECT count(*) FROM slice_store) AS documents, (SELECT count(*) FROM retrieval_traces) AS traces;
SELECT check_name, ok, count FROM graph_check() WHERE check_name IN ('kept_references', 'kept_documents');
SELECT graph_kernel.unbind_store(), graph_kernel.unbind_tables();
RESET client_min_messages;
DROP FUNCTION left_over;
DROP TABLE atoms, slice_store, retrieval_traces;
ALTER TABLE memory_turns DROP words, DROP embedding;
