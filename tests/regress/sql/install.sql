-- Promise: whoever owns a database may install into any schema; no other role gets what is the owner's; dropping keeps users' data.
\set VERBOSITY terse
SELECT current_user AS superuser, current_database() AS home \gset
CREATE ROLE regress_owner LOGIN;
CREATE ROLE regress_other LOGIN;
CREATE ROLE regress_web LOGIN;
CREATE DATABASE regress_install OWNER regress_owner TEMPLATE template0;

\c regress_install regress_owner
-- The extension's functions go to the schema given, its private schema is its own.
CREATE SCHEMA ext;
CREATE EXTENSION graph_kernel WITH SCHEMA ext;
SHOW search_path;
SELECT count(*) AS in_public FROM pg_proc WHERE pronamespace = 'public'::regnamespace;
SELECT extname, extnamespace::regnamespace, extowner::regrole, extrelocatable FROM pg_extension WHERE extname = 'graph_kernel';
SELECT graph_kernel.create_tables();
SELECT tableowner, tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY tablename COLLATE "C";
INSERT INTO memory_turns (id, role, trajectory_phase, salience_score, content_text) VALUES
    ('00000000-0000-0000-0000-000000000001', 'user', 'planning', 0.5, 'one'), ('00000000-0000-0000-0000-000000000002', 'assistant', 'synthesis', 0.5, 'two');
INSERT INTO memory_turn_edges VALUES ('00000000-0000-0000-0000-000000000001', '00000000-0000-0000-0000-000000000002', 'reply');
SELECT ext.graph_slice('00000000-0000-0000-0000-000000000001') ->> 'slice_id' AS slice_id;
SELECT turn_id, priority FROM ext.graph_slice_turns('00000000-0000-0000-0000-000000000001', '{"max_nodes": 1}');
SELECT edge_type FROM ext.graph_slice_edges('00000000-0000-0000-0000-000000000001', policy => 'focused'::ext.slice_policy);
SELECT count(*) FROM ext.graph_slices('{00000000-0000-0000-0000-000000000001}', jsonb_build_object('max_nodes', 2));
SELECT ext.graph_policy_hash('focused');
-- Policies too, registered and referred to.
SELECT params_hash FROM ext.graph_policy_register('{"max_nodes": 2}', 'two');
SELECT count(*) FROM ext.graph_slice_turns('00000000-0000-0000-0000-000000000001', ext.graph_policy('two'));
SELECT name, registered_by FROM ext.graph_policies ORDER BY name COLLATE "C";
SELECT ext.graph_api_slice('{"anchor_turn_id": "00000000-0000-0000-0000-000000000001", "policy_ref": {"policy_id": "slice_policy_v1", "params_hash": "02005444cae1117d"}}') #>> '{slice,slice_id}' AS slice_id;
SELECT ext.graph_api_register_policy('{"policy": {"max_nodes": 3}}'), ext.graph_api_health() ->> 'status' AS status;
-- Hints run as they are, wherever the extension is.
ALTER TABLE memory_turns DISABLE TRIGGER USER; -- which keep the hashes
UPDATE memory_turns SET content_hash = 'none';
SELECT hint FROM ext.graph_check() WHERE check_name = 'malformed_content_hashes';
SELECT hint AS command FROM ext.graph_check() WHERE check_name = 'malformed_content_hashes' \gset
:command
-- So do the triggers, the backfill and the audit.
SET client_min_messages = warning;
UPDATE memory_turns SET content_hash = NULL;
CALL graph_kernel.backfill_content_hashes();
RESET client_min_messages;
SELECT count(*), bool_and(ok) AS ok FROM ext.graph_check();
ALTER TABLE memory_turns ENABLE TRIGGER USER;
UPDATE memory_turns SET content_hash = 'forged';
SELECT count(*) AS wrong FROM ext.graph_content_audit();
-- The owner binds, and may let others bind.
CREATE TABLE other_turns (LIKE memory_turns INCLUDING INDEXES);
CREATE TABLE other_edges (LIKE memory_turn_edges);
SELECT graph_kernel.bind_tables('other_turns', 'other_edges') IS NOT NULL AS bound;
\c - regress_other
SELECT graph_kernel.bind_tables('memory_turns', 'memory_turn_edges');
\echo :SQLSTATE
SELECT ext.graph_slice('00000000-0000-0000-0000-000000000001');
\echo :SQLSTATE
UPDATE graph_kernel.binding SET columns = '{}';
\echo :SQLSTATE
DELETE FROM graph_kernel.binding;
\echo :SQLSTATE
SELECT graph_kernel.unbind_tables();
\echo :SQLSTATE
\c - regress_owner
GRANT EXECUTE ON FUNCTION graph_kernel.bind_tables TO regress_other;
\c - regress_other
SELECT graph_kernel.bind_tables('memory_turns', 'memory_turn_edges');
\echo :SQLSTATE
-- Who binds tables has to be allowed to read them, now and whenever they are read.
\c - regress_owner
GRANT SELECT ON memory_turns, memory_turn_edges TO regress_other;
\c - regress_other
SELECT graph_kernel.bind_tables('memory_turns', 'memory_turn_edges') IS NOT NULL AS bound;
SELECT turns, edges, bound_by FROM graph_kernel.bindings WHERE is_current;
\c - regress_owner
SELECT graph_kernel.unbind_tables();
SELECT name, turns, is_current FROM graph_kernel.bindings ORDER BY turns::text;

