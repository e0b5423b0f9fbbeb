-- rows of the package alone
SELECT role, content FROM graph_messages(graph_turn_id('a', '-', 'm4'));
SELECT count(*) FROM graph_slice_turns(graph_turn_id('a', '-', 'm4')) WHERE session_id = 'a';
