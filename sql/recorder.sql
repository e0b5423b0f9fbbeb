-- Chunks of terminal-recorder events (ft.recorder.chunking.v1).

CREATE TABLE graph_kernel.recorder_binding (
    single boolean PRIMARY KEY DEFAULT true CHECK (single),
    events graph_kernel.bound_relation NOT NULL,
    columns jsonb,
    bound_by text NOT NULL,
    binder graph_kernel.bound_role NOT NULL,
    CONSTRAINT encoding CHECK (
        graph_kernel.require_text(columns::pg_catalog.text) AND graph_kernel.require_role_name(bound_by))
);
COMMENT ON TABLE graph_kernel.recorder_binding IS
    'the table that holds recorder events; empty: public.recorder_events';
COMMENT ON COLUMN graph_kernel.recorder_binding.single IS 'keeps the table to one row';
COMMENT ON COLUMN graph_kernel.recorder_binding.events IS 'table of the events';
COMMENT ON COLUMN graph_kernel.recorder_binding.columns IS 'names of columns that are not recognised';
COMMENT ON COLUMN graph_kernel.recorder_binding.binder IS
    'the role that bound the table, which must be allowed to read it; 0: one that a restore did not find';

-- chunking_policy holds its canonical JSON text, as slice_policy does.
CREATE TYPE @extschema@.chunking_policy;

CREATE FUNCTION @extschema@.chunking_policy_in(cstring) RETURNS @extschema@.chunking_policy
    AS 'MODULE_PATHNAME', 'chunking_policy_in_wrapper' LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.chunking_policy_in(cstring) IS 'reads a chunking policy';
CREATE FUNCTION @extschema@.chunking_policy_out(@extschema@.chunking_policy) RETURNS cstring
    AS 'textout' LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.chunking_policy_out(@extschema@.chunking_policy) IS
    'canonical JSON of a chunking policy';
CREATE FUNCTION @extschema@.chunking_policy_recv(internal) RETURNS @extschema@.chunking_policy
    AS 'MODULE_PATHNAME', 'chunking_policy_recv_wrapper' LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.chunking_policy_recv(internal) IS 'reads a chunking policy in the binary protocol';
CREATE FUNCTION @extschema@.chunking_policy_send(@extschema@.chunking_policy) RETURNS bytea
    AS 'textsend' LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.chunking_policy_send(@extschema@.chunking_policy) IS
    'canonical JSON of a chunking policy in the binary protocol';

CREATE TYPE @extschema@.chunking_policy (
    INPUT = @extschema@.chunking_policy_in,
    OUTPUT = @extschema@.chunking_policy_out,
    RECEIVE = @extschema@.chunking_policy_recv,
    SEND = @extschema@.chunking_policy_send,
    LIKE = pg_catalog.text,
    CATEGORY = 'U'
);

CREATE FUNCTION @extschema@.chunking_policy_eq(@extschema@.chunking_policy, @extschema@.chunking_policy)
    RETURNS boolean
    AS 'byteaeq' LANGUAGE internal IMMUTABLE STRICT LEAKPROOF PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.chunking_policy_eq(@extschema@.chunking_policy, @extschema@.chunking_policy) IS
    'same parameters';
CREATE FUNCTION @extschema@.chunking_policy_ne(@extschema@.chunking_policy, @extschema@.chunking_policy)
    RETURNS boolean
    AS 'byteane' LANGUAGE internal IMMUTABLE STRICT LEAKPROOF PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.chunking_policy_ne(@extschema@.chunking_policy, @extschema@.chunking_policy) IS
    'other parameters';
CREATE FUNCTION @extschema@.chunking_policy_hash32(@extschema@.chunking_policy) RETURNS integer
    AS 'hashvarlena' LANGUAGE internal IMMUTABLE STRICT LEAKPROOF PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.chunking_policy_hash32(@extschema@.chunking_policy) IS
    'hash of a chunking policy for hash indexes and joins';
CREATE FUNCTION @extschema@.chunking_policy_hash64(@extschema@.chunking_policy, bigint) RETURNS bigint
    AS 'hashvarlenaextended' LANGUAGE internal IMMUTABLE STRICT LEAKPROOF PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.chunking_policy_hash64(@extschema@.chunking_policy, bigint) IS
    'seeded hash of a chunking policy';

