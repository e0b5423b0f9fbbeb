-- Promise: deleted in the order of docs/erasure.md, a session leaves nothing in any table: no id, no name, no text, no hash of one, no
-- word, neither in the extension's own tables nor in what the server samples of them, nor in what it logs of refusals.
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
-- Refusals of slices and of a row. The log is what the server writes to, read from its end of now.
SELECT length(pg_read_binary_file('/proc/self/fd/2')) AS logged \gset
SET graph_kernel.log_refusals = on;
SELECT v.reason FROM graph_slice(turn(9002)) AS s, unnest(ARRAY[replace(s::text, 'session-of-mallory', 'session-of-mallory2'), '{"slice_id": 1}']) AS edited, graph_verify(edited::json) AS v;
SELECT e.detail, e.hint FROM test_error('INSERT INTO atoms SELECT slice, ARRAY[turn(9003), turn(77)] FROM atoms WHERE turn(9002) = ANY (turns)') AS e;
RESET graph_kernel.log_refusals;
CREATE FUNCTION lines_logged(since bigint) RETURNS SETOF text LANGUAGE sql AS $$
    SELECT line FROM regexp_split_to_table(convert_from(pg_read_binary_file('/proc/self/fd/2', $1, 100000000), 'LATIN1'), E'\n') AS line WHERE line ~ format('\[%s\] (LOG|WARNING):', pg_backend_pid()) $$;
SELECT regexp_replace(line, '^.*LOG:  |role [^,]*, |slice [0-9a-f]{16}$', '', 'g') AS logged FROM lines_logged(:logged) AS line;

-- Every row of every table but the server's own, as text, and a document as what it says.
CREATE FUNCTION left_over(since bigint) RETURNS TABLE (place text, rows bigint) LANGUAGE plpgsql AS $$
DECLARE
    pattern CONSTANT text := concat_ws('|', 'mallory', 'xyzzyword', '00000000-0000-0000-0000-00000000900', (SELECT string_agg(encode(sha256(convert_to('xyzzyword ' || n, 'UTF8')), 'hex'), '|') FROM generate_series(1, 4) AS n));
BEGIN
    FOR place IN SELECT c.oid::regclass FROM pg_class AS c WHERE c.relkind IN ('r', 'm') AND c.relnamespace::regnamespace::text !~ '^pg_|^information_schema' AND c.relname <> 'slice_store' LOOP
        EXECUTE format('SELECT count(*) FROM %s AS t WHERE t::text ~ $1', place) INTO rows USING pattern;
        IF rows > 0 THEN RETURN NEXT; END IF;
    END LOOP;
    RETURN QUERY SELECT 'slice_store', count(*) FROM slice_store AS s WHERE concat(graph_document_json(s.document), ' ', s::text) ~ pattern HAVING count(*) > 0;
    RETURN QUERY SELECT 'statistics of ' || s.tablename, count(*) FROM pg_stats AS s WHERE s::text ~ pattern GROUP BY s.tablename;
    RETURN QUERY SELECT 'log', count(*) FROM lines_logged(since) AS line WHERE line ~ pattern HAVING count(*) > 0;
    RETURN QUERY SELECT 'counters', count(*) FROM graph_kernel.statistics AS s WHERE s::text ~ pattern HAVING count(*) > 0;
END $$;
-- A server that does not count says so.
SET client_min_messages = warning;
SELECT place FROM left_over(:logged) WHERE place !~ '^statistics' ORDER BY place;

