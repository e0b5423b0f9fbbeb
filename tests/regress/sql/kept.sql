-- Promise: a document that verifies is kept once, under the SHA-256 of its bytes; a row that promotes may refer to it by
-- that key, and whoever can write to the store, or deletes from it, gets nothing promoted.
SELECT code, message, detail, hint FROM test_error('SELECT graph_keep(graph_slice(turn(2)))');
CREATE SCHEMA stores;
SELECT schema, e.* FROM unnest('{"",nowhere,NULL}'::name[]) AS schema, test_error(format('SELECT graph_kernel.create_slice_store(%L)', schema)) AS e;
SELECT graph_kernel.create_slice_store('stores') AS store;
SELECT code, message, detail, hint FROM test_error($$SELECT graph_kernel.create_slice_store('stores')$$);
\d stores.slice_store

-- What is bound as a store, by whom, for which graph.
CREATE UNLOGGED TABLE stores.unlogged (LIKE stores.slice_store INCLUDING ALL);
CREATE TABLE stores.no_key (LIKE stores.slice_store);
CREATE TABLE stores.null_key (LIKE stores.slice_store, UNIQUE (key));
ALTER TABLE stores.null_key ALTER COLUMN key DROP NOT NULL;
CREATE TABLE stores.other_type (LIKE stores.slice_store INCLUDING ALL);
ALTER TABLE stores.other_type ALTER turns TYPE text[];
CREATE VIEW stores.viewed AS SELECT * FROM stores.slice_store;
SELECT store, e.* FROM unnest('{stores.unlogged,memory_turns,stores.no_key,stores.null_key,stores.other_type,stores.viewed,graph_kernel.policies,pg_catalog.pg_class}'::text[]) AS store,
    test_error(format('SELECT graph_kernel.bind_store(%L)', store)) AS e;
SELECT code, message, detail FROM test_error($$SELECT graph_kernel.bind_store('stores.slice_store', 'no_such')$$)
UNION ALL SELECT code, message, detail FROM test_error($$SELECT graph_kernel.bind_store(NULL)$$)
UNION ALL SELECT code, message, detail FROM test_error($$SELECT graph_kernel.bind_store('stores.slice_store', NULL)$$);
CREATE ROLE kept_binder;
GRANT EXECUTE ON FUNCTION graph_kernel.bind_store TO kept_binder;
GRANT USAGE ON SCHEMA stores TO kept_binder;
GRANT SELECT ON stores.slice_store TO kept_binder;
SET ROLE kept_binder;
SELECT code, message, detail, hint FROM test_error($$SELECT graph_kernel.bind_store('stores.slice_store')$$);
RESET ROLE;
DROP INDEX stores.slice_store_turns_idx;
SELECT graph_kernel.bind_store('stores.slice_store');
CREATE INDEX ON stores.slice_store USING gin (turns);
SELECT graph_kernel.bind_store('stores.slice_store');
SELECT name, store, bound_by = current_user AS by_me FROM graph_kernel.store_binding;

-- Kept once, whatever the spelling; only what verifies.
SELECT graph_keep(graph_slice(turn(2))) AS two, graph_keep(graph_slice(turn(4))) AS four, graph_keep(graph_messages_record(turn(2))) AS record \gset
SELECT graph_keep(graph_slice(turn(2))::jsonb::json) = :'two' AS same_key, :'two' = encode(sha256(graph_slice(turn(2))::text::bytea), 'hex') AS is_sha256,
       graph_kept(:'two')::text = graph_slice(turn(2))::text AS same_bytes, graph_kept(:'record')::text = graph_messages_record(turn(2))::text AS same_record,
       graph_kept(repeat('0', 64)) IS NULL AS missing, graph_kept('') IS NULL AS no_key, graph_kept(NULL) IS NULL AS null_key;
SELECT kind, graph, role = current_user AS by_me, rls, turn_number(anchor) AS anchor, cardinality(turns) AS turns, kept_by = current_user AS kept_by_me, checked_at, status, superseded_by
  FROM stores.slice_store ORDER BY kind DESC, anchor;
SELECT code, message, detail FROM test_error($$SELECT graph_keep('{}')$$)
UNION ALL SELECT code, message, detail FROM test_error($$SELECT graph_keep((graph_slice(turn(2))::jsonb || '{"attestation": null}')::json)$$)
UNION ALL SELECT code, message, detail FROM test_error($$SELECT graph_keep(replace(graph_slice(turn(2))::text, '"role":"user"', '"role":"system"')::json)$$);
SELECT graph_keep(NULL) IS NULL AS null_document;
BEGIN READ ONLY;
SELECT code, message FROM test_error('SELECT graph_keep(graph_slice(turn(2)))');
COMMIT;

-- Rows that refer to a kept slice are held to it as rows that carry one.
CREATE TABLE atoms (id int PRIMARY KEY, slice text, turns uuid[]);
CREATE CONSTRAINT TRIGGER admissible AFTER INSERT OR UPDATE ON atoms NOT DEFERRABLE
    FOR EACH ROW EXECUTE FUNCTION graph_require_admissible('ref=slice', 'turns');
