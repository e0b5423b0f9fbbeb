-- Promise: content hashes can be kept true, filled in and audited, for any table that can be bound.
\pset null '(null)'
SELECT provolatile, proisstrict, proparallel FROM pg_proc WHERE proname IN ('graph_normalize_text', 'graph_content_hash');
-- The trigger keeps the hash that of the content, whatever the statement says. Without a content the hash is as written.
CREATE TABLE hashed (LIKE memory_turns INCLUDING ALL);
CREATE TRIGGER content_hash BEFORE INSERT OR UPDATE ON hashed FOR EACH ROW EXECUTE FUNCTION graph_content_hash_trigger('content_text', 'content_hash');
CREATE VIEW truth AS
    SELECT turn_number(id) AS turn, content_text, content_hash = graph_content_hash(content_text) AS true, salience_score, created_at IS NULL AS undated
    FROM hashed ORDER BY id;
INSERT INTO hashed (id, salience_score, created_at, content_text, content_hash) VALUES
    (turn(1), 0.25, NULL, E' one\r\n', NULL), (turn(2), 'NaN', now(), 'two', 'forged'), (turn(3), NULL, NULL, NULL, repeat('0', 64)), (turn(4), NULL, NULL, '', NULL);
SELECT * FROM truth;
UPDATE hashed SET content_text = 'another' WHERE id = turn(1);
UPDATE hashed SET content_hash = 'forged' WHERE id = turn(2);
UPDATE hashed SET content_text = NULL WHERE id = turn(4);
SELECT * FROM truth;
-- Columns of other names, as arguments; a column of fixed length.
CREATE TABLE notes (id uuid, "My Text" varchar(20), "My ""Hash" char(64), other int DEFAULT 7);
CREATE TRIGGER content_hash BEFORE INSERT OR UPDATE ON notes FOR EACH ROW
    EXECUTE FUNCTION graph_content_hash_trigger('My Text', 'My "Hash');
INSERT INTO notes (id, "My Text") VALUES (turn(1), 'note') RETURNING "My ""Hash" = graph_content_hash('note') AS true, other;
-- Also in partitions.
CREATE TABLE parts (LIKE memory_turns) PARTITION BY HASH (id);
ALTER TABLE parts RENAME content_text TO body;
ALTER TABLE parts ADD UNIQUE (id);
CREATE TABLE parts_0 PARTITION OF parts FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES WITH (MODULUS 2, REMAINDER 1);
SELECT graph_kernel.bind_tables('parts', 'memory_turn_edges', '{"turns": {"content_text": "body"}}') IS NOT NULL AS bound;
CREATE TRIGGER content_hash BEFORE INSERT OR UPDATE ON parts FOR EACH ROW EXECUTE FUNCTION graph_content_hash_trigger('body', 'content_hash');
INSERT INTO parts (id, body) SELECT turn(n), 'turn ' || n FROM generate_series(1, 6) AS n;
SELECT count(*), count(DISTINCT tableoid) AS partitions, bool_and(content_hash = graph_content_hash(body)) AS true FROM parts;
DROP TRIGGER content_hash ON parts;
-- What a trigger cannot do is said at the first row, with the command that replaces it: that of a partition on its parent.
CREATE TRIGGER content_hash BEFORE INSERT OR UPDATE ON parts FOR EACH ROW EXECUTE FUNCTION graph_content_hash_trigger();
SELECT * FROM test_error('INSERT INTO parts (id) VALUES (turn(7))');
DROP TRIGGER content_hash ON parts;
CREATE TABLE bare (id uuid, content_text text);
CREATE TRIGGER content_hash BEFORE INSERT ON bare FOR EACH ROW EXECUTE FUNCTION graph_content_hash_trigger();
SELECT * FROM test_error('INSERT INTO bare VALUES (turn(1))');
CREATE OR REPLACE TRIGGER content_hash BEFORE INSERT ON bare FOR EACH ROW EXECUTE FUNCTION graph_content_hash_trigger('content_text', 'hash');
SELECT * FROM test_error('INSERT INTO bare VALUES (turn(1))');
CREATE OR REPLACE TRIGGER content_hash BEFORE INSERT ON bare FOR EACH ROW EXECUTE FUNCTION graph_content_hash_trigger('content_text');
SELECT * FROM test_error('INSERT INTO bare VALUES (turn(1))');
ALTER TABLE bare ADD hash text, ADD body text GENERATED ALWAYS AS (upper(content_text)) STORED;
CREATE OR REPLACE TRIGGER content_hash BEFORE INSERT ON bare FOR EACH ROW EXECUTE FUNCTION graph_content_hash_trigger('body', 'hash');
SELECT * FROM test_error('INSERT INTO bare VALUES (turn(1))');
CREATE OR REPLACE TRIGGER content_hash BEFORE INSERT ON bare FOR EACH ROW EXECUTE FUNCTION graph_content_hash_trigger('content_text', 'body');
SELECT * FROM test_error('INSERT INTO bare VALUES (turn(1))');
CREATE OR REPLACE TRIGGER content_hash AFTER INSERT ON bare FOR EACH ROW EXECUTE FUNCTION graph_content_hash_trigger();
SELECT * FROM test_error('INSERT INTO bare VALUES (turn(1))');

