CREATE FUNCTION graph_kernel.search_slice_body(
    query_embedding real[], anchor uuid, policy @extschema@.slice_policy, limit_count integer,
    min_similarity real, min_salience real, query_text text, options jsonb
) RETURNS json
    AS 'MODULE_PATHNAME', 'search_slice_body_wrapper'
    LANGUAGE c STABLE PARALLEL RESTRICTED COST 10000 SET search_path = pg_catalog, pg_temp;
COMMENT ON FUNCTION graph_kernel.search_slice_body(
    real[], uuid, @extschema@.slice_policy, integer, real, real, text, jsonb) IS
    'graph_search_slice as the body of a response';
CREATE FUNCTION graph_kernel.search_export_body(
    query_embedding real[], slice json, limit_count integer, min_similarity real, min_salience real, query_text text,
    options jsonb
) RETURNS json
    AS 'MODULE_PATHNAME', 'search_export_body_wrapper'
    LANGUAGE c STABLE PARALLEL RESTRICTED COST 10000 SET search_path = pg_catalog, pg_temp;
COMMENT ON FUNCTION graph_kernel.search_export_body(real[], json, integer, real, real, text, jsonb) IS
    'graph_search_export as the body of a response';
CREATE FUNCTION graph_kernel.search_body(
    query_embedding real[], query_text text, limit_count integer, filter jsonb
) RETURNS json
    AS 'MODULE_PATHNAME', 'search_body_wrapper'
    LANGUAGE c STABLE PARALLEL RESTRICTED COST 10000 SET search_path = pg_catalog, pg_temp;
COMMENT ON FUNCTION graph_kernel.search_body(real[], text, integer, jsonb) IS
    'graph_search as the body of a response';
CREATE FUNCTION graph_kernel.provenance_reason(provenance jsonb) RETURNS text
    AS 'MODULE_PATHNAME', 'provenance_reason_wrapper'
    LANGUAGE c STABLE PARALLEL SAFE COST 1000 SET search_path = pg_catalog, pg_temp;
COMMENT ON FUNCTION graph_kernel.provenance_reason(jsonb) IS
    'ok, or why what a search retrieved must not be promoted';

CREATE TABLE graph_kernel.trace_binding (
    single boolean PRIMARY KEY DEFAULT true CHECK (single),
    traces graph_kernel.bound_relation NOT NULL,
    bound_by text NOT NULL,
    binder graph_kernel.bound_role NOT NULL,
    CONSTRAINT encoding CHECK (graph_kernel.require_role_name(bound_by))
);
COMMENT ON TABLE graph_kernel.trace_binding IS 'the table that holds the traces; empty: none';
COMMENT ON COLUMN graph_kernel.trace_binding.single IS 'keeps the table to one row';
COMMENT ON COLUMN graph_kernel.trace_binding.traces IS 'table of the traces';
COMMENT ON COLUMN graph_kernel.trace_binding.binder IS
    'the role that bound the table, which must be allowed to insert there; 0: one that a restore did not find';

-- A table that is to be the table of traces, checked.
CREATE FUNCTION graph_kernel.check_trace_table(traces oid, binder oid) RETURNS void
    AS 'MODULE_PATHNAME', 'check_trace_table_wrapper'
    LANGUAGE c STABLE PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp;
COMMENT ON FUNCTION graph_kernel.check_trace_table(oid, oid) IS 'checks a table for use as the table of traces';

SET LOCAL search_path TO pg_catalog, pg_temp; -- what bodies parsed now are resolved by

-- Called with definer's rights, as the binding belongs to the extension; EXECUTE decides who may call it. Called while
-- DROP EXTENSION has to wait.
CREATE FUNCTION graph_kernel.bind_traces_internal(traces regclass, binder oid) RETURNS void
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    missing text;
BEGIN
    IF traces IS NULL THEN
        RAISE EXCEPTION 'traces must not be null'
            USING ERRCODE = 'null_value_not_allowed', DETAIL = 'INVALID_BINDING';
    END IF;
    PERFORM graph_kernel.check_trace_table(traces::oid, binder);
    SELECT string_agg(c.name, ', ' ORDER BY c.position) INTO missing
    FROM unnest('{id,retrieval_mode,is_admissible,slice_id,admissibility_token,provenance}'::name[])
        WITH ORDINALITY AS c (name, position)
    WHERE NOT EXISTS (SELECT FROM pg_attribute AS a
                      WHERE a.attrelid = bind_traces_internal.traces AND a.attname = c.name AND NOT a.attisdropped);
    IF missing IS NOT NULL THEN
        RAISE EXCEPTION 'relation % has no column %', traces, missing
            USING ERRCODE = 'undefined_column', DETAIL = 'TRACE_TABLE',
                  HINT = CASE missing
                         WHEN 'provenance' THEN format('ALTER TABLE %s ADD COLUMN provenance jsonb;', traces)
                         ELSE 'SELECT graph_kernel.create_trace_table();' END;
    END IF;
    LOCK TABLE graph_kernel.trace_binding IN SHARE ROW EXCLUSIVE MODE;
    DELETE FROM graph_kernel.trace_binding;
    INSERT INTO graph_kernel.trace_binding (traces, bound_by, binder)
    VALUES (traces, pg_get_userbyid(binder), binder);
END
$$;
COMMENT ON FUNCTION graph_kernel.bind_traces_internal(regclass, oid) IS 'bind_traces';

