CREATE FUNCTION graph_kernel.presets()
    RETURNS TABLE (name text, policy @extschema@.slice_policy, is_counted boolean)
    AS 'MODULE_PATHNAME', 'presets_wrapper'
    LANGUAGE c IMMUTABLE PARALLEL SAFE ROWS 6 SET search_path = pg_catalog, pg_temp;
COMMENT ON FUNCTION graph_kernel.presets() IS 'the policies that are always there';
CREATE FUNCTION graph_kernel.registry_fingerprint(policy_ids text[], params_hashes text[]) RETURNS text
    AS 'MODULE_PATHNAME', 'registry_fingerprint_wrapper'
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp;
COMMENT ON FUNCTION graph_kernel.registry_fingerprint(text[], text[]) IS
    'fingerprint of a registry with these policies';

-- A row without a name for each policy, one more for each of its names. The presets have none, so that a
-- restored dump meets nothing that is there already. A name never has the form of a hash.
CREATE TABLE graph_kernel.policies (
    name text UNIQUE CHECK (
        pg_catalog.octet_length(name) OPERATOR(pg_catalog.<=) 1020
        AND name OPERATOR(pg_catalog.~) '^(?![0-9a-f]{16}$).{1,255}$'
        AND name OPERATOR(pg_catalog.<>) ALL ('{default,focused,broad}')
    ),
    policy @extschema@.slice_policy NOT NULL,
    params_hash text NOT NULL GENERATED ALWAYS AS (@extschema@.graph_policy_hash(policy)) STORED,
    registered_by text NOT NULL DEFAULT CURRENT_USER,
    registered_at timestamptz NOT NULL DEFAULT pg_catalog.now(),
    -- Checked before the form of the name, by its own name.
    CONSTRAINT encoding CHECK (graph_kernel.require_text(name) AND graph_kernel.require_role_name(registered_by))
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

-- A preset gives way to a policy that was registered under its name before the preset came. A preset that was
-- registered is counted, and listed once.
CREATE VIEW graph_kernel.known_policies AS
    SELECT p.name, p.policy::pg_catalog.json OPERATOR(pg_catalog.->>) 'version' AS policy_id,
           p.params_hash, p.policy, p.registered_by, p.registered_at, p.is_counted
    FROM (
        SELECT d.name, @extschema@.graph_policy_hash(d.policy) AS params_hash, d.policy,
               NULL::pg_catalog.text AS registered_by, NULL::pg_catalog.timestamptz AS registered_at,
               d.is_counted OR EXISTS (
                   SELECT FROM graph_kernel.policies AS r
                   WHERE r.params_hash OPERATOR(pg_catalog.=) @extschema@.graph_policy_hash(d.policy)) AS is_counted
        FROM graph_kernel.presets() AS d
        WHERE NOT EXISTS (SELECT FROM graph_kernel.policies AS n WHERE n.name OPERATOR(pg_catalog.=) d.name)
        UNION ALL
        SELECT r.name, r.params_hash, r.policy, r.registered_by, r.registered_at, true
        FROM graph_kernel.policies AS r
        WHERE r.name IS NOT NULL OR NOT EXISTS (
            SELECT FROM graph_kernel.policies AS n
            WHERE n.params_hash OPERATOR(pg_catalog.=) r.params_hash AND n.name IS NOT NULL
        ) AND NOT EXISTS (
            SELECT FROM graph_kernel.presets() AS d
            WHERE @extschema@.graph_policy_hash(d.policy) OPERATOR(pg_catalog.=) r.params_hash
              AND NOT EXISTS (SELECT FROM graph_kernel.policies AS n WHERE n.name OPERATOR(pg_catalog.=) d.name))
    ) AS p;
COMMENT ON VIEW graph_kernel.known_policies IS 'registered policies and presets, by name';
CREATE VIEW @extschema@.graph_policies AS
    SELECT p.name, p.policy_id, p.params_hash, p.policy, p.registered_by, p.registered_at
    FROM graph_kernel.known_policies AS p;
COMMENT ON VIEW @extschema@.graph_policies IS 'the presets and the registered policies, a row for each name';
COMMENT ON COLUMN graph_kernel.known_policies.name IS 'a name of the policy; NULL when it has none';
COMMENT ON COLUMN graph_kernel.known_policies.policy_id IS 'version of the policy''s rules';
COMMENT ON COLUMN graph_kernel.known_policies.params_hash IS 'fingerprint of its parameters';
COMMENT ON COLUMN graph_kernel.known_policies.policy IS 'the policy';
COMMENT ON COLUMN graph_kernel.known_policies.registered_by IS 'role that registered it; NULL for a preset';
COMMENT ON COLUMN graph_kernel.known_policies.registered_at IS 'when it was registered; NULL for a preset';
COMMENT ON COLUMN graph_kernel.known_policies.is_counted IS 'whether the registry''s fingerprint counts it';
COMMENT ON COLUMN @extschema@.graph_policies.name IS 'a name of the policy; NULL when it has none';
COMMENT ON COLUMN @extschema@.graph_policies.policy_id IS 'version of the policy''s rules';
COMMENT ON COLUMN @extschema@.graph_policies.params_hash IS 'fingerprint of its parameters';
COMMENT ON COLUMN @extschema@.graph_policies.policy IS 'the policy';
COMMENT ON COLUMN @extschema@.graph_policies.registered_by IS 'role that registered it; NULL for a preset';
COMMENT ON COLUMN @extschema@.graph_policies.registered_at IS 'when it was registered; NULL for a preset';

SET LOCAL search_path TO pg_catalog, pg_temp; -- what bodies parsed now are resolved by

-- The word for what forbids to register this policy, under this name if one is given; NULL where nothing does. What is
-- there already forbids nothing.
CREATE FUNCTION graph_kernel.policy_fault(policy @extschema@.slice_policy, name text) RETURNS text
LANGUAGE sql STABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
RETURN CASE
    WHEN policy_fault.policy IS NULL THEN 'INVALID_POLICY'
    WHEN octet_length(policy_fault.name) > 4 * 255 OR policy_fault.name !~ '^(?![0-9a-f]{16}$).{1,255}$'
        THEN 'INVALID_POLICY_NAME'
    -- Everybody reads the registry, and their hash does not tell them apart.
    WHEN policy_fault.policy::json ->> 'pins' IS NOT NULL OR policy_fault.policy::json ->> 'seeds' IS NOT NULL
        THEN 'POLICY_WITH_INPUTS'
    WHEN EXISTS (SELECT FROM graph_kernel.known_policies AS p
                 WHERE p.params_hash = @extschema@.graph_policy_hash(policy_fault.policy)
                   AND p.policy::text <> policy_fault.policy::text) THEN 'POLICY_HASH_COLLISION'
    WHEN EXISTS (SELECT FROM graph_kernel.known_policies AS p
                 WHERE p.name = policy_fault.name
                   AND (p.policy::text <> policy_fault.policy::text
                        -- A name that the fingerprint does not count is given only where it was registered before it
                        -- was a preset's.
                        OR EXISTS (SELECT FROM graph_kernel.presets() AS d WHERE d.name = p.name AND NOT d.is_counted)
                           AND NOT EXISTS (SELECT FROM graph_kernel.policies AS n WHERE n.name = p.name)))
        THEN 'POLICY_NAME_TAKEN'
END;
COMMENT ON FUNCTION graph_kernel.policy_fault(@extschema@.slice_policy, text) IS
    'the word for what forbids to register a policy; NULL where nothing does';

-- Raises what forbids to register; register_policy and the table's trigger both ask it.
CREATE FUNCTION graph_kernel.check_policy(policy @extschema@.slice_policy, name text) RETURNS void
LANGUAGE plpgsql STABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    fault text := graph_kernel.policy_fault(policy, name);
BEGIN
    IF NOT graph_kernel.is_text(name) THEN
        RAISE EXCEPTION 'the name of a policy is not UTF-8'
            USING ERRCODE = 'character_not_in_repertoire', DETAIL = 'INVALID_TEXT', HINT = 'Give UTF-8.';
    END IF;
    CASE fault
        WHEN 'INVALID_POLICY' THEN
            RAISE EXCEPTION 'policy must not be null'
                USING ERRCODE = 'null_value_not_allowed', DETAIL = fault,
                      HINT = 'Leave the argument out for the default policy, or give a preset or a JSON object.';
        WHEN 'INVALID_POLICY_NAME' THEN
            RAISE EXCEPTION 'not a name for a policy: %', quote_literal(left(name, 64))
                USING ERRCODE = 'invalid_parameter_value', DETAIL = fault,
                      HINT = 'Give 1 to 255 characters that do not look like a params_hash.';
        WHEN 'POLICY_WITH_INPUTS' THEN
            RAISE EXCEPTION 'a policy with pins or seeds cannot be registered'
                USING ERRCODE = 'invalid_parameter_value', DETAIL = fault,
                      HINT = 'Register it without them, and give them with each call.';
        WHEN 'POLICY_HASH_COLLISION' THEN
            RAISE EXCEPTION 'another policy with the params_hash of this one is registered: the two hashes collide'
                USING ERRCODE = 'unique_violation', DETAIL = fault,
                      HINT = 'Change a parameter of the policy by a millionth.';
        WHEN 'POLICY_NAME_TAKEN' THEN
            RAISE EXCEPTION 'the name % is taken', quote_literal(name)
                USING ERRCODE = 'unique_violation', DETAIL = fault,
                      HINT = format('SELECT name, params_hash FROM %s;', graph_kernel.own_name('graph_policies'));
        ELSE NULL;
    END CASE;
END
$$;
COMMENT ON FUNCTION graph_kernel.check_policy(@extschema@.slice_policy, text) IS
    'raises what forbids to register a policy';

-- The table's trigger checks the right to register.
CREATE FUNCTION graph_kernel.add_policy(policy @extschema@.slice_policy, name text) RETURNS void
LANGUAGE sql VOLATILE
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    INSERT INTO graph_kernel.policies (policy, name) VALUES (add_policy.policy, add_policy.name)
    ON CONFLICT DO NOTHING;
END;
COMMENT ON FUNCTION graph_kernel.add_policy(@extschema@.slice_policy, text) IS 'adds a row to the registered policies';

-- EXECUTE on this is the right to register. Invoker's rights: the caller's name goes into the table. Writes nothing
-- when the policy and the name are there already; each statement sees what those before it have waited for.
CREATE FUNCTION graph_kernel.register_policy(policy @extschema@.slice_policy, name text)
RETURNS TABLE (policy_id text, params_hash text)
LANGUAGE sql VOLATILE ROWS 1
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT graph_kernel.check_policy(register_policy.policy, register_policy.name);

    SELECT graph_kernel.add_policy(register_policy.policy, NULL)
    WHERE NOT EXISTS (SELECT FROM graph_kernel.known_policies AS p
                      WHERE p.is_counted AND p.params_hash = @extschema@.graph_policy_hash(register_policy.policy));
    SELECT graph_kernel.add_policy(register_policy.policy, register_policy.name)
    WHERE register_policy.name IS NOT NULL
      AND NOT EXISTS (SELECT FROM graph_kernel.known_policies AS p WHERE p.name = register_policy.name);
    -- Another transaction may have registered meanwhile.
    SELECT graph_kernel.check_policy(register_policy.policy, register_policy.name);

    SELECT register_policy.policy::json ->> 'version', @extschema@.graph_policy_hash(register_policy.policy);
END;
COMMENT ON FUNCTION graph_kernel.register_policy(@extschema@.slice_policy, text) IS
    'registers a policy, under a name if one is given; EXECUTE on it is the right to register';

CREATE FUNCTION graph_kernel.policy_register_internal(policy @extschema@.slice_policy, name text) RETURNS void
LANGUAGE sql VOLATILE
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT FROM graph_kernel.register_policy($1, $2);
END;
COMMENT ON FUNCTION graph_kernel.policy_register_internal(@extschema@.slice_policy, text) IS
    'graph_policy_register';

-- The library calls policy_register_internal.
CREATE FUNCTION @extschema@.graph_policy_register(policy @extschema@.slice_policy, name text DEFAULT NULL)
RETURNS TABLE (policy_id text, params_hash text)
    AS 'MODULE_PATHNAME', 'graph_policy_register_wrapper'
    LANGUAGE c VOLATILE COST 1000 ROWS 1 SET search_path = pg_catalog, pg_temp;
COMMENT ON FUNCTION @extschema@.graph_policy_register(@extschema@.slice_policy, text) IS
    'registers a policy for good, and may give it a name; returns its reference';

CREATE FUNCTION graph_kernel.policy_not_found(ref text) RETURNS @extschema@.slice_policy
LANGUAGE plpgsql STABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF NOT graph_kernel.is_text(ref) THEN
        RAISE EXCEPTION 'the reference to a policy is not UTF-8'
            USING ERRCODE = 'character_not_in_repertoire', DETAIL = 'INVALID_TEXT', HINT = 'Give UTF-8.';
    END IF;
    RAISE EXCEPTION 'no policy has the name or params_hash %', quote_literal(left(ref, 255))
        USING ERRCODE = 'undefined_object', DETAIL = 'POLICY_NOT_FOUND',
              HINT = format('SELECT name, params_hash FROM %s;', graph_kernel.own_name('graph_policies'));
END
$$;
COMMENT ON FUNCTION graph_kernel.policy_not_found(text) IS 'raises that no policy is called so';

CREATE FUNCTION graph_kernel.policy_internal(ref text) RETURNS @extschema@.slice_policy
LANGUAGE sql STABLE STRICT PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
RETURN coalesce((SELECT p.policy FROM graph_kernel.known_policies AS p
                 WHERE policy_internal.ref IN (p.name, p.params_hash) LIMIT 1),
                graph_kernel.policy_not_found(policy_internal.ref));
COMMENT ON FUNCTION graph_kernel.policy_internal(text) IS 'graph_policy';

-- The library calls policy_internal.
CREATE FUNCTION @extschema@.graph_policy(ref text) RETURNS @extschema@.slice_policy
    AS 'MODULE_PATHNAME', 'graph_policy_wrapper'
    LANGUAGE c STABLE STRICT PARALLEL SAFE COST 100 SET search_path = pg_catalog, pg_temp;
COMMENT ON FUNCTION @extschema@.graph_policy(text) IS 'the policy of this name or params_hash';

CREATE FUNCTION @extschema@.graph_policy_registry_fingerprint() RETURNS text
LANGUAGE sql STABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
RETURN (
    SELECT graph_kernel.registry_fingerprint(array_agg(p.policy_id), array_agg(p.params_hash))
    FROM graph_kernel.known_policies AS p WHERE p.is_counted);
COMMENT ON FUNCTION @extschema@.graph_policy_registry_fingerprint() IS 'fingerprint of all registered policies';

SET LOCAL search_path TO @extschema@, pg_temp;
