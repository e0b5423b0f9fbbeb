-- What others have made, or what is not there, ends no list of documents, and is never counted as nothing.
\set VERBOSITY terse
SELECT current_database() AS before \gset
CREATE DATABASE kept_foreign;
\c kept_foreign
CREATE EXTENSION graph_kernel;
SET client_min_messages = warning;
SELECT graph_kernel.create_tables(), graph_kernel.create_trace_table(), graph_kernel.create_slice_store();
INSERT INTO memory_turns (id, session_id, role, content_text)
SELECT ('00000000-0000-4000-8000-00000000000' || i)::uuid, 's', 'user', 'text ' || i FROM generate_series(1, 5) AS i;
SELECT graph_kernel.bind_tables('memory_turns', 'memory_turn_edges') IS NOT NULL AS bound,
       graph_kernel.bind_store('slice_store');
SELECT graph_kernel.bind_tables('memory_turns', 'memory_turn_edges', name => 'a') IS NOT NULL AS bound,
       graph_kernel.bind_store('slice_store', 'a');
CREATE TABLE notes_a (slice_key text, ids uuid[]);
CREATE CONSTRAINT TRIGGER admissible AFTER INSERT OR UPDATE ON notes_a NOT DEFERRABLE FOR EACH ROW
    EXECUTE FUNCTION graph_require_admissible('ref=slice_key', 'ids', 'graph=a');
SET graph_kernel.graph = 'a';
INSERT INTO notes_a SELECT graph_keep(graph_slice('00000000-0000-4000-8000-000000000005')),
                           '{00000000-0000-4000-8000-000000000005}';
RESET graph_kernel.graph;
SELECT kind, atoms FROM graph_kernel.kept;

-- A second trigger of another graph on the same column hides no row where that one is not read.
CREATE SCHEMA b;
CREATE TABLE b.turns (LIKE memory_turns INCLUDING ALL);
CREATE TABLE b.edges (LIKE memory_turn_edges INCLUDING ALL);
SELECT graph_kernel.bind_tables('b.turns', 'b.edges', name => 'b') IS NOT NULL AS bound,
       graph_kernel.bind_store(graph_kernel.create_slice_store('b'), 'b');
ALTER TABLE notes_a ADD b_ids uuid[];
CREATE CONSTRAINT TRIGGER of_b AFTER INSERT OR UPDATE ON notes_a NOT DEFERRABLE FOR EACH ROW
    EXECUTE FUNCTION graph_require_admissible('ref=slice_key', 'b_ids', 'graph=b');
SELECT kind, atoms FROM graph_kernel.kept;
ALTER TABLE notes_a DROP COLUMN b_ids;
SELECT kind, atoms FROM graph_kernel.kept;
DROP TRIGGER of_b ON notes_a;
SELECT graph_kernel.unbind_store('b'), graph_kernel.unbind_tables('b');
DROP SCHEMA b CASCADE;

-- A column whose name the client's encoding does not have.
CREATE TABLE odd (U&"\2192" text, ids uuid[]);
INSERT INTO odd VALUES (NULL, '{00000000-0000-4000-8000-000000000005}');
CREATE CONSTRAINT TRIGGER admissible AFTER INSERT OR UPDATE ON odd NOT DEFERRABLE FOR EACH ROW
    EXECUTE FUNCTION graph_require_admissible(U&'ref=\2192', 'ids');
SET client_encoding = 'LATIN1';
SELECT kind, place, key, count FROM graph_kernel.references('{}') WHERE place = 'odd'::regclass;
RESET client_encoding;
DROP TABLE odd;
-- And a table in a schema of such names, which a role that has no other right can make.
CREATE ROLE regress_odd NOLOGIN;
CREATE SCHEMA U&"\2193" AUTHORIZATION regress_odd;
SET ROLE regress_odd;
CREATE TABLE U&"\2193".U&"\2192" (k text, ids uuid[]);
CREATE CONSTRAINT TRIGGER admissible AFTER INSERT OR UPDATE ON U&"\2193".U&"\2192" NOT DEFERRABLE FOR EACH ROW
    EXECUTE FUNCTION graph_require_admissible('ref=k', 'ids');
