-- Requests and answers of the REST service that the kernel once was, for PostgREST: one unnamed json
-- argument is the whole body, and an SQLSTATE of PTnnn is answered as status nnn.

CREATE FUNCTION graph_kernel.slice_summaries(anchors text[], policy @extschema@.slice_policy)
RETURNS TABLE (anchor_turn_id text, summary json, error_code text, error text)
    AS 'MODULE_PATHNAME', 'slice_summaries_wrapper'
    LANGUAGE c STABLE STRICT PARALLEL RESTRICTED COST 100000 ROWS 10
    SET search_path = pg_catalog, pg_temp;

-- Raises what slice_summaries reports.
CREATE FUNCTION graph_kernel.raise_api_error(error_code text, error text) RETURNS void
LANGUAGE plpgsql STABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    CASE
        WHEN error_code IN ('INVALID_TURN_ID', 'BUDGET_ABOVE_LIMIT') THEN
            RAISE SQLSTATE 'PT400' USING MESSAGE = error, DETAIL = error_code;
        WHEN error_code = 'ANCHOR_NOT_FOUND' THEN
            RAISE SQLSTATE 'PT404' USING MESSAGE = error, DETAIL = 'SLICE_FAILED';
        WHEN error_code IN ('KEYS_UNAVAILABLE', 'GRAPH_TABLES') THEN
            RAISE SQLSTATE 'PT503' USING MESSAGE = error, DETAIL = 'SERVICE_UNAVAILABLE';
        ELSE
            RAISE SQLSTATE 'PT500' USING MESSAGE = error, DETAIL = 'SLICE_FAILED';
    END CASE;
END
$$;

-- A misspelt key would be left out silently, and a policy_ref left out is the default policy.
CREATE FUNCTION graph_kernel.check_request(request json, required text[], optional text[]) RETURNS void
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    fault text;
BEGIN
    IF request IS NULL OR json_typeof(request) <> 'object' THEN
        fault := 'request must be a JSON object';
    ELSE
        SELECT format(CASE WHEN k.key <> ALL (required || optional) THEN 'request has an unknown key %s'
                           ELSE 'request has the key %s more than once' END, to_json(left(k.key, 64)))
        INTO fault
        FROM json_object_keys(request) AS k (key)
        GROUP BY k.key HAVING count(*) > 1 OR k.key <> ALL (required || optional)
        ORDER BY k.key LIMIT 1;
        fault := coalesce(fault, (SELECT format('request lacks the key %s', to_json(r.key))
                                  FROM unnest(required) WITH ORDINALITY AS r (key, position)
                                  WHERE request ->> r.key IS NULL ORDER BY r.position LIMIT 1));
    END IF;
    IF fault IS NOT NULL THEN
        RAISE SQLSTATE 'PT400' USING MESSAGE = fault, DETAIL = 'INVALID_REQUEST',
            HINT = format('Required: %s; optional: %s.', array_to_string(required, ', '),
                          coalesce(nullif(array_to_string(optional, ', '), ''), 'nothing'));
    END IF;
END
$$;

-- The policy that a request's policy_ref names: the default one where there is none.
CREATE FUNCTION graph_kernel.requested_policy(policy_ref json) RETURNS @extschema@.slice_policy
LANGUAGE plpgsql STABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    found @extschema@.slice_policy;
BEGIN
    IF policy_ref IS NULL OR json_typeof(policy_ref) = 'null' THEN
        RETURN 'default'::@extschema@.slice_policy;
    END IF;
    PERFORM graph_kernel.check_request(policy_ref, '{policy_id,params_hash}', '{}');
    SELECT p.policy INTO found FROM @extschema@.graph_policies AS p
    WHERE p.policy_id = policy_ref ->> 'policy_id' AND p.params_hash = policy_ref ->> 'params_hash' LIMIT 1;
    IF found IS NULL THEN
        RAISE SQLSTATE 'PT404' USING DETAIL = 'POLICY_NOT_FOUND',
            MESSAGE = format('policy %s with params_hash %s is not registered',
                             left(policy_ref ->> 'policy_id', 64), left(policy_ref ->> 'params_hash', 64)),
            HINT = 'graph_api_policies() lists the registered policies.';
    END IF;
    RETURN found;
END
$$;

CREATE FUNCTION graph_kernel.policy_ref(policy @extschema@.slice_policy) RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $$
    SELECT format('{"policy_id":%s,"params_hash":%s}', policy::json -> 'version',
                  to_json(@extschema@.graph_policy_hash(policy)))
$$;

CREATE FUNCTION graph_api_slice(json) RETURNS json
LANGUAGE plpgsql STABLE PARALLEL RESTRICTED COST 10000
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    policy @extschema@.slice_policy;
    taken record;
BEGIN
    PERFORM graph_kernel.check_request($1, '{anchor_turn_id}', '{policy_ref}');
    policy := graph_kernel.requested_policy($1 -> 'policy_ref');
    SELECT s.* INTO taken FROM graph_kernel.slice_summaries(ARRAY[$1 ->> 'anchor_turn_id'], policy) AS s;
    IF taken.error IS NOT NULL THEN
        PERFORM graph_kernel.raise_api_error(taken.error_code, taken.error);
    END IF;
    RETURN format('{"slice":%s,"policy_ref":%s}', taken.summary, graph_kernel.policy_ref(policy));
END
$$;

