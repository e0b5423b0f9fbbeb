SELECT role, content FROM graph_prompt((SELECT id FROM chat_message ORDER BY "createdDate" DESC LIMIT 1));
