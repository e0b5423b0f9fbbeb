-- Promise: graph_check reports what is wrong with a graph; each of its hints is a command that runs and changes no row.
SET client_min_messages = warning; -- no notices of missing indexes
SELECT * FROM graph_check();

CREATE SCHEMA dirty;
CREATE TABLE dirty."Turns" (LIKE memory_turns);
CREATE TABLE dirty."Edges" (parent_turn_id uuid, child_turn_id uuid, edge_type text);
CREATE UNIQUE INDEX turn_id ON dirty."Turns" (id);
SELECT graph_kernel.bind_tables('dirty."Turns"', 'dirty."Edges"') IS NOT NULL AS bound;
DROP INDEX dirty.turn_id;
INSERT INTO dirty."Turns" SELECT * FROM memory_turns;
INSERT INTO dirty."Edges" SELECT * FROM memory_turn_edges;
-- Only indexes are missing in a clean graph; an empty graph is clean as well.
SELECT check_name, ok, count FROM graph_check() WHERE NOT ok;
BEGIN;
TRUNCATE dirty."Turns", dirty."Edges";
SELECT check_name, ok, count FROM graph_check() WHERE NOT ok;
ROLLBACK;
-- A mistake of each kind, one or more of each.
INSERT INTO dirty."Turns" SELECT * FROM memory_turns WHERE id = turn(5);                       -- 5 twice
INSERT INTO dirty."Turns" (id, role, trajectory_phase, salience_score, content_text, content_hash)
SELECT turn(n), role, phase, salience, 'turn ' || n, CASE WHEN n <> 15 THEN graph_content_hash('turn ' || n) END
FROM (VALUES (10, 'user', 'planning', 0.5), (11, 'USER', 'Planning', 0), (12, 'robot', 'inquiry', 1.5), (13, NULL, NULL, NULL),
             (14, '', '', 'NaN'), (15, 'tool', 'synthesis', 1), (16, 'user', 'planning', -0.5)) AS v (n, role, phase, salience);
UPDATE dirty."Turns" SET content_hash = upper(content_hash) WHERE id = turn(10);
UPDATE dirty."Turns" SET content_text = content_text || ' edited' WHERE id IN (turn(11), turn(12), turn(16));
INSERT INTO dirty."Edges" VALUES
    (turn(10), turn(11), 'REPLY'), (turn(11), turn(12), NULL), (turn(12), turn(13), ''), (turn(13), turn(14), 'odd'),
    (turn(14), turn(10), 'reply'),                                                              -- a cycle of five
    (turn(15), turn(15), 'reply'),                                                              -- a self-loop
    (turn(15), turn(99), 'reply'), (turn(98), turn(15), 'reply'),                                      -- dangling
    (NULL, turn(15), 'odd'), (turn(97), NULL, 'odd');                                           -- no edges
SELECT check_name, ok, count, detail FROM graph_check();
\a
\t
SELECT check_name, hint FROM graph_check() WHERE hint IS NOT NULL;
\a
\t
-- Each hint runs; those that look find what was counted, and nothing is changed. Duplicates are the owner's to choose from.
DELETE FROM dirty."Turns" AS t USING dirty."Turns" AS o WHERE t.id = o.id AND t.ctid > o.ctid;
CREATE TEMP TABLE before AS SELECT 'turn' AS what, t::text FROM dirty."Turns" AS t UNION ALL SELECT 'edge', e::text FROM dirty."Edges" AS e;
CREATE TEMP TABLE done AS SELECT row_number() OVER () AS n, check_name, count, hint FROM graph_check() WHERE hint IS NOT NULL;
SELECT d.check_name, e.code, e.message FROM done AS d, test_error(replace(d.hint, 'CONCURRENTLY ', '')) AS e ORDER BY d.n;
SELECT check_name, hint FROM done WHERE hint ~* '(update|delete|truncate|insert|merge)\M.*;';
SELECT count(*) AS changed FROM ((TABLE before EXCEPT ALL (SELECT 'turn', t::text FROM dirty."Turns" AS t UNION ALL SELECT 'edge', e::text FROM dirty."Edges" AS e))) AS x;
CREATE FUNCTION pg_temp.rows_of(command text) RETURNS bigint LANGUAGE plpgsql AS
$$ DECLARE n bigint; BEGIN EXECUTE format('SELECT count(*) FROM (%s) AS q', split_part(command, ';', 1)) INTO n; RETURN n; END $$;
SELECT check_name, count, pg_temp.rows_of(hint) AS shown FROM done WHERE check_name IN ('dangling_edges', 'self_loops', 'odd_saliences', 'malformed_content_hashes', 'stale_content_hashes') ORDER BY n;
-- What is wrong is for people to judge.
UPDATE dirty."Turns" SET role = 'user', trajectory_phase = 'exploration', salience_score = 0.5 WHERE id >= turn(12);
UPDATE dirty."Turns" SET content_hash = graph_content_hash(content_text), salience_score = coalesce(salience_score, 0.5);
DELETE FROM dirty."Edges" WHERE parent_turn_id = turn(14) OR parent_turn_id = child_turn_id OR parent_turn_id = turn(98) OR child_turn_id = turn(99);
UPDATE dirty."Edges" SET edge_type = 'default' WHERE edge_type IS NULL OR edge_type IN ('', 'odd');
SELECT count(*), bool_and(ok) AS ok, count(hint) AS hints FROM graph_check();

