-- Promise: a registered policy is for good; a name and a params_hash mean one policy each; the presets are always there.
SELECT name, policy_id, params_hash, policy = name::slice_policy AS preset, registered_by, registered_at FROM graph_policies ORDER BY policy_id, params_hash;
-- As the published registry has it with these three.
SELECT graph_policy_registry_fingerprint() = 'cafe77a21173bb02' AS published;

-- Registering, again and under other names. Parameters are equal as they are hashed.
SELECT * FROM graph_policy_register('{"max_nodes": 3, "max_radius": 2}', 'small');
SELECT * FROM graph_policy_register('{"max_radius": 2, "max_nodes": 3}', 'small');
SELECT * FROM graph_policy_register(policy => '{"max_radius": 2, "max_nodes": 3, "distance_decay": 0.90000001}');
SELECT * FROM graph_policy_register('{"max_nodes": 3, "max_radius": 2}', 'tiny');
SELECT * FROM graph_policy_register('{"max_nodes": 4, "max_radius": 2}');
SELECT name, params_hash, policy::json ->> 'max_nodes' AS max_nodes, registered_by = current_user AS by_me, registered_at = now() AS now
FROM graph_policies WHERE registered_at IS NOT NULL ORDER BY name COLLATE "C";
-- It has a name from here on.
SELECT * FROM graph_policy_register('{"max_nodes": 4, "max_radius": 2}', 'four');
SELECT name, params_hash FROM graph_policies WHERE registered_at IS NOT NULL ORDER BY name COLLATE "C";
-- Presets may get more names, and stand for themselves.
SELECT * FROM graph_policy_register('default');
SELECT * FROM graph_policy_register('default', 'default');
SELECT * FROM graph_policy_register('default', 'ours');
SELECT count(*) FROM graph_policies;
-- Whether a policy has several names, or was registered more than once, does not count.
SELECT graph_policy_registry_fingerprint();

-- A taken name is not given again.
SELECT * FROM test_error($$SELECT graph_policy_register('{"max_nodes": 5}', 'small')$$);
SELECT * FROM test_error($$SELECT graph_policy_register('{"max_nodes": 5}', 'focused')$$);
-- And nothing of it was registered.
SELECT * FROM test_error(format('SELECT graph_policy(%L)', graph_policy_hash('{"max_nodes": 5}')));
-- What is not a name, what is not a policy.
SELECT left(name, 20) AS name, e.code, e.message, e.detail FROM unnest(ARRAY['', '0123456789abcdef', repeat('x', 256)]) AS name,
    test_error(format($$SELECT graph_policy_register('default', %L)$$, name)) AS e;
SELECT left(name, 20) AS name, e.code FROM unnest(ARRAY[' ', '0123456789ABCDEF', '0123456789abcde', E'two\nlines', 'größer', repeat('x', 255)]) AS name,
    test_error(format($$SELECT graph_policy_register('default', %L)$$, name)) AS e;
SELECT * FROM test_error('SELECT graph_policy_register(NULL)');
SELECT code, detail FROM test_error($$SELECT graph_policy_register('{"max_nodes": 0}')$$);

-- Resolving: by name, by hash.
SELECT graph_policy('small') = '{"max_nodes": 3, "max_radius": 2}' AS by_name, graph_policy('94e7a021c0486b8f') = graph_policy('tiny') AS by_hash,
       graph_policy('broad') = 'broad' AS preset, graph_policy(graph_policy_hash('broad')) = 'broad' AS preset_by_hash, graph_policy(NULL) IS NULL AS of_null;
SELECT * FROM test_error($$SELECT graph_policy('Small')$$);
SELECT code, detail FROM test_error($$SELECT graph_policy('')$$);
SELECT count(*) FROM graph_slice_turns(turn(2), graph_policy('small'));

-- A reference stands for one policy even if two hashes collide: here the fingerprint of another is planted.
BEGIN;
ALTER TABLE graph_kernel.policies ALTER params_hash DROP EXPRESSION;
INSERT INTO graph_kernel.policies (policy, params_hash, registered_by) VALUES ('{"max_nodes": 6}', graph_policy_hash('{"max_nodes": 7}'), 'nobody');
SELECT * FROM test_error($$SELECT graph_policy_register('{"max_nodes": 7}')$$);
SELECT code, detail FROM test_error($$SELECT graph_policy_register('{"max_nodes": 7}', 'seven')$$);
ROLLBACK;

-- No role can change it, not even the table's owner.
SELECT statement, e.code, e.message, e.detail FROM unnest(ARRAY[
    'UPDATE graph_kernel.policies SET name = NULL', 'DELETE FROM graph_kernel.policies', 'TRUNCATE graph_kernel.policies',
    $$UPDATE graph_policies SET name = 'x'$$]) AS statement, test_error(statement) AS e;
BEGIN;
SET LOCAL session_replication_role = replica;
SELECT code FROM test_error('DELETE FROM graph_kernel.policies');
ROLLBACK;
-- A restored row is like any other: a preset's name and what looks like a hash are not taken.
SELECT name, e.code FROM unnest(ARRAY['default', '0123456789abcdef', '', 'small']) AS name,
    test_error(format($$INSERT INTO graph_kernel.policies (name, policy, registered_by) VALUES (%L, '{}', 'x')$$, name)) AS e;

