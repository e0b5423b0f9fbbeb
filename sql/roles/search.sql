-- Mediated access: who may call context.* gets slices and searches inside them, and cannot read the tables.
-- Run as superuser, with the extension and the tables in public. Then: GRANT context_caller TO your_application;
BEGIN;
DO $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'context_reader') THEN
        CREATE ROLE context_reader NOLOGIN;
    END IF;
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'context_caller') THEN
        CREATE ROLE context_caller NOLOGIN;
    END IF;
END
$$;

-- The only role that reads; nobody logs in as it, and it owns nothing but the functions.
GRANT SELECT ON public.memory_turns, public.memory_turn_edges TO context_reader;

CREATE SCHEMA context;
GRANT USAGE ON SCHEMA context TO context_caller, context_reader;
GRANT CREATE ON SCHEMA context TO context_reader;

CREATE FUNCTION context.slice(anchor uuid) RETURNS json
LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$ SELECT public.graph_slice(anchor) $$;

CREATE FUNCTION context.search(query_embedding real[], anchor uuid, limit_count integer DEFAULT 10)
RETURNS TABLE (rank integer, turn_id uuid, similarity real, role text, content text, provenance jsonb)
LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
    SELECT s.rank, s.turn_id, s.similarity, s.role, s.content, s.provenance
    FROM public.graph_search_slice(query_embedding, anchor, 'default', limit_count) AS s
$$;

ALTER FUNCTION context.slice(uuid) OWNER TO context_reader;
ALTER FUNCTION context.search(real[], uuid, integer) OWNER TO context_reader;
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA context FROM PUBLIC;
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA context TO context_caller;
REVOKE CREATE ON SCHEMA context FROM context_reader;
COMMIT;