-- The cycle count: turns on cycles and between them; long chains are none.
TRUNCATE dirty."Edges", dirty."Turns";
INSERT INTO dirty."Turns" (id) SELECT turn(n) FROM generate_series(1, 2000) AS n;
INSERT INTO dirty."Edges" SELECT turn(n), turn(n + 1), 'reply' FROM generate_series(1, 1999) AS n;
SELECT ok, count FROM graph_check() WHERE check_name = 'cycles';
INSERT INTO dirty."Edges" VALUES (turn(2000), turn(1), 'reply');
SELECT ok, count FROM graph_check() WHERE check_name = 'cycles';

-- One table is turns and edges: a root is not an edge, and what is wrong with a row is never to be deleted.
CREATE TABLE dirty.messages (id uuid PRIMARY KEY, parent uuid, body text, conversation_id text);
INSERT INTO dirty.messages SELECT turn(n), CASE WHEN n > 1 THEN turn(n / 2) END, 'message ' || n FROM generate_series(1, 20) AS n;
SELECT graph_kernel.bind_tables('dirty.messages', 'dirty.messages', '{"turns": {"role": null, "phase": null, "salience": null, "created_at": null,
    "trajectory_depth": null, "trajectory_sibling_order": null, "trajectory_homogeneity": null, "trajectory_temporal": null, "trajectory_complexity": null},
    "edges": {"parent": "parent", "child": "id", "edge_type": null}}') IS NOT NULL AS bound;
SELECT check_name, count, hint FROM graph_check() WHERE NOT ok;
UPDATE dirty.messages SET parent = turn(99) WHERE id = turn(20);
UPDATE dirty.messages SET parent = id WHERE id = turn(19);
SELECT check_name, count, hint FROM graph_check() WHERE NOT ok AND check_name NOT LIKE 'index%';
-- Domains are read as what is below them.
CREATE DOMAIN dirty.ident AS uuid;
CREATE DOMAIN dirty.content AS text;
CREATE TABLE dirty.domains (id dirty.ident PRIMARY KEY, role dirty.content, content_text dirty.content, content_hash dirty.content, parent dirty.ident,
    session_id dirty.content, trajectory_phase dirty.content, salience_score real, trajectory_depth int, trajectory_sibling_order int,
    trajectory_homogeneity real, trajectory_temporal real, trajectory_complexity real, created_at timestamptz);
CREATE FUNCTION public.graph_content_hash(dirty.content) RETURNS text LANGUAGE plpgsql AS $$ BEGIN RAISE 'the overload runs as %', current_user; END $$;
INSERT INTO dirty.domains (id, parent, role, content_text) VALUES (turn(1), NULL, 'user', 'one'), (turn(2), turn(1), 'robot', 'two'), (turn(3), turn(4), NULL, 'three');
SELECT graph_kernel.bind_tables('dirty.domains', 'dirty.domains', '{"edges": {"parent": "parent", "child": "id", "edge_type": null}}') IS NOT NULL AS bound;
SELECT check_name, count FROM graph_check() WHERE count > 0;
SELECT turn_number(turn_id) AS turn, computed IS NOT NULL AS computed FROM graph_content_audit();
SET client_min_messages = warning;
CALL graph_kernel.backfill_content_hashes();
RESET client_min_messages;
SELECT count(*) FROM graph_content_audit();

SELECT graph_kernel.unbind_tables();
SET client_min_messages = warning;
DROP SCHEMA dirty CASCADE;

