SET LOCAL search_path TO pg_catalog, pg_temp; -- what bodies parsed now are resolved by

-- The tables that a described graph is read from.
CREATE FUNCTION graph_kernel.tables_of(graph jsonb) RETURNS regclass[]
LANGUAGE sql STABLE STRICT PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT array_agg(o.oid::oid::regclass ORDER BY o.position)
    FROM jsonb_array_elements_text(graph -> 'tables') WITH ORDINALITY AS o (oid, position);
END;
COMMENT ON FUNCTION graph_kernel.tables_of(jsonb) IS 'the tables that a described graph is read from';

-- What this role lacks to read a graph, for the owners of its tables to grant. The table's owner may have revoked on
-- purpose what the role that bound it lacks: no command grants that.
CREATE FUNCTION graph_kernel.missing_grants(name text) RETURNS text
LANGUAGE sql STABLE STRICT
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT string_agg(DISTINCT g.command, ' ' ORDER BY g.command)
    FROM pg_class AS r
    JOIN pg_namespace AS n ON n.oid = r.relnamespace
    CROSS JOIN LATERAL (VALUES
        (CASE WHEN NOT has_schema_privilege(n.oid, 'USAGE') THEN
             format('GRANT USAGE ON SCHEMA %I TO %I;', n.nspname, current_user) END),
        (CASE WHEN NOT has_table_privilege(r.oid, 'SELECT') THEN
             format('GRANT SELECT ON %I.%I TO %I;', n.nspname, r.relname, current_user) END)) AS g (command)
    -- Only of tables that can be bound, by who may read them: a row of the binding may be forged.
    WHERE r.oid >= 16384 AND r.relkind IN ('r', 'p') AND r.relpersistence = 'p' AND n.nspname !~ '^pg_'
      AND NOT EXISTS (SELECT FROM pg_depend AS m WHERE m.classid = 'pg_class'::regclass AND m.objid = r.oid
                                                   AND m.deptype = 'e')
      AND (EXISTS (SELECT FROM graph_kernel.binding AS b JOIN pg_roles AS o ON o.oid = b.binder
                   WHERE b.is_current AND b.name = missing_grants.name
                     AND r.oid IN (b.turns, b.edges, b.edges_by_child)
                     AND has_schema_privilege(o.oid, n.oid, 'USAGE')
                     AND (has_table_privilege(o.oid, r.oid, 'SELECT')
                          OR has_any_column_privilege(o.oid, r.oid, 'SELECT')))
           OR n.nspname = 'public' AND r.relname IN ('memory_turns', 'memory_turn_edges')
              AND missing_grants.name = 'default'
              AND NOT EXISTS (SELECT FROM graph_kernel.binding AS b WHERE b.is_current AND b.name = 'default'));
END;
COMMENT ON FUNCTION graph_kernel.missing_grants(text) IS 'the grants that this role lacks to read a graph';

-- The tables of a graph, their indexes and policies. Called by check_graph.
CREATE FUNCTION graph_kernel.check_tables(graph jsonb) RETURNS TABLE (
    check_name text, ok boolean, count bigint, detail text, hint text
)
LANGUAGE plpgsql STABLE STRICT
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    turns regclass := (graph #>> '{turns,oid}')::oid;
    tables regclass[] := graph_kernel.tables_of(graph);
BEGIN
    RETURN QUERY SELECT 'bound_tables', true, NULL::bigint,
        format('turns: %s, edges: %s', turns, array_to_string(
            CASE WHEN graph #> '{resolved,turns}' ?| '{parents,follows}' THEN ARRAY[turns] ELSE '{}' END || tables[2:],
                ', ')),
        NULL::text;

    RETURN QUERY
    SELECT i.name, i.found, NULL::bigint, CASE WHEN i.found THEN '' ELSE 'no ' END || i.what,
           CASE WHEN NOT i.found THEN i.command END
    FROM graph_kernel.wanted_indexes(graph) AS i;

    -- An operator that is not leakproof is applied to rows that a policy has let through: no index finds them by it.
    RETURN QUERY
    SELECT 'words_row_security', n.found, NULL::bigint,
           format('row security on %s: words are sought among the turns of an owner or a session, by its index', turns),
           CASE WHEN NOT n.found AND n.key IS NOT NULL
                THEN graph_kernel.index_command(turns, false, ARRAY[n.key], '{}', n.is_exact) END
    FROM jsonb_to_record(graph -> 'words_narrowing') AS n (key text, is_exact boolean, found boolean)
    JOIN pg_class AS t ON t.oid = turns AND t.relrowsecurity
    WHERE jsonb_typeof(graph -> 'words_narrowing') = 'object';

    -- Slices run with a fixed search_path: a policy's function that depends on the caller's fails. Its own schema is in
    -- the path only where nobody else can create functions that its body would call then.
    RETURN QUERY
    SELECT 'policy_search_path', count(*) = 0, count(*),
           'functions of row security policies without a search_path of their own',
           string_agg(format('ALTER FUNCTION %s SET search_path = pg_catalog, %spg_temp;',
                             graph_kernel.function_name(f.fn), f.home), ' ')
    FROM (
        SELECT DISTINCT p.oid::regprocedure AS fn, CASE WHEN NOT EXISTS (
            SELECT FROM aclexplode(coalesce(n.nspacl, acldefault('n', n.nspowner))) AS a
            LEFT JOIN pg_roles AS named ON named.oid = a.grantee
            LEFT JOIN pg_database AS d ON d.datname = current_database() AND named.rolname = 'pg_database_owner'
            LEFT JOIN pg_roles AS w ON w.oid = coalesce(d.datdba, a.grantee)
            WHERE a.privilege_type = 'CREATE' AND w.rolsuper IS NOT TRUE AND w.oid IS DISTINCT FROM p.proowner
        ) THEN format('%I, ', n.nspname) END AS home
        FROM pg_policy AS pol
        JOIN pg_depend AS d ON d.classid = 'pg_policy'::regclass AND d.objid = pol.oid
        LEFT JOIN pg_operator AS o ON d.refclassid = 'pg_operator'::regclass AND o.oid = d.refobjid
        JOIN pg_proc AS p ON p.oid = CASE WHEN d.refclassid = 'pg_proc'::regclass THEN d.refobjid ELSE o.oprcode END
        JOIN pg_namespace AS n ON n.oid = p.pronamespace
        JOIN pg_language AS l ON l.oid = p.prolang
        WHERE pol.polrelid = ANY (tables) AND l.lanname NOT IN ('internal', 'c')
          AND pg_has_role(p.proowner, 'USAGE') -- others could not follow the hint
          AND NOT EXISTS (SELECT FROM unnest(p.proconfig) AS s WHERE s LIKE E'search\\_path=%')
    ) AS f;
END
$$;
COMMENT ON FUNCTION graph_kernel.check_tables(jsonb) IS 'what graph_check finds of tables, indexes and policies';

SET LOCAL search_path TO @extschema@, pg_temp;