-- Reading is public, in a read-only transaction too; registering is granted. It is the caller who is noted.
CREATE ROLE regress_reader;
CREATE ROLE regress_registrar;
GRANT EXECUTE ON FUNCTION graph_kernel.register_policy TO regress_registrar;
-- A grant on all functions of the extension's schema grants no administration.
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA public TO regress_reader;
SET ROLE regress_reader;
SELECT code, message FROM test_error('SELECT graph_policy_register(''{"max_nodes": 8}'', ''eight'')');
-- Nor does it help to go around the function.
SELECT statement, e.code, e.message FROM unnest(ARRAY[
    $$INSERT INTO graph_kernel.policies (policy, name) VALUES ('{"max_nodes": 8}', 'eight')$$,
    $$INSERT INTO graph_kernel.policies (policy, registered_by) VALUES ('{"max_nodes": 8}', 'postgres')$$,
    $$SELECT graph_kernel.add_policy('{"max_nodes": 8}', 'eight')$$,
    $$SELECT graph_api_register_policy('{"policy": {"max_nodes": 8}}')$$]) AS statement, test_error(statement) AS e;
SELECT code FROM test_error($$SELECT graph_policy_register('{"max_nodes": 8}')$$);
BEGIN READ ONLY;
SELECT graph_policy('small') = '{"max_nodes": 3, "max_radius": 2}' AS resolved, (SELECT count(*) FROM graph_policies) AS policies,
       graph_policy_registry_fingerprint() IS NOT NULL AS fingerprint;
COMMIT;
SET ROLE regress_registrar;
SELECT * FROM graph_policy_register('{"max_nodes": 8}', 'eight');
-- Registering what is there writes nothing.
BEGIN READ ONLY;
SELECT * FROM graph_policy_register('{"max_nodes": 8}', 'eight');
SELECT code FROM test_error($$SELECT graph_policy_register('{"max_nodes": 9}')$$);
COMMIT;
-- No role registers as another, names what is not registered, or takes a name.
SELECT statement, e.code, e.message FROM unnest(ARRAY[
    $$INSERT INTO graph_kernel.policies (policy, registered_by) VALUES ('{"max_nodes": 11}', 'postgres')$$,
    $$INSERT INTO graph_kernel.policies (policy, name) VALUES ('{"max_nodes": 11}', 'eleven')$$,
    $$INSERT INTO graph_kernel.policies (policy, name) VALUES ('{"max_nodes": 8}', 'small')$$,
    $$INSERT INTO graph_kernel.policies (policy, name) VALUES ('{"max_nodes": 8}', 'eight again')$$]) AS statement, test_error(statement) AS e;
-- Nor a preset's, whether the fingerprint counts it or not: by INSERT, by COPY and by the function alike.
SELECT name, policy, i.code, i.detail, r.code, r.detail
FROM unnest('{default,chat,lineage,0123456789abcdef,""}'::text[]) AS name, unnest(ARRAY['{"max_nodes": 8}', '{"preset": "chat"}']) AS policy,
    test_error(format('INSERT INTO graph_kernel.policies (name, policy) VALUES (%L, %L)', name, policy)) AS i,
    test_error(format('SELECT graph_policy_register(%2$L, %1$L)', name, policy)) AS r;
\set VERBOSITY terse
COPY graph_kernel.policies (name, policy) FROM STDIN;
chat	{"max_nodes": 8}
\.
\set VERBOSITY default
-- A preset that the fingerprint does not count is registered before it gets another name.
SELECT code, message FROM test_error($$INSERT INTO graph_kernel.policies (name, policy) VALUES ('talk', '{"preset": "chat"}')$$);
SELECT code, detail FROM test_error('INSERT INTO graph_kernel.policies (policy) VALUES (NULL)');
RESET ROLE;
-- A restore may bring a name that has become a preset's since: it is the dump's policy from then on.
BEGIN;
INSERT INTO graph_kernel.policies (name, policy, registered_by) VALUES (NULL, '{"max_nodes": 12}', 'x'), ('chat', '{"max_nodes": 12}', 'x');
SELECT graph_policy('chat') = '{"max_nodes": 12}' AS restored, (SELECT count(*) FROM graph_policies WHERE name = 'chat') AS chats;
SELECT code, detail FROM test_error($$SELECT graph_policy_register('{"preset": "chat"}', 'chat')$$);
SELECT params_hash = graph_policy_hash('{"max_nodes": 12}') AS same FROM graph_policy_register('{"max_nodes": 12}', 'chat');
ROLLBACK;
SELECT name, registered_by FROM graph_policies WHERE name LIKE 'eight%' ORDER BY name;
-- In a function with other rights it is those that count: the role that registered is the function's owner.
CREATE FUNCTION register_for_all(policy slice_policy) RETURNS text LANGUAGE sql SECURITY DEFINER AS $$ SELECT params_hash FROM graph_policy_register($1) $$;
SET ROLE regress_reader;
SELECT register_for_all('{"max_nodes": 9}');
RESET ROLE;
SELECT registered_by FROM graph_policies WHERE policy = '{"max_nodes": 9}';

-- Part of a transaction: rolled back, it was never there.
BEGIN;
SELECT count(*) FROM graph_policy_register('{"max_nodes": 10}', 'ten');
ROLLBACK;
SELECT code FROM test_error($$SELECT graph_policy('ten')$$);

DROP FUNCTION register_for_all(slice_policy);
REVOKE EXECUTE ON FUNCTION graph_kernel.register_policy FROM regress_registrar;
REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA public FROM regress_reader;
DROP ROLE regress_reader, regress_registrar;