-- Functions of users that run in whoever plans a query on the tables, those of partitions too; the extension's own are not meant.
CREATE FUNCTION mine(text) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT true';
CREATE FUNCTION mine_too(uuid, uuid) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT true';
CREATE OPERATOR === (LEFTARG = uuid, RIGHTARG = uuid, FUNCTION = mine_too);
CREATE TABLE watched (LIKE memory_turns) PARTITION BY HASH (id);
ALTER TABLE watched ADD PRIMARY KEY (id);
CREATE TABLE watched_0 PARTITION OF watched FOR VALUES WITH (MODULUS 1, REMAINDER 0);
CREATE INDEX watched_own ON watched_0 (graph_content_hash(content_text), upper(role));
SELECT graph_kernel.bind_tables('watched', 'memory_turn_edges') IS NOT NULL AS bound;
SELECT ok, count FROM graph_check() WHERE check_name = 'user_functions';
CREATE INDEX watched_role ON watched_0 USING gin (to_tsvector('english', mine(role)::text));
ALTER TABLE watched_0 ADD CONSTRAINT watched_check CHECK (id === id);
CREATE STATISTICS watched_statistics ON mine(session_id), id FROM watched_0;
SELECT ok, count, detail, hint FROM graph_check() WHERE check_name = 'user_functions';
-- And those that run where the library writes.
BEGIN;
CREATE DOMAIN name_of_watched AS text;
CREATE DOMAIN short_name AS name_of_watched;
SELECT graph_kernel.create_slice_store();
SELECT graph_kernel.bind_store('slice_store');
ALTER TABLE slice_store ADD name short_name, ADD of_default text DEFAULT pg_catalog.now()::text;
ALTER TABLE watched ADD of_default boolean DEFAULT mine(''), ADD made boolean GENERATED ALWAYS AS (mine_too(id, id)) STORED;
SELECT count, detail FROM graph_check() WHERE check_name = 'user_functions';
ALTER DOMAIN name_of_watched ADD CONSTRAINT of_name CHECK (mine(VALUE));
ALTER TABLE slice_store ALTER of_default SET DEFAULT mine('')::text;
-- Also by what an expression or a type is made of.
CREATE DOMAIN own_number AS int CHECK (VALUE > 0 AND mine(''));
CREATE DOMAIN of_default AS text DEFAULT mine('')::text;
CREATE TYPE pair AS (one own_number, two int);
CREATE DOMAIN runs AS text CHECK (query_to_xml('SELECT 1', true, true, VALUE) IS NOT NULL) CHECK (VALUE ~ 'a' AND lower(VALUE) = concat(VALUE)) CHECK (graph_content_hash(VALUE) <> '' AND graph_kernel.unbind_tables(VALUE) IS NULL);
ALTER TABLE slice_store ADD runs runs, ADD made_at timestamptz DEFAULT now(), ADD id uuid DEFAULT gen_random_uuid();
DO $$ BEGIN EXECUTE format('ALTER TABLE slice_store ADD CONSTRAINT is_long CHECK (kept_by <> %L)', repeat('x', 100000)); END $$;
ALTER TABLE slice_store ADD inner_one text DEFAULT (ROW(1, 2)::pair)::text, ADD other of_default;
-- What looks up casts and types when it runs; the difference of a range's ends, which an index calls.
CREATE DOMAIN looks_up AS text CHECK (to_jsonb('a'::text) IS NOT NULL) CHECK (domain_in('x', 'text'::regtype, -1) IS NOT NULL) CHECK (format('%s', VALUE) <> concat(VALUE, 1)) CHECK (VALUE || 1 <> '')
    CHECK (fmgr_sql_validator(0) IS NULL) CHECK (satisfies_hash_partition('watched'::regclass, 1, 0, VALUE) IS NOT NULL);