-- What names the session's turns, by each kind of table; events are looked for in the one that is bound.
CREATE TABLE log AS SELECT 1::bigint AS segment_id, n::bigint AS ordinal, n::bigint AS byte_offset, 'e' || n AS event_id, 1 AS pane_id, CASE WHEN n > 2 THEN 'session-of-mallory' ELSE 'other' END AS session_id, n::bigint AS occurred_at_ms, 'output' AS event_type, 'x' AS text FROM generate_series(1, 5) AS n;
CREATE UNIQUE INDEX ON log (segment_id, ordinal);
-- One that nobody has bound is not read: whoever may create tables could have made it.
CREATE TABLE recorder_events (session_id text);
SELECT kind, place, key, count FROM graph_kernel.references('{"owner": "mallory"}') WHERE kind = 'event';
DROP TABLE recorder_events;
SELECT graph_kernel.bind_recorder_table('log');
-- Rows that carry what they promote on, also where the ids are in no column of turns; and a table of another role's.
CREATE TABLE carried (slice jsonb, provenance json, turns uuid);
CREATE CONSTRAINT TRIGGER admissible AFTER INSERT OR UPDATE ON carried NOT DEFERRABLE FOR EACH ROW EXECUTE FUNCTION graph_require_admissible('slice', 'turns');
CREATE CONSTRAINT TRIGGER found AFTER INSERT OR UPDATE ON carried NOT DEFERRABLE FOR EACH ROW WHEN (NEW.provenance IS NOT NULL) EXECUTE FUNCTION graph_require_admissible_result('provenance', 'turns');
INSERT INTO carried SELECT graph_slice(turn(5)), NULL::json, turn(5) UNION ALL SELECT graph_slice(turn(4), '{"max_radius": 0}'), NULL, turn(4);
CREATE ROLE erasure_other;
CREATE ROLE erasure_third;
CREATE TABLE theirs (slice json, turns uuid[]);
ALTER TABLE theirs OWNER TO erasure_third;
CREATE CONSTRAINT TRIGGER admissible AFTER INSERT OR UPDATE ON theirs NOT DEFERRABLE FOR EACH ROW EXECUTE FUNCTION graph_require_admissible('slice', 'turns');
CREATE VIEW named AS
SELECT r.kind, r.place, CASE WHEN s.key IS NOT NULL THEN 'of turn ' || turn_number(s.anchor) WHEN r.kind <> 'trace' THEN r.key END AS key, r.count
  FROM graph_kernel.references('{"sessions": ["session-of-mallory"]}') AS r LEFT JOIN slice_store AS s ON s.key = r.key;
SELECT * FROM named ORDER BY kind, place::text, key, count;
-- By each key of a filter; the same where there are more turns than an index is asked for; also turns that are not valid any more.
BEGIN;
INSERT INTO memory_turns (id, session_id, owner, created_at) SELECT turn(8000 + n), 'session-of-mallory', 'mallory', now() FROM generate_series(1, 100) AS n;
SELECT * FROM named ORDER BY kind, place::text, key, count;
ROLLBACK;
SELECT filter, kind, count(*), sum(count) FROM unnest('{"{\"owner\": \"mallory\"}","{\"owner\": \"nobody\"}","{\"sessions\": [\"gone\"]}","{}"}'::jsonb[]) AS filter, graph_kernel.references(filter) WHERE kind <> 'turn' OR filter <> '{}' GROUP BY filter, kind ORDER BY filter, kind;
UPDATE memory_turns SET valid_until = now() - interval '1 day' WHERE owner = 'mallory';
SELECT kind, count FROM graph_kernel.references('{"owner": "mallory"}') WHERE kind = 'turn';
UPDATE memory_turns SET valid_until = NULL WHERE owner = 'mallory';
-- Where the turns are gone, what was narrowed to their owner or session still says so.
BEGIN;
DELETE FROM memory_turn_edges;
DELETE FROM memory_turns WHERE owner = 'mallory';
SELECT filter, kind, count FROM unnest('{"{\"owner\": \"mallory\"}","{\"sessions\": [\"session-of-mallory\"]}"}'::jsonb[]) AS filter, graph_kernel.references(filter) ORDER BY filter, kind;
ROLLBACK;
SELECT filter, e.* FROM unnest('{"{\"min_similarity\": 0.5}","{\"user\": \"mallory\"}","[]","{\"owner\": null}"}'::jsonb[]) AS filter, test_error(format('SELECT * FROM graph_kernel.references(%L)', filter)) AS e;
SELECT code, message FROM test_error('SELECT * FROM graph_kernel.references(NULL)');
-- Rows that promote on another graph of the same turns, or of the same store, are found from each.
SELECT graph_kernel.bind_tables('memory_turns', 'memory_turn_edges', '{"turns": {"salience": null}}', 'b') IS NOT NULL AS bound;
CREATE TABLE of_b (slice json, turns uuid[]);
CREATE CONSTRAINT TRIGGER admissible AFTER INSERT OR UPDATE ON of_b NOT DEFERRABLE FOR EACH ROW EXECUTE FUNCTION graph_require_admissible('slice', 'turns', 'graph=b');
SET graph_kernel.graph = 'b';
INSERT INTO of_b SELECT graph_slice(turn(9002)), ARRAY[turn(9002)];
RESET graph_kernel.graph;
SELECT place, key, count FROM graph_kernel.references('{"owner": "mallory"}') WHERE kind = 'atom' ORDER BY place::text, key;
DROP TABLE of_b;
SELECT graph_kernel.unbind_tables('b');
SELECT code, message, detail, hint FROM test_error($$SELECT * FROM graph_kernel.list_references('default', '{}', '[{}]')$$);
SELECT code, message, detail FROM test_error($$SELECT * FROM graph_kernel.list_references('default', '{}', ('[' || repeat('{"a":1},', 600000) || '{}]')::jsonb)$$);
-- With the rights of who asks: what he may not read is an error, or a table whose count is not known; never code of others.
GRANT SELECT ON memory_turns, memory_turn_edges, slice_store, log, theirs TO erasure_other;
SET ROLE erasure_other;
SELECT code, message FROM test_error($$SELECT * FROM graph_kernel.references('{}')$$);
RESET ROLE;
GRANT SELECT ON retrieval_traces TO erasure_other;
SET ROLE erasure_other;
SELECT kind, place, key, count FROM graph_kernel.references('{"owner": "mallory"}') WHERE kind = 'atom' ORDER BY place::text, key;
RESET ROLE;
ALTER TABLE memory_turns ENABLE ROW LEVEL SECURITY;
CREATE POLICY others ON memory_turns USING (owner IS DISTINCT FROM 'mallory');
SET ROLE erasure_other;
SELECT kind, count FROM graph_kernel.references('{"owner": "mallory"}') WHERE kind IN ('turn', 'slice');
RESET ROLE;
-- Rows that a policy may hide are a table whose count is not known.
GRANT SELECT ON atoms TO erasure_other;
ALTER TABLE atoms ENABLE ROW LEVEL SECURITY;
CREATE POLICY shown ON atoms USING (turns <> ARRAY[turn(9002), turn(9001)]);
SET ROLE erasure_other;
SELECT place, count FROM graph_kernel.references('{}') WHERE kind = 'atom' AND place = 'atoms'::regclass;
RESET ROLE;
DROP POLICY shown ON atoms;
ALTER TABLE atoms DISABLE ROW LEVEL SECURITY;
DROP POLICY others ON memory_turns;
ALTER TABLE memory_turns DISABLE ROW LEVEL SECURITY;

