SELECT role, content FROM graph_messages((SELECT id FROM chat_message ORDER BY "createdDate" DESC LIMIT 1));
