CREATE FUNCTION graph_kernel.add_epoch() RETURNS text
    AS 'MODULE_PATHNAME', 'add_epoch_wrapper'
    LANGUAGE c VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp;
COMMENT ON FUNCTION graph_kernel.add_epoch() IS 'writes the root of a new key epoch';
CREATE FUNCTION graph_kernel.list_keys() RETURNS TABLE (kid text, state text)
    AS 'MODULE_PATHNAME', 'list_keys_wrapper'
    LANGUAGE c STABLE PARALLEL RESTRICTED ROWS 4 SET search_path = pg_catalog, pg_temp;
COMMENT ON FUNCTION graph_kernel.list_keys() IS 'key ids and states';
CREATE FUNCTION graph_kernel.list_proof_keys() RETURNS TABLE (kid text, state text, public_key text, key_source text)
    AS 'MODULE_PATHNAME', 'list_proof_keys_wrapper'
    LANGUAGE c STABLE PARALLEL RESTRICTED ROWS 4 SET search_path = pg_catalog, pg_temp;
COMMENT ON FUNCTION graph_kernel.list_proof_keys() IS 'key ids, states and public keys';
CREATE FUNCTION graph_kernel.is_kid(kid text) RETURNS boolean
    AS 'MODULE_PATHNAME', 'is_kid_wrapper'
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION graph_kernel.is_kid(text) IS 'whether a text has the form of a key id';

SET LOCAL search_path TO pg_catalog, pg_temp; -- what bodies parsed now are resolved by

-- Definer's rights: no role has privileges on the tables; EXECUTE decides who may call these. They are parsed now, and
-- call functions that no role may execute while DROP EXTENSION has to wait.
CREATE FUNCTION graph_kernel.epoch_times() RETURNS TABLE (epoch integer, created_at timestamptz)
LANGUAGE sql STABLE SECURITY DEFINER ROWS 4
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT k.epoch, k.created_at FROM graph_kernel.root_keys AS k;
END;
COMMENT ON FUNCTION graph_kernel.epoch_times() IS 'when the key epochs began';

CREATE VIEW graph_kernel.keys AS
    SELECT k.kid, k.state, t.created_at
    FROM graph_kernel.list_keys() AS k
    LEFT JOIN graph_kernel.epoch_times() AS t
        ON t.epoch OPERATOR(pg_catalog.=) pg_catalog.split_part(k.kid, '-', 1)::integer;
COMMENT ON VIEW graph_kernel.keys IS 'the keys by name and state; no secret';
COMMENT ON COLUMN graph_kernel.keys.kid IS 'names the key in attestations';
COMMENT ON COLUMN graph_kernel.keys.state IS 'active, verifying or revoked';
COMMENT ON COLUMN graph_kernel.keys.created_at IS 'when the epoch began';

CREATE VIEW graph_kernel.proof_keys AS
    SELECT k.kid, k.state, t.created_at, k.public_key, k.key_source
    FROM graph_kernel.list_proof_keys() AS k
    LEFT JOIN graph_kernel.epoch_times() AS t
        ON t.epoch OPERATOR(pg_catalog.=) pg_catalog.split_part(k.kid, '-', 1)::integer;
COMMENT ON VIEW graph_kernel.proof_keys IS 'the public keys that check proofs';
COMMENT ON COLUMN graph_kernel.proof_keys.kid IS 'names the key in proofs';
COMMENT ON COLUMN graph_kernel.proof_keys.state IS 'active, verifying or revoked';
COMMENT ON COLUMN graph_kernel.proof_keys.created_at IS 'when the epoch began';
COMMENT ON COLUMN graph_kernel.proof_keys.public_key IS 'the key in PEM';
COMMENT ON COLUMN graph_kernel.proof_keys.key_source IS 'where its root is kept: database or file';

CREATE FUNCTION graph_kernel.rotate_key_internal(revoke_old boolean) RETURNS text
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    old_kids text[];
    old_states text[];
    new_kid text;
