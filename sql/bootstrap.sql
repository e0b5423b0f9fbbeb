-- Runs first. Objects for users go to the extension's schema, which is first in the search_path here; objects for
-- administration go to the private schema.
--
-- The schema that the extension is installed into belongs to its installer, who may rename it and create another of its
-- name. So no body that is parsed at run time names it; bodies and views that are parsed at creation do, by OID. No
-- role can take the private schema's name while the extension exists, but the extension's owner, who need not be a
-- superuser, may drop it. A function that is parsed at run time names the private schema only while DROP EXTENSION has
-- to wait: called by one that was parsed at creation and has locked a private table, or as a trigger. Every function
-- with its owner's rights (SECURITY DEFINER) was parsed at creation.

DO $$
BEGIN
    IF pg_catalog.getdatabaseencoding() OPERATOR(pg_catalog.<>) 'UTF8' THEN
        RAISE EXCEPTION 'graph_kernel needs a database with encoding UTF8, not %',
            pg_catalog.getdatabaseencoding()
            USING ERRCODE = 'feature_not_supported',
                  HINT = 'Create the database with ENCODING ''UTF8'' TEMPLATE template0.';
    END IF;
END
$$;

-- Not IF NOT EXISTS: the owner of a schema created beforehand could put objects into it.
CREATE SCHEMA graph_kernel;
COMMENT ON SCHEMA graph_kernel IS 'graph_kernel: administration';

-- A library that is older than this script would run it half, or wrongly.
CREATE FUNCTION graph_kernel.require_library() RETURNS void
    AS 'MODULE_PATHNAME', 'require_library_wrapper' LANGUAGE c;
SELECT graph_kernel.require_library();
COMMENT ON FUNCTION graph_kernel.require_library() IS
    'raises an error where the loaded library is older than the extension; for the extension''s scripts';

-- An object that was created in the extension's schema, as commands name it whatever their search_path is. The owner of
-- the schema may rename it.
CREATE FUNCTION graph_kernel.own_name(object text) RETURNS text
LANGUAGE sql STABLE STRICT PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT pg_catalog.format('%I.%I', n.nspname, $1)
    FROM pg_catalog.pg_extension AS x
    JOIN pg_catalog.pg_namespace AS n ON n.oid OPERATOR(pg_catalog.=) x.extnamespace
    WHERE x.extname OPERATOR(pg_catalog.=) 'graph_kernel';
END;
COMMENT ON FUNCTION graph_kernel.own_name(text) IS
    'an object in the extension''s schema as commands name it whatever their search_path is';

-- A relation by its OID, as regclass. But where it is gone its text is -, never its number, which can be another
-- relation's by the time of a restore. A restore in which it is missing has a WARNING and 0: regclass would end the
-- COPY, and so lose all other rows.
CREATE TYPE graph_kernel.bound_relation;
CREATE FUNCTION graph_kernel.bound_relation_in(cstring) RETURNS graph_kernel.bound_relation
    AS 'MODULE_PATHNAME', 'bound_relation_in_wrapper' LANGUAGE c STABLE STRICT PARALLEL SAFE;
CREATE FUNCTION graph_kernel.bound_relation_out(graph_kernel.bound_relation) RETURNS cstring
    AS 'MODULE_PATHNAME', 'bound_relation_out_wrapper' LANGUAGE c STABLE STRICT PARALLEL SAFE;
CREATE FUNCTION graph_kernel.bound_relation_recv(internal) RETURNS graph_kernel.bound_relation
    AS 'oidrecv' LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION graph_kernel.bound_relation_send(graph_kernel.bound_relation) RETURNS bytea
    AS 'oidsend' LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE;
CREATE TYPE graph_kernel.bound_relation (
    INPUT = graph_kernel.bound_relation_in,
    OUTPUT = graph_kernel.bound_relation_out,
    RECEIVE = graph_kernel.bound_relation_recv,
    SEND = graph_kernel.bound_relation_send,
    LIKE = pg_catalog.oid
);
CREATE CAST (graph_kernel.bound_relation AS pg_catalog.regclass) WITHOUT FUNCTION AS IMPLICIT;
CREATE CAST (graph_kernel.bound_relation AS pg_catalog.oid) WITHOUT FUNCTION AS IMPLICIT;
CREATE CAST (pg_catalog.regclass AS graph_kernel.bound_relation) WITHOUT FUNCTION AS ASSIGNMENT;
COMMENT ON TYPE graph_kernel.bound_relation IS 'a relation by its OID; - where it is gone';
COMMENT ON FUNCTION graph_kernel.bound_relation_in(cstring) IS 'finds a relation by its name; none is a warning';
COMMENT ON FUNCTION graph_kernel.bound_relation_out(graph_kernel.bound_relation) IS
    'the name of a relation; - where it is gone';
COMMENT ON FUNCTION graph_kernel.bound_relation_recv(internal) IS 'reads the OID of a relation in the binary protocol';
COMMENT ON FUNCTION graph_kernel.bound_relation_send(graph_kernel.bound_relation) IS
    'the OID of a relation in the binary protocol';
COMMENT ON CAST (graph_kernel.bound_relation AS pg_catalog.regclass) IS 'the same relation';
COMMENT ON CAST (graph_kernel.bound_relation AS pg_catalog.oid) IS 'the OID of the relation';
COMMENT ON CAST (pg_catalog.regclass AS graph_kernel.bound_relation) IS 'the same relation';