CREATE FUNCTION graph_kernel.bind_traces_for(traces regclass, binder oid) RETURNS void
LANGUAGE sql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT FROM graph_kernel.trace_binding LIMIT 0; -- DROP EXTENSION waits
    SELECT graph_kernel.bind_traces_internal($1, $2);
END;
COMMENT ON FUNCTION graph_kernel.bind_traces_for(regclass, oid) IS 'bind_traces, for its caller';

CREATE FUNCTION graph_kernel.bind_traces(traces regclass) RETURNS void
    AS 'MODULE_PATHNAME', 'bind_traces_wrapper'
    LANGUAGE c VOLATILE SET search_path = pg_catalog, pg_temp;
COMMENT ON FUNCTION graph_kernel.bind_traces(regclass) IS 'makes graph_trace write to this table';

-- Invoker's rights: the table belongs to the caller. Binding it takes EXECUTE on bind_traces.
CREATE FUNCTION graph_kernel.make_trace_table(schema name) RETURNS regclass
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    taken name;
    other regrole; -- its owner, where that is somebody else
BEGIN
    IF schema IS NULL THEN
        RAISE EXCEPTION 'schema must not be null'
            USING ERRCODE = 'null_value_not_allowed', DETAIL = 'INVALID_SCHEMA';
    END IF;
    IF schema = '' THEN
        RAISE EXCEPTION 'schema must not be empty'
            USING ERRCODE = 'invalid_parameter_value', DETAIL = 'INVALID_SCHEMA',
                  HINT = 'SELECT graph_kernel.create_trace_table(''public'');';
    END IF;
    PERFORM graph_kernel.require_text(schema);
    -- A table of others runs their code with the rights of whoever uses it: no hint leads there.
    SELECT r.relname, CASE WHEN o.rolname <> current_user AND NOT o.rolsuper THEN o.oid::regrole END INTO taken, other
    FROM pg_class AS r JOIN pg_namespace AS n ON n.oid = r.relnamespace JOIN pg_roles AS o ON o.oid = r.relowner
    WHERE n.nspname = schema AND r.relname = 'retrieval_traces';
    IF FOUND THEN
        RAISE EXCEPTION 'table % already exists%', format('%I.%I', schema, taken),
            coalesce(', and belongs to ' || other, '')
            USING ERRCODE = 'duplicate_table', DETAIL = 'TABLE_EXISTS',
                  HINT = CASE WHEN other IS NOT NULL THEN 'SELECT graph_kernel.create_trace_table(''<your schema>'');'
                         ELSE format('SELECT graph_kernel.bind_traces(%L);',
                                     format('%I.retrieval_traces', schema)) END;
    END IF;
    EXECUTE pg_catalog.format(
        'CREATE TABLE %1$I.retrieval_traces (
            id uuid PRIMARY KEY,
            retrieval_mode text NOT NULL CHECK (retrieval_mode IN (''slice'', ''global'')),
            is_admissible boolean NOT NULL,
            slice_id text,
            admissibility_token text,
            provenance jsonb NOT NULL,
            created_at timestamptz NOT NULL DEFAULT pg_catalog.now()
        )', schema);
    EXECUTE pg_catalog.format(
        'CREATE INDEX retrieval_traces_admissible_idx ON %1$I.retrieval_traces (is_admissible, created_at)',
        schema);
    EXECUTE pg_catalog.format(
        'CREATE INDEX retrieval_traces_slice_idx ON %1$I.retrieval_traces (slice_id)', schema);
    EXECUTE pg_catalog.format(
        'COMMENT ON TABLE %1$I.retrieval_traces IS ''searches and what they found''', schema);
    RETURN pg_catalog.format('%I.retrieval_traces', schema);
END
$$;
COMMENT ON FUNCTION graph_kernel.make_trace_table(name) IS 'creates retrieval_traces, owned by the caller';

CREATE FUNCTION graph_kernel.create_trace_table_internal(schema name) RETURNS void
LANGUAGE sql VOLATILE
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT graph_kernel.bind_traces(graph_kernel.make_trace_table($1));
END;
COMMENT ON FUNCTION graph_kernel.create_trace_table_internal(name) IS 'create_trace_table';

-- The library calls create_trace_table_internal.
CREATE FUNCTION graph_kernel.create_trace_table(schema name DEFAULT 'public') RETURNS void
    AS 'MODULE_PATHNAME', 'create_trace_table_wrapper'
    LANGUAGE c VOLATILE SET search_path = pg_catalog, pg_temp;
COMMENT ON FUNCTION graph_kernel.create_trace_table(name) IS
    'creates retrieval_traces with its indexes, owned by the caller, and binds it';

-- Invoker's rights: a caller needs INSERT on the bound table.
CREATE FUNCTION graph_kernel.write_trace(provenance jsonb) RETURNS uuid
    AS 'MODULE_PATHNAME', 'write_trace_wrapper'
    LANGUAGE c VOLATILE COST 1000 SET search_path = pg_catalog, pg_temp;
COMMENT ON FUNCTION graph_kernel.write_trace(jsonb) IS 'adds a row to the trace table';

CREATE FUNCTION @extschema@.graph_trace(provenance jsonb) RETURNS uuid
LANGUAGE sql VOLATILE STRICT
SET search_path = pg_catalog, pg_temp
RETURN graph_kernel.write_trace(provenance);
COMMENT ON FUNCTION @extschema@.graph_trace(jsonb) IS 'stores the provenance of a search; returns its query_id';

SET LOCAL search_path TO @extschema@, pg_temp;
