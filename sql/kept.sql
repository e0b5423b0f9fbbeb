-- What is kept, how it stands to the graph as it is now, and how it is taken again.
CREATE FUNCTION graph_kernel.list_kept() RETURNS TABLE (
    key text, kind text, graph text, anchor_turn_id uuid, turns bigint, role text, rls boolean, kept_by text,
    kept_at timestamptz, checked_at timestamptz, status text, superseded_by text
)
    AS 'MODULE_PATHNAME', 'list_kept_wrapper'
    LANGUAGE c STABLE PARALLEL RESTRICTED COST 10000 ROWS 1000 SET search_path = pg_catalog, pg_temp;
COMMENT ON FUNCTION graph_kernel.list_kept() IS 'the documents in the store of the graph';
CREATE FUNCTION graph_kernel.refresh_batch(since bigint, most bigint) RETURNS TABLE (
    taken bigint, changed bigint, failed bigint
)
    AS 'MODULE_PATHNAME', 'refresh_batch_wrapper'
    LANGUAGE c VOLATILE STRICT COST 1000000 ROWS 1 SET search_path = pg_catalog, pg_temp;
COMMENT ON FUNCTION graph_kernel.refresh_batch(bigint, bigint) IS
    'takes kept slices again that were not since a moment, in microseconds since 1970';
CREATE FUNCTION graph_kernel.kept_by_others() RETURNS bigint
    AS 'MODULE_PATHNAME', 'kept_by_others_wrapper'
    LANGUAGE c STABLE PARALLEL RESTRICTED COST 10000 SET search_path = pg_catalog, pg_temp;
COMMENT ON FUNCTION graph_kernel.kept_by_others() IS
    'how many kept slices another role has taken, or this one with other row security';

CREATE FUNCTION graph_kernel.list_references(graph text, filter jsonb, promoting jsonb) RETURNS TABLE (
    kind text, place bigint, key text, count bigint
)
    AS 'MODULE_PATHNAME', 'list_references_wrapper'
    LANGUAGE c STABLE STRICT PARALLEL UNSAFE COST 1000000 ROWS 100 SET search_path = pg_catalog, pg_temp;
COMMENT ON FUNCTION graph_kernel.list_references(text, jsonb, jsonb) IS
    'references, of a graph and these tables whose rows promote';

SET LOCAL search_path TO pg_catalog, pg_temp; -- what bodies parsed now are resolved by

-- A table that this role must not read is listed all the same: who deletes has to know of it.
CREATE FUNCTION graph_kernel.references(filter jsonb) RETURNS TABLE (
    kind text, place regclass, key text, count bigint
)
LANGUAGE sql STABLE PARALLEL UNSAFE COST 1000000 ROWS 100
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT r.kind, shown.place, CASE WHEN shown.place IS NULL THEN concat(r.place, ': ', r.key) ELSE r.key END, r.count
    FROM (SELECT graph_kernel.chosen_graph() AS graph) AS c
    CROSS JOIN LATERAL (
        SELECT coalesce(jsonb_agg(jsonb_build_object(
                   'place', t.place::oid::bigint,
                   'columns', CASE WHEN t.is_read THEN jsonb_strip_nulls(jsonb_build_object(
                       'reference', t.reference, 'document', t.document, 'turns', t.turns)) END,
                   'shown', coalesce(graph_kernel.whole_command(named.shown),
                                     regexp_replace(named.shown, E'[^\\x01-\\x7f]', '?', 'g')))
                   ORDER BY t.place::regclass::text COLLATE "C", named.columns), '[]') AS tables
        FROM graph_kernel.promoting_tables(c.graph) AS t
        CROSS JOIN LATERAL (
            -- Names that others have chosen may not be text, or not text that the client's encoding has.
            SELECT n.columns, graph_kernel.text_prefix(array_to_string(n.columns, ', '), 1000) AS shown
            FROM (SELECT array_remove(ARRAY[t.reference, t.document, t.turns], NULL)::text[] AS columns) AS n
        ) AS named
        WHERE t.is_near
    ) AS promoting
    CROSS JOIN LATERAL graph_kernel.list_references(c.graph, coalesce($1, 'null'), promoting.tables) AS r
    CROSS JOIN LATERAL (
        -- The name of such a table would end the list as it is sent.
        SELECT CASE WHEN r.kind <> 'atom' OR graph_kernel.whole_command(r.place::oid::regclass::text)
                                             = r.place::oid::regclass::text
                    THEN r.place::oid::regclass END AS place
    ) AS shown;
