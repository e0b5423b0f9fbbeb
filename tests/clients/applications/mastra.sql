SELECT role, content
  FROM graph_messages((SELECT graph_turn_id(id) FROM mastra_messages ORDER BY "createdAt" DESC LIMIT 1));
