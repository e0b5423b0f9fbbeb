-- Runs last: what tables of bindings have in common, who owns the objects, and who may use those of the private schema.
-- All else stands beside its object.

-- Beside the graphs' own table of bindings, in bootstrap.sql: part of a dump, and only the functions change them.
DO $$
DECLARE
    binding text;
BEGIN
    FOREACH binding IN ARRAY '{recorder_binding,trace_binding,store_binding}'::pg_catalog.text[] LOOP
        PERFORM pg_catalog.pg_extension_config_dump(
            pg_catalog.format('graph_kernel.%I', binding)::pg_catalog.regclass, '');
        EXECUTE pg_catalog.format($commands$
            CREATE TRIGGER guard BEFORE INSERT OR UPDATE OR DELETE ON graph_kernel.%1$I
                FOR EACH ROW EXECUTE FUNCTION graph_kernel.guard_table();
            CREATE TRIGGER guard_binder BEFORE INSERT ON graph_kernel.%1$I
                FOR EACH ROW EXECUTE FUNCTION graph_kernel.set_binder();
            CREATE TRIGGER guard_truncate BEFORE TRUNCATE ON graph_kernel.%1$I
                FOR EACH STATEMENT EXECUTE FUNCTION graph_kernel.guard_table();
            ALTER TABLE graph_kernel.%1$I ENABLE ALWAYS TRIGGER guard, ENABLE ALWAYS TRIGGER guard_binder,
                ENABLE ALWAYS TRIGGER guard_truncate;
            COMMENT ON TRIGGER guard ON graph_kernel.%1$I IS 'only the functions change the binding';
            COMMENT ON TRIGGER guard_binder ON graph_kernel.%1$I IS 'says who has bound the table';
            COMMENT ON TRIGGER guard_truncate ON graph_kernel.%1$I IS 'only the functions change the binding';
            COMMENT ON COLUMN graph_kernel.%1$I.bound_by IS
                'the name that the binder had then'
        $commands$, binding);
    END LOOP;
END
$$;

-- All of it belongs to the bootstrap superuser, whoever creates the extension: its owner may lose SUPERUSER, or have
-- what he owns reassigned, and an owner of the private tables reads the roots of the keys. Before the grants, which an
-- owner makes.
DO $$
DECLARE
    bootstrap name := (SELECT r.rolname FROM pg_catalog.pg_roles AS r WHERE r.oid OPERATOR(pg_catalog.=) 10);
    command text;
BEGIN
    FOR command IN
        SELECT pg_catalog.format('ALTER %s %s OWNER TO %I', o.type, o.identity, bootstrap)
        FROM pg_catalog.pg_extension AS x
        JOIN pg_catalog.pg_depend AS d
            ON d.refclassid OPERATOR(pg_catalog.=) 'pg_catalog.pg_extension'::pg_catalog.regclass
            AND d.refobjid OPERATOR(pg_catalog.=) x.oid AND d.deptype OPERATOR(pg_catalog.=) 'e'
        CROSS JOIN LATERAL pg_catalog.pg_identify_object(d.classid, d.objid, 0) AS o
        -- From 18 on row types of tables and types of arrays are members too. Their owners follow by themselves.
        LEFT JOIN pg_catalog.pg_type AS y
            ON d.classid OPERATOR(pg_catalog.=) 'pg_catalog.pg_type'::pg_catalog.regclass
            AND y.oid OPERATOR(pg_catalog.=) d.objid
        LEFT JOIN pg_catalog.pg_class AS r ON r.oid OPERATOR(pg_catalog.=) y.typrelid
        WHERE x.extname OPERATOR(pg_catalog.=) 'graph_kernel' AND o.type OPERATOR(pg_catalog.<>) 'cast'
          AND (r.relkind OPERATOR(pg_catalog.=) 'c') IS NOT FALSE
          AND (y.typcategory OPERATOR(pg_catalog.=) 'A') IS NOT TRUE
    LOOP
        EXECUTE command;
    END LOOP;
