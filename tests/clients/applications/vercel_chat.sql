SELECT role, content FROM graph_messages((SELECT id FROM "Message_v2" ORDER BY "createdAt" DESC LIMIT 1));