RESET ROLE;
SET client_encoding = 'LATIN1';
SELECT r.kind, r.place, r.key = format('%s: k, ids', c.oid) AS has_oid, r.count
FROM graph_kernel.references('{}') AS r, pg_class AS c
WHERE r.kind = 'atom' AND c.relname = convert_from('\xe28692', 'UTF8') AND r.place IS DISTINCT FROM 'notes_a'::regclass;
SELECT * FROM graph_check() WHERE check_name LIKE 'promotion%' AND (detail LIKE '%?%' OR hint LIKE '%?%');
SELECT count(*) FROM graph_kernel.kept;
RESET client_encoding;
DROP OWNED BY regress_odd;
DROP ROLE regress_odd;

-- The other graph has got a store of its own.
CREATE SCHEMA own;
SELECT graph_kernel.bind_store(graph_kernel.create_slice_store('own'), 'a');
SELECT kind, atoms FROM graph_kernel.kept;

-- Likewise where the rows are another owner's, which are not read: of documents of that graph alone it is not known.
SELECT graph_keep(graph_slice('00000000-0000-4000-8000-000000000004')) IS NOT NULL AS kept;
CREATE ROLE regress_others NOLOGIN;
ALTER TABLE notes_a OWNER TO regress_others;
SELECT anchor_turn_id, atoms FROM graph_kernel.kept ORDER BY 1;
SELECT ok, count, detail FROM graph_check() WHERE check_name = 'kept_references';
SELECT graph_kernel.bind_tables('memory_turns', 'memory_turn_edges', '{"turns": {"phase": null}}', 'a') IS NOT NULL
       AS bound_otherwise;
SELECT anchor_turn_id, atoms FROM graph_kernel.kept ORDER BY 1;
SELECT graph_kernel.bind_tables('memory_turns', 'memory_turn_edges', name => 'a') IS NOT NULL AS bound;
-- A document of no graph that is known may be any graph's.
UPDATE slice_store SET graph = '00000000-0000-4000-8000-0000000000ff'
WHERE anchor = '00000000-0000-4000-8000-000000000004';
SELECT anchor_turn_id, atoms FROM graph_kernel.kept ORDER BY 1;
DELETE FROM slice_store WHERE anchor = '00000000-0000-4000-8000-000000000004';
ALTER TABLE notes_a OWNER TO CURRENT_USER;
DROP ROLE regress_others;
SELECT graph_kernel.bind_store('slice_store', 'a');

-- The store that both had was made again, and bound again for one of them.
CREATE TABLE old AS TABLE slice_store;
DROP TABLE slice_store;
SELECT graph_kernel.create_slice_store();
INSERT INTO slice_store TABLE old;
SELECT graph_kernel.bind_store('slice_store');
SELECT kind, atoms FROM graph_kernel.kept;

-- One has a part of the other's.
DROP TABLE slice_store;
CREATE TABLE parts (LIKE old INCLUDING DEFAULTS) PARTITION BY LIST (kind);
CREATE TABLE part PARTITION OF parts (PRIMARY KEY (key)) FOR VALUES IN ('slice');
INSERT INTO parts TABLE old;
SELECT graph_kernel.bind_store('part');
SELECT kind, atoms FROM graph_kernel.kept;

