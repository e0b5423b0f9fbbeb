-- Mediated access: callers get ids of turns as anchors, slices and searches inside them, by registered policies, and
-- nothing else of the graph. A role that cannot log in reads the tables. Functions in schema api run with its rights;
-- these are all that is exposed over HTTP. It needs a superuser, as it gives functions to the new role, the tables of
-- graph_kernel.create_tables(), and the roles of supabase.sql. It may be run again. It ends in an error, and changes
-- nothing, where others own the extension's schema, schema api or one of these functions, or may act as the new role,
-- or where that owns something else.

BEGIN;
-- Nothing that others have made is found without its schema. That of the extension may be one where they make objects:
-- what is called there is called with the types of its arguments, all of them.
SET LOCAL search_path = pg_catalog, pg_temp;

-- One statement: psql may go on after an error, in a transaction too (ON_ERROR_ROLLBACK).
DO $mediated$
DECLARE
    home text := (SELECT extnamespace::regnamespace FROM pg_extension WHERE extname = 'graph_kernel');
    foreigner text;
    created text;
    signatures CONSTANT text[] := ARRAY['api.graph_anchor(uuid, text, real[])',
        'api.graph_anchors_recent(integer, text)', 'api.graph_slice(uuid, text)', 'api.slice_content(uuid, text)',
        'api.search_slice(real[], uuid, text, integer)', 'api.graph_api_slice(json)',
        'api.graph_api_slice_batch(json)', 'api.graph_api_search_slice(json)'];
