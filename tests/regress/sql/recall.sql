-- Promise: graph_recall is the search, the slice whose seeds it gives, and graph_messages of that slice, in one call.
BEGIN;
CREATE SCHEMA recalled;
SELECT graph_kernel.create_tables('recalled', '{"words": "english"}');
ALTER TABLE recalled.memory_turns ADD embedding real[];
SELECT graph_kernel.bind_tables('recalled.memory_turns', 'recalled.memory_turn_edges') IS NOT NULL AS bound;
INSERT INTO recalled.memory_turns (id, session_id, role, created_at, content_text, embedding, payload)
SELECT turn(n), 's' || (n - 1) / 20, CASE WHEN n = 12 THEN 'tool' WHEN n % 2 = 0 THEN 'assistant' ELSE 'user' END, to_timestamp(n * 60), 'Turn ' || n || ' of ' || CASE WHEN n IN (11, 50) THEN 'the refund' ELSE 'something' END,
       ARRAY[1, n], CASE n WHEN 11 THEN '{"call": 1}'::jsonb END
  FROM generate_series(1, 60) AS n;
INSERT INTO recalled.memory_turn_edges SELECT turn(n), turn(n + 1), 'reply' FROM generate_series(1, 59) AS n WHERE n <> 20;
SELECT n, turn_number(turn_id) AS turn, part, role, content, payload, session_id, tokens, cumulative_tokens, distance, score, turn_number(seed) AS seed, slice IS NOT NULL AS slice
  FROM graph_recall(query_text => 'any refund?', policy => '{"preset": "recall", "max_tokens": 60}');
-- The same by hand, with each policy, at an anchor and without.
SELECT p.policy, p.anchor, count(*) AS rows, bool_and(r.turn_id = m.turn_id AND r.part = m.part AND r.content = m.content AND r.cumulative_tokens = m.cumulative_tokens AND r.score = t.priority AND r.distance = t.distance) AS same,
       bool_or(r.slice::text = graph_slice(by_hand.anchor, by_hand.policy)::text) AS same_slice, count(*) FILTER (WHERE r.part = 'recalled' AND r.seed IS NULL) AS without_seed
  FROM (VALUES ('recall', NULL), ('{"preset": "recall", "max_tokens": 100, "recall_decay": 0.5}', 60), ('{"preset": "chat", "max_tokens": 200, "recall_tokens": 80}', 60), ('{"preset": "recall", "max_tokens": 70, "keep_tool_results": false}', 12)) AS p (policy, anchor)
  CROSS JOIN LATERAL (SELECT jsonb_object_agg(turn_id, strength) AS seeds, (array_agg(turn_id ORDER BY rank))[1] AS best FROM graph_search('{1,3}', 'refund', 128)) AS found
  CROSS JOIN LATERAL (SELECT coalesce(turn(p.anchor), found.best), (p.policy::slice_policy::text::jsonb || jsonb_build_object('seeds', found.seeds))::text::slice_policy) AS by_hand (anchor, policy)
  CROSS JOIN LATERAL graph_recall('{1,3}', 'refund', p.policy::slice_policy, turn(p.anchor)) AS r
  JOIN LATERAL graph_messages(by_hand.anchor, by_hand.policy) AS m ON m.n = r.n
  JOIN LATERAL graph_slice_turns(by_hand.anchor, by_hand.policy) AS t ON t.turn_id = r.turn_id
 GROUP BY p.policy, p.anchor ORDER BY 1, 2;
-- A filter narrows what is found, not what was said around it; nothing found is no rows, or the conversation alone.
SELECT string_agg(DISTINCT turn_number(seed)::text, ' ') AS seeds, count(*) FILTER (WHERE session_id <> 's2') AS of_others FROM graph_recall(NULL, 'refund', filter => '{"sessions": ["s2"]}');
SELECT count(*) AS nothing FROM graph_recall(NULL, 'nowhere');
SELECT count(*) AS rows, count(seed) AS seeds, min(part) AS first_part, count(slice) AS slices FROM graph_recall(NULL, 'nowhere', 'chat', turn(30));
SELECT call, e.code, e.message, e.detail FROM unnest(ARRAY['graph_recall()', 'graph_recall(NULL, ''refund'', ''default'')', 'graph_recall(NULL, ''refund'', NULL)', 'graph_recall(NULL, ''nowhere'', ''chat'', turn(999))',
    'graph_recall(NULL, ''refund'', ''{"preset": "recall", "seeds": {"00000000-0000-0000-0000-000000000001": 1}}'')', 'graph_recall(NULL, ''refund'', filter => ''{"x": 1}'')']) WITH ORDINALITY AS c (call), test_error('SELECT ' || call) AS e ORDER BY ordinality;
SELECT count(*) AS no_filter FROM graph_recall(NULL, 'refund', filter => NULL);
-- A pin stays beside the seeds.
SELECT turn_number(turn_id) AS turn, part FROM graph_recall(NULL, 'refund', jsonb_build_object('preset', 'recall', 'max_tokens', 30, 'pins', jsonb_build_array(turn(1)))::text::slice_policy);
ROLLBACK;
