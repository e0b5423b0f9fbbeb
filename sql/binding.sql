-- Tables that are to be the graph of a name, checked; the extension is in `schema`.
CREATE FUNCTION graph_kernel.describe_tables(
    turns oid, edges oid, columns jsonb, schema text, name text, binder oid
) RETURNS jsonb
    AS 'MODULE_PATHNAME', 'describe_tables_wrapper'
    LANGUAGE c STABLE PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp;
COMMENT ON FUNCTION graph_kernel.describe_tables(oid, oid, jsonb, text, text, oid) IS
    'checks tables for use as a graph and says what holds what';
-- The other functions take the name of a binding, so that one call reads the setting graph_kernel.graph once.
CREATE FUNCTION graph_kernel.chosen_graph() RETURNS text
    AS 'MODULE_PATHNAME', 'chosen_graph_wrapper'
    LANGUAGE c STABLE PARALLEL SAFE;
COMMENT ON FUNCTION graph_kernel.chosen_graph() IS 'the name in the setting graph_kernel.graph';
CREATE FUNCTION graph_kernel.describe_graph(graph text) RETURNS jsonb
    AS 'MODULE_PATHNAME', 'describe_graph_wrapper'
    LANGUAGE c STABLE STRICT PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp;
COMMENT ON FUNCTION graph_kernel.describe_graph(text) IS
    'a bound graph: its tables and what holds what';
CREATE FUNCTION graph_kernel.count_found(graph text, what text) RETURNS bigint
    AS 'MODULE_PATHNAME', 'count_found_wrapper'
    LANGUAGE c STABLE STRICT PARALLEL RESTRICTED COST 1000000 SET search_path = pg_catalog, pg_temp;
COMMENT ON FUNCTION graph_kernel.count_found(text, text) IS
    'how many rows of a bound graph have this finding of graph_check';
CREATE FUNCTION graph_kernel.roles_advice(graph text) RETURNS text
    AS 'MODULE_PATHNAME', 'roles_advice_wrapper'
    LANGUAGE c STABLE STRICT PARALLEL RESTRICTED COST 1000000 SET search_path = pg_catalog, pg_temp;
COMMENT ON FUNCTION graph_kernel.roles_advice(text) IS
    'how to say what names of roles mean that a bound graph has and that are not known';
CREATE FUNCTION graph_kernel.turns_in_cycles(graph text) RETURNS TABLE (turn_id uuid)
    AS 'MODULE_PATHNAME', 'turns_in_cycles_wrapper'
    LANGUAGE c STABLE STRICT PARALLEL RESTRICTED COST 1000000 SET search_path = pg_catalog, pg_temp;
COMMENT ON FUNCTION graph_kernel.turns_in_cycles(text) IS
    'the turns of a bound graph that lie on or between cycles; an error where it is too large';
CREATE FUNCTION graph_kernel.evaluate(graph text, place text) RETURNS void
    AS 'MODULE_PATHNAME', 'evaluate_wrapper'
    LANGUAGE c STABLE STRICT PARALLEL RESTRICTED COST 1000000 SET search_path = pg_catalog, pg_temp;
COMMENT ON FUNCTION graph_kernel.evaluate(text, text) IS
    'computes a bound expression for every row, and raises what it raises';
CREATE FUNCTION graph_kernel.raising_row(graph text, place text) RETURNS TABLE (row_table text, row_id text)
    AS 'MODULE_PATHNAME', 'raising_row_wrapper'
    LANGUAGE c STABLE STRICT COST 1000000 ROWS 1 SET search_path = pg_catalog, pg_temp;
COMMENT ON FUNCTION graph_kernel.raising_row(text, text) IS
    'the first row for which a bound expression raises an error';

-- pg_advisory_xact_lock takes the lock of any key for any role: this one is for those who may write the table.
CREATE FUNCTION graph_kernel.advisory_xact_lock(of_table regclass, key integer) RETURNS void
    AS 'MODULE_PATHNAME', 'advisory_xact_lock_wrapper'
    LANGUAGE c STRICT SET search_path = pg_catalog, pg_temp;
COMMENT ON FUNCTION graph_kernel.advisory_xact_lock(regclass, integer) IS
    'orders those who append to a table: a lock until the transaction ends, which its writers alone can take';

