SELECT role, content FROM graph_prompt((SELECT id FROM "Message_v2" ORDER BY "createdAt" DESC LIMIT 1));
