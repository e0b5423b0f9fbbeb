SELECT role, content FROM graph_messages((SELECT graph_turn_id(id) FROM chat_history ORDER BY id DESC LIMIT 1));
