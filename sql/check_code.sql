-- Code that runs beside a graph: the private tables' triggers, functions that planning runs, functions that read it
-- with their owners' rights. Called by check_graph. Compiling its queries takes longer than running them.
CREATE FUNCTION graph_kernel.check_code(name text, graph jsonb) RETURNS TABLE (
    check_name text, ok boolean, count bigint, detail text, hint text
)
LANGUAGE plpgsql STABLE STRICT
SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
DECLARE
    tables regclass[] := graph_kernel.tables_of(graph);
BEGIN
    -- With plain ENABLE TRIGGER, as --disable-triggers of pg_restore leaves them, they do nothing for a subscription
    -- nor for a role that has set session_replication_role.
    RETURN QUERY
    SELECT 'private_triggers', count(*) = 0, count(*),
           'triggers of private tables that are not ENABLE ALWAYS',
           string_agg(format('ALTER TABLE %s ENABLE ALWAYS TRIGGER %s;', p.rel, t.name), ' ' ORDER BY p.rel::text,
               t.name)
    FROM unnest('{graph_kernel.binding,graph_kernel.revoked_keys,graph_kernel.root_keys,graph_kernel.policies,
                  graph_kernel.recorder_binding,graph_kernel.trace_binding,graph_kernel.store_binding,
                  graph_kernel.word_totals,graph_kernel.word_counts}'::regclass[])
                  WITH ORDINALITY AS p (rel, position)
    CROSS JOIN unnest('{guard,guard_truncate,announce,guard_binder}'::text[]) AS t (name)
    WHERE (t.name <> 'announce' OR p.position <= 3)
      AND (t.name <> 'guard_binder' OR p.position IN (1, 5, 6, 7))
      AND NOT EXISTS (SELECT FROM pg_trigger AS g
                      WHERE g.tgrelid = p.rel AND g.tgname = t.name AND g.tgenabled = 'A');

    -- Planning a query on a table already runs these functions on constants: in an index expression, an index
    -- predicate, expressions of statistics and of a partition key, a CHECK constraint under constraint_exclusion. Where
    -- the library writes, defaults, generated columns and constraints of domains run too.
    RETURN QUERY
    WITH RECURSIVE used (oid, is_inserted) AS (
        SELECT o.oid::oid, false FROM unnest(tables) AS o (oid)
        UNION SELECT s.store::oid, true FROM graph_kernel.store_binding AS s WHERE s.name = check_code.name
        UNION SELECT b.traces::oid, true FROM graph_kernel.trace_binding AS b
        UNION SELECT b.events::oid, false FROM graph_kernel.recorder_binding AS b
        UNION SELECT t.place::oid, false FROM graph_kernel.promoting_tables(check_code.name) AS t WHERE t.is_read
    ), places (oid, is_inserted) AS (
        -- pg_partition_tree would wait for locks.
        SELECT u.oid, u.is_inserted FROM used AS u
        UNION SELECT h.inhrelid, l.is_inserted
              FROM places AS l JOIN pg_inherits AS h ON h.inhparent = l.oid
              JOIN pg_class AS r ON r.oid = h.inhrelid AND r.relispartition
    ), part (class, object) AS (
        SELECT o.class, o.object
        FROM places AS r
        CROSS JOIN LATERAL (
            SELECT 'pg_class'::regclass::oid AS class, r.oid AS object
            UNION ALL SELECT 'pg_class'::regclass, i.indexrelid FROM pg_index AS i WHERE i.indrelid = r.oid
            UNION ALL SELECT 'pg_constraint'::regclass, k.oid FROM pg_constraint AS k WHERE k.conrelid = r.oid
            UNION ALL SELECT 'pg_statistic_ext'::regclass, s.oid FROM pg_statistic_ext AS s WHERE s.stxrelid = r.oid
            UNION ALL SELECT 'pg_attrdef'::regclass, v.oid
                      FROM pg_attrdef AS v JOIN pg_attribute AS a ON a.attrelid = v.adrelid AND a.attnum = v.adnum
                      WHERE v.adrelid = r.oid AND (r.is_inserted OR a.attgenerated <> '')
        ) AS o
        -- The types that they use, whatever those are made of, and the constraints of these.
        UNION
        SELECT o.class, o.object
        FROM part AS p
        CROSS JOIN LATERAL (
            SELECT d.refclassid AS class, d.refobjid AS object
            FROM pg_depend AS d
            WHERE d.classid = p.class AND d.objid = p.object AND d.refclassid = 'pg_type'::regclass
            UNION ALL SELECT 'pg_class'::regclass, t.typrelid
                      FROM pg_type AS t
                      WHERE p.class = 'pg_type'::regclass AND t.oid = p.object AND t.typrelid <> 0
            UNION ALL SELECT 'pg_constraint'::regclass, k.oid
                      FROM pg_constraint AS k WHERE p.class = 'pg_type'::regclass AND k.contypid = p.object
        ) AS o
    ), expressions (class, object, tree) AS (
        SELECT p.class, p.object,
               CASE WHEN pg_column_size(t.tree) <= 8192
                    THEN CASE WHEN octet_length(t.tree::text) <= 100000 THEN t.tree::text END END
        FROM part AS p
        CROSS JOIN LATERAL (
            SELECT k.conbin AS tree
            FROM pg_constraint AS k WHERE p.class = 'pg_constraint'::regclass AND k.oid = p.object
            UNION ALL SELECT d.adbin
                      FROM pg_attrdef AS d WHERE p.class = 'pg_attrdef'::regclass AND d.oid = p.object
            UNION ALL SELECT t.typdefaultbin
                      FROM pg_type AS t WHERE p.class = 'pg_type'::regclass AND t.oid = p.object
            UNION ALL SELECT e.tree
                      FROM pg_index AS i CROSS JOIN LATERAL (VALUES (i.indexprs), (i.indpred)) AS e (tree)
                      WHERE p.class = 'pg_class'::regclass AND i.indexrelid = p.object
            UNION ALL SELECT s.stxexprs
                      FROM pg_statistic_ext AS s WHERE p.class = 'pg_statistic_ext'::regclass AND s.oid = p.object
            UNION ALL SELECT k.partexprs
                      FROM pg_partitioned_table AS k WHERE p.class = 'pg_class'::regclass AND k.partrelid = p.object
        ) AS t
        WHERE t.tree IS NOT NULL
    )
    SELECT 'user_functions', count(*) = 0, count(*),
           'functions of users in indexes, constraints, defaults and the like: they run with the rights of the role'
           ' that reads or writes'
           || coalesce(': ' || string_agg(u.what, ', ' ORDER BY u.what), ''),
           string_agg(DISTINCT format('SELECT pg_catalog.pg_get_functiondef(%L::pg_catalog.regprocedure);',
                                      graph_kernel.function_name(u.fn)), ' ') FILTER (WHERE u.fn IS NOT NULL)
    FROM (
        SELECT DISTINCT format('%s in %s', coalesce(o.oprcode::oid, p.oid)::regprocedure,
                               pg_describe_object(d.classid, d.objid, 0)) AS what,
               coalesce(o.oprcode::oid, p.oid)::regprocedure AS fn
        FROM part AS r
        JOIN pg_depend AS d ON d.classid = r.class AND d.objid = r.object AND d.objsubid = 0
                           -- Of types only ranges and those with a default: all depend on the functions that read
                           -- and show them.
                           AND (r.class <> 'pg_type'::regclass
                                OR EXISTS (SELECT FROM pg_type AS t
                                           WHERE t.oid = r.object AND (t.typdefaultbin IS NOT NULL OR t.typtype = 'r')))
        LEFT JOIN pg_proc AS p ON d.refclassid = 'pg_proc'::regclass AND p.oid = d.refobjid
        LEFT JOIN pg_operator AS o ON d.refclassid = 'pg_operator'::regclass AND o.oid = d.refobjid
        WHERE coalesce(o.oprcode::oid, p.oid) >= 16384
          -- The extension's owner may make any function of theirs a member: those of the script belong to a superuser.
          -- Of these the ones that are immutable do nothing.
          AND NOT EXISTS (SELECT FROM pg_depend AS m JOIN pg_extension AS y ON y.oid = m.refobjid
                          JOIN pg_proc AS f ON f.oid = m.objid JOIN pg_roles AS w ON w.oid = f.proowner
                          WHERE m.classid = 'pg_proc'::regclass AND m.objid = coalesce(o.oprcode::oid, p.oid)
                            AND m.refclassid = 'pg_extension'::regclass AND m.deptype = 'e'
                            AND y.extname = 'graph_kernel' AND w.rolsuper AND f.provolatile = 'i')
        -- Of the server's own functions those that run the SQL that they are given, act, or look up casts or types by
        -- what they are given. No list of what an expression uses has them, so it is looked through, as far as it is
        -- not longer than those who use it write.
        UNION
        SELECT format('%s in %s', w.oid::regprocedure, pg_describe_object(e.class, e.object, 0)), NULL
        FROM expressions AS e
        CROSS JOIN LATERAL regexp_matches(e.tree, ':[a-z]*funcid ([0-9]+)', 'g') AS m (called)
        JOIN pg_proc AS w ON w.oid = m.called[1]::oid
        WHERE w.oid < 16384
          AND (w.proname ~ '_to_xml|^pg_input_|^satisfies_hash_partition$'
               OR w.provolatile = 'v'
                  AND w.proname <> ALL ('{clock_timestamp,gen_random_uuid,nextval,random,timeofday,uuidv4,uuidv7}')
               OR w.provolatile = 's'
                  AND w.proname <> ALL ('{array_to_string,concat,concat_ws,format}')
                  AND EXISTS (SELECT FROM unnest(w.proargtypes) AS g (oid) JOIN pg_type AS t USING (oid)
                              WHERE t.typtype = 'p' OR t.typname ~ '^(oid|reg)'))
        -- Casts are looked up when they are needed, also by foreign keys.
        UNION
        SELECT format('%s in a cast of %s', f.oid::regprocedure, r.object::regtype), f.oid::regprocedure
        FROM part AS r
        JOIN pg_cast AS c ON r.class = 'pg_type'::regclass AND r.object IN (c.castsource, c.casttarget)
        JOIN pg_proc AS f ON f.oid = c.castfunc AND f.oid >= 16384
        JOIN pg_roles AS w ON w.oid = f.proowner AND NOT w.rolsuper
        UNION
        SELECT format('a long expression in %s', pg_describe_object(e.class, e.object, 0)), NULL
        FROM expressions AS e WHERE e.tree IS NULL
    ) AS u;

    -- With these the caller's setting would decide which graph is read with the owner's rights.
    RETURN QUERY
    WITH RECURSIVE reading (class, oid, name) AS (
        SELECT 'pg_proc'::regclass, g.oid, g.proname
        FROM pg_depend AS m
        JOIN pg_extension AS y ON y.oid = m.refobjid AND y.extname = 'graph_kernel'
        JOIN pg_proc AS g ON g.oid = m.objid
        WHERE m.classid = 'pg_proc'::regclass AND m.refclassid = 'pg_extension'::regclass AND m.deptype = 'e'
          AND g.provolatile <> 'i'
        -- Views of these, and of such views. Of the extension's own one reads a graph.
        UNION
        SELECT 'pg_class'::regclass, v.oid, v.relname
        FROM reading AS r
        JOIN pg_depend AS d ON d.refclassid = r.class AND d.refobjid = r.oid AND d.classid = 'pg_rewrite'::regclass
        JOIN pg_rewrite AS w ON w.oid = d.objid
        JOIN pg_class AS v ON v.oid = w.ev_class
        WHERE v.relnamespace <> 'graph_kernel'::regnamespace OR v.oid = 'graph_kernel.kept'::regclass
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
          AND NOT EXISTS (SELECT FROM unnest(p.proconfig) AS s WHERE s LIKE E'graph\\_kernel.graph=%')
          AND NOT EXISTS (SELECT FROM pg_depend AS own JOIN pg_roles AS w ON w.oid = p.proowner
                          WHERE own.classid = 'pg_proc'::regclass AND own.objid = p.oid AND own.deptype = 'e'
                            AND w.rolsuper)
          AND pg_has_role(p.proowner, 'USAGE') -- others could not follow the hint
          -- A body that was parsed at creation depends on what it calls. Any other is searched for the extension's own
          -- names; what is too long for that may have them.
          AND (EXISTS (SELECT FROM pg_depend AS d JOIN reading AS g ON g.class = d.refclassid AND g.oid = d.refobjid
                       WHERE d.classid = 'pg_proc'::regclass AND d.objid = p.oid)
               OR p.prosqlbody IS NULL
                  AND (octet_length(p.prosrc) > 1000000
                       OR p.prosrc ~* (SELECT format(E'\\m(%s)\\M', string_agg(DISTINCT g.name, '|'))
                                       FROM reading AS g
                                       WHERE (g.class = 'pg_proc'::regclass OR g.oid = 'graph_kernel.kept'::regclass)
                                         AND g.name ~ E'^\\w+$')))
    ) AS f ON true
    ORDER BY graph_kernel.function_name(f.fn);
END
$$;
COMMENT ON FUNCTION graph_kernel.check_code(text, jsonb) IS 'what graph_check finds of functions and private triggers';
