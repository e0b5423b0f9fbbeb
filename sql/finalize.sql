-- Runs last: what pgrx does not write. Fixed search_path, costs, estimates, comments, rights.

ALTER FUNCTION graph_slice(uuid, slice_policy)
    SET search_path = pg_catalog, pg_temp COST 10000;
ALTER FUNCTION graph_slice_turns(uuid, slice_policy)
    SET search_path = pg_catalog, pg_temp COST 10000 ROWS 256 SUPPORT graph_slice_support;
ALTER FUNCTION graph_slice_edges(uuid, slice_policy)
    SET search_path = pg_catalog, pg_temp COST 10000 ROWS 256 SUPPORT graph_slice_support;
ALTER FUNCTION graph_slices(uuid[], slice_policy)
    SET search_path = pg_catalog, pg_temp COST 100000 ROWS 10;
ALTER FUNCTION graph_check() COST 10000000 ROWS 16;

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
COMMENT ON FUNCTION graph_content_hash(text) IS 'SHA-256 of the normalised content, in hex';
COMMENT ON FUNCTION graph_slice(uuid, slice_policy) IS
    'the context slice at an anchor turn, as canonical JSON';
COMMENT ON FUNCTION graph_slice_turns(uuid, slice_policy) IS
    'the turns of the slice at an anchor turn, ordered by turn_id';
COMMENT ON FUNCTION graph_slice_edges(uuid, slice_policy) IS
    'the edges of the slice at an anchor turn, ordered by parent, child, type';
COMMENT ON FUNCTION graph_slices(uuid[], slice_policy) IS
    'the slices at many anchor turns, in order; a bad anchor gives a row with an error';
COMMENT ON FUNCTION graph_check() IS 'what is wrong with the bound graph, and how to mend it';
COMMENT ON FUNCTION graph_kernel.create_tables(name) IS
    'creates memory_turns and memory_turn_edges with their indexes, owned by the caller';
COMMENT ON FUNCTION graph_kernel.bind_tables(regclass, regclass, jsonb) IS
    'makes these tables the graph; returns the name of the graph in attestations';
COMMENT ON FUNCTION graph_kernel.has_index(regclass, text, boolean) IS
    'whether an index finds rows by this column';
COMMENT ON FUNCTION graph_kernel.describe_tables(oid, oid, jsonb) IS
    'checks two tables for use as a graph and says which columns hold what';
COMMENT ON FUNCTION graph_kernel.describe_graph() IS
    'the bound graph: its tables and which columns hold what';
COMMENT ON FUNCTION graph_kernel.turns_in_cycles() IS
    'how many turns of the bound graph lie on or between cycles; NULL when it is too large';

-- Binding belongs to the extension's owner, who may grant it. Grants that default privileges gave
-- to others are taken away first.
DO $$
DECLARE
    admin_function regprocedure;
    holder name;
    owner name := (SELECT r.rolname FROM pg_catalog.pg_extension AS x
                   JOIN pg_catalog.pg_roles AS r ON r.oid OPERATOR(pg_catalog.=) x.extowner
                   WHERE x.extname OPERATOR(pg_catalog.=) 'graph_kernel');
BEGIN
    FOREACH admin_function IN ARRAY ARRAY[
        'graph_kernel.bind_tables(regclass, regclass, jsonb)',
        'graph_kernel.describe_tables(oid, oid, jsonb)'
    ]::regprocedure[] LOOP
        EXECUTE pg_catalog.format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', admin_function);
        FOR holder IN
            SELECT DISTINCT r.rolname
            FROM pg_catalog.pg_proc AS p, pg_catalog.aclexplode(p.proacl) AS a
            JOIN pg_catalog.pg_roles AS r ON r.oid OPERATOR(pg_catalog.=) a.grantee
            WHERE p.oid OPERATOR(pg_catalog.=) admin_function
              AND a.grantee OPERATOR(pg_catalog.<>) p.proowner
        LOOP
            EXECUTE pg_catalog.format('REVOKE ALL ON FUNCTION %s FROM %I', admin_function, holder);
        END LOOP;
    END LOOP;
    EXECUTE pg_catalog.format(
        'GRANT EXECUTE ON FUNCTION graph_kernel.bind_tables(regclass, regclass, jsonb)'
        ' TO %I WITH GRANT OPTION', owner);
    -- So that an owner who is no superuser can dump and restore the binding.
    EXECUTE pg_catalog.format('GRANT SELECT, INSERT ON graph_kernel.binding TO %I', owner);
END
$$;
GRANT SELECT ON graph_kernel.binding TO PUBLIC;
