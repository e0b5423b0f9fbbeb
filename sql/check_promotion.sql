-- The triggers that promote, in any schema: their form, who may add others, and the tables that take rows without them.
-- Called by check_graph.
CREATE FUNCTION graph_kernel.check_promotion(name text, graph jsonb) RETURNS TABLE (
    check_name text, ok boolean, count bigint, detail text, hint text
)
LANGUAGE plpgsql STABLE STRICT
SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
DECLARE
    trusted oid[] := graph_kernel.trusted_owners(check_promotion.name);
    superusers oid[] := ARRAY(SELECT r.oid FROM pg_roles AS r WHERE r.rolsuper);
    -- The columns that the mapping names, and the words of its expressions, which may be columns; then the arguments of
    -- the trigger that keeps the hashes: as bytes.
    bound_columns bytea[] := ARRAY(
        SELECT DISTINCT replace(w.word, E'\\', E'\\\\')::bytea
        FROM (SELECT graph #> '{turns,columns}' UNION ALL SELECT graph #> '{edges,columns}'
              UNION ALL SELECT b.columns FROM graph_kernel.binding AS b
                        WHERE b.is_current AND b.name = check_promotion.name
              UNION ALL SELECT b.columns FROM graph_kernel.recorder_binding AS b) AS m (mapping)
        CROSS JOIN LATERAL jsonb_path_query(m.mapping, '$.** ? (@.type() == "string")') AS s (value)
        CROSS JOIN LATERAL (SELECT s.value #>> '{}') AS v (text)
        CROSS JOIN LATERAL (
            SELECT v.text
            UNION ALL SELECT lower(p.part)
                      FROM regexp_split_to_table(v.text, E'[][[:space:]()''",.:;+*/<>=~!@#%^&|?{}-]+') AS p (part)
            UNION ALL SELECT replace(q.quoted[1], '""', '"')
                      FROM regexp_matches(v.text, '"((?:[^"]|"")+)"', 'g') AS q (quoted)
        ) AS w (word)
        WHERE w.word <> '');
    hashing bytea[] := ARRAY(
        SELECT replace(coalesce(nullif(graph #>> ARRAY['turns', 'columns', n.name], ''), n.name),
                       E'\\', E'\\\\')::bytea
        FROM unnest('{content_text,content_hash}'::text[]) AS n (name));
BEGIN
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
               -- Any ALTER TABLE computes constants of partition keys, those of its partitions too, as whoever follows
               -- the hint; and a stranger puts another table in the place of his before it is followed.
               WHEN NOT graph_kernel.are_owned(g.place, trusted) THEN NULL
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

    -- A trigger runs with the rights of whoever writes: of who promotes, takes kept slices again or fills in hashes.
    -- What a foreign key compares with, such as a cast, runs with those of the owner of the table that it refers to.
    RETURN QUERY
    WITH RECURSIVE bound (oid, is_written) AS (
        SELECT t.oid::oid, false FROM unnest(graph_kernel.tables_of(graph)) AS t (oid)
        UNION SELECT s.store::oid, true FROM graph_kernel.store_binding AS s WHERE s.name = check_promotion.name
        UNION SELECT b.traces::oid, true FROM graph_kernel.trace_binding AS b
        UNION SELECT b.events::oid, false FROM graph_kernel.recorder_binding AS b
    ), part (oid, is_written) AS (
        SELECT b.oid, b.is_written FROM bound AS b
        UNION SELECT h.inhrelid, p.is_written FROM part AS p JOIN pg_inherits AS h ON h.inhparent = p.oid
    ), promoting AS MATERIALIZED (
        SELECT g.guard, g.place::oid, g.is_of_parent, ARRAY[g.reference, g.document, g.turns]::text[] AS columns
        FROM graph_kernel.promoting_triggers() AS g
    ), place AS (
        SELECT r.oid, r.relowner, r.relacl, bool_or(p.is_bound) AS is_bound, bool_or(p.is_written) AS is_written,
               array_agg(DISTINCT p.argument) FILTER (WHERE p.argument IS NOT NULL) AS held
        FROM (SELECT p.oid, true AS is_bound, p.is_written, c.argument
              FROM part AS p LEFT JOIN unnest(bound_columns) AS c (argument) ON true
              -- What a bound column is generated from decides what is in it.
              UNION ALL SELECT p.oid, true, p.is_written, replace(a.attname, E'\\', E'\\\\')::bytea
                        FROM part AS p
                        JOIN pg_attribute AS c ON c.attrelid = p.oid AND c.attgenerated <> ''
                         AND replace(c.attname, E'\\', E'\\\\')::bytea = ANY (bound_columns)
                        JOIN pg_attrdef AS g ON g.adrelid = c.attrelid AND g.adnum = c.attnum
                        JOIN pg_depend AS d ON d.classid = 'pg_attrdef'::regclass AND d.objid = g.oid
                         AND d.refclassid = 'pg_class'::regclass AND d.refobjid = p.oid AND d.refobjsubid <> c.attnum
                        JOIN pg_attribute AS a ON a.attrelid = p.oid AND a.attnum = d.refobjsubid AND a.attnum > 0
              -- Who writes a partition is asked by what refers to its ancestors, and runs their triggers of statements.
              UNION ALL SELECT a.relid, b.is_bound, false, NULL
                        FROM (SELECT b.oid, true AS is_bound FROM bound AS b
                              UNION SELECT g.place, false FROM promoting AS g) AS b
                        CROSS JOIN LATERAL pg_partition_ancestors(b.oid) AS a WHERE a.relid <> b.oid
              -- The columns of a partition's trigger are those of its ancestor's.
              UNION ALL SELECT g.place, false, false, c.name
                        FROM (SELECT g.place, bool_or(g.is_of_parent) AS is_part
                              FROM promoting AS g GROUP BY g.place) AS g
                        CROSS JOIN LATERAL (SELECT g.place
                                            UNION SELECT a.relid FROM pg_partition_ancestors(g.place) AS a
                                                  WHERE g.is_part) AS a (oid)
                        JOIN (SELECT DISTINCT o.place, replace(c.name, E'\\', E'\\\\')::bytea AS name
                              FROM promoting AS o CROSS JOIN unnest(o.columns) AS c (name)) AS c
                          ON c.place = a.oid) AS p
        JOIN pg_class AS r ON r.oid = p.oid
        GROUP BY r.oid
    ), found (check_name, place, whose, hint) AS (
        SELECT 'trigger_rights', h.place, h.holders,
               format('REVOKE TRIGGER, REFERENCES ON %s FROM %s CASCADE;', h.place, h.holders)
        FROM (SELECT p.oid::regclass AS place,
                     string_agg(DISTINCT CASE WHEN a.grantee = 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END, ', ')
                         AS holders
              FROM place AS p
              CROSS JOIN LATERAL (
                  SELECT p.relacl
                  UNION ALL SELECT c.attacl FROM pg_attribute AS c WHERE c.attrelid = p.oid AND c.attacl IS NOT NULL
              ) AS g (acl)
              CROSS JOIN LATERAL aclexplode(g.acl) AS a
              WHERE a.privilege_type IN ('TRIGGER', 'REFERENCES') AND a.grantee <> p.relowner
                AND a.grantee <> ALL (superusers)
              GROUP BY p.oid) AS h
        UNION ALL
        SELECT 'foreign_triggers', h.place, string_agg(h.what, ', ' ORDER BY h.what),
               format('SELECT pg_catalog.pg_get_triggerdef(g.oid) FROM pg_catalog.pg_trigger AS g WHERE g.tgrelid'
                      ' OPERATOR(pg_catalog.=) %1$L::pg_catalog.regclass AND NOT g.tgisinternal UNION ALL'
                      ' SELECT pg_catalog.format(''%%s: %%s'', k.conrelid::pg_catalog.regclass,'
                      ' pg_catalog.pg_get_constraintdef(k.oid)) FROM pg_catalog.pg_constraint AS k WHERE k.confrelid'
                      ' OPERATOR(pg_catalog.=) %1$L::pg_catalog.regclass ORDER BY 1;', h.place)
        FROM (SELECT p.oid::regclass AS place, format('%I %s', g.tgname, o.why) AS what
              FROM place AS p
              JOIN pg_trigger AS g ON g.tgrelid = p.oid AND NOT g.tgisinternal AND g.tgenabled <> 'D'
              JOIN pg_proc AS f ON f.oid = g.tgfoid
              -- What is longer than those who use it would write is not looked into: strangers choose its length.
              CROSS JOIN LATERAL (
                  -- As in promoting_triggers.
                  SELECT CASE WHEN octet_length(g.tgargs) <= 8192 AND g.tgnargs <= 64 THEN ARRAY(
                             SELECT decode(a.text, 'escape')
                             FROM unnest((string_to_array(replace(encode(g.tgargs, 'escape'), E'\\\\', E'\\134'),
                                                          E'\\000'))[:g.tgnargs]) WITH ORDINALITY AS a (text, position)
                             ORDER BY a.position) END AS arguments,
                         CASE WHEN pg_column_size(g.tgqual) > 8192 THEN true
                              ELSE octet_length(g.tgqual::text) > 100000 END AS is_long
                  OFFSET 0 -- read once
              ) AS given
              -- Nothing says who has made a trigger. What WHEN calls runs as what the trigger calls. Some of the
              -- server's own functions run the SQL that they are given; of those that are immutable one computes the
              -- partition key of a table that it is given.
              CROSS JOIN LATERAL (
                  SELECT CASE
                      WHEN f.proowner <> p.relowner AND f.proowner <> ALL (superusers)
                          THEN format('of %s', f.proowner::regrole)
                      WHEN given.is_long THEN 'with WHEN'
                      WHEN EXISTS (SELECT FROM regexp_matches(g.tgqual::text, ':[a-z]*funcid ([0-9]+)', 'g')
                                            AS m (called)
                                   JOIN pg_proc AS w ON w.oid = m.called[1]::oid
                                   WHERE w.oid <> 'pg_trigger_depth()'::regprocedure
                                     AND (w.provolatile <> 'i' OR w.proname = 'satisfies_hash_partition'
                                          OR w.proowner <> p.relowner AND w.proowner <> ALL (superusers)))
                        -- What a type is made of may be another's: of users' types only enumerations, base types and
                        -- domains over the server's own are made of nothing else.
                        OR EXISTS (SELECT FROM pg_depend AS d JOIN pg_type AS u ON u.oid = d.refobjid
                                   JOIN pg_type AS t
                                     ON t.oid = CASE WHEN u.typtype = 'b' AND u.typelem <> 0 THEN u.typelem
                                                     ELSE u.oid END
                                   WHERE d.classid = 'pg_trigger'::regclass AND d.objid = g.oid
                                     AND d.refclassid = 'pg_type'::regclass
                                     AND (t.typowner <> p.relowner AND t.typowner <> ALL (superusers)
                                          OR t.typtype NOT IN ('b', 'e')
                                         AND NOT (t.typtype = 'd' AND t.typbasetype < 16384)))
                          THEN 'with WHEN'
                      WHEN p.is_written THEN 'on a table that needs none'
                      WHEN p.is_bound AND g.oid IN (SELECT w.guard FROM promoting AS w) THEN 'that promotes'
                      WHEN f.oid = to_regprocedure(graph_kernel.own_name('graph_content_hash_trigger') || '()')
                          THEN CASE WHEN g.tgtype <> 23 OR g.tgattr::text <> '' OR g.tgqual IS NOT NULL
                                        THEN 'not BEFORE INSERT OR UPDATE FOR EACH ROW'
                                    WHEN given.arguments IS DISTINCT FROM hashing THEN 'with arguments' END
                      WHEN f.oid NOT IN ('tsvector_update_trigger()'::regprocedure,
                                         'tsvector_update_trigger_column()'::regprocedure)
                       AND coalesce(given.arguments && p.held, given.arguments IS NULL) THEN 'with arguments'
                  END AS why
              ) AS o
              WHERE o.why IS NOT NULL AND (p.is_bound OR g.oid NOT IN (SELECT w.guard FROM promoting AS w))
              UNION ALL
              SELECT p.oid::regclass, format('foreign key %I of %s', k.conname, k.conrelid::regclass)
              FROM place AS p
              JOIN pg_constraint AS k ON k.confrelid = p.oid AND k.contype = 'f'
              JOIN pg_class AS r ON r.oid = k.conrelid
              WHERE r.relowner <> p.relowner AND r.relowner <> ALL (superusers)) AS h
        GROUP BY h.place
    )
    SELECT c.check_name, f.place IS NULL, count(f.place) OVER (PARTITION BY c.check_name, f.place),
           c.what || CASE WHEN f.place IS NULL THEN ''
                          ELSE ': ' || graph_kernel.text_prefix(format('%s (%s)', f.place, f.whose), 100000) END,
           graph_kernel.whole_command(f.hint)
    FROM (VALUES (1, 'trigger_rights',
                  'tables that promote or that functions write, on which others than the owner hold TRIGGER or'
                  ' REFERENCES'),
                 (2, 'foreign_triggers',
                  'tables that promote or that functions write, with triggers or foreign keys that others may have'
                  ' made'))
             AS c (position, check_name, what)
    LEFT JOIN found AS f ON f.check_name = c.check_name
    ORDER BY c.position, f.place::text;

    -- Only partitions inherit triggers. Strangers choose how many triggers and children there are: of theirs this looks
    -- at ten triggers a table, and says one a child, and what is below the child once that has it.
    RETURN QUERY
    WITH RECURSIVE guard AS MATERIALIZED (
        -- Each child repeats it: a command with a longer one is not given.
        SELECT t.guard, t.place, t.name, t.call, t.is_trusted
        FROM (SELECT g.guard, g.place, g.name, CASE WHEN octet_length(g.call) <= 4096 THEN g.call END AS call,
                     r.relowner = ANY (trusted) AS is_trusted,
                     row_number() OVER (PARTITION BY g.place ORDER BY g.name) AS position
              FROM graph_kernel.promoting_triggers() AS g JOIN pg_class AS r ON r.oid = g.place
              WHERE g.bad_arguments = '{}') AS t
        WHERE t.is_trusted OR t.position <= 10
    ), descendant (top, child, is_trusted) AS (
        SELECT t.place::oid, h.inhrelid, t.is_trusted
        FROM (SELECT DISTINCT g.place, g.is_trusted FROM guard AS g) AS t JOIN pg_inherits AS h ON h.inhparent = t.place
        UNION
        SELECT d.top, h.inhrelid, true FROM descendant AS d JOIN pg_inherits AS h ON h.inhparent = d.child
        WHERE d.is_trusted
    ), bare AS (
        -- A foreign table takes no such trigger; of strangers' tables the same is true as above.
        SELECT o.guard, o.name, d.child::regclass AS place,
               CASE WHEN r.relkind IN ('r', 'p') AND graph_kernel.are_owned(r.oid, trusted) THEN o.call END AS call
        FROM descendant AS d JOIN pg_class AS r ON r.oid = d.child
        CROSS JOIN LATERAL (
            SELECT o.guard, o.name, o.call
            FROM guard AS o JOIN pg_trigger AS g ON g.oid = o.guard
            WHERE o.place = d.top
              AND NOT EXISTS (SELECT FROM pg_trigger AS own
                              WHERE own.tgrelid = d.child AND own.tgfoid = g.tgfoid AND own.tgargs = g.tgargs)
            ORDER BY o.name LIMIT CASE WHEN NOT d.is_trusted THEN 1 END
        ) AS o
    )
    SELECT 'promotion_children', d.place IS NULL, CASE WHEN d.place IS NULL THEN 0 ELSE 1 END::bigint,
           'tables that inherit from one that promotes and take rows without its trigger'
           || coalesce(': ' || d.place::text, ''),
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
END
$$;
COMMENT ON FUNCTION graph_kernel.check_promotion(text, jsonb) IS 'what graph_check finds of triggers that promote';
