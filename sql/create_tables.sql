-- Invoker's rights: the tables belong to the caller, not to the extension. Called while DROP EXTENSION has to wait.
CREATE FUNCTION graph_kernel.create_tables_internal(schema name, options jsonb) RETURNS void
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    taken name;
    other regrole; -- its owner, where that is somebody else
    fault text := CASE WHEN jsonb_typeof(options) <> 'object' THEN 'options must be a JSON object' END;
BEGIN
    IF schema IS NULL THEN
        RAISE EXCEPTION 'schema must not be null'
            USING ERRCODE = 'null_value_not_allowed', DETAIL = 'INVALID_SCHEMA';
    END IF;
    IF schema = '' THEN
        RAISE EXCEPTION 'schema must not be empty'
            USING ERRCODE = 'invalid_parameter_value', DETAIL = 'INVALID_SCHEMA',
                  HINT = 'SELECT graph_kernel.create_tables(''public'');';
    END IF;
    PERFORM graph_kernel.require_text(schema);
    IF options IS NULL THEN
        RAISE EXCEPTION 'options must not be null'
            USING ERRCODE = 'null_value_not_allowed', DETAIL = 'INVALID_OPTIONS';
    END IF;
    -- A fault would send its key back.
    IF NOT graph_kernel.is_text(options::text) THEN
        RAISE EXCEPTION 'options are not UTF-8'
            USING ERRCODE = 'character_not_in_repertoire', DETAIL = 'INVALID_TEXT', HINT = 'Give UTF-8.';
    END IF;
    IF fault IS NULL THEN
        SELECT CASE o.key WHEN 'content_hash' THEN 'option "content_hash" must be true or false'
               WHEN 'words' THEN 'option "words" must be one of the server''s own text search configurations'
               ELSE format('there is no option "%s"', o.key) END
        INTO fault
        FROM jsonb_each(options) AS o
        WHERE CASE o.key WHEN 'content_hash' THEN jsonb_typeof(o.value) <> 'boolean'
              WHEN 'words' THEN NOT EXISTS (
                  SELECT FROM pg_ts_config AS t
                  WHERE to_jsonb(t.cfgname) = o.value AND t.cfgnamespace = 'pg_catalog'::regnamespace
                    AND t.oid < '16384'::oid)
              ELSE true END
        ORDER BY o.key LIMIT 1;
    END IF;
    IF fault IS NOT NULL THEN
        RAISE EXCEPTION '%', fault
            USING ERRCODE = 'invalid_parameter_value', DETAIL = 'INVALID_OPTIONS',
                  HINT = format(
                      'SELECT graph_kernel.create_tables(%L, ''{"content_hash": true, "words": "english"}'');', schema);
    END IF;
    -- A table of others runs their code with the rights of whoever uses it: no hint leads there.
    SELECT r.relname, CASE WHEN o.rolname <> current_user AND NOT o.rolsuper THEN o.oid::regrole END INTO taken, other
    FROM pg_class AS r JOIN pg_namespace AS n ON n.oid = r.relnamespace JOIN pg_roles AS o ON o.oid = r.relowner
    WHERE n.nspname = schema AND r.relname IN ('memory_turns', 'memory_turn_edges')
    ORDER BY 2 NULLS LAST, 1 DESC LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'table % already exists%', format('%I.%I', schema, taken),
            coalesce(', and belongs to ' || other, '')
            USING ERRCODE = 'duplicate_table', DETAIL = 'TABLE_EXISTS',
                  HINT = CASE WHEN other IS NOT NULL THEN 'SELECT graph_kernel.create_tables(''<your schema>'');'
                         WHEN schema = 'public' THEN format('SELECT * FROM %s();', graph_kernel.own_name('graph_check'))
                         ELSE format('SELECT graph_kernel.bind_tables(%L, %L, name => ''my_graph'');',
                                     format('%I.memory_turns', schema), format('%I.memory_turn_edges', schema)) END;
    END IF;
    -- By now() all turns of a transaction would have one time, and none would be the latest of its session.
    EXECUTE pg_catalog.format(
        'CREATE TABLE %1$I.memory_turns (
            id uuid NOT NULL,
            session_id text,
            role text,
            trajectory_phase text,
            salience_score real,
            trajectory_depth integer,
            trajectory_sibling_order integer,
            trajectory_homogeneity real,
            trajectory_temporal real,
            trajectory_complexity real,
            created_at timestamptz DEFAULT pg_catalog.clock_timestamp(),
            content_text text,
            content_hash text,
            token_count integer,
            payload jsonb,
            owner text,
            valid_until timestamptz,
            PRIMARY KEY (id)
        )', schema);
    -- It includes the columns that score a turn, so that scoring reads the index alone. Apart from the primary key, on
    -- which foreign keys depend: it can be dropped to change the columns'' types, and made again.
    EXECUTE pg_catalog.format(
        'CREATE INDEX memory_turns_scores_idx ON %1$I.memory_turns (id)
            INCLUDE (trajectory_phase, salience_score)', schema);
    EXECUTE pg_catalog.format(
        'CREATE TABLE %1$I.memory_turn_edges (
            parent_turn_id uuid NOT NULL REFERENCES %1$I.memory_turns (id),
            child_turn_id uuid NOT NULL REFERENCES %1$I.memory_turns (id),
            edge_type text NOT NULL DEFAULT ''default'',
            PRIMARY KEY (parent_turn_id, child_turn_id, edge_type)
        )', schema);
    EXECUTE pg_catalog.format(
        'CREATE INDEX memory_turn_edges_child_idx ON %1$I.memory_turn_edges
            (child_turn_id, parent_turn_id, edge_type)', schema);
    EXECUTE pg_catalog.format(
        'CREATE INDEX ON %1$I.memory_turns (session_id, created_at)', schema);
    -- Of a longer text the lexemes could be more than a tsvector holds, and its row could not be stored.
    IF options ? 'words' THEN
        EXECUTE pg_catalog.format(
            'ALTER TABLE %1$I.memory_turns ADD COLUMN words tsvector GENERATED ALWAYS AS
                (pg_catalog.to_tsvector(%2$L::pg_catalog.regconfig, pg_catalog."left"(content_text, 100000))) STORED',
            schema, format('pg_catalog.%I', options ->> 'words'));
        EXECUTE pg_catalog.format(
            'CREATE INDEX memory_turns_words_idx ON %1$I.memory_turns USING gin (words)', schema);
    END IF;
    IF coalesce((options -> 'content_hash')::boolean, true) THEN
        EXECUTE pg_catalog.format(
            'CREATE TRIGGER content_hash BEFORE INSERT OR UPDATE ON %1$I.memory_turns
                FOR EACH ROW EXECUTE FUNCTION %2$s(''content_text'', ''content_hash'')', schema,
            graph_kernel.own_name('graph_content_hash_trigger'));
        -- The owner of the extension's schema could have exchanged it meanwhile.
        IF NOT EXISTS (SELECT FROM pg_trigger AS t JOIN pg_proc AS p ON p.oid = t.tgfoid
                       WHERE t.tgrelid = format('%I.memory_turns', schema)::regclass AND t.tgname = 'content_hash'
                         AND p.prosrc = 'graph_content_hash_trigger_wrapper'
                         AND p.prolang = (SELECT l.oid FROM pg_language AS l WHERE l.lanname = 'c')) THEN
            RAISE EXCEPTION 'the schema of the extension was renamed meanwhile'
                USING ERRCODE = 'object_not_in_prerequisite_state', DETAIL = 'INVALID_TRIGGER',
                      HINT = 'Call it again.';
        END IF;
    END IF;
    EXECUTE pg_catalog.format(
        'COMMENT ON TABLE %1$I.memory_turns IS ''turns of conversations''', schema);
    EXECUTE pg_catalog.format(
        'COMMENT ON TABLE %1$I.memory_turn_edges IS ''edges from earlier to later turns''', schema);
END
$$;
COMMENT ON FUNCTION graph_kernel.create_tables_internal(name, jsonb) IS 'create_tables';

-- The library calls create_tables_internal.
CREATE FUNCTION graph_kernel.create_tables(schema name DEFAULT 'public', options jsonb DEFAULT '{}') RETURNS void
    AS 'MODULE_PATHNAME', 'create_tables_wrapper'
    LANGUAGE c VOLATILE SET search_path = pg_catalog, pg_temp;
COMMENT ON FUNCTION graph_kernel.create_tables(name, jsonb) IS
    'creates memory_turns and memory_turn_edges, with indexes and the trigger of content hashes, owned by the caller';
