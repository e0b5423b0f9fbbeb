-- rows of the package alone
SELECT role, content FROM graph_prompt(graph_turn_id('msg_4'));