-- The command that creates an index. On a partitioned table it cannot run beside writers, and a unique one must
-- contain the partition key.
CREATE FUNCTION graph_kernel.index_command(
    table_id regclass, is_unique boolean, keys text[], include text[], is_exact boolean
) RETURNS text
LANGUAGE sql STABLE STRICT
SET search_path = pg_catalog, pg_temp
AS $$
    -- Expressions name functions without pg_catalog, as every index definition does. Where one does not take exactly
    -- the types that it is given, others may have a better match in the path of who runs this: the path is set in the
    -- same command then, in which nothing can run CONCURRENTLY.
    SELECT format(CASE WHEN is_exact THEN 'CREATE %1$sINDEX %2$sON %3$s (%4$s)%5$s;'
                  ELSE 'SET search_path = pg_catalog, pg_temp; CREATE %1$sINDEX ON %3$s (%4$s)%5$s; '
                       'RESET search_path;'
                  END,
                  CASE WHEN is_unique THEN 'UNIQUE ' ELSE '' END,
                  CASE WHEN c.relkind = 'p' THEN '' ELSE 'CONCURRENTLY ' END,
                  table_id, array_to_string($3 || p.partition, ', '),
                  CASE WHEN included.columns <> '' THEN format(' INCLUDE (%s)', included.columns) ELSE '' END)
    FROM pg_class AS c
    CROSS JOIN LATERAL (
        SELECT coalesce(array_agg(quote_ident(a.attname) ORDER BY k.position), '{}') AS partition
        FROM pg_partitioned_table AS p
        CROSS JOIN LATERAL unnest(p.partattrs::int2[]) WITH ORDINALITY AS k(attnum, position)
        JOIN pg_attribute AS a ON a.attrelid = p.partrelid AND a.attnum = k.attnum
        WHERE p.partrelid = table_id AND is_unique AND quote_ident(a.attname) <> ALL ($3)
    ) AS p
    CROSS JOIN LATERAL (
        SELECT coalesce(string_agg(i.name, ', ' ORDER BY i.position), '') AS columns
        FROM unnest($4) WITH ORDINALITY AS i (name, position)
        WHERE i.name <> ALL (p.partition)
    ) AS included
    WHERE c.oid = table_id
$$;
COMMENT ON FUNCTION graph_kernel.index_command(regclass, boolean, text[], text[], boolean) IS
    'the command that creates an index';

SET LOCAL search_path TO pg_catalog, pg_temp; -- what bodies parsed now are resolved by

-- The indexes that a described graph is read by, whether they exist, and the commands that create them.
CREATE FUNCTION graph_kernel.wanted_indexes(graph jsonb)
RETURNS TABLE (name text, found boolean, what text, command text)
LANGUAGE sql STABLE STRICT
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT w.name, w.found, format('index on %s (%s)', w.rel::regclass, array_to_string(w.searched, ', ')),
           CASE w.method
           WHEN 'gin' THEN format('CREATE INDEX %sON %s USING gin (%s);',
               (SELECT CASE WHEN c.relkind = 'p' THEN '' ELSE 'CONCURRENTLY ' END
                FROM pg_class AS c WHERE c.oid = w.rel),
               w.rel::regclass, w.keys[1])
           ELSE graph_kernel.index_command(w.rel::regclass, w.is_unique, w.keys, w.include, w.is_exact) END
    FROM jsonb_array_elements(graph -> 'indexes') WITH ORDINALITY AS listed (wanted, position)
    CROSS JOIN LATERAL jsonb_to_record(listed.wanted)
        AS w (name text, rel oid, is_unique boolean, found boolean, searched text[], keys text[], include text[],
            is_exact boolean, method text)
    ORDER BY listed.position;
END;
COMMENT ON FUNCTION graph_kernel.wanted_indexes(jsonb) IS
    'the indexes that a described graph is read by, whether they are there, and the commands that create them';

-- Called with definer's rights, as the binding belongs to the extension; EXECUTE decides who may call it. Called while
-- DROP EXTENSION has to wait. Nothing here plans or reads the tables, which runs code of their owner: that could change
-- the search_path that the statements below are parsed by.
CREATE FUNCTION graph_kernel.bind_tables_internal(
    turns regclass, edges regclass, columns jsonb, name text, binder oid
) RETURNS uuid
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    described jsonb;
    bound uuid;
    missing record;
    whole_key text;
    by_child regclass;
    -- The second table of edges has a column of its own.
    own_columns jsonb := CASE jsonb_typeof(columns) WHEN 'object' THEN columns - 'edges_by_child' ELSE columns END;
    extension_schema text := (SELECT n.nspname FROM pg_extension AS x JOIN pg_namespace AS n ON n.oid = x.extnamespace
                              WHERE x.extname = 'graph_kernel');