CREATE OPERATOR @extschema@.= (
    LEFTARG = @extschema@.chunking_policy, RIGHTARG = @extschema@.chunking_policy,
    FUNCTION = @extschema@.chunking_policy_eq,
    COMMUTATOR = OPERATOR(@extschema@.=), NEGATOR = OPERATOR(@extschema@.<>),
    RESTRICT = eqsel, JOIN = eqjoinsel, HASHES
);
CREATE OPERATOR @extschema@.<> (
    LEFTARG = @extschema@.chunking_policy, RIGHTARG = @extschema@.chunking_policy,
    FUNCTION = @extschema@.chunking_policy_ne,
    COMMUTATOR = OPERATOR(@extschema@.<>), NEGATOR = OPERATOR(@extschema@.=),
    RESTRICT = neqsel, JOIN = neqjoinsel
);
CREATE OPERATOR CLASS @extschema@.chunking_policy_ops
    DEFAULT FOR TYPE @extschema@.chunking_policy USING hash AS
    OPERATOR 1 @extschema@.=,
    FUNCTION 1 @extschema@.chunking_policy_hash32(@extschema@.chunking_policy),
    FUNCTION 2 @extschema@.chunking_policy_hash64(@extschema@.chunking_policy, bigint);

CREATE FUNCTION graph_kernel.chunking_policy_of(jsonb) RETURNS @extschema@.chunking_policy
    AS 'MODULE_PATHNAME', 'chunking_policy_of_wrapper' LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION graph_kernel.chunking_policy_of(jsonb) IS 'reads a chunking policy';
CREATE CAST (jsonb AS @extschema@.chunking_policy) WITH FUNCTION graph_kernel.chunking_policy_of(jsonb) AS IMPLICIT;
CREATE CAST (json AS @extschema@.chunking_policy) WITH INOUT;
CREATE CAST (text AS @extschema@.chunking_policy) WITH INOUT;
CREATE CAST (@extschema@.chunking_policy AS jsonb) WITH INOUT;
CREATE CAST (@extschema@.chunking_policy AS json) WITH INOUT;
COMMENT ON TYPE @extschema@.chunking_policy IS
    'parameters of chunking (ft.recorder.chunking.v1): a JSON object or default';
COMMENT ON OPERATOR @extschema@.= (@extschema@.chunking_policy, @extschema@.chunking_policy) IS 'same parameters';
COMMENT ON OPERATOR @extschema@.<> (@extschema@.chunking_policy, @extschema@.chunking_policy) IS 'other parameters';
COMMENT ON OPERATOR FAMILY @extschema@.chunking_policy_ops USING hash IS 'equality of chunking policies';
COMMENT ON OPERATOR CLASS @extschema@.chunking_policy_ops USING hash IS 'equality of chunking policies';
COMMENT ON CAST (jsonb AS @extschema@.chunking_policy) IS 'reads a chunking policy';
COMMENT ON CAST (json AS @extschema@.chunking_policy) IS 'reads a chunking policy';
COMMENT ON CAST (text AS @extschema@.chunking_policy) IS 'reads a chunking policy';
COMMENT ON CAST (@extschema@.chunking_policy AS jsonb) IS 'a chunking policy as JSON';
COMMENT ON CAST (@extschema@.chunking_policy AS json) IS 'a chunking policy as JSON';

CREATE FUNCTION @extschema@.chunking_policy_hash(policy @extschema@.chunking_policy) RETURNS text
    AS 'MODULE_PATHNAME', 'chunking_policy_hash_wrapper'
    LANGUAGE c IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.chunking_policy_hash(@extschema@.chunking_policy) IS 'fingerprint of a chunking policy';

-- A type of its own, so that a chunk taken from the select list keeps its columns' names.
CREATE TYPE @extschema@.recorder_chunk AS (
    chunk_index integer,
    chunk_id text,
    policy_version text,
    pane_id bigint,
    session_id text,
    direction text,
    start_segment_id bigint,
    start_ordinal bigint,
    start_byte_offset bigint,
    start_char integer,
    end_segment_id bigint,
    end_ordinal bigint,
    end_byte_offset bigint,
    end_char integer,
    event_ids text[],
    event_count integer,
    occurred_at_start_ms bigint,
    occurred_at_end_ms bigint,
    text_chars integer,
    content_hash text,
    overlap jsonb,
    is_open boolean,
    chunk_text text
);
COMMENT ON TYPE @extschema@.recorder_chunk IS 'a chunk of recorder events';

