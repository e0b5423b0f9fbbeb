-- Requests and answers of the REST service of the crate admissibility-kernel, for PostgREST: one unnamed json
-- argument is the whole body, and an SQLSTATE of PTnnn is answered as status nnn.

SET LOCAL search_path TO pg_catalog, pg_temp; -- what bodies parsed now are resolved by

CREATE FUNCTION graph_kernel.slice_summaries(anchors text[], policy @extschema@.slice_policy)
RETURNS TABLE (anchor_turn_id text, summary json, error_code text, error text)
    AS 'MODULE_PATHNAME', 'slice_summaries_wrapper'
    LANGUAGE c STABLE PARALLEL RESTRICTED COST 100000 ROWS 10
    SET search_path = pg_catalog, pg_temp;
COMMENT ON FUNCTION graph_kernel.slice_summaries(text[], @extschema@.slice_policy) IS
    'slices as the REST bodies have them, or what is wrong';

-- The summaries of slices at these anchors, joined, and the errors of single anchors where a batch is asked for. Any
-- other error has the SQLSTATE of its HTTP status.
CREATE FUNCTION graph_kernel.api_summaries(anchors text[], policy @extschema@.slice_policy, is_batch boolean)
RETURNS TABLE (slices text, successes integer, errors text)
LANGUAGE plpgsql STABLE PARALLEL RESTRICTED COST 100000 ROWS 1
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    taken text[] := '{}';
    failed text[] := '{}';
    found record;
    state text;
    word text;
BEGIN
    FOR found IN SELECT s.anchor_turn_id, s.summary::text AS summary, s.error_code, s.error
                 FROM graph_kernel.slice_summaries(anchors, policy) AS s LOOP
        IF found.error IS NULL THEN
            taken := taken || found.summary;
        ELSIF is_batch AND found.error_code IN ('INVALID_TURN_ID', 'ANCHOR_NOT_FOUND', 'DUPLICATE_TURN',
            'SLICE_TOO_LARGE',
                                                'SLICE_FAILED') THEN
            failed := failed || format('{"anchor_turn_id":%s,"error":%s}',
                                       coalesce(to_json(found.anchor_turn_id), 'null'), to_json(found.error));
        ELSE
            state := CASE
                WHEN found.error_code IN ('INVALID_TURN_ID', 'BUDGET_ABOVE_LIMIT') THEN 'PT400'
                WHEN found.error_code = 'ANCHOR_NOT_FOUND' THEN 'PT404'
                WHEN found.error_code IN ('KEYS_UNAVAILABLE', 'GRAPH_TABLES') THEN 'PT503'
                ELSE 'PT500' END;
            word := CASE state WHEN 'PT400' THEN found.error_code WHEN 'PT503' THEN 'SERVICE_UNAVAILABLE'
                    ELSE 'SLICE_FAILED' END;
            RAISE EXCEPTION USING ERRCODE = state, MESSAGE = found.error, DETAIL = word;
        END IF;
    END LOOP;
    slices := array_to_string(taken, ',');
    successes := cardinality(taken);
    errors := array_to_string(failed, ',');
    RETURN NEXT;
END
$$;
COMMENT ON FUNCTION graph_kernel.api_summaries(text[], @extschema@.slice_policy, boolean) IS
    'slices as the REST bodies have them; an error has the SQLSTATE of its status';

-- A misspelt key would be ignored silently, and without a policy_ref the default policy is taken. Parsing takes
-- a multiple of a request's size in memory, so a long one is not parsed. Not IMMUTABLE: the planner would
-- call it early for a constant request. Taking one key out reads every string of the request, so that those that are
-- taken out later can be read.
CREATE FUNCTION graph_kernel.check_request(request json, required text[], optional text[]) RETURNS void
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    max_bytes CONSTANT integer := 1024 * 1024;
    fault text;