BEGIN
    IF turns IS NULL OR name IS NULL THEN
        RAISE EXCEPTION 'turns and name must not be null'
            USING ERRCODE = 'null_value_not_allowed', DETAIL = 'INVALID_BINDING';
    END IF;
    IF name = '' OR octet_length(name) > 63 THEN
        RAISE EXCEPTION 'the name of a graph must have 1 to 63 bytes'
            USING ERRCODE = 'invalid_parameter_value', DETAIL = 'INVALID_BINDING';
    END IF;
    IF octet_length(columns::text) > 262144 THEN
        RAISE EXCEPTION 'the mapping has more than 262144 bytes'
            USING ERRCODE = 'program_limit_exceeded', DETAIL = 'INVALID_BINDING',
                  HINT = 'Generate columns in the table, and name these.';
    END IF;
    described := graph_kernel.describe_tables(turns::oid, edges::oid, columns, extension_schema, name, binder);
    by_child := (described ->> 'edges_by_child')::oid;
    -- Without these every probe of a slice reads the whole table. An index on an expression has to be made for
    -- the binding; an id that is a column has a key.
    FOR missing IN
        SELECT i.name, i.what, i.command FROM graph_kernel.wanted_indexes(described) AS i
        WHERE NOT i.found AND i.name <> 'index_session'
    LOOP
        IF missing.name = 'index_turn_id' AND NOT described -> 'expressions' ? 'turns.id' THEN
            -- A key of several columns is an id as a whole, where its types have one text each. A partitioned table
            -- has such keys because of its partitions.
            whole_key := (
                SELECT CASE WHEN count(*) > 1 AND bool_or(a.attname = described #>> '{turns,columns,id}')
                             AND bool_and(a.atttypid = ANY ('{text,varchar,bpchar,uuid,int2,int4,int8}'::regtype[]))
                       THEN string_agg(format(CASE WHEN a.has_slash_before_another
                                                   THEN 'graph_turn_id((%I)::text)::text' ELSE '(%I)::text' END,
                                              a.attname), ', ''/'', ' ORDER BY a.position) END
                FROM (SELECT a.attname, a.atttypid, k.position,
                             -- Of two texts, each may have the slash that divides them.
                             coalesce(lead(a.attnum) OVER (
                                 PARTITION BY a.atttypid = ANY ('{text,varchar,bpchar}'::regtype[])
                                 ORDER BY k.position) IS NOT NULL
                                 AND a.atttypid = ANY ('{text,varchar,bpchar}'::regtype[]), false)
                                 AS has_slash_before_another
                      FROM pg_index AS i
                      JOIN pg_class AS r ON r.oid = i.indrelid AND r.relkind = 'r'
                      CROSS JOIN LATERAL unnest(i.indkey::int2[]) WITH ORDINALITY AS k (attnum, position)
                      JOIN pg_attribute AS a ON a.attrelid = i.indrelid AND a.attnum = k.attnum
                      WHERE i.indrelid = turns AND i.indisprimary AND k.position <= i.indnkeyatts) AS a);
            RAISE EXCEPTION 'table % has no unique index on column "%"', turns,
                described #>> '{turns,columns,id}'
                USING ERRCODE = 'invalid_table_definition', DETAIL = 'GRAPH_TABLES', HINT = coalesce(
                    format('If the whole primary key is the id, compute parents likewise: SELECT'
                           ' graph_kernel.bind_tables(%L, %L, %L, %L); if the column alone is unique: ', turns, edges,
                           coalesce(columns, '{}') || jsonb_build_object('turns',
                               coalesce(columns -> 'turns', '{}') || jsonb_build_object('id',
                                   jsonb_build_object('expression', 'graph_turn_id(' || whole_key || ')'))), name)
                    || CASE WHEN whole_key IS NULL THEN NULL ELSE missing.command END, missing.command);
        END IF;
        RAISE NOTICE 'there is no %', missing.what USING HINT = missing.command;
    END LOOP;
    LOCK TABLE graph_kernel.binding IN SHARE ROW EXCLUSIVE MODE;
    -- Other tables or columns are another graph, with another name in its tokens; the same ones get theirs back. The
    -- name of a graph that was bound in a database that this one is a copy of stays that database's.
    bound := (SELECT b.graph FROM graph_kernel.binding AS b
              WHERE b.name = name AND b.turns = turns AND b.edges IS NOT DISTINCT FROM edges
                AND b.edges_by_child IS NOT DISTINCT FROM by_child
                AND b.columns IS NOT DISTINCT FROM own_columns
                AND b.resolved = described -> 'resolved'
                AND b.database = (SELECT d.oid FROM pg_database AS d WHERE d.datname = current_database())
              ORDER BY b.is_current DESC, b.bound_at DESC LIMIT 1);
    UPDATE graph_kernel.binding AS b SET is_current = false
    WHERE b.name = name AND b.is_current AND b.graph IS DISTINCT FROM bound;
    IF bound IS NULL THEN
        INSERT INTO graph_kernel.binding AS b (name, is_current, turns, edges, columns, resolved, bound_by, binder,
                                              edges_by_child)
        VALUES (name, true, turns, edges, own_columns, described -> 'resolved',
                pg_get_userbyid(binder), binder, by_child)
        RETURNING b.graph INTO bound;
    ELSE
        UPDATE graph_kernel.binding AS b
        SET is_current = true, resolved = described -> 'resolved', bound_by = pg_get_userbyid(binder), binder = binder,
            bound_at = now()
        WHERE b.graph = bound;
    END IF;
    RETURN bound;
END
$$;
COMMENT ON FUNCTION graph_kernel.bind_tables_internal(regclass, regclass, jsonb, text, oid) IS 'bind_tables';

CREATE FUNCTION graph_kernel.bind_tables_for(
    turns regclass, edges regclass, columns jsonb, name text, binder oid
) RETURNS uuid
LANGUAGE sql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT FROM graph_kernel.binding LIMIT 0; -- DROP EXTENSION waits
    SELECT graph_kernel.bind_tables_internal($1, $2, $3, $4, $5);
END;
COMMENT ON FUNCTION graph_kernel.bind_tables_for(regclass, regclass, jsonb, text, oid) IS 'bind_tables, for its caller';

-- With its caller's rights: a function with definer's rights does not know its caller. The library calls
-- bind_tables_for, which no role may execute, with the caller as the last argument. What the mapping leaves out is said
-- after that, with the caller's rights.
CREATE FUNCTION graph_kernel.bind_tables(
    turns regclass,
    edges regclass DEFAULT NULL,
    columns jsonb DEFAULT NULL,
    name text DEFAULT 'default'
) RETURNS uuid
    AS 'MODULE_PATHNAME', 'bind_tables_wrapper'
    LANGUAGE c VOLATILE SET search_path = pg_catalog, pg_temp;
COMMENT ON FUNCTION graph_kernel.bind_tables(regclass, regclass, jsonb, text) IS
    'makes these tables the graph of this name; returns the name of the graph in attestations';

CREATE FUNCTION graph_kernel.unbind_tables_internal(name text) RETURNS void
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_variable
BEGIN
    IF name IS NULL THEN
        RAISE EXCEPTION 'name must not be null'
            USING ERRCODE = 'null_value_not_allowed', DETAIL = 'INVALID_BINDING';
    END IF;
    IF NOT graph_kernel.is_text(name) THEN
        RAISE EXCEPTION 'the name of a graph is not UTF-8'
            USING ERRCODE = 'character_not_in_repertoire', DETAIL = 'INVALID_TEXT', HINT = 'Give UTF-8.';
    END IF;
    UPDATE graph_kernel.binding AS b SET is_current = false WHERE b.name = name AND b.is_current;
    IF NOT FOUND AND name <> 'default' THEN
        RAISE EXCEPTION 'there is no graph "%"', name
            USING ERRCODE = 'undefined_object', DETAIL = 'GRAPH_NOT_FOUND',
                  HINT = 'SELECT name FROM graph_kernel.bindings WHERE is_current;';
    END IF;
END
$$;
COMMENT ON FUNCTION graph_kernel.unbind_tables_internal(text) IS 'unbind_tables';

CREATE FUNCTION graph_kernel.unbind_tables_for(name text) RETURNS void
LANGUAGE sql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT FROM graph_kernel.binding LIMIT 0; -- DROP EXTENSION waits
    SELECT graph_kernel.unbind_tables_internal($1);
END;
COMMENT ON FUNCTION graph_kernel.unbind_tables_for(text) IS 'unbind_tables, for its caller';

-- The library calls unbind_tables_for, which no role may execute.
CREATE FUNCTION graph_kernel.unbind_tables(name text DEFAULT 'default') RETURNS void
    AS 'MODULE_PATHNAME', 'unbind_tables_wrapper'
    LANGUAGE c VOLATILE SET search_path = pg_catalog, pg_temp;
COMMENT ON FUNCTION graph_kernel.unbind_tables(text) IS
    'takes the name from a graph; public.memory_turns and public.memory_turn_edges are the default graph again';

SET LOCAL search_path TO @extschema@, pg_temp;