-- The index by position gives the log order; a sort would read the whole log before the first chunk.
CREATE FUNCTION @extschema@.recorder_chunks(
    policy @extschema@.chunking_policy DEFAULT 'default'::pg_catalog.text::@extschema@.chunking_policy,
    pane_id bigint DEFAULT NULL,
    from_segment_id bigint DEFAULT NULL,
    from_ordinal bigint DEFAULT NULL,
    to_segment_id bigint DEFAULT NULL,
    to_ordinal bigint DEFAULT NULL,
    per_pane boolean DEFAULT false
) RETURNS SETOF @extschema@.recorder_chunk
    AS 'MODULE_PATHNAME', 'recorder_chunks_wrapper'
    LANGUAGE c STABLE PARALLEL RESTRICTED COST 100000 ROWS 1000
    SET search_path = pg_catalog, pg_temp SET enable_sort = off;
COMMENT ON FUNCTION
    @extschema@.recorder_chunks(@extschema@.chunking_policy, bigint, bigint, bigint, bigint, bigint, boolean) IS
    'the chunks of the bound event table, in log order';
CREATE FUNCTION @extschema@.recorder_chunks_since(
    segment_id bigint,
    ordinal bigint,
    policy @extschema@.chunking_policy DEFAULT 'default'::pg_catalog.text::@extschema@.chunking_policy
) RETURNS SETOF @extschema@.recorder_chunk
    AS 'MODULE_PATHNAME', 'recorder_chunks_since_wrapper'
    LANGUAGE c STABLE PARALLEL RESTRICTED COST 100000 ROWS 1000
    SET search_path = pg_catalog, pg_temp SET enable_sort = off;
COMMENT ON FUNCTION @extschema@.recorder_chunks_since(bigint, bigint, @extschema@.chunking_policy) IS
    'the chunks from the last resume point at or before a position';
CREATE FUNCTION @extschema@.recorder_event_chunks(
    segment_id bigint,
    ordinal bigint,
    policy @extschema@.chunking_policy DEFAULT 'default'::pg_catalog.text::@extschema@.chunking_policy
) RETURNS SETOF @extschema@.recorder_chunk
    AS 'MODULE_PATHNAME', 'recorder_event_chunks_wrapper'
    LANGUAGE c STABLE PARALLEL RESTRICTED COST 10000 ROWS 1
    SET search_path = pg_catalog, pg_temp SET enable_sort = off;
COMMENT ON FUNCTION @extschema@.recorder_event_chunks(bigint, bigint, @extschema@.chunking_policy) IS
    'the chunks that hold an event';
CREATE FUNCTION @extschema@.recorder_chunk_events(
    events jsonb,
    policy @extschema@.chunking_policy DEFAULT 'default'::pg_catalog.text::@extschema@.chunking_policy
) RETURNS SETOF @extschema@.recorder_chunk
    AS 'MODULE_PATHNAME', 'recorder_chunk_events_wrapper'
    LANGUAGE c IMMUTABLE PARALLEL SAFE COST 10000 ROWS 100
    SET search_path = pg_catalog, pg_temp;
COMMENT ON FUNCTION @extschema@.recorder_chunk_events(jsonb, @extschema@.chunking_policy) IS
    'the chunks of a JSON array of events';
CREATE FUNCTION @extschema@.recorder_chunk_span(
    start_segment_id bigint,
    start_ordinal bigint,
    start_char integer,
    end_segment_id bigint,
    end_ordinal bigint,
    end_char integer
) RETURNS TABLE (
    event_id text,
    pane_id bigint,
    segment_id bigint,
    ordinal bigint,
    byte_offset bigint,
    event_start_char integer,
    event_end_char integer,
    event_text text
)
    AS 'MODULE_PATHNAME', 'recorder_chunk_span_wrapper'
    LANGUAGE c STABLE STRICT PARALLEL RESTRICTED COST 1000 ROWS 10
    SET search_path = pg_catalog, pg_temp SET enable_sort = off;