BEGIN
    IF NOT (SELECT rolsuper FROM pg_roles WHERE rolname = current_user) THEN
        RAISE EXCEPTION 'mediated.sql needs a superuser' USING ERRCODE = 'insufficient_privilege';
    END IF;
    IF home IS NULL THEN
        RAISE EXCEPTION 'extension graph_kernel is not installed here'
            USING ERRCODE = 'undefined_object', HINT = 'CREATE EXTENSION graph_kernel;';
    END IF;
    -- Its name is looked up for each function: its owner could give it to a schema of his own meanwhile.
    SELECT o.rolname INTO foreigner
    FROM pg_extension AS e JOIN pg_namespace AS n ON n.oid = e.extnamespace JOIN pg_roles AS s ON s.oid = n.nspowner
    JOIN pg_database AS d ON d.datname = current_database()
    JOIN pg_roles AS o ON o.oid = CASE s.rolname WHEN 'pg_database_owner' THEN d.datdba ELSE s.oid END
    WHERE e.extname = 'graph_kernel' AND NOT o.rolsuper;
    IF foreigner IS NOT NULL THEN
        RAISE EXCEPTION 'schema % of the extension belongs to %, who is no superuser', home, quote_ident(foreigner)
            USING ERRCODE = 'insufficient_privilege',
                  HINT = format('ALTER SCHEMA %s OWNER TO %I;', home, current_user);
    END IF;
    IF to_regrole('anon') IS NULL OR to_regrole('authenticated') IS NULL THEN
        RAISE EXCEPTION 'there are no roles anon and authenticated'
            USING ERRCODE = 'undefined_object', HINT = 'Run sql/roles/supabase.sql first.';
    END IF;
    -- The roles may be of another database of the cluster, or Supabase's own.
    IF EXISTS (SELECT FROM pg_class AS r
               WHERE r.oid IN (to_regclass('public.memory_turns'), to_regclass('public.memory_turn_edges'))
                 AND NOT r.relrowsecurity) THEN
        RAISE EXCEPTION 'row security is off on public.memory_turns or public.memory_turn_edges'
            USING ERRCODE = 'object_not_in_prerequisite_state', HINT = 'Run sql/roles/supabase.sql first.';
    END IF;

    -- A role of that name may be another's.
    IF to_regrole('graph_reader') IS NULL THEN
        CREATE ROLE graph_reader NOLOGIN;
    END IF;
    IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'graph_reader' AND (rolcanlogin OR rolsuper OR rolbypassrls)) THEN
        RAISE EXCEPTION 'role graph_reader may log in, or passes row security'
            USING ERRCODE = 'duplicate_object',
                  HINT = 'ALTER ROLE graph_reader NOLOGIN NOSUPERUSER NOBYPASSRLS;';
    END IF;
    SELECT string_agg(m.member::regrole::text, ', ') INTO foreigner
    FROM pg_auth_members AS m JOIN pg_roles AS r ON r.oid = m.member
    WHERE m.roleid = 'graph_reader'::regrole AND NOT r.rolsuper;
    IF foreigner IS NOT NULL THEN
        RAISE EXCEPTION 'role graph_reader, which reads the tables, has members: %', foreigner
            USING ERRCODE = 'duplicate_object', HINT = format('REVOKE graph_reader FROM %s;', foreigner);
    END IF;

    -- A function or a view that it owns reads the tables for whoever made it.
    SELECT string_agg(pg_describe_object(d.classid, d.objid, d.objsubid), ', ') INTO foreigner
    FROM pg_shdepend AS d
    WHERE d.refclassid = 'pg_authid'::regclass AND d.refobjid = 'graph_reader'::regrole AND d.deptype = 'o'
      AND d.dbid IN (0, (SELECT oid FROM pg_database WHERE datname = current_database()))
      AND NOT (d.classid = 'pg_proc'::regclass
               AND d.objid IN (SELECT to_regprocedure(n.text) FROM unnest(signatures) AS n (text)
                               WHERE to_regprocedure(n.text) IS NOT NULL));
    IF foreigner IS NOT NULL THEN
        RAISE EXCEPTION 'role graph_reader, which reads the tables, owns already: %', foreigner
            USING ERRCODE = 'duplicate_object',
                  HINT = 'Look at what it owns; then give that to another role: ALTER ... OWNER TO ...;';
    END IF;

    -- Not IF NOT EXISTS: the owner of a schema can replace what is in it.
    IF to_regnamespace('api') IS NULL THEN
        CREATE SCHEMA api;
    END IF;
    SELECT n.nspowner::regrole::text INTO foreigner
    FROM pg_namespace AS n JOIN pg_roles AS r ON r.oid = n.nspowner
    WHERE n.nspname = 'api' AND NOT r.rolsuper;
    IF foreigner IS NOT NULL THEN
        RAISE EXCEPTION 'schema api belongs to %', foreigner
            USING ERRCODE = 'duplicate_schema',
                  HINT = format('Look at what is in it; then: ALTER SCHEMA api OWNER TO %I;', current_user);
    END IF;
    -- Whoever may create functions in it answers in the place of these.
    SELECT string_agg(DISTINCT CASE WHEN a.grantee = 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END, ', ')
    INTO foreigner
    FROM pg_namespace AS n CROSS JOIN aclexplode(n.nspacl) AS a LEFT JOIN pg_roles AS r ON r.oid = a.grantee
    WHERE n.nspname = 'api' AND a.privilege_type = 'CREATE' AND r.rolsuper IS NOT TRUE;
    IF foreigner IS NOT NULL THEN
        RAISE EXCEPTION 'others may create functions in schema api: %', foreigner
            USING ERRCODE = 'duplicate_schema',
                  HINT = format('Look at what is in it; then: REVOKE CREATE ON SCHEMA api FROM %s CASCADE;', foreigner);
    END IF;
    EXECUTE format('GRANT USAGE ON SCHEMA %s TO graph_reader', home);
    GRANT USAGE ON SCHEMA api TO authenticated;

    -- The bodies are parsed now, so that no search_path of a caller decides what the names in them mean.
    EXECUTE format($create$
        CREATE OR REPLACE FUNCTION api.graph_anchor(
            turn_id uuid DEFAULT NULL, session_id text DEFAULT NULL, query_embedding real[] DEFAULT NULL)
        RETURNS TABLE (anchor_turn_id uuid, strategy text)
        LANGUAGE sql STABLE SECURITY DEFINER
        SET search_path = pg_catalog, pg_temp SET graph_kernel.graph = 'default'
        BEGIN ATOMIC
            SELECT a.anchor_turn_id, a.strategy FROM %1$s.graph_anchor(turn_id, session_id, query_embedding) AS a;
        END;

        CREATE OR REPLACE FUNCTION api.graph_anchors_recent(limit_count integer DEFAULT 5, session_id text DEFAULT NULL)
        RETURNS TABLE (anchor_turn_id uuid, created_at bigint)
        LANGUAGE sql STABLE SECURITY DEFINER
        SET search_path = pg_catalog, pg_temp SET graph_kernel.graph = 'default'
        BEGIN ATOMIC
            SELECT a.anchor_turn_id, a.created_at FROM %1$s.graph_anchors_recent(limit_count, session_id) AS a;
        END;

        CREATE OR REPLACE FUNCTION api.graph_slice(anchor uuid, policy text DEFAULT 'default') RETURNS json
        LANGUAGE sql STABLE SECURITY DEFINER
        SET search_path = pg_catalog, pg_temp SET graph_kernel.graph = 'default'
        RETURN %1$s.graph_slice(anchor, %1$s.graph_policy(policy));

        CREATE OR REPLACE FUNCTION api.slice_content(anchor uuid, policy text DEFAULT 'default')
        RETURNS TABLE (turn_id uuid, role text, content text)
        LANGUAGE sql STABLE SECURITY DEFINER
        SET search_path = pg_catalog, pg_temp SET graph_kernel.graph = 'default'
        BEGIN ATOMIC
            SELECT s.turn_id, s.role, t.content_text
              FROM %1$s.graph_slice_turns(anchor, %1$s.graph_policy(policy)) AS s
              JOIN public.memory_turns AS t ON t.id = s.turn_id
             ORDER BY s.selection_order;
        END;

        CREATE OR REPLACE FUNCTION api.search_slice(
            query_embedding real[], anchor uuid, policy text DEFAULT 'default', limit_count integer DEFAULT 10)
        RETURNS TABLE (rank integer, turn_id uuid, similarity real, role text, content text, provenance jsonb)
        LANGUAGE sql STABLE SECURITY DEFINER
        SET search_path = pg_catalog, pg_temp SET graph_kernel.graph = 'default'
        BEGIN ATOMIC
            SELECT s.rank, s.turn_id, s.similarity, s.role, s.content, s.provenance
              FROM %1$s.graph_search_slice(query_embedding, anchor, %1$s.graph_policy(policy), limit_count,
                                           NULL::real, NULL::real, NULL::text, '{}'::jsonb) AS s
             ORDER BY s.rank;
        END;

        CREATE OR REPLACE FUNCTION api.graph_api_slice(json) RETURNS json
        LANGUAGE sql STABLE SECURITY DEFINER
        SET search_path = pg_catalog, pg_temp SET graph_kernel.graph = 'default'
        RETURN %1$s.graph_api_slice($1);

        CREATE OR REPLACE FUNCTION api.graph_api_slice_batch(json) RETURNS json
        LANGUAGE sql STABLE SECURITY DEFINER
        SET search_path = pg_catalog, pg_temp SET graph_kernel.graph = 'default'
        RETURN %1$s.graph_api_slice_batch($1);

        CREATE OR REPLACE FUNCTION api.graph_api_search_slice(json) RETURNS json
        LANGUAGE sql STABLE SECURITY DEFINER
        SET search_path = pg_catalog, pg_temp SET graph_kernel.graph = 'default'
        RETURN %1$s.graph_api_search_slice($1)
        $create$, home);

    -- Whoever owned a function before it was replaced owns it still, and has given others what he liked.
    SELECT format('%s belongs to %s', p.oid::regprocedure, p.proowner::regrole), p.oid::regprocedure
    INTO foreigner, created
    FROM pg_proc AS p JOIN pg_roles AS r ON r.oid = p.proowner
    WHERE p.pronamespace = 'api'::regnamespace AND NOT r.rolsuper
      AND NOT (r.rolname = 'graph_reader'
               AND p.oid IN (SELECT to_regprocedure(n.text) FROM unnest(signatures) AS n (text)
                             WHERE to_regprocedure(n.text) IS NOT NULL))
      AND p.proname IN (SELECT substring(n.text FROM E'api\\.(\\w+)') FROM unnest(signatures) AS n (text))
    LIMIT 1;
    IF foreigner IS NOT NULL THEN
        RAISE EXCEPTION 'function %', foreigner
            USING ERRCODE = 'duplicate_function', HINT = format('Look at it; then: DROP FUNCTION %s;', created);
    END IF;

    -- Row security holds for the reader as well: it sees what the user in the JWT owns.
    GRANT SELECT ON public.memory_turns, public.memory_turn_edges TO graph_reader;
    REVOKE ALL ON public.memory_turns, public.memory_turn_edges FROM PUBLIC, anon, authenticated;

    -- A function's new owner needs CREATE on its schema while it becomes the owner.
    GRANT CREATE ON SCHEMA api TO graph_reader;
    ALTER FUNCTION api.graph_anchor(uuid, text, real[]) OWNER TO graph_reader;
    ALTER FUNCTION api.graph_anchors_recent(integer, text) OWNER TO graph_reader;
    ALTER FUNCTION api.graph_slice(uuid, text) OWNER TO graph_reader;
    ALTER FUNCTION api.slice_content(uuid, text) OWNER TO graph_reader;
    ALTER FUNCTION api.search_slice(real[], uuid, text, integer) OWNER TO graph_reader;
    ALTER FUNCTION api.graph_api_slice(json) OWNER TO graph_reader;
    ALTER FUNCTION api.graph_api_slice_batch(json) OWNER TO graph_reader;
    ALTER FUNCTION api.graph_api_search_slice(json) OWNER TO graph_reader;
    REVOKE CREATE ON SCHEMA api FROM graph_reader;

    REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA api FROM PUBLIC, anon;
    GRANT EXECUTE ON FUNCTION api.graph_anchor(uuid, text, real[]), api.graph_anchors_recent(integer, text),
        api.graph_slice(uuid, text), api.slice_content(uuid, text), api.search_slice(real[], uuid, text, integer),
        api.graph_api_slice(json), api.graph_api_slice_batch(json), api.graph_api_search_slice(json) TO authenticated;
END
$mediated$;
COMMIT;
