-- How graph_check looks at the rows of a graph: what is counted, and the commands that show what was found.

SET LOCAL search_path TO pg_catalog, pg_temp; -- what bodies parsed now are resolved by

-- What a finding adds where this role may not see all rows.
CREATE FUNCTION graph_kernel.hidden_rows(graph jsonb) RETURNS text
LANGUAGE sql STABLE STRICT
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT '; row security hides rows from this role: let the owner of the tables run this'
    WHERE EXISTS (SELECT FROM unnest(graph_kernel.tables_of($1)) AS r (rel) WHERE row_security_active(r.rel::oid));
END;
COMMENT ON FUNCTION graph_kernel.hidden_rows(jsonb) IS 'what a finding adds where this role may not see all rows';

-- Whether another role could put a table, or a view, in the place of one of a graph before a command that names it is
-- followed: the owner of a table, of one that inherits from it, or of their schema.
CREATE FUNCTION graph_kernel.is_replaceable(graph jsonb) RETURNS boolean
LANGUAGE sql STABLE STRICT
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT NOT coalesce(bool_and(graph_kernel.are_owned(r.rel, o.own)), false)
    FROM (SELECT ARRAY(SELECT r.oid FROM pg_roles AS r WHERE r.rolsuper OR r.rolname = current_user) AS own) AS o
    CROSS JOIN unnest(graph_kernel.tables_of($1)) AS r (rel)
    WHERE r.rel IS NOT NULL;
END;
COMMENT ON FUNCTION graph_kernel.is_replaceable(jsonb) IS
    'whether another role could put others in the place of a graph''s tables';