END
$$;

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
        'FUNCTION graph_kernel.bind_store(regclass, text)',
        'FUNCTION graph_kernel.unbind_store(text)',
        'FUNCTION graph_kernel.list_statistics()',
        'FUNCTION graph_kernel.reset_statistics()'];
    internal text[] := ARRAY[
        'FUNCTION graph_kernel.require_library()',
        'FUNCTION graph_kernel.describe_tables(oid, oid, jsonb, text, text, oid)',
        'FUNCTION graph_kernel.describe_recorder_table(oid, jsonb, oid)',
        'FUNCTION graph_kernel.check_trace_table(oid, oid)',
        'FUNCTION graph_kernel.check_store(oid, text, oid)',
        'FUNCTION graph_kernel.add_epoch()',
        'FUNCTION graph_kernel.rotate_key_for(boolean)',
        'FUNCTION graph_kernel.rotate_key_internal(boolean)',
        'FUNCTION graph_kernel.revoke_key_for(text)',
        'FUNCTION graph_kernel.revoke_key_internal(text)',
        'FUNCTION graph_kernel.bind_tables_internal(regclass, regclass, jsonb, text, oid)',
        'FUNCTION graph_kernel.bind_tables_for(regclass, regclass, jsonb, text, oid)',
        'FUNCTION graph_kernel.unbind_tables_for(text)',
        'FUNCTION graph_kernel.unbind_tables_internal(text)',
        'FUNCTION graph_kernel.bind_recorder_table_internal(regclass, jsonb, oid)',
        'FUNCTION graph_kernel.bind_recorder_table_for(regclass, jsonb, oid)',
        'FUNCTION graph_kernel.bind_traces_internal(regclass, oid)',
        'FUNCTION graph_kernel.bind_traces_for(regclass, oid)',
        'FUNCTION graph_kernel.bind_store_internal(regclass, text, oid)',
        'FUNCTION graph_kernel.bind_store_for(regclass, text, oid)',
        'FUNCTION graph_kernel.guard_table()',
        'FUNCTION graph_kernel.set_binder()',
        'FUNCTION graph_kernel.content_hash_trigger_internal()',
        'FUNCTION graph_kernel.announce_change()',
        'FUNCTION graph_kernel.store_word_totals(oid, integer, bigint, bigint)',
        'FUNCTION graph_kernel.add_word_counts(oid, integer, jsonb)',
        'SCHEMA graph_kernel',
        'TYPE graph_kernel.bound_relation',
        'TYPE graph_kernel.bound_role',
        'TYPE graph_kernel.secret',
        'TABLE graph_kernel.root_keys',
        'TABLE graph_kernel.revoked_keys',
        'TABLE graph_kernel.binding',
        'TABLE graph_kernel.bindings',
        'TABLE graph_kernel.recorder_binding',
        'TABLE graph_kernel.policies',
        'TABLE graph_kernel.known_policies',
        'TABLE @extschema@.graph_policies',
        'TABLE graph_kernel.trace_binding',
        'TABLE graph_kernel.store_binding',
        'TABLE graph_kernel.keys',
        'TABLE graph_kernel.kept',
        'TABLE graph_kernel.proof_keys',
        'TABLE graph_kernel.statistics',
        'TABLE graph_kernel.word_totals',
        'TABLE graph_kernel.word_counts'];
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
                  SELECT t.typacl, t.typowner FROM pg_catalog.pg_type AS t
                  WHERE t.typnamespace OPERATOR(pg_catalog.=) 'graph_kernel'::pg_catalog.regnamespace
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
    EXECUTE pg_catalog.format(
        'GRANT SELECT ON graph_kernel.keys, graph_kernel.statistics TO %I WITH GRANT OPTION', owner);
    -- So that an owner who is not a superuser can dump and restore them.
    EXECUTE pg_catalog.format(
        'GRANT SELECT, INSERT ON graph_kernel.binding, graph_kernel.recorder_binding, graph_kernel.trace_binding,
             graph_kernel.store_binding, graph_kernel.revoked_keys, graph_kernel.policies TO %I',
        owner);
END
$$;
GRANT USAGE ON SCHEMA graph_kernel TO PUBLIC;
GRANT EXECUTE ON FUNCTION graph_kernel.list_statistics() TO pg_monitor;
GRANT SELECT ON graph_kernel.statistics TO pg_monitor;
GRANT SELECT ON graph_kernel.binding, graph_kernel.bindings, graph_kernel.recorder_binding, graph_kernel.trace_binding,
    graph_kernel.store_binding, graph_kernel.revoked_keys, graph_kernel.policies, graph_kernel.known_policies,
    graph_kernel.proof_keys, graph_kernel.kept, @extschema@.graph_policies TO PUBLIC;
-- Registering runs with the caller's rights: the table's trigger checks EXECUTE on register_policy.
GRANT INSERT (name, policy) ON graph_kernel.policies TO PUBLIC;
