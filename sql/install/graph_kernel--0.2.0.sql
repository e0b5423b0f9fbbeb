\echo Use "CREATE EXTENSION graph_kernel" to load this file. \quit

-- src/lib.rs
-- bootstrap
-- Runs first. Objects for users go to the extension's schema, which is first in the search_path here; objects for
-- administration go to the private schema.
--
-- The schema that the extension is installed into belongs to its installer, who may rename it and create another of its
-- name. So no body that is parsed at run time names it; bodies and views that are parsed at creation do, by OID. No role
-- can take the private schema's name while the extension exists, but the extension's owner, who need not be a
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

-- A binding that is replaced keeps its row, hence its uuid, and comes back when the same is bound again.
CREATE TABLE graph_kernel.binding (
    graph uuid PRIMARY KEY DEFAULT pg_catalog.gen_random_uuid(),
    name text NOT NULL,
    is_current boolean NOT NULL,
    turns regclass NOT NULL,
    edges regclass,
    columns jsonb,
    resolved jsonb NOT NULL,
    bound_by text NOT NULL,
    bound_at timestamptz NOT NULL DEFAULT pg_catalog.now()
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
COMMENT ON COLUMN graph_kernel.binding.bound_by IS 'the role that bound the tables';
COMMENT ON COLUMN graph_kernel.binding.bound_at IS 'when they were bound last';
-- In a dump, a dropped table is a number, which may be another table's when it is restored.
SELECT pg_catalog.pg_extension_config_dump('graph_kernel.binding',
    'WHERE is_current OR (pg_catalog.to_regclass(turns::pg_catalog.text) IS NOT NULL'
    ' AND (edges IS NULL OR pg_catalog.to_regclass(edges::pg_catalog.text) IS NOT NULL))');

CREATE VIEW graph_kernel.bindings AS
SELECT b.name, b.graph, b.turns, b.edges, b.columns, b.is_current, b.bound_by, b.bound_at
FROM graph_kernel.binding AS b;
COMMENT ON VIEW graph_kernel.bindings IS 'the tables that are or were bound as graphs';
COMMENT ON COLUMN graph_kernel.bindings.name IS 'name of the binding, for graph_kernel.graph';
COMMENT ON COLUMN graph_kernel.bindings.graph IS 'name of the graph in attestations';
COMMENT ON COLUMN graph_kernel.bindings.turns IS 'table of the turns';
COMMENT ON COLUMN graph_kernel.bindings.edges IS 'table of the edges; NULL: they are in the turns table';
COMMENT ON COLUMN graph_kernel.bindings.columns IS 'the mapping as given';
COMMENT ON COLUMN graph_kernel.bindings.is_current IS 'whether the name stands for this binding now';
COMMENT ON COLUMN graph_kernel.bindings.bound_by IS 'the role that bound the tables';
COMMENT ON COLUMN graph_kernel.bindings.bound_at IS 'when they were bound last';

-- Roots of the keys, one an epoch. No role has privileges on the table, no row security policy shows a row, and it is
-- in no dump; only the library reads it. It has no index, so that the library can insert rows which logical decoding
-- does not see.
CREATE TABLE graph_kernel.root_keys (
    epoch integer NOT NULL,
    root bytea,
    created_at timestamptz NOT NULL
);
-- ANALYZE would copy roots into pg_statistic.
ALTER TABLE graph_kernel.root_keys ALTER COLUMN root SET STATISTICS 0;
ALTER TABLE graph_kernel.root_keys ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
COMMENT ON TABLE graph_kernel.root_keys IS 'roots of the keys: secret';
COMMENT ON COLUMN graph_kernel.root_keys.epoch IS 'counts from 1; the newest epoch signs';
COMMENT ON COLUMN graph_kernel.root_keys.root IS
    '32 random bytes; NULL when the epoch began with a key file';
COMMENT ON COLUMN graph_kernel.root_keys.created_at IS 'when the epoch began';

-- In dumps: a revocation can only deny.
CREATE TABLE graph_kernel.revoked_keys (
    kid text PRIMARY KEY,
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
-- policy is never changed. Every role that may execute register_policy may add one, under its own name; a name
-- is given only to a registered policy, so that the unique index on fingerprints covers named policies too.
CREATE FUNCTION graph_kernel.guard_table() RETURNS trigger
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    table_owner oid := (SELECT c.relowner FROM pg_class AS c WHERE c.oid = TG_RELID);
    extension_owner oid := (SELECT x.extowner FROM pg_extension AS x WHERE x.extname = 'graph_kernel');
BEGIN
    -- No statement writes roots, not even a subscription: the library inserts without triggers.
    IF TG_TABLE_NAME <> 'root_keys' AND (TG_TABLE_NAME <> 'policies' OR TG_OP = 'INSERT')
       AND pg_has_role(current_user, table_owner, 'USAGE') THEN
        RETURN coalesce(NEW, OLD);
    END IF;
    IF TG_TABLE_NAME = 'policies' AND TG_OP = 'INSERT'
       AND NOT pg_has_role(current_user, extension_owner, 'USAGE')
       AND EXISTS (SELECT FROM pg_proc AS p
                   WHERE p.pronamespace = (SELECT c.relnamespace FROM pg_class AS c WHERE c.oid = TG_RELID)
                     AND p.proname = 'register_policy' AND has_function_privilege(p.oid, 'EXECUTE')) THEN
        IF NEW.name IS NULL OR EXISTS (SELECT FROM graph_kernel.known_policies AS p
                                       WHERE p.policy::text = NEW.policy::text) THEN
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
    IF TG_TABLE_NAME = 'binding' THEN
        NEW.graph := gen_random_uuid();
    END IF;
    RETURN NEW;
END
$$;
CREATE TRIGGER guard BEFORE INSERT OR UPDATE OR DELETE ON graph_kernel.root_keys
    FOR EACH ROW EXECUTE FUNCTION graph_kernel.guard_table();
ALTER TABLE graph_kernel.root_keys ENABLE ALWAYS TRIGGER guard;
CREATE TRIGGER guard BEFORE INSERT OR UPDATE OR DELETE ON graph_kernel.binding
    FOR EACH ROW EXECUTE FUNCTION graph_kernel.guard_table();
CREATE TRIGGER guard BEFORE INSERT OR UPDATE OR DELETE ON graph_kernel.revoked_keys
    FOR EACH ROW EXECUTE FUNCTION graph_kernel.guard_table();
COMMENT ON TRIGGER guard ON graph_kernel.root_keys IS 'no key is inserted from outside';
COMMENT ON TRIGGER guard ON graph_kernel.binding IS 'only the functions change the binding';
COMMENT ON TRIGGER guard ON graph_kernel.revoked_keys IS 'a revocation cannot be undone';

-- Each backend caches the rows of these tables until an invalidation arrives, also of changes by a restore or a
-- subscription. TRUNCATE sends its own invalidation; the library sends one for the roots that it inserts without
-- triggers.
CREATE FUNCTION graph_kernel.announce_change() RETURNS trigger
    AS 'MODULE_PATHNAME', 'announce_change_wrapper' LANGUAGE c;
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
CREATE FUNCTION @extschema@.slice_policy_out(@extschema@.slice_policy) RETURNS cstring
    AS 'textout' LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION @extschema@.slice_policy_recv(internal) RETURNS @extschema@.slice_policy
    AS 'MODULE_PATHNAME', 'slice_policy_recv_wrapper' LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION @extschema@.slice_policy_send(@extschema@.slice_policy) RETURNS bytea
    AS 'textsend' LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE;

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
CREATE FUNCTION @extschema@.slice_policy_ne(@extschema@.slice_policy, @extschema@.slice_policy)
    RETURNS boolean
    AS 'byteane' LANGUAGE internal IMMUTABLE STRICT LEAKPROOF PARALLEL SAFE;
CREATE FUNCTION @extschema@.slice_policy_hash(@extschema@.slice_policy) RETURNS integer
    AS 'hashvarlena' LANGUAGE internal IMMUTABLE STRICT LEAKPROOF PARALLEL SAFE;
CREATE FUNCTION @extschema@.slice_policy_hash_extended(@extschema@.slice_policy, bigint) RETURNS bigint
    AS 'hashvarlenaextended' LANGUAGE internal IMMUTABLE STRICT LEAKPROOF PARALLEL SAFE;

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
CREATE CAST (jsonb AS @extschema@.slice_policy) WITH INOUT AS IMPLICIT;
CREATE CAST (json AS @extschema@.slice_policy) WITH INOUT;
CREATE CAST (text AS @extschema@.slice_policy) WITH INOUT;
CREATE CAST (@extschema@.slice_policy AS jsonb) WITH INOUT;
CREATE CAST (@extschema@.slice_policy AS json) WITH INOUT;

CREATE FUNCTION @extschema@.graph_slice_support(internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'graph_slice_support_wrapper'
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE;

-- src/api/anchor.rs
-- graph_kernel::api::anchor::graph_anchor
CREATE  FUNCTION "graph_anchor"(
	"turn_id" uuid DEFAULT NULL, /* Option < Uuid > */
	"session_id" TEXT DEFAULT NULL, /* Option < & str > */
	"query_embedding" real[] DEFAULT NULL /* :: std :: option :: Option < Array < f32 > > */
) RETURNS TABLE (
	"anchor_turn_id" uuid,  /* Uuid */
	"strategy" TEXT  /* & '_ str */
)
STABLE PARALLEL RESTRICTED
LANGUAGE c /* Rust */
AS 'MODULE_PATHNAME', 'graph_anchor_wrapper';

-- src/api/anchor.rs
-- graph_kernel::api::anchor::graph_anchors_recent
CREATE  FUNCTION "graph_anchors_recent"(
	"limit_count" INT DEFAULT 5, /* Option < i32 > */
	"session_id" TEXT DEFAULT NULL /* Option < & str > */
) RETURNS TABLE (
	"anchor_turn_id" uuid,  /* Uuid */
	"created_at" bigint  /* i64 */
)
STABLE PARALLEL RESTRICTED
LANGUAGE c /* Rust */
AS 'MODULE_PATHNAME', 'graph_anchors_recent_wrapper';

-- src/api/atlas.rs
-- graph_kernel::api::atlas::graph_snapshot
CREATE  FUNCTION "graph_snapshot"() RETURNS jsonb /* JsonbText */
STRICT STABLE PARALLEL RESTRICTED
LANGUAGE c /* Rust */
AS 'MODULE_PATHNAME', 'graph_snapshot_wrapper';

-- src/api/atlas.rs
-- graph_kernel::api::atlas::graph_overlap
CREATE  FUNCTION "graph_overlap"(
	"anchors" uuid[], /* :: std :: option :: Option < Array < Uuid > > */
	"policy" slice_policy DEFAULT 'default', /* Option < Policy > */
	"min_jaccard" real DEFAULT 0 /* Option < f32 > */
) RETURNS TABLE (
	"slice_a" TEXT,  /* String */
	"slice_b" TEXT,  /* String */
	"shared_turns" INT,  /* i32 */
	"jaccard" real  /* f32 */
)
STABLE PARALLEL RESTRICTED
LANGUAGE c /* Rust */
AS 'MODULE_PATHNAME', 'graph_overlap_wrapper';

-- src/api/atlas.rs
-- graph_kernel::api::atlas::graph_influence
CREATE  FUNCTION "graph_influence"(
	"anchors" uuid[], /* :: std :: option :: Option < Array < Uuid > > */
	"policy" slice_policy DEFAULT 'default' /* Option < Policy > */
) RETURNS TABLE (
	"turn_id" uuid,  /* Uuid */
	"slice_count" INT,  /* i32 */
	"slice_fraction" real,  /* f32 */
	"phases" jsonb,  /* JsonbText */
	"is_bridge" bool  /* bool */
)
STABLE PARALLEL RESTRICTED
LANGUAGE c /* Rust */
AS 'MODULE_PATHNAME', 'graph_influence_wrapper';

-- src/api/atlas.rs
-- graph_kernel::api::atlas::graph_atlas
CREATE  FUNCTION "graph_atlas"(
	"anchors" uuid[], /* :: std :: option :: Option < Array < Uuid > > */
	"policy" slice_policy DEFAULT 'default', /* Option < Policy > */
	"selection_policy" TEXT DEFAULT 'given', /* Option < & str > */
	"min_jaccard" real DEFAULT 0, /* Option < f32 > */
	"centroids" INT DEFAULT 3 /* Option < i32 > */
) RETURNS jsonb /* Option < JsonbText > */
STABLE PARALLEL RESTRICTED
LANGUAGE c /* Rust */
AS 'MODULE_PATHNAME', 'graph_atlas_wrapper';

-- src/api/batch.rs
-- graph_kernel::api::batch::graph_slices
CREATE  FUNCTION "graph_slices"(
	"anchors" uuid[], /* :: std :: option :: Option < Array < Uuid > > */
	"policy" slice_policy DEFAULT 'default' /* Option < Policy > */
) RETURNS TABLE (
	"anchor_turn_id" uuid,  /* Option < Uuid > */
	"slice" json,  /* Option < JsonText > */
	"error_code" TEXT,  /* Option < & '_ str > */
	"error" TEXT  /* Option < String > */
)
STABLE PARALLEL RESTRICTED
LANGUAGE c /* Rust */
AS 'MODULE_PATHNAME', 'graph_slices_wrapper';

-- src/api/compare.rs
-- graph_kernel::api::compare::graph_slice_diff
CREATE  FUNCTION "graph_slice_diff"(
	"a" json, /* JsonArg */
	"b" json /* JsonArg */
) RETURNS TABLE (
	"kind" TEXT,  /* & '_ str */
	"turn_id" uuid,  /* Option < Uuid > */
	"parent" uuid,  /* Option < Uuid > */
	"child" uuid,  /* Option < Uuid > */
	"field" TEXT,  /* Option < String > */
	"was" TEXT,  /* Option < String > */
	"now" TEXT  /* Option < String > */
)
IMMUTABLE STRICT PARALLEL SAFE
LANGUAGE c /* Rust */
AS 'MODULE_PATHNAME', 'graph_slice_diff_wrapper';

-- src/api/compare.rs
-- graph_kernel::api::compare::graph_slice_dot
CREATE  FUNCTION "graph_slice_dot"(
	"slice" json /* JsonArg */
) RETURNS TEXT /* String */
IMMUTABLE STRICT PARALLEL SAFE
LANGUAGE c /* Rust */
AS 'MODULE_PATHNAME', 'graph_slice_dot_wrapper';

-- src/api/compare.rs
-- graph_kernel::api::compare::graph_slice_mermaid
CREATE  FUNCTION "graph_slice_mermaid"(
	"slice" json /* JsonArg */
) RETURNS TEXT /* String */
IMMUTABLE STRICT PARALLEL SAFE
LANGUAGE c /* Rust */
AS 'MODULE_PATHNAME', 'graph_slice_mermaid_wrapper';

-- src/api/content.rs
-- graph_kernel::api::content::graph_normalize_text
CREATE  FUNCTION "graph_normalize_text"(
	"content" TEXT /* & str */
) RETURNS TEXT /* String */
IMMUTABLE STRICT PARALLEL SAFE
LANGUAGE c /* Rust */
AS 'MODULE_PATHNAME', 'graph_normalize_text_wrapper';

-- src/api/content.rs
-- graph_kernel::api::content::graph_content_hash
CREATE  FUNCTION "graph_content_hash"(
	"content" TEXT /* & str */
) RETURNS TEXT /* String */
IMMUTABLE STRICT PARALLEL SAFE
LANGUAGE c /* Rust */
AS 'MODULE_PATHNAME', 'graph_content_hash_wrapper';

-- src/api/content.rs
-- graph_kernel::api::content::graph_content_audit
CREATE  FUNCTION "graph_content_audit"(
	"limit_count" bigint DEFAULT NULL /* Option < i64 > */
) RETURNS TABLE (
	"turn_id" uuid,  /* Uuid */
	"stored" TEXT,  /* Option < String > */
	"computed" TEXT  /* String */
)
STABLE PARALLEL RESTRICTED
LANGUAGE c /* Rust */
AS 'MODULE_PATHNAME', 'graph_content_audit_wrapper';

-- src/api/evidence.rs
-- graph_kernel::api::evidence::graph_diversity
CREATE  FUNCTION "graph_diversity"(
	"slice" json /* JsonArg */
) RETURNS jsonb /* JsonbText */
STRICT STABLE PARALLEL SAFE
LANGUAGE c /* Rust */
AS 'MODULE_PATHNAME', 'graph_diversity_wrapper';

-- src/api/evidence.rs
-- graph_kernel::api::evidence::graph_sufficiency
CREATE  FUNCTION "graph_sufficiency"(
	"slice" json, /* Option < JsonArg > */
	"policy" jsonb DEFAULT NULL /* Option < JsonbText > */
) RETURNS TABLE (
	"sufficient" bool,  /* bool */
	"violation" TEXT,  /* Option < & '_ str > */
	"required" real,  /* Option < f32 > */
	"actual" real  /* Option < f32 > */
)
STABLE PARALLEL SAFE
LANGUAGE c /* Rust */
AS 'MODULE_PATHNAME', 'graph_sufficiency_wrapper';

-- src/api/explain.rs
-- graph_kernel::api::explain::graph_slice_explain
CREATE  FUNCTION "graph_slice_explain"(
	"anchor" uuid, /* Option < Uuid > */
	"policy" slice_policy DEFAULT 'default' /* Option < Policy > */
) RETURNS TABLE (
	"step" INT,  /* i32 */
	"turn_id" uuid,  /* Uuid */
	"outcome" TEXT,  /* & '_ str */
	"distance" INT,  /* i32 */
	"priority" real,  /* Option < f32 > */
	"via" TEXT,  /* & '_ str */
	"discovered_from" uuid,  /* Option < Uuid > */
	"reason" TEXT  /* String */
)
STABLE PARALLEL RESTRICTED
LANGUAGE c /* Rust */
AS 'MODULE_PATHNAME', 'graph_slice_explain_wrapper';

-- src/api/explain.rs
-- graph_kernel::api::explain::graph_why
CREATE  FUNCTION "graph_why"(
	"anchor" uuid, /* Option < Uuid > */
	"turn" uuid, /* Option < Uuid > */
	"policy" slice_policy DEFAULT 'default' /* Option < Policy > */
) RETURNS TABLE (
	"included" bool,  /* bool */
	"explanation" TEXT,  /* String */
	"path" uuid[]  /* :: std :: option :: Option < Vec < Uuid > > */
)
STABLE PARALLEL RESTRICTED
LANGUAGE c /* Rust */
AS 'MODULE_PATHNAME', 'graph_why_wrapper';

-- src/api/explain.rs
-- graph_kernel::api::explain::graph_slice_stats
CREATE  FUNCTION "graph_slice_stats"(
	"anchor" uuid, /* Option < Uuid > */
	"policy" slice_policy DEFAULT 'default' /* Option < Policy > */
) RETURNS TABLE (
	"turns" INT,  /* i32 */
	"edges" INT,  /* i32 */
	"max_distance" INT,  /* i32 */
	"budget_used" real,  /* f32 */
	"truncated" bool,  /* bool */
	"frontier_left" bigint,  /* i64 */
	"phases" jsonb,  /* JsonB */
	"roles" jsonb,  /* JsonB */
	"content_chars" bigint,  /* Option < i64 > */
	"tokens" bigint,  /* Option < i64 > */
	"token_budget_used" real  /* Option < f32 > */
)
STABLE PARALLEL RESTRICTED
LANGUAGE c /* Rust */
AS 'MODULE_PATHNAME', 'graph_slice_stats_wrapper';

-- src/api/policy.rs
-- graph_kernel::api::policy::graph_policy_hash
CREATE  FUNCTION "graph_policy_hash"(
	"policy" slice_policy /* Option < Policy > */
) RETURNS TEXT /* String */
IMMUTABLE PARALLEL SAFE
LANGUAGE c /* Rust */
AS 'MODULE_PATHNAME', 'graph_policy_hash_wrapper';

-- src/api/policy.rs
-- graph_kernel::api::policy::graph_priority
CREATE  FUNCTION "graph_priority"(
	"phase" TEXT, /* Option < & str > */
	"salience" real, /* Option < f32 > */
	"distance" INT, /* Option < i32 > */
	"policy" slice_policy DEFAULT 'default' /* Option < Policy > */
) RETURNS real /* Option < f32 > */
IMMUTABLE PARALLEL SAFE
LANGUAGE c /* Rust */
AS 'MODULE_PATHNAME', 'graph_priority_wrapper';

-- src/api/provenance.rs
-- graph_kernel::api::provenance::graph_is_admissible_result
CREATE  FUNCTION "graph_is_admissible_result"(
	"provenance" jsonb /* Option < JsonbText > */
) RETURNS bool /* bool */
STABLE PARALLEL SAFE
LANGUAGE c /* Rust */
AS 'MODULE_PATHNAME', 'graph_is_admissible_result_wrapper';

-- src/api/provenance.rs
-- graph_kernel::api::provenance::graph_can_promote
CREATE  FUNCTION "graph_can_promote"(
	"provenance" jsonb, /* Option < JsonbText > */
	"turn" uuid /* Option < Uuid > */
) RETURNS bool /* bool */
STABLE PARALLEL SAFE
LANGUAGE c /* Rust */
AS 'MODULE_PATHNAME', 'graph_can_promote_wrapper';

-- src/api/provenance.rs
-- graph_kernel::api::provenance::graph_replay_retrieval
CREATE  FUNCTION "graph_replay_retrieval"(
	"provenance" jsonb, /* Option < JsonbText > */
	"query_embedding" real[] /* :: std :: option :: Option < Array < f32 > > */
) RETURNS TABLE (
	"matches" bool,  /* bool */
	"field" TEXT,  /* & '_ str */
	"was" TEXT,  /* Option < String > */
	"now" TEXT  /* Option < String > */
)
STABLE PARALLEL RESTRICTED
LANGUAGE c /* Rust */
AS 'MODULE_PATHNAME', 'graph_replay_retrieval_wrapper';

-- src/api/search.rs
-- graph_kernel::api::search::graph_search_global
CREATE  FUNCTION "graph_search_global"(
	"query_embedding" real[], /* :: std :: option :: Option < Array < f32 > > */
	"limit_count" INT DEFAULT 10, /* Option < i32 > */
	"min_similarity" real DEFAULT NULL, /* Option < f32 > */
	"query_text" TEXT DEFAULT NULL /* Option < & str > */
) RETURNS TABLE (
	"rank" INT,  /* i32 */
	"turn_id" uuid,  /* Uuid */
	"similarity" real,  /* f32 */
	"session_id" TEXT,  /* String */
	"role" TEXT,  /* & '_ str */
	"content" TEXT,  /* Option < String > */
	"phase" TEXT,  /* & '_ str */
	"salience" real,  /* f32 */
	"trajectory_depth" INT,  /* i32 */
	"trajectory_sibling_order" INT,  /* i32 */
	"trajectory_homogeneity" real,  /* f32 */
	"trajectory_temporal" real,  /* f32 */
	"trajectory_complexity" real,  /* f32 */
	"created_at" bigint,  /* i64 */
	"provenance" jsonb  /* JsonbText */
)
STABLE PARALLEL RESTRICTED
LANGUAGE c /* Rust */
AS 'MODULE_PATHNAME', 'graph_search_global_wrapper';

-- src/api/search.rs
-- graph_kernel::api::search::graph_search_slice
CREATE  FUNCTION "graph_search_slice"(
	"query_embedding" real[], /* :: std :: option :: Option < Array < f32 > > */
	"anchor" uuid, /* Option < Uuid > */
	"policy" slice_policy DEFAULT 'default', /* Option < Policy > */
	"limit_count" INT DEFAULT 10, /* Option < i32 > */
	"min_similarity" real DEFAULT NULL, /* Option < f32 > */
	"min_salience" real DEFAULT NULL, /* Option < f32 > */
	"query_text" TEXT DEFAULT NULL /* Option < & str > */
) RETURNS TABLE (
	"rank" INT,  /* i32 */
	"turn_id" uuid,  /* Uuid */
	"similarity" real,  /* f32 */
	"session_id" TEXT,  /* String */
	"role" TEXT,  /* & '_ str */
	"content" TEXT,  /* Option < String > */
	"phase" TEXT,  /* & '_ str */
	"salience" real,  /* f32 */
	"trajectory_depth" INT,  /* i32 */
	"trajectory_sibling_order" INT,  /* i32 */
	"trajectory_homogeneity" real,  /* f32 */
	"trajectory_temporal" real,  /* f32 */
	"trajectory_complexity" real,  /* f32 */
	"created_at" bigint,  /* i64 */
	"provenance" jsonb  /* JsonbText */
)
STABLE PARALLEL RESTRICTED
LANGUAGE c /* Rust */
AS 'MODULE_PATHNAME', 'graph_search_slice_wrapper';

-- src/api/slice.rs
-- graph_kernel::api::slice::graph_slice
CREATE  FUNCTION "graph_slice"(
	"anchor" uuid, /* Option < Uuid > */
	"policy" slice_policy DEFAULT 'default' /* Option < Policy > */
) RETURNS json /* Option < JsonText > */
STABLE PARALLEL RESTRICTED
LANGUAGE c /* Rust */
AS 'MODULE_PATHNAME', 'graph_slice_wrapper';

-- src/api/slice.rs
-- graph_kernel::api::slice::graph_slice_turns
CREATE  FUNCTION "graph_slice_turns"(
	"anchor" uuid, /* Option < Uuid > */
	"policy" slice_policy DEFAULT 'default' /* Option < Policy > */
) RETURNS TABLE (
	"turn_id" uuid,  /* Uuid */
	"distance" INT,  /* i32 */
	"priority" real,  /* f32 */
	"selection_order" INT,  /* i32 */
	"session_id" TEXT,  /* String */
	"role" TEXT,  /* & '_ str */
	"phase" TEXT,  /* & '_ str */
	"salience" real,  /* f32 */
	"trajectory_depth" INT,  /* i32 */
	"trajectory_sibling_order" INT,  /* i32 */
	"trajectory_homogeneity" real,  /* f32 */
	"trajectory_temporal" real,  /* f32 */
	"trajectory_complexity" real,  /* f32 */
	"created_at" bigint,  /* i64 */
	"content_hash" TEXT,  /* Option < String > */
	"slice_id" TEXT,  /* String */
	"admissibility_token" TEXT,  /* Option < String > */
	"tokens" INT  /* Option < i32 > */
)
STABLE PARALLEL RESTRICTED
LANGUAGE c /* Rust */
AS 'MODULE_PATHNAME', 'graph_slice_turns_wrapper';

-- src/api/slice.rs
-- graph_kernel::api::slice::graph_slice_edges
CREATE  FUNCTION "graph_slice_edges"(
	"anchor" uuid, /* Option < Uuid > */
	"policy" slice_policy DEFAULT 'default' /* Option < Policy > */
) RETURNS TABLE (
	"parent" uuid,  /* Uuid */
	"child" uuid,  /* Uuid */
	"edge_type" TEXT  /* & '_ str */
)
STABLE PARALLEL RESTRICTED
LANGUAGE c /* Rust */
AS 'MODULE_PATHNAME', 'graph_slice_edges_wrapper';

-- src/api/slice.rs
-- graph_kernel::api::slice::graph_prompt
CREATE  FUNCTION "graph_prompt"(
	"anchor" uuid, /* Option < Uuid > */
	"policy" slice_policy DEFAULT 'chat' /* Option < Policy > */
) RETURNS TABLE (
	"n" INT,  /* i32 */
	"turn_id" uuid,  /* Uuid */
	"role" TEXT,  /* & '_ str */
	"content" TEXT,  /* Option < String > */
	"tokens" INT,  /* i32 */
	"cumulative_tokens" bigint  /* i64 */
)
STABLE PARALLEL RESTRICTED
LANGUAGE c /* Rust */
AS 'MODULE_PATHNAME', 'graph_prompt_wrapper';

-- src/api/slice.rs
-- graph_kernel::api::slice::graph_slice_draw
CREATE  FUNCTION "graph_slice_draw"(
	"anchor" uuid, /* Option < Uuid > */
	"policy" slice_policy DEFAULT 'default', /* Option < Policy > */
	"format" TEXT DEFAULT 'mermaid', /* Option < & str > */
	"max_turns" INT DEFAULT 60, /* Option < i32 > */
	"chars" INT DEFAULT 48, /* Option < i32 > */
	"frontier" bool DEFAULT false /* Option < bool > */
) RETURNS TEXT /* Option < String > */
STABLE PARALLEL RESTRICTED
LANGUAGE c /* Rust */
AS 'MODULE_PATHNAME', 'graph_slice_draw_wrapper';

-- src/api/turn_id.rs
-- graph_kernel::api::turn_id::graph_turn_id
CREATE  FUNCTION "graph_turn_id"(
	"id" TEXT /* & str */
) RETURNS uuid /* Uuid */
IMMUTABLE STRICT PARALLEL SAFE
LANGUAGE c /* Rust */
AS 'MODULE_PATHNAME', 'graph_turn_id_wrapper';

-- src/api/turn_id.rs
-- graph_kernel::api::turn_id::graph_turn_id
CREATE  FUNCTION "graph_turn_id"(
	"number" bigint /* i64 */
) RETURNS uuid /* Uuid */
IMMUTABLE STRICT PARALLEL SAFE 
LANGUAGE c /* Rust */
AS 'MODULE_PATHNAME', 'graph_turn_id_of_number_wrapper';

-- src/api/turn_id.rs
-- graph_kernel::api::turn_id::graph_turn_id
CREATE  FUNCTION "graph_turn_id"(
	"parts" VARIADIC TEXT[] /* VariadicArray < & str > */
) RETURNS uuid /* Option < Uuid > */
IMMUTABLE STRICT PARALLEL SAFE 
LANGUAGE c /* Rust */
AS 'MODULE_PATHNAME', 'graph_turn_id_of_parts_wrapper';

-- src/api/verify.rs
-- graph_kernel::api::verify::graph_verify
CREATE  FUNCTION "graph_verify"(
	"slice" json /* Option < JsonArg > */
) RETURNS TABLE (
	"valid" bool,  /* bool */
	"reason" TEXT,  /* & '_ str */
	"kid" TEXT,  /* Option < String > */
	"role" TEXT,  /* Option < String > */
	"rls" bool  /* Option < bool > */
)
STABLE PARALLEL SAFE
LANGUAGE c /* Rust */
AS 'MODULE_PATHNAME', 'graph_verify_wrapper';

-- src/api/verify.rs
-- graph_kernel::api::verify::graph_verify_slice
CREATE  FUNCTION "graph_verify_slice"(
	"slice" json /* Option < JsonArg > */
) RETURNS TABLE (
	"check_name" TEXT,  /* & '_ str */
	"ok" bool,  /* bool */
	"detail" TEXT  /* String */
)
STABLE PARALLEL SAFE
LANGUAGE c /* Rust */
AS 'MODULE_PATHNAME', 'graph_verify_slice_wrapper';

-- src/api/verify.rs
-- graph_kernel::api::verify::graph_verify_token
CREATE  FUNCTION "graph_verify_token"(
	"admissibility_token" TEXT, /* Option < & str > */
	"slice_id" TEXT, /* Option < & str > */
	"anchor_turn_id" uuid, /* Option < Uuid > */
	"policy_id" TEXT, /* Option < & str > */
	"policy_params_hash" TEXT, /* Option < & str > */
	"graph_snapshot_hash" TEXT, /* Option < & str > */
	"schema_version" TEXT /* Option < & str > */
) RETURNS bool /* bool */
STABLE PARALLEL SAFE
LANGUAGE c /* Rust */
AS 'MODULE_PATHNAME', 'graph_verify_token_wrapper';

-- src/api/verify.rs
-- graph_kernel::api::verify::graph_is_admissible
CREATE  FUNCTION "graph_is_admissible"(
	"slice" json, /* Option < JsonArg > */
	"turn" uuid /* Option < Uuid > */
) RETURNS bool /* bool */
STABLE PARALLEL SAFE
LANGUAGE c /* Rust */
AS 'MODULE_PATHNAME', 'graph_is_admissible_wrapper';

-- src/api/verify.rs
-- graph_kernel::api::verify::graph_filter_admissible
CREATE  FUNCTION "graph_filter_admissible"(
	"slice" json, /* Option < JsonArg > */
	"turns" uuid[] /* :: std :: option :: Option < Array < Uuid > > */
) RETURNS uuid[] /* Vec < Uuid > */
STABLE PARALLEL SAFE
LANGUAGE c /* Rust */
AS 'MODULE_PATHNAME', 'graph_filter_admissible_wrapper';

-- src/api/verify.rs
-- graph_kernel::api::verify::graph_proof
CREATE  FUNCTION "graph_proof"(
	"slice" json /* JsonArg */
) RETURNS json /* JsonText */
STRICT STABLE PARALLEL SAFE
LANGUAGE c /* Rust */
AS 'MODULE_PATHNAME', 'graph_proof_wrapper';

-- src/api/verify.rs
-- graph_kernel::api::verify::graph_verify_proof
CREATE  FUNCTION "graph_verify_proof"(
	"slice" json, /* Option < JsonArg > */
	"proof" json, /* Option < JsonArg > */
	"public_key" TEXT /* Option < & str > */
) RETURNS TABLE (
	"valid" bool,  /* bool */
	"reason" TEXT  /* & '_ str */
)
IMMUTABLE PARALLEL SAFE
LANGUAGE c /* Rust */
AS 'MODULE_PATHNAME', 'graph_verify_proof_wrapper';

-- src/api/verify.rs
-- graph_kernel::api::verify::graph_replay
CREATE  FUNCTION "graph_replay"(
	"slice" json, /* Option < JsonArg > */
	"policy" slice_policy DEFAULT NULL /* Option < Policy > */
) RETURNS TABLE (
	"status" TEXT,  /* & '_ str */
	"field" TEXT,  /* Option < String > */
	"was" TEXT,  /* Option < String > */
	"now" TEXT  /* Option < String > */
)
STABLE PARALLEL RESTRICTED
LANGUAGE c /* Rust */
AS 'MODULE_PATHNAME', 'graph_replay_wrapper';

-- src/api/version.rs
-- graph_kernel::api::version::graph_kernel_version
CREATE  FUNCTION "graph_kernel_version"() RETURNS TEXT /* & '_ str */
IMMUTABLE STRICT PARALLEL SAFE
LANGUAGE c /* Rust */
AS 'MODULE_PATHNAME', 'graph_kernel_version_wrapper';

-- src/lib.rs
-- Tables that are to be the graph of a name, checked; the extension is in `schema`.
CREATE FUNCTION graph_kernel.describe_tables(turns oid, edges oid, columns jsonb, schema text, name text) RETURNS jsonb
    AS 'MODULE_PATHNAME', 'describe_tables_wrapper'
    LANGUAGE c STABLE PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp;
-- The other functions take the name of a binding, so that one call reads the setting graph_kernel.graph once.
CREATE FUNCTION graph_kernel.chosen_graph() RETURNS text
    AS 'MODULE_PATHNAME', 'chosen_graph_wrapper'
    LANGUAGE c STABLE PARALLEL SAFE;
CREATE FUNCTION graph_kernel.describe_graph(graph text) RETURNS jsonb
    AS 'MODULE_PATHNAME', 'describe_graph_wrapper'
    LANGUAGE c STABLE STRICT PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp;
CREATE FUNCTION graph_kernel.count_found(graph text, what text) RETURNS bigint
    AS 'MODULE_PATHNAME', 'count_found_wrapper'
    LANGUAGE c STABLE STRICT PARALLEL RESTRICTED COST 1000000 SET search_path = pg_catalog, pg_temp;
CREATE FUNCTION graph_kernel.turns_in_cycles(graph text) RETURNS bigint
    AS 'MODULE_PATHNAME', 'turns_in_cycles_wrapper'
    LANGUAGE c STABLE STRICT PARALLEL RESTRICTED COST 1000000 SET search_path = pg_catalog, pg_temp;
CREATE FUNCTION graph_kernel.evaluate(graph text, place text) RETURNS void
    AS 'MODULE_PATHNAME', 'evaluate_wrapper'
    LANGUAGE c STABLE STRICT PARALLEL RESTRICTED COST 1000000 SET search_path = pg_catalog, pg_temp;
CREATE FUNCTION graph_kernel.evaluate_row(graph text, place text, row_table oid, row_id text) RETURNS void
    AS 'MODULE_PATHNAME', 'evaluate_row_wrapper'
    LANGUAGE c STABLE STRICT PARALLEL RESTRICTED COST 1000 SET search_path = pg_catalog, pg_temp;

-- Whether an index finds rows by this key, a column or an expression as an index definition has it. On a partitioned
-- table a unique index contains the partition key too; a duplicate id is found when slicing.
CREATE FUNCTION graph_kernel.has_index(table_id regclass, key text, is_unique boolean)
RETURNS boolean
LANGUAGE sql STABLE STRICT
SET search_path = pg_catalog, pg_temp
AS $$
    SELECT EXISTS (
        SELECT FROM pg_index AS i
        JOIN pg_class AS c ON c.oid = i.indrelid
        JOIN pg_class AS x ON x.oid = i.indexrelid
        JOIN pg_am AS m ON m.oid = x.relam
        WHERE i.indrelid = table_id
          AND m.amname = 'btree' AND i.indisvalid AND i.indpred IS NULL
          AND pg_get_indexdef(i.indexrelid, 1, false) = key
          AND (NOT is_unique OR i.indisunique AND (i.indnkeyatts = 1 OR c.relkind = 'p'))
    )
$$;

-- The command that creates an index. On a partitioned table it cannot run beside writers, and a unique one must
-- contain the partition key.
CREATE FUNCTION graph_kernel.index_command(table_id regclass, is_unique boolean, keys text[], include text[])
RETURNS text
LANGUAGE sql STABLE STRICT
SET search_path = pg_catalog, pg_temp
AS $$
    SELECT format('CREATE %sINDEX %sON %s (%s)%s;',
                  CASE WHEN is_unique THEN 'UNIQUE ' ELSE '' END,
                  CASE WHEN c.relkind = 'p' THEN '' ELSE 'CONCURRENTLY ' END,
                  table_id, array_to_string($3 || p.partition, ', '),
                  CASE WHEN included.columns <> '' THEN format(' INCLUDE (%s)', included.columns) ELSE '' END)
    FROM pg_class AS c
    CROSS JOIN LATERAL (
        SELECT coalesce(array_agg(quote_ident(a.attname) ORDER BY k.position), '{}') AS partition
        FROM pg_partitioned_table AS p
        CROSS JOIN LATERAL unnest(p.partattrs::int2[]) WITH ORDINALITY AS k(attnum, position)
        JOIN pg_attribute AS a ON a.attrelid = p.partrelid AND a.attnum = k.attnum
        WHERE p.partrelid = table_id AND is_unique AND quote_ident(a.attname) <> ALL ($3)
    ) AS p
    CROSS JOIN LATERAL (
        SELECT coalesce(string_agg(i.name, ', ' ORDER BY i.position), '') AS columns
        FROM unnest($4) WITH ORDINALITY AS i (name, position)
        WHERE i.name <> ALL (p.partition)
    ) AS included
    WHERE c.oid = table_id
$$;

SET LOCAL search_path TO pg_catalog, pg_temp; -- what bodies parsed now are resolved by

-- The indexes that a described graph is read by, whether they exist, and the commands that create them.
CREATE FUNCTION graph_kernel.wanted_indexes(graph jsonb)
RETURNS TABLE (name text, found boolean, what text, command text)
LANGUAGE sql STABLE STRICT
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT w.name, graph_kernel.has_index(w.rel::regclass, w.keys[1], w.is_unique),
           format('index on %s (%s)', w.rel::regclass, w.keys[1]),
           graph_kernel.index_command(w.rel::regclass, w.is_unique, w.keys, w.include)
    FROM jsonb_array_elements(graph -> 'indexes') WITH ORDINALITY AS listed (wanted, position)
    CROSS JOIN LATERAL jsonb_to_record(listed.wanted)
        AS w (name text, rel oid, is_unique boolean, keys text[], include text[])
    ORDER BY listed.position;
END;

-- Called with definer's rights, as the binding belongs to the extension; EXECUTE decides who may call it. Called while
-- DROP EXTENSION has to wait.
CREATE FUNCTION graph_kernel.bind_tables_internal(
    turns regclass, edges regclass, columns jsonb, name text, bound_by text
) RETURNS uuid
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    described jsonb;
    bound uuid;
    missing record;
BEGIN
    IF turns IS NULL OR name IS NULL THEN
        RAISE EXCEPTION 'turns and name must not be null'
            USING ERRCODE = 'null_value_not_allowed', DETAIL = 'INVALID_BINDING';
    END IF;
    IF name = '' OR octet_length(name) > 63 THEN
        RAISE EXCEPTION 'the name of a graph must have 1 to 63 bytes'
            USING ERRCODE = 'invalid_parameter_value', DETAIL = 'INVALID_BINDING';
    END IF;
    described := graph_kernel.describe_tables(turns::oid, edges::oid, columns,
        (SELECT n.nspname FROM pg_extension AS x JOIN pg_namespace AS n ON n.oid = x.extnamespace
         WHERE x.extname = 'graph_kernel'), name);
    -- Without these every probe of a slice reads the whole table. An index on an expression has to be made for
    -- the binding; an id that is a column has a key.
    FOR missing IN
        SELECT i.name, i.what, i.command FROM graph_kernel.wanted_indexes(described) AS i
        WHERE NOT i.found AND i.name <> 'index_session'
    LOOP
        IF missing.name = 'index_turn_id' AND NOT described -> 'expressions' ? 'turns.id' THEN
            RAISE EXCEPTION 'table % has no unique index on column "%"', turns,
                described #>> '{turns,columns,id}'
                USING ERRCODE = 'invalid_table_definition', DETAIL = 'GRAPH_TABLES', HINT = missing.command;
        END IF;
        RAISE NOTICE 'there is no %', missing.what USING HINT = missing.command;
    END LOOP;
    LOCK TABLE graph_kernel.binding IN SHARE ROW EXCLUSIVE MODE;
    -- Other tables or columns are another graph, with another name in its tokens; the same ones get theirs back.
    bound := (SELECT b.graph FROM graph_kernel.binding AS b
              WHERE b.name = name AND b.turns = turns AND b.edges IS NOT DISTINCT FROM edges
                AND b.columns IS NOT DISTINCT FROM columns
              ORDER BY b.is_current DESC, b.bound_at DESC LIMIT 1);
    UPDATE graph_kernel.binding AS b SET is_current = false
    WHERE b.name = name AND b.is_current AND b.graph IS DISTINCT FROM bound;
    IF bound IS NULL THEN
        INSERT INTO graph_kernel.binding AS b (name, is_current, turns, edges, columns, resolved, bound_by)
        VALUES (name, true, turns, edges, columns, described -> 'resolved', bound_by)
        RETURNING b.graph INTO bound;
    ELSE
        UPDATE graph_kernel.binding AS b
        SET is_current = true, resolved = described -> 'resolved', bound_by = bound_by, bound_at = now()
        WHERE b.graph = bound;
    END IF;
    RETURN bound;
END
$$;

CREATE FUNCTION graph_kernel.bind_tables(
    turns regclass,
    edges regclass DEFAULT NULL,
    columns jsonb DEFAULT NULL,
    name text DEFAULT 'default'
) RETURNS uuid
LANGUAGE sql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT FROM graph_kernel.binding LIMIT 0; -- DROP EXTENSION waits
    SELECT graph_kernel.bind_tables_internal(
        $1, $2, $3, $4, coalesce(nullif(current_setting('role'), 'none'), session_user::text));
END;

CREATE FUNCTION graph_kernel.unbind_tables_internal(name text) RETURNS void
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_variable
BEGIN
    IF name IS NULL THEN
        RAISE EXCEPTION 'name must not be null'
            USING ERRCODE = 'null_value_not_allowed', DETAIL = 'INVALID_BINDING';
    END IF;
    UPDATE graph_kernel.binding AS b SET is_current = false WHERE b.name = name AND b.is_current;
    IF NOT FOUND AND name <> 'default' THEN
        RAISE EXCEPTION 'there is no graph "%"', name
            USING ERRCODE = 'undefined_object', DETAIL = 'GRAPH_NOT_FOUND',
                  HINT = 'SELECT name FROM graph_kernel.bindings WHERE is_current;';
    END IF;
END
$$;

CREATE FUNCTION graph_kernel.unbind_tables(name text DEFAULT 'default') RETURNS void
LANGUAGE sql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT FROM graph_kernel.binding LIMIT 0; -- DROP EXTENSION waits
    SELECT graph_kernel.unbind_tables_internal($1);
END;

SET LOCAL search_path TO @extschema@, pg_temp;

-- src/lib.rs
-- requires:
--   binding

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
    old_kid text;
    new_kid text;
BEGIN
    -- One rotation at a time, so that each sees the key of the one before it.
    LOCK TABLE graph_kernel.root_keys IN EXCLUSIVE MODE;
    SELECT k.kid INTO old_kid FROM graph_kernel.list_keys() AS k WHERE k.state = 'active';
    new_kid := graph_kernel.add_epoch();
    IF revoke_old AND old_kid IS NOT NULL THEN
        INSERT INTO graph_kernel.revoked_keys (kid) VALUES (old_kid) ON CONFLICT DO NOTHING;
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

-- src/lib.rs
-- requires:
--   graph_policy_hash

CREATE FUNCTION graph_kernel.presets()
    RETURNS TABLE (name text, policy @extschema@.slice_policy, is_counted boolean)
    AS 'MODULE_PATHNAME', 'presets_wrapper'
    LANGUAGE c IMMUTABLE PARALLEL SAFE ROWS 5 SET search_path = pg_catalog, pg_temp;
CREATE FUNCTION graph_kernel.registry_fingerprint(policy_ids text[], params_hashes text[]) RETURNS text
    AS 'MODULE_PATHNAME', 'registry_fingerprint_wrapper'
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp;

-- A row without a name for each policy, one more for each of its names. The presets have none, so that a
-- restored dump meets nothing that is there already. A name never has the form of a hash.
CREATE TABLE graph_kernel.policies (
    name text UNIQUE CHECK (
        name OPERATOR(pg_catalog.~) '^(?![0-9a-f]{16}$).{1,255}$'
        AND name OPERATOR(pg_catalog.<>) ALL ('{default,focused,broad}')
    ),
    policy @extschema@.slice_policy NOT NULL,
    params_hash text NOT NULL GENERATED ALWAYS AS (@extschema@.graph_policy_hash(policy)) STORED,
    registered_by text NOT NULL DEFAULT CURRENT_USER,
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
CREATE VIEW @extschema@.graph_policies AS
    SELECT p.name, p.policy_id, p.params_hash, p.policy, p.registered_by, p.registered_at
    FROM graph_kernel.known_policies AS p;
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

-- Raises an error for a policy that cannot be registered, or for a row that is already there.
CREATE FUNCTION graph_kernel.raise_policy_error(error text, about text) RETURNS void
LANGUAGE plpgsql STABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    CASE error
        WHEN 'INVALID_POLICY' THEN
            RAISE EXCEPTION 'policy must not be null'
                USING ERRCODE = 'null_value_not_allowed', DETAIL = error,
                      HINT = 'Leave the argument out for the default policy, or give a preset or a JSON object.';
        WHEN 'INVALID_POLICY_NAME' THEN
            RAISE EXCEPTION 'not a name for a policy: %', quote_literal(left(about, 64))
                USING ERRCODE = 'invalid_parameter_value', DETAIL = error,
                      HINT = 'Give 1 to 255 characters that do not look like a params_hash.';
        WHEN 'POLICY_HASH_COLLISION' THEN
            RAISE EXCEPTION 'another policy with params_hash % is registered: the two hashes collide', about
                USING ERRCODE = 'unique_violation', DETAIL = error,
                      HINT = 'Change a parameter of the policy by a millionth.';
        WHEN 'POLICY_NAME_TAKEN' THEN
            RAISE EXCEPTION 'the name % is taken', quote_literal(about)
                USING ERRCODE = 'unique_violation', DETAIL = error,
                      HINT = 'SELECT name, params_hash FROM graph_policies;';
    END CASE;
END
$$;

-- The table's trigger checks the right to register.
CREATE FUNCTION graph_kernel.add_policy(policy @extschema@.slice_policy, name text) RETURNS void
LANGUAGE sql VOLATILE
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    INSERT INTO graph_kernel.policies (policy, name) VALUES (add_policy.policy, add_policy.name)
    ON CONFLICT DO NOTHING;
END;

-- EXECUTE on this is the right to register. Invoker's rights: the caller's name goes into the table. Writes nothing
-- when the policy and the name are there already; each statement sees what those before it have waited for.
CREATE FUNCTION graph_kernel.register_policy(policy @extschema@.slice_policy, name text)
RETURNS TABLE (policy_id text, params_hash text)
LANGUAGE sql VOLATILE ROWS 1
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT graph_kernel.raise_policy_error('INVALID_POLICY', NULL)
    WHERE register_policy.policy IS NULL;
    SELECT graph_kernel.raise_policy_error('INVALID_POLICY_NAME', register_policy.name)
    WHERE register_policy.name !~ '^(?![0-9a-f]{16}$).{1,255}$';

    SELECT graph_kernel.add_policy(register_policy.policy, NULL)
    WHERE NOT EXISTS (SELECT FROM graph_kernel.known_policies AS p
                      WHERE p.is_counted AND p.params_hash = @extschema@.graph_policy_hash(register_policy.policy));
    SELECT graph_kernel.raise_policy_error('POLICY_HASH_COLLISION', p.params_hash)
    FROM graph_kernel.known_policies AS p
    WHERE p.params_hash = @extschema@.graph_policy_hash(register_policy.policy)
      AND p.policy::text <> register_policy.policy::text;

    SELECT graph_kernel.add_policy(register_policy.policy, register_policy.name)
    WHERE register_policy.name IS NOT NULL
      AND NOT EXISTS (SELECT FROM graph_kernel.known_policies AS p WHERE p.name = register_policy.name);
    SELECT graph_kernel.raise_policy_error('POLICY_NAME_TAKEN', p.name)
    FROM graph_kernel.known_policies AS p
    WHERE p.name = register_policy.name
      AND (p.policy::text <> register_policy.policy::text
           -- A name that the fingerprint does not count is given only where it was registered before it was a preset's.
           OR EXISTS (SELECT FROM graph_kernel.presets() AS d WHERE d.name = p.name AND NOT d.is_counted)
              AND NOT EXISTS (SELECT FROM graph_kernel.policies AS n WHERE n.name = p.name));

    SELECT register_policy.policy::json ->> 'version', @extschema@.graph_policy_hash(register_policy.policy);
END;

CREATE FUNCTION @extschema@.graph_policy_register(policy @extschema@.slice_policy, name text DEFAULT NULL)
RETURNS TABLE (policy_id text, params_hash text)
LANGUAGE sql VOLATILE ROWS 1
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT r.policy_id, r.params_hash FROM graph_kernel.register_policy($1, $2) AS r;
END;

CREATE FUNCTION graph_kernel.policy_not_found(ref text) RETURNS @extschema@.slice_policy
LANGUAGE plpgsql STABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    RAISE EXCEPTION 'no policy has the name or params_hash %', quote_literal(left(ref, 255))
        USING ERRCODE = 'undefined_object', DETAIL = 'POLICY_NOT_FOUND',
              HINT = 'SELECT name, params_hash FROM graph_policies;';
END
$$;

CREATE FUNCTION @extschema@.graph_policy(ref text) RETURNS @extschema@.slice_policy
LANGUAGE sql STABLE STRICT PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
RETURN coalesce((SELECT p.policy FROM graph_kernel.known_policies AS p
                 WHERE graph_policy.ref IN (p.name, p.params_hash) LIMIT 1),
                graph_kernel.policy_not_found(graph_policy.ref));

CREATE FUNCTION @extschema@.graph_policy_registry_fingerprint() RETURNS text
LANGUAGE sql STABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
RETURN (
    SELECT graph_kernel.registry_fingerprint(array_agg(p.policy_id), array_agg(p.params_hash))
    FROM graph_kernel.known_policies AS p WHERE p.is_counted);

SET LOCAL search_path TO @extschema@, pg_temp;

-- src/lib.rs
-- requires:
--   policies
--   graph_kernel_version

-- Requests and answers of the REST service of the crate admissibility-kernel, for PostgREST: one unnamed json
-- argument is the whole body, and an SQLSTATE of PTnnn is answered as status nnn.

SET LOCAL search_path TO pg_catalog, pg_temp; -- what bodies parsed now are resolved by

CREATE FUNCTION graph_kernel.slice_summaries(anchors text[], policy @extschema@.slice_policy)
RETURNS TABLE (anchor_turn_id text, summary json, error_code text, error text)
    AS 'MODULE_PATHNAME', 'slice_summaries_wrapper'
    LANGUAGE c STABLE PARALLEL RESTRICTED COST 100000 ROWS 10
    SET search_path = pg_catalog, pg_temp;

-- Raises the error that slice_summaries reports.
CREATE FUNCTION graph_kernel.raise_api_error(error_code text, error text) RETURNS text
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

-- A misspelt key would be ignored silently, and without a policy_ref the default policy is taken. Parsing takes
-- a multiple of a request's size in memory, so a long one is not parsed. Not IMMUTABLE: the planner would
-- call it early for a constant request.
CREATE FUNCTION graph_kernel.check_request(request json, required text[], optional text[]) RETURNS void
LANGUAGE plpgsql STABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    max_bytes CONSTANT integer := 1024 * 1024;
    fault text;
BEGIN
    IF octet_length(request::text) > max_bytes THEN
        RAISE SQLSTATE 'PT413' USING DETAIL = 'REQUEST_TOO_LARGE',
            MESSAGE = format('request of %s bytes is larger than %s', octet_length(request::text), max_bytes),
            HINT = 'Send several requests.';
    END IF;
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

CREATE FUNCTION graph_kernel.requested_policy_not_found(policy_ref json) RETURNS @extschema@.slice_policy
LANGUAGE plpgsql STABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    RAISE SQLSTATE 'PT404' USING DETAIL = 'POLICY_NOT_FOUND',
        MESSAGE = format('policy %s with params_hash %s is not registered',
                         left(policy_ref ->> 'policy_id', 64), left(policy_ref ->> 'params_hash', 64)),
        HINT = 'graph_api_policies() lists the registered policies.';
END
$$;

-- The policy that a request's policy_ref names: the default one where there is none.
CREATE FUNCTION graph_kernel.requested_policy(policy_ref json) RETURNS @extschema@.slice_policy
LANGUAGE sql STABLE PARALLEL SAFE
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

CREATE FUNCTION graph_kernel.policy_ref(policy @extschema@.slice_policy) RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
RETURN format('{"policy_id":%s,"params_hash":%s}', policy::json -> 'version',
              to_json(@extschema@.graph_policy_hash(policy)));

CREATE FUNCTION @extschema@.graph_api_slice(json) RETURNS json
LANGUAGE sql STABLE PARALLEL RESTRICTED COST 10000
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT graph_kernel.check_request($1, '{anchor_turn_id}', '{policy_ref}');
    SELECT format('{"slice":%s,"policy_ref":%s}',
                  CASE WHEN s.error IS NULL THEN s.summary::text
                       ELSE graph_kernel.raise_api_error(s.error_code, s.error) END,
                  graph_kernel.policy_ref(asked.policy))::json
    FROM (SELECT graph_kernel.requested_policy($1 -> 'policy_ref') AS policy OFFSET 0) AS asked
    CROSS JOIN LATERAL graph_kernel.slice_summaries(ARRAY[$1 ->> 'anchor_turn_id'], asked.policy) AS s;
END;

CREATE FUNCTION graph_kernel.requested_anchors(anchors json) RETURNS text[]
LANGUAGE plpgsql STABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    max_anchors CONSTANT integer := 100;
BEGIN
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

-- An error that concerns every anchor is an error of the batch.
CREATE FUNCTION @extschema@.graph_api_slice_batch(json) RETURNS json
LANGUAGE sql STABLE PARALLEL RESTRICTED COST 100000
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT graph_kernel.check_request($1, '{anchor_turn_ids}', '{policy_ref}');
    SELECT format('{"slices":[%s],"policy_ref":%s,"success_count":%s,"errors":[%s]}',
                  taken.slices, graph_kernel.policy_ref(asked.policy), taken.successes, taken.errors)::json
    FROM (SELECT graph_kernel.requested_anchors($1 -> 'anchor_turn_ids') AS anchors,
                 graph_kernel.requested_policy($1 -> 'policy_ref') AS policy OFFSET 0) AS asked
    CROSS JOIN LATERAL (
        SELECT string_agg(s.summary::text, ',' ORDER BY s.position) FILTER (WHERE s.error IS NULL) AS slices,
               count(*) FILTER (WHERE s.error IS NULL) AS successes,
               string_agg(
                   CASE WHEN s.error_code IN ('INVALID_TURN_ID', 'ANCHOR_NOT_FOUND', 'DUPLICATE_TURN',
                                              'SLICE_TOO_LARGE', 'SLICE_FAILED')
                        THEN format('{"anchor_turn_id":%s,"error":%s}',
                                    coalesce(to_json(s.anchor_turn_id), 'null'), to_json(s.error))
                        ELSE graph_kernel.raise_api_error(s.error_code, s.error) END,
                   ',' ORDER BY s.position) FILTER (WHERE s.error IS NOT NULL) AS errors
        FROM graph_kernel.slice_summaries(asked.anchors, asked.policy) WITH ORDINALITY
            AS s (anchor_turn_id, summary, error_code, error, position)
    ) AS taken;
END;

CREATE FUNCTION @extschema@.graph_api_policies() RETURNS json
LANGUAGE sql STABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
RETURN (
    SELECT format('{"policies":[%s],"registry_fingerprint":%s}',
        string_agg(graph_kernel.policy_ref(p.policy), ',' ORDER BY p.params_hash),
        to_json(@extschema@.graph_policy_registry_fingerprint()))::json
    FROM (SELECT DISTINCT ON (d.params_hash) d.params_hash, d.policy
          FROM graph_kernel.known_policies AS d WHERE d.is_counted ORDER BY d.params_hash) AS p);

CREATE FUNCTION @extschema@.graph_api_register_policy(json) RETURNS json
LANGUAGE sql VOLATILE
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT graph_kernel.check_request($1, '{policy}', '{name}');
    SELECT format('{"policy_ref":%s}', graph_kernel.policy_ref(asked.policy))::json
    FROM (SELECT ($1 -> 'policy')::@extschema@.slice_policy AS policy OFFSET 0) AS asked
    CROSS JOIN LATERAL graph_kernel.register_policy(asked.policy, $1 ->> 'name') AS r;
END;

CREATE FUNCTION graph_kernel.verify_token(
    admissibility_token text, slice_id text, anchor_turn_id uuid, policy_id text, policy_params_hash text,
    graph_snapshot_hash text, schema_version text
) RETURNS boolean
    AS 'MODULE_PATHNAME', 'graph_verify_token_wrapper'
    LANGUAGE c STABLE PARALLEL SAFE COST 100 SET search_path = pg_catalog, pg_temp;

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

CREATE FUNCTION @extschema@.graph_api_verify_token(json) RETURNS json
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT FROM graph_kernel.binding LIMIT 0; -- DROP EXTENSION waits
    SELECT graph_kernel.api_verify_token($1);
END;

CREATE FUNCTION graph_kernel.verify_proof(slice json, proof json, public_key text)
RETURNS TABLE (valid boolean, reason text)
    AS 'MODULE_PATHNAME', 'graph_verify_proof_wrapper'
    LANGUAGE c IMMUTABLE PARALLEL SAFE COST 3000 ROWS 1 SET search_path = pg_catalog, pg_temp;

CREATE FUNCTION @extschema@.graph_api_verify_proof(json) RETURNS json
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT FROM graph_kernel.binding LIMIT 0; -- DROP EXTENSION waits
    SELECT graph_kernel.check_request($1, '{slice,proof,public_key}', '{}');
    SELECT format('{"valid":%s,"reason":%s}', to_json(v.valid), CASE WHEN v.valid THEN 'null' ELSE to_json(v.reason)::text END)::json
    FROM graph_kernel.verify_proof($1 -> 'slice', $1 -> 'proof', $1 ->> 'public_key') AS v;
END;

CREATE FUNCTION @extschema@.graph_api_health() RETURNS json
LANGUAGE sql STABLE PARALLEL RESTRICTED
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    -- No anchor: an error that would concern every one.
    SELECT graph_kernel.raise_api_error(s.error_code, s.error)
    FROM graph_kernel.slice_summaries('{}', 'default'::@extschema@.slice_policy) AS s;
    SELECT format('{"status":"healthy","version":%s,"schema_version":"1.0.0","policy_count":%s,'
                  '"registry_fingerprint":%s,"database":{"connected":true}}',
        to_json(@extschema@.graph_kernel_version()),
        (SELECT count(DISTINCT p.params_hash) FROM graph_kernel.known_policies AS p WHERE p.is_counted),
        to_json(@extschema@.graph_policy_registry_fingerprint()))::json;
END;

SET LOCAL search_path TO @extschema@, pg_temp;

-- src/lib.rs
-- "No token, no promotion" as a constraint. AFTER, so that no other trigger can change the row
-- after the check. Arguments: the slice column, the turns column, whose slices are trusted: no_rls
-- (the default: slices taken without row security) or roles=a,b; and graph=name (the default: default) for the graph.
-- The writer's setting graph_kernel.graph decides nothing here.
CREATE FUNCTION graph_kernel.promotion_refusal(slice json, turns uuid[], graph text, trust text) RETURNS text
    AS 'MODULE_PATHNAME', 'promotion_refusal_wrapper'
    LANGUAGE c STABLE PARALLEL SAFE COST 2000 SET search_path = pg_catalog, pg_temp;

-- It runs with the writer's rights. Columns are read through the output functions of their types: a
-- type's owner could give it a cast.
CREATE FUNCTION @extschema@.graph_require_admissible() RETURNS trigger
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    slice json;
    turns uuid[];
    trust text := 'no_rls';
    graph text := 'default';
    arguments text[] := '{}';
    refused text;
BEGIN
    IF TG_WHEN <> 'AFTER' OR TG_LEVEL <> 'ROW' OR TG_OP NOT IN ('INSERT', 'UPDATE') THEN
        RAISE EXCEPTION 'graph_require_admissible() must run AFTER INSERT OR UPDATE FOR EACH ROW'
            USING ERRCODE = 'trigger_protocol_violated', DETAIL = 'INVALID_TRIGGER';
    END IF;
    FOR i IN 2 .. TG_NARGS - 1 LOOP
        arguments := arguments || TG_ARGV[i];
    END LOOP;
    IF arguments[cardinality(arguments)] LIKE 'graph=_%' THEN
        graph := substr(arguments[cardinality(arguments)], 7);
        arguments := trim_array(arguments, 1);
    END IF;
    trust := coalesce(arguments[1], trust);
    IF TG_NARGS < 2 OR cardinality(arguments) > 1 OR (trust <> 'no_rls' AND trust NOT LIKE 'roles=_%') THEN
        RAISE EXCEPTION 'trigger % has bad arguments', TG_NAME
            USING ERRCODE = 'invalid_parameter_value', DETAIL = 'INVALID_TRIGGER',
                  HINT = 'graph_require_admissible(''slice_column'', ''turns_column''[, ''no_rls'' | ''roles=a,b''][, ''graph=name''])';
    END IF;
    EXECUTE format('SELECT nullif(format(''%%s'', ($1).%I), '''')::json, nullif(format(''%%s'', ($1).%I), '''')::uuid[]',
                   TG_ARGV[0], TG_ARGV[1])
        INTO slice, turns USING NEW;
    refused := graph_kernel.promotion_refusal(slice, turns, graph, trust);
    IF refused IS NOT NULL THEN
        RAISE EXCEPTION 'row of %.% is not admissible: %', TG_TABLE_SCHEMA, TG_TABLE_NAME, refused
            USING ERRCODE = 'check_violation', DETAIL = 'NOT_ADMISSIBLE',
                  HINT = 'SELECT * FROM graph_verify_slice(slice);';
    END IF;
    RETURN NULL;
END
$$;

-- src/lib.rs
-- Invoker's rights: the tables belong to the caller, not to the extension.
CREATE FUNCTION graph_kernel.create_tables(schema name DEFAULT 'public') RETURNS void
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF schema IS NULL THEN
        RAISE EXCEPTION 'schema must not be null'
            USING ERRCODE = 'null_value_not_allowed', DETAIL = 'INVALID_SCHEMA';
    END IF;
    -- The primary key includes the columns that score a turn, so that scoring reads the index alone.
    EXECUTE pg_catalog.format(
        'CREATE TABLE %1$I.memory_turns (
            id uuid NOT NULL,
            session_id text,
            role text,
            trajectory_phase text,
            salience_score real,
            trajectory_depth integer,
            trajectory_sibling_order integer,
            trajectory_homogeneity real,
            trajectory_temporal real,
            trajectory_complexity real,
            created_at timestamptz DEFAULT pg_catalog.now(),
            content_text text,
            content_hash text,
            token_count integer,
            PRIMARY KEY (id) INCLUDE (trajectory_phase, salience_score)
        )', schema);
    EXECUTE pg_catalog.format(
        'CREATE TABLE %1$I.memory_turn_edges (
            parent_turn_id uuid NOT NULL REFERENCES %1$I.memory_turns (id),
            child_turn_id uuid NOT NULL REFERENCES %1$I.memory_turns (id),
            edge_type text NOT NULL DEFAULT ''default'',
            PRIMARY KEY (parent_turn_id, child_turn_id, edge_type)
        )', schema);
    EXECUTE pg_catalog.format(
        'CREATE INDEX memory_turn_edges_child_idx ON %1$I.memory_turn_edges
            (child_turn_id, parent_turn_id, edge_type)', schema);
    EXECUTE pg_catalog.format(
        'CREATE INDEX ON %1$I.memory_turns (session_id, created_at)', schema);
    EXECUTE pg_catalog.format(
        'COMMENT ON TABLE %1$I.memory_turns IS ''turns of conversations''', schema);
    EXECUTE pg_catalog.format(
        'COMMENT ON TABLE %1$I.memory_turn_edges IS ''edges from earlier to later turns''', schema);
END
$$;

-- src/lib.rs
-- requires:
--   binding

-- The statement that selects the first row of this table on which an expression raises.
CREATE FUNCTION graph_kernel.raising_row(graph text, place text, bound regclass) RETURNS text
LANGUAGE plpgsql STABLE STRICT
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    found record;
BEGIN
    FOR found IN EXECUTE format('SELECT tableoid, ctid::text FROM %s', bound) LOOP
        BEGIN
            PERFORM graph_kernel.evaluate_row(graph, place, found.tableoid, found.ctid);
        EXCEPTION WHEN data_exception THEN
            RETURN format('SELECT * FROM %s WHERE ctid = %L; -- Bind an expression that takes such a value.',
                          found.tableoid::regclass, found.ctid);
        END;
    END LOOP;
    RETURN NULL;
END
$$;

-- A row for each thing that can be wrong with a graph. Invoker's rights: it sees what slices see. No hint changes or
-- deletes rows: it selects those that may have to be changed. Called while DROP EXTENSION has to wait.
CREATE FUNCTION graph_kernel.check_graph(name text) RETURNS TABLE (
    check_name text, ok boolean, count bigint, detail text, hint text
)
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    graph jsonb;
    t text;         -- the tables as they stand in FROM
    e text;
    turns regclass;
    tables regclass[];
    c jsonb;        -- column names, turns and edges together
    x jsonb;        -- the same as expressions over t and e, of types of pg_catalog
    edge text;      -- a condition: the row has two ends; without, it is no edge
    dangling text;  -- a condition: an end is no turn
    advice text;    -- what to do with edges that are wrong, after looking at them
    hidden text;    -- what to add where this role may not see all rows
    listed record;
BEGIN
    BEGIN
        graph := graph_kernel.describe_graph(name);
    EXCEPTION WHEN undefined_table OR undefined_column OR datatype_mismatch OR wrong_object_type
                OR undefined_function OR undefined_object OR invalid_object_definition OR feature_not_supported
                OR ambiguous_function OR ambiguous_column OR syntax_error OR invalid_schema_name THEN
        check_name := 'bound_tables';
        ok := false;
        GET STACKED DIAGNOSTICS detail = MESSAGE_TEXT, hint = PG_EXCEPTION_HINT;
        RETURN NEXT;
        RETURN;
    END;
    t := graph #>> '{turns,from}';
    e := graph #>> '{edges,from}';
    turns := (graph #>> '{turns,oid}')::oid;
    tables := (SELECT array_agg(o.oid::oid::regclass ORDER BY o.position)
               FROM jsonb_array_elements_text(graph -> 'tables') WITH ORDINALITY AS o (oid, position));
    -- An absent column is '' here: a statement that names it is not run.
    c := (SELECT jsonb_object_agg(k.key, coalesce(k.value, ''))
          FROM jsonb_each_text((graph #> '{turns,columns}') || (graph #> '{edges,columns}')) AS k);
    x := (graph #> '{turns,expressions}') || (graph #> '{edges,expressions}');
    edge := format('%s IS NOT NULL AND %s IS NOT NULL', x ->> 'parent', x ->> 'child');
    dangling := format('(NOT EXISTS (SELECT FROM %1$s AS t WHERE %2$s = %3$s)'
                    ' OR NOT EXISTS (SELECT FROM %1$s AS t WHERE %2$s = %4$s))',
                    t, x ->> 'id', x ->> 'parent', x ->> 'child');
    advice := CASE WHEN tables[2] IS NULL OR turns = tables[2] THEN ' -- These rows are turns as well: correct the column that names the other turn, unless that was deleted.'
                     ELSE ' -- Look at these edges first; if they are not wanted, delete them.' END;
    IF EXISTS (SELECT FROM unnest(tables) AS r (rel) WHERE row_security_active(r.rel)) THEN
        hidden := '; row security hides rows from this role: let the owner of the tables run this';
    END IF;
    RETURN QUERY SELECT 'bound_tables', true, NULL::bigint,
        format('turns: %s, edges: %s', turns, array_to_string(
            CASE WHEN graph #> '{resolved,turns,parents}' IS NOT NULL THEN ARRAY[turns] ELSE '{}' END || tables[2:], ', ')),
        NULL::text;

    RETURN QUERY
    SELECT i.name, i.found, NULL::bigint, CASE WHEN i.found THEN '' ELSE 'no ' END || i.what,
           CASE WHEN NOT i.found THEN i.command END
    FROM graph_kernel.wanted_indexes(graph) AS i;

    -- Slices run with a fixed search_path: a policy's function that depends on the caller's fails.
    RETURN QUERY
    SELECT 'policy_search_path', count(*) = 0, count(*),
           'functions of row security policies without a search_path of their own',
           string_agg(format('ALTER FUNCTION %s SET search_path = pg_catalog, %I, pg_temp;',
                             f.fn, f.home), ' ')
    FROM (
        SELECT DISTINCT p.oid::regprocedure AS fn, n.nspname AS home
        FROM pg_policy AS pol
        JOIN pg_depend AS d ON d.classid = 'pg_policy'::regclass AND d.objid = pol.oid
                           AND d.refclassid = 'pg_proc'::regclass
        JOIN pg_proc AS p ON p.oid = d.refobjid
        JOIN pg_namespace AS n ON n.oid = p.pronamespace
        JOIN pg_language AS l ON l.oid = p.prolang
        WHERE pol.polrelid = ANY (tables) AND l.lanname NOT IN ('internal', 'c')
          AND pg_has_role(p.proowner, 'USAGE') -- others could not follow the hint
          AND NOT EXISTS (SELECT FROM unnest(p.proconfig) AS s WHERE s LIKE 'search\_path=%')
    ) AS f;

    -- With plain ENABLE TRIGGER the rows that a subscription writes would not be announced.
    RETURN QUERY
    SELECT 'announced_changes', count(*) = 0, count(*),
           'private tables whose changes are not always announced',
           string_agg(format('ALTER TABLE %s ENABLE ALWAYS TRIGGER announce;', p.rel), ' ' ORDER BY p.rel::text)
    FROM unnest('{graph_kernel.binding,graph_kernel.revoked_keys,graph_kernel.root_keys}'::regclass[]) AS p (rel)
    WHERE NOT EXISTS (SELECT FROM pg_trigger AS g
                      WHERE g.tgrelid = p.rel AND g.tgname = 'announce' AND g.tgenabled = 'A');

    -- Planning a query on a table already runs these functions on constants: in an index expression, an index predicate,
    -- expressions of statistics and of a partition key, a CHECK constraint under constraint_exclusion.
    RETURN QUERY
    SELECT 'user_functions', count(*) = 0, count(*),
           'functions of users in indexes, statistics, partition keys and CHECK constraints: they run with the'
           ' rights of the role that reads' || coalesce(': ' || string_agg(u.what, ', ' ORDER BY u.what), ''),
           string_agg(DISTINCT format('SELECT pg_get_functiondef(%L::regprocedure);', u.fn), ' ')
    FROM (
        SELECT DISTINCT format('%s in %s', coalesce(o.oprcode::oid, p.oid)::regprocedure,
                               pg_describe_object(d.classid, d.objid, 0)) AS what,
               coalesce(o.oprcode::oid, p.oid)::regprocedure AS fn
        FROM (SELECT o.oid FROM unnest(tables) AS o (oid)
              UNION SELECT l.relid FROM unnest(tables) AS o (oid) CROSS JOIN LATERAL pg_partition_tree(o.oid) AS l) AS r
        CROSS JOIN LATERAL (
            SELECT 'pg_class'::regclass AS classid, r.oid::oid AS objid
            UNION ALL SELECT 'pg_class'::regclass, i.indexrelid FROM pg_index AS i WHERE i.indrelid = r.oid
            UNION ALL SELECT 'pg_constraint'::regclass, k.oid FROM pg_constraint AS k WHERE k.conrelid = r.oid
            UNION ALL SELECT 'pg_statistic_ext'::regclass, s.oid FROM pg_statistic_ext AS s WHERE s.stxrelid = r.oid
        ) AS part
        JOIN pg_depend AS d ON d.classid = part.classid AND d.objid = part.objid AND d.objsubid = 0
        LEFT JOIN pg_proc AS p ON d.refclassid = 'pg_proc'::regclass AND p.oid = d.refobjid
        LEFT JOIN pg_operator AS o ON d.refclassid = 'pg_operator'::regclass AND o.oid = d.refobjid
        WHERE coalesce(o.oprcode::oid, p.oid) >= 16384
          AND NOT EXISTS (SELECT FROM pg_depend AS m JOIN pg_extension AS y ON y.oid = m.refobjid
                          WHERE m.classid = 'pg_proc'::regclass AND m.objid = coalesce(o.oprcode::oid, p.oid)
                            AND m.refclassid = 'pg_extension'::regclass AND m.deptype = 'e'
                            AND y.extname = 'graph_kernel')
    ) AS u;

    -- With these the caller's setting would decide which graph is read with the owner's rights.
    RETURN QUERY
    SELECT 'definer_functions', count(*) = 0, count(*),
           'functions with their owner''s rights that read a graph of the caller''s choice',
           string_agg(format('ALTER FUNCTION %s SET graph_kernel.graph = %L;', f.fn, name), ' ' ORDER BY f.fn::text)
    FROM (
        SELECT p.oid::regprocedure AS fn
        FROM pg_proc AS p
        WHERE p.prosecdef
          AND NOT EXISTS (SELECT FROM unnest(p.proconfig) AS s WHERE s LIKE 'graph\_kernel.graph=%')
          AND NOT EXISTS (SELECT FROM pg_depend AS own WHERE own.classid = 'pg_proc'::regclass AND own.objid = p.oid
                                                         AND own.deptype = 'e')
          AND pg_has_role(p.proowner, 'USAGE') -- others could not follow the hint
          AND EXISTS (
              SELECT FROM pg_depend AS m
              JOIN pg_extension AS y ON y.oid = m.refobjid AND y.extname = 'graph_kernel'
              JOIN pg_proc AS g ON g.oid = m.objid
              WHERE m.classid = 'pg_proc'::regclass AND m.refclassid = 'pg_extension'::regclass AND m.deptype = 'e'
                AND g.provolatile <> 'i'
                -- A body that was parsed at creation depends on what it calls; any other is searched for its name.
                AND (EXISTS (SELECT FROM pg_depend AS d
                             WHERE d.classid = 'pg_proc'::regclass AND d.objid = p.oid
                               AND d.refclassid = 'pg_proc'::regclass AND d.refobjid = g.oid)
                     OR p.prosqlbody IS NULL AND p.prosrc ~ ('\m' || g.proname || '\M')))
    ) AS f;

    -- Only partitions inherit triggers.
    RETURN QUERY
    WITH RECURSIVE descendant (trigger, child) AS (
        SELECT g.oid, h.inhrelid
        FROM pg_trigger AS g
        JOIN pg_proc AS p ON p.oid = g.tgfoid AND p.proname = 'graph_require_admissible'
        JOIN pg_depend AS m ON m.classid = 'pg_proc'::regclass AND m.objid = p.oid AND m.deptype = 'e'
        JOIN pg_extension AS y ON y.oid = m.refobjid AND y.extname = 'graph_kernel'
        JOIN pg_inherits AS h ON h.inhparent = g.tgrelid
        UNION
        SELECT descendant.trigger, h.inhrelid FROM descendant JOIN pg_inherits AS h ON h.inhparent = descendant.child
    )
    SELECT 'promotion_children', count(*) = 0, count(*),
           'tables that inherit from one with graph_require_admissible() and take rows without it',
           string_agg(format('CREATE TRIGGER %I AFTER INSERT OR UPDATE%s ON %s FOR EACH ROW EXECUTE FUNCTION %s(%s);',
                             g.tgname,
                             (SELECT ' OF ' || string_agg(quote_ident(a.attname), ', ' ORDER BY a.attnum)
                              FROM pg_attribute AS a WHERE a.attrelid = g.tgrelid AND a.attnum = ANY (g.tgattr)),
                             descendant.child::regclass, g.tgfoid::regproc,
                             (SELECT string_agg(quote_literal(convert_from(decode(a.text, 'escape'), 'UTF8')), ', '
                                                ORDER BY a.position)
                              FROM string_to_table(encode(g.tgargs, 'escape'), '\000')
                                  WITH ORDINALITY AS a (text, position)
                              WHERE a.position <= g.tgnargs)), ' ' ORDER BY descendant.child::regclass::text)
    FROM descendant JOIN pg_trigger AS g ON g.oid = descendant.trigger
    WHERE NOT EXISTS (SELECT FROM pg_trigger AS own
                      WHERE own.tgrelid = descendant.child AND own.tgfoid = g.tgfoid AND own.tgenabled <> 'D');

    -- An expression that raises stops every call that reads the row.
    FOR listed IN SELECT * FROM jsonb_array_elements_text(graph -> 'expressions') AS x (place) LOOP
        check_name := 'raising_expression';
        detail := format('expression of %s', listed.place);
        ok := true;
        count := NULL;
        hint := NULL;
        BEGIN
            PERFORM graph_kernel.evaluate(name, listed.place);
        EXCEPTION WHEN data_exception OR insufficient_privilege THEN
            ok := false;
            detail := CASE WHEN SQLSTATE = '42501' THEN 'could not be checked: ' || SQLERRM
                      ELSE format('%s: %s', detail, SQLERRM) END;
            IF SQLSTATE <> '42501' AND hidden IS NULL THEN
                hint := graph_kernel.raising_row(name, listed.place, tables[CASE WHEN listed.place LIKE 'edges.%' THEN 2 ELSE 1 END]);
            END IF;
        END;
        RETURN NEXT;
    END LOOP;

    -- Counts over the rows: what is counted, which column it needs, and how to look at the rows.
    FOR listed IN
        SELECT * FROM (VALUES
            ('duplicate_turns', 'id', 'turn ids stored more than once',
             format('SELECT %2$s AS id, count(*), array_agg(t.ctid) AS rows FROM %1$s AS t WHERE %2$s IS NOT NULL GROUP BY 1 HAVING count(*) > 1;', t, x ->> 'id')),
            ('dangling_edges', 'id', 'edges with an end that is no turn',
             -- Where the turns table stores edges, with the row that does.
             CASE WHEN e LIKE '(%' THEN
                 format('SELECT e.*, t.* FROM %s AS e LEFT JOIN %s AS t ON %s = e.child WHERE %s AND %s;%s',
                        e, t, x ->> 'id', edge, dangling, advice)
             ELSE format('SELECT e.* FROM %s AS e WHERE %s AND %s;%s', e, edge, dangling, advice) END),
            ('shared_missing_parents', 'session_id', 'missing parents that turns of several sessions name: these turns count as siblings',
             format('SELECT %3$s AS parent, count(*) FROM %1$s AS e JOIN %2$s AS t ON %5$s = %4$s'
                    ' WHERE %3$s IS NOT NULL AND NOT EXISTS (SELECT FROM %2$s AS t WHERE %5$s = %3$s) GROUP BY 1'
                    ' HAVING min(%6$s) <> max(%6$s);'
                    ' -- If the id stands for the beginning of every conversation, bind the parent as an expression with'
                    ' NULLIF; a turn that was deleted does no harm.',
                    e, t, x ->> 'parent', x ->> 'child', x ->> 'id', x ->> 'session_id')),
            ('self_loops', 'id', 'edges from a turn to itself',
             format('SELECT e.* FROM %s AS e WHERE %s = %s;%s', e, x ->> 'parent', x ->> 'child', advice)),
            ('unknown_edge_types', 'edge_type', 'edges read as default: unknown type',
             format('SELECT %1$s, count(*) FROM %2$s AS e WHERE %3$s GROUP BY 1;', x ->> 'edge_type', e, edge)),
            ('unknown_phases', 'phase', 'turns read as exploration: unknown phase',
             format('SELECT %1$s, count(*) FROM %2$s AS t GROUP BY 1;', x ->> 'phase', t)),
            ('unknown_roles', 'role', 'turns read as user: unknown role',
             format('SELECT %1$s, count(*) FROM %2$s AS t GROUP BY 1;', x ->> 'role', t)),
            ('odd_saliences', 'salience', 'turns whose salience is NaN or outside 0 to 1',
             format('SELECT %1$s AS id, %2$s AS salience FROM %3$s AS t WHERE (%2$s BETWEEN 0 AND 1) IS FALSE;'
                    ' -- Read as 0.5, 0 or 1; correct those that mean something else.',
                    x ->> 'id', x ->> 'salience', t)),
            ('malformed_content_hashes', 'content_hash', 'turns whose content hash is not 64 lower-case hex digits',
             format('SELECT %1$s AS id, %2$s FROM %3$s AS t WHERE %2$s !~ ''^[0-9a-f]{64}$'';',
                    x ->> 'id', x ->> 'content_hash', t)
             || CASE WHEN c ->> 'content_text' <> '' THEN
                     ' -- CALL graph_kernel.backfill_content_hashes() writes hashes, and nothing else.' ELSE '' END),
            ('stale_content_hashes', 'content_hash', 'turns whose content is not what was hashed',
             format('SELECT %1$s AS id FROM %2$s AS t WHERE %3$s ~ ''^[0-9a-f]{64}$'' AND %3$s <> graph_kernel.content_hash(%4$s);',
                    x ->> 'id', t, x ->> 'content_hash', x ->> 'content_text')),
            -- Values that may be absent are only counted.
            ('edges_without_type', 'edge_type', 'edges without a type, read as default', NULL),
            ('turns_without_phase', 'phase', 'turns without a phase, read as exploration', NULL),
            ('turns_without_role', 'role', 'turns without a role, read as user', NULL),
            ('turns_without_salience', 'salience', 'turns without a salience, read as 0.5', NULL),
            ('turns_without_content_hash', 'content_hash', 'turns without a content hash: edits of them are not seen', NULL)
        ) AS v (name, needs, what, command)
    LOOP
        check_name := listed.name;
        detail := listed.what || coalesce(hidden, '');
        hint := NULL;
        IF c ->> listed.needs = ''
           OR (listed.name LIKE 'stale%' AND c ->> 'content_text' = '') THEN
            ok := true;
            count := NULL;
            detail := 'not checked: the table has no such column';
        ELSE
            BEGIN
                count := graph_kernel.count_found(name, listed.name);
                ok := count = 0 OR listed.command IS NULL;
                -- A command based on rows that this role cannot see could do harm.
                hint := CASE WHEN NOT ok AND hidden IS NULL THEN listed.command END;
            EXCEPTION WHEN undefined_table OR undefined_column OR undefined_function
                        OR undefined_object OR insufficient_privilege OR data_exception THEN
                ok := false;
                count := NULL;
                detail := 'could not be checked: ' || SQLERRM;
            END;
        END IF;
        RETURN NEXT;
    END LOOP;

    check_name := 'cycles';
    BEGIN
        count := graph_kernel.turns_in_cycles(name);
        ok := coalesce(count = 0, true);
        detail := CASE WHEN count IS NULL THEN 'not checked: more than 5 million edges'
                       ELSE 'turns on or between cycles, self-loops among them' END
                  || coalesce(hidden, '');
    EXCEPTION WHEN undefined_table OR undefined_column OR undefined_function
                OR undefined_object OR insufficient_privilege OR data_exception THEN
        ok := false;
        count := NULL;
        detail := 'could not be checked: ' || SQLERRM;
    END;
    hint := CASE WHEN count > 0 THEN format(
        'WITH RECURSIVE walk AS (SELECT %2$s AS start, %3$s AS at FROM %1$s AS e WHERE %4$s'
        ' UNION SELECT walk.start, %3$s FROM walk JOIN %1$s AS e ON %2$s = walk.at WHERE %4$s)'
        ' SELECT start FROM walk WHERE start = at;', e, x ->> 'parent', x ->> 'child', edge) END;
    RETURN NEXT;
END
$$;

SET LOCAL search_path TO pg_catalog, pg_temp; -- what bodies parsed now are resolved by

CREATE FUNCTION @extschema@.graph_check() RETURNS TABLE (
    check_name text, ok boolean, count bigint, detail text, hint text
)
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT FROM graph_kernel.binding LIMIT 0; -- DROP EXTENSION waits
    SELECT c.check_name, c.ok, c.count, c.detail, c.hint
    FROM graph_kernel.check_graph(graph_kernel.chosen_graph()) AS c;
END;

SET LOCAL search_path TO @extschema@, pg_temp;

-- src/lib.rs
SET LOCAL search_path TO pg_catalog, pg_temp; -- what bodies parsed now are resolved by

-- graph_content_hash, under a name that no other function can take.
CREATE FUNCTION graph_kernel.content_hash(content text) RETURNS text
    AS 'MODULE_PATHNAME', 'graph_content_hash_wrapper'
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 100;

-- Parts of the backfill: some turns after an id; hashes written where no other transaction holds the turn; one
-- turn's hash written, after waiting for it. They read and write the bound table if it still is this one.
CREATE FUNCTION graph_kernel.content_page(graph text, turns_table oid, after_id uuid, most integer)
RETURNS TABLE (turns bigint, last_id uuid, stale uuid[])
    AS 'MODULE_PATHNAME', 'content_page_wrapper'
    LANGUAGE c STABLE PARALLEL RESTRICTED ROWS 1 SET search_path = pg_catalog, pg_temp;
CREATE FUNCTION graph_kernel.rehash_free_turns(graph text, turns_table oid, turns uuid[])
RETURNS TABLE (changed bigint, held uuid[])
    AS 'MODULE_PATHNAME', 'rehash_free_turns_wrapper'
    LANGUAGE c VOLATILE STRICT ROWS 1 SET search_path = pg_catalog, pg_temp;
CREATE FUNCTION graph_kernel.rehash_turn(graph text, turns_table oid, turn uuid) RETURNS bigint
    AS 'MODULE_PATHNAME', 'rehash_turn_wrapper'
    LANGUAGE c VOLATILE STRICT SET search_path = pg_catalog, pg_temp;

-- Arguments: the content column and the hash column; without, those of the bound table, where the content may be an
-- expression, or content_text and content_hash. It runs with the writer's rights. The content is read through its type's
-- output function: a type's owner could give it a cast, which to_jsonb would call.
CREATE FUNCTION graph_kernel.content_hash_trigger() RETURNS trigger
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    names text[];
    bound record;
    lacking text;
    content text;
BEGIN
    IF TG_WHEN <> 'BEFORE' OR TG_LEVEL <> 'ROW' OR TG_OP NOT IN ('INSERT', 'UPDATE') THEN
        RAISE EXCEPTION 'content_hash_trigger() must run BEFORE INSERT OR UPDATE FOR EACH ROW'
            USING ERRCODE = 'trigger_protocol_violated', DETAIL = 'INVALID_TRIGGER';
    END IF;
    CASE TG_NARGS
        WHEN 2 THEN
            names := ARRAY[TG_ARGV[0], TG_ARGV[1]];
            SELECT false AS computes_content INTO bound;
        WHEN 0 THEN
            SELECT min(b.name) AS graph, count(DISTINCT coalesce(b.columns -> 'turns', 'null')) AS mappings,
                   min(b.columns #>> '{turns,content_text}') AS content,
                   min(b.columns #>> '{turns,content_hash}') AS hash,
                   bool_or(jsonb_typeof(b.columns #> '{turns,content_text}') = 'object') AS computes_content,
                   bool_or(jsonb_typeof(b.columns #> '{turns,content_hash}') = 'object') AS computes_hash
            INTO bound
            FROM graph_kernel.binding AS b
            WHERE b.is_current
              AND (b.turns = TG_RELID OR b.turns IN (SELECT a.relid FROM pg_partition_ancestors(TG_RELID) AS a));
            IF bound.mappings > 1 OR bound.computes_hash THEN
                RAISE EXCEPTION '%', CASE WHEN bound.computes_hash THEN
                        format('content_hash of table %s is bound to an expression: there is nothing to write', TG_RELID::regclass)
                        ELSE format('table %s is bound more than once, with other columns', TG_RELID::regclass) END
                    USING ERRCODE = 'object_not_in_prerequisite_state', DETAIL = 'INVALID_TRIGGER',
                          HINT = 'Name the columns: graph_kernel.content_hash_trigger(''content_column'', ''hash_column''), or drop the trigger.';
            END IF;
            names := ARRAY[coalesce(bound.content, 'content_text'), coalesce(bound.hash, 'content_hash')];
        ELSE
            RAISE EXCEPTION 'trigger % has bad arguments', TG_NAME
                USING ERRCODE = 'invalid_parameter_value', DETAIL = 'INVALID_TRIGGER',
                      HINT = 'graph_kernel.content_hash_trigger([''content_column'', ''hash_column''])';
    END CASE;
    SELECT n.name INTO lacking FROM unnest(names) WITH ORDINALITY AS n (name, position)
    WHERE NOT (n.position = 1 AND coalesce(bound.computes_content, false))
      AND NOT EXISTS (SELECT FROM pg_attribute AS a WHERE a.attrelid = TG_RELID AND a.attname = n.name
                      AND a.attnum > 0 AND NOT a.attisdropped)
    ORDER BY n.position LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'table % has no column "%"', TG_RELID::regclass, lacking
            USING ERRCODE = 'undefined_column', DETAIL = 'INVALID_TRIGGER',
                  HINT = 'Name the columns: graph_kernel.content_hash_trigger(''content_column'', ''hash_column'').';
    END IF;
    IF bound.computes_content THEN
        -- Describing the graph checks the expression.
        EXECUTE format('SELECT %s FROM (SELECT ($1).*) AS t',
                       graph_kernel.describe_graph(bound.graph) #>> '{turns,expressions,content_text}')
            INTO content USING NEW;
    ELSE
        EXECUTE format('SELECT CASE WHEN ($1).%1$I IS NOT NULL THEN format(''%%s'', ($1).%1$I) END', names[1])
            INTO content USING NEW;
    END IF;
    NEW := jsonb_populate_record(NEW, jsonb_build_object(names[2], graph_kernel.content_hash(content)));
    RETURN NEW;
END
$$;

-- COMMIT forbids a SET clause, so all names and operators say their schema. COMMIT also gives up the lock that
-- makes DROP EXTENSION wait, so each transaction takes it: it locks the table named binding, and goes on if that is
-- the extension's. Each page is a range of ids, read first; only rows that have to be written are locked. The
-- procedure never waits for a row while it holds another, so it causes no deadlock. A hash is computed from the row
-- as it is when it is written, so no writer's change is lost.
CREATE PROCEDURE graph_kernel.backfill_content_hashes(batch integer DEFAULT 10000)
LANGUAGE plpgsql
AS $$
DECLARE
    page record;
    written_page record;
    graph pg_catalog.text;
    turns_table pg_catalog.regclass;
    total bigint;
    done bigint := 0;
    written bigint := 0;
    after_id pg_catalog.uuid;
    has_more boolean := true;
    waiting pg_catalog.uuid[] := '{}';
    waited integer := 0; -- how many of them
    held boolean;
    is_held CONSTANT pg_catalog.text := $query$
        SELECT EXISTS (
            SELECT FROM pg_catalog.pg_locks AS l
            JOIN pg_catalog.pg_class AS c ON c.oid OPERATOR(pg_catalog.=) l.relation
            JOIN pg_catalog.pg_namespace AS n ON n.oid OPERATOR(pg_catalog.=) c.relnamespace
            JOIN pg_catalog.pg_depend AS d ON d.objid OPERATOR(pg_catalog.=) c.oid
            JOIN pg_catalog.pg_extension AS x ON x.oid OPERATOR(pg_catalog.=) d.refobjid
            WHERE l.pid OPERATOR(pg_catalog.=) pg_catalog.pg_backend_pid() AND l.granted
              AND l.database OPERATOR(pg_catalog.=) (SELECT b.oid FROM pg_catalog.pg_database AS b
                                                     WHERE b.datname OPERATOR(pg_catalog.=) pg_catalog.current_database())
              AND n.nspname OPERATOR(pg_catalog.=) 'graph_kernel' AND c.relname OPERATOR(pg_catalog.=) 'binding'
              AND d.classid OPERATOR(pg_catalog.=) 'pg_catalog.pg_class'::pg_catalog.regclass
              AND d.refclassid OPERATOR(pg_catalog.=) 'pg_catalog.pg_extension'::pg_catalog.regclass
              AND d.deptype OPERATOR(pg_catalog.=) 'e' AND x.extname OPERATOR(pg_catalog.=) 'graph_kernel')
    $query$;
    began timestamp with time zone := pg_catalog.clock_timestamp();
    seconds double precision;
BEGIN
    IF (batch OPERATOR(pg_catalog.>=) 1 AND batch OPERATOR(pg_catalog.<=) 1000000) IS NOT TRUE THEN
        RAISE EXCEPTION 'batch must be between 1 and 1000000'
            USING ERRCODE = 'invalid_parameter_value', DETAIL = 'INVALID_BATCH';
    END IF;
    WHILE has_more OR waited OPERATOR(pg_catalog.<) pg_catalog.cardinality(waiting) LOOP
        LOCK TABLE graph_kernel.binding IN ACCESS SHARE MODE;
        EXECUTE is_held INTO held;
        IF NOT held THEN
            RAISE EXCEPTION 'extension graph_kernel was dropped'
                USING ERRCODE = 'object_not_in_prerequisite_state', DETAIL = 'GRAPH_TABLES';
        END IF;
        IF turns_table IS NULL THEN
            graph := graph_kernel.chosen_graph();
            turns_table := (graph_kernel.describe_graph(graph) OPERATOR(pg_catalog.#>>) '{turns,oid}')::pg_catalog.oid;
            IF pg_catalog.row_security_active(turns_table) THEN
                RAISE NOTICE 'row security hides turns from this role: they are left as they are';
            END IF;
            total := graph_kernel.count_found(graph, 'turns');
        END IF;

        -- Rows that other transactions held are waited for at the end, one row in a transaction.
        IF NOT has_more THEN
            waited := waited OPERATOR(pg_catalog.+) 1;
            written := written OPERATOR(pg_catalog.+) graph_kernel.rehash_turn(graph, turns_table, waiting[waited]);
            COMMIT;
            IF waited OPERATOR(pg_catalog.=) pg_catalog.cardinality(waiting) THEN
                RAISE NOTICE 'content hashes: % written', written;
            END IF;
            CONTINUE;
        END IF;

        SELECT p.turns, p.last_id, p.stale INTO page FROM graph_kernel.content_page(graph, turns_table, after_id, batch) AS p;
        done := done OPERATOR(pg_catalog.+) page.turns;
        IF pg_catalog.cardinality(page.stale) OPERATOR(pg_catalog.>) 0 THEN
            SELECT w.changed, w.held INTO written_page
            FROM graph_kernel.rehash_free_turns(graph, turns_table, page.stale) AS w;
            written := written OPERATOR(pg_catalog.+) written_page.changed;
            waiting := waiting OPERATOR(pg_catalog.||) written_page.held;
        END IF;
        after_id := page.last_id;
        has_more := after_id IS NOT NULL;
        COMMIT;

        seconds := pg_catalog.date_part('epoch', pg_catalog.clock_timestamp() OPERATOR(pg_catalog.-) began);
        RAISE NOTICE 'content hashes: % of % turns, % written, % turns/s, % s left', done, total, written,
            pg_catalog.round(done OPERATOR(pg_catalog./) GREATEST(seconds, 0.001)),
            pg_catalog.ceil(seconds OPERATOR(pg_catalog.*) GREATEST(total OPERATOR(pg_catalog.-) done, 0)
                            OPERATOR(pg_catalog./) GREATEST(done, 1));
        IF NOT has_more AND waiting OPERATOR(pg_catalog.<>) '{}' THEN
            RAISE NOTICE 'content hashes: waiting for % turns that other transactions hold',
                pg_catalog.cardinality(waiting);
        END IF;
    END LOOP;
END
$$;

SET LOCAL search_path TO @extschema@, pg_temp;

-- src/lib.rs
-- Chunks of terminal-recorder events (ft.recorder.chunking.v1).

CREATE TABLE graph_kernel.recorder_binding (
    single boolean PRIMARY KEY DEFAULT true CHECK (single),
    events regclass NOT NULL,
    columns jsonb
);
COMMENT ON TABLE graph_kernel.recorder_binding IS
    'the table that holds recorder events; empty: public.recorder_events';
COMMENT ON COLUMN graph_kernel.recorder_binding.single IS 'keeps the table to one row';
COMMENT ON COLUMN graph_kernel.recorder_binding.events IS 'table of the events';
COMMENT ON COLUMN graph_kernel.recorder_binding.columns IS 'names of columns that are not recognised';
SELECT pg_catalog.pg_extension_config_dump('graph_kernel.recorder_binding', '');
CREATE TRIGGER guard BEFORE INSERT OR UPDATE OR DELETE ON graph_kernel.recorder_binding
    FOR EACH ROW EXECUTE FUNCTION graph_kernel.guard_table();
COMMENT ON TRIGGER guard ON graph_kernel.recorder_binding IS 'only the functions change the binding';

-- chunking_policy holds its canonical JSON text, as slice_policy does.
CREATE TYPE @extschema@.chunking_policy;

CREATE FUNCTION @extschema@.chunking_policy_in(cstring) RETURNS @extschema@.chunking_policy
    AS 'MODULE_PATHNAME', 'chunking_policy_in_wrapper' LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION @extschema@.chunking_policy_out(@extschema@.chunking_policy) RETURNS cstring
    AS 'textout' LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION @extschema@.chunking_policy_recv(internal) RETURNS @extschema@.chunking_policy
    AS 'MODULE_PATHNAME', 'chunking_policy_recv_wrapper' LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION @extschema@.chunking_policy_send(@extschema@.chunking_policy) RETURNS bytea
    AS 'textsend' LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE;

CREATE TYPE @extschema@.chunking_policy (
    INPUT = @extschema@.chunking_policy_in,
    OUTPUT = @extschema@.chunking_policy_out,
    RECEIVE = @extschema@.chunking_policy_recv,
    SEND = @extschema@.chunking_policy_send,
    LIKE = pg_catalog.text,
    CATEGORY = 'U'
);

CREATE FUNCTION @extschema@.chunking_policy_eq(@extschema@.chunking_policy, @extschema@.chunking_policy)
    RETURNS boolean
    AS 'byteaeq' LANGUAGE internal IMMUTABLE STRICT LEAKPROOF PARALLEL SAFE;
CREATE FUNCTION @extschema@.chunking_policy_ne(@extschema@.chunking_policy, @extschema@.chunking_policy)
    RETURNS boolean
    AS 'byteane' LANGUAGE internal IMMUTABLE STRICT LEAKPROOF PARALLEL SAFE;
CREATE FUNCTION @extschema@.chunking_policy_hash32(@extschema@.chunking_policy) RETURNS integer
    AS 'hashvarlena' LANGUAGE internal IMMUTABLE STRICT LEAKPROOF PARALLEL SAFE;
CREATE FUNCTION @extschema@.chunking_policy_hash64(@extschema@.chunking_policy, bigint) RETURNS bigint
    AS 'hashvarlenaextended' LANGUAGE internal IMMUTABLE STRICT LEAKPROOF PARALLEL SAFE;

CREATE OPERATOR @extschema@.= (
    LEFTARG = @extschema@.chunking_policy, RIGHTARG = @extschema@.chunking_policy,
    FUNCTION = @extschema@.chunking_policy_eq,
    COMMUTATOR = OPERATOR(@extschema@.=), NEGATOR = OPERATOR(@extschema@.<>),
    RESTRICT = eqsel, JOIN = eqjoinsel, HASHES
);
CREATE OPERATOR @extschema@.<> (
    LEFTARG = @extschema@.chunking_policy, RIGHTARG = @extschema@.chunking_policy,
    FUNCTION = @extschema@.chunking_policy_ne,
    COMMUTATOR = OPERATOR(@extschema@.<>), NEGATOR = OPERATOR(@extschema@.=),
    RESTRICT = neqsel, JOIN = neqjoinsel
);
CREATE OPERATOR CLASS @extschema@.chunking_policy_ops
    DEFAULT FOR TYPE @extschema@.chunking_policy USING hash AS
    OPERATOR 1 @extschema@.=,
    FUNCTION 1 @extschema@.chunking_policy_hash32(@extschema@.chunking_policy),
    FUNCTION 2 @extschema@.chunking_policy_hash64(@extschema@.chunking_policy, bigint);

CREATE CAST (jsonb AS @extschema@.chunking_policy) WITH INOUT AS IMPLICIT;
CREATE CAST (json AS @extschema@.chunking_policy) WITH INOUT;
CREATE CAST (text AS @extschema@.chunking_policy) WITH INOUT;
CREATE CAST (@extschema@.chunking_policy AS jsonb) WITH INOUT;
CREATE CAST (@extschema@.chunking_policy AS json) WITH INOUT;

CREATE FUNCTION @extschema@.chunking_policy_hash(policy @extschema@.chunking_policy) RETURNS text
    AS 'MODULE_PATHNAME', 'chunking_policy_hash_wrapper'
    LANGUAGE c IMMUTABLE PARALLEL SAFE;

-- A type of its own, so that a chunk taken from the select list keeps its columns' names.
CREATE TYPE @extschema@.recorder_chunk AS (
    chunk_index integer,
    chunk_id text,
    policy_version text,
    pane_id bigint,
    session_id text,
    direction text,
    start_segment_id bigint,
    start_ordinal bigint,
    start_byte_offset bigint,
    start_char integer,
    end_segment_id bigint,
    end_ordinal bigint,
    end_byte_offset bigint,
    end_char integer,
    event_ids text[],
    event_count integer,
    occurred_at_start_ms bigint,
    occurred_at_end_ms bigint,
    text_chars integer,
    content_hash text,
    overlap jsonb,
    is_open boolean,
    chunk_text text
);

-- The index by position gives the log order; a sort would read the whole log before the first chunk.
CREATE FUNCTION @extschema@.recorder_chunks(
    policy @extschema@.chunking_policy DEFAULT 'default',
    pane_id bigint DEFAULT NULL,
    from_segment_id bigint DEFAULT NULL,
    from_ordinal bigint DEFAULT NULL,
    to_segment_id bigint DEFAULT NULL,
    to_ordinal bigint DEFAULT NULL,
    per_pane boolean DEFAULT false
) RETURNS SETOF @extschema@.recorder_chunk
    AS 'MODULE_PATHNAME', 'recorder_chunks_wrapper'
    LANGUAGE c STABLE PARALLEL RESTRICTED COST 100000 ROWS 1000
    SET search_path = pg_catalog, pg_temp SET enable_sort = off;
CREATE FUNCTION @extschema@.recorder_chunks_since(
    segment_id bigint,
    ordinal bigint,
    policy @extschema@.chunking_policy DEFAULT 'default'
) RETURNS SETOF @extschema@.recorder_chunk
    AS 'MODULE_PATHNAME', 'recorder_chunks_since_wrapper'
    LANGUAGE c STABLE PARALLEL RESTRICTED COST 100000 ROWS 1000
    SET search_path = pg_catalog, pg_temp SET enable_sort = off;
CREATE FUNCTION @extschema@.recorder_event_chunks(
    segment_id bigint,
    ordinal bigint,
    policy @extschema@.chunking_policy DEFAULT 'default'
) RETURNS SETOF @extschema@.recorder_chunk
    AS 'MODULE_PATHNAME', 'recorder_event_chunks_wrapper'
    LANGUAGE c STABLE PARALLEL RESTRICTED COST 10000 ROWS 1
    SET search_path = pg_catalog, pg_temp SET enable_sort = off;
CREATE FUNCTION @extschema@.recorder_chunk_events(
    events jsonb,
    policy @extschema@.chunking_policy DEFAULT 'default'
) RETURNS SETOF @extschema@.recorder_chunk
    AS 'MODULE_PATHNAME', 'recorder_chunk_events_wrapper'
    LANGUAGE c IMMUTABLE PARALLEL SAFE COST 10000 ROWS 100
    SET search_path = pg_catalog, pg_temp;
CREATE FUNCTION @extschema@.recorder_chunk_span(
    start_segment_id bigint,
    start_ordinal bigint,
    start_char integer,
    end_segment_id bigint,
    end_ordinal bigint,
    end_char integer
) RETURNS TABLE (
    event_id text,
    pane_id bigint,
    segment_id bigint,
    ordinal bigint,
    byte_offset bigint,
    event_start_char integer,
    event_end_char integer,
    event_text text
)
    AS 'MODULE_PATHNAME', 'recorder_chunk_span_wrapper'
    LANGUAGE c STABLE STRICT PARALLEL RESTRICTED COST 1000 ROWS 10
    SET search_path = pg_catalog, pg_temp SET enable_sort = off;

CREATE FUNCTION graph_kernel.describe_recorder_table(events oid, columns jsonb) RETURNS jsonb
    AS 'MODULE_PATHNAME', 'describe_recorder_table_wrapper'
    LANGUAGE c STABLE PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp;

SET LOCAL search_path TO pg_catalog, pg_temp; -- what bodies parsed now are resolved by

CREATE FUNCTION graph_kernel.recorder_chunks(
    policy @extschema@.chunking_policy, pane_id bigint, from_segment_id bigint, from_ordinal bigint,
    to_segment_id bigint, to_ordinal bigint, per_pane boolean
) RETURNS SETOF @extschema@.recorder_chunk
    AS 'MODULE_PATHNAME', 'recorder_chunks_wrapper'
    LANGUAGE c STABLE PARALLEL RESTRICTED COST 100000 ROWS 1000
    SET search_path = pg_catalog, pg_temp SET enable_sort = off;

-- Compares the columns that both sides have: a stored table need not have every column, nor the pane. A type that is
-- not the server's own could have a cast or an operator of a user. Called while DROP EXTENSION has to wait.
CREATE FUNCTION graph_kernel.verify_chunks(
    chunks regclass,
    policy @extschema@.chunking_policy,
    per_pane boolean
) RETURNS TABLE (chunk_id text, status text)
LANGUAGE plpgsql STABLE ROWS 1000
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    shared text[];
    same text;
    lacking text;
    foreign_type text;
BEGIN
    IF policy IS NULL THEN
        RAISE EXCEPTION 'policy must not be null'
            USING ERRCODE = 'null_value_not_allowed', DETAIL = 'INVALID_POLICY',
                  HINT = 'Leave the argument out for the default policy, or give default or a JSON object.';
    END IF;
    IF chunks IS NULL OR per_pane IS NULL THEN
        RETURN;
    END IF;
    SELECT array_agg(a.attname::text ORDER BY a.attnum) INTO shared
    FROM pg_attribute AS a
    JOIN pg_attribute AS c ON c.attname = a.attname
    WHERE a.attrelid = chunks AND a.attnum > 0 AND NOT a.attisdropped
      AND c.attrelid = (SELECT t.typrelid FROM pg_proc AS p JOIN pg_type AS t ON t.oid = p.prorettype
                        WHERE p.oid = 'graph_kernel.recorder_chunks'::regproc)
      AND a.attname NOT IN ('chunk_index', 'is_open');
    SELECT k.name INTO lacking
    FROM unnest(ARRAY['chunk_id', 'start_segment_id', 'start_ordinal', 'start_char']) AS k (name)
    WHERE k.name <> ALL (coalesce(shared, '{}'));
    IF FOUND THEN
        RAISE EXCEPTION 'table % has no column "%"', chunks, lacking
            USING ERRCODE = 'undefined_column', DETAIL = 'CHUNK_TABLE',
                  HINT = 'Keep chunk_id, start_segment_id, start_ordinal and start_char of every chunk.';
    END IF;
    WITH RECURSIVE types (name, oid) AS (
        SELECT a.attname, a.atttypid FROM pg_attribute AS a
        WHERE a.attrelid = chunks AND a.attname = ANY (shared)
        UNION ALL
        SELECT y.name, t.typbasetype FROM types AS y JOIN pg_type AS t ON t.oid = y.oid WHERE t.typtype = 'd'
    )
    SELECT format('column %I of table %s has type %s', y.name, chunks, y.oid::regtype) INTO foreign_type
    FROM types AS y JOIN pg_type AS t ON t.oid = y.oid
    WHERE t.typtype <> 'd' AND y.oid >= 16384 ORDER BY y.name LIMIT 1;
    IF foreign_type IS NOT NULL THEN
        RAISE EXCEPTION '%, which is not one of pg_catalog', foreign_type
            USING ERRCODE = 'datatype_mismatch', DETAIL = 'CHUNK_TABLE',
                  HINT = 'Keep the columns with the types that recorder_chunks() gives them.';
    END IF;
    SELECT string_agg(format('to_jsonb(s.%1$I) IS NOT DISTINCT FROM to_jsonb(l.%1$I)', k.name), ' AND ')
        INTO same FROM unnest(shared) AS k (name);
    RETURN QUERY EXECUTE format(
        'SELECT coalesce(s.chunk_id::text, l.chunk_id),
                CASE WHEN s.chunk_id IS NULL THEN ''missing''
                     WHEN l.chunk_id IS NULL THEN ''extra''
                     WHEN %s THEN ''ok''
                     ELSE ''changed'' END
         FROM graph_kernel.recorder_chunks($1, NULL, NULL, NULL, NULL, NULL, $2) AS l
         FULL JOIN %s AS s
             ON s.start_segment_id = l.start_segment_id
            AND s.start_ordinal = l.start_ordinal
            AND s.start_char = l.start_char',
        same, chunks)
    USING policy, per_pane;
END
$$;

CREATE FUNCTION @extschema@.recorder_verify_chunks(
    chunks regclass,
    policy @extschema@.chunking_policy DEFAULT 'default',
    per_pane boolean DEFAULT false
) RETURNS TABLE (chunk_id text, status text)
LANGUAGE sql STABLE ROWS 1000
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT FROM graph_kernel.recorder_binding LIMIT 0; -- DROP EXTENSION waits
    SELECT v.chunk_id, v.status FROM graph_kernel.verify_chunks($1, $2, $3) AS v;
END;

-- Invoker's rights: the table belongs to the caller, not to the extension.
CREATE FUNCTION graph_kernel.create_recorder_tables(schema name DEFAULT 'public') RETURNS void
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF schema IS NULL THEN
        RAISE EXCEPTION 'schema must not be null'
            USING ERRCODE = 'null_value_not_allowed', DETAIL = 'INVALID_SCHEMA';
    END IF;
    EXECUTE pg_catalog.format(
        'CREATE TABLE %1$I.recorder_events (
            segment_id bigint,
            ordinal bigint,
            byte_offset bigint NOT NULL,
            schema_version text DEFAULT ''ft.recorder.event.v1'',
            event_id text NOT NULL,
            pane_id bigint NOT NULL,
            session_id text,
            occurred_at_ms bigint NOT NULL,
            event_type text NOT NULL,
            text text,
            is_gap boolean DEFAULT false,
            PRIMARY KEY (segment_id, ordinal)
        )', schema);
    EXECUTE pg_catalog.format(
        'COMMENT ON TABLE %1$I.recorder_events IS ''events of terminal recorders''', schema);
END
$$;

-- Called with definer's rights, as the binding belongs to the extension; EXECUTE decides who may call it. Called while
-- DROP EXTENSION has to wait.
CREATE FUNCTION graph_kernel.bind_recorder_table_internal(events regclass, columns jsonb) RETURNS void
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    described jsonb;
    position_columns text[];
BEGIN
    IF events IS NULL THEN
        RAISE EXCEPTION 'events must not be null'
            USING ERRCODE = 'null_value_not_allowed', DETAIL = 'INVALID_BINDING';
    END IF;
    described := graph_kernel.describe_recorder_table(events::oid, columns);
    position_columns := ARRAY[described #>> '{columns,segment_id}', described #>> '{columns,ordinal}'];
    IF NOT EXISTS (
        SELECT FROM pg_index AS i
        JOIN pg_class AS c ON c.oid = i.indrelid
        WHERE i.indrelid = events AND i.indisunique AND i.indisvalid AND i.indpred IS NULL
          AND (i.indnkeyatts = 2 OR c.relkind = 'p')
          AND position_columns = ARRAY(
              SELECT a.attname::text
              FROM generate_series(0, 1) AS k (position)
              JOIN pg_attribute AS a ON a.attrelid = events AND a.attnum = i.indkey[k.position]
              ORDER BY k.position)
    ) THEN
        RAISE EXCEPTION 'table % has no unique index on columns "%", "%"', events,
            position_columns[1], position_columns[2]
            USING ERRCODE = 'invalid_table_definition', DETAIL = 'RECORDER_TABLE',
                  HINT = format('CREATE UNIQUE INDEX ON %s (%I, %I);', events,
                                position_columns[1], position_columns[2]);
    END IF;
    INSERT INTO graph_kernel.recorder_binding AS b (events, columns)
    VALUES (bind_recorder_table_internal.events, bind_recorder_table_internal.columns)
    ON CONFLICT (single) DO UPDATE SET events = excluded.events, columns = excluded.columns;
END
$$;

CREATE FUNCTION graph_kernel.bind_recorder_table(events regclass, columns jsonb DEFAULT NULL) RETURNS void
LANGUAGE sql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT FROM graph_kernel.recorder_binding LIMIT 0; -- DROP EXTENSION waits
    SELECT graph_kernel.bind_recorder_table_internal($1, $2);
END;

CREATE FUNCTION graph_kernel.unbind_recorder_table() RETURNS void
LANGUAGE sql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    DELETE FROM graph_kernel.recorder_binding;
END;

SET LOCAL search_path TO @extschema@, pg_temp;

-- src/lib.rs
CREATE FUNCTION graph_kernel.search_slice_body(
    query_embedding real[], anchor uuid, policy @extschema@.slice_policy, limit_count integer,
    min_similarity real, min_salience real, query_text text
) RETURNS json
    AS 'MODULE_PATHNAME', 'search_slice_body_wrapper'
    LANGUAGE c STABLE PARALLEL RESTRICTED COST 10000 SET search_path = pg_catalog, pg_temp;
CREATE FUNCTION graph_kernel.search_global_body(
    query_embedding real[], limit_count integer, min_similarity real, query_text text
) RETURNS json
    AS 'MODULE_PATHNAME', 'search_global_body_wrapper'
    LANGUAGE c STABLE PARALLEL RESTRICTED COST 10000 SET search_path = pg_catalog, pg_temp;
CREATE FUNCTION graph_kernel.provenance_reason(provenance jsonb) RETURNS text
    AS 'MODULE_PATHNAME', 'provenance_reason_wrapper'
    LANGUAGE c STABLE PARALLEL SAFE COST 1000 SET search_path = pg_catalog, pg_temp;

CREATE TABLE graph_kernel.trace_binding (
    single boolean PRIMARY KEY DEFAULT true CHECK (single),
    traces regclass NOT NULL
);
COMMENT ON TABLE graph_kernel.trace_binding IS 'the table that holds the traces; empty: none';
COMMENT ON COLUMN graph_kernel.trace_binding.single IS 'keeps the table to one row';
COMMENT ON COLUMN graph_kernel.trace_binding.traces IS 'table of the traces';
SELECT pg_catalog.pg_extension_config_dump('graph_kernel.trace_binding', '');
CREATE TRIGGER guard BEFORE INSERT OR UPDATE OR DELETE ON graph_kernel.trace_binding
    FOR EACH ROW EXECUTE FUNCTION graph_kernel.guard_table();
COMMENT ON TRIGGER guard ON graph_kernel.trace_binding IS 'only the functions change the binding';

SET LOCAL search_path TO pg_catalog, pg_temp; -- what bodies parsed now are resolved by

-- Called with definer's rights, as the binding belongs to the extension; EXECUTE decides who may call it. Called while
-- DROP EXTENSION has to wait.
CREATE FUNCTION graph_kernel.bind_traces_internal(traces regclass) RETURNS void
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    missing text;
BEGIN
    IF traces IS NULL THEN
        RAISE EXCEPTION 'traces must not be null'
            USING ERRCODE = 'null_value_not_allowed', DETAIL = 'INVALID_BINDING';
    END IF;
    IF NOT EXISTS (SELECT FROM pg_class AS c WHERE c.oid = bind_traces_internal.traces
                   AND c.relkind IN ('r', 'p') AND c.relpersistence <> 't') THEN
        RAISE EXCEPTION 'relation % is not a permanent table', traces
            USING ERRCODE = 'wrong_object_type', DETAIL = 'TRACE_TABLE';
    END IF;
    SELECT string_agg(c.name, ', ' ORDER BY c.position) INTO missing
    FROM unnest('{id,retrieval_mode,is_admissible,slice_id,admissibility_token,provenance}'::name[])
        WITH ORDINALITY AS c (name, position)
    WHERE NOT EXISTS (SELECT FROM pg_attribute AS a
                      WHERE a.attrelid = bind_traces_internal.traces AND a.attname = c.name AND NOT a.attisdropped);
    IF missing IS NOT NULL THEN
        RAISE EXCEPTION 'relation % has no column %', traces, missing
            USING ERRCODE = 'undefined_column', DETAIL = 'TRACE_TABLE',
                  HINT = 'SELECT graph_kernel.create_trace_table();';
    END IF;
    INSERT INTO graph_kernel.trace_binding AS b (traces) VALUES (bind_traces_internal.traces)
    ON CONFLICT (single) DO UPDATE SET traces = excluded.traces;
END
$$;

CREATE FUNCTION graph_kernel.bind_traces(traces regclass) RETURNS void
LANGUAGE sql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT FROM graph_kernel.trace_binding LIMIT 0; -- DROP EXTENSION waits
    SELECT graph_kernel.bind_traces_internal($1);
END;

-- Invoker's rights: the table belongs to the caller. Binding it takes EXECUTE on bind_traces.
CREATE FUNCTION graph_kernel.make_trace_table(schema name) RETURNS regclass
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF schema IS NULL THEN
        RAISE EXCEPTION 'schema must not be null'
            USING ERRCODE = 'null_value_not_allowed', DETAIL = 'INVALID_SCHEMA';
    END IF;
    EXECUTE pg_catalog.format(
        'CREATE TABLE %1$I.retrieval_traces (
            id uuid PRIMARY KEY,
            retrieval_mode text NOT NULL CHECK (retrieval_mode IN (''slice'', ''global'')),
            is_admissible boolean NOT NULL,
            slice_id text,
            admissibility_token text,
            provenance jsonb NOT NULL,
            created_at timestamptz NOT NULL DEFAULT pg_catalog.now()
        )', schema);
    EXECUTE pg_catalog.format(
        'CREATE INDEX retrieval_traces_admissible_idx ON %1$I.retrieval_traces (is_admissible, created_at)',
        schema);
    EXECUTE pg_catalog.format(
        'CREATE INDEX retrieval_traces_slice_idx ON %1$I.retrieval_traces (slice_id)', schema);
    EXECUTE pg_catalog.format(
        'COMMENT ON TABLE %1$I.retrieval_traces IS ''searches and what they found''', schema);
    RETURN pg_catalog.format('%I.retrieval_traces', schema);
END
$$;

CREATE FUNCTION graph_kernel.create_trace_table(schema name DEFAULT 'public') RETURNS void
LANGUAGE sql VOLATILE
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT graph_kernel.bind_traces(graph_kernel.make_trace_table($1));
END;

-- Invoker's rights: a caller needs INSERT on the bound table.
CREATE FUNCTION graph_kernel.write_trace(traces oid, provenance jsonb) RETURNS uuid
    AS 'MODULE_PATHNAME', 'write_trace_wrapper'
    LANGUAGE c VOLATILE COST 1000 SET search_path = pg_catalog, pg_temp;

CREATE FUNCTION @extschema@.graph_trace(provenance jsonb) RETURNS uuid
LANGUAGE sql VOLATILE STRICT
SET search_path = pg_catalog, pg_temp
RETURN graph_kernel.write_trace((SELECT b.traces FROM graph_kernel.trace_binding AS b), provenance);

SET LOCAL search_path TO @extschema@, pg_temp;

-- src/lib.rs
-- requires:
--   bootstrap

CREATE FUNCTION graph_kernel.list_statistics()
RETURNS TABLE (function text, calls bigint, total_time double precision, histogram jsonb, turns_read bigint,
               turns_selected bigint, errors jsonb, verifications jsonb)
    AS 'MODULE_PATHNAME', 'list_statistics_wrapper'
    LANGUAGE c VOLATILE PARALLEL RESTRICTED ROWS 40;
CREATE FUNCTION graph_kernel.reset_statistics() RETURNS void
    AS 'MODULE_PATHNAME', 'reset_statistics_wrapper'
    LANGUAGE c VOLATILE PARALLEL RESTRICTED;

CREATE VIEW graph_kernel.statistics AS SELECT * FROM graph_kernel.list_statistics();

-- src/lib.rs
-- requires:
--   retrieval

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

-- src/lib.rs
-- requires:
--   binding
--   keys
--   policies
--   api
--   promotion
--   create_tables
--   check
--   content
--   recorder
--   retrieval
--   statistics
--   api_search

-- finalize
-- Runs last: the properties that pgrx does not write. Fixed search_path, costs, estimates, comments, rights.

ALTER FUNCTION graph_slice(uuid, slice_policy)
    SET search_path = pg_catalog, pg_temp COST 10000;
ALTER FUNCTION graph_slice_turns(uuid, slice_policy)
    SET search_path = pg_catalog, pg_temp COST 10000 ROWS 256 SUPPORT graph_slice_support;
ALTER FUNCTION graph_slice_edges(uuid, slice_policy)
    SET search_path = pg_catalog, pg_temp COST 10000 ROWS 256 SUPPORT graph_slice_support;
ALTER FUNCTION graph_slices(uuid[], slice_policy)
    SET search_path = pg_catalog, pg_temp COST 100000 ROWS 10;
ALTER FUNCTION graph_verify(json) SET search_path = pg_catalog, pg_temp COST 2000 ROWS 1;
ALTER FUNCTION graph_verify_slice(json) SET search_path = pg_catalog, pg_temp COST 2000 ROWS 15;
ALTER FUNCTION graph_verify_token(text, text, uuid, text, text, text, text)
    SET search_path = pg_catalog, pg_temp COST 100;
ALTER FUNCTION graph_proof(json) SET search_path = pg_catalog, pg_temp COST 3000;
ALTER FUNCTION graph_verify_proof(json, json, text) SET search_path = pg_catalog, pg_temp COST 3000 ROWS 1;
ALTER FUNCTION graph_is_admissible(json, uuid) SET search_path = pg_catalog, pg_temp COST 2000;
ALTER FUNCTION graph_filter_admissible(json, uuid[])
    SET search_path = pg_catalog, pg_temp COST 2000;
ALTER FUNCTION graph_replay(json, slice_policy)
    SET search_path = pg_catalog, pg_temp COST 20000 ROWS 10;
ALTER FUNCTION graph_check() COST 10000000 ROWS 24;
ALTER FUNCTION graph_slice_explain(uuid, slice_policy)
    SET search_path = pg_catalog, pg_temp COST 20000 ROWS 512;
ALTER FUNCTION graph_why(uuid, uuid, slice_policy)
    SET search_path = pg_catalog, pg_temp COST 100000 ROWS 1;
ALTER FUNCTION graph_slice_stats(uuid, slice_policy)
    SET search_path = pg_catalog, pg_temp COST 20000 ROWS 1;
ALTER FUNCTION graph_slice_diff(json, json) SET search_path = pg_catalog, pg_temp COST 4000 ROWS 50;
ALTER FUNCTION graph_slice_dot(json) SET search_path = pg_catalog, pg_temp COST 2000;
ALTER FUNCTION graph_slice_mermaid(json) SET search_path = pg_catalog, pg_temp COST 2000;
ALTER FUNCTION graph_prompt(uuid, slice_policy)
    SET search_path = pg_catalog, pg_temp COST 10000 ROWS 256 SUPPORT graph_slice_support;
ALTER FUNCTION graph_slice_draw(uuid, slice_policy, text, integer, integer, boolean)
    SET search_path = pg_catalog, pg_temp COST 20000;
ALTER FUNCTION graph_content_hash(text) COST 100;
-- Under row security only leakproof conditions reach an index.
ALTER FUNCTION graph_turn_id(text) COST 10 LEAKPROOF;
ALTER FUNCTION graph_turn_id(bigint) COST 10 LEAKPROOF;
ALTER FUNCTION graph_turn_id(text[]) COST 10 LEAKPROOF;
ALTER FUNCTION graph_content_audit(bigint)
    SET search_path = pg_catalog, pg_temp COST 10000000 ROWS 10;
ALTER FUNCTION graph_snapshot() SET search_path = pg_catalog, pg_temp COST 1000000;
ALTER FUNCTION graph_diversity(json) SET search_path = pg_catalog, pg_temp COST 2000;
ALTER FUNCTION graph_sufficiency(json, jsonb)
    SET search_path = pg_catalog, pg_temp COST 2000 ROWS 1;
ALTER FUNCTION graph_overlap(uuid[], slice_policy, real)
    SET search_path = pg_catalog, pg_temp COST 1000000 ROWS 1000;
ALTER FUNCTION graph_influence(uuid[], slice_policy)
    SET search_path = pg_catalog, pg_temp COST 1000000 ROWS 1000;
ALTER FUNCTION graph_atlas(uuid[], slice_policy, text, real, integer)
    SET search_path = pg_catalog, pg_temp COST 2000000;

COMMENT ON TYPE slice_policy IS
    'parameters of a slice (SlicePolicy v1): a JSON object or default, focused, broad';
COMMENT ON FUNCTION slice_policy_in(cstring) IS 'reads a slice policy';
COMMENT ON FUNCTION slice_policy_out(slice_policy) IS 'canonical JSON of a slice policy';
COMMENT ON FUNCTION slice_policy_recv(internal) IS 'reads a slice policy in the binary protocol';
COMMENT ON FUNCTION slice_policy_send(slice_policy) IS
    'canonical JSON of a slice policy in the binary protocol';
COMMENT ON FUNCTION slice_policy_eq(slice_policy, slice_policy) IS 'same parameters';
COMMENT ON FUNCTION slice_policy_ne(slice_policy, slice_policy) IS 'other parameters';
COMMENT ON FUNCTION slice_policy_hash(slice_policy) IS 'hash of a slice policy for hash indexes and joins';
COMMENT ON FUNCTION slice_policy_hash_extended(slice_policy, bigint) IS
    'seeded hash of a slice policy';
COMMENT ON OPERATOR = (slice_policy, slice_policy) IS 'same parameters';
COMMENT ON OPERATOR <> (slice_policy, slice_policy) IS 'other parameters';
COMMENT ON OPERATOR FAMILY slice_policy_ops USING hash IS 'equality of slice policies';
COMMENT ON OPERATOR CLASS slice_policy_ops USING hash IS 'equality of slice policies';
COMMENT ON CAST (jsonb AS slice_policy) IS 'reads a slice policy';
COMMENT ON CAST (json AS slice_policy) IS 'reads a slice policy';
COMMENT ON CAST (text AS slice_policy) IS 'reads a slice policy';
COMMENT ON CAST (slice_policy AS jsonb) IS 'a slice policy as JSON';
COMMENT ON CAST (slice_policy AS json) IS 'a slice policy as JSON';
COMMENT ON FUNCTION graph_slice_support(internal) IS 'planner support: rows of a slice';
COMMENT ON FUNCTION graph_kernel_version() IS 'version of the loaded library';
COMMENT ON FUNCTION graph_policy_hash(slice_policy) IS 'params_hash of a slice policy';
COMMENT ON FUNCTION graph_priority(text, real, integer, slice_policy) IS
    'priority of a turn of this phase and salience at this distance';
COMMENT ON FUNCTION graph_normalize_text(text) IS
    'content as it is hashed: line ends LF, outer white space trimmed';
COMMENT ON FUNCTION graph_turn_id(text) IS
    'the turn id of a text: the uuid that it spells, else its UUIDv5';
COMMENT ON FUNCTION graph_turn_id(bigint) IS 'the turn id of a number: that of its decimal text';
COMMENT ON FUNCTION graph_turn_id(text[]) IS
    'the turn id of a text in parts, NULL if one is';
COMMENT ON FUNCTION graph_content_hash(text) IS 'SHA-256 of the normalised content, in hex';
COMMENT ON FUNCTION graph_slice(uuid, slice_policy) IS
    'the context slice at an anchor turn, as canonical JSON';
COMMENT ON FUNCTION graph_slice_turns(uuid, slice_policy) IS
    'the turns of the slice at an anchor turn, ordered by turn_id';
COMMENT ON FUNCTION graph_slice_edges(uuid, slice_policy) IS
    'the edges of the slice at an anchor turn, ordered by parent, child, type';
COMMENT ON FUNCTION graph_slices(uuid[], slice_policy) IS
    'the slices at many anchor turns, in order; a bad anchor gives a row with an error';
COMMENT ON FUNCTION graph_verify(json) IS
    'whether an export is the kernel''s and unchanged; else the reason';
COMMENT ON FUNCTION graph_verify_slice(json) IS 'every check of an export, for people';
COMMENT ON FUNCTION graph_verify_token(text, text, uuid, text, text, text, text) IS
    'whether an admissibility token is the kernel''s for these fields';
COMMENT ON FUNCTION graph_proof(json) IS
    'a signed statement about a slice that verifies, which anyone can check with a public key';
COMMENT ON FUNCTION graph_verify_proof(json, json, text) IS
    'whether a proof is that of a slice under a public key; else the reason';
COMMENT ON FUNCTION graph_is_admissible(json, uuid) IS
    'whether a turn is in a slice that verifies';
COMMENT ON FUNCTION graph_filter_admissible(json, uuid[]) IS
    'the turns that are in a slice that verifies, in the order given';
COMMENT ON FUNCTION graph_replay(json, slice_policy) IS
    'takes a slice again and says what differs';
COMMENT ON FUNCTION graph_slice_explain(uuid, slice_policy) IS
    'every turn that slicing at an anchor turn read, with its outcome';
COMMENT ON FUNCTION graph_why(uuid, uuid, slice_policy) IS
    'why a turn is in the slice at an anchor turn, or what change of the policy brings it in';
COMMENT ON FUNCTION graph_slice_stats(uuid, slice_policy) IS
    'how the slice at an anchor turn fills its bounds, and what is in it';
COMMENT ON FUNCTION graph_slice_diff(json, json) IS 'what differs between two slices';
COMMENT ON FUNCTION graph_slice_dot(json) IS 'a slice as a drawing for Graphviz';
COMMENT ON FUNCTION graph_slice_mermaid(json) IS 'a slice as a drawing for Mermaid';
COMMENT ON FUNCTION graph_slice_draw(uuid, slice_policy, text, integer, integer, boolean) IS
    'a picture of the slice at an anchor, with the beginnings of its contents';
COMMENT ON FUNCTION graph_prompt(uuid, slice_policy) IS
    'the turns of the slice at an anchor in the order of the conversation, with contents and tokens';
COMMENT ON FUNCTION graph_require_admissible() IS
    'trigger: a row must carry a slice that verifies and name only turns inside it';
COMMENT ON VIEW graph_kernel.keys IS 'the keys by name and state; no secret';
COMMENT ON COLUMN graph_kernel.keys.kid IS 'names the key in attestations';
COMMENT ON COLUMN graph_kernel.keys.state IS 'active, verifying or revoked';
COMMENT ON COLUMN graph_kernel.keys.created_at IS 'when the epoch began';
COMMENT ON VIEW graph_kernel.proof_keys IS 'the public keys that check proofs';
COMMENT ON COLUMN graph_kernel.proof_keys.kid IS 'names the key in proofs';
COMMENT ON COLUMN graph_kernel.proof_keys.state IS 'active, verifying or revoked';
COMMENT ON COLUMN graph_kernel.proof_keys.created_at IS 'when the epoch began';
COMMENT ON COLUMN graph_kernel.proof_keys.public_key IS 'the key in PEM';
COMMENT ON COLUMN graph_kernel.proof_keys.key_source IS 'where its root is kept: database or file';
COMMENT ON FUNCTION graph_kernel.list_proof_keys() IS 'key ids, states and public keys';
COMMENT ON FUNCTION graph_kernel.rotate_key(boolean) IS
    'begins a new key epoch and returns its key id; may revoke the one before';
COMMENT ON FUNCTION graph_kernel.revoke_key(text) IS
    'makes a key''s tokens fail verification for good';
COMMENT ON FUNCTION graph_kernel.add_epoch() IS 'writes the root of a new key epoch';
COMMENT ON FUNCTION graph_kernel.list_keys() IS 'key ids and states';
COMMENT ON FUNCTION graph_kernel.epoch_times() IS 'when the key epochs began';
COMMENT ON FUNCTION graph_kernel.is_kid(text) IS 'whether a text has the form of a key id';
COMMENT ON FUNCTION graph_kernel.index_command(regclass, boolean, text[], text[]) IS
    'the command that creates an index';
COMMENT ON FUNCTION graph_check() IS 'what is wrong with the bound graph, and how to fix it';
COMMENT ON FUNCTION graph_content_audit(bigint) IS
    'turns whose content_hash is missing or not that of their content, by ascending id';
COMMENT ON FUNCTION graph_snapshot() IS 'fingerprint of which turns and edges the graph has';
COMMENT ON FUNCTION graph_diversity(json) IS
    'how varied the turns of a slice that verifies are';
COMMENT ON FUNCTION graph_sufficiency(json, jsonb) IS
    'whether a slice that verifies is enough evidence; else a row for each thing it lacks';
COMMENT ON FUNCTION graph_overlap(uuid[], slice_policy, real) IS
    'which of the slices at these anchors share turns';
COMMENT ON FUNCTION graph_influence(uuid[], slice_policy) IS
    'in how many of the slices at these anchors each turn is';
COMMENT ON FUNCTION graph_atlas(uuid[], slice_policy, text, real, integer) IS
    'fingerprints of the slices at these anchors and of how they relate';
COMMENT ON FUNCTION graph_kernel.content_hash_trigger() IS
    'trigger: keeps the content hash of a row that of its content';
COMMENT ON PROCEDURE graph_kernel.backfill_content_hashes(integer) IS
    'writes content hashes that are missing or wrong, batch by batch';
COMMENT ON FUNCTION graph_kernel.create_tables(name) IS
    'creates memory_turns and memory_turn_edges with their indexes, owned by the caller';
COMMENT ON FUNCTION graph_kernel.bind_tables(regclass, regclass, jsonb, text) IS
    'makes these tables the graph of this name; returns the name of the graph in attestations';
COMMENT ON FUNCTION graph_kernel.guard_table() IS
    'trigger: keeps rows of private tables from being written past the functions';
COMMENT ON FUNCTION graph_kernel.announce_change() IS
    'trigger: invalidates what every backend has cached of a private table';
COMMENT ON FUNCTION graph_kernel.unbind_tables(text) IS
    'takes the name from a graph; public.memory_turns and public.memory_turn_edges are the default graph again';
COMMENT ON FUNCTION graph_kernel.has_index(regclass, text, boolean) IS
    'whether an index finds rows by this column or expression';
COMMENT ON FUNCTION graph_kernel.wanted_indexes(jsonb) IS
    'the indexes that a described graph is read by, whether they are there, and the commands that create them';
COMMENT ON FUNCTION graph_kernel.describe_tables(oid, oid, jsonb, text, text) IS
    'checks tables for use as a graph and says what holds what';
COMMENT ON FUNCTION graph_kernel.chosen_graph() IS 'the name in the setting graph_kernel.graph';
COMMENT ON FUNCTION graph_kernel.describe_graph(text) IS
    'a bound graph: its tables and what holds what';
COMMENT ON FUNCTION graph_kernel.count_found(text, text) IS
    'how many rows of a bound graph have this finding of graph_check';
COMMENT ON FUNCTION graph_kernel.evaluate(text, text) IS
    'computes a bound expression for every row, and raises what it raises';
COMMENT ON FUNCTION graph_kernel.evaluate_row(text, text, oid, text) IS
    'computes a bound expression for one row';
COMMENT ON FUNCTION graph_kernel.raising_row(text, text, regclass) IS
    'the statement that selects a row on which a bound expression raises';
COMMENT ON FUNCTION graph_kernel.content_page(text, oid, uuid, integer) IS
    'turns after an id, and those whose content hash is missing or wrong';
COMMENT ON FUNCTION graph_kernel.rehash_free_turns(text, oid, uuid[]) IS
    'writes the content hashes of those of these turns that no other transaction holds';
COMMENT ON FUNCTION graph_kernel.rehash_turn(text, oid, uuid) IS
    'writes the content hash of a turn, after waiting for a transaction that has locked it';
COMMENT ON FUNCTION graph_kernel.turns_in_cycles(text) IS
    'how many turns of a bound graph lie on or between cycles; NULL when it is too large';

COMMENT ON TYPE chunking_policy IS
    'parameters of chunking (ft.recorder.chunking.v1): a JSON object or default';
COMMENT ON FUNCTION chunking_policy_in(cstring) IS 'reads a chunking policy';
COMMENT ON FUNCTION chunking_policy_out(chunking_policy) IS 'canonical JSON of a chunking policy';
COMMENT ON FUNCTION chunking_policy_recv(internal) IS 'reads a chunking policy in the binary protocol';
COMMENT ON FUNCTION chunking_policy_send(chunking_policy) IS
    'canonical JSON of a chunking policy in the binary protocol';
COMMENT ON FUNCTION chunking_policy_eq(chunking_policy, chunking_policy) IS 'same parameters';
COMMENT ON FUNCTION chunking_policy_ne(chunking_policy, chunking_policy) IS 'other parameters';
COMMENT ON FUNCTION chunking_policy_hash32(chunking_policy) IS
    'hash of a chunking policy for hash indexes and joins';
COMMENT ON FUNCTION chunking_policy_hash64(chunking_policy, bigint) IS
    'seeded hash of a chunking policy';
COMMENT ON OPERATOR = (chunking_policy, chunking_policy) IS 'same parameters';
COMMENT ON OPERATOR <> (chunking_policy, chunking_policy) IS 'other parameters';
COMMENT ON OPERATOR FAMILY chunking_policy_ops USING hash IS 'equality of chunking policies';
COMMENT ON OPERATOR CLASS chunking_policy_ops USING hash IS 'equality of chunking policies';
COMMENT ON CAST (jsonb AS chunking_policy) IS 'reads a chunking policy';
COMMENT ON CAST (json AS chunking_policy) IS 'reads a chunking policy';
COMMENT ON CAST (text AS chunking_policy) IS 'reads a chunking policy';
COMMENT ON CAST (chunking_policy AS jsonb) IS 'a chunking policy as JSON';
COMMENT ON CAST (chunking_policy AS json) IS 'a chunking policy as JSON';
COMMENT ON FUNCTION chunking_policy_hash(chunking_policy) IS 'fingerprint of a chunking policy';
COMMENT ON TYPE recorder_chunk IS 'a chunk of recorder events';
COMMENT ON FUNCTION recorder_chunks(chunking_policy, bigint, bigint, bigint, bigint, bigint, boolean) IS
    'the chunks of the bound event table, in log order';
COMMENT ON FUNCTION recorder_chunks_since(bigint, bigint, chunking_policy) IS
    'the chunks from the last resume point at or before a position';
COMMENT ON FUNCTION recorder_event_chunks(bigint, bigint, chunking_policy) IS
    'the chunks that hold an event';
COMMENT ON FUNCTION recorder_chunk_events(jsonb, chunking_policy) IS
    'the chunks of a JSON array of events';
COMMENT ON FUNCTION recorder_chunk_span(bigint, bigint, integer, bigint, bigint, integer) IS
    'the events of a chunk, and which of their characters it holds';
COMMENT ON FUNCTION recorder_verify_chunks(regclass, chunking_policy, boolean) IS
    'compares a table of chunks with the log: ok, changed, missing, extra';
COMMENT ON FUNCTION graph_kernel.create_recorder_tables(name) IS
    'creates recorder_events, owned by the caller';
COMMENT ON FUNCTION graph_kernel.bind_recorder_table(regclass, jsonb) IS
    'makes this table the log of recorder events';
COMMENT ON FUNCTION graph_kernel.unbind_recorder_table() IS
    'makes public.recorder_events the log of recorder events again';
COMMENT ON FUNCTION graph_kernel.describe_recorder_table(oid, jsonb) IS
    'checks a table for use as a log and says which columns hold what';

ALTER FUNCTION graph_policy_register(slice_policy, text) COST 1000 ROWS 1;
COMMENT ON FUNCTION graph_kernel.list_statistics() IS 'what graph_kernel.statistics shows';
COMMENT ON FUNCTION graph_kernel.reset_statistics() IS 'sets the statistics of this database to zero';
COMMENT ON VIEW graph_kernel.statistics IS
    'calls of the functions in this database since the server started or the last reset; empty unless preloaded';
COMMENT ON COLUMN graph_kernel.statistics.function IS 'name of the function';
COMMENT ON COLUMN graph_kernel.statistics.calls IS 'calls, those that failed included';
COMMENT ON COLUMN graph_kernel.statistics.total_time IS 'time in these calls, in milliseconds';
COMMENT ON COLUMN graph_kernel.statistics.histogram IS
    'for each bound in milliseconds, how many calls took no longer';
COMMENT ON COLUMN graph_kernel.statistics.turns_read IS 'turns read from the tables';
COMMENT ON COLUMN graph_kernel.statistics.turns_selected IS 'turns selected into slices';
COMMENT ON COLUMN graph_kernel.statistics.errors IS 'errors by the word in DETAIL, or by SQLSTATE';
COMMENT ON COLUMN graph_kernel.statistics.verifications IS 'results of verifications: ok or a reason';
COMMENT ON VIEW graph_policies IS 'the presets and the registered policies, a row for each name';
COMMENT ON FUNCTION graph_policy_register(slice_policy, text) IS
    'registers a policy for good, and may give it a name; returns its reference';
COMMENT ON FUNCTION graph_policy(text) IS 'the policy of this name or params_hash';
COMMENT ON FUNCTION graph_policy_registry_fingerprint() IS 'fingerprint of all registered policies';
COMMENT ON VIEW graph_kernel.known_policies IS 'registered policies and presets, by name';
COMMENT ON FUNCTION graph_kernel.register_policy(slice_policy, text) IS
    'registers a policy, under a name if one is given; EXECUTE on it is the right to register';
COMMENT ON FUNCTION graph_kernel.add_policy(slice_policy, text) IS 'adds a row to the registered policies';
COMMENT ON FUNCTION graph_kernel.raise_policy_error(text, text) IS
    'raises what forbids to register a policy';
COMMENT ON FUNCTION graph_kernel.policy_not_found(text) IS 'raises that no policy is called so';
COMMENT ON FUNCTION graph_kernel.presets() IS 'the policies that are always there';
COMMENT ON FUNCTION graph_kernel.registry_fingerprint(text[], text[]) IS
    'fingerprint of a registry with these policies';
COMMENT ON FUNCTION graph_api_slice(json) IS 'REST: the slice at an anchor turn';
COMMENT ON FUNCTION graph_api_slice_batch(json) IS 'REST: the slices at up to 100 anchor turns';
COMMENT ON FUNCTION graph_api_policies() IS 'REST: the registered policies';
COMMENT ON FUNCTION graph_api_register_policy(json) IS 'REST: registers a policy';
COMMENT ON FUNCTION graph_api_verify_token(json) IS 'REST: whether an admissibility token is the kernel''s';
COMMENT ON FUNCTION graph_api_verify_proof(json) IS 'REST: whether a proof is that of a slice under a public key';
COMMENT ON FUNCTION graph_api_health() IS 'REST: whether slices can be taken';
COMMENT ON FUNCTION graph_kernel.slice_summaries(text[], slice_policy) IS
    'slices as the REST bodies have them, or what is wrong';
COMMENT ON FUNCTION graph_kernel.raise_api_error(text, text) IS
    'raises the status that an error of slice_summaries has';
COMMENT ON FUNCTION graph_kernel.check_request(json, text[], text[]) IS
    'refuses a request that lacks keys or has others';
COMMENT ON FUNCTION graph_kernel.requested_policy(json) IS 'the policy that a request refers to';
COMMENT ON FUNCTION graph_kernel.requested_policy_not_found(json) IS
    'raises that a request refers to no registered policy';
COMMENT ON FUNCTION graph_kernel.requested_anchors(json) IS 'the anchors of a batch';
COMMENT ON FUNCTION graph_kernel.verify_token(text, text, uuid, text, text, text, text) IS
    'graph_verify_token, for api_verify_token';
COMMENT ON FUNCTION graph_kernel.verify_proof(json, json, text) IS
    'graph_verify_proof, for functions of the extension';
COMMENT ON FUNCTION graph_kernel.api_verify_token(json) IS 'graph_api_verify_token';
COMMENT ON FUNCTION graph_kernel.api_search_slice(json) IS 'graph_api_search_slice';
COMMENT ON FUNCTION graph_kernel.api_search_global(json) IS 'graph_api_search_global';
COMMENT ON FUNCTION graph_kernel.check_graph(text) IS 'graph_check';
COMMENT ON FUNCTION graph_kernel.content_hash(text) IS 'graph_content_hash, for statements';
COMMENT ON FUNCTION graph_kernel.promotion_refusal(json, uuid[], text, text) IS
    'why a row that names these turns must not be promoted on this slice; NULL if it may';
COMMENT ON FUNCTION graph_kernel.recorder_chunks(chunking_policy, bigint, bigint, bigint, bigint, bigint, boolean) IS
    'recorder_chunks, for verify_chunks';
COMMENT ON FUNCTION graph_kernel.verify_chunks(regclass, chunking_policy, boolean) IS 'recorder_verify_chunks';
COMMENT ON FUNCTION graph_kernel.make_trace_table(name) IS 'creates retrieval_traces, owned by the caller';
COMMENT ON FUNCTION graph_kernel.write_trace(oid, jsonb) IS 'adds a row to the trace table';
COMMENT ON FUNCTION graph_kernel.rotate_key_internal(boolean) IS 'rotate_key';
COMMENT ON FUNCTION graph_kernel.revoke_key_internal(text) IS 'revoke_key';
COMMENT ON FUNCTION graph_kernel.bind_tables_internal(regclass, regclass, jsonb, text, text) IS 'bind_tables';
COMMENT ON FUNCTION graph_kernel.unbind_tables_internal(text) IS 'unbind_tables';
COMMENT ON FUNCTION graph_kernel.bind_recorder_table_internal(regclass, jsonb) IS 'bind_recorder_table';
COMMENT ON FUNCTION graph_kernel.bind_traces_internal(regclass) IS 'bind_traces';
COMMENT ON FUNCTION graph_kernel.policy_ref(slice_policy) IS 'a reference to a policy, as compact JSON';

-- Retrieval.
ALTER FUNCTION graph_anchor(uuid, text, real[]) SET search_path = pg_catalog, pg_temp COST 1000 ROWS 1;
ALTER FUNCTION graph_anchors_recent(integer, text) SET search_path = pg_catalog, pg_temp COST 1000 ROWS 5;
ALTER FUNCTION graph_search_slice(real[], uuid, slice_policy, integer, real, real, text)
    SET search_path = pg_catalog, pg_temp COST 10000 ROWS 10;
ALTER FUNCTION graph_search_global(real[], integer, real, text)
    SET search_path = pg_catalog, pg_temp COST 10000 ROWS 10;
ALTER FUNCTION graph_is_admissible_result(jsonb) SET search_path = pg_catalog, pg_temp COST 1000;
ALTER FUNCTION graph_can_promote(jsonb, uuid) SET search_path = pg_catalog, pg_temp COST 1000;
ALTER FUNCTION graph_replay_retrieval(jsonb, real[])
    SET search_path = pg_catalog, pg_temp COST 20000 ROWS 7;

COMMENT ON FUNCTION graph_anchor(uuid, text, real[]) IS
    'the turn to take a slice at, and the strategy that found it';
COMMENT ON FUNCTION graph_anchors_recent(integer, text) IS 'the latest turns, of a session or of all';
COMMENT ON FUNCTION graph_search_slice(real[], uuid, slice_policy, integer, real, real, text) IS
    'the turns of a slice that are most similar to an embedding, with signed provenance';
COMMENT ON FUNCTION graph_search_global(real[], integer, real, text) IS
    'the turns of the whole graph that are most similar to an embedding: never admissible';
COMMENT ON FUNCTION graph_is_admissible_result(jsonb) IS
    'whether what a search retrieved may be promoted';
COMMENT ON FUNCTION graph_can_promote(jsonb, uuid) IS
    'whether a search that may be promoted retrieved this turn';
COMMENT ON FUNCTION graph_replay_retrieval(jsonb, real[]) IS
    'makes a search again and says what differs';
COMMENT ON FUNCTION graph_trace(jsonb) IS 'stores the provenance of a search; returns its query_id';
COMMENT ON FUNCTION graph_api_search_slice(json) IS 'REST: a search within a slice';
COMMENT ON FUNCTION graph_api_search_global(json) IS 'REST: a search over the whole graph';
COMMENT ON FUNCTION graph_kernel.create_trace_table(name) IS
    'creates retrieval_traces with its indexes, owned by the caller, and binds it';
COMMENT ON FUNCTION graph_kernel.bind_traces(regclass) IS 'makes graph_trace write to this table';
COMMENT ON FUNCTION graph_kernel.search_slice_body(real[], uuid, slice_policy, integer, real, real, text) IS
    'graph_search_slice as the body of a response';
COMMENT ON FUNCTION graph_kernel.search_global_body(real[], integer, real, text) IS
    'graph_search_global as the body of a response';
COMMENT ON FUNCTION graph_kernel.provenance_reason(jsonb) IS
    'ok, or why what a search retrieved must not be promoted';
COMMENT ON FUNCTION graph_kernel.raise_search_error(text, text, text, text) IS
    'raises an error of a search with the HTTP status it means';
COMMENT ON FUNCTION graph_kernel.requested_embedding(json) IS 'the embedding in a request';

-- Administration belongs to the extension's owner, who may grant it on. Privileges that
-- default privileges gave to other roles are revoked first, also on the tables.
DO $$
DECLARE
    owner name := (SELECT r.rolname FROM pg_catalog.pg_extension AS x
                   JOIN pg_catalog.pg_roles AS r ON r.oid OPERATOR(pg_catalog.=) x.extowner
                   WHERE x.extname OPERATOR(pg_catalog.=) 'graph_kernel');
    admin text[] := ARRAY[
        'FUNCTION graph_kernel.register_policy(@extschema@.slice_policy, text)',
        'FUNCTION graph_kernel.bind_tables(regclass, regclass, jsonb, text)',
        'FUNCTION graph_kernel.unbind_tables(text)',
        'FUNCTION graph_kernel.bind_recorder_table(regclass, jsonb)',
        'FUNCTION graph_kernel.unbind_recorder_table()',
        'FUNCTION graph_kernel.rotate_key(boolean)',
        'FUNCTION graph_kernel.revoke_key(text)',
        'FUNCTION graph_kernel.list_keys()',
        'FUNCTION graph_kernel.bind_traces(regclass)',
        'FUNCTION graph_kernel.list_statistics()',
        'FUNCTION graph_kernel.reset_statistics()'];
    internal text[] := ARRAY[
        'FUNCTION graph_kernel.require_library()',
        'FUNCTION graph_kernel.describe_tables(oid, oid, jsonb, text, text)',
        'FUNCTION graph_kernel.describe_recorder_table(oid, jsonb)',
        'FUNCTION graph_kernel.add_epoch()',
        'FUNCTION graph_kernel.rotate_key_internal(boolean)',
        'FUNCTION graph_kernel.revoke_key_internal(text)',
        'FUNCTION graph_kernel.bind_tables_internal(regclass, regclass, jsonb, text, text)',
        'FUNCTION graph_kernel.unbind_tables_internal(text)',
        'FUNCTION graph_kernel.bind_recorder_table_internal(regclass, jsonb)',
        'FUNCTION graph_kernel.bind_traces_internal(regclass)',
        'FUNCTION graph_kernel.guard_table()',
        'FUNCTION graph_kernel.announce_change()',
        'SCHEMA graph_kernel',
        'TABLE graph_kernel.root_keys',
        'TABLE graph_kernel.revoked_keys',
        'TABLE graph_kernel.binding',
        'TABLE graph_kernel.bindings',
        'TABLE graph_kernel.recorder_binding',
        'TABLE graph_kernel.policies',
        'TABLE graph_kernel.known_policies',
        'TABLE @extschema@.graph_policies',
        'TABLE graph_kernel.trace_binding',
        'TABLE graph_kernel.keys',
        'TABLE graph_kernel.proof_keys',
        'TABLE graph_kernel.statistics'];
    object text;
    holder name;
BEGIN
    FOREACH object IN ARRAY admin OPERATOR(pg_catalog.||) internal LOOP
        EXECUTE pg_catalog.format('REVOKE ALL ON %s FROM PUBLIC', object);
        FOR holder IN
            SELECT DISTINCT r.rolname
            FROM (SELECT p.proacl, p.proowner FROM pg_catalog.pg_proc AS p
                  WHERE p.pronamespace OPERATOR(pg_catalog.=) 'graph_kernel'::pg_catalog.regnamespace
                  UNION ALL
                  SELECT n.nspacl, n.nspowner FROM pg_catalog.pg_namespace AS n
                  WHERE n.nspname OPERATOR(pg_catalog.=) 'graph_kernel'
                  UNION ALL
                  SELECT c.relacl, c.relowner FROM pg_catalog.pg_class AS c
                  WHERE c.relnamespace OPERATOR(pg_catalog.=) 'graph_kernel'::pg_catalog.regnamespace
                     OR c.oid OPERATOR(pg_catalog.=) '@extschema@.graph_policies'::pg_catalog.regclass
                 ) AS granted (acl, owner)
            CROSS JOIN LATERAL pg_catalog.aclexplode(granted.acl) AS a
            JOIN pg_catalog.pg_roles AS r ON r.oid OPERATOR(pg_catalog.=) a.grantee
            WHERE a.grantee OPERATOR(pg_catalog.<>) granted.owner
        LOOP
            EXECUTE pg_catalog.format('REVOKE ALL ON %s FROM %I', object, holder);
        END LOOP;
    END LOOP;
    FOREACH object IN ARRAY admin LOOP
        EXECUTE pg_catalog.format('GRANT EXECUTE ON %s TO %I WITH GRANT OPTION', object, owner);
    END LOOP;
    EXECUTE pg_catalog.format('GRANT SELECT ON graph_kernel.keys, graph_kernel.statistics TO %I WITH GRANT OPTION', owner);
    -- So that an owner who is no superuser can dump and restore them.
    EXECUTE pg_catalog.format(
        'GRANT SELECT, INSERT ON graph_kernel.binding, graph_kernel.recorder_binding, graph_kernel.trace_binding, graph_kernel.revoked_keys, graph_kernel.policies TO %I',
        owner);
END
$$;
GRANT USAGE ON SCHEMA graph_kernel TO PUBLIC;
GRANT EXECUTE ON FUNCTION graph_kernel.list_statistics() TO pg_monitor;
GRANT SELECT ON graph_kernel.statistics TO pg_monitor;
GRANT SELECT ON graph_kernel.binding, graph_kernel.bindings, graph_kernel.recorder_binding, graph_kernel.trace_binding, graph_kernel.policies, graph_kernel.known_policies, graph_kernel.proof_keys, @extschema@.graph_policies TO PUBLIC;
-- Registering runs with the caller's rights: the table's trigger checks EXECUTE on register_policy.
GRANT INSERT (name, policy) ON graph_kernel.policies TO PUBLIC;