-- How to give turns of one transaction times of their own, where their default gives them one. Only of these defaults,
-- as the server writes them: the text of any other may name what its owner has chosen.
CREATE FUNCTION graph_kernel.times_command(graph jsonb) RETURNS text
LANGUAGE sql STABLE STRICT
SET search_path = pg_catalog, pg_temp
SET quote_all_identifiers = off
BEGIN ATOMIC
    SELECT format('ALTER TABLE %s ALTER COLUMN %I SET DEFAULT ', a.attrelid::regclass, a.attname)
        || CASE WHEN lower(d.value) IN ('now()', 'current_timestamp', 'transaction_timestamp()',
                                        'statement_timestamp()') THEN 'pg_catalog.clock_timestamp();'
           WHEN d.value ~* E'^(timezone\\(''utc''::text, now\\(\\)\\)|\\(now\\(\\) AT TIME ZONE ''utc''::text\\))$'
               THEN 'pg_catalog.timezone(''utc''::pg_catalog.text, pg_catalog.clock_timestamp());' END
    FROM pg_attribute AS a
    JOIN pg_attrdef AS s ON s.adrelid = a.attrelid AND s.adnum = a.attnum
    CROSS JOIN LATERAL pg_get_expr(s.adbin, s.adrelid) AS d (value)
    WHERE a.attrelid = ($1 #>> '{turns,oid}')::oid AND a.attname = $1 #>> '{turns,columns,created_at}'
      AND NOT a.attisdropped AND a.attgenerated = '' AND NOT $1 -> 'expressions' ? 'turns.created_at'
      AND graph_kernel.is_text(d.value);
END;
COMMENT ON FUNCTION graph_kernel.times_command(jsonb) IS
    'how to give turns of one transaction times of their own';

SET LOCAL search_path TO @extschema@, pg_temp;

-- How to bind a graph again: with a meaning of its edge types; with content hashes, where only contents are stored.
CREATE FUNCTION graph_kernel.mapping_commands(name text, graph jsonb) RETURNS TABLE (
    says_types text, computes_hashes text
)
LANGUAGE plpgsql STABLE STRICT ROWS 1
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    turns regclass := (graph #>> '{turns,oid}')::oid;
    content text := coalesce(graph #>> '{turns,columns,content_text}', '');
    edge_type text;  -- the type in the table of edges, as its mapping has it
    bound record;
BEGIN
    -- A mapping that says null asks for nothing.
    SELECT b.turns::regclass AS turns, b.edges::regclass AS edges,
           CASE WHEN b.edges_by_child IS NULL THEN coalesce(b.columns, '{}')
                ELSE b.columns || jsonb_build_object('edges_by_child', b.edges_by_child::regclass::text) END AS columns,
           b.name, b.binder::oid <> (SELECT r.oid FROM pg_roles AS r WHERE r.rolname = current_user) AS is_others
    INTO bound
    FROM graph_kernel.binding AS b WHERE b.is_current AND b.name = mapping_commands.name;
    -- What was found by its name is true.
    edge_type := CASE jsonb_typeof(graph #> '{resolved,edges,edge_type}')
                 WHEN 'boolean' THEN 'edge_type' WHEN 'string' THEN quote_ident(graph #>> '{resolved,edges,edge_type}')
                 ELSE graph #>> '{resolved,edges,edge_type,expression}' END;
    says_types := format(
        'SELECT graph_kernel.bind_tables(%L%s, columns => %L%s);',
        coalesce(bound.turns, turns),
        ', ' || quote_literal(CASE WHEN bound.turns IS NULL THEN (graph_kernel.tables_of(graph))[2]
                              ELSE bound.edges END),
        coalesce(bound.columns, '{}') || jsonb_build_object('edges',
            coalesce(bound.columns -> 'edges', '{}') || jsonb_build_object('edge_type', jsonb_build_object('expression',
                format('CASE %1$s WHEN ''my_type'' THEN ''reply'' ELSE %1$s END', edge_type)))),
        ', name => ' || quote_literal(nullif(bound.name, 'default')));
    -- Who binds tables runs code of their owner, and says that the mapping is right.
    IF bound.is_others THEN
        says_types := format('SELECT turns, edges, edges_by_child, columns FROM graph_kernel.binding'
                             ' WHERE is_current AND name OPERATOR(pg_catalog.=) %L;', bound.name);
    END IF;
    IF coalesce(graph #>> '{turns,columns,content_hash}', '') = '' AND content <> ''
       AND bound.columns #> '{turns,content_hash}' IS DISTINCT FROM 'null' THEN
        computes_hashes := format(
            'SELECT graph_kernel.bind_tables(%L%s, columns => %L%s);'
            ' -- Another mapping is another graph: exports that were'
            ' taken before say other_graph.',
            bound.turns, ', ' || quote_literal(bound.edges),
            bound.columns || jsonb_build_object('turns', coalesce(bound.columns -> 'turns', '{}') || jsonb_build_object(
                'content_hash', jsonb_build_object('expression', format('graph_content_hash(%s)',
                    CASE WHEN graph -> 'expressions' ? 'turns.content_text' THEN content
                    ELSE quote_ident(content) END)))),
            ', name => ' || quote_literal(nullif(bound.name, 'default')));
        IF bound.turns IS NULL THEN
            computes_hashes := format('ALTER TABLE %s ADD COLUMN content_hash text;', turns);
        ELSIF bound.is_others THEN
            computes_hashes := says_types;
        END IF;
    END IF;
    RETURN NEXT;
END
$$;
COMMENT ON FUNCTION graph_kernel.mapping_commands(text, jsonb) IS
    'how to bind a graph again with a meaning of its edge types, and with content hashes; where another role has bound'
    ' it, how to see what it is bound as';

-- What is counted over the rows of a graph, in order: whether it has the columns; how to look at the rows, NULL where
-- they are only counted; how to say what unknown names mean, where one command does it.
CREATE FUNCTION graph_kernel.row_checks(name text, graph jsonb) RETURNS TABLE (
    check_name text, has_columns boolean, what text, command text, advice text
)
LANGUAGE plpgsql STABLE STRICT ROWS 30
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    t text := graph #>> '{turns,from}'; -- the tables as they stand in FROM
    e text := graph #>> '{edges,from}';
    turns regclass := (graph #>> '{turns,oid}')::oid;
    tables regclass[] := graph_kernel.tables_of(graph);
    -- Column names, turns and edges together. An absent column is '' here: a statement that names it is not run.
    c jsonb := (SELECT jsonb_object_agg(k.key, coalesce(k.value, ''))
                FROM jsonb_each_text((graph #> '{turns,columns}') || (graph #> '{edges,columns}')) AS k);
    -- The same as expressions over t and e, of types of pg_catalog.
    x jsonb := (graph #> '{turns,expressions}') || (graph #> '{edges,expressions}');
    edge text := format('%s IS NOT NULL AND %s IS NOT NULL', x ->> 'parent', x ->> 'child'); -- the row is an edge
    dangling text := format('(NOT EXISTS (SELECT FROM %1$s AS t WHERE %2$s OPERATOR(pg_catalog.=) %3$s)'
                            ' OR NOT EXISTS (SELECT FROM %1$s AS t WHERE %2$s OPERATOR(pg_catalog.=) %4$s))',
                            t, x ->> 'id', x ->> 'parent', x ->> 'child'); -- an end is not a turn
    corrects text := CASE WHEN tables[2] IS NULL OR turns = tables[2]
        THEN ' -- These rows are turns as well: correct the column that names the other turn, unless that was deleted.'
        ELSE ' -- Look at these edges first; if they are not wanted, delete them.' END;
    says_types text;
    computes_hashes text;
    writes_hashes text := CASE WHEN c ->> 'content_text' <> '' AND c ->> 'content_hash' = 'content_hash'
                               AND NOT graph -> 'expressions' ? 'turns.content_hash' THEN
        ' -- Let the owner of the table CALL graph_kernel.backfill_content_hashes(): it writes hashes,'
        ' and no other text.' ELSE '' END;
    tells_times text := graph_kernel.times_command(graph);
    -- Before a query with expressions of the mapping, whose names are those that pg_catalog has, and behind it, where a
    -- comment may stand.
    fixed_path text := CASE WHEN jsonb_array_length(graph -> 'expressions') > 0
                            THEN 'SET search_path = pg_catalog, pg_temp; ' ELSE '' END;
    reset_path text := CASE WHEN fixed_path <> '' THEN E'\nRESET search_path;' ELSE '' END;
BEGIN
    SELECT m.says_types, m.computes_hashes INTO says_types, computes_hashes
    FROM graph_kernel.mapping_commands(name, graph) AS m;
    RETURN QUERY
    SELECT v.name, (c ->> v.needs = '' OR v.name = 'stale_content_hashes' AND c ->> 'content_text' = '') IS NOT TRUE,
           v.what,
           CASE WHEN v.command IN (computes_hashes, tells_times) THEN v.command
                ELSE fixed_path || v.command || reset_path END,
           CASE v.name WHEN 'unknown_edge_types' THEN 'To say what they mean: ' || says_types END
    FROM (VALUES
        ('duplicate_turns', 'id', 'turn ids stored more than once',
         format('SELECT %2$s AS id, pg_catalog.count(*), pg_catalog.array_agg(t.ctid) AS rows FROM %1$s AS t'
                ' WHERE %2$s IS NOT NULL GROUP BY 1 HAVING pg_catalog.count(*) OPERATOR(pg_catalog.>) 1;',
                t, x ->> 'id')),
        ('dangling_edges', 'id', 'edges with an end that is not a turn',
         -- Where the turns table stores edges, with the row that does.
         CASE WHEN e LIKE '(%' THEN
             format('SELECT e.*, t.* FROM %s AS e LEFT JOIN %s AS t ON %s OPERATOR(pg_catalog.=) e.child'
                     ' WHERE %s AND %s;%s',
                    e, t, x ->> 'id', edge, dangling, corrects)
         ELSE format('SELECT e.* FROM %s AS e WHERE %s AND %s;%s', e, edge, dangling, corrects) END),
        ('differing_edges', 'id', 'edges that one of both edges tables has more often than the other',
         format('(SELECT %3$s, %4$s, %5$s FROM %1$s AS e EXCEPT ALL SELECT %3$s, %4$s, %5$s FROM %2$s AS e)'
                ' UNION ALL'
                ' (SELECT %3$s, %4$s, %5$s FROM %2$s AS e EXCEPT ALL SELECT %3$s, %4$s, %5$s FROM %1$s AS e);',
                tables[2], tables[3], x ->> 'parent', x ->> 'child', x ->> 'edge_type')),
        ('shared_missing_parents', 'session_id',
            'missing parents that turns of several sessions name: these turns count as siblings',
         format('SELECT %3$s AS parent, pg_catalog.count(*) FROM %1$s AS e'
                ' JOIN %2$s AS t ON %5$s OPERATOR(pg_catalog.=) %4$s'
                ' WHERE %3$s IS NOT NULL'
                ' AND NOT EXISTS (SELECT FROM %2$s AS t WHERE %5$s OPERATOR(pg_catalog.=) %3$s) GROUP BY 1'
                ' HAVING pg_catalog.min(%6$s) OPERATOR(pg_catalog.<>) pg_catalog.max(%6$s);'
                ' -- If the id stands for the beginning of every conversation,'
                ' bind the parent as an expression with'
                ' NULLIF; a turn that was deleted does no harm.',
                e, t, x ->> 'parent', x ->> 'child', x ->> 'id', x ->> 'session_id')),
        ('replies_between_sessions', 'session_id',
            'replies to a turn of another session: a slice mixes both sessions',
         format('SELECT e.*, p.session_id AS parent_session, c.session_id AS child_session FROM %1$s AS e'
                ' JOIN (SELECT %3$s AS id, %4$s AS session_id FROM %2$s AS t) AS p'
                ' ON p.id OPERATOR(pg_catalog.=) %5$s'
                ' JOIN (SELECT %3$s AS id, %4$s AS session_id FROM %2$s AS t) AS c'
                ' ON c.id OPERATOR(pg_catalog.=) %6$s'
                ' WHERE pg_catalog.lower((%7$s) COLLATE pg_catalog."C") OPERATOR(pg_catalog.=) ''reply'''
                ' AND COALESCE(p.session_id, '''') COLLATE pg_catalog."C" OPERATOR(pg_catalog.<>)'
                ' COALESCE(c.session_id, '''') COLLATE pg_catalog."C";'
                ' -- Where a session goes on from another one, nothing is wrong. A parent that is computed, as by'
                ' graph_turn_id(id - 1), may be a turn of another session: bind "follows" in place of it.',
                e, t, x ->> 'id', x ->> 'session_id', x ->> 'parent', x ->> 'child', x ->> 'edge_type')),
        ('shared_latest_times', CASE WHEN c ->> 'created_at' = '' THEN 'created_at' ELSE 'session_id' END,
            'sessions whose latest time several turns share: of these, graph_anchor takes the lowest id',
            tells_times),
        ('self_loops', 'id', 'edges from a turn to itself',
         format('SELECT e.* FROM %s AS e WHERE %s OPERATOR(pg_catalog.=) %s;%s', e, x ->> 'parent', x ->> 'child',
             corrects)),
        ('unknown_edge_types', 'edge_type', 'edges read as default: unknown type',
         format('SELECT %1$s, pg_catalog.count(*) FROM %2$s AS e WHERE %3$s'
                ' AND pg_catalog.lower((%1$s) COLLATE pg_catalog."C")'
                ' OPERATOR(pg_catalog.<>) ALL (''{reply,branch,reference,default}''::pg_catalog.text[]) GROUP BY 1;'
                ' -- The command in detail says what they mean.', x ->> 'edge_type', e, edge)),
        ('unknown_phases', 'phase', 'turns read as exploration: unknown phase',
         format('SELECT %1$s, pg_catalog.count(*) FROM %2$s AS t GROUP BY 1;', x ->> 'phase', t)),
        ('unknown_roles', 'role', 'turns read as user: unknown role',
         format('SELECT %1$s, pg_catalog.count(*) FROM %2$s AS t'
                ' WHERE pg_catalog.lower((%1$s) COLLATE pg_catalog."C")'
                ' OPERATOR(pg_catalog.<>) ALL (''{user,assistant,system,tool}''::pg_catalog.text[]) GROUP BY 1;'
                ' -- The command in detail says what they mean.', x ->> 'role', t)),
        ('odd_saliences', 'salience', 'turns whose salience is NaN or outside 0 to 1',
         format('SELECT %1$s AS id, %2$s AS salience FROM %3$s AS t WHERE (%2$s OPERATOR(pg_catalog.>=) 0 AND %2$s'
                ' OPERATOR(pg_catalog.<=) 1) IS FALSE;'
                ' -- Read as 0.5, 0 or 1; correct those that mean something else.',
                x ->> 'id', x ->> 'salience', t)),
        ('malformed_content_hashes', 'content_hash', 'turns whose content hash is not 64 lower-case hex digits',
         format('SELECT %1$s AS id, %2$s FROM %3$s AS t WHERE (pg_catalog.octet_length(%2$s) OPERATOR(pg_catalog.=) 64'
                ' AND (%2$s COLLATE pg_catalog."C") OPERATOR(pg_catalog.~) ''^[0-9a-f]+$'') IS FALSE;',
                x ->> 'id', x ->> 'content_hash', t)),
        ('stale_content_hashes', 'content_hash', 'turns whose content is not what was hashed',
         format('SELECT %1$s AS id FROM %2$s AS t WHERE %4$s IS NOT NULL'
                ' AND (pg_catalog.octet_length(%3$s) OPERATOR(pg_catalog.=) 64'
                ' AND (%3$s COLLATE pg_catalog."C") OPERATOR(pg_catalog.~) ''^[0-9a-f]+$'') IS TRUE AND NOT'
                ' COALESCE(%3$s OPERATOR(pg_catalog.=) graph_kernel.content_hash_or_null(%4$s), false);',
                x ->> 'id', t, x ->> 'content_hash', x ->> 'content_text')),
        ('contents_not_text', 'content_text',
            'turns whose content is not UTF-8: it has no hash, and is shown with U+FFFD',
         format('SELECT %1$s AS id FROM %2$s AS t WHERE NOT graph_kernel.is_text(%3$s);',
                x ->> 'id', t, x ->> 'content_text')),
        -- Values that may be absent are only counted.
        ('edges_without_type', 'edge_type', 'edges without a type, read as default', NULL),
        ('turns_without_phase', 'phase', 'turns without a phase, read as exploration', NULL),
        ('turns_without_role', 'role', 'turns without a role, read as user', NULL),
        ('turns_without_salience', 'salience', 'turns without a salience, read as 0.5', NULL),
        ('turns_without_content_hash', CASE WHEN computes_hashes IS NULL THEN 'content_hash'
            ELSE 'content_text' END,
         'turns without a content hash: edits of them are not seen',
         coalesce(computes_hashes, format('SELECT %1$s AS id FROM %2$s AS t WHERE %3$s IS NULL%4$s;', x ->> 'id', t,
             x ->> 'content_hash',
                CASE WHEN c ->> 'content_text' <> '' THEN format(' AND %s IS NOT NULL', x ->> 'content_text')
                    ELSE '' END)
         || writes_hashes)),
        ('cycles', 'id', 'turns on or between cycles, self-loops among them',
         format('SELECT turn_id FROM graph_kernel.turns_in_cycles(%L);', name))
    ) AS v (name, needs, what, command)
    WHERE v.name <> 'differing_edges' OR graph -> 'edges_by_child' IS DISTINCT FROM 'null';
END
$$;
COMMENT ON FUNCTION graph_kernel.row_checks(text, jsonb) IS
    'what graph_check counts over the rows of a graph, and how to look at them';

-- What a row raises hides no other finding: all but a cancelled query is caught. Called by check_graph, as the next is.
CREATE FUNCTION graph_kernel.check_rows(name text, graph jsonb) RETURNS TABLE (
    check_name text, ok boolean, count bigint, detail text, hint text
)
LANGUAGE plpgsql STABLE STRICT
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    hidden text := graph_kernel.hidden_rows(graph);
    is_replaceable boolean := graph_kernel.is_replaceable(graph);
    listed record;
BEGIN
    FOR listed IN SELECT * FROM graph_kernel.row_checks(name, graph) LOOP
        check_name := listed.check_name;
        detail := listed.what || coalesce(hidden, '');
        hint := NULL;
        IF listed.has_columns THEN
            BEGIN
                IF check_name = 'cycles' THEN
                    count := (SELECT count(*) FROM graph_kernel.turns_in_cycles(name));
                ELSE
                    count := graph_kernel.count_found(name, check_name);
                END IF;
                ok := count = 0 OR listed.command IS NULL;
                -- A command based on rows that this role cannot see could do harm.
                hint := CASE WHEN NOT ok AND hidden IS NULL THEN listed.command END;
                IF hint IS NOT NULL AND is_replaceable THEN
                    hint := NULL;
                    detail := detail || '; a command is given to a role that owns both the tables and their schema';
                END IF;
                -- Not in a comment behind the query.
                IF hint IS NOT NULL AND check_name IN ('unknown_roles', 'unknown_edge_types') THEN
                    detail := format('%s. %s Another mapping is another graph: exports that were taken before say'
                                     ' other_graph.', detail, coalesce(listed.advice, graph_kernel.roles_advice(name)));
                END IF;
            EXCEPTION WHEN OTHERS THEN
                ok := check_name = 'cycles' AND SQLSTATE = '54000';
                count := NULL;
                hint := NULL;
                detail := CASE WHEN ok THEN 'not checked: ' ELSE 'could not be checked: ' END || SQLERRM;
            END;
        ELSE
            ok := true;
            count := NULL;
            detail := 'not checked: the table has no such column';
        END IF;
        RETURN NEXT;
    END LOOP;
END
$$;
COMMENT ON FUNCTION graph_kernel.check_rows(text, jsonb) IS 'what graph_check finds of the rows of a graph';

-- An expression that raises stops every call that reads the row.
CREATE FUNCTION graph_kernel.check_expressions(name text, graph jsonb) RETURNS TABLE (
    check_name text, ok boolean, count bigint, detail text, hint text
)
LANGUAGE plpgsql STABLE STRICT
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    has_command boolean := graph_kernel.hidden_rows(graph) IS NULL AND NOT graph_kernel.is_replaceable(graph);
    listed record;
BEGIN
    FOR listed IN SELECT * FROM jsonb_array_elements_text(graph -> 'expressions') AS x (place) LOOP
        check_name := 'raising_expression';
        detail := format('expression of %s', listed.place);
        ok := true;
        count := NULL;
        hint := NULL;
        BEGIN
            PERFORM graph_kernel.evaluate(name, listed.place);
        EXCEPTION WHEN OTHERS THEN
            ok := false;
            detail := CASE WHEN SQLSTATE IN ('42501', '40001') THEN 'could not be checked: ' || SQLERRM
                      ELSE format('%s: %s', detail, SQLERRM) END;
            IF SQLSTATE NOT IN ('42501', '40001') AND has_command THEN
                -- The first row that raises.
                SELECT format('SELECT * FROM %s AS t WHERE t.ctid OPERATOR(pg_catalog.=) %L;'
                              ' -- Bind an expression that takes such a value.', r.row_table, r.row_id)
                INTO hint FROM graph_kernel.raising_row(name, listed.place) AS r;
            END IF;
        END;
        RETURN NEXT;
    END LOOP;
END
$$;
COMMENT ON FUNCTION graph_kernel.check_expressions(text, jsonb) IS
    'what graph_check finds of expressions of the mapping';
