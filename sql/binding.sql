CREATE FUNCTION graph_kernel.describe_tables(turns oid, edges oid, columns jsonb) RETURNS jsonb
    AS 'MODULE_PATHNAME', 'describe_tables_wrapper'
    LANGUAGE c STABLE PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp;
CREATE FUNCTION graph_kernel.describe_graph() RETURNS jsonb
    AS 'MODULE_PATHNAME', 'describe_graph_wrapper'
    LANGUAGE c STABLE PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp;
CREATE FUNCTION graph_kernel.count_found(what text) RETURNS bigint
    AS 'MODULE_PATHNAME', 'count_found_wrapper'
    LANGUAGE c STABLE STRICT PARALLEL RESTRICTED COST 1000000 SET search_path = pg_catalog, pg_temp;
CREATE FUNCTION graph_kernel.turns_in_cycles() RETURNS bigint
    AS 'MODULE_PATHNAME', 'turns_in_cycles_wrapper'
    LANGUAGE c STABLE PARALLEL RESTRICTED COST 1000000 SET search_path = pg_catalog, pg_temp;

-- Whether an index finds rows by this column. On a partitioned table a unique index contains the partition key too;
-- a duplicate id is found when slicing.
CREATE FUNCTION graph_kernel.has_index(table_id regclass, column_name text, is_unique boolean)
RETURNS boolean
LANGUAGE sql STABLE STRICT
SET search_path = pg_catalog, pg_temp
AS $$
    SELECT EXISTS (
        SELECT FROM pg_index AS i
        JOIN pg_class AS c ON c.oid = i.indrelid
        JOIN pg_attribute AS a ON a.attrelid = i.indrelid
        WHERE i.indrelid = table_id
          AND i.indisvalid AND i.indpred IS NULL
          AND a.attname = column_name
          AND i.indkey[0] = a.attnum
          AND (NOT is_unique OR i.indisunique AND (i.indnkeyatts = 1 OR c.relkind = 'p'))
    )
$$;

-- The command that creates the unique index; on a partitioned table it must contain the partition key.
CREATE FUNCTION graph_kernel.unique_index_command(table_id regclass, column_name text) RETURNS text
LANGUAGE sql STABLE STRICT
SET search_path = pg_catalog, pg_temp
AS $$
    SELECT format('CREATE UNIQUE INDEX ON %s (%I%s);', table_id, column_name,
        (SELECT string_agg(format(', %I', a.attname), '' ORDER BY k.position)
         FROM pg_partitioned_table AS p
         CROSS JOIN LATERAL unnest(p.partattrs::int2[]) WITH ORDINALITY AS k(attnum, position)
         JOIN pg_attribute AS a ON a.attrelid = p.partrelid AND a.attnum = k.attnum
         WHERE p.partrelid = table_id AND a.attname <> column_name))
$$;

SET LOCAL search_path TO pg_catalog, pg_temp; -- what bodies parsed now are resolved by

