-- Promise: psql shows what is wrong and what to type, and no CONTEXT, which would name functions that are not the user's: where a
-- function of administration raises an error, or one for policies by name.
\set VERBOSITY default
\set SHOW_CONTEXT errors
SELECT graph_kernel.create_tables('');
SELECT graph_kernel.create_tables();
SELECT graph_kernel.create_tables('other', '{"hash": true}');
SELECT graph_kernel.create_tables('nowhere');
SELECT graph_kernel.create_trace_table('');
SELECT graph_kernel.create_trace_table('nowhere');
SELECT graph_kernel.create_recorder_table('');
SELECT graph_kernel.create_recorder_table('nowhere');
SELECT graph_kernel.bind_tables('memory_turns', name => '');
SELECT graph_kernel.bind_traces('memory_turns');
SELECT graph_kernel.bind_recorder_table('memory_turns');
SELECT graph_kernel.unbind_tables('nowhere');
SELECT graph_policy('nowhere');
SELECT graph_policy_register(NULL);
SELECT graph_policy_register('{"max_nodes": 3}', 'default');
SELECT * FROM graph_policy_register('{"max_nodes": 3, "version": "slice_policy_v2", "pins": ["00000000-0000-0000-0000-000000000001"]}');
SELECT graph_kernel.revoke_key('nowhere');
-- Who may not register is told so in the same way.
CREATE ROLE regress_reader;
SET ROLE regress_reader;
SELECT graph_policy_register('{"max_nodes": 3}');
SELECT graph_kernel.create_tables();
RESET ROLE;
DROP ROLE regress_reader;
-- The whole of an answer passes through, too.
SELECT graph_policy('focused') = 'focused'::slice_policy AS is_found, graph_policy(NULL) IS NULL AS is_null;
SELECT * FROM graph_policy_register('focused');
BEGIN;
SELECT p.policy_id, p.params_hash = graph_policy_hash('{"max_nodes": 3}') AS is_same FROM graph_policy_register('{"max_nodes": 3}', 'three') AS p;
SELECT graph_policy('three') = graph_policy(graph_policy_hash('{"max_nodes": 3}')) AS is_found;
SELECT graph_kernel.rotate_key(true) ~ '^[0-9]+-[0-9a-f]{16}$' AS is_kid;
ROLLBACK;
