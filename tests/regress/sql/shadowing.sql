-- Promise: no role's temp tables, operators, functions, casts, types or names change a slice or run in it.
SET client_min_messages = warning; -- no notices of missing indexes
CREATE ROLE regress_mallory;
CREATE SCHEMA evil AUTHORIZATION regress_mallory;
GRANT SELECT ON memory_turns, memory_turn_edges TO regress_mallory;
SELECT graph_slice(turn(2))::text AS genuine \gset
-- The slice byte for byte, and what verification says of it and of an edited one.
CREATE FUNCTION pg_temp.verified(was pg_catalog.text) RETURNS pg_catalog.text LANGUAGE sql AS $$
    SELECT pg_catalog.concat_ws(' ', public.graph_slice('00000000-0000-0000-0000-000000000002')::pg_catalog.text OPERATOR(pg_catalog.=) was,
        (SELECT reason FROM public.graph_verify(was::pg_catalog.json)),
        (SELECT reason FROM public.graph_verify(pg_catalog.regexp_replace(was, '"phase":"[a-z]+"', '"phase":"debugging"', 'g')::pg_catalog.json)))
$$;
-- Whatever evil does, it says so.
CREATE FUNCTION evil.run(VARIADIC anyarray) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RAISE WARNING 'evil runs as %', current_user; RETURN true; END $$;
CREATE FUNCTION evil.uuid_eq(uuid, uuid) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RAISE WARNING 'evil = runs as %', current_user; RETURN true; END $$;
CREATE FUNCTION evil.text_eq(text, text) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RAISE WARNING 'evil = runs as %', current_user; RETURN true; END $$;
CREATE FUNCTION evil.unnest(uuid[]) RETURNS SETOF uuid LANGUAGE plpgsql AS $$ BEGIN RAISE WARNING 'evil unnest runs as %', current_user; END $$;
CREATE FUNCTION evil.count(anyelement) RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN RAISE WARNING 'evil count runs'; RETURN 0; END $$;
CREATE FUNCTION evil.lower(text) RETURNS text LANGUAGE plpgsql AS $$ BEGIN RAISE WARNING 'evil lower runs'; RETURN $1; END $$;
CREATE FUNCTION evil.format(text, VARIADIC text[]) RETURNS text LANGUAGE plpgsql AS $$ BEGIN RAISE WARNING 'evil format runs'; RETURN ''; END $$;
CREATE FUNCTION evil.now() RETURNS timestamptz LANGUAGE plpgsql AS $$ BEGIN RAISE WARNING 'evil now runs'; RETURN '-infinity'; END $$;
CREATE FUNCTION evil.textin(cstring) RETURNS text LANGUAGE internal IMMUTABLE STRICT AS 'textin';
CREATE FUNCTION evil.graph_verify(json) RETURNS TABLE (valid boolean, reason text) LANGUAGE sql AS $$ SELECT true, 'evil' $$;
CREATE DOMAIN evil.uuid_array AS uuid[];
CREATE OPERATOR evil.= (LEFTARG = uuid, RIGHTARG = uuid, FUNCTION = evil.uuid_eq);
CREATE OPERATOR evil.<> (LEFTARG = uuid, RIGHTARG = uuid, FUNCTION = evil.uuid_eq);
CREATE OPERATOR evil.= (LEFTARG = text, RIGHTARG = text, FUNCTION = evil.text_eq);
CREATE TYPE evil.uuid AS (a int);
CREATE TYPE evil.slice_policy AS ENUM ('default');
CREATE DOMAIN evil.text AS int;
CREATE TABLE evil.memory_turns (LIKE public.memory_turns);
CREATE TABLE evil.memory_turn_edges (LIKE public.memory_turn_edges);
INSERT INTO evil.memory_turns (id, role) VALUES (public.turn(2), 'tool'), (public.turn(9), 'tool');
INSERT INTO evil.memory_turn_edges VALUES (public.turn(2), public.turn(9), 'reply');
CREATE TABLE evil.binding (LIKE graph_kernel.binding);
CREATE TABLE evil.pg_class (oid oid);
CREATE FUNCTION evil.graph_slice(uuid) RETURNS json LANGUAGE sql AS $$ SELECT NULL::json $$;
CREATE TABLE evil.graph_policies (LIKE public.graph_policies);
CREATE TABLE evil.policies (LIKE graph_kernel.policies);
CREATE FUNCTION evil.policy_ne(public.slice_policy, public.slice_policy) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RAISE WARNING 'evil <> runs as %', current_user; RETURN true; END $$;
CREATE OPERATOR evil.<> (LEFTARG = public.slice_policy, RIGHTARG = public.slice_policy, FUNCTION = evil.policy_ne);
CREATE FUNCTION evil.graph_policy_hash(public.slice_policy) RETURNS text LANGUAGE plpgsql AS $$ BEGIN RAISE WARNING 'evil hash runs as %', current_user; RETURN 'x'; END $$;
CREATE TEMP TABLE memory_turns (LIKE public.memory_turns);
CREATE TEMP TABLE memory_turn_edges (LIKE public.memory_turn_edges);
CREATE TEMP TABLE pg_class (oid oid);
CREATE TEMP TABLE binding (LIKE graph_kernel.binding);
CREATE TEMP TABLE root_keys (epoch int, root bytea, created_at timestamptz);
CREATE TEMP TABLE revoked_keys (kid pg_catalog.text, revoked_at timestamptz);
CREATE DOMAIN pg_temp.json AS pg_catalog.text;
INSERT INTO pg_temp.memory_turns (id, role) VALUES (public.turn(2), 'tool');
SELECT pg_temp.verified(:'genuine');
-- Names that are found first.
SET search_path = evil, pg_catalog, public;
SELECT pg_temp.verified(:'genuine');
SET search_path = pg_temp, evil, public;
SELECT pg_temp.verified(:'genuine');
SET search_path = evil, pg_temp, public, pg_catalog;
SELECT pg_temp.verified(:'genuine');
SELECT turn_id FROM public.graph_slice_turns('00000000-0000-0000-0000-000000000002');
SELECT anchor_turn_id, error_code FROM public.graph_slices('{00000000-0000-0000-0000-000000000002}');
SELECT public.graph_kernel_version() IS NOT NULL AS version;
SELECT check_name, ok FROM public.graph_check() WHERE NOT ok;
SELECT params_hash FROM public.graph_policy_register('{"max_nodes": 21}', 'unshadowed');
SELECT public.graph_policy('unshadowed')::pg_catalog.json ->> 'max_nodes' AS max_nodes, public.graph_policy_registry_fingerprint() IS NOT NULL AS fingerprint;
SELECT public.graph_api_slice('{"anchor_turn_id": "00000000-0000-0000-0000-000000000002"}') #>> '{policy_ref,params_hash}' AS params_hash,
       public.graph_api_policies() IS NOT NULL AS policies, public.graph_api_health() ->> 'status' AS status;
