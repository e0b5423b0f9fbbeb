-- Promise: bind_tables says what it did not find and which roles it does not know; names that a mapping gives are read as
-- the roles they stand for, everywhere.
\set VERBOSITY default
CREATE ROLE regress_binder;
CREATE ROLE regress_keeper;
GRANT EXECUTE ON FUNCTION graph_kernel.bind_tables TO regress_binder;
CREATE SCHEMA named;
GRANT USAGE, CREATE ON SCHEMA named TO regress_binder, regress_keeper;
SET search_path = public, named;
CREATE TABLE named.messages (id uuid PRIMARY KEY, parent uuid, type text, body text);
CREATE INDEX ON named.messages (parent, id);
INSERT INTO named.messages VALUES
    (turn(1), NULL, 'human', 'one'), (turn(2), turn(1), 'AI', 'two'), (turn(3), turn(2), 'function', 'three'),
    (turn(4), turn(2), 'supervisor', 'four'), (turn(5), turn(3), 'Model', 'five'), (turn(6), turn(3), NULL, NULL), (turn(7), turn(3), 'user', NULL),
    (turn(8), turn(3), 'Bot', NULL), (turn(9), turn(3), 'developer', NULL);
-- What is not found is named, with what each turn reads as. The commands that the hints give say it, and say no more.
CREATE FUNCTION pg_temp.bind(columns jsonb, turns regclass DEFAULT 'named.messages') RETURNS boolean LANGUAGE sql AS $$
    SELECT graph_kernel.bind_tables(turns, columns => jsonb_build_object('turns', '{"parents": [{"parent": "parent", "edge_type": "reply"}]}' || columns)) IS NOT NULL