-- A role by its OID, which follows it through renames. But its text is its name, by which a restore finds it, also one
-- without triggers: the OID can be another role's there. The text is empty where the role is gone.
CREATE TYPE graph_kernel.bound_role;
CREATE FUNCTION graph_kernel.bound_role_in(cstring) RETURNS graph_kernel.bound_role
    AS 'MODULE_PATHNAME', 'bound_role_in_wrapper' LANGUAGE c STABLE STRICT PARALLEL SAFE;
CREATE FUNCTION graph_kernel.bound_role_out(graph_kernel.bound_role) RETURNS cstring
    AS 'MODULE_PATHNAME', 'bound_role_out_wrapper' LANGUAGE c STABLE STRICT PARALLEL SAFE;
CREATE FUNCTION graph_kernel.bound_role_recv(internal) RETURNS graph_kernel.bound_role
    AS 'oidrecv' LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION graph_kernel.bound_role_send(graph_kernel.bound_role) RETURNS bytea
    AS 'oidsend' LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE;
CREATE TYPE graph_kernel.bound_role (
    INPUT = graph_kernel.bound_role_in,
    OUTPUT = graph_kernel.bound_role_out,
    RECEIVE = graph_kernel.bound_role_recv,
    SEND = graph_kernel.bound_role_send,
    LIKE = pg_catalog.oid
);
CREATE CAST (graph_kernel.bound_role AS pg_catalog.oid) WITHOUT FUNCTION AS IMPLICIT;
CREATE CAST (pg_catalog.oid AS graph_kernel.bound_role) WITHOUT FUNCTION AS ASSIGNMENT;
COMMENT ON TYPE graph_kernel.bound_role IS 'a role by its OID; an empty text where it is gone';
COMMENT ON FUNCTION graph_kernel.bound_role_in(cstring) IS 'finds a role by its name; 0 where there is none';
COMMENT ON FUNCTION graph_kernel.bound_role_out(graph_kernel.bound_role) IS 'the name of a role';
COMMENT ON FUNCTION graph_kernel.bound_role_recv(internal) IS 'reads the OID of a role in the binary protocol';
COMMENT ON FUNCTION graph_kernel.bound_role_send(graph_kernel.bound_role) IS 'the OID of a role in the binary protocol';
COMMENT ON CAST (graph_kernel.bound_role AS pg_catalog.oid) IS 'the OID of the role';
COMMENT ON CAST (pg_catalog.oid AS graph_kernel.bound_role) IS 'the role of this OID';

-- Bytes that no statement shows or makes. A table of a publication is copied to its subscribers, as texts, and a row
-- that they refuse stands in their logs.
CREATE TYPE graph_kernel.secret;
CREATE FUNCTION graph_kernel.secret_in(cstring) RETURNS graph_kernel.secret
    AS 'MODULE_PATHNAME', 'secret_in_wrapper' LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION graph_kernel.secret_out(graph_kernel.secret) RETURNS cstring
    AS 'MODULE_PATHNAME', 'secret_out_wrapper' LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION graph_kernel.secret_recv(internal) RETURNS graph_kernel.secret
    AS 'MODULE_PATHNAME', 'secret_recv_wrapper' LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION graph_kernel.secret_send(graph_kernel.secret) RETURNS bytea
    AS 'MODULE_PATHNAME', 'secret_send_wrapper' LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE;
CREATE TYPE graph_kernel.secret (
    INPUT = graph_kernel.secret_in,
    OUTPUT = graph_kernel.secret_out,
    RECEIVE = graph_kernel.secret_recv,
    SEND = graph_kernel.secret_send,
    LIKE = pg_catalog.bytea
);
COMMENT ON TYPE graph_kernel.secret IS 'bytes that no statement shows or makes';
COMMENT ON FUNCTION graph_kernel.secret_in(cstring) IS 'an error: no statement makes a secret';
COMMENT ON FUNCTION graph_kernel.secret_out(graph_kernel.secret) IS 'the word hidden';
COMMENT ON FUNCTION graph_kernel.secret_recv(internal) IS 'an error: no statement makes a secret';
COMMENT ON FUNCTION graph_kernel.secret_send(graph_kernel.secret) IS 'no bytes';

-- The COPY of a restore ends where a text is not UTF-8, and all rows of its table are lost. So the private tables
-- refuse such a text from everybody: the server does not check all texts, nor names of roles.
CREATE FUNCTION graph_kernel.require_text(content text) RETURNS boolean
    AS 'MODULE_PATHNAME', 'require_text_wrapper' LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION graph_kernel.require_role_name(name text) RETURNS boolean
    AS 'MODULE_PATHNAME', 'require_role_name_wrapper' LANGUAGE c STABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION graph_kernel.require_text(text) IS 'true for a text that is UTF-8; an error for another one';
COMMENT ON FUNCTION graph_kernel.require_role_name(text) IS 'true for a name that is UTF-8; an error for another one';