SELECT public.graph_api_register_policy('{"policy": {"max_nodes": 21}, "name": "unshadowed too"}');
SET search_path = '';
SELECT pg_temp.verified(:'genuine');
SELECT public.graph_policy_hash('focused');
SET search_path = evil, pg_temp;
SELECT pg_temp.verified(:'genuine');
RESET search_path;
DROP TABLE memory_turns, memory_turn_edges, pg_class, binding, root_keys, revoked_keys;

-- A session that finds them before it has called anything.
\connect -
SET client_min_messages = warning;
SET search_path = evil, pg_temp, public, pg_catalog;
CREATE TEMP TABLE memory_turns (LIKE public.memory_turns);
CREATE TEMP TABLE root_keys (epoch int, root bytea, created_at timestamptz);
CREATE TEMP TABLE pg_class (oid oid);
SELECT public.graph_slice('00000000-0000-0000-0000-000000000002')::pg_catalog.text OPERATOR(pg_catalog.=) :'genuine' AS same,
       reason FROM public.graph_verify(:'genuine');
RESET search_path;
DROP TABLE pg_temp.memory_turns, pg_temp.root_keys, pg_temp.pg_class;
CREATE FUNCTION pg_temp.genuine(was pg_catalog.text) RETURNS boolean LANGUAGE sql AS $$
    SELECT public.graph_slice('00000000-0000-0000-0000-000000000002')::jsonb - 'attestation' - 'admissibility_token'
           OPERATOR(pg_catalog.=) was::jsonb - 'attestation' - 'admissibility_token'
$$;

-- The owner of bound tables has only their names, types and rows to play with. The tables are regress_mallory's here, and a superuser slices.
GRANT CREATE ON DATABASE graph_kernel_regress TO regress_mallory;
SET ROLE regress_mallory;
CREATE TABLE evil.turns (LIKE public.memory_turns INCLUDING INDEXES);
CREATE TABLE evil.edges (LIKE public.memory_turn_edges);
INSERT INTO evil.turns SELECT * FROM public.memory_turns;
INSERT INTO evil.edges SELECT * FROM public.memory_turn_edges;
RESET ROLE;
SELECT graph_kernel.bind_tables('evil.turns', 'evil.edges') IS NOT NULL AS bound;
SELECT pg_temp.genuine(:'genuine');
-- A cast that the owner of an enum made.
SET ROLE regress_mallory;
CREATE TYPE evil.phase AS ENUM ('exploration', 'debugging', 'planning', 'consolidation', 'synthesis');
CREATE FUNCTION evil.phase_text(evil.phase) RETURNS pg_catalog.text LANGUAGE plpgsql AS $$ BEGIN RAISE WARNING 'evil cast runs as %', current_user; RETURN 'synthesis'; END $$;
CREATE CAST (evil.phase AS pg_catalog.text) WITH FUNCTION evil.phase_text(evil.phase) AS IMPLICIT;
ALTER TABLE evil.turns DROP CONSTRAINT turns_pkey, ADD PRIMARY KEY (id), ALTER trajectory_phase TYPE evil.phase USING trajectory_phase::evil.phase;
RESET ROLE;
SELECT pg_temp.genuine(:'genuine');
SELECT check_name, ok, count FROM graph_check() WHERE check_name = 'unknown_phases';
-- Names that look like parts of our statements.
SET ROLE regress_mallory;
ALTER TABLE evil.turns RENAME TO "{edges}";
ALTER TABLE evil.edges RENAME TO "{t.phase}""; SELECT evil.run(1); --";
RESET ROLE;
SELECT pg_temp.genuine(:'genuine');
SELECT ok FROM graph_check() WHERE check_name = 'bound_tables';
SET ROLE regress_mallory;
CREATE TABLE evil."ONLY " (LIKE evil."{edges}");
INSERT INTO evil."ONLY " SELECT * FROM evil."{edges}";
ALTER TABLE evil."{t.phase}""; SELECT evil.run(1); --" RENAME TO edges;
CREATE SCHEMA " t,evil.run(1)f--";
ALTER TABLE evil.edges SET SCHEMA " t,evil.run(1)f--";
RESET ROLE;
SELECT pg_temp.genuine(:'genuine');
SELECT ok FROM graph_check() WHERE check_name = 'bound_tables';

SELECT graph_kernel.unbind_tables();
SET client_min_messages = warning;
DROP SCHEMA evil, " t,evil.run(1)f--" CASCADE;
DROP OWNED BY regress_mallory;
DROP ROLE regress_mallory;
