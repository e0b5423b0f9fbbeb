SELECT role, content FROM graph_messages((SELECT graph_turn_id(id) FROM agent_messages ORDER BY id DESC LIMIT 1));
