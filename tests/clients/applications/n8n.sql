-- rows of the package alone
SELECT role, content FROM graph_messages('00000000-0000-4000-8000-0000000000c4');
SELECT count(*) FROM graph_slice_turns('00000000-0000-4000-8000-0000000000c4');