BEGIN
    IF array_ndims(required) > 1 OR array_ndims(optional) > 1 OR required IS NULL OR optional IS NULL
       OR cardinality(required) + cardinality(optional) > 100
       OR array_position(required || optional, NULL) IS NOT NULL THEN
        RAISE EXCEPTION 'not a list of keys'
            USING ERRCODE = 'invalid_parameter_value', DETAIL = 'INVALID_ARGUMENT',
                  HINT = 'Give names without NULL, at most 100.';
    END IF;
    BEGIN
        -- The server's own check of bytes: nothing holds the private schema here.
        PERFORM convert_from(textsend(array_to_string(required || optional, ' ')), 'UTF8');
    EXCEPTION WHEN character_not_in_repertoire THEN
        RAISE EXCEPTION 'a key of a request is not UTF-8'
            USING ERRCODE = 'character_not_in_repertoire', DETAIL = 'INVALID_TEXT', HINT = 'Give UTF-8.';
    END;
    IF octet_length(request::text) > max_bytes THEN
        RAISE SQLSTATE 'PT413' USING DETAIL = 'REQUEST_TOO_LARGE',
            MESSAGE = format('request of %s bytes is larger than %s', octet_length(request::text), max_bytes),
            HINT = 'Send several requests.';
    END IF;
    IF request IS NULL OR json_typeof(request) <> 'object' THEN
        fault := 'request must be a JSON object';
    ELSE
        BEGIN
            PERFORM convert_from(textsend(request::text), 'UTF8');
            SELECT format(CASE WHEN k.key <> ALL (required || optional) THEN 'request has an unknown key %s'
                               ELSE 'request has the key %s more than once' END, to_json(left(k.key, 64)))
            INTO fault
            FROM json_object_keys(request) AS k (key)
            GROUP BY k.key HAVING count(*) > 1 OR k.key <> ALL (required || optional)
            ORDER BY k.key LIMIT 1;
            fault := coalesce(fault, (SELECT format('request lacks the key %s', to_json(r.key))
                                      FROM unnest(required) WITH ORDINALITY AS r (key, position)
                                      WHERE request ->> r.key IS NULL ORDER BY r.position LIMIT 1));
        EXCEPTION WHEN data_exception THEN
            fault := format('request has a string that is not text: %s', SQLERRM);
        END;
    END IF;
    IF fault IS NOT NULL THEN
        RAISE SQLSTATE 'PT400' USING MESSAGE = fault, DETAIL = 'INVALID_REQUEST',
            HINT = format('Required: %s; optional: %s.',
                coalesce(nullif(array_to_string(required, ', '), ''), 'nothing'),
                          coalesce(nullif(array_to_string(optional, ', '), ''), 'nothing'));
    END IF;
END
$$;
COMMENT ON FUNCTION graph_kernel.check_request(json, text[], text[]) IS
    'refuses a request that lacks keys or has others';

CREATE FUNCTION graph_kernel.requested_policy_not_found(policy_ref json) RETURNS @extschema@.slice_policy
LANGUAGE plpgsql STABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF NOT graph_kernel.is_text(policy_ref::text) THEN
        RAISE SQLSTATE 'PT400' USING MESSAGE = 'policy_ref is not UTF-8', DETAIL = 'INVALID_TEXT', HINT = 'Give UTF-8.';
    END IF;
    RAISE SQLSTATE 'PT404' USING DETAIL = 'POLICY_NOT_FOUND',
        MESSAGE = format('policy %s with params_hash %s is not registered',
                         left(policy_ref ->> 'policy_id', 64), left(policy_ref ->> 'params_hash', 64)),
        HINT = 'graph_api_policies() lists the registered policies.';
END
$$;
COMMENT ON FUNCTION graph_kernel.requested_policy_not_found(json) IS
    'raises that a request refers to no registered policy';

-- The policy that a request's policy_ref names: the default one where there is none.
CREATE FUNCTION graph_kernel.requested_policy(policy_ref json) RETURNS @extschema@.slice_policy
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT graph_kernel.check_request(policy_ref, '{policy_id,params_hash}', '{}')
    WHERE json_typeof(policy_ref) <> 'null';
    SELECT CASE
        WHEN policy_ref IS NULL OR json_typeof(policy_ref) = 'null' THEN 'default'::@extschema@.slice_policy
        ELSE coalesce((SELECT p.policy FROM graph_kernel.known_policies AS p
                       WHERE p.policy_id = requested_policy.policy_ref ->> 'policy_id'
                         AND p.params_hash = requested_policy.policy_ref ->> 'params_hash' LIMIT 1),
                      graph_kernel.requested_policy_not_found(policy_ref))
    END;
END;
COMMENT ON FUNCTION graph_kernel.requested_policy(json) IS 'the policy that a request refers to';

CREATE FUNCTION graph_kernel.policy_ref(policy @extschema@.slice_policy) RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
RETURN format('{"policy_id":%s,"params_hash":%s}', policy::json -> 'version',
              to_json(@extschema@.graph_policy_hash(policy)));
COMMENT ON FUNCTION graph_kernel.policy_ref(@extschema@.slice_policy) IS 'a reference to a policy, as compact JSON';

