-- Promise: a superuser can run what graph_check hints, whatever others have named: it runs no statement and no function of theirs.
SET client_min_messages = error;
CREATE ROLE regress_hostile;
CREATE TABLE ran (what text);
GRANT INSERT ON ran TO PUBLIC;
GRANT CREATE, USAGE ON SCHEMA public TO regress_hostile;
GRANT EXECUTE ON FUNCTION graph_kernel.bind_tables TO regress_hostile;
DO $$ BEGIN EXECUTE format('GRANT CREATE ON DATABASE %I TO regress_hostile', current_database()); END $$;
SELECT E'x"\'\n; ALTER ROLE regress_hostile SUPERUSER; --\\:x' AS hostile \gset
SELECT quote_ident(:'hostile') AS n \gset
SET ROLE regress_hostile;
-- Functions, aggregates and operators that would be preferred to those of the server.
CREATE FUNCTION public.ran(what text) RETURNS boolean LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$ BEGIN
    IF (SELECT rolsuper FROM pg_roles WHERE rolname = current_user) THEN INSERT INTO public.ran VALUES (what); END IF; RETURN true; END $$;
CREATE FUNCTION public.step(s text, t tid) RETURNS text LANGUAGE plpgsql AS $$ BEGIN PERFORM public.ran('array_agg'); RETURN s; END $$;
CREATE AGGREGATE public.array_agg(tid) (SFUNC = public.step, STYPE = text);
CREATE FUNCTION public.pg_get_functiondef(regprocedure) RETURNS text LANGUAGE sql AS $$ SELECT public.ran('pg_get_functiondef')::text $$;
CREATE FUNCTION public.pg_get_triggerdef(oid) RETURNS text LANGUAGE sql AS $$ SELECT public.ran('pg_get_triggerdef')::text $$;
CREATE FUNCTION public.lower(text) RETURNS text LANGUAGE sql AS $$ SELECT public.ran('lower')::text $$;
SELECT format('CREATE FUNCTION public.operator_%s(a %s, b %s) RETURNS boolean LANGUAGE sql AS $f$ SELECT public.ran(%L) $f$;'
              ' CREATE OPERATOR public.%s (LEFTARG = %2$s, RIGHTARG = %3$s, FUNCTION = public.operator_%1$s)', row_number() OVER (), l, r, concat_ws(' ', l, o, r), o)
FROM (VALUES ('uuid', '=', 'uuid'), ('text', '=', 'text'), ('text', '<>', 'text'), ('text', '~', 'text'), ('text', '!~', 'text'), ('float8', '>=', 'integer'),
             ('float8', '<=', 'integer'), ('oid', '=', 'regclass'), ('name', '=', 'name'), ('tid', '=', 'tid'), ('int8', '>', 'integer')) AS v (l, o, r) \gexec
-- Names that break out of quotes, comments and lines, of everything that a hint may name.
CREATE SCHEMA :n;
SELECT format('CREATE TABLE %1$s.%1$s (%2$I uuid, %3$I uuid, %4$I uuid, %5$I text, %6$I text, %7$I text, %8$I real)', :'n', 'i' || :'hostile', 'p' || :'hostile',
              'q' || :'hostile', 'c' || :'hostile', 'h' || :'hostile', 'r' || :'hostile', 's' || :'hostile') \gexec