-- A binding that is replaced keeps its row, hence its uuid, and comes back when the same is bound again.
CREATE TABLE graph_kernel.binding (
    graph uuid PRIMARY KEY DEFAULT pg_catalog.gen_random_uuid(),
    name text NOT NULL,
    is_current boolean NOT NULL,
    turns graph_kernel.bound_relation NOT NULL,
    edges graph_kernel.bound_relation,
    columns jsonb,
    resolved jsonb NOT NULL,
    bound_by text NOT NULL,
    bound_at timestamptz NOT NULL DEFAULT pg_catalog.now(),
    binder graph_kernel.bound_role NOT NULL,
    database oid NOT NULL,
    edges_by_child graph_kernel.bound_relation,
    CONSTRAINT encoding CHECK (
        graph_kernel.require_text(name) AND graph_kernel.require_text(columns::pg_catalog.text)
        AND graph_kernel.require_text(resolved::pg_catalog.text) AND graph_kernel.require_role_name(bound_by))
);
CREATE UNIQUE INDEX binding_name_idx ON graph_kernel.binding (name) WHERE is_current;
COMMENT ON TABLE graph_kernel.binding IS
    'the tables that hold graphs; none current is named default: public.memory_turns and public.memory_turn_edges';
COMMENT ON COLUMN graph_kernel.binding.graph IS 'name of the graph in attestations';
COMMENT ON COLUMN graph_kernel.binding.name IS 'name of the binding, for graph_kernel.graph';
COMMENT ON COLUMN graph_kernel.binding.is_current IS 'whether the name stands for this binding now';
COMMENT ON COLUMN graph_kernel.binding.turns IS 'table of the turns';
COMMENT ON COLUMN graph_kernel.binding.edges IS 'table of the edges; NULL: they are in the turns table';
COMMENT ON COLUMN graph_kernel.binding.columns IS 'the mapping as given: names, expressions, null';
COMMENT ON COLUMN graph_kernel.binding.resolved IS
    'the mapping as resolved when bound: for each key a column, an expression, true for a recognised name, or null';
COMMENT ON COLUMN graph_kernel.binding.bound_by IS 'the name that the binder had then';
COMMENT ON COLUMN graph_kernel.binding.bound_at IS 'when they were bound last';
COMMENT ON COLUMN graph_kernel.binding.binder IS
    'the role that bound the tables, which must be allowed to read them; 0: one that a restore did not find';
COMMENT ON COLUMN graph_kernel.binding.edges_by_child IS 'table of the same edges, asked for those into a turn';
COMMENT ON COLUMN graph_kernel.binding.database IS
    'the database that wrote the row; in a copy of it the binding does not count until it is bound again';

-- A dropped table is - in a dump. A current binding of one is kept, since its name stands for it; another one is of no
-- use. A binding that came with a copy of the database does not count: a restore would make it one that does, by the
-- original's uuid.
SELECT pg_catalog.pg_extension_config_dump('graph_kernel.binding',
    'WHERE (is_current OR turns::text <> ''-'' AND (edges::text <> ''-'') IS NOT FALSE
            AND (edges_by_child::text <> ''-'') IS NOT FALSE)
     AND database = (SELECT d.oid FROM pg_catalog.pg_database AS d WHERE d.datname = pg_catalog.current_database())');

CREATE VIEW graph_kernel.bindings AS
SELECT b.name, b.graph, b.turns::pg_catalog.regclass AS turns, b.edges::pg_catalog.regclass AS edges, b.columns,
       b.is_current,
       coalesce(r.rolname::pg_catalog.text, b.bound_by) AS bound_by, b.bound_at,
       b.edges_by_child::pg_catalog.regclass AS edges_by_child
FROM graph_kernel.binding AS b
LEFT JOIN pg_catalog.pg_roles AS r ON r.oid OPERATOR(pg_catalog.=) b.binder;
COMMENT ON VIEW graph_kernel.bindings IS 'the tables that are or were bound as graphs';
COMMENT ON COLUMN graph_kernel.bindings.name IS 'name of the binding, for graph_kernel.graph';
COMMENT ON COLUMN graph_kernel.bindings.graph IS 'name of the graph in attestations';
COMMENT ON COLUMN graph_kernel.bindings.turns IS 'table of the turns';
COMMENT ON COLUMN graph_kernel.bindings.edges IS 'table of the edges; NULL: they are in the turns table';
COMMENT ON COLUMN graph_kernel.bindings.columns IS 'the mapping as given, but for edges_by_child';
COMMENT ON COLUMN graph_kernel.bindings.is_current IS 'whether the name stands for this binding now';
COMMENT ON COLUMN graph_kernel.bindings.bound_by IS 'the role that bound the tables';
COMMENT ON COLUMN graph_kernel.bindings.bound_at IS 'when they were bound last';
COMMENT ON COLUMN graph_kernel.bindings.edges_by_child IS 'table of the same edges, asked for those into a turn';

-- Roots of the keys, one an epoch. No role has privileges on the table, no row security policy shows a row, and it is
-- in no dump; only the library reads it. It has no index, so that the library can insert rows which logical decoding
-- does not see.
CREATE TABLE graph_kernel.root_keys (
    epoch integer NOT NULL,
    root graph_kernel.secret,
    created_at timestamptz NOT NULL,
    database oid NOT NULL
);
-- ANALYZE would copy roots into pg_statistic.
ALTER TABLE graph_kernel.root_keys ALTER COLUMN root SET STATISTICS 0;
ALTER TABLE graph_kernel.root_keys ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
COMMENT ON TABLE graph_kernel.root_keys IS 'roots of the keys: secret';
COMMENT ON COLUMN graph_kernel.root_keys.epoch IS 'counts from 1; the newest epoch signs';
COMMENT ON COLUMN graph_kernel.root_keys.root IS
    '32 random bytes; NULL when the epoch began with a key file';
