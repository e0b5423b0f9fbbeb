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

-- Whether an index finds rows by this column. On a partitioned table a unique index holds the
-- partition key too; an id met twice is found when slicing.
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

-- The command for a missing unique index; on a partitioned table it has to hold the partition key.
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

-- Definer's rights: the binding row is the extension's; who may call this is a matter of EXECUTE. It is called
-- while DROP EXTENSION waits.
CREATE FUNCTION graph_kernel.bind_tables_internal(turns regclass, edges regclass, columns jsonb) RETURNS uuid
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    described jsonb;
    bound uuid;
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
    INSERT INTO graph_kernel.binding AS b (turns, edges, columns)
    VALUES (bind_tables_internal.turns, bind_tables_internal.edges, bind_tables_internal.columns)
    ON CONFLICT (single) DO UPDATE SET
        -- Anything else bound is another graph: its tokens are told apart.
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