$$;
SELECT pg_temp.bind('{}');
-- A column that another key is read from, or of a type that no role has, is not proposed for it.
SELECT pg_temp.bind('{"session_id": "type", "content_text": "body", "content_hash": null, "phase": null, "salience": null, "created_at": null}');
ALTER TABLE named.messages ADD kind bigint;
SELECT pg_temp.bind('{"session_id": "type", "content_text": "body", "content_hash": null, "phase": null, "salience": null, "created_at": null}');
ALTER TABLE named.messages DROP kind;
SELECT pg_temp.bind('{"role": "type", "content_text": "body", "session_id": null, "phase": null, "salience": null, "created_at": null}');
SELECT graph_kernel.bind_tables('messages', columns => '{"turns": {"parents": [{"parent": "parent", "edge_type": "reply"}], "role": "type", "content_text": "body", "session_id": null, "phase": null, "salience": null, "created_at": null, "content_hash": {"expression": "graph_content_hash(body)"}, "roles": {"ai": "assistant", "bot": "assistant", "developer": "system", "function": "tool", "human": "user", "model": "assistant"}}}') IS NOT NULL AS bound;
SELECT check_name, ok, count FROM graph_check() WHERE check_name IN ('unknown_roles', 'turns_without_role', 'turns_without_content_hash') ORDER BY 1;
SELECT graph_kernel.bind_tables('messages', columns => '{"turns": {"parents": [{"parent": "parent", "edge_type": "reply"}], "role": "type", "content_text": "body", "session_id": null, "phase": null, "salience": null, "created_at": null, "content_hash": null, "roles": {"ai": "assistant", "bot": "assistant", "developer": "system", "function": "tool", "human": "user", "model": "assistant", "SUPERVISOR": "system"}}}') IS NOT NULL AS bound;
SELECT check_name, ok, count FROM graph_check() WHERE check_name IN ('unknown_roles', 'turns_without_role') ORDER BY 1;
SELECT turn_number(turn_id) AS turn, role FROM graph_slice_turns(turn(3)) ORDER BY 1;
SELECT turn_number(turn_id) AS turn, role FROM graph_messages(turn(3), '{"preset": "chat", "max_tokens": 1000}') ORDER BY 1;
SELECT turn_number(m.turn_id) AS turn, m.role, m.state FROM graph_messages_record(turn(3)) AS r, graph_messages_show(r) AS m ORDER BY 1;
SELECT status FROM graph_slice(turn(3)) AS s, graph_replay(s);
SELECT jsonb_pretty(resolved #> '{turns,roles}') FROM graph_kernel.binding WHERE is_current AND name = 'default';

-- The same slices as of a table whose column holds these names, whatever the column is.
CREATE TYPE named.kind AS ENUM ('human', 'AI', 'function', 'supervisor', 'Model', 'user', 'Bot', 'developer');
-- Not every server is built with ICU.
SELECT EXISTS (SELECT FROM pg_collation WHERE collname = 'und-x-icu') AS icu \gset
\if :icu
CREATE COLLATION named.odd (provider = icu, locale = 'tr', deterministic = false);
\else
CREATE COLLATION named.odd FROM "C";
\endif
CREATE TABLE exports (shape text, export jsonb);
CREATE FUNCTION pg_temp.exports() RETURNS jsonb LANGUAGE sql AS $$
    SELECT jsonb_agg(graph_slice(turn(n), policy::slice_policy)::jsonb - '{attestation,admissibility_token}'::text[] ORDER BY n, policy)
    FROM generate_series(1, 9) AS n, unnest(ARRAY['default', 'chat', '{"version": "slice_policy_v2", "max_nodes": 2, "keep_tool_results": true}']) AS policy
$$;
CREATE VIEW named.roles AS SELECT '{"ai": "assistant", "bot": "assistant", "developer": "system", "function": "tool", "human": "user", "model": "assistant"}'::jsonb AS roles;
SET client_min_messages = warning;
SELECT pg_temp.bind(jsonb_build_object('role', 'type', 'content_text', 'body', 'roles', roles)) FROM named.roles;
INSERT INTO exports SELECT 'text', pg_temp.exports();
CREATE TABLE named.plain AS SELECT id, parent, body, coalesce(roles ->> lower(type), type) AS type FROM named.messages, named.roles;
CREATE TABLE named.enums AS SELECT id, parent, body, type::named.kind FROM named.messages;
CREATE TABLE named.chars AS SELECT id, parent, body, type::char(20) FROM named.messages;
CREATE TABLE named.odds AS SELECT id, parent, body, type COLLATE named.odd AS type FROM named.messages;
CREATE TABLE named.jsons AS SELECT id, parent, body, jsonb_build_object('type', type) AS type FROM named.messages;
DO $$
DECLARE
    shape text;
    role jsonb;
BEGIN
    FOREACH shape IN ARRAY '{plain,enums,chars,odds,jsons}'::text[] LOOP
        EXECUTE format('ALTER TABLE named.%I ADD PRIMARY KEY (id)', shape);
        role := CASE shape WHEN 'jsons' THEN '{"expression": "type ->> ''type''"}' ELSE '"type"' END;
        PERFORM pg_temp.bind(jsonb_build_object('role', role, 'content_text', 'body')
                             || CASE shape WHEN 'plain' THEN '{}' ELSE jsonb_build_object('roles', roles) END, format('named.%I', shape)::regclass)
        FROM named.roles;
        INSERT INTO exports SELECT shape, pg_temp.exports();
    END LOOP;
END $$;
SELECT shape, export = (SELECT export FROM exports WHERE shape = 'plain') AS same FROM exports ORDER BY shape COLLATE "C";
SELECT check_name, ok, count FROM graph_check() WHERE check_name = 'unknown_roles';
RESET client_min_messages;

-- It is a part of the mapping: with other roles, another graph; with the same ones, the same.
SELECT count(DISTINCT graph), count(*) FROM (
    SELECT graph_kernel.bind_tables('plain', columns => jsonb_build_object('turns', jsonb_build_object('parents', '[{"parent": "parent", "edge_type": "reply"}]'::jsonb,
        'session_id', NULL, 'phase', NULL, 'salience', NULL, 'created_at', NULL, 'content_text', NULL, 'role', 'type') || mapping)) AS graph
    FROM unnest('{"{}", "{\"roles\": {\"supervisor\": \"system\"}}", "{\"roles\": {\"supervisor\": \"tool\"}}", "{\"roles\": {\"supervisor\": \"system\"}}"}'::jsonb[]) AS mapping) AS b;
-- What is no such object is refused, with the command.
SELECT code, message, detail FROM unnest(ARRAY['[]', '"human"', '1', '{"human": "person"}', '{"human": null}', '{"human": {"expression": "x"}}',
        '{"Human": "user", "hUMAN": "tool"}', '{"human": "User"}', '{"' || repeat('é', 32) || '": "user"}',
        (SELECT jsonb_object_agg('r' || n, 'user')::text FROM generate_series(1, 65) AS n)]) AS roles,
    test_error(format('SELECT graph_kernel.bind_tables(%L, columns => %L)', 'plain', jsonb_build_object('turns', jsonb_build_object(
        'role', 'type', 'parents', '[{"parent": "parent", "edge_type": "reply"}]'::jsonb, 'roles', roles::jsonb))));
SELECT code, message, hint FROM test_error($$SELECT graph_kernel.bind_tables('plain', columns => '{"turns": {"parents": [{"parent": "parent", "edge_type": "reply"}], "roles": {"human": "user"}}}')$$);
SET client_min_messages = warning;
SELECT pg_temp.bind(jsonb_build_object('role', 'type', 'roles', (SELECT jsonb_object_agg(repeat('r', 60) || n, 'user') || '{"": "tool", "it''s \"\\": "system", "É": "tool"}' FROM generate_series(1, 61) AS n)), 'plain');
INSERT INTO named.plain VALUES (turn(11), turn(1), NULL, ''), (turn(12), turn(1), NULL, 'It''s "\'), (turn(13), turn(1), NULL, 'é'), (turn(14), turn(1), NULL, 'É');
-- However strings are written in the session.
SET standard_conforming_strings = off;
SET escape_string_warning = off;
SELECT turn_number(turn_id) AS turn, role FROM graph_slice_turns(turn(1)) WHERE turn_number(turn_id) > 10 ORDER BY 1;
RESET escape_string_warning;
RESET standard_conforming_strings;
RESET client_min_messages;

-- Names of roles are read with the rights of who binds, who has to be allowed to read the tables. Nothing that only advises fails.
GRANT SELECT (id, parent, body) ON named.plain TO regress_binder;
SET ROLE regress_binder;
SELECT pg_temp.bind('{"role": "type", "session_id": null, "phase": null, "salience": null, "created_at": null, "content_text": null}', 'plain');
RESET ROLE;
GRANT SELECT ON named.plain TO regress_binder;
SET ROLE regress_binder;
SELECT pg_temp.bind('{"role": "type", "session_id": null, "phase": null, "salience": null, "created_at": null, "content_text": null}', 'plain');
RESET ROLE;
ALTER TABLE named.plain ENABLE ROW LEVEL SECURITY;
SET ROLE regress_binder;
SELECT pg_temp.bind('{"role": "type", "session_id": null, "phase": null, "salience": null, "created_at": null, "content_text": null}', 'plain');
RESET ROLE;
-- An expression that raises on a row.
SELECT pg_temp.bind('{"role": {"expression": "(1 / (length(body) - 3))::text"}, "session_id": null, "phase": null, "salience": null, "created_at": null, "content_text": null}');
-- A function that planning runs has the rights of who binds, and no more.
CREATE FUNCTION named.tell(text) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RAISE NOTICE 'planning runs as %', current_user; RETURN $1; END $$;
CREATE TABLE named.told (id uuid PRIMARY KEY, parent uuid, type text);
CREATE INDEX ON named.told (parent, id);
SET client_min_messages = warning;
CREATE INDEX ON named.told USING gin (to_tsvector('english', type || named.tell('x')));
INSERT INTO named.told VALUES (turn(1), NULL, 'human');
RESET client_min_messages;
GRANT SELECT ON named.told TO regress_binder;
\c -
\set VERBOSITY default
SET ROLE regress_binder;
SELECT graph_kernel.bind_tables('named.told', columns => '{"turns": {"parents": [{"parent": "parent", "edge_type": "reply"}], "role": "type", "session_id": null, "phase": null, "salience": null, "created_at": null, "content_text": null}}') IS NOT NULL AS bound;
SELECT current_user;
RESET ROLE;

SET client_min_messages = warning;
SELECT graph_kernel.unbind_tables();
DROP TABLE exports;
DROP SCHEMA named CASCADE;
REVOKE EXECUTE ON FUNCTION graph_kernel.bind_tables FROM regress_binder;
DROP ROLE regress_binder, regress_keeper;
