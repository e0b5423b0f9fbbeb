-- Promise: over an application's table, with text ids and expressions, every function answers as over created tables.
CREATE SCHEMA plain;
CREATE SCHEMA app;
CREATE ROLE regress_member;
GRANT USAGE ON SCHEMA plain, app TO regress_member;
SELECT graph_kernel.create_tables('plain');
INSERT INTO plain.memory_turns SELECT * FROM memory_turns;
INSERT INTO plain.memory_turn_edges SELECT * FROM memory_turn_edges;
ALTER TABLE plain.memory_turns ADD embedding real[];
UPDATE plain.memory_turns SET embedding = ARRAY[turn_number(id), 1];
CREATE TABLE app.messages (
    key text PRIMARY KEY, reply text, branch text, quote text, chat text, author text, stage jsonb, rating integer, numbers real[],
    sent bigint, body text, vector real[]);
INSERT INTO app.messages
SELECT t.id::text, p.reply, p.branch, p.quote, t.session_id, CASE t.role WHEN 'user' THEN 'human' ELSE 'ai' END,
       jsonb_build_object('phase', t.trajectory_phase), round(t.salience_score::numeric * 10),
       ARRAY[t.trajectory_depth, t.trajectory_sibling_order, t.trajectory_homogeneity, t.trajectory_temporal, t.trajectory_complexity],
       extract(epoch FROM t.created_at), t.content_text, t.embedding
FROM plain.memory_turns AS t
CROSS JOIN LATERAL (
    SELECT max(parent_turn_id::text) FILTER (WHERE edge_type = 'reply') AS reply,
           max(parent_turn_id::text) FILTER (WHERE edge_type = 'branch') AS branch,
           max(parent_turn_id::text) FILTER (WHERE edge_type = 'reference') AS quote
    FROM plain.memory_turn_edges WHERE child_turn_id = t.id) AS p;
SELECT graph_kernel.bind_tables('plain.memory_turns', 'plain.memory_turn_edges', name => 'plain') IS NOT NULL AS bound;
\set VERBOSITY terse
SELECT graph_kernel.bind_tables('app.messages', name => 'app', columns => '{"turns": {
    "id": {"expression": "graph_turn_id(key)"},
    "session_id": "chat",
    "role": {"expression": "CASE author WHEN ''human'' THEN ''user'' WHEN ''ai'' THEN ''assistant'' END"},
    "phase": {"expression": "stage ->> ''phase''"},
    "salience": {"expression": "rating / 10.0::real"},
    "trajectory_depth": {"expression": "numbers[1]::integer"},
    "trajectory_sibling_order": {"expression": "numbers[2]::integer"},
    "trajectory_homogeneity": {"expression": "numbers[3]"},
    "trajectory_temporal": {"expression": "numbers[4]"},
    "trajectory_complexity": {"expression": "numbers[5]"},
    "created_at": {"expression": "to_timestamp(sent)"},
    "content_text": "body",
    "content_hash": {"expression": "graph_content_hash(body)"},
    "embedding": "vector",
    "parents": [{"parent": {"expression": "graph_turn_id(reply)"}, "edge_type": "reply"},
                {"parent": {"expression": "graph_turn_id(branch)"}, "edge_type": "branch"},
                {"parent": {"expression": "graph_turn_id(quote)"}, "edge_type": "reference"}]}}') IS NOT NULL AS bound;
\set VERBOSITY default
-- The hints of graph_check are the indexes to create.
SET graph_kernel.graph = 'app';
SELECT hint FROM graph_check() WHERE NOT ok AND check_name LIKE 'index%' \gexec
SELECT check_name, hint FROM graph_check() WHERE NOT ok;
RESET graph_kernel.graph;