-- The library writes columns of type text and varchar, the function in SQL all others: both as the types demand.
CREATE DOMAIN hash_domain AS text CHECK (length(value) = 64);
CREATE TABLE kinds (
    n integer, gone integer, a varchar(40), a_hash varchar(64), b json, b_hash hash_domain, c text, c_hash varchar(10),
    d text, d_hash text
);
ALTER TABLE kinds DROP COLUMN gone;
CREATE TRIGGER a BEFORE INSERT OR UPDATE ON kinds FOR EACH ROW EXECUTE FUNCTION graph_content_hash_trigger('a', 'a_hash');
CREATE TRIGGER b BEFORE INSERT OR UPDATE ON kinds FOR EACH ROW EXECUTE FUNCTION graph_content_hash_trigger('b', 'b_hash');
CREATE TRIGGER c BEFORE INSERT OR UPDATE ON kinds FOR EACH ROW EXECUTE FUNCTION graph_content_hash_trigger('c', 'c_hash');
CREATE TRIGGER d BEFORE INSERT OR UPDATE ON kinds FOR EACH ROW EXECUTE FUNCTION graph_content_hash_trigger('d', 'd_hash');
INSERT INTO kinds (n, a, b, d, a_hash, d_hash) VALUES
    (1, 'x', '{"b": 1}', repeat('long ', 10000), 'given', NULL), (2, NULL, NULL, '', 'given', 'given');
SELECT n, a_hash = graph_content_hash(a) AS a, b_hash = graph_content_hash(b::text) AS b, d_hash = graph_content_hash(d) AS d,
       a_hash IS NULL AS a_null, shown
  FROM (SELECT *, left(d, 4) AS shown FROM kinds) AS k
 ORDER BY n;
UPDATE kinds SET a = 'y', d = NULL WHERE n = 1 RETURNING a_hash = graph_content_hash('y') AS a, d_hash;
-- A hash without a content stays, and can be written; it goes with the content that an update takes away.
INSERT INTO kinds (n, a_hash, b_hash) VALUES (5, repeat('a', 64), repeat('b', 64));
UPDATE kinds SET d = 'd' WHERE n = 5 RETURNING left(a_hash, 4) AS a, left(b_hash, 4) AS b;
UPDATE kinds SET a_hash = repeat('c', 64), b_hash = repeat('d', 64) WHERE n = 5 RETURNING left(a_hash, 4) AS a, left(b_hash, 4) AS b;
UPDATE kinds SET a = 'x', b = '1' WHERE n = 5 RETURNING a_hash = graph_content_hash('x') AS a, b_hash = graph_content_hash('1') AS b;
UPDATE kinds SET a = NULL, b = NULL, a_hash = repeat('c', 64), b_hash = repeat('d', 64) WHERE n = 5 RETURNING a_hash, b_hash;
SELECT code, message FROM test_error($$INSERT INTO kinds (n, c) VALUES (3, 'too long a hash')$$);
COPY kinds (n, a, d) FROM stdin;
4	copied	copied
\.
SELECT a_hash = graph_content_hash(a) AS a, d_hash = graph_content_hash(d) AS d FROM kinds WHERE n = 4;