COMMENT ON COLUMN graph_kernel.root_keys.created_at IS 'when the epoch began';
COMMENT ON COLUMN graph_kernel.root_keys.database IS
    'the database that wrote the row; in a copy of it the root verifies, and signs nothing';

-- In dumps: a revocation can only deny.
CREATE TABLE graph_kernel.revoked_keys (
    kid text PRIMARY KEY CONSTRAINT encoding CHECK (graph_kernel.require_text(kid)),
    revoked_at timestamptz NOT NULL DEFAULT pg_catalog.now()
);
COMMENT ON TABLE graph_kernel.revoked_keys IS 'keys whose tokens no longer verify';
COMMENT ON COLUMN graph_kernel.revoked_keys.kid IS 'names the key';
COMMENT ON COLUMN graph_kernel.revoked_keys.revoked_at IS 'when it was revoked';
SELECT pg_catalog.pg_extension_config_dump('graph_kernel.revoked_keys', '');

-- pg_write_all_data may write any table, and BYPASSRLS passes row security; these tables decide what
-- verifies and what a registered name means. Only their owner changes them, through the functions; the
-- extension's owner may add rows, as a restore does. A binding restored that way is a graph of its own:
-- with a shared key file a known name would let slices of one database pass in another. A registered
-- policy is never changed. Every role that may execute register_policy may add one, under its own name, where that
-- function would. A name is given only to a registered policy: so the unique index on fingerprints covers named
-- policies too. A restore may bring a name that has become a preset's since.
--
-- The worker of a subscription changes none of them, though it is a superuser's as a rule: a publication FOR ALL TABLES
-- has them all. So the guards are ENABLE ALWAYS, also against roles that may set session_replication_role.
--
-- A binding counts only while its binder may read what it names. He is who inserts the row. In a restore by a superuser
-- he is found by the name that he had when it was dumped. Where there is no such role, the binding does not count until
-- it is bound again.
CREATE FUNCTION graph_kernel.is_applying() RETURNS boolean
    AS 'MODULE_PATHNAME', 'is_applying_wrapper' LANGUAGE c STABLE PARALLEL RESTRICTED;
COMMENT ON FUNCTION graph_kernel.is_applying() IS 'whether this process applies what a publisher sends';
CREATE FUNCTION graph_kernel.guard_table() RETURNS trigger
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    table_owner oid := (SELECT c.relowner FROM pg_class AS c WHERE c.oid = TG_RELID);
    extension_owner oid := (SELECT x.extowner FROM pg_extension AS x WHERE x.extname = 'graph_kernel');
BEGIN
    IF graph_kernel.is_applying() THEN
        RAISE EXCEPTION 'rows of %.% are never changed by a subscription', TG_TABLE_SCHEMA, TG_TABLE_NAME
            USING ERRCODE = 'insufficient_privilege', DETAIL = 'PRIVATE_TABLE',
                  HINT = 'Publish the tables that are needed, in place of FOR ALL TABLES.';
    END IF;
    -- What is there already would end a restore, which loses the other rows.
    IF TG_OP = 'INSERT' AND TG_TABLE_NAME = 'revoked_keys' AND pg_has_role(current_user, extension_owner, 'USAGE') THEN
        IF EXISTS (SELECT FROM graph_kernel.revoked_keys AS k WHERE k.kid = NEW.kid) THEN
            RETURN NULL;
        -- Each session that has keys holds them all.
        ELSIF NOT graph_kernel.is_kid(NEW.kid) THEN
            RAISE WARNING 'a revocation does not name a key: the row is left out';
            RETURN NULL;
        END IF;
    ELSIF TG_OP = 'INSERT' AND TG_TABLE_NAME = 'policies' AND pg_has_role(current_user, extension_owner, 'USAGE') THEN
        IF NEW.policy::text::jsonb ->> 'pins' IS NOT NULL OR NEW.policy::text::jsonb ->> 'seeds' IS NOT NULL THEN
            RAISE WARNING 'a policy with pins or seeds is not registered: the row is left out';
            RETURN NULL;
        ELSIF EXISTS (SELECT FROM graph_kernel.policies AS p
                      WHERE p.name IS NOT DISTINCT FROM NEW.name AND p.policy::text = NEW.policy::text) THEN
            RETURN NULL;
        ELSIF EXISTS (SELECT FROM graph_kernel.policies AS p WHERE p.name = NEW.name) THEN
            RAISE WARNING 'the name % is another policy''s: the row is left out', NEW.name;
            RETURN NULL;
        END IF;
    END IF;
    -- No statement writes roots: the library inserts without triggers.
    IF TG_TABLE_NAME <> 'root_keys' AND (TG_TABLE_NAME <> 'policies' OR TG_OP = 'INSERT')
       AND pg_has_role(current_user, table_owner, 'USAGE') THEN
        RETURN coalesce(NEW, OLD);
    END IF;
    IF TG_TABLE_NAME = 'policies' AND TG_OP = 'INSERT'
       AND NOT pg_has_role(current_user, extension_owner, 'USAGE')
       AND EXISTS (SELECT FROM pg_proc AS p
                   WHERE p.pronamespace = (SELECT c.relnamespace FROM pg_class AS c WHERE c.oid = TG_RELID)
                     AND p.proname = 'register_policy' AND has_function_privilege(p.oid, 'EXECUTE')) THEN
        PERFORM graph_kernel.check_policy(NEW.policy, NEW.name);
        IF NEW.name IS NULL OR EXISTS (SELECT FROM graph_kernel.known_policies AS p
                                       WHERE p.is_counted AND p.policy::text = NEW.policy::text) THEN
            NEW.registered_by := current_user;
            NEW.registered_at := now();
            RETURN NEW;
        END IF;
    END IF;
    IF TG_OP <> 'INSERT' OR TG_TABLE_NAME = 'root_keys'
       OR NOT pg_has_role(current_user, extension_owner, 'USAGE') THEN
        RAISE EXCEPTION 'rows of %.% are changed by functions only', TG_TABLE_SCHEMA, TG_TABLE_NAME
            USING ERRCODE = 'insufficient_privilege', DETAIL = 'PRIVATE_TABLE';
    END IF;
    -- Sessions read the others of these tables whole.
    IF TG_TABLE_NAME <> 'policies' AND pg_table_size(TG_RELID) > 16777216 THEN
        RAISE EXCEPTION 'table %.% has more than 16 MiB', TG_TABLE_SCHEMA, TG_TABLE_NAME
            USING ERRCODE = 'program_limit_exceeded', DETAIL = 'PRIVATE_TABLE',
                  HINT = 'A superuser can insert more, such as a restore of his.';
    END IF;
    IF TG_TABLE_NAME = 'binding' THEN
        NEW.graph := gen_random_uuid();
    ELSIF TG_TABLE_NAME = 'policies' THEN
        NEW.registered_by := current_user;
    END IF;
    RETURN NEW;
