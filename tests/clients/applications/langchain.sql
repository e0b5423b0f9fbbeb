SELECT role, content FROM graph_prompt((SELECT graph_turn_id(id) FROM chat_history ORDER BY id DESC LIMIT 1));
