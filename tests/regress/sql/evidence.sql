-- Promise: how varied a slice is, and whether it is enough evidence, is said of slices that verify alone.
\pset null '(null)'
SELECT graph_diversity(graph_slice(turn(2)));
-- The five turns pass every preset.
SELECT p.policy, s.* FROM (VALUES (NULL), ('"default"'), ('"lenient"'), ('"strict"'), ('{}')) AS p (policy), graph_sufficiency(graph_slice(turn(2)), p.policy::jsonb) AS s;
SELECT * FROM graph_sufficiency(graph_slice(turn(2)));
-- A weak turn alone lacks all that strict asks for.
SELECT * FROM graph_sufficiency(graph_slice(turn(4), '{"max_nodes": 1}'), '"strict"');
SELECT * FROM graph_sufficiency(graph_slice(turn(4), '{"max_nodes": 1}'), '"lenient"');
-- Each key is a bound of its own; what is as large as asked for is enough.
SELECT p.policy, s.* FROM (VALUES
    ('{"min_turns": 5}'), ('{"min_turns": 6}'), ('{"min_roles": 3}'), ('{"min_phases": 5}'), ('{"min_phases": 6}'),
    ('{"min_high_salience": 2}'), ('{"min_high_salience": 3}'), ('{"min_mean_salience": 0.52}'), ('{"min_mean_salience": 0.53}')
) AS p (policy), graph_sufficiency(graph_slice(turn(2)), p.policy::jsonb) AS s;
SELECT p.policy, s.* FROM (VALUES ('{"min_turns": 0, "min_roles": 0, "min_high_salience": 0}'), ('{"require_exchange": false, "min_turns": 1, "min_roles": 1, "min_high_salience": 0}'))
    AS p (policy), graph_sufficiency(graph_slice(turn(1), '{"max_nodes": 1}'), p.policy::jsonb) AS s;
-- A slice that does not verify is an error, and so is one that saw its own transaction.
SELECT v.name, e.* FROM (VALUES
    ('nothing', 'NULL::json'), ('no slice', '''{}''::json'),
    ('edited', 'replace(graph_slice(turn(2))::text, ''"salience":0.1'', ''"salience":0.9'')::json')
) AS v (name, slice), test_error('SELECT * FROM graph_sufficiency(' || v.slice || ')') AS e;
SELECT * FROM test_error('SELECT graph_diversity(''{}'')');
BEGIN;
UPDATE memory_turns SET salience_score = 1 WHERE id = turn(1);
SELECT code, message FROM test_error('SELECT graph_diversity(graph_slice(turn(2)))');
ROLLBACK;
-- Bad policies name their key.
SELECT p.policy, e.code, e.message, e.detail FROM (VALUES
    ('"lax"'), ('[]'), ('null'), ('3'), ('{"min_turn": 1}'), ('{"min_turns": 1.5}'), ('{"min_turns": -1}'), ('{"min_turns": 1e400}'),
    ('{"require_exchange": 1}'), ('{"min_mean_salience": 2}'), ('{"min_mean_salience": "0.5"}')
) AS p (policy), test_error(format('SELECT * FROM graph_sufficiency(graph_slice(turn(2)), %L)', p.policy)) AS e;
SELECT code, message FROM test_error(format('SELECT * FROM graph_sufficiency(graph_slice(turn(2)), %L)', repeat('[', 200) || repeat(']', 200)));
SELECT hint FROM test_error($$SELECT * FROM graph_sufficiency(graph_slice(turn(2)), '"lax"')$$);
