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
           CASE WHEN g.tgparentid <> 0 THEN '{}' ELSE array_remove(ARRAY[
               CASE WHEN given.count < 2 OR cardinality(rest.trust) > 1 OR rest.graph = '' OR first.reference = ''
                         OR NOT coalesce(rest.trust[1], 'no_rls') LIKE ANY (ARRAY[E'no\\_rls', 'roles=_%'])
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
                    WHERE b.is_current AND replace(b.name, E'\\', E'\\\\')::bytea = decode(rest.graph, 'escape')))
               ], NULL) END,
           -- Or it may be one: arguments that are too long were not looked into.
           first.reference IS NOT NULL OR given.count < g.tgnargs,
           found.reference, found.document, found.turns,
           CASE WHEN given.count < g.tgnargs THEN NULL
                WHEN coalesce(rest.graph, 'default') = 'default' THEN 'default'
                ELSE (SELECT b.name FROM graph_kernel.binding AS b
                      WHERE b.is_current AND replace(b.name, E'\\', E'\\\\')::bytea = decode(rest.graph, 'escape')) END
    FROM pg_trigger AS g
    JOIN pg_class AS r ON r.oid = g.tgrelid
    CROSS JOIN LATERAL (
        -- Each ends in a zero byte. A backslash of theirs is encoded as two: as \134, none stands before the digits
        -- 000. What is too long to be looked into is as if there were none. So are those of a partition's trigger: they
        -- are its table's.
        SELECT (string_to_array(replace(encode(short.bytes, 'escape'), E'\\\\', E'\\134'), E'\\000'))[:short.count]
                   AS arguments, short.count
        FROM (SELECT CASE WHEN is_short THEN g.tgargs ELSE '' END AS bytes,
                     CASE WHEN is_short THEN g.tgnargs ELSE 0 END AS count
              FROM (SELECT octet_length(g.tgargs) <= 8192 AND g.tgnargs <= 8 AND g.tgparentid = 0 AS is_short)
                       AS size) AS short
        OFFSET 0 -- what strangers have made long is read once
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
        -- The columns of these names, by the index: strangers choose how many columns and triggers there are. Each byte
        -- of a name has four letters at most; OFFSET 0 keeps them from being decoded again.
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
            FROM (SELECT w.position, graph_kernel.name_of(decode(w.name, 'escape')) AS name
                  FROM (VALUES (1, coalesce(first.reference, given.arguments[1])), (2, given.arguments[2]))
                           AS w (position, name)
                  WHERE octet_length(w.name) <= 4 * 63
                  OFFSET 0) AS n
            JOIN pg_attribute AS a ON a.attrelid = g.tgrelid AND a.attname = n.name
            JOIN pg_type AS t ON t.oid = a.atttypid
            WHERE a.attnum > 0 AND NOT a.attisdropped) AS c
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

-- A name for the successor of a trigger that no trigger and no constraint of the table has. Partitions are not looked
-- at, as there may be any number: one has such a name on purpose only, and then the command fails and does nothing.
CREATE FUNCTION graph_kernel.free_trigger_name(place regclass, guard oid) RETURNS name
LANGUAGE sql STABLE STRICT PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT n.name
    FROM (SELECT format('promotion_%s_%s', $2, generate_series(1, 1000000))::name AS name) AS n
    WHERE NOT EXISTS (SELECT FROM pg_trigger AS g WHERE g.tgrelid = $1 AND g.tgname = n.name)
      AND NOT EXISTS (SELECT FROM pg_constraint AS k WHERE k.conrelid = $1 AND k.contypid = 0 AND k.conname = n.name)
    LIMIT 1;
END;
COMMENT ON FUNCTION graph_kernel.free_trigger_name(regclass, oid) IS
    'a name that no trigger and no constraint of a table has';

-- The owners whose code this role trusts already, as it reads a graph and its store. A superuser is a member of every
-- role: membership says nothing of trust.
CREATE FUNCTION graph_kernel.trusted_owners(graph text) RETURNS oid[]
LANGUAGE sql STABLE STRICT PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT ARRAY(SELECT o.oid FROM pg_roles AS o WHERE o.rolsuper OR o.rolname = current_user
                 UNION
                 SELECT t.relowner FROM pg_class AS t
                 WHERE t.oid IN (SELECT s.store FROM graph_kernel.store_binding AS s WHERE s.name = $1
                                 UNION SELECT b.turns FROM graph_kernel.binding AS b
                                       WHERE b.is_current AND b.name = $1));
END;
COMMENT ON FUNCTION graph_kernel.trusted_owners(text) IS
    'the owners whose code this role trusts already, as it reads a graph and its store';

-- Whether a table belongs to one of these roles, with all that inherit from it, and so do their schemas: who owns one
-- puts another table in the place of a table there. Of another's nothing else is looked at: its children may be any
-- number.
CREATE FUNCTION graph_kernel.are_owned(place regclass, owners oid[]) RETURNS boolean
LANGUAGE sql STABLE STRICT PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    -- pg_partition_tree would lock what strangers have made.
    WITH RECURSIVE part (oid, owner, schema) AS (
        SELECT r.oid, r.relowner, r.relnamespace FROM pg_class AS r WHERE r.oid = $1
        UNION SELECT r.oid, r.relowner, r.relnamespace
              FROM part AS p JOIN pg_inherits AS h ON h.inhparent = p.oid JOIN pg_class AS r ON r.oid = h.inhrelid
              WHERE p.owner = ANY ($2)
    )
    SELECT coalesce(bool_and(p.owner = ANY ($2) AND CASE w.rolname WHEN 'pg_database_owner' THEN d.datdba
                                                                   ELSE n.nspowner END = ANY ($2)), false)
    FROM part AS p
    JOIN pg_namespace AS n ON n.oid = p.schema
    LEFT JOIN pg_roles AS w ON w.oid = n.nspowner
    JOIN pg_database AS d ON d.datname = current_database();
END;
COMMENT ON FUNCTION graph_kernel.are_owned(regclass, oid[]) IS
    'whether a table and its schema belong to these roles, with all that inherit from it';

-- Whether this role may read a table of rows that promote. What a table's owner has its readers run, this role runs: so
-- only tables of owners whose code it trusts. Of another's nothing else is looked at: its children may be any number.
CREATE FUNCTION graph_kernel.may_read_rows(place regclass, trusted oid[]) RETURNS boolean
LANGUAGE sql STABLE STRICT PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    -- pg_partition_tree would lock what strangers have made.
    WITH RECURSIVE part (oid) AS (
        SELECT r.oid FROM pg_class AS r WHERE r.oid = $1 AND r.relowner = ANY ($2)
        UNION SELECT h.inhrelid FROM part AS p JOIN pg_inherits AS h ON h.inhparent = p.oid
    )
    SELECT coalesce(bool_and(r.relkind IN ('r', 'p') AND r.relpersistence = 'p' AND r.relowner = ANY ($2)
                             AND has_schema_privilege(r.relnamespace, 'USAGE')), false)
    FROM part AS p JOIN pg_class AS r ON r.oid = p.oid;
END;
COMMENT ON FUNCTION graph_kernel.may_read_rows(regclass, oid[]) IS
    'whether this role may read a table of rows that promote, by the owners that it trusts';

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
    FROM (SELECT graph_kernel.trusted_owners($1) AS trusted OFFSET 0) AS o
    CROSS JOIN graph_kernel.promoting_triggers() AS g
    CROSS JOIN LATERAL (
        -- By their numbers: a name may be another one by now.
        SELECT coalesce(graph_kernel.may_read_rows(g.place, o.trusted) AND NOT row_security_active(g.place::oid)
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
