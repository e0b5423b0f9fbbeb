-- A row for each thing that can be wrong with a graph. Invoker's rights: it sees what slices see. No hint changes or
-- deletes rows: it selects those that may have to be changed. A superuser may run what others have named: what a hint
-- names is quoted and qualified, down to operators. No name stands in a comment, as a line break in it would end that.
-- Where others choose how many there are, each command has a row of its own: one that fails or is too long hides
-- no other. Called while DROP EXTENSION has to wait.
CREATE FUNCTION graph_kernel.check_graph(name text) RETURNS TABLE (
    check_name text, ok boolean, count bigint, detail text, hint text
)
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    graph jsonb;
BEGIN
    BEGIN
        graph := graph_kernel.describe_graph(name);
    EXCEPTION WHEN undefined_table OR undefined_column OR datatype_mismatch OR wrong_object_type
                OR undefined_function OR undefined_object OR invalid_object_definition OR feature_not_supported
                OR ambiguous_function OR ambiguous_column OR syntax_error OR invalid_schema_name
                OR insufficient_privilege OR invalid_parameter_value OR object_not_in_prerequisite_state THEN
        check_name := 'bound_tables';
        ok := false;
        GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL;
        IF detail = 'EXTENSION_VERSION' THEN
            RAISE; -- nothing of another version is a finding
        END IF;
        GET STACKED DIAGNOSTICS detail = MESSAGE_TEXT, hint = PG_EXCEPTION_HINT;
        hint := nullif(hint, '');
        -- The query that shows what another role has bound.
        hint := coalesce(CASE WHEN SQLSTATE = '42501' THEN graph_kernel.missing_grants(name) END,
                         substring(hint FROM 'SELECT turns, [a-z_, ]+ FROM graph_kernel.binding .*'),
                         CASE WHEN SQLSTATE <> '42501' THEN hint END);
        RETURN NEXT;
        RETURN;
    END;
    RETURN QUERY SELECT * FROM graph_kernel.check_tables(graph);
    RETURN QUERY SELECT * FROM graph_kernel.check_code(name, graph);
    RETURN QUERY SELECT * FROM graph_kernel.check_promotion(name, graph);
    RETURN QUERY SELECT * FROM graph_kernel.check_kept(name);
    RETURN QUERY SELECT * FROM graph_kernel.check_expressions(name, graph);
    RETURN QUERY SELECT * FROM graph_kernel.check_rows(name, graph);
END
$$;
COMMENT ON FUNCTION graph_kernel.check_graph(text) IS 'graph_check';

SET LOCAL search_path TO pg_catalog, pg_temp; -- what bodies parsed now are resolved by

CREATE FUNCTION @extschema@.graph_check() RETURNS TABLE (
    check_name text, ok boolean, count bigint, detail text, hint text
)
LANGUAGE sql STABLE COST 10000000 ROWS 30
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT FROM graph_kernel.binding LIMIT 0; -- DROP EXTENSION waits
    -- Names that others have chosen may not be text, or not text that the client's encoding has.
    SELECT c.check_name, c.ok, c.count,
           coalesce(graph_kernel.whole_command(c.detail),
                    regexp_replace(graph_kernel.text_prefix(c.detail, 1000000), E'[^\\x01-\\x7f]', '?', 'g')),
           graph_kernel.whole_command(c.hint)
    FROM graph_kernel.check_graph(graph_kernel.chosen_graph()) AS c;
END;
COMMENT ON FUNCTION @extschema@.graph_check() IS 'what is wrong with the bound graph, and how to fix it';

SET LOCAL search_path TO @extschema@, pg_temp;
