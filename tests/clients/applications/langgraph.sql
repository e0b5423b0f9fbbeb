-- rows of the package alone
-- From the end of the innermost graph: its states, and those of the graphs around it that they came from.
SELECT c.thread_id, regexp_replace(c.checkpoint_ns, ':[^|]*', '', 'g'), c.metadata ->> 'source', c.metadata ->> 'step'
  FROM checkpoints AS k,
       graph_slice_turns(
           graph_turn_id(graph_turn_id(k.thread_id)::text, '/', k.checkpoint_ns, '/', k.checkpoint_id), 'lineage') AS s
  JOIN checkpoints AS c
    ON graph_turn_id(graph_turn_id(c.thread_id)::text, '/', c.checkpoint_ns, '/', c.checkpoint_id) = s.turn_id
 WHERE k.checkpoint_ns LIKE '%|%' AND k.metadata ->> 'step' = '1'
 ORDER BY c.thread_id, c.checkpoint_id;
-- Times are those in the states, to the second.
SELECT count(*)
  FROM checkpoints AS c
  JOIN graph_slice_turns(graph_turn_id(graph_turn_id(thread_id)::text, '/', checkpoint_ns, '/', checkpoint_id)) AS s
    ON s.turn_id = graph_turn_id(graph_turn_id(thread_id)::text, '/', checkpoint_ns, '/', checkpoint_id)
 WHERE abs(s.created_at - extract(epoch FROM (checkpoint ->> 'ts')::timestamptz)) > 1;