COMMENT ON FUNCTION @extschema@.recorder_chunk_span(bigint, bigint, integer, bigint, bigint, integer) IS
    'the events of a chunk, and which of their characters it holds';

CREATE FUNCTION graph_kernel.describe_recorder_table(events oid, columns jsonb, binder oid) RETURNS jsonb
    AS 'MODULE_PATHNAME', 'describe_recorder_table_wrapper'
    LANGUAGE c STABLE PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp;
COMMENT ON FUNCTION graph_kernel.describe_recorder_table(oid, jsonb, oid) IS
    'checks a table for use as a log and says which columns hold what';

SET LOCAL search_path TO pg_catalog, pg_temp; -- what bodies parsed now are resolved by

CREATE FUNCTION graph_kernel.recorder_chunks(
    policy @extschema@.chunking_policy, pane_id bigint, from_segment_id bigint, from_ordinal bigint,
    to_segment_id bigint, to_ordinal bigint, per_pane boolean
) RETURNS SETOF @extschema@.recorder_chunk
    AS 'MODULE_PATHNAME', 'recorder_chunks_wrapper'
    LANGUAGE c STABLE PARALLEL RESTRICTED COST 100000 ROWS 1000
    SET search_path = pg_catalog, pg_temp SET enable_sort = off;
COMMENT ON FUNCTION
    graph_kernel.recorder_chunks(@extschema@.chunking_policy, bigint, bigint, bigint, bigint, bigint, boolean) IS
    'recorder_chunks, for verify_chunks';

-- Compares the columns that both sides have: a stored table need not have every column, nor the pane. A type that is
-- not the server's own could have a cast or an operator of a user. Called while DROP EXTENSION has to wait.
CREATE FUNCTION graph_kernel.verify_chunks(
    chunks regclass,
    policy @extschema@.chunking_policy,
    per_pane boolean
) RETURNS TABLE (chunk_id text, status text)
LANGUAGE plpgsql STABLE ROWS 1000
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    shared text[];
    same text;
    lacking text;
    foreign_type text;
BEGIN
    IF policy IS NULL THEN
        RAISE EXCEPTION 'policy must not be null'
            USING ERRCODE = 'null_value_not_allowed', DETAIL = 'INVALID_POLICY',
                  HINT = 'Leave the argument out for the default policy, or give default or a JSON object.';
    END IF;
    IF chunks IS NULL OR per_pane IS NULL THEN
        RETURN;
    END IF;
    PERFORM graph_kernel.require_text(chunks::text);
    SELECT array_agg(a.attname::text ORDER BY a.attnum) INTO shared
    FROM pg_attribute AS a
    JOIN pg_attribute AS c ON c.attname = a.attname
    WHERE a.attrelid = chunks AND a.attnum > 0 AND NOT a.attisdropped
      AND c.attrelid = (SELECT t.typrelid FROM pg_proc AS p JOIN pg_type AS t ON t.oid = p.prorettype
                        WHERE p.oid = 'graph_kernel.recorder_chunks'::regproc)
      AND a.attname NOT IN ('chunk_index', 'is_open');
    SELECT k.name INTO lacking
    FROM unnest(ARRAY['chunk_id', 'start_segment_id', 'start_ordinal', 'start_char']) AS k (name)
    WHERE k.name <> ALL (coalesce(shared, '{}'));
    IF FOUND THEN
        RAISE EXCEPTION 'table % has no column "%"', chunks, lacking
            USING ERRCODE = 'undefined_column', DETAIL = 'CHUNK_TABLE',
                  HINT = 'Keep chunk_id, start_segment_id, start_ordinal and start_char of every chunk.';
    END IF;
    WITH RECURSIVE types (name, oid) AS (
        SELECT a.attname, a.atttypid FROM pg_attribute AS a
        WHERE a.attrelid = chunks AND a.attname = ANY (shared)
        UNION ALL
        SELECT y.name, t.typbasetype FROM types AS y JOIN pg_type AS t ON t.oid = y.oid WHERE t.typtype = 'd'
    )
    SELECT format('column %I of table %s has type %s', y.name, chunks, y.oid::regtype) INTO foreign_type
    FROM types AS y JOIN pg_type AS t ON t.oid = y.oid
    WHERE t.typtype <> 'd' AND y.oid >= 16384 ORDER BY y.name LIMIT 1;
    IF foreign_type IS NOT NULL THEN
        RAISE EXCEPTION '%, which is not one of pg_catalog', foreign_type
            USING ERRCODE = 'datatype_mismatch', DETAIL = 'CHUNK_TABLE',
                  HINT = 'Keep the columns with the types that recorder_chunks() gives them.';
    END IF;
    SELECT string_agg(format('to_jsonb(s.%1$I) IS NOT DISTINCT FROM to_jsonb(l.%1$I)', k.name), ' AND ')
        INTO same FROM unnest(shared) AS k (name);
    RETURN QUERY EXECUTE format(
        'SELECT coalesce(s.chunk_id::text, l.chunk_id),
                CASE WHEN s.chunk_id IS NULL THEN ''missing''
                     WHEN l.chunk_id IS NULL THEN ''extra''
                     WHEN %s THEN ''ok''
                     ELSE ''changed'' END
         FROM graph_kernel.recorder_chunks($1, NULL, NULL, NULL, NULL, NULL, $2) AS l
         FULL JOIN %s AS s
             ON s.start_segment_id = l.start_segment_id
            AND s.start_ordinal = l.start_ordinal
            AND s.start_char = l.start_char',
        same, chunks)
    USING policy, per_pane;
