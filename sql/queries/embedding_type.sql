-- $1 text: the OID of a type of pgvector; $2 text: the name of an operator. Their names for statements,
-- the operator NULL where pgvector has none of that name. An operator of a user would run with the rights
-- of the role that searches: only one in the type's schema, of its extension and written in C, is taken.
SELECT pg_catalog.format('%I.%I', n.nspname, y.typname),
       (SELECT pg_catalog.format('OPERATOR(%I.%s)', n.nspname, o.oprname)
        FROM pg_catalog.pg_operator AS o
        JOIN pg_catalog.pg_proc AS p ON p.oid OPERATOR(pg_catalog.=) o.oprcode::pg_catalog.oid
        JOIN pg_catalog.pg_language AS l ON l.oid OPERATOR(pg_catalog.=) p.prolang
        JOIN pg_catalog.pg_depend AS od
          ON od.classid OPERATOR(pg_catalog.=) 'pg_catalog.pg_operator'::pg_catalog.regclass
         AND od.objid OPERATOR(pg_catalog.=) o.oid AND od.refobjid OPERATOR(pg_catalog.=) x.oid
         AND od.refclassid OPERATOR(pg_catalog.=) 'pg_catalog.pg_extension'::pg_catalog.regclass
         AND od.deptype OPERATOR(pg_catalog.=) 'e'
        WHERE o.oprname OPERATOR(pg_catalog.=) $2::pg_catalog.name
          AND o.oprnamespace OPERATOR(pg_catalog.=) y.typnamespace
          AND o.oprleft OPERATOR(pg_catalog.=) y.oid AND o.oprright OPERATOR(pg_catalog.=) y.oid
          AND o.oprresult OPERATOR(pg_catalog.=) 'pg_catalog.float8'::pg_catalog.regtype
          AND l.lanname OPERATOR(pg_catalog.=) 'c')
FROM pg_catalog.pg_type AS y
JOIN pg_catalog.pg_namespace AS n ON n.oid OPERATOR(pg_catalog.=) y.typnamespace
JOIN pg_catalog.pg_depend AS d
  ON d.classid OPERATOR(pg_catalog.=) 'pg_catalog.pg_type'::pg_catalog.regclass
 AND d.objid OPERATOR(pg_catalog.=) y.oid
 AND d.refclassid OPERATOR(pg_catalog.=) 'pg_catalog.pg_extension'::pg_catalog.regclass
 AND d.deptype OPERATOR(pg_catalog.=) 'e'
JOIN pg_catalog.pg_extension AS x ON x.oid OPERATOR(pg_catalog.=) d.refobjid
-- The cast to real[] that reads a stored embedding is the extension's own too.
JOIN pg_catalog.pg_cast AS c
  ON c.castsource OPERATOR(pg_catalog.=) y.oid
 AND c.casttarget OPERATOR(pg_catalog.=) 'pg_catalog.float4[]'::pg_catalog.regtype
JOIN pg_catalog.pg_depend AS cd
  ON cd.classid OPERATOR(pg_catalog.=) 'pg_catalog.pg_cast'::pg_catalog.regclass
 AND cd.objid OPERATOR(pg_catalog.=) c.oid AND cd.refobjid OPERATOR(pg_catalog.=) x.oid
 AND cd.refclassid OPERATOR(pg_catalog.=) 'pg_catalog.pg_extension'::pg_catalog.regclass
 AND cd.deptype OPERATOR(pg_catalog.=) 'e'
WHERE y.oid OPERATOR(pg_catalog.=) $1::pg_catalog.oid
  AND x.extname OPERATOR(pg_catalog.=) 'vector'
  AND y.typname OPERATOR(pg_catalog.=) ANY ('{vector,halfvec}'::pg_catalog.name[])
