SELECT role, content FROM graph_prompt((SELECT graph_turn_id(id) FROM events ORDER BY "timestamp" DESC LIMIT 1));