-- A column of keys that takes case for nothing, with a key that came in before the trigger.
DO $$
BEGIN
    CREATE COLLATION any_case (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
EXCEPTION WHEN feature_not_supported THEN -- a server without ICU
    CREATE COLLATION any_case FROM "C";
END
$$;
CREATE TABLE notes (slice_key text COLLATE any_case, ids uuid[]);
INSERT INTO notes SELECT k, '{}' FROM old, unnest(ARRAY[upper(key), key]) AS k;
CREATE CONSTRAINT TRIGGER admissible AFTER INSERT OR UPDATE ON notes NOT DEFERRABLE FOR EACH ROW
    EXECUTE FUNCTION graph_require_admissible('ref=slice_key', 'ids');
SELECT kind, atoms FROM graph_kernel.kept;
SELECT count FROM graph_check() WHERE check_name = 'kept_references';
DROP TABLE notes;

-- What cannot be read has no number, and ends nothing.
CREATE FUNCTION pg_temp.lists() RETURNS TABLE (atoms bigint, kind text, place regclass, count bigint) LANGUAGE sql AS
    $$ SELECT (SELECT k.atoms FROM graph_kernel.kept AS k), r.kind, r.place, r.count
         FROM graph_kernel.references('{"sessions": ["s"]}') AS r ORDER BY r.kind, r.place::text $$;
SELECT * FROM pg_temp.lists();
CREATE TABLE bad (k int, ids uuid[]);
CREATE CONSTRAINT TRIGGER t AFTER INSERT OR UPDATE ON bad NOT DEFERRABLE FOR EACH ROW
    EXECUTE FUNCTION graph_require_admissible('ref=k', 'ids');
SELECT * FROM pg_temp.lists();
SELECT ok, count, detail FROM graph_check() WHERE check_name = 'kept_references';
DROP TABLE bad;
CREATE DOMAIN number AS int;
CREATE TABLE bad (k number, ids uuid[]);
CREATE CONSTRAINT TRIGGER t AFTER INSERT OR UPDATE ON bad NOT DEFERRABLE FOR EACH ROW
    EXECUTE FUNCTION graph_require_admissible('ref=k', 'ids');
SELECT * FROM pg_temp.lists();
DROP TABLE bad;
CREATE TABLE bad (k text, ids uuid[], n int) PARTITION BY LIST (n);
CREATE UNLOGGED TABLE bad_1 PARTITION OF bad FOR VALUES IN (1);
CREATE CONSTRAINT TRIGGER t AFTER INSERT OR UPDATE ON bad NOT DEFERRABLE FOR EACH ROW
    EXECUTE FUNCTION graph_require_admissible('ref=k', 'ids');
SELECT * FROM pg_temp.lists();
SELECT ok, count, detail FROM graph_check() WHERE check_name = 'kept_references';
DROP TABLE bad;
INSERT INTO retrieval_traces (id, retrieval_mode, is_admissible, provenance)
SELECT ('20000000-0000-4000-8000-00000000000' || i)::uuid, 'slice', true,
       CASE i WHEN 2 THEN (SELECT jsonb_agg('1e131071'::jsonb) FROM generate_series(1, 9000))
              ELSE '{"ids": ["00000000-0000-4000-8000-000000000005"]}' END
  FROM generate_series(1, 3) AS i;
SELECT key, count FROM graph_kernel.references('{"sessions": ["s"]}') WHERE kind = 'trace' ORDER BY key;
-- A number that takes long to be written out is looked through as null.
INSERT INTO retrieval_traces (id, retrieval_mode, is_admissible, provenance)
SELECT ('30000000-0000-4000-8000-0000000000' || i)::uuid, 'slice', true,
       (SELECT jsonb_agg('1e131071'::jsonb) FROM generate_series(1, 511)) || '["00000000-0000-4000-8000-000000000005"]'
  FROM generate_series(10, 49) AS i;
SET statement_timeout = '20s';
SELECT count(*), sum(count) FROM graph_kernel.references('{"sessions": ["s"]}') WHERE kind = 'trace';
RESET statement_timeout;
SELECT length(graph_kernel.json_text(j)), graph_kernel.json_text(j) = j::text AS same
  FROM unnest('{"{\"a\": [1, 2.50, null, true, \"b\\n\"], \"c\": {}}","\"x\"","[]","1e100"}'::jsonb[]) AS j;
SELECT graph_kernel.json_to_look_through(j::jsonb)
  FROM unnest(ARRAY['{"a": [1, -2.50, 1e200, {"b": 1e-200}], "c": {}, "d": null, "e": "\"\\"}', '"x"', '-1e200', '[]', '{}']) AS j;
SELECT graph_kernel.json_text('{"a" : 1}'::json), graph_kernel.json_text(('"' || repeat('x', 67108863) || '"')::json) IS NULL AS is_too_long;
TRUNCATE retrieval_traces;
ALTER TABLE retrieval_traces SET UNLOGGED;
SELECT * FROM pg_temp.lists();
ALTER TABLE retrieval_traces SET LOGGED;

-- Temporary rows promote nothing that lasts. Long names are no names.
CREATE TEMP TABLE mine (k text, ids uuid[]);
CREATE CONSTRAINT TRIGGER t AFTER INSERT OR UPDATE ON mine NOT DEFERRABLE FOR EACH ROW
    EXECUTE FUNCTION graph_require_admissible('ref=k', 'ids');
CREATE TABLE wide (ids uuid[]);
DO $$
BEGIN
    EXECUTE 'ALTER TABLE wide ' || (SELECT string_agg(format('ADD c%s int', i), ', ') FROM generate_series(1, 1500) AS i);
    FOR i IN 1..2000 LOOP
        EXECUTE format('CREATE CONSTRAINT TRIGGER s%s AFTER INSERT OR UPDATE ON wide NOT DEFERRABLE FOR EACH ROW
                        EXECUTE FUNCTION graph_require_admissible(%L, %L)', i, 'ref=k' || i, 'j' || i);
    END LOOP;
    FOR i IN 1..20 LOOP
        EXECUTE format('CREATE CONSTRAINT TRIGGER t%s AFTER INSERT OR UPDATE ON wide NOT DEFERRABLE FOR EACH ROW
                        EXECUTE FUNCTION graph_require_admissible(%L, %L)', i, 'ref=' || repeat('x', 4000),
                       repeat('y', 4000));
    END LOOP;
END $$;
SET statement_timeout = '20s';
SELECT count(*), count(DISTINCT place) FROM graph_kernel.promoting_triggers() WHERE place::text <> 'notes_a';
SELECT * FROM pg_temp.lists();
DROP TABLE wide;

-- Nor do tables that inherit from each other, each with a trigger of its own, or one with many triggers and children.
CREATE ROLE regress_many NOLOGIN;
CREATE SCHEMA many AUTHORIZATION regress_many;
SET ROLE regress_many;
CREATE TABLE many.t0 (k text, ids uuid[]);
CREATE TABLE many.top (k text, ids uuid[]);
DO $$
BEGIN
    FOR i IN 0..500 LOOP
        EXECUTE format('CREATE TABLE many.t%s () INHERITS (many.t%s)', i + 1, i);
        EXECUTE format('CREATE CONSTRAINT TRIGGER t AFTER INSERT OR UPDATE ON many.t%s DEFERRABLE FOR EACH ROW
                        EXECUTE FUNCTION graph_require_admissible(''ref=k'', ''ids'', ''roles=%1$s'')', i);
    END LOOP;
    FOR i IN 1..50 LOOP
        EXECUTE format('CREATE TABLE many.child_%s () INHERITS (many.top)', i);
        EXECUTE format('CREATE CONSTRAINT TRIGGER t%s AFTER INSERT OR UPDATE ON many.top NOT DEFERRABLE FOR EACH ROW
                        EXECUTE FUNCTION graph_require_admissible(''ref=k'', ''ids'', ''roles=%1$s'')', i);
    END LOOP;
END $$;
RESET ROLE;
SET statement_timeout = '8s';
SELECT kind, atoms FROM graph_kernel.kept;
SELECT kind, count(*) FROM graph_kernel.references('{}') GROUP BY kind ORDER BY kind;
SELECT check_name, count(*), count(DISTINCT hint) FROM graph_check() WHERE check_name LIKE 'promotion%'
GROUP BY check_name ORDER BY check_name;
RESET statement_timeout;
SELECT format('DROP TABLE many.t%s CASCADE;', i) FROM unnest('{401,301,201,101,0}'::int[]) AS i \gexec
DROP OWNED BY regress_many;
DROP ROLE regress_many;

-- Graphs that have the same turns and no store: the one that is not bound, and one that is.
SELECT graph_kernel.unbind_store(), graph_kernel.unbind_store('a');
SELECT graph_kernel.unbind_tables();
CREATE TABLE notes (slice json, ids uuid[]);
CREATE CONSTRAINT TRIGGER admissible AFTER INSERT OR UPDATE ON notes NOT DEFERRABLE FOR EACH ROW
    EXECUTE FUNCTION graph_require_admissible('slice', 'ids');
INSERT INTO notes SELECT graph_slice('00000000-0000-4000-8000-000000000004'), '{00000000-0000-4000-8000-000000000004}';
SELECT kind, place, count FROM graph_kernel.references('{"sessions": ["s"]}') ORDER BY kind, place::text;
SET graph_kernel.graph = 'a';
SELECT kind, place, count FROM graph_kernel.references('{"sessions": ["s"]}') ORDER BY kind, place::text;

-- Long names of sessions are known by their hashes, of turns as of events.
RESET graph_kernel.graph;
INSERT INTO memory_turns (id, session_id, role, owner, content_text)
SELECT gen_random_uuid(), i || repeat('x', 200000), 'user', 'mallory', 'text' FROM generate_series(1, 400) AS i;
SELECT graph_kernel.create_recorder_table();
SELECT graph_kernel.bind_recorder_table('recorder_events');
INSERT INTO recorder_events (segment_id, ordinal, byte_offset, event_id, pane_id, session_id, occurred_at_ms, event_type,
                             text)
SELECT 1, i, i, 'e' || i, 1, CASE i WHEN 1 THEN 's' WHEN 2 THEN 'other' ELSE '7' || repeat('x', 200000) END, i,
       'ingress_text', 'text'
  FROM generate_series(1, 4) AS i;
SELECT kind, left(key, 20) AS key, count FROM graph_kernel.references('{"owner": "mallory"}') WHERE kind <> 'atom';
SELECT kind, left(key, 20) AS key, count FROM graph_kernel.references('{"sessions": ["s"]}') WHERE kind = 'event';

-- A store that somebody has made by hand may have any kind: what is too long for one is not shown.
CREATE SCHEMA by_hand;
CREATE TABLE by_hand.kept (LIKE own.slice_store INCLUDING INDEXES);
SELECT graph_kernel.bind_store('by_hand.kept');
INSERT INTO by_hand.kept (key, document, kind, graph, role, rls, anchor, turns, kept_by, kept_at)
SELECT repeat('a', 64), '', repeat('k', 5000), 'g', 'r', false, id, ARRAY[id], 'r', '2026-01-01'
  FROM memory_turns WHERE session_id = 's' LIMIT 1;
SELECT kind, place, left(key, 5) AS key, count FROM graph_kernel.references('{"sessions": ["s"]}') WHERE place = 'by_hand.kept'::regclass;
SELECT kind, left(key, 5) AS key FROM graph_kernel.kept;

-- An owner of type uuid is found by any spelling, in what a search was narrowed to, too.
CREATE SCHEMA by_uuid;
SELECT graph_kernel.create_tables('by_uuid');
ALTER TABLE by_uuid.memory_turns DROP COLUMN owner, ADD owner uuid,
    ADD words tsvector GENERATED ALWAYS AS (to_tsvector('english', content_text)) STORED;
INSERT INTO by_uuid.memory_turns (id, session_id, role, content_text, owner)
VALUES ('00000000-0000-4000-8000-0000000000a1', 's', 'user', 'text', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11');
SELECT graph_kernel.bind_tables('by_uuid.memory_turns', 'by_uuid.memory_turn_edges', name => 'by_uuid') IS NOT NULL AS bound,
       graph_kernel.bind_traces('retrieval_traces');
SET graph_kernel.graph = 'by_uuid';
SELECT graph_trace(provenance::jsonb) IS NOT NULL AS traced
FROM graph_search(query_text => 'text', filter => '{"owner": "A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11"}');
DELETE FROM by_uuid.memory_turns;
SELECT kind, count FROM graph_kernel.references('{"owner": "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"}') WHERE kind IN ('turn', 'trace');
\c :before
DROP DATABASE kept_foreign;
