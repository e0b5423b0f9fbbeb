-- What the page, the tools and the program's commands list. They act with the caller's rights, like slices.
CREATE FUNCTION graph_kernel.list_sessions(
    limit_count integer DEFAULT 100, skip_count integer DEFAULT 0, length integer DEFAULT 160,
    name_end text DEFAULT NULL
)
RETURNS TABLE (session_id text, turns bigint, latest_turn_id uuid, latest_at timestamptz, title text, latest_text text)
    AS 'MODULE_PATHNAME', 'list_sessions_wrapper'
    LANGUAGE c STABLE PARALLEL RESTRICTED COST 1000000 ROWS 100 SET search_path = pg_catalog, pg_temp;
COMMENT ON FUNCTION graph_kernel.list_sessions(integer, integer, integer, text) IS
    'the sessions of the graph, the latest first';
CREATE FUNCTION graph_kernel.list_turns(
    session text DEFAULT NULL, turns uuid[] DEFAULT NULL, has_text text DEFAULT NULL, only_ends boolean DEFAULT false,
    limit_count integer DEFAULT 100, skip_count integer DEFAULT 0, length integer DEFAULT 400
)
RETURNS TABLE (turn_id uuid, session_id text, role text, phase text, created_at timestamptz, content text)
    AS 'MODULE_PATHNAME', 'list_turns_wrapper'
    LANGUAGE c STABLE PARALLEL RESTRICTED COST 10000 ROWS 100 SET search_path = pg_catalog, pg_temp;
COMMENT ON FUNCTION graph_kernel.list_turns(text, uuid[], text, boolean, integer, integer, integer) IS
    'turns of the graph, the latest first: of a session, by ids, with a text, that no other of their session follows';
CREATE FUNCTION graph_kernel.list_edges(turns uuid[], limit_count integer DEFAULT 10000)
RETURNS TABLE (parent_turn_id uuid, child_turn_id uuid, edge_type text)
    AS 'MODULE_PATHNAME', 'list_edges_wrapper'
    LANGUAGE c STABLE PARALLEL RESTRICTED COST 10000 ROWS 100 SET search_path = pg_catalog, pg_temp;
COMMENT ON FUNCTION graph_kernel.list_edges(uuid[], integer) IS 'the edges of the graph that lead to these turns';
