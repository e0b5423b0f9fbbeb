CREATE FUNCTION graph_kernel.presets() RETURNS TABLE (name text, policy @extschema@.slice_policy)
    AS 'MODULE_PATHNAME', 'presets_wrapper'
    LANGUAGE c IMMUTABLE PARALLEL SAFE ROWS 3 SET search_path = pg_catalog, pg_temp;
CREATE FUNCTION graph_kernel.registry_fingerprint(params_hashes text[]) RETURNS text
    AS 'MODULE_PATHNAME', 'registry_fingerprint_wrapper'
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp;

-- A row without a name for each policy, one more for each of its names. The presets have none, so that a
-- restored dump meets nothing that is there already. A name is never what a hash looks like.
CREATE TABLE graph_kernel.policies (
    name text UNIQUE CHECK (
        name OPERATOR(pg_catalog.~) '^(?![0-9a-f]{16}$).{1,255}$'
        AND name OPERATOR(pg_catalog.<>) ALL ('{default,focused,broad}')
    ),
    policy @extschema@.slice_policy NOT NULL,
    params_hash text NOT NULL GENERATED ALWAYS AS (@extschema@.graph_policy_hash(policy)) STORED,
    registered_by text NOT NULL,
    registered_at timestamptz NOT NULL DEFAULT pg_catalog.now()
);
CREATE UNIQUE INDEX policies_params_hash_key ON graph_kernel.policies (params_hash) WHERE name IS NULL;
COMMENT ON TABLE graph_kernel.policies IS 'registered policies and their names; never changed, only added to';
COMMENT ON COLUMN graph_kernel.policies.name IS 'a name of the policy; NULL in the row that registers it';
COMMENT ON COLUMN graph_kernel.policies.policy IS 'the policy';
COMMENT ON COLUMN graph_kernel.policies.params_hash IS 'fingerprint of its parameters';
COMMENT ON COLUMN graph_kernel.policies.registered_by IS 'role that registered it';
COMMENT ON COLUMN graph_kernel.policies.registered_at IS 'when it was registered';
SELECT pg_catalog.pg_extension_config_dump('graph_kernel.policies', '');

CREATE TRIGGER guard BEFORE INSERT OR UPDATE OR DELETE ON graph_kernel.policies
    FOR EACH ROW EXECUTE FUNCTION graph_kernel.guard_table();
CREATE TRIGGER guard_truncate BEFORE TRUNCATE ON graph_kernel.policies
    FOR EACH STATEMENT EXECUTE FUNCTION graph_kernel.guard_table();
ALTER TABLE graph_kernel.policies ENABLE ALWAYS TRIGGER guard;
ALTER TABLE graph_kernel.policies ENABLE ALWAYS TRIGGER guard_truncate;
COMMENT ON TRIGGER guard ON graph_kernel.policies IS 'a registered policy is for good';
COMMENT ON TRIGGER guard_truncate ON graph_kernel.policies IS 'a registered policy is for good';

CREATE VIEW @extschema@.graph_policies AS
    SELECT p.name, p.policy::pg_catalog.json OPERATOR(pg_catalog.->>) 'version' AS policy_id,
           p.params_hash, p.policy, p.registered_by, p.registered_at
    FROM (
        SELECT d.name, @extschema@.graph_policy_hash(d.policy) AS params_hash, d.policy,
               NULL::pg_catalog.text AS registered_by, NULL::pg_catalog.timestamptz AS registered_at
        FROM graph_kernel.presets() AS d
        UNION ALL
        SELECT r.name, r.params_hash, r.policy, r.registered_by, r.registered_at
        FROM graph_kernel.policies AS r
        WHERE r.name IS NOT NULL OR NOT EXISTS (
            SELECT FROM graph_kernel.policies AS n
            WHERE n.params_hash OPERATOR(pg_catalog.=) r.params_hash AND n.name IS NOT NULL)
    ) AS p;
