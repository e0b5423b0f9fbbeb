-- Promise: the SQL surface is frozen; a change of any name, default, type or property shows here.
\a
\pset footer off
CREATE TEMP VIEW member AS
SELECT d.classid, d.objid, d.objsubid
FROM pg_depend AS d JOIN pg_extension AS x ON x.oid = d.refobjid
WHERE x.extname = 'graph_kernel' AND d.refclassid = 'pg_extension'::regclass AND d.deptype = 'e';
CREATE TEMP VIEW member_function AS
SELECT p.*, p.pronamespace::regnamespace::text AS schema
FROM pg_proc AS p JOIN member AS m ON m.classid = 'pg_proc'::regclass AND m.objid = p.oid;

-- Every function: arguments, result, kind of evaluation. Settings are there once the library is.
SELECT graph_kernel_version() IS NOT NULL AS loaded;
SELECT oid::regprocedure AS function,
       pg_get_function_arguments(oid) AS arguments,
       pg_get_function_result(oid) AS result
FROM member_function ORDER BY schema = 'graph_kernel', proname COLLATE "C", oid::regprocedure::text COLLATE "C";
SELECT p.oid::regproc AS function, l.lanname AS lang, provolatile AS vol, proparallel AS par,
       proisstrict AS strict, prosecdef AS definer, proleakproof AS leakproof, procost AS cost, prorows AS rows,
       nullif(prosupport::oid, 0)::regproc AS support, array_to_string(proconfig, '; ') AS config
FROM member_function AS p JOIN pg_language AS l ON l.oid = p.prolang
ORDER BY schema = 'graph_kernel', proname COLLATE "C", p.oid::regprocedure::text COLLATE "C";
-- \df graph_* has two screens of fifty lines.
SELECT count(*) <= 96 AS two_screens FROM member_function WHERE schema = 'public' AND proname LIKE 'graph\_%';
-- One function a name but for graph_turn_id and those of messages, and for users only registering is volatile.
SELECT schema, proname, count(*) FROM member_function GROUP BY 1, 2 HAVING count(*) > 1;
SELECT oid::regprocedure FROM member_function WHERE schema = 'public' AND provolatile = 'v'
ORDER BY proname COLLATE "C";

-- The types, their operators, operator classes and casts.
SELECT typname, typlen, typbyval, typtype, typcategory, typispreferred, typdelim, typalign, typstorage,
       typcollation, typinput, typoutput, typreceive, typsend, typnotnull, typdefault
FROM pg_type WHERE oid IN ('slice_policy'::regtype, 'chunking_policy'::regtype)
ORDER BY typname COLLATE "C" \gx
SELECT typname, typelem::regtype FROM pg_type
WHERE oid IN (SELECT typarray FROM pg_type WHERE typname IN ('slice_policy', 'chunking_policy'))
ORDER BY typname COLLATE "C";
SELECT oid::regoperator AS operator, oprresult::regtype AS result, oprcode AS function,
       oprcom::regoperator AS commutator, oprnegate::regoperator AS negator,
       oprrest AS restrict, oprjoin AS join, oprcanhash AS hashes, oprcanmerge AS merges
FROM pg_operator
WHERE oprleft IN ('slice_policy'::regtype, 'chunking_policy'::regtype)
ORDER BY oprname COLLATE "C", oprleft::regtype::text COLLATE "C";
SELECT a.amname, c.opcname, c.opcdefault, f.opfname
FROM pg_opclass AS c JOIN pg_am AS a ON a.oid = c.opcmethod JOIN pg_opfamily AS f ON f.oid = c.opcfamily
WHERE c.opcintype IN ('slice_policy'::regtype, 'chunking_policy'::regtype)
ORDER BY c.opcname COLLATE "C";
SELECT castsource::regtype AS source, casttarget::regtype AS target, castcontext AS context, castmethod AS method
FROM pg_cast
WHERE castsource IN ('slice_policy'::regtype, 'chunking_policy'::regtype)
   OR casttarget IN ('slice_policy'::regtype, 'chunking_policy'::regtype)
ORDER BY castsource::regtype::text COLLATE "C", casttarget::regtype::text COLLATE "C";

