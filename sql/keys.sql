CREATE FUNCTION graph_kernel.add_epoch() RETURNS text
    AS 'MODULE_PATHNAME', 'add_epoch_wrapper'
    LANGUAGE c VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp;
CREATE FUNCTION graph_kernel.list_keys() RETURNS TABLE (kid text, state text)
    AS 'MODULE_PATHNAME', 'list_keys_wrapper'
    LANGUAGE c STABLE PARALLEL RESTRICTED ROWS 4 SET search_path = pg_catalog, pg_temp;
CREATE FUNCTION graph_kernel.list_proof_keys() RETURNS TABLE (kid text, state text, public_key text, key_source text)
    AS 'MODULE_PATHNAME', 'list_proof_keys_wrapper'
    LANGUAGE c STABLE PARALLEL RESTRICTED ROWS 4 SET search_path = pg_catalog, pg_temp;
CREATE FUNCTION graph_kernel.is_kid(kid text) RETURNS boolean
    AS 'MODULE_PATHNAME', 'is_kid_wrapper'
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE;

SET LOCAL search_path TO pg_catalog, pg_temp; -- what bodies parsed now are resolved by

-- Definer's rights: no role has privileges on the tables; EXECUTE decides who may call these. They are parsed now, and
-- call functions that no role may execute while DROP EXTENSION has to wait.
CREATE FUNCTION graph_kernel.epoch_times() RETURNS TABLE (epoch integer, created_at timestamptz)
LANGUAGE sql STABLE SECURITY DEFINER ROWS 4
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT k.epoch, k.created_at FROM graph_kernel.root_keys AS k;
END;

CREATE VIEW graph_kernel.keys AS
    SELECT k.kid, k.state, t.created_at
    FROM graph_kernel.list_keys() AS k
    LEFT JOIN graph_kernel.epoch_times() AS t
        ON t.epoch OPERATOR(pg_catalog.=) pg_catalog.split_part(k.kid, '-', 1)::integer;

CREATE VIEW graph_kernel.proof_keys AS
    SELECT k.kid, k.state, t.created_at, k.public_key, k.key_source
    FROM graph_kernel.list_proof_keys() AS k
    LEFT JOIN graph_kernel.epoch_times() AS t
        ON t.epoch OPERATOR(pg_catalog.=) pg_catalog.split_part(k.kid, '-', 1)::integer;

CREATE FUNCTION graph_kernel.rotate_key_internal(revoke_old boolean) RETURNS text
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    old_kids text[];
    new_kid text;
BEGIN
    -- One rotation at a time, so that each sees the key of the one before it.
    LOCK TABLE graph_kernel.root_keys IN EXCLUSIVE MODE;
    old_kids := ARRAY(SELECT k.kid FROM graph_kernel.list_keys() AS k);
    new_kid := graph_kernel.add_epoch();
    -- The one before, also where it is that of a database that this one is a copy of, and signed nothing here.
    IF revoke_old THEN
        INSERT INTO graph_kernel.revoked_keys (kid)
        SELECT k.kid FROM unnest(old_kids) AS k (kid)
        WHERE split_part(k.kid, '-', 1)::bigint = split_part(new_kid, '-', 1)::bigint - 1
        ON CONFLICT DO NOTHING;
    END IF;
    RETURN new_kid;
END
$$;

CREATE FUNCTION graph_kernel.rotate_key(revoke_old boolean DEFAULT false) RETURNS text
LANGUAGE sql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT FROM graph_kernel.root_keys LIMIT 0; -- DROP EXTENSION waits
    SELECT graph_kernel.rotate_key_internal($1);
END;

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

CREATE FUNCTION graph_kernel.revoke_key(kid text) RETURNS void
LANGUAGE sql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT FROM graph_kernel.root_keys LIMIT 0; -- DROP EXTENSION waits
    SELECT graph_kernel.revoke_key_internal($1);
END;

DO $$ BEGIN PERFORM graph_kernel.add_epoch(); END $$;

SET LOCAL search_path TO @extschema@, pg_temp;