-- A web role as PostgREST uses it: USAGE of the schema, SELECT on the tables, arguments from JSON.
\c - regress_owner
GRANT SELECT ON memory_turns, memory_turn_edges TO regress_web;
\c - regress_web
SELECT ext.graph_slice('00000000-0000-0000-0000-000000000001');
\echo :SQLSTATE
\c - regress_owner
GRANT USAGE ON SCHEMA ext TO regress_web;
\c - regress_web
SELECT ext.graph_slice(anchor => a.anchor, policy => a.policy) ->> 'policy_params_hash' AS focused
FROM json_to_record('{"anchor": "00000000-0000-0000-0000-000000000001", "policy": "focused"}') AS a (anchor uuid, policy ext.slice_policy);
SELECT (SELECT count(*) FROM ext.graph_slice_turns(anchor => a.anchor, policy => a.policy)) AS turns
FROM json_to_record('{"anchor": "00000000-0000-0000-0000-000000000001", "policy": {"max_nodes": 1}}') AS a (anchor uuid, policy ext.slice_policy);

-- It cannot move to another schema; dropped, it takes its dependents with it only with CASCADE, and never users' tables.
\c - regress_owner
ALTER EXTENSION graph_kernel SET SCHEMA public;
\echo :SQLSTATE
CREATE VIEW slice AS SELECT ext.graph_slice('00000000-0000-0000-0000-000000000001') ->> 'slice_id' AS slice_id;
CREATE TABLE kept_policies (name text, policy ext.slice_policy);
DROP EXTENSION graph_kernel;
\echo :SQLSTATE
SET client_min_messages = warning;
DROP EXTENSION graph_kernel CASCADE;
SELECT to_regnamespace('graph_kernel') IS NULL AS private_schema_gone, to_regclass('slice') IS NULL AS view_gone,
       (SELECT count(*) FROM pg_attribute WHERE attrelid = 'kept_policies'::regclass AND attname = 'policy') AS policy_columns,
       (SELECT count(*) FROM memory_turns) AS turns, (SELECT count(*) FROM memory_turn_edges) AS edges;
-- Installed again, in public now, the tables are the graph as before.
CREATE EXTENSION graph_kernel;
SELECT graph_slice('00000000-0000-0000-0000-000000000001') ->> 'slice_id' AS slice_id;
DROP EXTENSION graph_kernel;
-- A schema of its private schema's name is somebody else's.
CREATE SCHEMA graph_kernel;
CREATE EXTENSION graph_kernel;
\echo :SQLSTATE
DROP SCHEMA graph_kernel;
-- Who is not an owner of the database, and has not been granted CREATE on it, may not install.
\c - regress_other
CREATE EXTENSION graph_kernel;
\echo :SQLSTATE

