-- The store of a graph: its rows, and the rows that refer to them. What is not there is no error: the law may have
-- wanted it gone. Called by check_graph.
CREATE FUNCTION graph_kernel.check_kept(name text) RETURNS TABLE (
    check_name text, ok boolean, count bigint, detail text, hint text
)
LANGUAGE plpgsql STABLE STRICT
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    kept jsonb;
    store regclass;
BEGIN
    check_name := 'slice_store';
    ok := true;
    count := NULL;
    hint := NULL;
    BEGIN
        kept := graph_kernel.describe_store(name);
        store := (kept ->> 'oid')::oid;
        detail := coalesce('documents are kept in ' || store, 'no store is bound');
        RETURN NEXT;
        IF store IS NOT NULL THEN
            check_name := 'index_kept_turns';
            ok := (kept -> 'has_turns_index')::boolean;
            detail := format('%sindex on %s (turns)', CASE WHEN ok THEN '' ELSE 'no ' END, store);
            hint := CASE WHEN NOT ok THEN graph_kernel.turns_index_command(store) END;
            RETURN NEXT;
            check_name := 'kept_documents';
            count := (SELECT pg_catalog.count(*) FROM graph_kernel.unfit_documents(name) AS d);
            ok := count = 0;
            detail := 'rows of the store that are not what their documents say';
            hint := CASE WHEN NOT ok THEN format(
                'SELECT d.key, d.fault FROM graph_kernel.unfit_documents(%L) AS d;', name) END;
            RETURN NEXT;
            check_name := 'kept_references';
            ok := true;
            SELECT coalesce(sum(t.missing), 0),
                   'rows that refer to documents which are not in the store'
                   || CASE WHEN row_security_active(store::oid) THEN ', or which row security hides from this role'
                           ELSE '' END || coalesce('; not counted: '
                       || graph_kernel.text_prefix(string_agg(CASE WHEN t.missing IS NULL THEN t.place::text END, ', '
                                                              ORDER BY t.place::text), 100000), '')
            INTO count, detail
            FROM (SELECT t.place, CASE WHEN bool_and(t.is_read)
                                       THEN graph_kernel.missing_references(name, t.place, t.reference) END AS missing
                  FROM graph_kernel.promoting_tables(name) AS t
                  WHERE t.may_refer OR t.graphs && ARRAY(
                      SELECT DISTINCT CASE k.graph WHEN 'default' THEN k.graph ELSE b.name END
                      FROM graph_kernel.list_kept() AS k LEFT JOIN graph_kernel.binding AS b ON b.graph::text = k.graph)
                  GROUP BY t.place, t.reference) AS t;
            hint := NULL;
            RETURN NEXT;
        END IF;
    EXCEPTION WHEN OTHERS THEN
        ok := false;
        GET STACKED DIAGNOSTICS detail = MESSAGE_TEXT, hint = PG_EXCEPTION_HINT;
        detail := 'could not be checked: ' || detail;
        hint := nullif(hint, '');
        RETURN NEXT;
    END;
END
$$;
COMMENT ON FUNCTION graph_kernel.check_kept(text) IS 'what graph_check finds of the store';