END
$$;
COMMENT ON FUNCTION graph_kernel.guard_table() IS
    'trigger: keeps rows of private tables from being written past the functions';

-- Runs after the guard, as its name does. What makes a row of no use is a warning: an error would lose the other rows
-- of a restore.
CREATE FUNCTION graph_kernel.set_binder() RETURNS trigger
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    is_owner boolean := (SELECT pg_has_role(current_user, c.relowner, 'USAGE')
                         FROM pg_class AS c WHERE c.oid = TG_RELID);
    shown text; -- by which the binding is seen
    tables regclass[];
    odd regclass;
    lost text; -- what cannot be done where a table is not there
    lengthy boolean := false;
BEGIN
    IF NEW.bound_by IS NULL OR NOT is_owner THEN
        SELECT r.oid, r.rolname INTO NEW.binder, NEW.bound_by FROM pg_roles AS r WHERE r.rolname = current_user;
    -- Those of the functions say who called them, those of a restore who it was when they were dumped. With another
    -- role in the place of one that is not there, a binding would count that never did.
    ELSIF NEW.binder IS NULL THEN
        NEW.binder := coalesce((SELECT r.oid FROM pg_roles AS r WHERE r.rolname = NEW.bound_by), 0);
    ELSE
        NEW.binder := coalesce((SELECT r.oid FROM pg_roles AS r WHERE r.oid = NEW.binder), 0);
    END IF;
    -- Sessions read the names of all bindings.
    IF TG_TABLE_NAME IN ('binding', 'store_binding') THEN
        IF NOT coalesce(octet_length(NEW.name) BETWEEN 1 AND 63, false) THEN
            RAISE WARNING 'the name of a graph must have 1 to 63 bytes: a row of %.% is left out',
                TG_TABLE_SCHEMA, TG_TABLE_NAME;
            RETURN NULL;
        END IF;
    END IF;
    -- Each part of a mapping is looked at by graph_check.
    IF TG_TABLE_NAME = 'binding' THEN
        lengthy := octet_length(NEW.columns::text) > 262144 OR octet_length(NEW.resolved::text) > 262144;
    ELSIF TG_TABLE_NAME = 'recorder_binding' THEN
        lengthy := octet_length(NEW.columns::text) > 262144;
    END IF;
    IF lengthy THEN
        RAISE WARNING 'a mapping has more than 262144 bytes: a row of %.% is left out', TG_TABLE_SCHEMA, TG_TABLE_NAME;
        RETURN NULL;
    END IF;
    -- Where a restore has not found a table, the row still says that the name, or the place of the events, is taken.
    IF TG_TABLE_NAME = 'binding' THEN
        -- Also in a restore: what a dump has is of the database that was dumped.
        NEW.database := (SELECT d.oid FROM pg_database AS d WHERE d.datname = current_database());
        tables := ARRAY[NEW.turns::regclass, NEW.edges::regclass, NEW.edges_by_child::regclass];
        IF 0 = ANY (tables) THEN
            IF NOT NEW.is_current THEN
                RAISE WARNING 'graph_kernel.binding names a table that is not here, of a graph that was replaced'
                    USING HINT = 'The row is left out: nothing has to be done.';
                RETURN NULL;
            END IF;
            lost := format('the graph %s cannot be used', quote_ident(NEW.name));
        ELSIF is_owner THEN -- What an earlier restore could not use gives way.
            DELETE FROM graph_kernel.binding AS b
            WHERE b.graph = NEW.graph AND 0 IN (b.turns, b.edges, b.edges_by_child);
        END IF;
        IF EXISTS (SELECT FROM graph_kernel.binding AS b WHERE b.graph = NEW.graph) THEN
            RAISE WARNING 'graph % is there already: its row is left as it is', NEW.graph;
            RETURN NULL;
        END IF;
        IF NEW.is_current AND EXISTS (SELECT FROM graph_kernel.binding AS b WHERE b.is_current AND b.name = NEW.name)
            THEN
            RAISE WARNING 'the name % stands for another graph: the one of table % is added without it',
                quote_ident(NEW.name), NEW.turns;
            NEW.is_current := false;
        END IF;
        IF NEW.is_current THEN
            shown := format('SELECT turns, edges, edges_by_child, columns FROM graph_kernel.binding'
                            ' WHERE is_current AND name OPERATOR(pg_catalog.=) %L;', NEW.name);
        END IF;
    ELSIF TG_TABLE_NAME = 'recorder_binding' THEN
        tables := ARRAY[NEW.events::regclass];
        shown := 'SELECT events, columns FROM graph_kernel.recorder_binding;';
        IF NEW.events = 0 THEN
            lost := 'no events can be read';
        ELSIF is_owner THEN
            DELETE FROM graph_kernel.recorder_binding AS b WHERE b.events = 0;
        END IF;
        IF EXISTS (SELECT FROM graph_kernel.recorder_binding) THEN
            RAISE WARNING 'a table of recorder events is bound already: the row is left out';
            RETURN NULL;
        END IF;
    ELSIF TG_TABLE_NAME = 'store_binding' THEN
        tables := ARRAY[NEW.store::regclass];
        shown := 'SELECT name, store FROM graph_kernel.store_binding;';
        IF NEW.store = 0 THEN
            lost := format('the graph %s has no store', quote_ident(NEW.name));
        ELSIF is_owner THEN
            DELETE FROM graph_kernel.store_binding AS b WHERE b.name = NEW.name AND b.store = 0;
        END IF;
        IF EXISTS (SELECT FROM graph_kernel.store_binding AS b WHERE b.name = NEW.name) THEN
            RAISE WARNING 'the graph % has a store already: the row is left out', quote_ident(NEW.name);
            RETURN NULL;
        END IF;
    ELSE
        tables := ARRAY[NEW.traces::regclass];
        shown := 'SELECT traces FROM graph_kernel.trace_binding;';
        IF NEW.traces = 0 THEN
            lost := 'no trace can be written';
        ELSIF is_owner THEN
            DELETE FROM graph_kernel.trace_binding AS b WHERE b.traces = 0;
        END IF;
        IF EXISTS (SELECT FROM graph_kernel.trace_binding) THEN
            RAISE WARNING 'a table of traces is bound already: the row is left out';
            RETURN NULL;
        END IF;
    END IF;
    IF lost IS NOT NULL THEN
        RAISE WARNING '%.% names a table that is not here: %', TG_TABLE_SCHEMA, TG_TABLE_NAME, lost
            USING HINT = format('Create the table and restore the rows of %s.%s again, or bind other tables.',
                                TG_TABLE_SCHEMA, TG_TABLE_NAME);
        RETURN NEW;
    END IF;
    IF NEW.binder = 0 AND shown IS NOT NULL THEN
        RAISE WARNING 'role % in table %.% does not exist: the binding does not count', quote_ident(NEW.bound_by),
            TG_TABLE_SCHEMA, TG_TABLE_NAME
            USING HINT = 'Let a role that may, such as the owner of the table, bind it again, if each column holds'
                         ' what the mapping says: ' || shown;
    END IF;
    SELECT t.relation INTO odd FROM unnest(tables) AS t (relation)
    WHERE t.relation IS NOT NULL AND NOT EXISTS (
        SELECT FROM pg_class AS c
        WHERE c.oid = t.relation AND c.relkind IN ('r', 'p') AND c.relpersistence = 'p');
    IF FOUND THEN
        RAISE WARNING 'a row of %.% names %, which is not a permanent table: it cannot be used',
            TG_TABLE_SCHEMA, TG_TABLE_NAME, odd
            USING HINT = 'Bind other tables in its place.';
    END IF;
    RETURN NEW;