ALTER TABLE atoms ENABLE ALWAYS TRIGGER admissible;
INSERT INTO atoms VALUES (1, :'two', ARRAY[turn(2), turn(5)]);
-- Also in the statement that keeps it.
INSERT INTO atoms SELECT 2, graph_keep(graph_slice(turn(1))), ARRAY[turn(1)];
CREATE FUNCTION refused(key text, VARIADIC turns int[]) RETURNS TABLE (code text, message text, detail text, hint text) LANGUAGE sql
AS $$ SELECT e.code, regexp_replace(e.message, '[0-9a-f]{64}', 'KEY'), e.detail, regexp_replace(e.hint, '[0-9a-f]{64}', 'KEY') FROM test_error(format('INSERT INTO atoms VALUES (9, %L, (SELECT array_agg(turn(t)) FROM unnest(%L::int[]) AS t))', key, turns)) AS e $$;
SELECT * FROM refused(:'two', 77);
SELECT * FROM refused(NULL, 2);
SELECT * FROM refused('', 2);
SELECT * FROM refused(repeat('0', 64), 2);
SELECT * FROM refused(upper(:'two'), 2);
SELECT * FROM refused(repeat('x', 1000000), 2);
-- A record is no slice.
SELECT * FROM refused(:'record', 2);
-- Whoever writes to the store: an edited document under the key of its bytes, another document under the key, bytes.
INSERT INTO stores.slice_store SELECT encode(sha256(edited::text::bytea), 'hex'), graph_document_bytes(edited), 'slice', 'default', current_user, false, turn(2), ARRAY[turn(77)], 'x', now()
  FROM (SELECT replace(graph_slice(turn(2))::text, turn(5)::text, turn(77)::text)::json) AS e (edited) RETURNING key AS edited \gset
SELECT graph_kept(:'edited') IS NOT NULL AS stored;
SELECT * FROM refused(:'edited', 77);
DELETE FROM stores.slice_store WHERE key = :'edited';
CREATE TABLE honest AS SELECT * FROM stores.slice_store;
UPDATE stores.slice_store SET document = o.document FROM honest AS o WHERE slice_store.key = :'two' AND o.key = :'four';
SELECT * FROM refused(:'two', 2);
SELECT code, regexp_replace(message, '[0-9a-f]{64}', 'KEY') AS message, detail FROM test_error(format('SELECT graph_kept(%L)', :'two'))
UNION ALL SELECT code, regexp_replace(message, '[0-9a-f]{64}', 'KEY') AS message, detail FROM test_error('SELECT graph_keep(graph_slice(turn(2)))');
UPDATE stores.slice_store SET document = '\x00ff' WHERE key = :'two';
SELECT * FROM refused(:'two', 2);
UPDATE stores.slice_store SET document = '' WHERE key = :'two';
SELECT * FROM refused(:'two', 2);
-- An update that leaves key and turns as they are is not checked; any other is.
UPDATE atoms SET id = 3 WHERE id = 1;
SELECT code, detail FROM test_error('UPDATE atoms SET turns = ARRAY[turn(2)] WHERE id = 3');
UPDATE stores.slice_store SET document = o.document FROM honest AS o WHERE slice_store.key = o.key;
SELECT ok, count FROM graph_check() WHERE check_name = 'kept_documents';
-- One by whose other columns it would not be found.
UPDATE stores.slice_store SET turns = '{}' WHERE key = :'four';
SELECT ok, count, hint FROM graph_check() WHERE check_name = 'kept_documents';
SELECT key = :'four' AS four, fault FROM graph_kernel.unfit_documents('default');
UPDATE stores.slice_store SET turns = o.turns FROM honest AS o WHERE slice_store.key = o.key;
-- What the law wants gone is deleted, and graph_check counts the rows that refer to it: no error.
DELETE FROM stores.slice_store WHERE key = :'two';
SELECT * FROM refused(:'two', 2);
SELECT check_name, ok, count, detail, hint FROM graph_check() WHERE check_name ~ '^(slice_store|index_kept|kept_)';
INSERT INTO stores.slice_store SELECT * FROM honest WHERE key = :'two';

