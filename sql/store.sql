-- Stores of documents: slices and records of prompts that are kept once and referred to by the SHA-256 of their
-- canonical bytes. A slice_id is not a key: two slices can be made to share one.

CREATE TABLE graph_kernel.store_binding (
    name text PRIMARY KEY,
    store graph_kernel.bound_relation NOT NULL,
    bound_by text NOT NULL,
    binder graph_kernel.bound_role NOT NULL,
    CONSTRAINT encoding CHECK (graph_kernel.require_text(name) AND graph_kernel.require_role_name(bound_by))
);
COMMENT ON TABLE graph_kernel.store_binding IS 'the tables that keep documents of graphs';
COMMENT ON COLUMN graph_kernel.store_binding.name IS 'name of the binding of the graph';
COMMENT ON COLUMN graph_kernel.store_binding.store IS 'table of the documents';
COMMENT ON COLUMN graph_kernel.store_binding.binder IS
    'the role that bound the table, which must be allowed to read it and insert there; 0: one that a restore did not'
    ' find';

-- A table that is to be the store of a graph, checked.
CREATE FUNCTION graph_kernel.check_store(store oid, graph text, binder oid) RETURNS jsonb
    AS 'MODULE_PATHNAME', 'check_store_wrapper'
    LANGUAGE c STABLE PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp;
COMMENT ON FUNCTION graph_kernel.check_store(oid, text, oid) IS 'checks a table for use as a store of documents';
CREATE FUNCTION graph_kernel.describe_store(graph text) RETURNS jsonb
    AS 'MODULE_PATHNAME', 'describe_store_wrapper'
    LANGUAGE c STABLE STRICT PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp;
COMMENT ON FUNCTION graph_kernel.describe_store(text) IS
    'the store that is bound for a graph; NULL where there is none';

CREATE FUNCTION graph_kernel.unfit_documents(graph text) RETURNS TABLE (key text, fault text)
    AS 'MODULE_PATHNAME', 'unfit_documents_wrapper'
    LANGUAGE c STABLE STRICT PARALLEL RESTRICTED COST 1000000 ROWS 10 SET search_path = pg_catalog, pg_temp;
COMMENT ON FUNCTION graph_kernel.unfit_documents(text) IS
    'the rows of the store of a graph that are not what their documents say';
CREATE FUNCTION graph_kernel.missing_references(graph text, place oid, reference text) RETURNS bigint
    AS 'MODULE_PATHNAME', 'missing_references_wrapper'
    LANGUAGE c STABLE STRICT PARALLEL UNSAFE COST 1000000 SET search_path = pg_catalog, pg_temp;
COMMENT ON FUNCTION graph_kernel.missing_references(text, oid, text) IS
    'how many rows of a table refer to documents that the store of a graph has not; NULL where it cannot be read';
CREATE FUNCTION graph_kernel.count_references(place oid, reference text) RETURNS TABLE (key text, found bigint)
    AS 'MODULE_PATHNAME', 'count_references_wrapper'
    LANGUAGE c STABLE STRICT PARALLEL UNSAFE COST 1000000 ROWS 1000 SET search_path = pg_catalog, pg_temp;
COMMENT ON FUNCTION graph_kernel.count_references(oid, text) IS
    'how many rows of a table refer to each document; one row of NULLs where it cannot be read';

SET LOCAL search_path TO pg_catalog, pg_temp; -- what bodies parsed now are resolved by

-- The command that makes an index by which the documents of a turn are found.
CREATE FUNCTION graph_kernel.turns_index_command(store regclass) RETURNS text
LANGUAGE sql STABLE STRICT
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT format('CREATE INDEX %sON %s USING gin (turns);',
                  CASE WHEN c.relkind = 'p' THEN '' ELSE 'CONCURRENTLY ' END, c.oid::regclass)
    FROM pg_class AS c WHERE c.oid = $1;
END;
COMMENT ON FUNCTION graph_kernel.turns_index_command(regclass) IS
    'the command that makes an index by which the documents of a turn are found';