END
$$;
COMMENT ON FUNCTION graph_kernel.set_binder() IS
    'trigger: says who has bound a table, and warns of a row that cannot be used';

CREATE TRIGGER guard BEFORE INSERT OR UPDATE OR DELETE ON graph_kernel.root_keys
    FOR EACH ROW EXECUTE FUNCTION graph_kernel.guard_table();
CREATE TRIGGER guard_truncate BEFORE TRUNCATE ON graph_kernel.root_keys
    FOR EACH STATEMENT EXECUTE FUNCTION graph_kernel.guard_table();
ALTER TABLE graph_kernel.root_keys ENABLE ALWAYS TRIGGER guard, ENABLE ALWAYS TRIGGER guard_truncate;
CREATE TRIGGER guard BEFORE INSERT OR UPDATE OR DELETE ON graph_kernel.binding
    FOR EACH ROW EXECUTE FUNCTION graph_kernel.guard_table();
CREATE TRIGGER guard_binder BEFORE INSERT ON graph_kernel.binding
    FOR EACH ROW EXECUTE FUNCTION graph_kernel.set_binder();
CREATE TRIGGER guard_truncate BEFORE TRUNCATE ON graph_kernel.binding
    FOR EACH STATEMENT EXECUTE FUNCTION graph_kernel.guard_table();
