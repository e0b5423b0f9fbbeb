-- rows of the package alone
SELECT role, content FROM graph_messages(graph_turn_id('msg_4'));