COMMENT ON COLUMN @extschema@.graph_policies.name IS 'a name of the policy; NULL when it has none';
COMMENT ON COLUMN @extschema@.graph_policies.policy_id IS 'version of the policy''s rules';
COMMENT ON COLUMN @extschema@.graph_policies.params_hash IS 'fingerprint of its parameters';
COMMENT ON COLUMN @extschema@.graph_policies.policy IS 'the policy';
COMMENT ON COLUMN @extschema@.graph_policies.registered_by IS 'role that registered it; NULL for a preset';
COMMENT ON COLUMN @extschema@.graph_policies.registered_at IS 'when it was registered; NULL for a preset';

-- Definer's rights: the table is nobody's; who may call this is a matter of EXECUTE. Writes nothing
-- when all is there already.
CREATE FUNCTION graph_policy_register(policy slice_policy, name text DEFAULT NULL)
RETURNS TABLE (policy_id text, params_hash text)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    -- Who asks: here current_user is the owner of the function.
    asked_by text := coalesce(nullif(current_setting('role'), 'none'), session_user);
BEGIN
    IF policy IS NULL THEN
        RAISE EXCEPTION 'policy must not be null'
            USING ERRCODE = 'null_value_not_allowed', DETAIL = 'INVALID_POLICY';
    END IF;
    IF name !~ '^(?![0-9a-f]{16}$).{1,255}$' THEN
        RAISE EXCEPTION 'not a name for a policy: %', quote_literal(left(name, 64))
            USING ERRCODE = 'invalid_parameter_value', DETAIL = 'INVALID_POLICY_NAME',
                  HINT = 'Give 1 to 255 characters that do not look like a params_hash.';
    END IF;
    policy_id := policy::json ->> 'version';
    params_hash := @extschema@.graph_policy_hash(policy);

    -- Each statement sees what the ones before it have waited for.
    IF NOT EXISTS (SELECT FROM @extschema@.graph_policies AS p WHERE p.params_hash = params_hash) THEN
        INSERT INTO graph_kernel.policies (policy, registered_by) VALUES (policy, asked_by)
        ON CONFLICT DO NOTHING;
    END IF;
    IF EXISTS (SELECT FROM @extschema@.graph_policies AS p
               WHERE p.params_hash = params_hash AND p.policy OPERATOR(@extschema@.<>) policy) THEN
        RAISE EXCEPTION 'another policy with params_hash % is registered: the two hashes collide', params_hash
            USING ERRCODE = 'unique_violation', DETAIL = 'POLICY_HASH_COLLISION',
                  HINT = 'Change a parameter of the policy by a millionth.';
    END IF;
    IF name IS NOT NULL
       AND NOT EXISTS (SELECT FROM @extschema@.graph_policies AS p WHERE p.name = name) THEN
        INSERT INTO graph_kernel.policies (name, policy, registered_by) VALUES (name, policy, asked_by)
        ON CONFLICT DO NOTHING;
    END IF;
    IF EXISTS (SELECT FROM @extschema@.graph_policies AS p
               WHERE p.name = name AND p.policy OPERATOR(@extschema@.<>) policy) THEN
        RAISE EXCEPTION 'another policy is named %', quote_literal(name)
            USING ERRCODE = 'unique_violation', DETAIL = 'POLICY_NAME_TAKEN',
                  HINT = 'SELECT name, params_hash FROM graph_policies;';
    END IF;
    RETURN NEXT;
END
$$;

CREATE FUNCTION graph_policy(ref text) RETURNS slice_policy
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    found @extschema@.slice_policy;
BEGIN
    SELECT p.policy INTO found FROM @extschema@.graph_policies AS p
    WHERE ref IN (p.name, p.params_hash) LIMIT 1;
    IF found IS NULL THEN
        RAISE EXCEPTION 'no policy has the name or params_hash %', quote_literal(left(ref, 255))
            USING ERRCODE = 'undefined_object', DETAIL = 'POLICY_NOT_FOUND',
                  HINT = 'SELECT name, params_hash FROM graph_policies;';
    END IF;
    RETURN found;
END
$$;

CREATE FUNCTION graph_policy_registry_fingerprint() RETURNS text
LANGUAGE sql STABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $$ SELECT graph_kernel.registry_fingerprint(ARRAY(SELECT p.params_hash FROM @extschema@.graph_policies AS p)) $$;