-- Called with definer's rights, as the binding belongs to the extension; EXECUTE decides who may call it. Called while
-- DROP EXTENSION has to wait.
CREATE FUNCTION graph_kernel.bind_store_internal(store regclass, name text, binder oid) RETURNS void
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    described jsonb;
BEGIN
    IF store IS NULL OR name IS NULL THEN
        RAISE EXCEPTION 'store and name must not be null'
            USING ERRCODE = 'null_value_not_allowed', DETAIL = 'INVALID_BINDING';
    END IF;
    PERFORM graph_kernel.require_text(name);
    IF name <> 'default' AND NOT EXISTS (SELECT FROM graph_kernel.binding AS b WHERE b.is_current AND b.name = name)
        THEN
        RAISE EXCEPTION 'there is no graph "%"', name
            USING ERRCODE = 'undefined_object', DETAIL = 'GRAPH_NOT_FOUND',
                  HINT = 'SELECT name FROM graph_kernel.bindings WHERE is_current;';
    END IF;
    described := graph_kernel.check_store(store::oid, name, binder);
    IF NOT EXISTS (
        SELECT FROM pg_index AS i
        JOIN pg_class AS c ON c.oid = i.indrelid
        JOIN pg_attribute AS a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0]
        WHERE i.indrelid = store AND i.indisunique AND i.indisvalid AND i.indpred IS NULL AND a.attname = 'key'
          AND (i.indnkeyatts = 1 OR c.relkind = 'p')
    ) THEN
        RAISE EXCEPTION 'table % has no unique index on column "key"', store
            USING ERRCODE = 'invalid_table_definition', DETAIL = 'STORE_TABLE',
                  HINT = graph_kernel.index_command(store, true, '{key}', '{}', true);
    END IF;
    IF NOT (SELECT a.attnotnull FROM pg_attribute AS a WHERE a.attrelid = store AND a.attname = 'key') THEN
        RAISE EXCEPTION 'column "key" of table % may be null', store
            USING ERRCODE = 'invalid_table_definition', DETAIL = 'STORE_TABLE',
                  HINT = format('ALTER TABLE %s ALTER COLUMN key SET NOT NULL;', store);
    END IF;
    IF NOT (described -> 'has_turns_index')::boolean THEN
        RAISE NOTICE 'there is no index on % (turns)', store USING HINT = graph_kernel.turns_index_command(store);
    END IF;
    LOCK TABLE graph_kernel.store_binding IN SHARE ROW EXCLUSIVE MODE;
    DELETE FROM graph_kernel.store_binding AS b WHERE b.name = name;
    INSERT INTO graph_kernel.store_binding (name, store, bound_by, binder)
    VALUES (name, store, pg_get_userbyid(binder), binder);
END
$$;
COMMENT ON FUNCTION graph_kernel.bind_store_internal(regclass, text, oid) IS 'bind_store';

CREATE FUNCTION graph_kernel.bind_store_for(store regclass, name text, binder oid) RETURNS void
LANGUAGE sql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT FROM graph_kernel.store_binding LIMIT 0; -- DROP EXTENSION waits
    SELECT graph_kernel.bind_store_internal($1, $2, $3);
END;
COMMENT ON FUNCTION graph_kernel.bind_store_for(regclass, text, oid) IS 'bind_store, for its caller';

CREATE FUNCTION graph_kernel.bind_store(store regclass, name text DEFAULT 'default') RETURNS void
    AS 'MODULE_PATHNAME', 'bind_store_wrapper'
    LANGUAGE c VOLATILE SET search_path = pg_catalog, pg_temp;
COMMENT ON FUNCTION graph_kernel.bind_store(regclass, text) IS
    'makes graph_keep and the triggers that promote use this table for documents of a graph';

CREATE FUNCTION graph_kernel.unbind_store(name text DEFAULT 'default') RETURNS void
LANGUAGE sql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT graph_kernel.require_text($1);
    DELETE FROM graph_kernel.store_binding AS b WHERE b.name = $1;
END;
COMMENT ON FUNCTION graph_kernel.unbind_store(text) IS 'takes the store from a graph; its table stays as it is';

