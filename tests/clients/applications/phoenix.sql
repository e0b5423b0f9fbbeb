-- The last answer of session a, and all that is in its slice: the trace before it in the session, and no other.
SELECT p.role, p.content
  FROM graph_messages((SELECT graph_turn_id(span_id) FROM spans ORDER BY start_time DESC LIMIT 1)) AS p;
SELECT role, edges.parents, s.session_id
  FROM graph_slice_turns((SELECT graph_turn_id(span_id) FROM spans ORDER BY start_time DESC LIMIT 1), 'broad') AS s,
       LATERAL (SELECT count(*) FROM graph_slice_edges(s.turn_id) AS e WHERE e.child = s.turn_id) AS edges (parents)
 ORDER BY s.created_at, s.turn_id;
