SELECT role, content FROM graph_messages(graph_turn_id('n4'));
SELECT role, content FROM graph_messages(graph_turn_id('n5'));
SELECT p.id, c.id, e.edge_type
  FROM graph_slice_edges(graph_turn_id('n4')) AS e
  JOIN message AS p ON graph_turn_id(p.id) = e.parent
  JOIN message AS c ON graph_turn_id(c.id) = e.child
 ORDER BY 1, 2, 3;