-- What both graphs answer, without what names the graph.
CREATE TABLE calls (n serial, call text);
INSERT INTO calls (call) VALUES
    ($$SELECT s -> 'turns', s -> 'edges', s -> 'slice_id', s #> '{attestation,status}' FROM graph_slice(turn(2)) AS s$$),
    ($$SELECT s -> 'turns' FROM graph_slice(turn(5), 'focused') AS s$$),
    ($$SELECT * FROM graph_slice_turns(turn(2))$$),
    ($$SELECT * FROM graph_slice_edges(turn(2))$$),
    ($$SELECT anchor_turn_id, slice -> 'turns', error FROM graph_slices(ARRAY[turn(5), turn(1), turn(77)])$$),
    ($$SELECT * FROM graph_slice_explain(turn(4), '{"max_nodes": 3}')$$),
    ($$SELECT * FROM graph_why(turn(4), turn(5), '{"max_radius": 1}')$$),
    ($$SELECT * FROM graph_slice_stats(turn(2), '{"max_nodes": 2}')$$),
    ($$SELECT * FROM graph_slice_diff((SELECT graph_slice(turn(2))), (SELECT graph_slice(turn(5), 'focused')))$$),
    ($$SELECT graph_export_draw(graph_slice(turn(2)))$$),
    ($$SELECT graph_snapshot()$$),
    ($$SELECT * FROM graph_anchors_recent(3)$$),
    ($$SELECT * FROM graph_anchor(NULL, '11111111-1111-1111-1111-111111111111')$$),
    ($$SELECT * FROM graph_anchor(NULL, NULL, '{2,1}')$$),
    ($$SELECT rank, turn_id, similarity, role, content FROM graph_search_slice('{2,1}', turn(2))$$),
    ($$SELECT rank, graph_is_admissible_result(provenance), provenance -> 'turn_ids' FROM graph_search_slice('{2,1}', turn(2))$$),
    ($$SELECT turn_id, similarity, role, content FROM graph_search('{2,1}', limit_count => 3)$$),
    ($$SELECT count(*) FROM graph_content_audit()$$),
    ($$SELECT check_name, count, ok FROM graph_check() WHERE count IS NOT NULL AND check_name !~ 'without|default'$$),
    ($$SELECT * FROM graph_diversity((SELECT graph_slice(turn(2))))$$),
    ($$SELECT * FROM graph_overlap(ARRAY[turn(2), turn(5)])$$),
    ($$SELECT * FROM graph_influence(ARRAY[turn(2), turn(5), turn(4)])$$),
    ($$SELECT graph_atlas(ARRAY[turn(2), turn(5)])$$);
GRANT SELECT ON calls TO regress_member;
CREATE FUNCTION answers(graph text) RETURNS TABLE (n integer, call text, rows jsonb)
LANGUAGE plpgsql SET search_path = public
AS $$
BEGIN
    PERFORM set_config('graph_kernel.graph', graph, true);
    FOR n, call IN SELECT c.n, c.call FROM calls AS c ORDER BY c.n LOOP
        EXECUTE format('SELECT jsonb_agg(to_jsonb(x)) FROM (%s) AS x', call) INTO rows;
        RETURN NEXT;
    END LOOP;
END $$;
CREATE VIEW differences AS
    SELECT p.call, p.rows AS plain, a.rows AS app
    FROM answers('plain') AS p JOIN answers('app') AS a USING (n) WHERE p.rows IS DISTINCT FROM a.rows OR p.rows IS NULL;
SELECT * FROM differences;

-- Under row security, a member sees its own rows. The index is used all the same.
GRANT SELECT ON ALL TABLES IN SCHEMA plain, app TO regress_member;
CREATE POLICY own ON plain.memory_turns USING (role = 'assistant' OR id = turn(1));
CREATE POLICY own ON app.messages USING (author = 'ai' OR key = turn(1)::text);
CREATE POLICY own ON plain.memory_turn_edges USING (EXISTS (SELECT FROM plain.memory_turns AS t WHERE t.id = child_turn_id));
ALTER TABLE plain.memory_turns ENABLE ROW LEVEL SECURITY;
ALTER TABLE plain.memory_turn_edges ENABLE ROW LEVEL SECURITY;
ALTER TABLE app.messages ENABLE ROW LEVEL SECURITY;
UPDATE calls SET call = replace(replace(call, 'turn(4)', 'turn(1)'), 'turn(77)', 'turn(3)');
SET ROLE regress_member;
SELECT call, plain -> 0 AS plain, app -> 0 AS app FROM (SELECT p.call, p.rows AS plain, a.rows AS app
    FROM answers('plain') AS p JOIN answers('app') AS a USING (n)) AS d WHERE plain IS DISTINCT FROM app;
RESET ROLE;
INSERT INTO app.messages (key, author) SELECT 'filler ' || n, 'ai' FROM generate_series(1, 50000) AS n;
ANALYZE app.messages;
SET ROLE regress_member;
EXPLAIN (COSTS OFF) SELECT m.body FROM graph_slice_turns(turn(2)) AS s JOIN app.messages AS m ON graph_turn_id(m.key) = s.turn_id;
RESET ROLE;
ALTER TABLE app.messages DISABLE ROW LEVEL SECURITY;

-- An edit of a text is drift, though no hash is stored; backfill and trigger have nothing to write to.
SET graph_kernel.graph = 'app';
CREATE TABLE exports AS SELECT graph_slice(turn(2)) AS slice;
SELECT v.valid, v.reason FROM exports, graph_verify(slice) AS v;
UPDATE app.messages SET body = 'edited' WHERE key = turn(3)::text;
SELECT r.* FROM exports, graph_replay(slice) AS r;
SELECT code, message, hint FROM test_error('CALL graph_kernel.backfill_content_hashes()');

-- What the transaction wrote itself is not attested.
BEGIN;
UPDATE app.messages SET rating = 10 WHERE key = turn(3)::text;
SELECT graph_slice(turn(2)) #>> '{attestation,status}' AS status;
ROLLBACK;

-- A trigger takes slices of the graph that it names, whatever the writer has chosen.
CREATE TABLE atoms (id integer, slice json, turns uuid[]);
CREATE CONSTRAINT TRIGGER admissible AFTER INSERT OR UPDATE ON atoms NOT DEFERRABLE FOR EACH ROW EXECUTE FUNCTION graph_require_admissible('slice', 'turns', 'graph=app');
ALTER TABLE atoms ENABLE ALWAYS TRIGGER admissible;
SET graph_kernel.graph = 'plain';
INSERT INTO atoms SELECT 1, slice, ARRAY[turn(2)] FROM exports;
SELECT code, message, detail FROM test_error($$INSERT INTO atoms SELECT 2, graph_slice(turn(2)), ARRAY[turn(2)]$$);

RESET graph_kernel.graph;
SELECT graph_kernel.unbind_tables('app'), graph_kernel.unbind_tables('plain');
DROP VIEW differences;
DROP FUNCTION answers;
DROP TABLE atoms, exports, calls;
SET client_min_messages = warning;
DROP SCHEMA plain, app CASCADE;
DROP ROLE regress_member;