CREATE TYPE letter AS ENUM ('a');
CREATE FUNCTION of_letter(letter) RETURNS json LANGUAGE sql IMMUTABLE AS $$ SELECT '1'::json $$;
CREATE CAST (letter AS json) WITH FUNCTION of_letter(letter);
CREATE ROLE regress_caster;
GRANT CREATE ON SCHEMA public TO regress_caster;
ALTER FUNCTION of_letter OWNER TO regress_caster;
CREATE INDEX ON watched_0 ((content_hash || quote_literal(id)));
ALTER TABLE slice_store ADD letter letter;
CREATE FUNCTION difference(int, int) RETURNS float8 LANGUAGE sql IMMUTABLE AS 'SELECT 0::float8';
CREATE TYPE own_range AS RANGE (subtype = int, subtype_diff = difference);
ALTER TABLE slice_store ADD looks_up looks_up, ADD ranged own_range;
SELECT count, detail FROM graph_check() WHERE check_name = 'user_functions';
ROLLBACK;
SELECT graph_kernel.unbind_tables();
DROP TABLE watched;
DROP OPERATOR === (uuid, uuid);
DROP FUNCTION mine(text), mine_too(uuid, uuid);

-- A child takes rows of its own past the trigger of its parent; partitions have it.
CREATE TABLE promoted (slice json, "turn ids" uuid[]);
CREATE CONSTRAINT TRIGGER admissible AFTER INSERT OR UPDATE ON promoted NOT DEFERRABLE FOR EACH ROW EXECUTE FUNCTION graph_require_admissible('slice', 'turn ids', 'roles=a,b');
ALTER TABLE promoted ENABLE ALWAYS TRIGGER admissible;
CREATE TABLE promoted_child () INHERITS (promoted);
CREATE TABLE promoted_grandchild () INHERITS (promoted_child);
CREATE TABLE promoted_parts (slice json, turns uuid[], day date) PARTITION BY LIST (day);
CREATE TABLE promoted_part PARTITION OF promoted_parts DEFAULT;
CREATE CONSTRAINT TRIGGER admissible AFTER INSERT OR UPDATE ON promoted_parts NOT DEFERRABLE FOR EACH ROW EXECUTE FUNCTION graph_require_admissible('slice', 'turns');
ALTER TABLE promoted_parts ENABLE ALWAYS TRIGGER admissible;
SELECT ok, count, hint FROM graph_check() WHERE check_name = 'promotion_children';
-- One of other arguments, which looks at other columns, is not the same.
BEGIN;
ALTER TABLE promoted_child ADD other json;
CREATE CONSTRAINT TRIGGER other AFTER INSERT OR UPDATE ON promoted_child NOT DEFERRABLE
    FOR EACH ROW EXECUTE FUNCTION graph_require_admissible('other', 'turn ids');
SELECT ok, count FROM graph_check() WHERE check_name = 'promotion_children';
ROLLBACK;
\set ECHO none
SELECT hint FROM graph_check() WHERE check_name = 'promotion_children' \gexec
\set ECHO all
SELECT ok, count, hint FROM graph_check() WHERE check_name = 'promotion_children';
SELECT code, message FROM test_error('INSERT INTO promoted_grandchild VALUES (''{}'', NULL)');
DROP TABLE promoted, promoted_parts CASCADE;

