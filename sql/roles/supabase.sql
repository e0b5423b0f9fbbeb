-- Rights on the graph for the roles that Supabase has, and row security by the user in the request's JWT.
-- Run it as the owner of the tables, after CREATE EXTENSION graph_kernel and graph_kernel.create_tables();
-- it may be run again, and mediated.sql after it where that was run. It ends in an error, and changes nothing, where
-- its role may not grant what is needed.
-- Roles of these names that are there are taken as they are: who is a member of authenticated or service_role, and may
-- send SQL, reads the turns of every user, by claims of his own.
-- docs/postgrest.md says what each role may call then.

BEGIN;
-- Nothing that others have made is found without its schema. That of the extension may be one where they make objects.
SET LOCAL search_path = pg_catalog, pg_temp;

-- One statement: psql may go on after an error, in a transaction too (ON_ERROR_ROLLBACK).
DO $supabase$
DECLARE
    home regnamespace := (SELECT extnamespace FROM pg_extension WHERE extname = 'graph_kernel');
    -- The private schema has one function of that name.
    register regprocedure := 'graph_kernel.register_policy'::regproc;
    missing record;
    user_of name;
BEGIN
    -- Supabase has these roles. Elsewhere they are made here; give the authenticator a password.
    FOR missing IN
        SELECT r.* FROM (VALUES (1, 'anon', 'NOLOGIN NOINHERIT'), (2, 'authenticated', 'NOLOGIN NOINHERIT'),
                                (3, 'service_role', 'NOLOGIN NOINHERIT BYPASSRLS'),
                                (4, 'authenticator', 'LOGIN NOINHERIT')) AS r (place, name, attributes)
        WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = r.name)
        ORDER BY r.place
    LOOP
        EXECUTE format('CREATE ROLE %I %s', missing.name, missing.attributes);
        IF missing.name = 'authenticator' THEN
            GRANT anon, authenticated, service_role TO authenticator;
        END IF;
    END LOOP;

    -- Default privileges in public give everything to everybody. Who has TRIGGER or REFERENCES may run code with the
    -- rights of whoever writes.
    REVOKE ALL ON public.memory_turns, public.memory_turn_edges FROM anon, authenticated, service_role;
    GRANT SELECT, INSERT ON public.memory_turns, public.memory_turn_edges TO authenticated;
    GRANT SELECT, INSERT, UPDATE, DELETE ON public.memory_turns, public.memory_turn_edges TO service_role;

    -- A turn belongs to the user who wrote it. The expression names nothing outside pg_catalog, as slices
    -- run with a search_path of their own; the subquery is evaluated once for a statement.
    ALTER TABLE public.memory_turns ADD COLUMN IF NOT EXISTS owner_id uuid
        DEFAULT (nullif(current_setting('request.jwt.claims', true), '')::json ->> 'sub')::uuid;
    IF (SELECT a.atttypid FROM pg_attribute AS a
        WHERE a.attrelid = 'public.memory_turns'::regclass AND a.attname = 'owner_id') <> 'uuid'::regtype THEN
        RAISE EXCEPTION 'column owner_id of table public.memory_turns is not of type uuid'
            USING ERRCODE = 'datatype_mismatch',
                  HINT = 'ALTER TABLE public.memory_turns RENAME COLUMN owner_id TO other_owner_id;';
    END IF;
    ALTER TABLE public.memory_turns ENABLE ROW LEVEL SECURITY;
    DROP POLICY IF EXISTS own_turns ON public.memory_turns;
    CREATE POLICY own_turns ON public.memory_turns USING (
        owner_id = (SELECT (nullif(current_setting('request.jwt.claims', true), '')::json ->> 'sub')::uuid));

    -- An edge is seen by who sees both its ends.
    ALTER TABLE public.memory_turn_edges ENABLE ROW LEVEL SECURITY;
    DROP POLICY IF EXISTS own_edges ON public.memory_turn_edges;
    CREATE POLICY own_edges ON public.memory_turn_edges USING (
        EXISTS (SELECT FROM public.memory_turns AS t WHERE t.id = parent_turn_id)
        AND EXISTS (SELECT FROM public.memory_turns AS t WHERE t.id = child_turn_id));

    -- A GRANT by a role without the right to it only warns, so what must hold is looked at.
    FOREACH user_of IN ARRAY '{anon,authenticated,service_role}'::name[] LOOP
        IF NOT has_schema_privilege(user_of, home, 'USAGE') THEN
            EXECUTE format('GRANT USAGE ON SCHEMA %s TO %I', home, user_of);
        END IF;
        IF NOT has_schema_privilege(user_of, home, 'USAGE') THEN
            RAISE EXCEPTION 'role % cannot be given the functions in schema %', user_of, home
                USING ERRCODE = 'insufficient_privilege',
                      HINT = format('Let the owner of the schema run: GRANT USAGE ON SCHEMA %s TO anon, authenticated, '
                                    'service_role;', home);
        END IF;
    END LOOP;
    IF NOT has_function_privilege('service_role', register, 'EXECUTE') THEN
        EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO service_role', register);
    END IF;
    IF NOT has_function_privilege('service_role', register, 'EXECUTE') THEN
        RAISE EXCEPTION 'role service_role cannot be given graph_kernel.register_policy'
            USING ERRCODE = 'insufficient_privilege',
                  HINT = 'Let the owner of the extension run: GRANT EXECUTE ON FUNCTION '
                         'graph_kernel.register_policy TO service_role;';
    END IF;
END
$supabase$;
COMMIT;