CREATE FUNCTION graph_api_slice_batch(json) RETURNS json
LANGUAGE plpgsql STABLE PARALLEL RESTRICTED COST 100000
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    max_anchors CONSTANT integer := 100;
    anchors json := $1 -> 'anchor_turn_ids';
    policy @extschema@.slice_policy;
    taken record;
    slices text[];
    errors text[];
BEGIN
    PERFORM graph_kernel.check_request($1, '{anchor_turn_ids}', '{policy_ref}');
    IF json_typeof(anchors) <> 'array' THEN
        RAISE SQLSTATE 'PT400' USING MESSAGE = 'anchor_turn_ids must be an array', DETAIL = 'INVALID_REQUEST';
    END IF;
    IF json_array_length(anchors) > max_anchors THEN
        RAISE SQLSTATE 'PT400' USING DETAIL = 'BATCH_TOO_LARGE',
            MESSAGE = format('batch of %s anchors is larger than %s', json_array_length(anchors), max_anchors),
            HINT = 'Send several batches.';
    END IF;
    policy := graph_kernel.requested_policy($1 -> 'policy_ref');
    FOR taken IN
        SELECT s.* FROM graph_kernel.slice_summaries(ARRAY(
            SELECT a.anchor FROM json_array_elements_text(anchors) WITH ORDINALITY AS a (anchor, position)
            ORDER BY a.position), policy) AS s
    LOOP
        IF taken.error IS NULL THEN
            slices := slices || taken.summary::text;
        ELSIF taken.error_code IN ('INVALID_TURN_ID', 'ANCHOR_NOT_FOUND', 'DUPLICATE_TURN', 'SLICE_TOO_LARGE',
                                   'SLICE_FAILED') THEN
            errors := errors || format('{"anchor_turn_id":%s,"error":%s}',
                coalesce(to_json(taken.anchor_turn_id), 'null'), to_json(taken.error));
        ELSE
            -- Wrong for every anchor.
            PERFORM graph_kernel.raise_api_error(taken.error_code, taken.error);
        END IF;
    END LOOP;
    RETURN format('{"slices":[%s],"policy_ref":%s,"success_count":%s,"errors":[%s]}',
        array_to_string(slices, ','), graph_kernel.policy_ref(policy), coalesce(cardinality(slices), 0),
        array_to_string(errors, ','));
END
$$;

CREATE FUNCTION graph_api_policies() RETURNS json
LANGUAGE sql STABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $$
    SELECT format('{"policies":[%s],"registry_fingerprint":%s}',
        string_agg(graph_kernel.policy_ref(p.policy), ',' ORDER BY p.params_hash),
        to_json(@extschema@.graph_policy_registry_fingerprint()))::json
    FROM (SELECT DISTINCT ON (d.params_hash) d.params_hash, d.policy
          FROM @extschema@.graph_policies AS d ORDER BY d.params_hash) AS p
$$;

CREATE FUNCTION graph_api_register_policy(json) RETURNS json
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    policy @extschema@.slice_policy;
BEGIN
    PERFORM graph_kernel.check_request($1, '{policy}', '{name}');
    policy := ($1 -> 'policy')::@extschema@.slice_policy;
    PERFORM @extschema@.graph_policy_register(policy, $1 ->> 'name');
    RETURN format('{"policy_ref":%s}', graph_kernel.policy_ref(policy));
END
$$;

CREATE FUNCTION graph_api_verify_token(json) RETURNS json
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    anchor uuid;
    valid boolean;
BEGIN
    PERFORM graph_kernel.check_request($1, '{admissibility_token,slice_id,anchor_turn_id,policy_id,'
        'policy_params_hash,graph_snapshot_hash,schema_version}', '{}');
    BEGIN
        anchor := $1 ->> 'anchor_turn_id';
    EXCEPTION WHEN invalid_text_representation THEN
        RETURN '{"valid":false,"reason":"Invalid anchor_turn_id format"}';
    END;
    valid := @extschema@.graph_verify_token($1 ->> 'admissibility_token', $1 ->> 'slice_id', anchor,
        $1 ->> 'policy_id', $1 ->> 'policy_params_hash', $1 ->> 'graph_snapshot_hash', $1 ->> 'schema_version');
    RETURN CASE WHEN valid THEN '{"valid":true,"reason":null}'
                ELSE '{"valid":false,"reason":"Token does not match expected HMAC"}' END;
EXCEPTION WHEN object_not_in_prerequisite_state THEN
    RAISE SQLSTATE 'PT503' USING MESSAGE = SQLERRM, DETAIL = 'SERVICE_UNAVAILABLE';
END
$$;

CREATE FUNCTION graph_api_health() RETURNS json
LANGUAGE plpgsql STABLE PARALLEL RESTRICTED
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    problem record;
BEGIN
    -- No anchor: what would be wrong for every one.
    SELECT s.* INTO problem FROM graph_kernel.slice_summaries('{}', 'default') AS s;
    IF FOUND THEN
        PERFORM graph_kernel.raise_api_error(problem.error_code, problem.error);
    END IF;
    RETURN format('{"status":"healthy","version":%s,"schema_version":"1.0.0","policy_count":%s,'
                  '"registry_fingerprint":%s,"database":{"connected":true}}',
        to_json(@extschema@.graph_kernel_version()),
        (SELECT count(DISTINCT p.params_hash) FROM @extschema@.graph_policies AS p),
        to_json(@extschema@.graph_policy_registry_fingerprint()));
END
$$;
