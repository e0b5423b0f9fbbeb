-- A row for each thing that can be wrong with a graph. Invoker's rights: it sees what slices see.
CREATE FUNCTION graph_check() RETURNS TABLE (
    check_name text, ok boolean, count bigint, detail text, hint text
)
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    graph jsonb;
    t text;         -- the tables as they stand in FROM
    e text;
    turns regclass;
    edges regclass;
    c jsonb;        -- column names, turns and edges together
    x jsonb;        -- the same as expressions over t and e, texts being texts
    hidden text;    -- what to add where this role may not see all rows
    listed record;
BEGIN
    BEGIN
        graph := graph_kernel.describe_graph();
    EXCEPTION WHEN undefined_table OR undefined_column OR datatype_mismatch OR wrong_object_type THEN
        check_name := 'bound_tables';
        ok := false;
        GET STACKED DIAGNOSTICS detail = MESSAGE_TEXT, hint = PG_EXCEPTION_HINT;
        RETURN NEXT;
        RETURN;
    END;
    t := graph #>> '{turns,from}';
    e := graph #>> '{edges,from}';
    turns := (graph #>> '{turns,oid}')::oid;
    edges := (graph #>> '{edges,oid}')::oid;
    -- An absent column is '' where a statement names it, and such a statement is not run.
    c := (SELECT jsonb_object_agg(k.key, coalesce(k.value, ''))
          FROM jsonb_each_text((graph #> '{turns,columns}') || (graph #> '{edges,columns}')) AS k);
    x := (graph #> '{turns,expressions}') || (graph #> '{edges,expressions}');
    IF row_security_active(turns) OR row_security_active(edges) THEN
        hidden := '; row security hides rows from this role: let the owner of the tables run this';
    END IF;
    RETURN QUERY SELECT 'bound_tables', true, NULL::bigint,
        format('turns: %s, edges: %s', turns, edges), NULL::text;

    -- Indexes: without them every probe of a slice reads a whole table.
    RETURN QUERY
    SELECT i.name, h.found, NULL::bigint, format('index on %s (%I)', i.rel, i.col),
           CASE WHEN NOT h.found THEN i.command END
    FROM (VALUES
        ('index_turn_id', turns, c ->> 'id', true,
         rtrim(graph_kernel.unique_index_command(turns, c ->> 'id'), ';')
         || CASE WHEN '' IN (c ->> 'phase', c ->> 'salience') THEN ';'
                 ELSE format(' INCLUDE (%I, %I);', c ->> 'phase', c ->> 'salience') END),
        ('index_edge_parent', edges, c ->> 'parent', false,
         format('CREATE INDEX ON %s (%I, %I%s);', edges, c ->> 'parent', c ->> 'child',
                ', ' || quote_ident(nullif(c ->> 'edge_type', '')))),
        ('index_edge_child', edges, c ->> 'child', false,
         format('CREATE INDEX ON %s (%I, %I%s);', edges, c ->> 'child', c ->> 'parent',
                ', ' || quote_ident(nullif(c ->> 'edge_type', ''))))
    ) AS i (name, rel, col, is_unique, command)
    CROSS JOIN LATERAL graph_kernel.has_index(i.rel, i.col, i.is_unique) AS h (found);

    -- Slices run with a fixed search_path: a policy's function that relies on the caller's breaks.
    RETURN QUERY
    SELECT 'policy_search_path', count(*) = 0, count(*),
           'functions of row security policies without a search_path of their own',
           string_agg(format('ALTER FUNCTION %s SET search_path = pg_catalog, %I, pg_temp;',
                             f.fn, f.home), ' ')
    FROM (
        SELECT DISTINCT p.oid::regprocedure AS fn, n.nspname AS home
        FROM pg_policy AS pol
        JOIN pg_depend AS d ON d.classid = 'pg_policy'::regclass AND d.objid = pol.oid
                           AND d.refclassid = 'pg_proc'::regclass
        JOIN pg_proc AS p ON p.oid = d.refobjid
        JOIN pg_namespace AS n ON n.oid = p.pronamespace
        JOIN pg_language AS l ON l.oid = p.prolang
        WHERE pol.polrelid IN (turns, edges) AND l.lanname NOT IN ('internal', 'c')
          AND NOT EXISTS (SELECT FROM unnest(p.proconfig) AS s WHERE s LIKE 'search\_path=%')
    ) AS f;

    -- As ENABLE TRIGGER leaves them, what a subscription writes is not announced.
    RETURN QUERY
    SELECT 'announced_changes', count(*) = 0, count(*),
           'private tables whose changes are not always announced',
           string_agg(format('ALTER TABLE %s ENABLE ALWAYS TRIGGER announce;', p.rel), ' ' ORDER BY p.rel::text)
    FROM unnest('{graph_kernel.binding,graph_kernel.revoked_keys,graph_kernel.root_keys}'::regclass[]) AS p (rel)
    WHERE NOT EXISTS (SELECT FROM pg_trigger AS g
                      WHERE g.tgrelid = p.rel AND g.tgname = 'announce' AND g.tgenabled = 'A');

    -- Counts over the rows: what is asked, of which table, what to do about it.
    FOR listed IN
        SELECT * FROM (VALUES
            ('duplicate_turns', 'id', 'turn ids stored more than once',
             format('SELECT count(*) FROM (SELECT FROM %s AS t GROUP BY t.%I HAVING count(*) > 1) AS d',
                    t, c ->> 'id'),
             format('SELECT %1$I, count(*) FROM %2$s GROUP BY 1 HAVING count(*) > 1;', c ->> 'id', t)),
            ('dangling_edges', 'id', 'edges with an end that is no turn',
             format('SELECT count(*) FROM %1$s AS e WHERE NOT EXISTS (SELECT FROM %2$s AS t WHERE t.%3$I = e.%4$I)'
                    ' OR NOT EXISTS (SELECT FROM %2$s AS t WHERE t.%3$I = e.%5$I)',
                    e, t, c ->> 'id', c ->> 'parent', c ->> 'child'),
             format('DELETE FROM %1$s AS e WHERE NOT EXISTS (SELECT FROM %2$s AS t WHERE t.%3$I = e.%4$I)'
                    ' OR NOT EXISTS (SELECT FROM %2$s AS t WHERE t.%3$I = e.%5$I);',
                    e, t, c ->> 'id', c ->> 'parent', c ->> 'child')),
            ('self_loops', 'id', 'edges from a turn to itself',
             format('SELECT count(*) FROM %s AS e WHERE e.%I = e.%I', e, c ->> 'parent', c ->> 'child'),
             format('DELETE FROM %s AS e WHERE e.%I = e.%I;', e, c ->> 'parent', c ->> 'child')),
            ('unknown_edge_types', 'edge_type', 'edges read as default: NULL or unknown type',
             format('SELECT count(*) FROM %1$s AS e WHERE lower(%2$s) IS NULL'
                    ' OR lower(%2$s) NOT IN (''reply'', ''branch'', ''reference'', ''default'')',
                    e, x ->> 'edge_type'),
             format('SELECT %1$s, count(*) FROM %2$s AS e GROUP BY 1;', x ->> 'edge_type', e)),
            ('unknown_phases', 'phase', 'turns read as exploration: NULL or unknown phase',
             format('SELECT count(*) FROM %1$s AS t WHERE lower(%2$s) IS NULL OR lower(%2$s)'
                    ' NOT IN (''exploration'', ''debugging'', ''planning'', ''consolidation'', ''synthesis'')',
                    t, x ->> 'phase'),
             format('SELECT %1$s, count(*) FROM %2$s AS t GROUP BY 1;', x ->> 'phase', t)),
            ('unknown_roles', 'role', 'turns read as user: NULL or unknown role',
             format('SELECT count(*) FROM %1$s AS t WHERE lower(%2$s) IS NULL OR lower(%2$s)'
                    ' NOT IN (''user'', ''assistant'', ''system'', ''tool'')', t, x ->> 'role'),
             format('SELECT %1$s, count(*) FROM %2$s AS t GROUP BY 1;', x ->> 'role', t)),
            ('odd_saliences', 'salience', 'turns whose salience is NULL, NaN or outside 0 to 1',
             format('SELECT count(*) FROM %1$s AS t WHERE t.%2$I IS NULL OR NOT t.%2$I BETWEEN 0 AND 1',
                    t, c ->> 'salience'),
             format('UPDATE %1$s AS t SET %2$I = CASE WHEN t.%2$I > 1 AND t.%2$I <> ''NaN'' THEN 1'
                    ' WHEN t.%2$I < 0 THEN 0 ELSE 0.5 END WHERE t.%2$I IS NULL OR NOT t.%2$I BETWEEN 0 AND 1;',
                    t, c ->> 'salience')),
            ('missing_content_hashes', 'content_hash', 'turns without a content hash (64 lower-case hex digits)',
             format('SELECT count(*) FROM %1$s AS t WHERE (%2$s ~ ''^[0-9a-f]{64}$'') IS NOT TRUE',
                    t, x ->> 'content_hash'),
             CASE WHEN c ->> 'content_text' <> '' THEN
                 format('UPDATE %1$s AS t SET %2$I = @extschema@.graph_content_hash(%4$s)'
                        ' WHERE (%3$s ~ ''^[0-9a-f]{64}$'') IS NOT TRUE;',
                        t, c ->> 'content_hash', x ->> 'content_hash', x ->> 'content_text') END),
            ('stale_content_hashes', 'content_hash', 'turns whose content is not what was hashed',
             format('SELECT count(*) FROM %1$s AS t WHERE %2$s ~ ''^[0-9a-f]{64}$'''
                    ' AND %2$s <> @extschema@.graph_content_hash(%3$s)',
                    t, x ->> 'content_hash', x ->> 'content_text'),
             format('SELECT t.%4$I FROM %1$s AS t WHERE %2$s <> @extschema@.graph_content_hash(%3$s);',
                    t, x ->> 'content_hash', x ->> 'content_text', c ->> 'id'))
        ) AS v (name, needs, what, query, command)
    LOOP
        check_name := listed.name;
        detail := listed.what || coalesce(hidden, '');
        hint := NULL;
        IF c ->> listed.needs = ''
           OR (listed.name LIKE 'stale%' AND c ->> 'content_text' = '') THEN
            ok := true;
            count := NULL;
            detail := 'not checked: the table has no such column';
        ELSE
            BEGIN
                EXECUTE listed.query INTO count;
                ok := count = 0;
                -- A command that counts on rows this role does not see could do harm.
                hint := CASE WHEN NOT ok AND hidden IS NULL THEN listed.command END;
            EXCEPTION WHEN undefined_table OR undefined_column OR undefined_function
                        OR undefined_object OR insufficient_privilege THEN
                ok := false;
                count := NULL;
                detail := 'could not be checked: ' || SQLERRM;
            END;
        END IF;
        RETURN NEXT;
    END LOOP;

    check_name := 'cycles';
    BEGIN
        count := graph_kernel.turns_in_cycles();
        ok := coalesce(count = 0, true);
        detail := CASE WHEN count IS NULL THEN 'not checked: more than 5 million edges'
                       ELSE 'turns on or between cycles, self-loops among them' END
                  || coalesce(hidden, '');
    EXCEPTION WHEN undefined_table OR undefined_column OR undefined_function
                OR undefined_object OR insufficient_privilege THEN
        ok := false;
        count := NULL;
        detail := 'could not be checked: ' || SQLERRM;
    END;
    hint := CASE WHEN NOT ok THEN format(
        'WITH RECURSIVE walk AS (SELECT e.%2$I AS start, e.%3$I AS at FROM %1$s AS e'
        ' UNION SELECT walk.start, e.%3$I FROM walk JOIN %1$s AS e ON e.%2$I = walk.at)'
        ' SELECT start FROM walk WHERE start = at;', e, c ->> 'parent', c ->> 'child') END;
    RETURN NEXT;
END
$$;