CREATE TEMP TABLE forgotten AS SELECT t.id FROM memory_turns AS t WHERE t.session_id = 'session-of-mallory';
CREATE TEMP TABLE forgotten_documents AS SELECT s.key FROM slice_store AS s WHERE s.turns && ARRAY(SELECT id FROM forgotten);
SELECT (SELECT count(*) FROM forgotten) AS turns, (SELECT count(*) FROM forgotten_documents) AS documents;
BEGIN;
DELETE FROM atoms WHERE slice IN (TABLE forgotten_documents) OR turns && ARRAY(SELECT id FROM forgotten);
DELETE FROM carried WHERE turns = turn(5);
DELETE FROM log WHERE session_id = 'session-of-mallory';
DELETE FROM slice_store WHERE key IN (TABLE forgotten_documents);
DELETE FROM retrieval_traces AS r WHERE r.provenance #>> '{filters_applied,owner}' = 'mallory'
    OR EXISTS (SELECT FROM regexp_matches(r.provenance::text, '[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}', 'g') AS m (found) WHERE m.found[1]::uuid IN (TABLE forgotten));
DELETE FROM memory_turn_edges WHERE parent_turn_id IN (TABLE forgotten) OR child_turn_id IN (TABLE forgotten);
DELETE FROM memory_turns WHERE id IN (TABLE forgotten);
COMMIT;
DROP TABLE forgotten, forgotten_documents;
CALL graph_kernel.refresh_words();
ANALYZE;
SELECT * FROM left_over(:logged);
SELECT * FROM named;
SELECT (SELECT count(*) FROM atoms) AS atoms, (SELECT count(*) FROM slice_store) AS documents, (SELECT count(*) FROM retrieval_traces) AS traces;
SELECT check_name, ok, count FROM graph_check() WHERE check_name IN ('kept_references', 'kept_documents');
SELECT graph_kernel.unbind_store(), graph_kernel.unbind_tables(), graph_kernel.unbind_recorder_table();
RESET client_min_messages;
DROP FUNCTION left_over, lines_logged;
DROP VIEW named;
DROP TABLE log, carried, theirs, atoms, slice_store, retrieval_traces;
ALTER TABLE memory_turns DROP words, DROP embedding;
REVOKE ALL ON memory_turns, memory_turn_edges FROM erasure_other;
DROP ROLE erasure_other, erasure_third;