END
$$;
COMMENT ON FUNCTION graph_kernel.verify_chunks(regclass, @extschema@.chunking_policy, boolean) IS
    'recorder_verify_chunks';

CREATE FUNCTION @extschema@.recorder_verify_chunks(
    chunks regclass,
    policy @extschema@.chunking_policy DEFAULT 'default'::pg_catalog.text::@extschema@.chunking_policy,
    per_pane boolean DEFAULT false
) RETURNS TABLE (chunk_id text, status text)
LANGUAGE sql STABLE ROWS 1000
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT FROM graph_kernel.recorder_binding LIMIT 0; -- DROP EXTENSION waits
    SELECT v.chunk_id, v.status FROM graph_kernel.verify_chunks($1, $2, $3) AS v;
END;
COMMENT ON FUNCTION @extschema@.recorder_verify_chunks(regclass, @extschema@.chunking_policy, boolean) IS
    'compares a table of chunks with the log: ok, changed, missing, extra';

-- Invoker's rights: the table belongs to the caller, not to the extension.
CREATE FUNCTION graph_kernel.make_recorder_table(schema name) RETURNS void
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
                  HINT = 'SELECT graph_kernel.create_recorder_table(''public'');';
    END IF;
    PERFORM graph_kernel.require_text(schema);
    -- A table of others runs their code with the rights of whoever uses it: no hint leads there.
    SELECT r.relname, CASE WHEN o.rolname <> current_user AND NOT o.rolsuper THEN o.oid::regrole END INTO taken, other
    FROM pg_class AS r JOIN pg_namespace AS n ON n.oid = r.relnamespace JOIN pg_roles AS o ON o.oid = r.relowner
    WHERE n.nspname = schema AND r.relname = 'recorder_events';
    IF FOUND THEN
        RAISE EXCEPTION 'table % already exists%', format('%I.%I', schema, taken),
            coalesce(', and belongs to ' || other, '')
            USING ERRCODE = 'duplicate_table', DETAIL = 'TABLE_EXISTS',
                  HINT = CASE WHEN other IS NOT NULL
                         THEN 'SELECT graph_kernel.create_recorder_table(''<your schema>'');'
                         ELSE format('SELECT graph_kernel.bind_recorder_table(%L);',
                                     format('%I.recorder_events', schema)) END;
    END IF;
    EXECUTE pg_catalog.format(
        'CREATE TABLE %1$I.recorder_events (
            segment_id bigint,
            ordinal bigint,
            byte_offset bigint NOT NULL,
            schema_version text DEFAULT ''ft.recorder.event.v1'',
            event_id text NOT NULL,
            pane_id bigint NOT NULL,
            session_id text,
            occurred_at_ms bigint NOT NULL,
            event_type text NOT NULL,
            text text,
            is_gap boolean DEFAULT false,
            PRIMARY KEY (segment_id, ordinal)
        )', schema);
    EXECUTE pg_catalog.format(
        'COMMENT ON TABLE %1$I.recorder_events IS ''events of terminal recorders''', schema);
