-- Searches for PostgREST. The question comes with its embedding: the database has no model.

SET LOCAL search_path TO pg_catalog, pg_temp; -- what bodies parsed now are resolved by

-- Raises an error of a search with the SQLSTATE of its HTTP status.
CREATE FUNCTION graph_kernel.raise_search_error(state text, message text, detail text, hint text) RETURNS void
LANGUAGE plpgsql STABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    detail := coalesce(nullif(detail, ''), 'INVALID_REQUEST');
    CASE
        WHEN state = '02000' THEN
            state := 'PT404';
            detail := 'SLICE_FAILED';
        WHEN state LIKE '22%' OR state LIKE '54%' THEN state := 'PT400';
        WHEN detail IN ('KEYS_UNAVAILABLE', 'GRAPH_TABLES', 'NO_EMBEDDINGS') THEN
            state := 'PT503';
            detail := 'SERVICE_UNAVAILABLE';
        ELSE NULL;
    END CASE;
    RAISE EXCEPTION USING ERRCODE = state, MESSAGE = message, DETAIL = detail, HINT = coalesce(hint, '');
END
$$;

CREATE FUNCTION graph_kernel.requested_embedding(embedding json) RETURNS real[]
LANGUAGE sql IMMUTABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
RETURN (SELECT array_agg(e.value::real ORDER BY e.position)
        FROM json_array_elements_text(embedding) WITH ORDINALITY AS e (value, position));

CREATE FUNCTION graph_kernel.api_search_slice(request json) RETURNS json
LANGUAGE plpgsql STABLE COST 20000
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    anchor uuid;
    message text;
    detail text;
    hint text;
BEGIN
    PERFORM graph_kernel.check_request(request, '{anchor_turn_id,query_embedding}',
                                       '{query,policy_ref,limit,min_similarity,min_salience}');
    BEGIN
        anchor := request ->> 'anchor_turn_id';
    EXCEPTION WHEN invalid_text_representation THEN
        RAISE SQLSTATE 'PT400' USING MESSAGE = 'invalid anchor turn id', DETAIL = 'INVALID_TURN_ID';
    END;
    RETURN graph_kernel.search_slice_body(
        coalesce(graph_kernel.requested_embedding(request -> 'query_embedding'), '{}'), anchor,
        graph_kernel.requested_policy(request -> 'policy_ref'), coalesce((request ->> 'limit')::integer, 10),
        (request ->> 'min_similarity')::real, (request ->> 'min_salience')::real, request ->> 'query');
EXCEPTION WHEN SQLSTATE '02000' OR data_exception OR program_limit_exceeded OR object_not_in_prerequisite_state
            OR undefined_table OR undefined_column OR undefined_function OR datatype_mismatch
            OR wrong_object_type THEN
    GET STACKED DIAGNOSTICS message = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
    PERFORM graph_kernel.raise_search_error(SQLSTATE, message, detail, hint);
END
$$;

CREATE FUNCTION graph_kernel.api_search_global(request json) RETURNS json
LANGUAGE plpgsql STABLE COST 20000
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    message text;
    detail text;
    hint text;
BEGIN
    PERFORM graph_kernel.check_request(request, '{query_embedding}', '{query,limit,min_similarity}');
    RETURN graph_kernel.search_global_body(
        coalesce(graph_kernel.requested_embedding(request -> 'query_embedding'), '{}'),
        coalesce((request ->> 'limit')::integer, 10), (request ->> 'min_similarity')::real, request ->> 'query');
EXCEPTION WHEN data_exception OR program_limit_exceeded OR object_not_in_prerequisite_state
            OR undefined_table OR undefined_column OR undefined_function OR datatype_mismatch
            OR wrong_object_type THEN
    GET STACKED DIAGNOSTICS message = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
    PERFORM graph_kernel.raise_search_error(SQLSTATE, message, detail, hint);
END
$$;

CREATE FUNCTION @extschema@.graph_api_search_slice(json) RETURNS json
LANGUAGE sql STABLE COST 20000
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT FROM graph_kernel.binding LIMIT 0; -- DROP EXTENSION waits
    SELECT graph_kernel.api_search_slice($1);
END;

CREATE FUNCTION @extschema@.graph_api_search_global(json) RETURNS json
LANGUAGE sql STABLE COST 20000
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT FROM graph_kernel.binding LIMIT 0; -- DROP EXTENSION waits
    SELECT graph_kernel.api_search_global($1);
END;

SET LOCAL search_path TO @extschema@, pg_temp;