CREATE FUNCTION @extschema@.graph_api_slice(json) RETURNS json
LANGUAGE sql STABLE COST 10000
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT FROM graph_kernel.binding LIMIT 0; -- DROP EXTENSION waits
    SELECT graph_kernel.check_request($1, '{anchor_turn_id}', '{policy_ref}');
    SELECT format('{"slice":%s,"policy_ref":%s}', taken.slices, graph_kernel.policy_ref(asked.policy))::json
    FROM (SELECT graph_kernel.requested_policy($1 -> 'policy_ref') AS policy OFFSET 0) AS asked
    CROSS JOIN LATERAL graph_kernel.api_summaries(ARRAY[$1 ->> 'anchor_turn_id'], asked.policy, false) AS taken;
END;
COMMENT ON FUNCTION @extschema@.graph_api_slice(json) IS 'REST: the slice at an anchor turn';

-- The anchors of the request of a batch, which it checks.
CREATE FUNCTION graph_kernel.requested_anchors(request json) RETURNS text[]
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    max_anchors CONSTANT integer := 100;
    anchors json;
BEGIN
    PERFORM graph_kernel.check_request(request, '{anchor_turn_ids}', '{policy_ref}');
    anchors := request -> 'anchor_turn_ids';
    IF json_typeof(anchors) <> 'array' THEN
        RAISE SQLSTATE 'PT400' USING MESSAGE = 'anchor_turn_ids must be an array', DETAIL = 'INVALID_REQUEST';
    END IF;
    IF json_array_length(anchors) > max_anchors THEN
        RAISE SQLSTATE 'PT400' USING DETAIL = 'BATCH_TOO_LARGE',
            MESSAGE = format('batch of %s anchors is larger than %s', json_array_length(anchors), max_anchors),
            HINT = 'Send several batches.';
    END IF;
    RETURN ARRAY(SELECT a.anchor FROM json_array_elements_text(anchors) WITH ORDINALITY AS a (anchor, position)
                 ORDER BY a.position);
END
$$;
COMMENT ON FUNCTION graph_kernel.requested_anchors(json) IS 'the anchors of a batch';

-- An error that concerns every anchor is an error of the batch.
CREATE FUNCTION @extschema@.graph_api_slice_batch(json) RETURNS json
LANGUAGE sql STABLE COST 100000
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT FROM graph_kernel.binding LIMIT 0; -- DROP EXTENSION waits
    SELECT format('{"slices":[%s],"policy_ref":%s,"success_count":%s,"errors":[%s]}',
                  taken.slices, graph_kernel.policy_ref(asked.policy), taken.successes, taken.errors)::json
    FROM (SELECT graph_kernel.requested_anchors($1) AS anchors,
                 graph_kernel.requested_policy($1 -> 'policy_ref') AS policy OFFSET 0) AS asked
    CROSS JOIN LATERAL graph_kernel.api_summaries(asked.anchors, asked.policy, true) AS taken;
END;
COMMENT ON FUNCTION @extschema@.graph_api_slice_batch(json) IS 'REST: the slices at up to 100 anchor turns';

CREATE FUNCTION @extschema@.graph_api_policies() RETURNS json
LANGUAGE sql STABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
RETURN (
    SELECT format('{"policies":[%s],"registry_fingerprint":%s}',
        string_agg(graph_kernel.policy_ref(p.policy), ',' ORDER BY p.params_hash),
        to_json(@extschema@.graph_policy_registry_fingerprint()))::json
    FROM (SELECT DISTINCT ON (d.params_hash) d.params_hash, d.policy
          FROM graph_kernel.known_policies AS d WHERE d.is_counted ORDER BY d.params_hash) AS p);
COMMENT ON FUNCTION @extschema@.graph_api_policies() IS 'REST: the registered policies';

CREATE FUNCTION @extschema@.graph_api_register_policy(json) RETURNS json
LANGUAGE sql VOLATILE
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT graph_kernel.check_request($1, '{policy}', '{name}');
    SELECT format('{"policy_ref":%s}', graph_kernel.policy_ref(asked.policy))::json
    FROM (SELECT ($1 -> 'policy')::@extschema@.slice_policy AS policy OFFSET 0) AS asked
    CROSS JOIN LATERAL graph_kernel.register_policy(asked.policy, $1 ->> 'name') AS r;
END;
COMMENT ON FUNCTION @extschema@.graph_api_register_policy(json) IS 'REST: registers a policy';

