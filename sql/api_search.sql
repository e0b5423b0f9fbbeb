-- Searches for PostgREST. The question comes with its embedding: the database has no model.

SET LOCAL search_path TO pg_catalog, pg_temp; -- what bodies parsed now are resolved by

-- A search within a slice, or over the whole graph. An error has the SQLSTATE of its HTTP status.
CREATE FUNCTION graph_kernel.api_search(request json, is_global boolean) RETURNS json
LANGUAGE plpgsql STABLE COST 20000
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    embedding real[];
    anchor uuid;
    state text;
    message text;
    detail text;
    hint text;
    options jsonb;
    is_export boolean;
BEGIN
    is_global := coalesce(is_global, false);
    BEGIN
        is_export := coalesce(NOT is_global AND json_typeof(request) = 'object' AND request ->> 'slice' IS NOT NULL,
                              false);
    EXCEPTION WHEN data_exception THEN
        is_export := false; -- a string that is not text, which is refused below
    END;
    PERFORM graph_kernel.check_request(
        request,
        CASE WHEN is_global OR is_export THEN '{}' ELSE '{anchor_turn_id}' END::text[],
        CASE WHEN is_global THEN '{query,query_embedding,limit,filter}'
             WHEN is_export THEN '{query,query_embedding,slice,limit,min_similarity,min_salience,owner}'
             ELSE '{query,query_embedding,policy_ref,limit,min_similarity,min_salience,owner}' END::text[]);
    IF NOT is_global AND NOT is_export THEN
        BEGIN
            anchor := request ->> 'anchor_turn_id';
        EXCEPTION WHEN invalid_text_representation THEN
            RAISE SQLSTATE 'PT400' USING MESSAGE = 'invalid anchor turn id', DETAIL = 'INVALID_TURN_ID';
        END;
    END IF;
    IF request ->> 'query_embedding' IS NOT NULL THEN
        embedding := ARRAY(SELECT e.value::real
                           FROM json_array_elements_text(request -> 'query_embedding') WITH ORDINALITY
                               AS e (value, position)
                           ORDER BY e.position);
    END IF;
    -- An owner of null stays one, and is refused.
    options := CASE WHEN request -> 'owner' IS NULL THEN '{}'::jsonb
                    ELSE jsonb_build_object('owner', (request -> 'owner')::jsonb) END;
    IF is_global THEN
        RETURN graph_kernel.search_body(embedding, request ->> 'query',
            coalesce((request ->> 'limit')::integer, 10), coalesce((request -> 'filter')::jsonb, '{}'));
    END IF;
    IF is_export THEN
        RETURN graph_kernel.search_export_body(embedding, request -> 'slice',
            coalesce((request ->> 'limit')::integer, 10), (request ->> 'min_similarity')::real,
            (request ->> 'min_salience')::real, request ->> 'query', options);
    END IF;
    RETURN graph_kernel.search_slice_body(embedding, anchor,
        graph_kernel.requested_policy(request -> 'policy_ref'), coalesce((request ->> 'limit')::integer, 10),
        (request ->> 'min_similarity')::real, (request ->> 'min_salience')::real, request ->> 'query',
        options);
EXCEPTION WHEN SQLSTATE '02000' OR data_exception OR program_limit_exceeded OR object_not_in_prerequisite_state
            OR undefined_table OR undefined_column OR undefined_function OR datatype_mismatch
            OR wrong_object_type THEN
    GET STACKED DIAGNOSTICS state = RETURNED_SQLSTATE, message = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL,
                            hint = PG_EXCEPTION_HINT;
    detail := coalesce(nullif(detail, ''), 'INVALID_REQUEST');
    IF state = '02000' THEN
        state := 'PT404';
        detail := 'SLICE_FAILED';
    ELSIF state LIKE '22%' OR state LIKE '54%' THEN
        state := 'PT400';
    ELSIF detail IN ('KEYS_UNAVAILABLE', 'GRAPH_TABLES', 'NO_EMBEDDINGS', 'NO_WORDS') THEN
        state := 'PT503';
        detail := 'SERVICE_UNAVAILABLE';
    END IF;
    RAISE EXCEPTION USING ERRCODE = state, MESSAGE = message, DETAIL = detail, HINT = coalesce(hint, '');
END
$$;
COMMENT ON FUNCTION graph_kernel.api_search(json, boolean) IS 'graph_api_search_slice and graph_api_search_global';

CREATE FUNCTION @extschema@.graph_api_search_slice(json) RETURNS json
LANGUAGE sql STABLE COST 20000
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT FROM graph_kernel.binding LIMIT 0; -- DROP EXTENSION waits
    SELECT graph_kernel.api_search($1, false);
END;
COMMENT ON FUNCTION @extschema@.graph_api_search_slice(json) IS 'REST: a search within a slice';

CREATE FUNCTION @extschema@.graph_api_search_global(json) RETURNS json
LANGUAGE sql STABLE COST 20000
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT FROM graph_kernel.binding LIMIT 0; -- DROP EXTENSION waits
    SELECT graph_kernel.api_search($1, true);
END;
COMMENT ON FUNCTION @extschema@.graph_api_search_global(json) IS 'REST: a search over the whole graph';

SET LOCAL search_path TO @extschema@, pg_temp;
