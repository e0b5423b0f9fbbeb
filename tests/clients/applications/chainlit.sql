SELECT role, content FROM graph_messages((SELECT id FROM steps ORDER BY "createdAt" DESC LIMIT 1));