CREATE FUNCTION graph_kernel.verify_token(
    admissibility_token text, slice_id text, anchor_turn_id uuid, policy_id text, policy_params_hash text,
    graph_snapshot_hash text, schema_version text
) RETURNS boolean
    AS 'MODULE_PATHNAME', 'graph_verify_token_wrapper'
    LANGUAGE c STABLE PARALLEL SAFE COST 100 SET search_path = pg_catalog, pg_temp;
COMMENT ON FUNCTION graph_kernel.verify_token(text, text, uuid, text, text, text, text) IS
    'graph_verify_token, for api_verify_token';

CREATE FUNCTION graph_kernel.api_verify_token(request json) RETURNS json
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    anchor uuid;
    valid boolean;
BEGIN
    PERFORM graph_kernel.check_request(request, '{admissibility_token,slice_id,anchor_turn_id,policy_id,'
        'policy_params_hash,graph_snapshot_hash,schema_version}', '{}');
    BEGIN
        anchor := request ->> 'anchor_turn_id';
    EXCEPTION WHEN invalid_text_representation THEN
        RETURN '{"valid":false,"reason":"Invalid anchor_turn_id format"}';
    END;
    valid := graph_kernel.verify_token(request ->> 'admissibility_token', request ->> 'slice_id', anchor,
        request ->> 'policy_id', request ->> 'policy_params_hash', request ->> 'graph_snapshot_hash',
        request ->> 'schema_version');
    RETURN CASE WHEN valid THEN '{"valid":true,"reason":null}'
                ELSE '{"valid":false,"reason":"Token does not match expected HMAC"}' END;
EXCEPTION WHEN object_not_in_prerequisite_state THEN
    RAISE SQLSTATE 'PT503' USING MESSAGE = SQLERRM, DETAIL = 'SERVICE_UNAVAILABLE';
END
$$;
COMMENT ON FUNCTION graph_kernel.api_verify_token(json) IS 'graph_api_verify_token';

CREATE FUNCTION @extschema@.graph_api_verify_token(json) RETURNS json
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT FROM graph_kernel.binding LIMIT 0; -- DROP EXTENSION waits
    SELECT graph_kernel.api_verify_token($1);
END;
COMMENT ON FUNCTION @extschema@.graph_api_verify_token(json) IS 'REST: whether an admissibility token is the kernel''s';

CREATE FUNCTION graph_kernel.verify_proof(document json, proof json, public_key text)
RETURNS TABLE (valid boolean, reason text)
    AS 'MODULE_PATHNAME', 'graph_verify_proof_wrapper'
    LANGUAGE c IMMUTABLE PARALLEL SAFE COST 3000 ROWS 1 SET search_path = pg_catalog, pg_temp;
COMMENT ON FUNCTION graph_kernel.verify_proof(json, json, text) IS
    'graph_verify_proof, for functions of the extension';

CREATE FUNCTION @extschema@.graph_api_verify_proof(json) RETURNS json
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT FROM graph_kernel.binding LIMIT 0; -- DROP EXTENSION waits
    SELECT graph_kernel.check_request($1, '{slice,proof,public_key}', '{}');
    SELECT format('{"valid":%s,"reason":%s}', to_json(v.valid), CASE WHEN v.valid THEN 'null'
        ELSE to_json(v.reason)::text END)::json
    FROM graph_kernel.verify_proof($1 -> 'slice', $1 -> 'proof', $1 ->> 'public_key') AS v;
END;
COMMENT ON FUNCTION @extschema@.graph_api_verify_proof(json) IS
    'REST: whether a proof is that of a slice under a public key';

CREATE FUNCTION @extschema@.graph_api_health() RETURNS json
LANGUAGE sql STABLE PARALLEL RESTRICTED
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT FROM graph_kernel.binding LIMIT 0; -- DROP EXTENSION waits
    -- No anchor: an error that would concern every one.
    SELECT s.successes FROM graph_kernel.api_summaries('{}', 'default'::@extschema@.slice_policy, false) AS s;
    SELECT format('{"status":"healthy","version":%s,"schema_version":"1.0.0","policy_count":%s,'
                  '"registry_fingerprint":%s,"database":{"connected":true}}',
        to_json(@extschema@.graph_kernel_version()),
        (SELECT count(DISTINCT p.params_hash) FROM graph_kernel.known_policies AS p WHERE p.is_counted),
        to_json(@extschema@.graph_policy_registry_fingerprint()))::json;
END;
COMMENT ON FUNCTION @extschema@.graph_api_health() IS 'REST: whether slices can be taken';

SET LOCAL search_path TO @extschema@, pg_temp;
