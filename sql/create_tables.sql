-- Invoker's rights: the tables belong to the caller, not to the extension.
CREATE FUNCTION graph_kernel.create_tables(schema name DEFAULT 'public') RETURNS void
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF schema IS NULL THEN
        RAISE EXCEPTION 'schema must not be null'
            USING ERRCODE = 'null_value_not_allowed', DETAIL = 'INVALID_SCHEMA';
    END IF;
    -- The primary key includes the columns that score a turn, so that scoring reads the index alone.
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
            created_at timestamptz DEFAULT pg_catalog.now(),
            content_text text,
            content_hash text,
            token_count integer,
            PRIMARY KEY (id) INCLUDE (trajectory_phase, salience_score)
        )', schema);
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
    EXECUTE pg_catalog.format(
        'COMMENT ON TABLE %1$I.memory_turns IS ''turns of conversations''', schema);
    EXECUTE pg_catalog.format(
        'COMMENT ON TABLE %1$I.memory_turn_edges IS ''edges from earlier to later turns''', schema);
END
$$;