SELECT format('CREATE FUNCTION %1$s.%1$s(text) RETURNS boolean LANGUAGE sql IMMUTABLE AS ''SELECT true''', :'n') \gexec
SELECT format('CREATE FUNCTION %s.definer() RETURNS bigint LANGUAGE sql STABLE SECURITY DEFINER AS ''SELECT count(*) FROM graph_snapshot()''', :'n') \gexec
SELECT format('CREATE INDEX ON %1$s.%1$s USING gin (to_tsvector(''english'', %1$s.%1$s(%2$I)::text))', :'n', 'c' || :'hostile') \gexec
SELECT format('CREATE UNIQUE INDEX one ON %1$s.%1$s (%2$I)', :'n', 'i' || :'hostile') \gexec
SELECT graph_kernel.bind_tables(format('%1$s.%1$s', :'n')::regclass, name => :'hostile', columns => jsonb_build_object('turns', jsonb_build_object(
    'id', 'i' || :'hostile', 'content_hash', 'h' || :'hostile', 'content_text', 'c' || :'hostile', 'phase', 'r' || :'hostile', 'session_id', 'c' || :'hostile', 'salience', 's' || :'hostile',
    'role', jsonb_build_object('expression', format('coalesce(%I, E''a\\\\''''; ALTER ROLE regress_hostile SUPERUSER; --'')', 'r' || :'hostile')),
    'parents', jsonb_build_array(jsonb_build_object('parent', 'p' || :'hostile', 'edge_type', 'reply'), jsonb_build_object('parent', 'q' || :'hostile', 'edge_type', 'reply'))))) IS NOT NULL AS bound;
SELECT format('DROP INDEX %s.one', :'n') \gexec
SELECT format('INSERT INTO %1$s.%1$s VALUES (turn(1), turn(2), turn(1), ''one'', ''f'', ''robot'', 5), (turn(1), turn(2), NULL, ''two'', repeat(''0'', 64), ''user'', ''NaN''),
    (turn(3), turn(4), turn(3), ''three'', NULL, ''odd'', 0)', :'n') \gexec
SELECT format('CREATE POLICY %1$s ON %1$s.%1$s USING (%1$s.%1$s(%2$I)); ALTER TABLE %1$s.%1$s ENABLE ROW LEVEL SECURITY', :'n', 'c' || :'hostile') \gexec
-- Triggers: arguments of any bytes, some that spell a zero byte, and a column that would end what they leave open.
CREATE TABLE promoted (slice json, ids uuid[]);
CREATE TABLE promoted_too (slice json, "); ALTER ROLE regress_hostile SUPERUSER; --" uuid[]);
CREATE TABLE promoted_child () INHERITS (promoted);
SELECT format('CREATE TRIGGER %I AFTER INSERT OR UPDATE ON promoted FOR EACH ROW EXECUTE FUNCTION graph_require_admissible(''slice'', ''ids'', %L)', 't' || n, argument)
FROM (VALUES (1, 'roles=a\000'), (2, 'roles=\\000\'), (3, 'roles=' || :'hostile'), (4, E'roles=é\\134\'\r\n\\'), (5, 'roles=\\\000''')) AS v (n, argument) \gexec
SELECT format('CREATE TRIGGER %s AFTER INSERT OR UPDATE ON promoted_too FOR EACH ROW EXECUTE FUNCTION graph_require_admissible(''slice'', %L)', :'n', '); ALTER ROLE regress_hostile SUPERUSER; --') \gexec
SELECT format('CREATE TRIGGER wrong AFTER INSERT OR UPDATE ON %1$s.%1$s FOR EACH ROW EXECUTE FUNCTION graph_require_admissible(%2$L)', :'n', :'hostile') \gexec
GRANT TRIGGER ON promoted TO PUBLIC;
RESET ROLE;
CREATE TEMP TABLE argument AS SELECT tgrelid, tgname, tgargs FROM pg_trigger WHERE tgrelid::regclass::text ~ '^promoted';
SET graph_kernel.graph = :'hostile';
CREATE TEMP TABLE hint AS SELECT check_name, detail, hint FROM graph_check() WHERE hint IS NOT NULL;
-- Queries over rows are given to the owner of the table alone; a superuser who is handed them runs nothing of his either.
SET ROLE regress_hostile;
CREATE TEMP TABLE own_hint AS SELECT check_name, detail, hint FROM graph_check() WHERE hint IS NOT NULL;
RESET ROLE;
INSERT INTO hint SELECT o.* FROM own_hint AS o WHERE NOT o.check_name OPERATOR(pg_catalog.=) ANY (ARRAY(SELECT h.check_name FROM hint AS h));
SELECT check_name, count(*) FROM hint GROUP BY 1 ORDER BY 1;
-- Each names the schema of what is the extension's.
SELECT check_name, hint FROM hint WHERE hint ~ '\m(SELECT|FROM|JOIN|CALL|EXECUTE FUNCTION)\s+(graph|recorder|chunking|slice)_(?!kernel\.)\w+\s*\(';
-- By a superuser, with any search_path and any reading of backslashes: one by one, and pasted.
SELECT hint FROM hint ORDER BY check_name COLLATE "C" \g (format=unaligned tuples_only=on) /tmp/graph_kernel_hints.sql
\set VERBOSITY terse
SET search_path = public, pg_catalog;
\o /dev/null
\set ECHO none
SELECT hint FROM hint WHERE check_name OPERATOR(pg_catalog.!~) '^(promotion|index)' \gexec
SET search_path = public, pg_catalog;
SET standard_conforming_strings = off;
SELECT hint FROM hint WHERE check_name OPERATOR(pg_catalog.!~) '^(promotion|index)' \gexec
SET standard_conforming_strings = on;
SET search_path = public, pg_catalog;
SELECT format('DELETE FROM %1$s.%1$s AS t WHERE t.%2$I OPERATOR(pg_catalog.=) ''two''', :'n', 'c' || :'hostile') \gexec
\i /tmp/graph_kernel_hints.sql
\o
\set ECHO all
RESET search_path;
\! rm /tmp/graph_kernel_hints.sql
SELECT rolsuper FROM pg_catalog.pg_roles WHERE rolname = 'regress_hostile';
SELECT * FROM ran;
SELECT 'promoted'::regclass::oid = 'promoted'::regclass AS is_caught;
TABLE ran;
-- What stands in the place of the triggers has their names and arguments; the child has them all.
SELECT count(*) FROM argument AS a JOIN pg_trigger AS g USING (tgrelid, tgname, tgargs) WHERE g.tgconstraint <> 0 AND g.tgenabled = 'A';
SELECT count(*) FROM argument AS a JOIN pg_trigger AS g USING (tgname, tgargs) WHERE g.tgrelid = 'promoted_child'::regclass::oid;
SELECT check_name, count FROM graph_check() WHERE check_name LIKE 'promotion%' AND NOT ok;
-- A binding that nobody could have made: a row, and no right to a table that its binder may not read.
ALTER TABLE graph_kernel.binding DISABLE TRIGGER guard;
ALTER TABLE graph_kernel.binding DISABLE TRIGGER guard_binder;
CREATE TABLE secret (id uuid PRIMARY KEY, parent uuid);
INSERT INTO graph_kernel.binding (name, is_current, turns, columns, resolved, bound_by, binder, database)
SELECT v.name, true, v.turns, v.columns, CASE jsonb_typeof(v.columns) WHEN 'object' THEN v.columns ELSE '{}' END, 'x', 'regress_hostile'::regrole::oid, d.oid
FROM pg_database AS d,
     (VALUES ('a list', 'memory_turns'::regclass, '[1]'::jsonb), ('a list in it', 'memory_turns', '{"turns": {"content_hash": [], "parents": [{"parent": "id", "edge_type": "reply"}]}}'),
             ('catalog', 'pg_authid', NULL), ('private', 'graph_kernel.root_keys', NULL),
             ('secret', 'secret', '{"turns": {"parents": [{"parent": "parent", "edge_type": "reply"}]}}')) AS v (name, turns, columns)
WHERE d.datname = current_database();
CREATE FUNCTION checked(graph text) RETURNS TABLE (check_name text, ok boolean, detail text, hint text) LANGUAGE plpgsql AS $$ BEGIN
    PERFORM set_config('graph_kernel.graph', graph, true); RETURN QUERY SELECT c.check_name, c.ok, c.detail, left(c.hint, 30) FROM public.graph_check() AS c WHERE NOT c.ok; END $$;
SELECT name, c.* FROM unnest('{a list,a list in it,catalog,private,secret}'::text[]) AS name, checked(name) AS c WHERE check_name = 'bound_tables';
SET ROLE regress_hostile;
SELECT name, c.* FROM unnest('{catalog,private,secret}'::text[]) AS name, checked(name) AS c WHERE check_name = 'bound_tables';
RESET ROLE;
DELETE FROM graph_kernel.binding WHERE name IN ('a list', 'a list in it', 'catalog', 'private', 'secret');
ALTER TABLE graph_kernel.binding ENABLE ALWAYS TRIGGER guard;
ALTER TABLE graph_kernel.binding ENABLE ALWAYS TRIGGER guard_binder;
RESET graph_kernel.graph;
SELECT graph_kernel.unbind_tables(:'hostile');
DROP FUNCTION checked(text);
DROP TABLE secret;
DROP OWNED BY regress_hostile CASCADE;
DROP TABLE ran;
DROP ROLE regress_hostile;

-- A text that is read as JSON may be too long for an index: none holds it.
CREATE TABLE calls (id text PRIMARY KEY, body text);
SELECT graph_kernel.bind_tables('calls', name => 'calls', columns => '{"turns": {"id": {"expression": "graph_turn_id(id)"},
    "session_id": null, "role": null, "phase": null, "salience": null, "created_at": null, "content_text": null,
    "content_hash": null, "parents": [{"parent": {"expression": "graph_turn_id(body::jsonb ->> ''call'')"},
    "edge_type": "reply"}]}}') IS NOT NULL AS bound;
SET graph_kernel.graph = 'calls';
SELECT hint FROM graph_check() WHERE check_name LIKE 'index%' AND NOT ok;
RESET graph_kernel.graph;
DROP TABLE calls;
SELECT graph_kernel.unbind_tables('calls');

-- Whoever owns the schema of a table could put a view in its place before a query is followed: none is given.
CREATE ROLE hints_owner;
CREATE SCHEMA others;
SET client_min_messages = warning;
SELECT graph_kernel.create_tables('others');
SELECT graph_kernel.bind_tables('others.memory_turns', 'others.memory_turn_edges', name => 'others') IS NOT NULL AS bound;
INSERT INTO others.memory_turns (id, session_id, role) VALUES (turn(1), 'a', 'customer');
INSERT INTO others.memory_turn_edges VALUES (turn(1), turn(1), 'reply');
SET graph_kernel.graph = 'others';
CREATE VIEW given AS SELECT check_name, detail LIKE '%bind_tables%' AS has_command, hint IS NOT NULL AS has_hint FROM graph_check()
    WHERE check_name IN ('self_loops', 'unknown_roles') ORDER BY check_name;
SELECT * FROM given;
ALTER SCHEMA others OWNER TO hints_owner;
SELECT * FROM given;
SELECT detail FROM graph_check() WHERE check_name = 'self_loops';
-- So it is with the owner of the table, and he has them himself.
ALTER SCHEMA others OWNER TO CURRENT_USER;
ALTER TABLE others.memory_turns OWNER TO hints_owner;
ALTER TABLE others.memory_turn_edges OWNER TO hints_owner;
SELECT * FROM given;
GRANT USAGE ON SCHEMA others TO hints_owner;
SET ROLE hints_owner;
SELECT check_name FROM graph_check() WHERE check_name IN ('self_loops', 'unknown_roles') AND hint IS NOT NULL ORDER BY check_name;
RESET ROLE;
RESET graph_kernel.graph;
SELECT graph_kernel.unbind_tables('others');
DROP VIEW given;
DROP SCHEMA others CASCADE;
DROP ROLE hints_owner;
RESET client_min_messages;
