SELECT s.role, p.name, c.content
  FROM spans AS p
  JOIN graph_slice_turns((SELECT graph_turn_id(trace_id, '/', span_id) FROM spans
                           WHERE name = 'write' AND content LIKE '%parcel%'), 'broad') AS s
    ON s.turn_id = graph_turn_id(p.trace_id, '/', p.span_id)
  JOIN graph_messages((SELECT graph_turn_id(trace_id, '/', span_id) FROM spans
                      WHERE name = 'write' AND content LIKE '%parcel%'), 'broad') AS c USING (turn_id)
 ORDER BY p.name;