-- The columns of a chunk.
SELECT attnum, attname, format_type(atttypid, atttypmod) AS type
FROM pg_attribute WHERE attrelid = 'recorder_chunk'::regclass ORDER BY attnum;

-- Tables and settings.
SELECT a.attrelid::regclass AS table, a.attnum, a.attname, format_type(a.atttypid, a.atttypmod) AS type,
       a.attnotnull AS not_null, pg_get_expr(ad.adbin, ad.adrelid) AS default
FROM member AS m
JOIN pg_attribute AS a ON m.classid = 'pg_class'::regclass AND a.attrelid = m.objid AND a.attnum > 0
LEFT JOIN pg_attrdef AS ad ON ad.adrelid = a.attrelid AND ad.adnum = a.attnum
ORDER BY a.attrelid::regclass::text COLLATE "C", a.attnum;
SELECT name, vartype, context, min_val, max_val, boot_val, short_desc
FROM pg_settings WHERE name LIKE 'graph\_kernel.%' ORDER BY name COLLATE "C";

-- Tables whose rows a dump carries.
SELECT unnest(extconfig)::regclass AS dumped, unnest(extcondition) AS rows FROM pg_extension WHERE extname = 'graph_kernel' ORDER BY unnest(extconfig)::regclass::text COLLATE "C";

-- Every object of the extension, each column of its tables too, says what it is: no rows.
SELECT pg_describe_object(classid, objid, objsubid)
FROM member WHERE obj_description(objid, classid::regclass::name) IS NULL
AND NOT EXISTS (SELECT FROM pg_type AS t  -- members since 18, and nothing of their own
                WHERE classid = 'pg_type'::regclass AND t.oid = objid
                  AND (t.typrelid <> 0 OR t.typcategory = 'A'));
SELECT a.attrelid::regclass, a.attname
FROM member AS m JOIN pg_attribute AS a ON m.classid = 'pg_class'::regclass AND a.attrelid = m.objid
JOIN pg_class AS c ON c.oid = m.objid AND c.relkind IN ('r', 'p', 'v')
WHERE a.attnum > 0 AND col_description(a.attrelid, a.attnum) IS NULL;
SELECT obj_description(oid, 'pg_extension') FROM pg_extension WHERE extname = 'graph_kernel';

-- What create_tables makes: columns, indexes, constraints; no members of the extension.
SELECT a.attrelid::regclass AS table, a.attname, format_type(a.atttypid, a.atttypmod) AS type,
       a.attnotnull AS not_null, pg_get_expr(ad.adbin, ad.adrelid) AS default
FROM pg_attribute AS a LEFT JOIN pg_attrdef AS ad ON ad.adrelid = a.attrelid AND ad.adnum = a.attnum
WHERE a.attrelid IN ('memory_turns'::regclass, 'memory_turn_edges'::regclass) AND a.attnum > 0
ORDER BY a.attrelid::regclass::text COLLATE "C" DESC, a.attnum;
SELECT indexdef FROM pg_indexes
WHERE schemaname = 'public' AND tablename LIKE 'memory\_turn%' ORDER BY indexname COLLATE "C";
SELECT conrelid::regclass AS table, pg_get_constraintdef(oid) AS constraint FROM pg_constraint
WHERE conrelid IN ('memory_turns'::regclass, 'memory_turn_edges'::regclass) AND contype IN ('p', 'f')
ORDER BY conname COLLATE "C";
SELECT obj_description('memory_turns'::regclass) AS turns, obj_description('memory_turn_edges'::regclass) AS edges;
SELECT count(*) FROM member
WHERE classid = 'pg_class'::regclass AND objid IN ('memory_turns'::regclass, 'memory_turn_edges'::regclass);

-- Columns that the index for scores includes can change their type while foreign keys refer to the primary key.
BEGIN;
ALTER TABLE memory_turns ALTER COLUMN salience_score TYPE double precision, ALTER COLUMN trajectory_phase TYPE varchar(40);
SELECT indexdef FROM pg_indexes WHERE indexname = 'memory_turns_scores_idx';
SELECT conname, conindid::regclass FROM pg_constraint WHERE contype = 'f' AND confrelid = 'memory_turns'::regclass ORDER BY conname;
ROLLBACK;
