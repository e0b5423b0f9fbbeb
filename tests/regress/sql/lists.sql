-- Promise: lists show what a graph has, of every kind of binding, no more of it than is asked for.
\pset null '(null)'
CREATE SCHEMA lists;
SELECT graph_kernel.create_tables('lists');
ALTER TABLE lists.memory_turn_edges DROP CONSTRAINT memory_turn_edges_parent_turn_id_fkey;
SELECT graph_kernel.bind_tables('lists.memory_turns', 'lists.memory_turn_edges') IS NOT NULL AS bound;
INSERT INTO lists.memory_turns (id, session_id, role, trajectory_phase, content_text, created_at) VALUES
    (turn(1), 'a:one', 'system', NULL, '', '2026-01-01 00:00Z'), (turn(2), 'a:one', 'USER', 'Planning', 'Où est l''ÉTÉ? ' || repeat('x', 300), '2026-01-02 00:00Z'),
    (turn(3), 'a:one', 'odd', 'odd', NULL, '2026-01-03 00:00Z'), (turn(4), 'a:one', 'tool', NULL, 'branch', '2026-01-03 00:00Z'),
    (turn(5), NULL, NULL, NULL, 'no session', 'infinity'), (turn(6), '', NULL, NULL, 'no name', NULL),
    (turn(7), repeat('long\', 1000), NULL, NULL, 'long name', NULL), (turn(8), 'b', NULL, NULL, 'circle', '2026-01-01 00:00Z'), (turn(9), 'b', NULL, NULL, 'circle', '2026-01-01 00:00Z');
INSERT INTO lists.memory_turn_edges VALUES (turn(1), turn(2), 'reply'), (turn(2), turn(3), 'Reply'), (turn(2), turn(4), 'branch'), (turn(2), turn(4), 'BRANCH'), (turn(77), turn(4), repeat('odd', 100)),
    (turn(8), turn(9), 'reply'), (turn(9), turn(8), 'reply');
SELECT left(session_id, 20) AS session, turns, turn_number(latest_turn_id) AS latest, latest_at, left(title, 20) AS title, latest_text FROM graph_kernel.list_sessions();
SELECT session_id, title, latest_text FROM graph_kernel.list_sessions(2, 1, 3);
SELECT session_id, title, latest_text FROM graph_kernel.list_sessions(length => 0, name_end => ':one');
-- The latest turn is that of graph_anchor, and each name finds its session.
SELECT bool_and(latest_turn_id = a.anchor_turn_id) AS alike, bool_and(turns = (SELECT count(*) FROM graph_kernel.list_turns(s.session_id))) AS all
FROM graph_kernel.list_sessions() AS s, graph_anchor(session_id => s.session_id) AS a WHERE s.session_id <> '';
SELECT turn_number(turn_id) AS turn, session_id, role, phase, created_at, left(content, 20) AS content FROM graph_kernel.list_turns('a:one');
SELECT turn_number(turn_id) AS turn FROM graph_kernel.list_turns('', only_ends => true);
SELECT turn_number(turn_id) AS turn FROM graph_kernel.list_turns('a:one', only_ends => true, limit_count => 1, skip_count => 1);
-- Turns of other sessions, and those that refer to a turn, do not follow it.
INSERT INTO lists.memory_turn_edges VALUES (turn(3), turn(8), 'reply'), (turn(4), turn(3), 'REFERENCE');
SELECT turn_number(turn_id) AS turn FROM graph_kernel.list_turns('a:one', only_ends => true);
DELETE FROM lists.memory_turn_edges WHERE child_turn_id = turn(8) AND edge_type = 'reply' AND parent_turn_id = turn(3) OR edge_type = 'REFERENCE';
SELECT count(*) FROM graph_kernel.list_turns('b', only_ends => true);
SELECT turn_number(turn_id) AS turn, content FROM graph_kernel.list_turns(turns => ARRAY[turn(4), turn(77), NULL], length => 3);
SELECT turn_number(turn_id) AS turn, content FROM graph_kernel.list_turns(has_text => 'est', length => 6);
SELECT turn_number(turn_id) AS turn, length(content) FROM graph_kernel.list_turns('a:one', has_text => 'XX');
SELECT turn_number(turn_id) AS turn FROM graph_kernel.list_turns(has_text => 'C', limit_count => 1, skip_count => 1);
SELECT turn_number(turn_id) AS turn FROM graph_kernel.list_turns(has_text => 'N', only_ends => true, limit_count => 3, skip_count => 1);
SELECT turn_number(parent_turn_id) AS parent, turn_number(child_turn_id) AS child, edge_type FROM graph_kernel.list_edges(ARRAY[turn(3), turn(4)]) ORDER BY 1, 2;
SELECT count(*) FROM graph_kernel.list_edges(ARRAY[turn(3), turn(4), NULL], 2);
-- NULL for what has a default is no row; what is not a part of a list is an error.
SELECT (SELECT count(*) FROM graph_kernel.list_sessions(NULL)) + (SELECT count(*) FROM graph_kernel.list_turns(only_ends => NULL)) + (SELECT count(*) FROM graph_kernel.list_edges(NULL)) AS none;
SELECT code, message, detail FROM unnest(ARRAY['list_sessions(0)', 'list_sessions(1, -1)', 'list_turns(limit_count => 100001)', 'list_turns(length => 10001)', 'list_turns(has_text => repeat(''x'', 65537))', 'list_edges(''{}'', 0)']) AS call, test_error('SELECT * FROM graph_kernel.' || call);
-- Of more than a searched beginning nothing is found; a collation that is not one for searches is not used.
DO $$ BEGIN
    CREATE COLLATION lists.blind (provider = icu, locale = 'und-u-ks-level1', deterministic = false);
    ALTER TABLE lists.memory_turns ALTER content_text TYPE text COLLATE lists.blind, ALTER session_id TYPE text COLLATE lists.blind,
        ALTER content_hash TYPE text COLLATE lists.blind;
EXCEPTION WHEN feature_not_supported THEN NULL; -- a server without ICU
END $$;
UPDATE lists.memory_turns SET content_text = repeat('y', 99990) || 'here and there' WHERE id = turn(3);
SELECT has_text, (SELECT string_agg(content, ',') FROM graph_kernel.list_turns(has_text => has_text, length => 90)) = repeat('y', 80) || 'here and t' AS found FROM unnest(ARRAY['HERE', 'there']) AS has_text;
-- A letter may be two in lower case, and another one at the end of a word.
INSERT INTO lists.memory_turns (id, session_id, content_text) VALUES (turn(901), 'cases', repeat('İ', 300) || 'NEEDLE'), (turn(902), 'cases', 'η οδος μας');
SELECT turn_number(turn_id) AS turn, ltrim(content, 'İ') AS content FROM graph_kernel.list_turns('cases', has_text => 'needle', length => 86);
SELECT turn_number(turn_id) AS turn FROM unnest('{ΟΔΟΣ,οδος}'::text[]) AS has_text, graph_kernel.list_turns('cases', has_text => has_text);
DELETE FROM lists.memory_turns WHERE session_id = 'cases';
SELECT session_id FROM graph_kernel.list_sessions(name_end => 'ONE');
SELECT check_name, ok, count, detail FROM graph_check() WHERE check_name LIKE '%content_hashes';
SELECT count(*) FROM graph_kernel.list_sessions() AS s, graph_kernel.list_turns(s.session_id) WHERE s.session_id ~ '^sha256:';
-- What such a collation takes as equal are sessions of their own.
INSERT INTO lists.memory_turns (id, session_id, role, content_text) VALUES (turn(901), 'Patient7', 'user', 'one'), (turn(902), 'PATIENT7', 'user', 'other');
SELECT session_id, turns FROM graph_kernel.list_sessions(name_end => '7') ORDER BY session_id COLLATE "C";
SELECT session_id, content FROM graph_kernel.list_turns(session => 'PATIENT7');
SELECT turn_number(anchor_turn_id) AS turn FROM graph_anchors_recent(session_id => 'PATIENT7');
SELECT kind, count FROM graph_kernel.references('{"sessions": ["PATIENT7"]}');
DELETE FROM lists.memory_turns WHERE id IN (turn(901), turn(902));
-- Edges in the turns table, by a parent or by the order; a session that is a uuid.
CREATE TABLE lists.chat (id uuid PRIMARY KEY, parent uuid, at timestamp, body text, chat uuid);
INSERT INTO lists.chat SELECT turn(n), CASE WHEN n > 1 THEN turn(n / 2) END, timestamp '2026-01-01' + n * interval '1 h', 'text ' || n, turn(n % 2) FROM generate_series(1, 6) AS n;
SELECT graph_kernel.bind_tables('lists.chat', columns => '{"turns": {"content_text": "body", "session_id": "chat", "created_at": "at", "parents": [{"parent": "parent", "edge_type": "reply"}]}}') IS NOT NULL AS bound;
SELECT turn_number(session_id::uuid) AS session, turns, turn_number(latest_turn_id) AS latest, latest_at, title FROM graph_kernel.list_sessions();
SELECT turn_number(turn_id) AS turn FROM graph_kernel.list_turns(only_ends => true);
SELECT turn_number(turn_id) AS turn FROM graph_kernel.list_turns(turn(1)::text);
SELECT count(*) FROM graph_kernel.list_turns('no uuid');
SELECT turn_number(parent_turn_id) AS parent, turn_number(child_turn_id) AS child, edge_type FROM graph_kernel.list_edges(ARRAY[turn(3), turn(4)]) ORDER BY 1, 2;
SELECT graph_kernel.bind_tables('lists.chat', columns => '{"turns": {"id": "id", "session_id": null, "role": null, "created_at": null, "follows": {"session": "chat", "order": ["at"], "edge_type": "reply"}}}') IS NOT NULL AS bound;
SELECT * FROM graph_kernel.list_sessions();
SELECT turn_number(turn_id) AS turn, role, created_at, content FROM graph_kernel.list_turns('', only_ends => true);
SELECT turn_number(parent_turn_id) AS parent, turn_number(child_turn_id) AS child FROM graph_kernel.list_edges(ARRAY[turn(5), turn(6)]) ORDER BY 1;
-- Owners, as sessions, are told apart by their bytes, whatever the collation takes as equal.
ALTER TABLE lists.chat ADD owner text;
DO $$ BEGIN
    ALTER TABLE lists.chat ALTER owner TYPE text COLLATE lists.blind;
EXCEPTION WHEN undefined_object THEN NULL; -- a server without ICU
END $$;
CREATE INDEX ON lists.chat (owner);
UPDATE lists.chat SET owner = CASE WHEN id = turn(1) THEN 'Ann' ELSE 'ANN' END;
SELECT graph_kernel.bind_tables('lists.chat', columns => '{"turns": {"session_id": null, "role": null, "created_at": null, "owner": "owner", "valid_until": null, "parents": [{"parent": "parent", "edge_type": "reply"}]}}') IS NOT NULL AS bound;
SELECT owner, (SELECT count FROM graph_kernel.references(jsonb_build_object('owner', owner)) WHERE kind = 'turn') AS turns FROM unnest(ARRAY['Ann', 'ANN', 'aNN']) AS owner;
SELECT graph_kernel.unbind_tables();
-- Row security holds.
CREATE ROLE test_lists;
GRANT SELECT ON memory_turns, memory_turn_edges TO test_lists;
ALTER TABLE memory_turns ENABLE ROW LEVEL SECURITY;
CREATE POLICY seen ON memory_turns USING (role = 'user');
SET ROLE test_lists;
SELECT turns, title FROM graph_kernel.list_sessions();
SELECT turn_number(turn_id) AS turn FROM graph_kernel.list_turns(only_ends => true);
RESET ROLE;
DROP POLICY seen ON memory_turns;
ALTER TABLE memory_turns DISABLE ROW LEVEL SECURITY;
REVOKE ALL ON memory_turns, memory_turn_edges FROM test_lists;
DROP ROLE test_lists;
SET client_min_messages = warning;
DROP SCHEMA lists CASCADE;