-- Functions and procedures that read a graph of their caller's choice, as their bodies spell the call; a command for each.
CREATE FUNCTION definer() RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN RETURN (SELECT count(*) FROM GRAPH_Snapshot()); END $$;
CREATE PROCEDURE definer_too(uuid) LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN PERFORM graph_slice($1); END $$;
CREATE FUNCTION other() RETURNS text LANGUAGE sql SECURITY DEFINER AS $$ SELECT 'graph_slices_are_not_read' $$;
SELECT ok, count, detail, hint FROM graph_check() WHERE check_name = 'definer_functions';
SELECT hint FROM graph_check() WHERE check_name = 'definer_functions' \gexec
SELECT ok, count, detail, hint FROM graph_check() WHERE check_name = 'definer_functions';
DROP ROUTINE definer(), definer_too(uuid), other();
-- A view of the extension reads a graph too, and views that others have made of it or of its functions.
CREATE VIEW seen AS SELECT count(*) AS turns FROM graph_snapshot();
CREATE FUNCTION definer() RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN RETURN (SELECT count(*) FROM graph_kernel.kept); END $$;
CREATE FUNCTION parsed() RETURNS bigint LANGUAGE sql SECURITY DEFINER BEGIN ATOMIC SELECT count(*) FROM graph_kernel.kept; END;
CREATE FUNCTION through() RETURNS bigint LANGUAGE sql SECURITY DEFINER BEGIN ATOMIC SELECT turns FROM seen; END;
CREATE FUNCTION other() RETURNS bigint LANGUAGE sql SECURITY DEFINER BEGIN ATOMIC SELECT count(*) FROM graph_kernel.bindings; END;
SELECT detail FROM graph_check() WHERE check_name = 'definer_functions';
-- Whatever the session's setting of literals is.
SET standard_conforming_strings = off;
SET escape_string_warning = off;
SELECT detail FROM graph_check() WHERE check_name = 'definer_functions';
RESET escape_string_warning;
RESET standard_conforming_strings;
DROP FUNCTION definer(), parsed(), through(), other();
DROP VIEW seen;
-- What is too long to be looked into is named, and hides nothing.
SET check_function_bodies = off;
DO $$ BEGIN
    EXECUTE format('CREATE FUNCTION definer() RETURNS int LANGUAGE plpgsql SECURITY DEFINER AS %L', repeat('x ', 600000));
    EXECUTE format('CREATE TABLE long_arguments (slice json, turns uuid[]);
        CREATE TRIGGER long BEFORE INSERT ON long_arguments FOR EACH ROW
        EXECUTE FUNCTION graph_require_admissible(%L, %L)', 'slice', repeat('é', 600000));
END $$;
RESET check_function_bodies;
SELECT check_name, ok, count FROM graph_check() WHERE check_name IN ('definer_functions', 'promotion_triggers');
DROP FUNCTION definer();
DROP TABLE long_arguments;

-- As a restore with --disable-triggers leaves it.
ALTER TABLE graph_kernel.revoked_keys DISABLE TRIGGER ALL;
ALTER TABLE graph_kernel.revoked_keys ENABLE TRIGGER ALL;
SELECT ok, count, hint FROM graph_check() WHERE check_name = 'private_triggers';
SELECT hint AS command FROM graph_check() WHERE check_name = 'private_triggers' \gset
:command
SELECT ok, count, hint FROM graph_check() WHERE check_name = 'private_triggers';

-- A chat stores neither phase nor salience: all checks are ok, and those of both say how many turns take the default.
CREATE SCHEMA chat;
SELECT graph_kernel.create_tables('chat');
INSERT INTO chat.memory_turns (id, session_id, role, created_at, content_text, content_hash)
SELECT turn(n), 'chat', CASE n % 2 WHEN 1 THEN 'user' ELSE 'assistant' END, '2025-01-01Z'::timestamptz + n * interval '1 minute',
       'turn ' || n, graph_content_hash('turn ' || n)
FROM generate_series(1, 6) AS n;
INSERT INTO chat.memory_turn_edges (parent_turn_id, child_turn_id, edge_type)
SELECT turn(n), turn(n + 1), 'reply' FROM generate_series(1, 5) AS n;
SELECT graph_kernel.bind_tables('chat.memory_turns', 'chat.memory_turn_edges') IS NOT NULL AS bound;
SELECT count(*) FILTER (WHERE trajectory_phase IS NULL AND salience_score IS NULL) AS without, count(*) AS turns FROM chat.memory_turns;
SELECT check_name, count, detail FROM graph_check() WHERE NOT ok;
SELECT check_name, ok, count FROM graph_check() WHERE check_name IN ('turns_without_phase', 'turns_without_salience') ORDER BY check_name;
-- Of turns of one time none is the latest: such sessions are counted, and where a default gives all rows of a transaction
-- one time, another is offered. In tables that create_tables makes they have times of their own.
INSERT INTO chat.memory_turns (id, session_id, role, content_text, content_hash)
SELECT turn(n), 'at once', 'user', 'turn ' || n, graph_content_hash('turn ' || n) FROM generate_series(30, 20, -1) AS n;
SELECT turn_number(anchor_turn_id) AS last FROM graph_anchor(session_id => 'at once');
SELECT ok, count, hint FROM graph_check() WHERE check_name = 'shared_latest_times';
ALTER TABLE chat.memory_turns ALTER created_at DROP DEFAULT;
UPDATE chat.memory_turns SET created_at = '2025-01-02Z' WHERE id > turn(27);
INSERT INTO chat.memory_turns (id, session_id) VALUES (turn(41), NULL), (turn(42), NULL), (turn(43), 'x'), (turn(44), 'x');
SELECT ok, count, hint FROM graph_check() WHERE check_name = 'shared_latest_times'; -- not the latest
UPDATE chat.memory_turns SET created_at = '3000-01-02Z' WHERE id > turn(28) AND session_id IN ('at once', 'x');
SELECT turn_number(anchor_turn_id) AS lowest FROM graph_anchor(session_id => 'at once');
SELECT ok, count, hint FROM graph_check() WHERE check_name = 'shared_latest_times';
SELECT c.command
FROM unnest('{now(),CURRENT_TIMESTAMP,transaction_timestamp(),statement_timestamp(),"timezone(''utc'', now())","''2025-01-01Z''"}'::text[]) AS v (value)
CROSS JOIN LATERAL unnest(ARRAY['ALTER TABLE chat.memory_turns ALTER created_at SET DEFAULT ' || v.value,
    'SELECT ok, count, hint FROM graph_check() WHERE check_name = ''shared_latest_times''']) AS c (command) \gexec
ALTER TABLE chat.memory_turns ALTER created_at TYPE timestamp, ALTER created_at SET DEFAULT (now() AT TIME ZONE 'utc');
SELECT ok, count, detail, hint FROM graph_check() WHERE check_name = 'shared_latest_times';
SELECT hint AS command FROM graph_check() WHERE check_name = 'shared_latest_times' \gset
:command
SELECT ok, count, hint FROM graph_check() WHERE check_name = 'shared_latest_times';
INSERT INTO chat.memory_turns (id) VALUES (turn(50)) RETURNING abs(extract(epoch FROM created_at - now() AT TIME ZONE 'utc')) < 600 AS of_today;
SELECT graph_kernel.unbind_tables();
DROP SCHEMA chat CASCADE;
-- Without rights, what has to be granted.
CREATE ROLE regress_nobody;
SET ROLE regress_nobody;
SELECT check_name, ok, detail, hint FROM graph_check();
RESET ROLE;
DROP ROLE regress_nobody;

-- Replies between sessions: a parent that is computed names the row before, whoever's it is.
CREATE SCHEMA mixed;
CREATE TABLE mixed.messages (id bigint PRIMARY KEY, session_id text, role text, content_text text);
INSERT INTO mixed.messages SELECT i, CASE WHEN i < 3 THEN 'a' WHEN i < 6 THEN 'b' END, 'user', i::text FROM generate_series(1, 6) AS i;
SET client_min_messages = warning;
SELECT graph_kernel.bind_tables('mixed.messages', columns => '{"turns": {"id": {"expression": "graph_turn_id(id)"},
    "parents": [{"parent": {"expression": "graph_turn_id(id - 1)"}, "edge_type": "reply"},
                {"parent": {"expression": "graph_turn_id(id - 3)"}, "edge_type": "reference"}]}}') IS NOT NULL AS bound;