-- The indexes that a described graph is read by, whether they exist, and the commands that create them. An index on
-- an absent column, which is null in the description, is not wanted.
CREATE FUNCTION graph_kernel.wanted_indexes(graph jsonb)
RETURNS TABLE (name text, found boolean, what text, command text)
LANGUAGE sql STABLE STRICT
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT v.name, graph_kernel.has_index(v.rel, v.columns[1], v.is_unique),
           format('index on %s (%I)', v.rel, v.columns[1]), i.command
    FROM (SELECT (graph #>> '{turns,oid}')::oid::regclass, graph #> '{turns,columns}',
                 (graph #>> '{edges,oid}')::oid::regclass, graph #> '{edges,columns}') AS g (turns, t, edges, e)
    CROSS JOIN LATERAL (VALUES
        ('index_turn_id', g.turns, ARRAY[g.t ->> 'id'], true,
         rtrim(graph_kernel.unique_index_command(g.turns, g.t ->> 'id'), ';')
         || CASE WHEN g.t ->> 'phase' IS NULL OR g.t ->> 'salience' IS NULL THEN ';'
                 ELSE format(' INCLUDE (%I, %I);', g.t ->> 'phase', g.t ->> 'salience') END),
        ('index_edge_parent', g.edges, ARRAY[g.e ->> 'parent', g.e ->> 'child', g.e ->> 'edge_type'], false, NULL),
        ('index_edge_child', g.edges, ARRAY[g.e ->> 'child', g.e ->> 'parent', g.e ->> 'edge_type'], false, NULL),
        ('index_session', g.turns, ARRAY[g.t ->> 'session_id', g.t ->> 'created_at'], false, NULL)
    ) AS v (name, rel, columns, is_unique, command)
    CROSS JOIN LATERAL (SELECT coalesce(v.command, format('CREATE INDEX ON %s (%s);', v.rel,
        (SELECT string_agg(quote_ident(k.name), ', ' ORDER BY k.position)
         FROM unnest(v.columns) WITH ORDINALITY AS k (name, position) WHERE k.name IS NOT NULL)))) AS i (command)
    WHERE v.columns[1] IS NOT NULL AND NOT (v.name = 'index_session' AND v.columns[2] IS NULL);
END;

-- Called with definer's rights, as the binding belongs to the extension; EXECUTE decides who may call it. Called while
-- DROP EXTENSION has to wait.
CREATE FUNCTION graph_kernel.bind_tables_internal(turns regclass, edges regclass, columns jsonb) RETURNS uuid
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    described jsonb;
    bound uuid;
    missing record;
BEGIN
    IF turns IS NULL OR edges IS NULL THEN
        RAISE EXCEPTION 'turns and edges must not be null'
            USING ERRCODE = 'null_value_not_allowed', DETAIL = 'INVALID_BINDING';
    END IF;
    described := graph_kernel.describe_tables(turns::oid, edges::oid, columns);
    IF NOT graph_kernel.has_index(turns, described #>> '{turns,columns,id}', true) THEN
        RAISE EXCEPTION 'table % has no unique index on column "%"', turns,
            described #>> '{turns,columns,id}'
            USING ERRCODE = 'invalid_table_definition', DETAIL = 'GRAPH_TABLES',
                  HINT = graph_kernel.unique_index_command(turns,
                                                           described #>> '{turns,columns,id}');
    END IF;
    -- Without these every probe of a slice reads the whole table.
    FOR missing IN
        SELECT i.what, i.command FROM graph_kernel.wanted_indexes(described) AS i
        WHERE NOT i.found AND i.name IN ('index_edge_parent', 'index_edge_child')
    LOOP
        RAISE NOTICE 'there is no %', missing.what USING HINT = missing.command;
    END LOOP;
    INSERT INTO graph_kernel.binding AS b (turns, edges, columns)
    VALUES (bind_tables_internal.turns, bind_tables_internal.edges, bind_tables_internal.columns)
    ON CONFLICT (single) DO UPDATE SET
        -- Other tables or columns are another graph, with another name in its tokens.
        graph = CASE WHEN (b.turns, b.edges) = (excluded.turns, excluded.edges)
                          AND b.columns IS NOT DISTINCT FROM excluded.columns
                     THEN b.graph ELSE excluded.graph END,
        turns = excluded.turns,
        edges = excluded.edges,
        columns = excluded.columns
    RETURNING graph INTO bound;
    RETURN bound;
END
$$;

CREATE FUNCTION graph_kernel.bind_tables(
    turns regclass,
    edges regclass,
    columns jsonb DEFAULT NULL
) RETURNS uuid
LANGUAGE sql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT FROM graph_kernel.binding LIMIT 0; -- DROP EXTENSION waits
    SELECT graph_kernel.bind_tables_internal($1, $2, $3);
END;

CREATE FUNCTION graph_kernel.unbind_tables() RETURNS void
LANGUAGE sql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    DELETE FROM graph_kernel.binding;
END;

SET LOCAL search_path TO @extschema@, pg_temp;