-- The audit lists what is missing or false, by id; a turn without content has no hash to be wrong.
UPDATE parts SET content_hash = upper(content_hash) WHERE id = turn(2);
UPDATE parts SET body = body || ' edited' WHERE id = turn(3);
UPDATE parts SET content_hash = NULL WHERE id = turn(4);
UPDATE parts SET body = NULL WHERE id = turn(5);
SELECT turn_number(turn_id) AS turn, left(stored, 8) AS stored, left(computed, 8) AS computed FROM graph_content_audit();
SELECT turn_number(turn_id) AS turn FROM graph_content_audit(2);
SELECT count(*) FROM graph_content_audit(0);
SELECT code, message FROM test_error('SELECT * FROM graph_content_audit(-1)');
-- The backfill writes those and no others, whatever the size of a batch. What is no hash may be somebody's text: it stays.
SET client_min_messages = warning;
SELECT id, xmin AS version INTO TEMP before FROM parts;
CALL graph_kernel.backfill_content_hashes(1);
SELECT count(*) FROM graph_content_audit();
SELECT turn_number(id) AS rewritten FROM parts JOIN before USING (id) WHERE parts.xmin <> version ORDER BY id;
UPDATE parts SET content_hash = NULL;
CALL graph_kernel.backfill_content_hashes(batch => 4);
SELECT turn_number(id) AS without_hash FROM parts WHERE content_hash IS NULL ORDER BY id;
SELECT count(*) FROM graph_content_audit();
RESET client_min_messages;
-- It commits, so it does not run inside a transaction, and it says so.
\set SHOW_CONTEXT never
BEGIN;
CALL graph_kernel.backfill_content_hashes();
ROLLBACK;
CALL graph_kernel.backfill_content_hashes(0);
CALL graph_kernel.backfill_content_hashes(NULL);
-- No name or operator of the caller's search_path runs in it.
CREATE SCHEMA shadow;
CREATE FUNCTION shadow.refuse(anyelement, anyelement) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RAISE 'shadow runs'; END $$;
CREATE FUNCTION shadow.count() RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN RAISE 'shadow runs'; END $$;
CREATE FUNCTION shadow.format(text, VARIADIC text[]) RETURNS text LANGUAGE plpgsql AS $$ BEGIN RAISE 'shadow runs'; END $$;
CREATE FUNCTION shadow.graph_content_hash(text) RETURNS text LANGUAGE plpgsql AS $$ BEGIN RAISE 'shadow runs'; END $$;
CREATE OPERATOR shadow.= (LEFTARG = anyelement, RIGHTARG = anyelement, FUNCTION = shadow.refuse);
CREATE OPERATOR shadow.< (LEFTARG = anyelement, RIGHTARG = anyelement, FUNCTION = shadow.refuse);
CREATE OPERATOR shadow.> (LEFTARG = anyelement, RIGHTARG = anyelement, FUNCTION = shadow.refuse);
CREATE OPERATOR shadow.<= (LEFTARG = anyelement, RIGHTARG = anyelement, FUNCTION = shadow.refuse);
CREATE FUNCTION shadow.refuse(bigint, bigint) RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN RAISE 'shadow runs'; END $$;
CREATE OPERATOR shadow.+ (LEFTARG = bigint, RIGHTARG = bigint, FUNCTION = shadow.refuse);
CREATE TYPE shadow.uuid AS (a int);
CREATE DOMAIN shadow.text AS int;
UPDATE parts SET content_hash = NULL;
SET search_path = shadow, pg_catalog;
SET client_min_messages = warning;
CALL graph_kernel.backfill_content_hashes(2);
SELECT pg_catalog.count(*) FROM public.graph_content_audit();
RESET search_path;
DROP SCHEMA shadow CASCADE;
RESET client_min_messages;
-- It takes UPDATE on the hash column, and passes over what row security hides.
CREATE ROLE regress_writer;
GRANT SELECT ON parts, memory_turn_edges TO regress_writer;
UPDATE parts SET content_hash = NULL;
ALTER TABLE parts ENABLE ROW LEVEL SECURITY;
CREATE POLICY even ON parts USING (turn_number(id) % 2 = 0);
ALTER FUNCTION turn_number(uuid) SET search_path = pg_catalog, public;
SET ROLE regress_writer;
CALL graph_kernel.backfill_content_hashes();
RESET ROLE;
GRANT UPDATE (content_hash) ON parts TO regress_writer;
SET ROLE regress_writer;
SET client_min_messages = warning;
CALL graph_kernel.backfill_content_hashes();
SELECT count(*) FROM graph_content_audit();
RESET ROLE;
SELECT turn_number(turn_id) AS left_over FROM graph_content_audit();
-- Columns that are not there are named.
SELECT graph_kernel.bind_tables('hashed', 'memory_turn_edges', '{"turns": {"content_text": null}}') IS NOT NULL AS bound;
SELECT * FROM test_error('SELECT * FROM graph_content_audit()');
ALTER TABLE hashed DROP COLUMN content_hash CASCADE;
SELECT graph_kernel.bind_tables('hashed', 'memory_turn_edges') IS NOT NULL AS bound;
SELECT * FROM test_error('SELECT * FROM graph_content_audit()');

ALTER FUNCTION turn_number(uuid) RESET search_path;
SELECT graph_kernel.unbind_tables();
DROP TABLE hashed, notes, parts, bare CASCADE;
DROP OWNED BY regress_writer;
DROP ROLE regress_writer;
-- The graph of the other tests was true from the start.
SELECT count(*) FROM graph_content_audit();