BEGIN
    -- One rotation at a time, so that each sees the key of the one before it.
    LOCK TABLE graph_kernel.root_keys IN EXCLUSIVE MODE;
    SELECT array_agg(k.kid), array_agg(k.state) INTO old_kids, old_states FROM graph_kernel.list_keys() AS k;
    new_kid := graph_kernel.add_epoch();
    -- The one that signed, which need not be of the epoch before, and that one, also where it is that of a database
    -- that this one is a copy of, and signed nothing here.
    IF revoke_old THEN
        INSERT INTO graph_kernel.revoked_keys (kid)
        SELECT k.kid
        FROM unnest(old_kids, old_states) AS k (kid, state)
        WHERE k.state = 'active'
           OR split_part(k.kid, '-', 1)::integer = (SELECT max(t.epoch) - 1 FROM graph_kernel.epoch_times() AS t)
        ON CONFLICT DO NOTHING;
    END IF;
    RETURN new_kid;
END
$$;
COMMENT ON FUNCTION graph_kernel.rotate_key_internal(boolean) IS 'rotate_key';

CREATE FUNCTION graph_kernel.rotate_key_for(revoke_old boolean) RETURNS text
LANGUAGE sql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT FROM graph_kernel.root_keys LIMIT 0; -- DROP EXTENSION waits
    SELECT graph_kernel.rotate_key_internal($1);
END;
COMMENT ON FUNCTION graph_kernel.rotate_key_for(boolean) IS 'rotate_key, for its caller';

-- The library calls rotate_key_for, which no role may execute.
CREATE FUNCTION graph_kernel.rotate_key(revoke_old boolean DEFAULT false) RETURNS text
    AS 'MODULE_PATHNAME', 'rotate_key_wrapper'
    LANGUAGE c VOLATILE SET search_path = pg_catalog, pg_temp;
COMMENT ON FUNCTION graph_kernel.rotate_key(boolean) IS
    'begins a new key epoch and returns its key id; may revoke the one before';

CREATE FUNCTION graph_kernel.revoke_key_internal(kid text) RETURNS void
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF revoke_key_internal.kid IS NULL OR NOT graph_kernel.is_kid(revoke_key_internal.kid) THEN
        RAISE EXCEPTION 'not a key id: %', coalesce(quote_literal(left(revoke_key_internal.kid, 64)), 'NULL')
            USING ERRCODE = 'invalid_parameter_value', DETAIL = 'INVALID_KID',
                  HINT = 'SELECT kid, state FROM graph_kernel.keys;';
    END IF;
    LOCK TABLE graph_kernel.root_keys IN EXCLUSIVE MODE;
    IF EXISTS (SELECT FROM graph_kernel.list_keys() AS k
               WHERE k.kid = revoke_key_internal.kid AND k.state = 'active') THEN
        RAISE EXCEPTION 'key % is the one that signs', revoke_key_internal.kid
            USING ERRCODE = 'object_not_in_prerequisite_state', DETAIL = 'ACTIVE_KEY',
                  HINT = 'SELECT graph_kernel.rotate_key(revoke_old => true);';
    END IF;
    INSERT INTO graph_kernel.revoked_keys (kid) VALUES (revoke_key_internal.kid) ON CONFLICT DO NOTHING;
END
$$;
COMMENT ON FUNCTION graph_kernel.revoke_key_internal(text) IS 'revoke_key';

CREATE FUNCTION graph_kernel.revoke_key_for(kid text) RETURNS void
LANGUAGE sql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT FROM graph_kernel.root_keys LIMIT 0; -- DROP EXTENSION waits
    SELECT graph_kernel.revoke_key_internal($1);
END;
COMMENT ON FUNCTION graph_kernel.revoke_key_for(text) IS 'revoke_key, for its caller';

-- The library calls revoke_key_for, which no role may execute.
CREATE FUNCTION graph_kernel.revoke_key(kid text) RETURNS void
    AS 'MODULE_PATHNAME', 'revoke_key_wrapper'
    LANGUAGE c VOLATILE SET search_path = pg_catalog, pg_temp;
COMMENT ON FUNCTION graph_kernel.revoke_key(text) IS
    'makes a key''s tokens fail verification for good';

DO $$ BEGIN PERFORM graph_kernel.add_epoch(); END $$;

SET LOCAL search_path TO @extschema@, pg_temp;