-- Invoker's rights: the table belongs to the caller, not to the extension.
CREATE FUNCTION graph_kernel.make_slice_store(schema name) RETURNS regclass
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
                  HINT = 'SELECT graph_kernel.create_slice_store(''public'');';
    END IF;
    PERFORM graph_kernel.require_text(schema);
    -- A table of others runs their code with the rights of whoever uses it: no hint leads there.
    SELECT r.relname, CASE WHEN o.rolname <> current_user AND NOT o.rolsuper THEN o.oid::regrole END INTO taken, other
    FROM pg_class AS r JOIN pg_namespace AS n ON n.oid = r.relnamespace JOIN pg_roles AS o ON o.oid = r.relowner
    WHERE n.nspname = schema AND r.relname = 'slice_store';
    IF FOUND THEN
        RAISE EXCEPTION 'table % already exists%', format('%I.%I', schema, taken),
            coalesce(', and belongs to ' || other, '')
            USING ERRCODE = 'duplicate_table', DETAIL = 'TABLE_EXISTS',
                  HINT = CASE WHEN other IS NOT NULL THEN 'SELECT graph_kernel.create_slice_store(''<your schema>'');'
                         ELSE format('SELECT graph_kernel.bind_store(%L);', format('%I.slice_store', schema)) END;
    END IF;
    EXECUTE pg_catalog.format(
        'CREATE TABLE %1$I.slice_store (
            key text COLLATE "C" PRIMARY KEY CHECK (key ~ ''^[0-9a-f]{64}$''),
            document bytea NOT NULL,
            kind text NOT NULL CHECK (kind IN (''slice'', ''prompt'')),
            graph text NOT NULL,
            role text NOT NULL,
            rls boolean NOT NULL,
            anchor uuid NOT NULL,
            turns uuid[] NOT NULL,
            kept_by text NOT NULL,
            kept_at timestamptz NOT NULL,
            checked_at timestamptz,
            status text,
            superseded_by text COLLATE "C",
            CONSTRAINT lengths CHECK (
                pg_catalog.octet_length(document) <= 67125248 AND pg_catalog.cardinality(turns) <= 20000
                AND pg_catalog.octet_length(graph) <= 4096 AND pg_catalog.octet_length(role) <= 4096
                AND pg_catalog.octet_length(kept_by) <= 4096 AND pg_catalog.octet_length(status) <= 4096
                AND pg_catalog.octet_length(superseded_by) <= 4096)
        )', schema);
    -- Compressed documents are not compressed again, and ids hardly become smaller.
    EXECUTE pg_catalog.format(
        'ALTER TABLE %1$I.slice_store ALTER document SET STORAGE external, ALTER turns SET STORAGE external', schema);
    EXECUTE pg_catalog.format('CREATE INDEX slice_store_turns_idx ON %1$I.slice_store USING gin (turns)', schema);
    EXECUTE pg_catalog.format('CREATE INDEX slice_store_kept_at_idx ON %1$I.slice_store (kept_at)', schema);
    EXECUTE pg_catalog.format(
        'CREATE INDEX slice_store_checked_at_idx ON %1$I.slice_store (graph, role, rls, checked_at NULLS FIRST, key)'
        ' WHERE superseded_by IS NULL', schema);
    EXECUTE pg_catalog.format(
        'COMMENT ON TABLE %1$I.slice_store IS ''slices and records of prompts that are kept''', schema);
    RETURN pg_catalog.format('%I.slice_store', schema);
END
$$;
COMMENT ON FUNCTION graph_kernel.make_slice_store(name) IS 'create_slice_store';

-- The library calls make_slice_store.
CREATE FUNCTION graph_kernel.create_slice_store(schema name DEFAULT 'public') RETURNS regclass
    AS 'MODULE_PATHNAME', 'create_slice_store_wrapper'
    LANGUAGE c VOLATILE SET search_path = pg_catalog, pg_temp;
COMMENT ON FUNCTION graph_kernel.create_slice_store(name) IS
    'creates slice_store with its indexes, owned by the caller';

SET LOCAL search_path TO @extschema@, pg_temp;
