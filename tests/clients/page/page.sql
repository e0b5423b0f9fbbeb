-- What the test of the page binds: an application's own table, whose messages follow each other, with texts that a page
-- must not read as markup; and a conversation of 1000 turns.
CREATE TABLE chat (
    id bigint PRIMARY KEY, room text NOT NULL, sender text NOT NULL, body jsonb NOT NULL, sent timestamptz NOT NULL
);
CREATE INDEX ON chat (graph_turn_id(id));
CREATE INDEX ON chat (room, sent, id);
INSERT INTO chat
SELECT n, 'room <b>one</b>', CASE n % 2 WHEN 1 THEN 'human' ELSE 'ai' END,
       jsonb_build_object('role', 'user', 'content', CASE n
           WHEN 1 THEN '<img src=x onerror="document.title=''taken''"><script>document.title=''taken''</script> first'
           WHEN 4 THEN '</p></li><a href="javascript:document.title=''taken''">fourth</a>'
           ELSE 'message ' || n || repeat(' of some length', 4) END),
       timestamptz '2026-03-01 10:00+00' + n * interval '1 minute'
  FROM generate_series(1, 12) AS n;
INSERT INTO chat
SELECT 1000 + n, 'room of many', CASE n % 2 WHEN 1 THEN 'human' ELSE 'ai' END,
       jsonb_build_object('role', 'user', 'content', 'turn ' || n || ' of the long conversation'),
       timestamptz '2026-02-01 10:00+00' + n * interval '1 minute'
  FROM generate_series(1, 1000) AS n;
SET client_min_messages = warning;
SELECT graph_kernel.bind_tables('chat', columns => $${"turns": {
    "id": {"expression": "graph_turn_id(id)"}, "session_id": "room", "role": "sender", "created_at": "sent",
    "roles": {"human": "user", "ai": "assistant"}, "content_text": {"expression": "graph_message_text(body)"},
    "content_hash": null, "phase": null, "salience": null,
    "follows": {"session": "room", "order": ["sent", "id"], "edge_type": "reply"}}}$$,
    name => 'chat') IS NOT NULL AS bound;
CREATE ROLE page_reader LOGIN;
GRANT USAGE ON SCHEMA public TO page_reader;
GRANT SELECT ON memory_turns, memory_turn_edges, chat TO page_reader;