SELECT ok, count, detail FROM graph_check() WHERE check_name = 'replies_between_sessions';
SELECT graph_kernel.unbind_tables();
RESET client_min_messages;
DROP SCHEMA mixed CASCADE;

-- Edge types of one's own: the command in detail, with their names in it, says what they mean. Types that parents name
-- in the mapping are known.
CREATE SCHEMA typed;
CREATE TABLE typed.messages (id uuid PRIMARY KEY, parent uuid, session_id text, role text, content_text text);
CREATE TABLE typed.links (parent uuid, child uuid, "Rel's" varchar(20));
INSERT INTO typed.messages SELECT turn(n), CASE WHEN n = 5 THEN turn(4) END, 's', 'user', n::text FROM generate_series(1, 5) AS n;
INSERT INTO typed.links VALUES (turn(1), turn(2), 'answer'), (turn(1), turn(3), 'it''s'), (turn(2), turn(3), 'Reference'), (turn(1), turn(4), NULL);
SET client_min_messages = warning;
SELECT graph_kernel.bind_tables('typed.messages', 'typed.links', '{"turns": {"parents": [{"parent": "parent", "edge_type": "reply"}]},
    "edges": {"parent": "parent", "child": "child", "edge_type": "Rel''s"}}', name => 'typed') IS NOT NULL AS bound;