-- Whoever promotes needs SELECT on the store and no right to the graph; whose slices are trusted is the trigger's matter.
CREATE ROLE kept_promoter;
GRANT INSERT ON atoms TO kept_promoter;
SET ROLE kept_promoter;
SELECT * FROM refused(:'two', 2);
RESET ROLE;
GRANT USAGE ON SCHEMA stores TO kept_promoter;
SET ROLE kept_promoter;
SELECT * FROM refused(:'two', 2);
RESET ROLE;
GRANT SELECT ON stores.slice_store TO kept_promoter;
SET ROLE kept_promoter;
INSERT INTO atoms VALUES (4, :'two', ARRAY[turn(2)]);
RESET ROLE;
ALTER TABLE stores.slice_store ENABLE ROW LEVEL SECURITY;
SET ROLE kept_promoter;
SELECT * FROM refused(:'two', 2);
RESET ROLE;
ALTER TABLE stores.slice_store DISABLE ROW LEVEL SECURITY;
GRANT SELECT ON memory_turns, memory_turn_edges TO kept_promoter;
GRANT INSERT ON stores.slice_store TO kept_promoter;
SET ROLE kept_promoter;
SELECT graph_keep(graph_slice(turn(2))) AS promoters \gset
RESET ROLE;
SELECT :'promoters' = :'two' AS same_key, role, kept_by FROM stores.slice_store WHERE key = :'promoters';
CREATE TABLE atoms_of_roles (slice varchar(64), turn uuid);
CREATE CONSTRAINT TRIGGER admissible AFTER INSERT OR UPDATE ON atoms_of_roles NOT DEFERRABLE
    FOR EACH ROW EXECUTE FUNCTION graph_require_admissible('ref=slice', 'turn', 'roles=kept_promoter');
ALTER TABLE atoms_of_roles ENABLE ALWAYS TRIGGER admissible;
INSERT INTO atoms_of_roles VALUES (:'promoters', turn(2));
SELECT code, message, detail FROM test_error(format('INSERT INTO atoms_of_roles VALUES (%L, turn(2))', :'two'));

-- Another graph has another store, and its slices promote nothing here; nor does the setting of who writes decide.
CREATE TABLE other_turns (LIKE memory_turns INCLUDING ALL);
INSERT INTO other_turns SELECT * FROM memory_turns;
CREATE TABLE other_edges (LIKE memory_turn_edges INCLUDING ALL);
INSERT INTO other_edges SELECT * FROM memory_turn_edges;
SELECT graph_kernel.bind_tables('other_turns', 'other_edges', name => 'other') IS NOT NULL AS bound;
SET graph_kernel.graph = 'other';
SELECT code, message, hint FROM test_error('SELECT graph_keep(graph_slice(turn(2)))');
SELECT graph_kernel.bind_store('stores.slice_store', 'other');
SELECT graph_keep(graph_slice(turn(2))) AS others \gset
SELECT * FROM refused(:'others', 2);
INSERT INTO atoms VALUES (5, :'two', ARRAY[turn(2)]);
SELECT code, detail FROM test_error(format('SELECT graph_keep(graph_kept(%L))', :'two'));
RESET graph_kernel.graph;

-- Bad arguments, and where the store or the column is gone.
CREATE TABLE misused (slice json, key text, turns uuid[]);
CREATE FUNCTION misuse(function text, arguments text) RETURNS TABLE (code text, message text, detail text, hint text) LANGUAGE plpgsql
AS $$
BEGIN
    EXECUTE format('CREATE CONSTRAINT TRIGGER misuse AFTER INSERT OR UPDATE ON misused FOR EACH ROW EXECUTE FUNCTION %I(%s)', function, arguments);
    ALTER TABLE misused ENABLE ALWAYS TRIGGER misuse;
    RETURN QUERY SELECT e.code, e.message, e.detail, e.hint FROM test_error('INSERT INTO misused VALUES (''{}'', ''x'', ''{}'')') AS e;
    RETURN QUERY SELECT 'check', c.detail, NULL, NULL FROM graph_check() AS c WHERE c.check_name = 'promotion_triggers' AND c.detail ~ 'misuse';
    DROP TRIGGER misuse ON misused;
END
$$;
SELECT a.*, m.* FROM (VALUES ('graph_require_admissible', '''ref='', ''turns'''), ('graph_require_admissible', '''ref=slice'', ''turns'''), ('graph_require_admissible', '''ref=no_such'', ''turns'''),
    ('graph_require_admissible', '''ref=key'', ''turns'', ''graph=no_such'''), ('graph_require_admissible_result', '''ref=key'', ''turns''')) AS a (function, arguments), misuse(function, arguments) AS m;
DROP TABLE misused;
DROP FUNCTION misuse;
ALTER TABLE stores.slice_store RENAME document TO doc;
SELECT * FROM refused(:'two', 2);
SELECT ok, detail, hint FROM graph_check() WHERE check_name = 'slice_store';
ALTER TABLE stores.slice_store RENAME doc TO document;
ALTER TABLE stores.slice_store RENAME TO renamed;
INSERT INTO atoms VALUES (6, :'two', ARRAY[turn(2)]);

DROP TABLE stores.renamed CASCADE;
SELECT * FROM refused(:'two', 2);
SELECT ok, detail, hint FROM graph_check() WHERE check_name = 'slice_store';
SELECT graph_kernel.unbind_store('other'), graph_kernel.unbind_store();
SELECT check_name, ok, detail FROM graph_check() WHERE check_name ~ '^(slice_store|index_kept|kept_)';
SELECT graph_kernel.unbind_tables('other');
DROP TABLE atoms, atoms_of_roles, honest, other_edges, other_turns;
DROP FUNCTION refused;
DROP SCHEMA stores CASCADE;
DROP OWNED BY kept_binder, kept_promoter;
DROP ROLE kept_binder, kept_promoter;
