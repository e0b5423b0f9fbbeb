-- Mediated access: callers get slices and searches inside them, by registered policies, and nothing else of the graph. A role that
-- cannot log in reads the tables; functions in schema api run with its rights, and these are all
-- that is exposed over HTTP. It needs a superuser, as it gives functions to the new role, the tables of
-- graph_kernel.create_tables(), and the roles of supabase.sql. It may be run again.

BEGIN;
-- Not public: where plain roles may create objects in it, what is named here must not be theirs.
SELECT set_config('search_path', format('%s, pg_temp', extnamespace::regnamespace), true)
  FROM pg_extension WHERE extname = 'graph_kernel';

DO $$
BEGIN
    IF NOT (SELECT rolsuper FROM pg_roles WHERE rolname = current_user) THEN
        RAISE EXCEPTION 'mediated.sql needs a superuser' USING ERRCODE = 'insufficient_privilege';
    END IF;
    IF to_regrole('anon') IS NULL OR to_regrole('authenticated') IS NULL THEN
        RAISE EXCEPTION 'there are no roles anon and authenticated'
            USING ERRCODE = 'undefined_object', HINT = 'Run sql/roles/supabase.sql first.';
    END IF;
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'graph_reader') THEN
        CREATE ROLE graph_reader NOLOGIN;
    END IF;
    EXECUTE format('GRANT USAGE ON SCHEMA %s TO graph_reader',
                   (SELECT extnamespace::regnamespace FROM pg_extension WHERE extname = 'graph_kernel'));
END
$$;

-- Row security holds for the reader as well: it sees what the user in the JWT owns.
GRANT SELECT ON public.memory_turns, public.memory_turn_edges TO graph_reader;
REVOKE ALL ON public.memory_turns, public.memory_turn_edges FROM PUBLIC, anon, authenticated;

CREATE SCHEMA IF NOT EXISTS api;
GRANT USAGE ON SCHEMA api TO authenticated;

-- The bodies are parsed now, so that no search_path of a caller decides what the names in them mean.
CREATE OR REPLACE FUNCTION api.graph_slice(anchor uuid, policy text DEFAULT 'default') RETURNS json
LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET graph_kernel.graph = 'default'
RETURN graph_slice(anchor, graph_policy(policy));

CREATE OR REPLACE FUNCTION api.slice_content(anchor uuid, policy text DEFAULT 'default')
RETURNS TABLE (turn_id uuid, role text, content text)
LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET graph_kernel.graph = 'default'
BEGIN ATOMIC
    SELECT s.turn_id, s.role, t.content_text
      FROM graph_slice_turns(anchor, graph_policy(policy)) AS s
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
      FROM graph_search_slice(query_embedding, anchor, graph_policy(policy), limit_count) AS s
     ORDER BY s.rank;
END;

CREATE OR REPLACE FUNCTION api.graph_api_slice(json) RETURNS json
LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET graph_kernel.graph = 'default'
RETURN graph_api_slice($1);

CREATE OR REPLACE FUNCTION api.graph_api_slice_batch(json) RETURNS json
LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET graph_kernel.graph = 'default'
RETURN graph_api_slice_batch($1);

CREATE OR REPLACE FUNCTION api.graph_api_search_slice(json) RETURNS json
LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET graph_kernel.graph = 'default'
RETURN graph_api_search_slice($1);

-- A function's new owner needs CREATE on its schema while it becomes the owner.
GRANT CREATE ON SCHEMA api TO graph_reader;
ALTER FUNCTION api.graph_slice(uuid, text) OWNER TO graph_reader;
ALTER FUNCTION api.slice_content(uuid, text) OWNER TO graph_reader;
ALTER FUNCTION api.search_slice(real[], uuid, text, integer) OWNER TO graph_reader;
ALTER FUNCTION api.graph_api_slice(json) OWNER TO graph_reader;
ALTER FUNCTION api.graph_api_slice_batch(json) OWNER TO graph_reader;
ALTER FUNCTION api.graph_api_search_slice(json) OWNER TO graph_reader;
REVOKE CREATE ON SCHEMA api FROM graph_reader;

REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA api FROM PUBLIC, anon;
GRANT EXECUTE ON FUNCTION api.graph_slice(uuid, text), api.slice_content(uuid, text),
    api.search_slice(real[], uuid, text, integer), api.graph_api_slice(json),
    api.graph_api_slice_batch(json), api.graph_api_search_slice(json) TO authenticated;
COMMIT;
