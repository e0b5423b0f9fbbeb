SET LOCAL search_path TO pg_catalog, pg_temp; -- what bodies parsed now are resolved by

-- The triggers that hold rows to slices or searches, in any schema: which function they call and with what, and how
-- they can be got round. Whoever holds TRIGGER on a table replaces any but a constraint trigger, with WHEN (false) as
-- well. A BEFORE trigger changes a column that OF names where the statement does not set it. What is deferred is seen
-- by the transaction before it is checked. A setting of the session switches off what is not ALWAYS. With bad
-- arguments a trigger refuses every row.
CREATE FUNCTION graph_kernel.promoting_triggers() RETURNS TABLE (
    guard oid, place regclass, name name, call text, is_of_parent boolean, faults text[], bad_arguments text[],
    is_reference boolean, reference name, document name, turns name, graph text
)
LANGUAGE sql STABLE PARALLEL SAFE ROWS 10
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT g.oid, g.tgrelid::regclass, g.tgname,
           -- As an escape string it may be any bytes: each backslash in it begins three octal digits.
           format('%s(%s)', g.tgfoid::regproc,
                  (SELECT string_agg(CASE WHEN strpos(a.text, chr(92)) = 0 THEN quote_literal(a.text)
                                          ELSE 'E''' || replace(a.text, '''', '''''') || '''' END, ', '
                                     ORDER BY a.position)
                   FROM unnest(given.arguments) WITH ORDINALITY AS a (text, position))),
           g.tgparentid <> 0,
           array_remove(ARRAY[
               CASE WHEN g.tgconstraint = 0 THEN 'not a constraint trigger' END,
               CASE WHEN g.tgtype <> 21 THEN 'not AFTER INSERT OR UPDATE FOR EACH ROW' END,
               CASE WHEN g.tgattr::text <> '' THEN 'OF' END,
               CASE WHEN g.tgqual IS NOT NULL THEN 'WHEN' END,
               CASE WHEN g.tgdeferrable THEN 'DEFERRABLE' END,
               CASE g.tgenabled WHEN 'A' THEN NULL WHEN 'D' THEN 'disabled' ELSE 'not ENABLE ALWAYS' END], NULL),
           array_remove(ARRAY[
               CASE WHEN given.count < 2 OR cardinality(rest.trust) > 1 OR rest.graph = '' OR first.reference = ''
                         OR NOT coalesce(rest.trust[1], 'no_rls') LIKE ANY (ARRAY['no\_rls', 'roles=_%'])
                             THEN 'bad arguments' END,
               CASE WHEN given.count >= 2 AND first.reference <> '' AND NOT coalesce(found.reference_fits, false)
                    THEN format('no column %s of type text', first.reference) END,
               CASE WHEN given.count >= 2 AND first.reference IS NULL AND NOT coalesce(found.document_fits, false)
                    THEN format('no column %s of type json, jsonb or text', given.arguments[1]) END,
               CASE WHEN given.count >= 2 AND NOT coalesce(found.turns_fit, false)
                    THEN format('no column %s of type uuid or uuid[]', given.arguments[2]) END,
               (SELECT format('no graph %s', rest.graph)
                WHERE rest.graph NOT IN ('', 'default') AND NOT EXISTS (
                    SELECT FROM graph_kernel.binding AS b
                    WHERE b.is_current AND replace(b.name, '\', '\\')::bytea = decode(rest.graph, 'escape')))
               ], NULL),
           -- Or it may be one: arguments that are too long were not looked into.
           first.reference IS NOT NULL OR given.count < g.tgnargs,
           found.reference, found.document, found.turns,
           CASE WHEN given.count < g.tgnargs THEN NULL
                WHEN coalesce(rest.graph, 'default') = 'default' THEN 'default'
                ELSE (SELECT b.name FROM graph_kernel.binding AS b
                      WHERE b.is_current AND replace(b.name, '\', '\\')::bytea = decode(rest.graph, 'escape')) END
    FROM pg_trigger AS g
    JOIN pg_class AS r ON r.oid = g.tgrelid
    CROSS JOIN LATERAL (
        -- Each ends in a zero byte. A backslash of theirs is encoded as two: as \134, none stands before the digits
        -- 000. What is too long to be looked into is as if there were none. So are those of a partition's trigger: they
        -- are its table's.
        SELECT (string_to_array(replace(encode(short.bytes, 'escape'), '\\', '\134'), '\000'))[:short.count]
                   AS arguments, short.count
        FROM (SELECT CASE WHEN is_short THEN g.tgargs ELSE '' END AS bytes,
                     CASE WHEN is_short THEN g.tgnargs ELSE 0 END AS count
              FROM (SELECT octet_length(g.tgargs) <= 8192 AND g.tgnargs <= 8 AND g.tgparentid = 0 AS is_short)
                       AS size) AS short
    ) AS given
    CROSS JOIN LATERAL (
        SELECT given.arguments[3:given.count - CASE WHEN last.graph IS NULL THEN 0 ELSE 1 END] AS trust, last.graph
        FROM (SELECT CASE WHEN given.count > 2 AND starts_with(given.arguments[given.count], 'graph=')
                          THEN substr(given.arguments[given.count], 7) END AS graph) AS last
    ) AS rest
    CROSS JOIN LATERAL (
        -- Only slices are kept.
        SELECT CASE WHEN g.tgfoid = '@extschema@.graph_require_admissible()'::regprocedure
                         AND starts_with(given.arguments[1], 'ref=') THEN substr(given.arguments[1], 5) END AS reference
    ) AS first
    CROSS JOIN LATERAL (
        -- The columns of these names. Each byte of a name has four letters at most; OFFSET 0 keeps them from being
        -- decoded again for each column.
        SELECT max(CASE WHEN c.position = 1 AND first.reference IS NOT NULL THEN c.name END)::name AS reference,
               max(CASE WHEN c.position = 1 AND first.reference IS NULL THEN c.name END)::name AS document,
               max(CASE WHEN c.position = 2 THEN c.name END)::name AS turns,
               bool_or(c.position = 1 AND (c.is_domain OR c.type IN ('text'::regtype, 'varchar'::regtype)))
                   AS reference_fits,
               bool_or(c.position = 1 AND (c.is_domain OR c.type IN ('json'::regtype, 'jsonb'::regtype, 'text'::regtype,
                                                                     'varchar'::regtype))) AS document_fits,
               bool_or(c.position = 2 AND (c.is_domain OR c.is_array OR c.type = 'uuid'::regtype)) AS turns_fit
        FROM (
            SELECT n.position, a.attname COLLATE "C" AS name, a.atttypid AS type, t.typtype = 'd' AS is_domain,
                   t.typcategory = 'A' AS is_array
            FROM (SELECT w.position, decode(w.name, 'escape') AS bytes
                  FROM (VALUES (1, coalesce(first.reference, given.arguments[1])), (2, given.arguments[2]))
                           AS w (position, name)
                  WHERE octet_length(w.name) <= 4 * 63
                  OFFSET 0) AS n
            JOIN pg_attribute AS a ON replace(a.attname::text, '\', '\\')::bytea = n.bytes
            JOIN pg_type AS t ON t.oid = a.atttypid
            WHERE a.attrelid = g.tgrelid AND a.attnum > 0 AND NOT a.attisdropped) AS c
    ) AS found
    -- Temporary rows promote nothing that lasts, and other sessions do not read them.
    WHERE r.relpersistence <> 't' AND g.tgfoid IN ('@extschema@.graph_require_admissible()'::regprocedure,
                       '@extschema@.graph_require_admissible_result()'::regprocedure);
END;
COMMENT ON FUNCTION graph_kernel.promoting_triggers() IS
    'the triggers that hold rows to slices or searches, and how they can be got round';

-- A function as commands name it whatever their search_path is: its types are qualified too.
CREATE FUNCTION graph_kernel.function_name(function oid) RETURNS text
LANGUAGE sql STABLE STRICT PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT format('%I.%I(%s)', n.nspname, p.proname,
                  (SELECT string_agg(format('%I.%I', tn.nspname, t.typname), ', ' ORDER BY a.position)
                   FROM unnest(p.proargtypes) WITH ORDINALITY AS a (type, position)
                   JOIN pg_type AS t ON t.oid = a.type
                   JOIN pg_namespace AS tn ON tn.oid = t.typnamespace))
    FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace
    WHERE p.oid = $1;
END;
COMMENT ON FUNCTION graph_kernel.function_name(oid) IS
    'a function as commands name it whatever their search_path is';

-- A command, its bytes that are not UTF-8 replaced. Cut off, it could end within quotes: none is given where it is too
-- long, nor where the client's encoding does not have all of it, which would end the whole query.
CREATE FUNCTION graph_kernel.whole_command(command text) RETURNS text
LANGUAGE plpgsql STABLE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    whole text := CASE WHEN octet_length(command) <= 1000000 THEN graph_kernel.text_prefix(command, 1000000) END;
BEGIN
    PERFORM convert_to(whole, pg_client_encoding());
    RETURN whole;
EXCEPTION WHEN untranslatable_character THEN
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION graph_kernel.whole_command(text) IS
    'a command of a hint, and NULL where it is too long or not in the client''s encoding';

-- A name for the successor of a trigger that no trigger and no constraint of the table and of its partitions has.
CREATE FUNCTION graph_kernel.free_trigger_name(place regclass, guard oid) RETURNS name
LANGUAGE sql STABLE STRICT PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    -- pg_partition_tree would lock what strangers have made.
    WITH RECURSIVE part (oid) AS (
        SELECT $1::oid UNION SELECT h.inhrelid FROM part AS p JOIN pg_inherits AS h ON h.inhparent = p.oid
    ), taken AS (
        SELECT o.name
        FROM part AS r
        CROSS JOIN LATERAL (
            SELECT g.tgname AS name FROM pg_trigger AS g WHERE g.tgrelid = r.oid
            UNION ALL SELECT k.conname FROM pg_constraint AS k WHERE k.conrelid = r.oid
        ) AS o
    )
    SELECT format('promotion_%s_%s', $2, i)::name
    FROM generate_series(1, (SELECT count(*) FROM taken) + 1) AS i
    WHERE format('promotion_%s_%s', $2, i)::name NOT IN (SELECT taken.name FROM taken)
    ORDER BY i LIMIT 1;
END;
COMMENT ON FUNCTION graph_kernel.free_trigger_name(regclass, oid) IS
    'a name that no trigger and no constraint of a table has';

-- Whether this role may read a table of rows that promote. What a table's owner has its readers run, this role runs: so
-- only tables of owners whose code it trusts already, by reading this graph and its store.
CREATE FUNCTION graph_kernel.may_read_rows(place regclass, graph text) RETURNS boolean
LANGUAGE sql STABLE STRICT PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    -- pg_partition_tree would lock what strangers have made. A superuser is a member of every role: membership says
    -- nothing of trust.
    WITH RECURSIVE part (oid) AS (
        SELECT $1::oid UNION SELECT h.inhrelid FROM part AS p JOIN pg_inherits AS h ON h.inhparent = p.oid
    )
    SELECT bool_and(r.relkind IN ('r', 'p') AND r.relpersistence = 'p' AND has_schema_privilege(r.relnamespace, 'USAGE')
                    AND (o.rolsuper OR o.rolname = current_user OR o.oid IN (
                        SELECT t.relowner FROM pg_class AS t
                        WHERE t.oid IN (SELECT s.store FROM graph_kernel.store_binding AS s WHERE s.name = $2
                                        UNION SELECT b.turns FROM graph_kernel.binding AS b
                                              WHERE b.is_current AND b.name = $2))))
    FROM part AS p JOIN pg_class AS r ON r.oid = p.oid JOIN pg_roles AS o ON o.oid = r.relowner;
END;
COMMENT ON FUNCTION graph_kernel.may_read_rows(regclass, text) IS
    'whether this role may read a table of rows that promote, by the owners that it trusts as it reads a graph';

-- What was dropped, or was never bound, may have been any table.
CREATE FUNCTION graph_kernel.may_share_rows(one oid, other oid) RETURNS boolean
LANGUAGE sql STABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT count(r.oid) < CASE WHEN $1 = $2 THEN 1 ELSE 2 END
           OR count(DISTINCT coalesce(pg_partition_root(r.oid), r.oid)) = 1
    FROM pg_class AS r WHERE r.oid IN ($1, $2);
END;
COMMENT ON FUNCTION graph_kernel.may_share_rows(oid, oid) IS
    'whether two tables may have the same rows: they are one, parts of one, or not there';

-- The tables whose rows may promote on the turns or the documents of a graph, by which columns, and whether this role
-- may read them. A graph may have had another store before: what is read is looked through whatever graph its trigger
-- names. What is not read has to do with the turns or the store where that graph has one of them now; it may still
-- refer to documents of the graphs that are named.
CREATE FUNCTION graph_kernel.promoting_tables(graph text) RETURNS TABLE (
    place regclass, reference name, document name, turns name, graphs text[], may_refer boolean, is_near boolean,
    is_read boolean
)
LANGUAGE sql STABLE STRICT PARALLEL SAFE ROWS 5
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT g.place, g.reference, g.document, g.turns,
           array_agg(DISTINCT g.graph) FILTER (WHERE g.is_reference AND g.graph IS NOT NULL),
           bool_or(g.is_reference AND (t.is_read OR near.by_store)),
           bool_or(t.is_read OR near.by_turns OR near.by_store), t.is_read
    FROM graph_kernel.promoting_triggers() AS g
    CROSS JOIN LATERAL (
        -- By their numbers: a name may be another one by now.
        SELECT coalesce(graph_kernel.may_read_rows(g.place, $1) AND NOT row_security_active(g.place::oid)
                        AND (SELECT count(*) = 2 AND bool_and(graph_kernel.is_text(a.attname)
                                                              AND has_column_privilege(g.place, a.attnum, 'SELECT'))
                             FROM pg_attribute AS a
                             WHERE a.attrelid = g.place AND a.attname IN (coalesce(g.reference, g.document), g.turns)),
                        false) AS is_read
    ) AS t
    LEFT JOIN graph_kernel.binding AS own ON own.is_current AND own.name = $1
    LEFT JOIN graph_kernel.binding AS b ON b.is_current AND b.name = g.graph
    LEFT JOIN graph_kernel.store_binding AS kept ON kept.name = $1
    LEFT JOIN graph_kernel.store_binding AS s ON s.name = g.graph
    CROSS JOIN LATERAL (
        SELECT g.graph IS NOT DISTINCT FROM $1 OR graph_kernel.may_share_rows(own.turns::oid, b.turns::oid) AS by_turns,
               g.graph IS NOT DISTINCT FROM $1
               OR kept.name IS NOT NULL AND graph_kernel.may_share_rows(kept.store::oid, s.store::oid) AS by_store
    ) AS near
    WHERE NOT g.is_of_parent
    GROUP BY g.place, g.reference, g.document, g.turns, t.is_read;
END;
COMMENT ON FUNCTION graph_kernel.promoting_tables(text) IS
    'the tables whose rows may promote on the turns or the documents of a graph, the columns of their triggers, and'
    ' whether this role reads them';

SET LOCAL search_path TO @extschema@, pg_temp;

-- A row for each thing that can be wrong with a graph. Invoker's rights: it sees what slices see. No hint changes or
-- deletes rows: it selects those that may have to be changed. A superuser may run what others have named: what a hint
-- names is quoted and qualified, down to operators. No name stands in a comment, as a line break in it would end that.
-- Where others choose how many there are, each command has a row of its own: one that fails or is too long hides
-- no other. Called while DROP EXTENSION has to wait.
CREATE FUNCTION graph_kernel.check_graph(name text) RETURNS TABLE (
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
    tables regclass[];
    c jsonb;        -- column names, turns and edges together
    x jsonb;        -- the same as expressions over t and e, of types of pg_catalog
    edge text;      -- a condition: the row has two ends; without, it is not an edge
    dangling text;  -- a condition: an end is not a turn
    advice text;    -- what to do with edges that are wrong, after looking at them
    says_types text; -- how to say what edge types mean
    edge_type text;  -- the type in the table of edges, as its mapping has it
    computes_hashes text; -- how to store content hashes where only contents are stored
    writes_hashes text; -- how to write content hashes, where there is a column for them and a content
    tells_times text; -- how to give turns of one transaction times of their own, where their default gives them one
    fixed_path text := ''; -- before a query with expressions of the mapping, whose names are those that pg_catalog has
    reset_path text := ''; -- behind it
    hidden text;    -- what to add where this role may not see all rows
    listed record;
    bound record;
    kept jsonb;     -- the store of documents
    store regclass;
BEGIN
    BEGIN
        graph := graph_kernel.describe_graph(name);
    EXCEPTION WHEN undefined_table OR undefined_column OR datatype_mismatch OR wrong_object_type
                OR undefined_function OR undefined_object OR invalid_object_definition OR feature_not_supported
                OR ambiguous_function OR ambiguous_column OR syntax_error OR invalid_schema_name
                OR insufficient_privilege OR invalid_parameter_value OR object_not_in_prerequisite_state THEN
        check_name := 'bound_tables';
        ok := false;
        GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL;
        IF detail = 'EXTENSION_VERSION' THEN
            RAISE; -- nothing of another version is a finding
        END IF;
        GET STACKED DIAGNOSTICS detail = MESSAGE_TEXT, hint = PG_EXCEPTION_HINT;
        hint := nullif(hint, '');
        IF SQLSTATE = '42501' THEN
            -- The table's owner may have revoked on purpose what the role that bound it lacks: no hint grants that.
            -- What this role lacks, for the owner to grant.
            SELECT coalesce(string_agg(DISTINCT g.command, ' ' ORDER BY g.command),
                            substring(hint FROM 'SELECT turns, edges, columns FROM graph_kernel.binding .*')) INTO hint
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
                           WHERE b.is_current AND b.name = check_graph.name
                             AND r.oid IN (b.turns, b.edges, b.edges_by_child)
                             AND has_schema_privilege(o.oid, n.oid, 'USAGE')
                             AND (has_table_privilege(o.oid, r.oid, 'SELECT')
                                  OR has_any_column_privilege(o.oid, r.oid, 'SELECT')))
                   OR n.nspname = 'public' AND r.relname IN ('memory_turns', 'memory_turn_edges') AND name = 'default'
                      AND NOT EXISTS (SELECT FROM graph_kernel.binding AS b WHERE b.is_current AND b.name = 'default'));
        END IF;
        RETURN NEXT;
        RETURN;
    END;
    t := graph #>> '{turns,from}';
    e := graph #>> '{edges,from}';
    turns := (graph #>> '{turns,oid}')::oid;
    tables := (SELECT array_agg(o.oid::oid::regclass ORDER BY o.position)
               FROM jsonb_array_elements_text(graph -> 'tables') WITH ORDINALITY AS o (oid, position));
    -- An absent column is '' here: a statement that names it is not run.
    c := (SELECT jsonb_object_agg(k.key, coalesce(k.value, ''))
          FROM jsonb_each_text((graph #> '{turns,columns}') || (graph #> '{edges,columns}')) AS k);
    x := (graph #> '{turns,expressions}') || (graph #> '{edges,expressions}');
    edge := format('%s IS NOT NULL AND %s IS NOT NULL', x ->> 'parent', x ->> 'child');
    dangling := format('(NOT EXISTS (SELECT FROM %1$s AS t WHERE %2$s OPERATOR(pg_catalog.=) %3$s)'
                    ' OR NOT EXISTS (SELECT FROM %1$s AS t WHERE %2$s OPERATOR(pg_catalog.=) %4$s))',
                    t, x ->> 'id', x ->> 'parent', x ->> 'child');
    -- A mapping that says null asks for nothing.
    SELECT b.turns::regclass AS turns, b.edges::regclass AS edges,
           CASE WHEN b.edges_by_child IS NULL THEN coalesce(b.columns, '{}')
                ELSE b.columns || jsonb_build_object('edges_by_child', b.edges_by_child::regclass::text) END AS columns,
           b.name
    INTO bound
    FROM graph_kernel.binding AS b WHERE b.is_current AND b.name = check_graph.name;
    -- What was found by its name is true.
    edge_type := CASE jsonb_typeof(graph #> '{resolved,edges,edge_type}')
                 WHEN 'boolean' THEN 'edge_type' WHEN 'string' THEN quote_ident(graph #>> '{resolved,edges,edge_type}')
                 ELSE graph #>> '{resolved,edges,edge_type,expression}' END;
    says_types := format(
        'SELECT graph_kernel.bind_tables(%L%s, columns => %L%s);',
        coalesce(bound.turns, turns),
        ', ' || quote_literal(CASE WHEN bound.turns IS NULL THEN tables[2] ELSE bound.edges END),
        coalesce(bound.columns, '{}') || jsonb_build_object('edges',
            coalesce(bound.columns -> 'edges', '{}') || jsonb_build_object('edge_type', jsonb_build_object('expression',
                format('CASE %1$s WHEN ''my_type'' THEN ''reply'' ELSE %1$s END', edge_type)))),
        ', name => ' || quote_literal(nullif(bound.name, 'default')));
    IF c ->> 'content_hash' = '' AND c ->> 'content_text' <> ''
       AND bound.columns #> '{turns,content_hash}' IS DISTINCT FROM 'null' THEN
        computes_hashes := format(
            'SELECT graph_kernel.bind_tables(%L%s, columns => %L%s);'
            ' -- Another mapping is another graph: exports that were'
            ' taken before say other_graph.',
            bound.turns, ', ' || quote_literal(bound.edges),
            bound.columns || jsonb_build_object('turns', coalesce(bound.columns -> 'turns', '{}') || jsonb_build_object(
                'content_hash', jsonb_build_object('expression', format('graph_content_hash(%s)',
                    CASE WHEN graph -> 'expressions' ? 'turns.content_text' THEN c ->> 'content_text'
                    ELSE quote_ident(c ->> 'content_text') END)))),
            ', name => ' || quote_literal(nullif(bound.name, 'default')));
        IF bound.turns IS NULL THEN
            computes_hashes := format('ALTER TABLE %s ADD COLUMN content_hash text;', turns);
        END IF;
    END IF;
    writes_hashes := CASE WHEN c ->> 'content_text' <> '' AND c ->> 'content_hash' = 'content_hash'
                           AND NOT graph -> 'expressions' ? 'turns.content_hash' THEN
        ' -- Let the owner of the table CALL graph_kernel.backfill_content_hashes(): it writes hashes,'
        ' and no other text.' ELSE '' END;
    -- Only these defaults, as the server writes them: the text of any other may name what its owner has chosen.
    IF NOT graph -> 'expressions' ? 'turns.created_at' THEN
        tells_times := (
            SELECT format('ALTER TABLE %s ALTER COLUMN %I SET DEFAULT ', turns, a.attname)
                || CASE WHEN lower(d.value) IN ('now()', 'current_timestamp', 'transaction_timestamp()',
                                                'statement_timestamp()') THEN 'pg_catalog.clock_timestamp();'
                   WHEN d.value ~* '^(timezone\(''utc''::text, now\(\)\)|\(now\(\) AT TIME ZONE ''utc''::text\))$'
                       THEN 'pg_catalog.timezone(''utc''::pg_catalog.text, pg_catalog.clock_timestamp());' END
            FROM pg_attribute AS a
            JOIN pg_attrdef AS s ON s.adrelid = a.attrelid AND s.adnum = a.attnum
            CROSS JOIN LATERAL pg_get_expr(s.adbin, s.adrelid) AS d (value)
            WHERE a.attrelid = turns AND a.attname = c ->> 'created_at' AND NOT a.attisdropped AND a.attgenerated = '');
    END IF;
    advice := CASE WHEN tables[2] IS NULL OR turns = tables[2]
        THEN ' -- These rows are turns as well: correct the column that names the other turn, unless that was deleted.'
                     ELSE ' -- Look at these edges first; if they are not wanted, delete them.' END;
    IF jsonb_array_length(graph -> 'expressions') > 0 THEN
        fixed_path := 'SET search_path = pg_catalog, pg_temp; ';
        reset_path := E'\nRESET search_path;'; -- a comment may stand before it
    END IF;
    IF EXISTS (SELECT FROM unnest(tables) AS r (rel) WHERE row_security_active(r.rel)) THEN
        hidden := '; row security hides rows from this role: let the owner of the tables run this';
    END IF;
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

    -- Slices run with a fixed search_path: a policy's function that depends on the caller's fails.
    RETURN QUERY
    SELECT 'policy_search_path', count(*) = 0, count(*),
           'functions of row security policies without a search_path of their own',
           string_agg(format('ALTER FUNCTION %s SET search_path = pg_catalog, %I, pg_temp;',
                             graph_kernel.function_name(f.fn), f.home), ' ')
    FROM (
        SELECT DISTINCT p.oid::regprocedure AS fn, n.nspname AS home
        FROM pg_policy AS pol
        JOIN pg_depend AS d ON d.classid = 'pg_policy'::regclass AND d.objid = pol.oid
                           AND d.refclassid = 'pg_proc'::regclass
        JOIN pg_proc AS p ON p.oid = d.refobjid
        JOIN pg_namespace AS n ON n.oid = p.pronamespace
        JOIN pg_language AS l ON l.oid = p.prolang
        WHERE pol.polrelid = ANY (tables) AND l.lanname NOT IN ('internal', 'c')
          AND pg_has_role(p.proowner, 'USAGE') -- others could not follow the hint
          AND NOT EXISTS (SELECT FROM unnest(p.proconfig) AS s WHERE s LIKE 'search\_path=%')
    ) AS f;

    -- With plain ENABLE TRIGGER, as --disable-triggers of pg_restore leaves them, they do nothing for a subscription
    -- nor for a role that has set session_replication_role.
    RETURN QUERY
    SELECT 'private_triggers', count(*) = 0, count(*),
           'triggers of private tables that are not ENABLE ALWAYS',
           string_agg(format('ALTER TABLE %s ENABLE ALWAYS TRIGGER %s;', p.rel, t.name), ' ' ORDER BY p.rel::text,
               t.name)
    FROM unnest('{graph_kernel.binding,graph_kernel.revoked_keys,graph_kernel.root_keys,graph_kernel.policies,
                  graph_kernel.recorder_binding,graph_kernel.trace_binding,graph_kernel.store_binding}'::regclass[])
                  WITH ORDINALITY AS p (rel, position)
    CROSS JOIN unnest('{guard,guard_truncate,announce,guard_binder}'::text[]) AS t (name)
    WHERE (t.name <> 'announce' OR p.position <= 3)
      AND (t.name <> 'guard_binder' OR p.position IN (1, 5, 6, 7))
      AND NOT EXISTS (SELECT FROM pg_trigger AS g
                      WHERE g.tgrelid = p.rel AND g.tgname = t.name AND g.tgenabled = 'A');

    -- Planning a query on a table already runs these functions on constants: in an index expression, an index
    -- predicate, expressions of statistics and of a partition key, a CHECK constraint under constraint_exclusion.
    RETURN QUERY
    WITH beside (oid) AS (
        SELECT s.store::oid FROM graph_kernel.store_binding AS s WHERE s.name = check_graph.name
        UNION SELECT b.traces::oid FROM graph_kernel.trace_binding AS b
        UNION SELECT b.events::oid FROM graph_kernel.recorder_binding AS b
        UNION SELECT t.place::oid FROM graph_kernel.promoting_tables(check_graph.name) AS t WHERE t.is_read
    )
    SELECT 'user_functions', count(*) = 0, count(*),
           'functions of users in indexes, statistics, partition keys and CHECK constraints: they run with the'
           ' rights of the role that reads' || coalesce(': ' || string_agg(u.what, ', ' ORDER BY u.what), ''),
           string_agg(DISTINCT format('SELECT pg_catalog.pg_get_functiondef(%L::pg_catalog.regprocedure);',
                                      graph_kernel.function_name(u.fn)), ' ')
    FROM (
        SELECT DISTINCT format('%s in %s', coalesce(o.oprcode::oid, p.oid)::regprocedure,
                               pg_describe_object(d.classid, d.objid, 0)) AS what,
               coalesce(o.oprcode::oid, p.oid)::regprocedure AS fn
        FROM (SELECT o.oid FROM unnest(tables) AS o (oid)
              UNION SELECT l.relid FROM unnest(tables) AS o (oid) CROSS JOIN LATERAL pg_partition_tree(o.oid) AS l
              UNION SELECT b.oid FROM beside AS b
              UNION SELECT l.relid FROM beside AS b CROSS JOIN LATERAL pg_partition_tree(b.oid) AS l) AS r
        CROSS JOIN LATERAL (
            SELECT 'pg_class'::regclass AS classid, r.oid::oid AS objid
            UNION ALL SELECT 'pg_class'::regclass, i.indexrelid FROM pg_index AS i WHERE i.indrelid = r.oid
            UNION ALL SELECT 'pg_constraint'::regclass, k.oid FROM pg_constraint AS k WHERE k.conrelid = r.oid
            UNION ALL SELECT 'pg_statistic_ext'::regclass, s.oid FROM pg_statistic_ext AS s WHERE s.stxrelid = r.oid
        ) AS part
        JOIN pg_depend AS d ON d.classid = part.classid AND d.objid = part.objid AND d.objsubid = 0
        LEFT JOIN pg_proc AS p ON d.refclassid = 'pg_proc'::regclass AND p.oid = d.refobjid
        LEFT JOIN pg_operator AS o ON d.refclassid = 'pg_operator'::regclass AND o.oid = d.refobjid
        WHERE coalesce(o.oprcode::oid, p.oid) >= 16384
          -- The extension's owner may make any function of theirs a member: those of the script belong to a superuser.
          AND NOT EXISTS (SELECT FROM pg_depend AS m JOIN pg_extension AS y ON y.oid = m.refobjid
                          JOIN pg_proc AS f ON f.oid = m.objid JOIN pg_roles AS w ON w.oid = f.proowner
                          WHERE m.classid = 'pg_proc'::regclass AND m.objid = coalesce(o.oprcode::oid, p.oid)
                            AND m.refclassid = 'pg_extension'::regclass AND m.deptype = 'e'
                            AND y.extname = 'graph_kernel' AND w.rolsuper)
    ) AS u;

    -- With these the caller's setting would decide which graph is read with the owner's rights.
    RETURN QUERY
    WITH reading AS (
        SELECT g.oid, g.proname
        FROM pg_depend AS m
        JOIN pg_extension AS y ON y.oid = m.refobjid AND y.extname = 'graph_kernel'
        JOIN pg_proc AS g ON g.oid = m.objid
        WHERE m.classid = 'pg_proc'::regclass AND m.refclassid = 'pg_extension'::regclass AND m.deptype = 'e'
          AND g.provolatile <> 'i'
    )
    SELECT 'definer_functions', f.fn IS NULL, CASE WHEN f.fn IS NULL THEN 0 ELSE 1 END::bigint,
           'functions with their owner''s rights that read a graph of the caller''s choice'
           || coalesce(': ' || graph_kernel.text_prefix(graph_kernel.function_name(f.fn), 100000), ''),
           CASE WHEN f.fn IS NOT NULL THEN
               graph_kernel.whole_command(format('ALTER ROUTINE %s SET graph_kernel.graph = %L;',
                                                 graph_kernel.function_name(f.fn), name)) END
    FROM (SELECT) AS always
    LEFT JOIN (
        SELECT p.oid AS fn
        FROM pg_proc AS p
        WHERE p.prosecdef
          AND NOT EXISTS (SELECT FROM unnest(p.proconfig) AS s WHERE s LIKE 'graph\_kernel.graph=%')
          AND NOT EXISTS (SELECT FROM pg_depend AS own JOIN pg_roles AS w ON w.oid = p.proowner
                          WHERE own.classid = 'pg_proc'::regclass AND own.objid = p.oid AND own.deptype = 'e'
                            AND w.rolsuper)
          AND pg_has_role(p.proowner, 'USAGE') -- others could not follow the hint
          -- A body that was parsed at creation depends on what it calls. Any other is searched for names; what is too
          -- long for that may have them.
          AND (EXISTS (SELECT FROM pg_depend AS d JOIN reading AS g ON g.oid = d.refobjid
                       WHERE d.classid = 'pg_proc'::regclass AND d.objid = p.oid
                         AND d.refclassid = 'pg_proc'::regclass)
               OR p.prosqlbody IS NULL
                  AND (octet_length(p.prosrc) > 1000000
                       OR p.prosrc ~* (SELECT format('\m(%s)\M', string_agg(DISTINCT g.proname, '|'))
                                       FROM reading AS g WHERE g.proname ~ '^\w+$')))
    ) AS f ON true
    ORDER BY graph_kernel.function_name(f.fn);

    -- In another form a trigger that promotes can be got round. There is one at any time while it is replaced. One
    -- statement does it, as psql may go on after an error, in a transaction too (ON_ERROR_ROLLBACK).
    RETURN QUERY
    SELECT 'promotion_triggers', g.name IS NULL, count(g.name) OVER (PARTITION BY g.guard),
           'triggers that promote and can be got round, or have bad arguments'
           || CASE WHEN g.name IS NULL THEN '' ELSE ': ' || graph_kernel.text_prefix(
                  format('%I on %s (%s)', g.name, g.place, array_to_string(g.faults || g.bad_arguments, ', ')),
                      100000) END,
           graph_kernel.whole_command(CASE
               WHEN g.name IS NULL THEN NULL
               WHEN g.bad_arguments <> '{}' AND NOT g.is_of_parent THEN
                   format('SELECT pg_catalog.pg_get_triggerdef(g.oid) FROM pg_catalog.pg_trigger AS g WHERE g.tgrelid'
                          ' OPERATOR(pg_catalog.=) %L::pg_catalog.regclass AND g.tgname OPERATOR(pg_catalog.=) %L;'
                          ' /* Create it with other arguments. */', g.place, g.name)
               WHEN g.is_of_parent OR g.faults <@ '{disabled,not ENABLE ALWAYS}' THEN
                   format('ALTER TABLE %s ENABLE ALWAYS TRIGGER %I;', g.place, g.name)
               WHEN r.relkind NOT IN ('r', 'p') THEN format('DROP TRIGGER %I ON %s;', g.name, g.place)
               ELSE format('DO %L;', format(
                   'BEGIN CREATE CONSTRAINT TRIGGER %3$I AFTER INSERT OR UPDATE ON %2$s NOT DEFERRABLE'
                   ' FOR EACH ROW EXECUTE FUNCTION %4$s; ALTER TABLE %2$s ENABLE ALWAYS TRIGGER %3$I;'
                   ' DROP TRIGGER %1$I ON %2$s; ALTER TRIGGER %3$I ON %2$s RENAME TO %1$I; END',
                   g.name, g.place, graph_kernel.free_trigger_name(g.place, g.guard), g.call)) END)
    FROM (SELECT) AS always
    LEFT JOIN (graph_kernel.promoting_triggers() AS g JOIN pg_class AS r ON r.oid = g.place)
           -- The form of a partition's trigger is that of its table's.
           ON CASE WHEN g.is_of_parent THEN g.faults && '{disabled,not ENABLE ALWAYS}'
                   ELSE g.faults <> '{}' OR g.bad_arguments <> '{}' END
    ORDER BY g.place::text, g.name;

    -- A trigger of another role runs with the rights of whoever writes.
    RETURN QUERY
    SELECT 'promotion_rights', h.place IS NULL, count(h.place) OVER (PARTITION BY h.place),
           'tables that promote on which others than the owner hold TRIGGER'
           || CASE WHEN h.place IS NULL THEN ''
                   ELSE ': ' || graph_kernel.text_prefix(format('%s (%s)', h.place, h.holders), 100000) END,
           graph_kernel.whole_command(CASE WHEN h.place IS NOT NULL THEN
               format('REVOKE TRIGGER ON %s FROM %s CASCADE;', h.place, h.holders) END)
    FROM (SELECT) AS always
    LEFT JOIN (
        SELECT r.oid::regclass AS place,
               string_agg(DISTINCT CASE WHEN a.grantee = 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END, ', ')
                   AS holders
        FROM pg_class AS r CROSS JOIN LATERAL aclexplode(r.relacl) AS a
        WHERE r.oid IN (SELECT g.place FROM graph_kernel.promoting_triggers() AS g)
          AND a.privilege_type = 'TRIGGER' AND a.grantee <> r.relowner
          AND NOT EXISTS (SELECT FROM pg_roles AS s WHERE s.oid = a.grantee AND s.rolsuper)
        GROUP BY r.oid) AS h ON true
    ORDER BY h.place::text;

    -- Only partitions inherit triggers.
    RETURN QUERY
    WITH RECURSIVE guard AS MATERIALIZED (
        -- Each child repeats it: a command with a longer one is not given.
        SELECT g.guard, g.place, g.name, CASE WHEN octet_length(g.call) <= 4096 THEN g.call END AS call
        FROM graph_kernel.promoting_triggers() AS g WHERE g.bad_arguments = '{}'
    ), descendant (top, child) AS (
        SELECT h.inhparent, h.inhrelid FROM pg_inherits AS h WHERE h.inhparent IN (SELECT g.place FROM guard AS g)
        UNION
        SELECT d.top, h.inhrelid FROM descendant AS d JOIN pg_inherits AS h ON h.inhparent = d.child
    ), bare AS (
        SELECT o.guard, o.name, d.child::regclass AS place, o.call
        FROM descendant AS d JOIN guard AS o ON o.place = d.top JOIN pg_trigger AS g ON g.oid = o.guard
        WHERE NOT EXISTS (SELECT FROM pg_trigger AS own
                          WHERE own.tgrelid = d.child AND own.tgfoid = g.tgfoid AND own.tgargs = g.tgargs)
    )
    SELECT 'promotion_children', d.place IS NULL, CASE WHEN d.place IS NULL THEN 0 ELSE 1 END::bigint,
           'tables that inherit from one that promotes and take rows without its trigger'
           || coalesce(': ' || CASE WHEN d.call IS NULL THEN d.place::text END, ''),
           graph_kernel.whole_command(CASE WHEN d.call IS NOT NULL THEN
               format('DO %L;', format(
                   'BEGIN CREATE CONSTRAINT TRIGGER %1$I AFTER INSERT OR UPDATE ON %2$s NOT DEFERRABLE FOR EACH'
                   ' ROW EXECUTE FUNCTION %3$s; ALTER TABLE %2$s ENABLE ALWAYS TRIGGER %1$I; END',
                   d.free, d.place, d.call)) END)
    FROM (SELECT) AS always
    LEFT JOIN (
        SELECT b.place, b.call,
               CASE WHEN EXISTS (SELECT FROM pg_trigger AS own WHERE own.tgrelid = b.place AND own.tgname = b.name)
                      OR EXISTS (SELECT FROM pg_constraint AS own WHERE own.conrelid = b.place AND own.conname = b.name)
                    THEN graph_kernel.free_trigger_name(b.place, b.guard) ELSE b.name END AS free
        FROM bare AS b) AS d ON true
    ORDER BY d.place::text, d.free;

    -- What is not there is no error: the law may have wanted it gone.
    check_name := 'slice_store';
    ok := true;
    count := NULL;
    hint := NULL;
    BEGIN
        kept := graph_kernel.describe_store(name);
        store := (kept ->> 'oid')::oid;
        detail := coalesce('documents are kept in ' || store, 'no store is bound');
        RETURN NEXT;
        IF store IS NOT NULL THEN
            check_name := 'index_kept_turns';
            ok := (kept -> 'has_turns_index')::boolean;
            detail := format('%sindex on %s (turns)', CASE WHEN ok THEN '' ELSE 'no ' END, store);
            hint := CASE WHEN NOT ok THEN graph_kernel.turns_index_command(store) END;
            RETURN NEXT;
            check_name := 'kept_documents';
            count := (SELECT pg_catalog.count(*) FROM graph_kernel.unfit_documents(name) AS d);
            ok := count = 0;
            detail := 'rows of the store that are not what their documents say';
            hint := CASE WHEN NOT ok THEN format(
                'SELECT d.key, d.fault FROM graph_kernel.unfit_documents(%L) AS d;', name) END;
            RETURN NEXT;
            check_name := 'kept_references';
            ok := true;
            SELECT coalesce(sum(t.missing), 0),
                   'rows that refer to documents which are not in the store'
                   || CASE WHEN row_security_active(store::oid) THEN ', or which row security hides from this role'
                           ELSE '' END || coalesce('; not counted: '
                       || graph_kernel.text_prefix(string_agg(CASE WHEN t.missing IS NULL THEN t.place::text END, ', '
                                                              ORDER BY t.place::text), 100000), '')
            INTO count, detail
            FROM (SELECT t.place, CASE WHEN bool_and(t.is_read)
                                       THEN graph_kernel.missing_references(name, t.place, t.reference) END AS missing
                  FROM graph_kernel.promoting_tables(name) AS t
                  WHERE t.may_refer OR t.graphs && ARRAY(
                      SELECT DISTINCT CASE k.graph WHEN 'default' THEN k.graph ELSE b.name END
                      FROM graph_kernel.list_kept() AS k LEFT JOIN graph_kernel.binding AS b ON b.graph::text = k.graph)
                  GROUP BY t.place, t.reference) AS t;
            hint := NULL;
            RETURN NEXT;
        END IF;
    EXCEPTION WHEN OTHERS THEN
        ok := false;
        GET STACKED DIAGNOSTICS detail = MESSAGE_TEXT, hint = PG_EXCEPTION_HINT;
        detail := 'could not be checked: ' || detail;
        hint := nullif(hint, '');
        RETURN NEXT;
    END;

    -- An expression that raises stops every call that reads the row. Whatever a row raises hides no other finding: all
    -- but a cancelled query is caught.
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
            detail := CASE WHEN SQLSTATE = '42501' THEN 'could not be checked: ' || SQLERRM
                      ELSE format('%s: %s', detail, SQLERRM) END;
            IF SQLSTATE <> '42501' AND hidden IS NULL THEN
                -- The first row that raises.
                SELECT format('SELECT * FROM %s AS t WHERE t.ctid OPERATOR(pg_catalog.=) %L;'
                              ' -- Bind an expression that takes such a value.', r.row_table, r.row_id)
                INTO hint FROM graph_kernel.raising_row(name, listed.place) AS r;
            END IF;
        END;
        RETURN NEXT;
    END LOOP;

    -- Counts over the rows: what is counted, which column it needs, and how to look at the rows.
    FOR listed IN
        SELECT * FROM (VALUES
            ('duplicate_turns', 'id', 'turn ids stored more than once',
             format('SELECT %2$s AS id, pg_catalog.count(*), pg_catalog.array_agg(t.ctid) AS rows FROM %1$s AS t'
                    ' WHERE %2$s IS NOT NULL GROUP BY 1 HAVING pg_catalog.count(*) OPERATOR(pg_catalog.>) 1;',
                    t, x ->> 'id')),
            ('dangling_edges', 'id', 'edges with an end that is not a turn',
             -- Where the turns table stores edges, with the row that does.
             CASE WHEN e LIKE '(%' THEN
                 format('SELECT e.*, t.* FROM %s AS e LEFT JOIN %s AS t ON %s OPERATOR(pg_catalog.=) e.child'
                         ' WHERE %s AND %s;%s',
                        e, t, x ->> 'id', edge, dangling, advice)
             ELSE format('SELECT e.* FROM %s AS e WHERE %s AND %s;%s', e, edge, dangling, advice) END),
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
                 advice)),
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
             format('SELECT %1$s AS id, %2$s FROM %3$s AS t WHERE %2$s OPERATOR(pg_catalog.!~) ''^[0-9a-f]{64}$'';',
                    x ->> 'id', x ->> 'content_hash', t)),
            ('stale_content_hashes', 'content_hash', 'turns whose content is not what was hashed',
             format('SELECT %1$s AS id FROM %2$s AS t WHERE %3$s OPERATOR(pg_catalog.~) ''^[0-9a-f]{64}$'' AND NOT'
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
             || writes_hashes))
        ) AS v (name, needs, what, command)
    LOOP
        CONTINUE WHEN listed.name = 'differing_edges' AND graph -> 'edges_by_child' = 'null';
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
                count := graph_kernel.count_found(name, listed.name);
                ok := count = 0 OR listed.command IS NULL;
                -- A command based on rows that this role cannot see could do harm.
                hint := CASE WHEN ok OR hidden IS NOT NULL THEN NULL
                             WHEN listed.command IN (computes_hashes, tells_times) THEN listed.command
                             ELSE fixed_path || listed.command || reset_path END;
                -- Not in a comment behind the query.
                IF hint IS NOT NULL AND listed.name IN ('unknown_roles', 'unknown_edge_types') THEN
                    detail := format('%s. %s Another mapping is another graph: exports that were taken before say'
                                     ' other_graph.', detail,
                                     CASE listed.name WHEN 'unknown_roles' THEN graph_kernel.roles_advice(name)
                                     ELSE 'To say what they mean: ' || says_types END);
                END IF;
            EXCEPTION WHEN OTHERS THEN
                ok := false;
                count := NULL;
                detail := 'could not be checked: ' || SQLERRM;
            END;
        END IF;
        RETURN NEXT;
    END LOOP;

    check_name := 'cycles';
    BEGIN
        count := graph_kernel.turns_in_cycles(name);
        ok := coalesce(count = 0, true);
        detail := CASE WHEN count IS NULL THEN 'not checked: more than 5 million edges'
                       ELSE 'turns on or between cycles, self-loops among them' END
                  || coalesce(hidden, '');
    EXCEPTION WHEN OTHERS THEN
        ok := false;
        count := NULL;
        detail := 'could not be checked: ' || SQLERRM;
    END;
    hint := CASE WHEN count > 0 THEN fixed_path || format(
        'WITH RECURSIVE walk AS (SELECT %2$s AS start, %3$s AS at FROM %1$s AS e WHERE %4$s'
        ' UNION SELECT walk.start, %3$s FROM walk JOIN %1$s AS e ON %2$s OPERATOR(pg_catalog.=) walk.at WHERE %4$s)'
        ' SELECT walk.start FROM walk WHERE walk.start OPERATOR(pg_catalog.=) walk.at;', e, x ->> 'parent',
            x ->> 'child', edge) || reset_path END;
    RETURN NEXT;
END
$$;
COMMENT ON FUNCTION graph_kernel.check_graph(text) IS 'graph_check';

SET LOCAL search_path TO pg_catalog, pg_temp; -- what bodies parsed now are resolved by

CREATE FUNCTION @extschema@.graph_check() RETURNS TABLE (
    check_name text, ok boolean, count bigint, detail text, hint text
)
LANGUAGE sql STABLE COST 10000000 ROWS 30
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT FROM graph_kernel.binding LIMIT 0; -- DROP EXTENSION waits
    -- Names that others have chosen may not be text, or not text that the client's encoding has.
    SELECT c.check_name, c.ok, c.count,
           coalesce(graph_kernel.whole_command(c.detail),
                    regexp_replace(graph_kernel.text_prefix(c.detail, 1000000), '[^\x01-\x7f]', '?', 'g')),
           graph_kernel.whole_command(c.hint)
    FROM graph_kernel.check_graph(graph_kernel.chosen_graph()) AS c;
END;
COMMENT ON FUNCTION @extschema@.graph_check() IS 'what is wrong with the bound graph, and how to fix it';

SET LOCAL search_path TO @extschema@, pg_temp;
