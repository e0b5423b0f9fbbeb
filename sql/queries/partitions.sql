-- $1 oid: everything below this partitioned table; a leaf that is no permanent plain table comes
-- with its name.
SELECT p.relid::pg_catalog.int8,
       CASE WHEN p.isleaf AND NOT (c.relkind OPERATOR(pg_catalog.=) 'r'
                                   AND c.relpersistence OPERATOR(pg_catalog.=) 'p')
            THEN pg_catalog.format('%I.%I', n.nspname, c.relname) END
FROM pg_catalog.pg_partition_tree($1::pg_catalog.regclass) AS p
JOIN pg_catalog.pg_class AS c ON c.oid OPERATOR(pg_catalog.=) p.relid
JOIN pg_catalog.pg_namespace AS n ON n.oid OPERATOR(pg_catalog.=) c.relnamespace
WHERE p.level OPERATOR(pg_catalog.>) 0