END
$$;
COMMENT ON FUNCTION graph_kernel.make_recorder_table(name) IS 'create_recorder_table';

-- The library calls make_recorder_table.
CREATE FUNCTION graph_kernel.create_recorder_table(schema name DEFAULT 'public') RETURNS void
    AS 'MODULE_PATHNAME', 'create_recorder_table_wrapper'
    LANGUAGE c VOLATILE SET search_path = pg_catalog, pg_temp;
COMMENT ON FUNCTION graph_kernel.create_recorder_table(name) IS
    'creates recorder_events, owned by the caller';

-- Called with definer's rights, as the binding belongs to the extension; EXECUTE decides who may call it. Called while
-- DROP EXTENSION has to wait.
CREATE FUNCTION graph_kernel.bind_recorder_table_internal(events regclass, columns jsonb, binder oid) RETURNS void
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    described jsonb;
    position_columns text[];
BEGIN
    IF events IS NULL THEN
        RAISE EXCEPTION 'events must not be null'
            USING ERRCODE = 'null_value_not_allowed', DETAIL = 'INVALID_BINDING';
    END IF;
    described := graph_kernel.describe_recorder_table(events::oid, columns, binder);
    position_columns := ARRAY[described #>> '{columns,segment_id}', described #>> '{columns,ordinal}'];
    IF NOT EXISTS (
        SELECT FROM pg_index AS i
        JOIN pg_class AS c ON c.oid = i.indrelid
        WHERE i.indrelid = events AND i.indisunique AND i.indisvalid AND i.indpred IS NULL
          AND (i.indnkeyatts = 2 OR c.relkind = 'p')
          AND position_columns = ARRAY(
              SELECT a.attname::text
              FROM generate_series(0, 1) AS k (position)
              JOIN pg_attribute AS a ON a.attrelid = events AND a.attnum = i.indkey[k.position]
              ORDER BY k.position)
    ) THEN
        RAISE EXCEPTION 'table % has no unique index on columns "%", "%"', events,
            position_columns[1], position_columns[2]
            USING ERRCODE = 'invalid_table_definition', DETAIL = 'RECORDER_TABLE',
                  HINT = format('CREATE UNIQUE INDEX ON %s (%I, %I);', events,
                                position_columns[1], position_columns[2]);
    END IF;
    LOCK TABLE graph_kernel.recorder_binding IN SHARE ROW EXCLUSIVE MODE;
    DELETE FROM graph_kernel.recorder_binding;
    INSERT INTO graph_kernel.recorder_binding (events, columns, bound_by, binder)
    VALUES (events, columns, pg_get_userbyid(binder), binder);
END
$$;
COMMENT ON FUNCTION graph_kernel.bind_recorder_table_internal(regclass, jsonb, oid) IS 'bind_recorder_table';

CREATE FUNCTION graph_kernel.bind_recorder_table_for(events regclass, columns jsonb, binder oid) RETURNS void
LANGUAGE sql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT FROM graph_kernel.recorder_binding LIMIT 0; -- DROP EXTENSION waits
    SELECT graph_kernel.bind_recorder_table_internal($1, $2, $3);
END;
COMMENT ON FUNCTION graph_kernel.bind_recorder_table_for(regclass, jsonb, oid) IS 'bind_recorder_table, for its caller';

CREATE FUNCTION graph_kernel.bind_recorder_table(events regclass, columns jsonb DEFAULT NULL) RETURNS void
    AS 'MODULE_PATHNAME', 'bind_recorder_table_wrapper'
    LANGUAGE c VOLATILE SET search_path = pg_catalog, pg_temp;
COMMENT ON FUNCTION graph_kernel.bind_recorder_table(regclass, jsonb) IS
    'makes this table the log of recorder events';

CREATE FUNCTION graph_kernel.unbind_recorder_table() RETURNS void
LANGUAGE sql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    DELETE FROM graph_kernel.recorder_binding;
END;
COMMENT ON FUNCTION graph_kernel.unbind_recorder_table() IS
    'makes public.recorder_events the log of recorder events again';

SET LOCAL search_path TO @extschema@, pg_temp;