END;
COMMENT ON FUNCTION graph_kernel.references(jsonb) IS
    'what names the turns that a filter finds: documents, rows that promote, traces, events; with the caller''s rights';

-- A view's functions run with the rights of who reads it.
CREATE VIEW graph_kernel.kept AS
WITH referring AS MATERIALIZED (
    SELECT t.place, t.reference, t.graphs, t.may_refer, t.is_read
    FROM graph_kernel.promoting_tables(graph_kernel.chosen_graph()) AS t
    WHERE t.may_refer OR t.graphs IS NOT NULL
), unread AS MATERIALIZED (
    SELECT DISTINCT t.may_refer, g.graph
    FROM referring AS t LEFT JOIN LATERAL unnest(t.graphs) AS g (graph) ON true WHERE NOT t.is_read
), counted AS MATERIALIZED (
    SELECT c.key, sum(c.found) AS found
    FROM (SELECT DISTINCT t.place, t.reference FROM referring AS t WHERE t.is_read) AS t
    CROSS JOIN LATERAL graph_kernel.count_references(t.place, t.reference::text) AS c
    GROUP BY c.key
)
SELECT k.key, k.kind, k.anchor_turn_id, k.turns, k.role, k.rls, k.kept_by, k.kept_at, k.checked_at, k.status,
       k.superseded_by,
       -- A document of a graph that is not known may be of each.
       CASE WHEN NOT EXISTS (SELECT FROM unread AS u WHERE u.may_refer OR o.name IS NULL OR o.name = u.graph)
             AND NOT EXISTS (SELECT FROM counted AS c WHERE c.key IS NULL)
            THEN coalesce(c.found, 0)::bigint END AS atoms
FROM graph_kernel.list_kept() AS k
LEFT JOIN graph_kernel.binding AS b ON b.graph::text = k.graph
CROSS JOIN LATERAL (SELECT CASE k.graph WHEN 'default' THEN k.graph ELSE b.name END AS name) AS o
LEFT JOIN counted AS c ON c.key = k.key;
COMMENT ON VIEW graph_kernel.kept IS 'the documents in the store of the graph, and what stands on them';
COMMENT ON COLUMN graph_kernel.kept.key IS 'the SHA-256 of the document, for graph_kept';
COMMENT ON COLUMN graph_kernel.kept.kind IS 'slice or prompt';
COMMENT ON COLUMN graph_kernel.kept.anchor_turn_id IS 'where the slice was taken';
COMMENT ON COLUMN graph_kernel.kept.turns IS 'how many turns the slice has';
COMMENT ON COLUMN graph_kernel.kept.role IS 'the role that took it';
COMMENT ON COLUMN graph_kernel.kept.rls IS 'whether row security applied to that role';
COMMENT ON COLUMN graph_kernel.kept.kept_by IS 'who kept it first';
COMMENT ON COLUMN graph_kernel.kept.kept_at IS 'when it was kept first';
COMMENT ON COLUMN graph_kernel.kept.checked_at IS 'when refresh_kept took it again';
COMMENT ON COLUMN graph_kernel.kept.status IS
    'what that has found: identical, changed, or why it could not be taken; other_role: another role takes it';
COMMENT ON COLUMN graph_kernel.kept.superseded_by IS 'the document that has taken its place';
COMMENT ON COLUMN graph_kernel.kept.atoms IS
    'how many rows that promote refer to it; NULL where a table that this role does not read may have some';