ALTER TABLE graph_kernel.binding ENABLE ALWAYS TRIGGER guard, ENABLE ALWAYS TRIGGER guard_binder,
    ENABLE ALWAYS TRIGGER guard_truncate;
CREATE TRIGGER guard BEFORE INSERT OR UPDATE OR DELETE ON graph_kernel.revoked_keys
    FOR EACH ROW EXECUTE FUNCTION graph_kernel.guard_table();
CREATE TRIGGER guard_truncate BEFORE TRUNCATE ON graph_kernel.revoked_keys
    FOR EACH STATEMENT EXECUTE FUNCTION graph_kernel.guard_table();
ALTER TABLE graph_kernel.revoked_keys ENABLE ALWAYS TRIGGER guard, ENABLE ALWAYS TRIGGER guard_truncate;
COMMENT ON TRIGGER guard ON graph_kernel.root_keys IS 'no key is inserted from outside';
COMMENT ON TRIGGER guard_truncate ON graph_kernel.root_keys IS 'no key is deleted from outside';
COMMENT ON TRIGGER guard ON graph_kernel.binding IS 'only the functions change the binding';
COMMENT ON TRIGGER guard_binder ON graph_kernel.binding IS 'says who has bound the tables';
COMMENT ON TRIGGER guard_truncate ON graph_kernel.binding IS 'only the functions change the binding';
COMMENT ON TRIGGER guard ON graph_kernel.revoked_keys IS 'a revocation cannot be undone';
COMMENT ON TRIGGER guard_truncate ON graph_kernel.revoked_keys IS 'a revocation cannot be undone';

-- Each backend caches the rows of these tables until an invalidation arrives, also of changes by a restore or a
-- subscription. TRUNCATE sends its own invalidation; the library sends one for the roots that it inserts without
-- triggers.
CREATE FUNCTION graph_kernel.announce_change() RETURNS trigger
    AS 'MODULE_PATHNAME', 'announce_change_wrapper' LANGUAGE c;
COMMENT ON FUNCTION graph_kernel.announce_change() IS
    'trigger: invalidates what every backend has cached of a private table';
CREATE TRIGGER announce AFTER INSERT OR UPDATE OR DELETE ON graph_kernel.binding
    FOR EACH ROW EXECUTE FUNCTION graph_kernel.announce_change();
ALTER TABLE graph_kernel.binding ENABLE ALWAYS TRIGGER announce;
COMMENT ON TRIGGER announce ON graph_kernel.binding IS 'invalidates the caches of every backend';
CREATE TRIGGER announce AFTER INSERT OR UPDATE OR DELETE ON graph_kernel.root_keys
    FOR EACH ROW EXECUTE FUNCTION graph_kernel.announce_change();
ALTER TABLE graph_kernel.root_keys ENABLE ALWAYS TRIGGER announce;
COMMENT ON TRIGGER announce ON graph_kernel.root_keys IS 'invalidates the caches of every backend';
CREATE TRIGGER announce AFTER INSERT OR UPDATE OR DELETE ON graph_kernel.revoked_keys
    FOR EACH ROW EXECUTE FUNCTION graph_kernel.announce_change();
ALTER TABLE graph_kernel.revoked_keys ENABLE ALWAYS TRIGGER announce;
COMMENT ON TRIGGER announce ON graph_kernel.revoked_keys IS 'invalidates the caches of every backend';

-- slice_policy holds its canonical JSON text, so output, sending, equality and hashing are the
-- server's own functions over a text's bytes; only reading needs code.
CREATE TYPE @extschema@.slice_policy;

CREATE FUNCTION @extschema@.slice_policy_in(cstring) RETURNS @extschema@.slice_policy
    AS 'MODULE_PATHNAME', 'slice_policy_in_wrapper' LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.slice_policy_in(cstring) IS 'reads a slice policy';
CREATE FUNCTION @extschema@.slice_policy_out(@extschema@.slice_policy) RETURNS cstring
    AS 'textout' LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.slice_policy_out(@extschema@.slice_policy) IS 'canonical JSON of a slice policy';
CREATE FUNCTION @extschema@.slice_policy_recv(internal) RETURNS @extschema@.slice_policy
    AS 'MODULE_PATHNAME', 'slice_policy_recv_wrapper' LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.slice_policy_recv(internal) IS 'reads a slice policy in the binary protocol';
CREATE FUNCTION @extschema@.slice_policy_send(@extschema@.slice_policy) RETURNS bytea
    AS 'textsend' LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.slice_policy_send(@extschema@.slice_policy) IS
    'canonical JSON of a slice policy in the binary protocol';