-- Default privileges that hand out everything (hosts do that) hand out nothing of the owner's.
\c - :superuser
ALTER DEFAULT PRIVILEGES GRANT ALL ON FUNCTIONS TO regress_other WITH GRANT OPTION;
ALTER DEFAULT PRIVILEGES GRANT ALL ON TABLES TO regress_other WITH GRANT OPTION;
ALTER DEFAULT PRIVILEGES GRANT ALL ON SCHEMAS TO regress_other WITH GRANT OPTION;
ALTER DEFAULT PRIVILEGES GRANT ALL ON TYPES TO regress_other;
ALTER DEFAULT PRIVILEGES GRANT ALL ON SEQUENCES TO regress_other;
\c - regress_owner
CREATE EXTENSION graph_kernel;
\c - regress_other
SELECT graph_kernel.bind_tables('memory_turns', 'memory_turn_edges');
\echo :SQLSTATE
SELECT has_schema_privilege('graph_kernel', 'CREATE') AS may_create;
-- What it may do in the private schema, beyond what PUBLIC may: no rows.
SELECT p.oid::regprocedure FROM pg_proc AS p
WHERE p.pronamespace = 'graph_kernel'::regnamespace AND has_function_privilege(p.oid, 'EXECUTE') AND NOT has_function_privilege('regress_web', p.oid, 'EXECUTE');
SELECT c.oid::regclass, privilege FROM pg_class AS c, unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE', 'TRUNCATE', 'TRIGGER', 'REFERENCES']) AS privilege
WHERE c.relnamespace = 'graph_kernel'::regnamespace AND c.relkind IN ('r', 'v', 'p')
  AND has_table_privilege(c.oid, privilege) AND NOT has_table_privilege('regress_web', c.oid, privilege)
ORDER BY c.oid::regclass::text COLLATE "C", privilege COLLATE "C";
-- Registering is the owner's too; the list is for reading only.
SELECT has_function_privilege('graph_kernel.register_policy(slice_policy, text)', 'EXECUTE') AS may_register, count(*) FILTER (WHERE has_table_privilege('graph_policies', privilege)) AS rights_on_list
FROM unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE', 'TRUNCATE', 'TRIGGER', 'REFERENCES']) AS privilege;
SELECT has_function_privilege('regress_owner', 'graph_kernel.register_policy(slice_policy, text)', 'EXECUTE WITH GRANT OPTION') AS owner_may_grant;
-- What PUBLIC may write there: nothing. Columns of policies it may, where it may register.
SELECT c.oid::regclass, privilege FROM pg_class AS c, unnest(ARRAY['INSERT', 'UPDATE', 'DELETE', 'TRUNCATE', 'TRIGGER']) AS privilege
WHERE c.relnamespace = 'graph_kernel'::regnamespace AND c.relkind IN ('r', 'v', 'p') AND has_table_privilege('regress_web', c.oid, privilege);
SELECT attrelid::regclass, attname, attacl FROM pg_attribute WHERE attacl IS NOT NULL AND attrelid::regclass::text LIKE 'graph\_%' ORDER BY 1, 2;
-- A superuser installs for others: then binding is the superuser's.
\c - :superuser
DROP EXTENSION graph_kernel;
CREATE EXTENSION graph_kernel;
SELECT has_function_privilege('regress_owner', 'graph_kernel.bind_tables(regclass, regclass, jsonb, text)', 'EXECUTE') AS owner_may_bind,
       has_function_privilege('regress_other', 'graph_kernel.bind_tables(regclass, regclass, jsonb, text)', 'EXECUTE') AS other_may_bind;

-- Databases that are not UTF8.
\c :home :superuser
CREATE DATABASE regress_ascii ENCODING 'SQL_ASCII' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0;
CREATE DATABASE regress_latin1 ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0;
\c regress_ascii
DO $$
DECLARE
    hint text;
BEGIN
    CREATE EXTENSION graph_kernel;
EXCEPTION WHEN feature_not_supported THEN
    GET STACKED DIAGNOSTICS hint = PG_EXCEPTION_HINT;
    RAISE NOTICE '% %: %', SQLSTATE, SQLERRM, hint;
END $$;
\c regress_latin1
DO $$
DECLARE
    hint text;
BEGIN
    CREATE EXTENSION graph_kernel;
EXCEPTION WHEN feature_not_supported THEN
    GET STACKED DIAGNOSTICS hint = PG_EXCEPTION_HINT;
    RAISE NOTICE '% %: %', SQLSTATE, SQLERRM, hint;
END $$;
-- Clients may speak another encoding: the server converts.
\c :home
SET client_encoding = 'LATIN1';
SELECT slice_id(2);
RESET client_encoding;

DROP DATABASE regress_install;
DROP DATABASE regress_ascii;
DROP DATABASE regress_latin1;
DROP ROLE regress_owner, regress_other, regress_web;