-- As backfill_content_hashes: each transaction takes the lock that makes DROP EXTENSION wait, and looks what it is on.
CREATE PROCEDURE graph_kernel.refresh_kept(
    limit_count bigint DEFAULT NULL, older_than pg_catalog.interval DEFAULT '0'::pg_catalog.interval
)
LANGUAGE plpgsql
AS $$
DECLARE
    batch CONSTANT bigint := 100;
    since bigint;
    most bigint;
    found pg_catalog.int8[];
    totals pg_catalog.int8[] := '{0,0,0}';
    others bigint;
    held boolean;
    is_held CONSTANT pg_catalog.text := $query$
        SELECT EXISTS (
            SELECT FROM pg_catalog.pg_locks AS l
            JOIN pg_catalog.pg_extension AS x ON l.relation OPERATOR(pg_catalog.=) ANY (x.extconfig)
            JOIN pg_catalog.pg_database AS d ON d.oid OPERATOR(pg_catalog.=) l.database
            WHERE l.pid OPERATOR(pg_catalog.=) pg_catalog.pg_backend_pid() AND l.granted
              AND d.datname OPERATOR(pg_catalog.=) pg_catalog.current_database()
              AND x.extname OPERATOR(pg_catalog.=) 'graph_kernel')
    $query$;
BEGIN
    IF (limit_count OPERATOR(pg_catalog.<) 0) IS TRUE THEN
        RAISE EXCEPTION 'limit_count must not be negative'
            USING ERRCODE = 'invalid_parameter_value', DETAIL = 'INVALID_LIMIT',
                  HINT = 'Leave it out for all slices: CALL graph_kernel.refresh_kept();';
    END IF;
    -- Before now, else what is taken again is due again; within the server's times.
    IF (older_than OPERATOR(pg_catalog.>=) '0'::pg_catalog.interval
        AND older_than OPERATOR(pg_catalog.<=) '1000 years'::pg_catalog.interval) IS NOT TRUE THEN
        RAISE EXCEPTION 'older_than must be an interval from 0 to 1000 years'
            USING ERRCODE = 'invalid_parameter_value', DETAIL = 'INVALID_LIMIT',
                  HINT = 'CALL graph_kernel.refresh_kept(older_than => ''1 day'');';
    END IF;
    -- What is taken again from now on is newer.
    since := pg_catalog.floor(pg_catalog.date_part(
        'epoch', pg_catalog.clock_timestamp() OPERATOR(pg_catalog.-) older_than) OPERATOR(pg_catalog.*) 1000000);
    LOOP
        LOCK TABLE graph_kernel.binding IN ACCESS SHARE MODE;
        EXECUTE is_held INTO held;
        IF NOT held THEN
            RAISE EXCEPTION 'extension graph_kernel was dropped'
                USING ERRCODE = 'object_not_in_prerequisite_state', DETAIL = 'GRAPH_TABLES';
        END IF;
        most := LEAST(batch, limit_count OPERATOR(pg_catalog.-) totals[1]);
        SELECT ARRAY[r.taken, r.changed, r.failed] INTO found FROM graph_kernel.refresh_batch(since, most) AS r;
        IF found[1] OPERATOR(pg_catalog.=) 0 THEN
            others := graph_kernel.kept_by_others();
            COMMIT;
            EXIT;
        END IF;
        totals := ARRAY[totals[1] OPERATOR(pg_catalog.+) found[1], totals[2] OPERATOR(pg_catalog.+) found[2],
                        totals[3] OPERATOR(pg_catalog.+) found[3]];
        COMMIT;
    END LOOP;
    RAISE NOTICE 'kept slices: % taken again, % changed, % failed, % other_role', totals[1], totals[2], totals[3],
        others;
END
$$;
COMMENT ON PROCEDURE graph_kernel.refresh_kept(bigint, pg_catalog.interval) IS
    'takes kept slices again, batch by batch, and keeps what has changed beside them';

SET LOCAL search_path TO @extschema@, pg_temp;