CREATE TYPE @extschema@.slice_policy (
    INPUT = @extschema@.slice_policy_in,
    OUTPUT = @extschema@.slice_policy_out,
    RECEIVE = @extschema@.slice_policy_recv,
    SEND = @extschema@.slice_policy_send,
    LIKE = pg_catalog.text,
    CATEGORY = 'U'
);

CREATE FUNCTION @extschema@.slice_policy_eq(@extschema@.slice_policy, @extschema@.slice_policy)
    RETURNS boolean
    AS 'byteaeq' LANGUAGE internal IMMUTABLE STRICT LEAKPROOF PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.slice_policy_eq(@extschema@.slice_policy, @extschema@.slice_policy) IS
    'same parameters';
CREATE FUNCTION @extschema@.slice_policy_ne(@extschema@.slice_policy, @extschema@.slice_policy)
    RETURNS boolean
    AS 'byteane' LANGUAGE internal IMMUTABLE STRICT LEAKPROOF PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.slice_policy_ne(@extschema@.slice_policy, @extschema@.slice_policy) IS
    'other parameters';
CREATE FUNCTION @extschema@.slice_policy_hash(@extschema@.slice_policy) RETURNS integer
    AS 'hashvarlena' LANGUAGE internal IMMUTABLE STRICT LEAKPROOF PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.slice_policy_hash(@extschema@.slice_policy) IS
    'hash of a slice policy for hash indexes and joins';
CREATE FUNCTION @extschema@.slice_policy_hash_extended(@extschema@.slice_policy, bigint) RETURNS bigint
    AS 'hashvarlenaextended' LANGUAGE internal IMMUTABLE STRICT LEAKPROOF PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.slice_policy_hash_extended(@extschema@.slice_policy, bigint) IS
    'seeded hash of a slice policy';

CREATE OPERATOR @extschema@.= (
    LEFTARG = @extschema@.slice_policy, RIGHTARG = @extschema@.slice_policy,
    FUNCTION = @extschema@.slice_policy_eq,
    COMMUTATOR = OPERATOR(@extschema@.=), NEGATOR = OPERATOR(@extschema@.<>),
    RESTRICT = eqsel, JOIN = eqjoinsel, HASHES
);
CREATE OPERATOR @extschema@.<> (
    LEFTARG = @extschema@.slice_policy, RIGHTARG = @extschema@.slice_policy,
    FUNCTION = @extschema@.slice_policy_ne,
    COMMUTATOR = OPERATOR(@extschema@.<>), NEGATOR = OPERATOR(@extschema@.=),
    RESTRICT = neqsel, JOIN = neqjoinsel
);
CREATE OPERATOR CLASS @extschema@.slice_policy_ops
    DEFAULT FOR TYPE @extschema@.slice_policy USING hash AS
    OPERATOR 1 @extschema@.=,
    FUNCTION 1 @extschema@.slice_policy_hash(@extschema@.slice_policy),
    FUNCTION 2 @extschema@.slice_policy_hash_extended(@extschema@.slice_policy, bigint);

-- Implicit from jsonb only: from json it would make = of slice_policy apply to users' json columns.
CREATE FUNCTION graph_kernel.slice_policy_of(jsonb) RETURNS @extschema@.slice_policy
    AS 'MODULE_PATHNAME', 'slice_policy_of_wrapper' LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION graph_kernel.slice_policy_of(jsonb) IS 'reads a slice policy';
CREATE CAST (jsonb AS @extschema@.slice_policy) WITH FUNCTION graph_kernel.slice_policy_of(jsonb) AS IMPLICIT;
CREATE CAST (json AS @extschema@.slice_policy) WITH INOUT;
CREATE CAST (text AS @extschema@.slice_policy) WITH INOUT;
CREATE CAST (@extschema@.slice_policy AS jsonb) WITH INOUT;
CREATE CAST (@extschema@.slice_policy AS json) WITH INOUT;
COMMENT ON TYPE @extschema@.slice_policy IS
    'parameters of a slice (SlicePolicy v1 or v2): a JSON object or the name of a preset';
COMMENT ON OPERATOR @extschema@.= (@extschema@.slice_policy, @extschema@.slice_policy) IS 'same parameters';
COMMENT ON OPERATOR @extschema@.<> (@extschema@.slice_policy, @extschema@.slice_policy) IS 'other parameters';
COMMENT ON OPERATOR FAMILY @extschema@.slice_policy_ops USING hash IS 'equality of slice policies';
COMMENT ON OPERATOR CLASS @extschema@.slice_policy_ops USING hash IS 'equality of slice policies';
COMMENT ON CAST (jsonb AS @extschema@.slice_policy) IS 'reads a slice policy';
COMMENT ON CAST (json AS @extschema@.slice_policy) IS 'reads a slice policy';
COMMENT ON CAST (text AS @extschema@.slice_policy) IS 'reads a slice policy';
COMMENT ON CAST (@extschema@.slice_policy AS jsonb) IS 'a slice policy as JSON';
COMMENT ON CAST (@extschema@.slice_policy AS json) IS 'a slice policy as JSON';

CREATE FUNCTION graph_kernel.slice_support(internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'slice_support_wrapper'
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION graph_kernel.slice_support(internal) IS 'planner support: rows of a slice';
