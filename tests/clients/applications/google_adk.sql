SELECT role, content FROM graph_messages((SELECT graph_turn_id(id) FROM events ORDER BY "timestamp" DESC LIMIT 1));