SET graph_kernel.graph = typed;
SELECT count, detail, hint FROM graph_check() WHERE check_name = 'unknown_edge_types';
SELECT hint AS command FROM graph_check() WHERE check_name = 'unknown_edge_types' \gset
:command
SELECT regexp_replace(replace(substring(detail FROM 'SELECT .*?;'), 'my_type', 'answer'), ';$', ' IS NOT NULL AS bound;') AS command
FROM graph_check() WHERE check_name = 'unknown_edge_types' \gset
:command
SELECT turn_number(parent) AS parent, edge_type FROM graph_slice_edges(turn(3)) ORDER BY 1, 2;
SELECT regexp_replace(replace(substring(detail FROM 'SELECT .*?;'), 'my_type', 'it''''''''s'), ';$', ' IS NOT NULL AS bound;') AS command
FROM graph_check() WHERE check_name = 'unknown_edge_types' \gset
:command
SELECT ok, count, detail, hint FROM graph_check() WHERE check_name = 'unknown_edge_types';
-- A key of several columns is an id as a whole.
CREATE TABLE typed.parts (session uuid, seq int, role text, content_text text, PRIMARY KEY (session, seq));
INSERT INTO typed.parts VALUES (turn(1), 1, 'user', 'one'), (turn(1), 2, 'user', 'two');
CREATE TABLE typed.dated (id uuid, at timestamptz, PRIMARY KEY (at, id));
SELECT code, message, hint FROM test_error($$SELECT graph_kernel.bind_tables('typed.parts', NULL, '{"turns": {"id": "session",
    "follows": {"session": "session", "order": ["seq"], "edge_type": "reply"}}}', 'parts')$$);
SELECT code, message, hint FROM test_error($$SELECT graph_kernel.bind_tables('typed.dated', 'memory_turn_edges', name => 'dated')$$);
SELECT regexp_replace(substring(hint FROM 'SELECT .*?;'), ';$', ' IS NOT NULL AS bound;') AS command
FROM test_error($$SELECT graph_kernel.bind_tables('typed.parts', NULL, '{"turns": {"id": "session",
    "follows": {"session": "session", "order": ["seq"], "edge_type": "reply"}}}', 'parts')$$) \gset
:command
SET graph_kernel.graph = parts;
SELECT count(*) FROM graph_slice_turns(graph_turn_id(turn(1)::text, '/', '2'));
RESET graph_kernel.graph;
-- So it is where its columns are texts and numbers, unless one of them is unique alone.
CREATE TABLE typed.lines (thread text, "Seq" bigint, at timestamptz, PRIMARY KEY (thread, "Seq"));
CREATE TABLE typed.numbered (thread text, "Seq" bigint UNIQUE, PRIMARY KEY (thread, "Seq"));
CREATE TABLE typed.timed (thread text, at timestamptz, PRIMARY KEY (thread, at));
CREATE TABLE typed.spread (thread text, "Seq" bigint, PRIMARY KEY (thread, "Seq")) PARTITION BY HASH (thread);
SELECT relation, id, code, hint FROM (VALUES ('lines', 'thread'), ('lines', 'Seq'), ('numbered', 'thread'), ('numbered', 'Seq'), ('timed', 'thread'), ('spread', 'thread')) AS v (relation, id),
    test_error(format('SELECT graph_kernel.bind_tables(%L, NULL, %L, %L)', 'typed.' || relation, jsonb_build_object('turns', jsonb_build_object('id', id,
        'follows', '{"session": "thread", "order": ["Seq"], "edge_type": "reply"}'::jsonb)), relation));
-- Of two texts each may have the slash between them.
CREATE TABLE typed.tenants (tenant text, n int, id varchar, PRIMARY KEY (tenant, n, id));
CREATE TABLE typed.owned (id uuid, tenant text, place text, PRIMARY KEY (tenant, id, place));
SELECT relation, hint FROM unnest('{tenants,owned}'::text[]) AS relation,
    test_error(format('SELECT graph_kernel.bind_tables(%L, NULL, %L, %L)', 'typed.' || relation, '{"turns": {"id": "id",
        "follows": {"session": "tenant", "order": ["id"], "edge_type": "reply"}}}', relation));
INSERT INTO typed.lines VALUES ('a', 1), ('a', 2), ('b', 1);
SELECT regexp_replace(substring(hint FROM 'SELECT .*?;'), ';$', ' IS NOT NULL AS bound;') AS command
FROM test_error($$SELECT graph_kernel.bind_tables('typed.lines', NULL, '{"turns": {"id": "thread", "role": null,
    "follows": {"session": "thread", "order": ["Seq"], "edge_type": "reply"}}}', 'parts')$$) \gset
:command
SET graph_kernel.graph = parts;
SELECT count(*) FROM graph_slice_turns(graph_turn_id('a', '/', '2'));
RESET graph_kernel.graph;
RESET client_min_messages;
SELECT graph_kernel.unbind_tables('typed'), graph_kernel.unbind_tables('parts');
SET client_min_messages = warning;
DROP SCHEMA typed CASCADE;
RESET client_min_messages;
