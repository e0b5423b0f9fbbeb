SELECT role, content FROM graph_prompt((SELECT id FROM steps ORDER BY "createdAt" DESC LIMIT 1));
