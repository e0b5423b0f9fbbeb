-- Promise: with graph_require_admissible() a table takes a row only with a slice that verifies and turns inside it. Played by an attacker.
CREATE TABLE semantic_atoms (
    id int PRIMARY KEY,
    statement text,
    slice json,
    turns uuid[]
);
CREATE CONSTRAINT TRIGGER admissible AFTER INSERT OR UPDATE ON semantic_atoms NOT DEFERRABLE
    FOR EACH ROW EXECUTE FUNCTION graph_require_admissible('slice', 'turns');
ALTER TABLE semantic_atoms ENABLE ALWAYS TRIGGER admissible;

-- The slices an attacker may have got hold of.
CREATE TABLE held (name text PRIMARY KEY, export json NOT NULL);
INSERT INTO held SELECT 'good', graph_slice(turn(2));
INSERT INTO held SELECT 'other', graph_slice(turn(2), '{"max_nodes": 2}');
INSERT INTO held SELECT 'edited', replace(export::text, '"role":"user"', '"role":"system"')::json FROM held WHERE name = 'good';
INSERT INTO held SELECT 'without attestation', (export::jsonb || '{"attestation": null}')::json FROM held WHERE name = 'good';
INSERT INTO held SELECT 'tokens of another', (g.export::jsonb || jsonb_build_object('attestation', o.export -> 'attestation'))::json
    FROM held AS g, held AS o WHERE g.name = 'good' AND o.name = 'other';
BEGIN;
UPDATE memory_turns SET role = 'system' WHERE id = turn(1);
CREATE TEMP TABLE smuggled AS SELECT graph_slice(turn(2))::text AS export;
SELECT export::json #>> '{attestation,status}' AS status FROM smuggled \gset
SELECT export AS uncommitted FROM smuggled \gset
ROLLBACK;
INSERT INTO held VALUES ('uncommitted', :'uncommitted');
SELECT h.name, v.valid, v.reason FROM held AS h, graph_verify(h.export) AS v ORDER BY h.name;

-- A row made of a held slice and turns by their numbers.
CREATE FUNCTION atom(id int, slice text, VARIADIC turns int[]) RETURNS SETOF semantic_atoms
LANGUAGE sql STABLE
AS $$ SELECT atom.id, 'statement', (SELECT h.export FROM held AS h WHERE h.name = atom.slice),
             (SELECT array_agg(turn(t) ORDER BY n) FROM unnest(atom.turns) WITH ORDINALITY AS u (t, n)) $$;

-- What is admissible is taken.
INSERT INTO semantic_atoms SELECT * FROM atom(1, 'good', 2);
INSERT INTO semantic_atoms SELECT * FROM atom(2, 'good', 5, 1, 3, 3);
INSERT INTO semantic_atoms SELECT * FROM atom(3, 'other', 2);

-- Nothing else is.
SELECT code, message, detail FROM test_error($$ INSERT INTO semantic_atoms VALUES (9, 'no slice', NULL, ARRAY[turn(2)]) $$);
SELECT code, message, detail FROM test_error($$ INSERT INTO semantic_atoms VALUES (9, 'not a slice', '{}', ARRAY[turn(2)]) $$);
SELECT code, message FROM test_error($$ INSERT INTO semantic_atoms SELECT * FROM atom(9, 'edited', 2) $$);
SELECT code, message FROM test_error($$ INSERT INTO semantic_atoms SELECT * FROM atom(9, 'without attestation', 2) $$);
SELECT code, message FROM test_error($$ INSERT INTO semantic_atoms SELECT * FROM atom(9, 'tokens of another', 2) $$);
SELECT code, message FROM test_error($$ INSERT INTO semantic_atoms SELECT * FROM atom(9, 'uncommitted', 2) $$);
SELECT code, message FROM test_error($$ INSERT INTO semantic_atoms SELECT * FROM atom(9, 'good', 77) $$);
SELECT code, message FROM test_error($$ INSERT INTO semantic_atoms SELECT * FROM atom(9, 'good', 2, 77) $$);
SELECT code, message FROM test_error($$ INSERT INTO semantic_atoms SELECT * FROM atom(9, 'other', 1, 2, 3) $$);
SELECT code, message FROM test_error($$ INSERT INTO semantic_atoms SELECT * FROM atom(9, 'good', 2, NULL) $$);
SELECT code, message FROM test_error($$ INSERT INTO semantic_atoms SELECT 9, '', export, NULL FROM held WHERE name = 'good' $$);
SELECT code, message FROM test_error($$ INSERT INTO semantic_atoms SELECT 9, '', export, '{}' FROM held WHERE name = 'good' $$);
SELECT code, message FROM test_error($$ INSERT INTO semantic_atoms SELECT 9, '', export, ARRAY[[turn(2), turn(3)], [turn(77), turn(4)]] FROM held WHERE name = 'good' $$);
SELECT code, message FROM test_error($$ INSERT INTO semantic_atoms SELECT 9, '', export, ARRAY[[turn(2), NULL]] FROM held WHERE name = 'good' $$);
-- Slicing and promoting in one statement is fine, also after a write elsewhere; not after one to the graph.
INSERT INTO semantic_atoms SELECT 4, '', graph_slice(turn(4)), ARRAY[turn(4)];
BEGIN;
INSERT INTO memory_turns (id) VALUES (turn(99));
SELECT code, message FROM test_error($$ INSERT INTO semantic_atoms SELECT 9, '', graph_slice(turn(99)), ARRAY[turn(99)] $$);
ROLLBACK;

-- A good row does not turn bad.
SELECT code, message FROM test_error($$ UPDATE semantic_atoms SET turns = turns || turn(77) WHERE id = 1 $$);
SELECT code, message FROM test_error($$ UPDATE semantic_atoms SET turns = NULL $$);
SELECT code, message FROM test_error($$ UPDATE semantic_atoms SET slice = NULL WHERE id = 1 $$);
SELECT code, message FROM test_error($$ UPDATE semantic_atoms SET slice = h.export FROM held AS h WHERE h.name = 'edited' AND id = 1 $$);
UPDATE semantic_atoms SET statement = 'reworded', turns = ARRAY[turn(3)] WHERE id = 1;
SELECT code, message FROM test_error($$ INSERT INTO semantic_atoms SELECT * FROM atom(1, 'good', 2)
    ON CONFLICT (id) DO UPDATE SET turns = ARRAY[turn(77)] $$);
SELECT code, message FROM test_error($$ WITH w AS (INSERT INTO semantic_atoms SELECT * FROM atom(9, 'edited', 2) RETURNING id) SELECT id FROM w $$);

-- COPY goes past no trigger.
\set VERBOSITY terse
COPY semantic_atoms FROM STDIN;
9	copied	{}	{00000000-0000-0000-0000-000000000002}
\.
\set VERBOSITY default

-- Triggers that run before and change the row are checked after; one that runs after is checked again.
CREATE FUNCTION widen() RETURNS trigger LANGUAGE plpgsql
AS $$ BEGIN NEW.turns := NEW.turns || turn(77); RETURN NEW; END $$;
CREATE TRIGGER widen BEFORE INSERT ON semantic_atoms FOR EACH ROW EXECUTE FUNCTION widen();
SELECT code, message FROM test_error($$ INSERT INTO semantic_atoms SELECT * FROM atom(9, 'good', 2) $$);
DROP TRIGGER widen ON semantic_atoms;
CREATE FUNCTION widen_later() RETURNS trigger LANGUAGE plpgsql
AS $$ BEGIN UPDATE semantic_atoms SET turns = turns || turn(77) WHERE id = NEW.id AND cardinality(turns) = 1; RETURN NULL; END $$;
CREATE TRIGGER zz_widen_later AFTER INSERT ON semantic_atoms FOR EACH ROW EXECUTE FUNCTION widen_later();
SELECT code, message FROM test_error($$ INSERT INTO semantic_atoms SELECT * FROM atom(9, 'good', 2) $$);
DROP TRIGGER zz_widen_later ON semantic_atoms;

-- A session's settings change nothing.
CREATE SCHEMA decoys;
CREATE FUNCTION decoys.graph_verify(json) RETURNS TABLE (valid boolean, reason text, kid text, role text, rls boolean)
    LANGUAGE sql AS $$ SELECT true, 'ok', '', '', false $$;
CREATE FUNCTION decoys.cardinality(uuid[]) RETURNS int LANGUAGE sql AS 'SELECT 1';
CREATE TEMP TABLE pg_roles (x int);
SET search_path = decoys, pg_temp, public, pg_catalog;
SET transform_null_equals = on;
SET plpgsql.extra_errors = 'all';
SELECT code, message FROM test_error($$ INSERT INTO semantic_atoms SELECT * FROM atom(9, 'edited', 2) $$);
SELECT code, message FROM test_error($$ INSERT INTO semantic_atoms SELECT * FROM atom(9, 'good', 77) $$);
INSERT INTO semantic_atoms SELECT * FROM atom(5, 'good', 2);
RESET plpgsql.extra_errors;
RESET transform_null_equals;
RESET search_path;
SET client_min_messages = warning;
DROP SCHEMA decoys CASCADE;
DROP TABLE pg_roles, smuggled;
RESET client_min_messages;

SELECT id, statement, array_length(turns, 1) AS turns FROM semantic_atoms ORDER BY id;

-- The slice may be stored as json, jsonb or text; the columns may have any name.
CREATE TABLE atoms_jsonb ("the Slice" jsonb, "from" uuid[]);
CREATE CONSTRAINT TRIGGER admissible AFTER INSERT OR UPDATE ON atoms_jsonb NOT DEFERRABLE
    FOR EACH ROW EXECUTE FUNCTION graph_require_admissible('the Slice', 'from');
ALTER TABLE atoms_jsonb ENABLE ALWAYS TRIGGER admissible;
INSERT INTO atoms_jsonb SELECT export, ARRAY[turn(2)] FROM held WHERE name = 'good';
SELECT code, message FROM test_error($$ INSERT INTO atoms_jsonb SELECT export, ARRAY[turn(2)] FROM held WHERE name = 'edited' $$);
-- One whose numbers are long is not written out, nor taken as another such.
SELECT code, message, detail FROM test_error($$ INSERT INTO atoms_jsonb SELECT jsonb_agg('1e131071'::jsonb), ARRAY[turn(2)] FROM generate_series(1, 9000) $$);
ALTER TABLE atoms_jsonb DISABLE TRIGGER admissible;
INSERT INTO atoms_jsonb SELECT jsonb_agg('1e131071'::jsonb), ARRAY[turn(2)] FROM generate_series(1, 9000);
ALTER TABLE atoms_jsonb ENABLE ALWAYS TRIGGER admissible;
SELECT code, detail FROM test_error($$ UPDATE atoms_jsonb SET "the Slice" = "the Slice" || '[1]' WHERE jsonb_typeof("the Slice") = 'array' $$);
UPDATE atoms_jsonb SET "the Slice" = "the Slice" WHERE jsonb_typeof("the Slice") = 'array';
DELETE FROM atoms_jsonb WHERE jsonb_typeof("the Slice") = 'array';
CREATE TABLE atoms_text (slice text, turns uuid[]);
CREATE CONSTRAINT TRIGGER admissible AFTER INSERT OR UPDATE ON atoms_text NOT DEFERRABLE
    FOR EACH ROW EXECUTE FUNCTION graph_require_admissible('slice', 'turns');
ALTER TABLE atoms_text ENABLE ALWAYS TRIGGER admissible;
INSERT INTO atoms_text SELECT export::text, ARRAY[turn(2)] FROM held WHERE name = 'good';
SELECT code, message FROM test_error($$ INSERT INTO atoms_text SELECT export::text, ARRAY[turn(2)] FROM held WHERE name = 'edited' $$);
SELECT code, message FROM test_error($$ INSERT INTO atoms_text VALUES ('no json', ARRAY[turn(2)]) $$);
SELECT code, message FROM test_error($$ INSERT INTO atoms_text VALUES ('', ARRAY[turn(2)]) $$);

-- Partitions have the trigger of their parent.
CREATE TABLE atoms_parted (id int, slice json, turns uuid[]) PARTITION BY LIST (id);
CREATE TABLE atoms_parted_1 PARTITION OF atoms_parted FOR VALUES IN (1);
CREATE CONSTRAINT TRIGGER admissible AFTER INSERT OR UPDATE ON atoms_parted NOT DEFERRABLE
    FOR EACH ROW EXECUTE FUNCTION graph_require_admissible('slice', 'turns');
ALTER TABLE atoms_parted ENABLE ALWAYS TRIGGER admissible;
CREATE TABLE atoms_parted_2 PARTITION OF atoms_parted FOR VALUES IN (2);
INSERT INTO atoms_parted SELECT 1, export, ARRAY[turn(2)] FROM held WHERE name = 'good';
SELECT code FROM test_error($$ INSERT INTO atoms_parted VALUES (1, '{}', ARRAY[turn(2)]) $$);
SELECT code FROM test_error($$ INSERT INTO atoms_parted_1 VALUES (1, '{}', ARRAY[turn(2)]) $$);
SELECT code FROM test_error($$ INSERT INTO atoms_parted_2 VALUES (2, '{}', ARRAY[turn(2)]) $$);
SELECT code FROM test_error($$ UPDATE atoms_parted SET id = 2, turns = ARRAY[turn(77)] $$);
UPDATE atoms_parted SET id = 2;

-- Trust: no_rls is the default, roles=… names whose slices are taken.
CREATE ROLE regress_trusted;
CREATE ROLE regress_stranger;
GRANT SELECT ON memory_turns, memory_turn_edges TO regress_trusted, regress_stranger;
GRANT INSERT ON held, semantic_atoms TO regress_trusted, regress_stranger;
SET ROLE regress_trusted;
INSERT INTO held SELECT 'trusted', graph_slice(turn(2));
RESET ROLE;
CREATE POLICY filtered ON memory_turns USING (id::text IS DISTINCT FROM current_setting('test.hidden', true));
ALTER TABLE memory_turns ENABLE ROW LEVEL SECURITY;
SET test.hidden = '00000000-0000-0000-0000-000000000004';
SET ROLE regress_stranger;
INSERT INTO held SELECT 'filtered', graph_slice(turn(2));
SET ROLE regress_trusted;
INSERT INTO held SELECT 'filtered by trusted', graph_slice(turn(2));
RESET ROLE;
RESET test.hidden;
SELECT h.name, v.reason, v.role, v.rls FROM held AS h, graph_verify(h.export) AS v WHERE h.name ~ 'filtered|trusted' ORDER BY h.name;
SELECT code, message, hint FROM test_error($$ INSERT INTO semantic_atoms SELECT * FROM atom(9, 'filtered', 2) $$);
INSERT INTO semantic_atoms SELECT * FROM atom(6, 'trusted', 2);
-- To say that no row security applied is a forgery.
SELECT code, message, hint FROM test_error($$ INSERT INTO semantic_atoms
    SELECT 9, '', replace(export::text, '"rls":true', '"rls":false')::json, ARRAY[turn(2)] FROM held WHERE name = 'filtered' $$);

CREATE TABLE atoms_of_roles (slice json, turns uuid[]);
CREATE CONSTRAINT TRIGGER admissible AFTER INSERT OR UPDATE ON atoms_of_roles NOT DEFERRABLE
    FOR EACH ROW EXECUTE FUNCTION graph_require_admissible('slice', 'turns', 'roles=regress_trusted,regress_other');
ALTER TABLE atoms_of_roles ENABLE ALWAYS TRIGGER admissible;
INSERT INTO atoms_of_roles SELECT export, ARRAY[turn(2)] FROM held WHERE name = 'trusted';
INSERT INTO atoms_of_roles SELECT export, ARRAY[turn(2)] FROM held WHERE name = 'filtered by trusted';
SELECT code, message, hint FROM test_error($$ INSERT INTO atoms_of_roles SELECT export, ARRAY[turn(2)] FROM held WHERE name = 'filtered' $$);
SELECT code, message, hint FROM test_error($$ INSERT INTO atoms_of_roles SELECT replace(export::text, 'regress_stranger', 'regress_trusted')::json,
    ARRAY[turn(2)] FROM held WHERE name = 'filtered' $$);
-- A turn that the trusted role did not see is not in its slice.
SELECT code, message, hint FROM test_error($$ INSERT INTO atoms_of_roles SELECT export, ARRAY[turn(4)] FROM held WHERE name = 'filtered by trusted' $$);

-- Whoever inserts needs no rights on the graph, and brings none.
CREATE FUNCTION insert_held(name text) RETURNS void LANGUAGE sql SECURITY DEFINER
AS $$ INSERT INTO semantic_atoms SELECT 10, '', h.export, ARRAY[turn(2)] FROM held AS h WHERE h.name = insert_held.name $$;
REVOKE SELECT ON memory_turns FROM regress_stranger;
SET ROLE regress_stranger;
SELECT code, message FROM test_error($$ SELECT insert_held('filtered') $$);
SELECT insert_held('good');
RESET ROLE;

-- Triggers that could be got round are refused: at the wrong time, for statements, for one event, replaceable ones, with OF
-- or WHEN, deferrable ones.
CREATE TABLE misused (slice json, turns uuid[], other text, "Made" text GENERATED ALWAYS AS ('x') STORED);
CREATE VIEW misused_view AS SELECT * FROM misused;
CREATE FUNCTION misuse(definition text, arguments text DEFAULT '''slice'', ''turns''') RETURNS TABLE (code text, message text, detail text, hint text) LANGUAGE plpgsql
AS $$
BEGIN
    EXECUTE format('CREATE %s EXECUTE FUNCTION graph_require_admissible(%s)', definition, arguments);
    RETURN QUERY SELECT e.code, e.message, e.detail, e.hint FROM test_error('INSERT INTO misused SELECT h.export, ARRAY[turn(2)] FROM held AS h WHERE h.name = ''good''') AS e;
    DROP TRIGGER misuse ON misused;
END
$$;
SELECT definition, m.code, m.detail FROM unnest(ARRAY[
    'TRIGGER misuse BEFORE INSERT OR UPDATE ON misused FOR EACH ROW', 'TRIGGER misuse AFTER INSERT OR UPDATE ON misused', 'TRIGGER misuse BEFORE INSERT ON misused',
    'TRIGGER misuse AFTER INSERT OR UPDATE ON misused FOR EACH ROW', 'TRIGGER misuse AFTER INSERT OR UPDATE OF slice, turns ON misused FOR EACH ROW',
    'CONSTRAINT TRIGGER misuse AFTER INSERT ON misused FOR EACH ROW',
    'CONSTRAINT TRIGGER misuse AFTER INSERT OR UPDATE OR DELETE ON misused FOR EACH ROW',
    'CONSTRAINT TRIGGER misuse AFTER INSERT OR UPDATE OF slice, turns ON misused FOR EACH ROW',
    'CONSTRAINT TRIGGER misuse AFTER INSERT OR UPDATE ON misused FOR EACH ROW WHEN (NEW.other IS NULL)',
    'CONSTRAINT TRIGGER misuse AFTER INSERT OR UPDATE ON misused DEFERRABLE FOR EACH ROW']) AS definition, misuse(definition) AS m;
-- So are arguments that make no sense, and columns that do not hold what they should.
SELECT arguments, m.code, m.message, m.detail, m.hint FROM unnest(ARRAY['', '''slice''', '''slice'', ''turns'', ''graph=it''''s''', '''slice'', ''turns'', ''''', '''slice'', ''turns'', ''roles=''', '''slice'', ''turns'', ''anybody''',
    '''slice'', ''turns'', ''no_rls'', ''x''', '''slice'', ''turns'', ''graph=''', '''slice'', ''turns'', ''graph=default'', ''no_rls''', '''no_such'', ''turns''', '''slice'', ''slice''', '''turns'', ''turns''',
    '''SLICE'', ''turns''', '''to_json'', ''turns''', '''Made'', ''turns''']) AS arguments,
    misuse('CONSTRAINT TRIGGER misuse AFTER INSERT OR UPDATE ON misused FOR EACH ROW', arguments) AS m;
CREATE TRIGGER misuse INSTEAD OF INSERT ON misused_view FOR EACH ROW EXECUTE FUNCTION graph_require_admissible('slice', 'turns');
SELECT code, message, hint FROM test_error($$ INSERT INTO misused_view SELECT export, ARRAY[turn(2)] FROM held WHERE name = 'good' $$);
-- The hint puts one of the right form in its place.
CREATE TABLE "Mis used" ("the Slice" json, turns uuid[]);
CREATE TRIGGER "mis use" BEFORE INSERT ON "Mis used" FOR EACH ROW EXECUTE FUNCTION graph_require_admissible('the Slice', 'turns', 'roles=it''s\');
SELECT hint AS command FROM test_error('INSERT INTO "Mis used" VALUES (NULL, NULL)') \gset
\echo :command
SET client_min_messages = warning;
:command
RESET client_min_messages;
SELECT tgenabled, pg_get_triggerdef(oid) FROM pg_trigger WHERE tgrelid = '"Mis used"'::regclass;
SELECT code, message, hint FROM test_error($$ INSERT INTO "Mis used" SELECT export, ARRAY[turn(2)] FROM held WHERE name = 'good' $$);
DROP TABLE "Mis used";
SELECT code, message FROM test_error('SELECT graph_require_admissible()');
SELECT code, message FROM test_error('SELECT graph_require_admissible_result()');
SELECT count(*) FROM misused;

-- A revoked key promotes nothing more.
SELECT graph_kernel.rotate_key(revoke_old => true) IS NOT NULL AS rotated;
SELECT code, message, hint FROM test_error($$ INSERT INTO semantic_atoms SELECT * FROM atom(9, 'good', 2) $$);
INSERT INTO semantic_atoms SELECT 11, '', graph_slice(turn(2)), ARRAY[turn(2)];

DROP POLICY filtered ON memory_turns;
ALTER TABLE memory_turns DISABLE ROW LEVEL SECURITY;
SET client_min_messages = warning;
DROP FUNCTION insert_held(text), misuse(text, text), atom(int, text, int[]), widen(), widen_later();
DROP TABLE semantic_atoms, atoms_jsonb, atoms_text, atoms_parted, atoms_of_roles, misused, held CASCADE;
REVOKE ALL ON memory_turns, memory_turn_edges FROM regress_trusted, regress_stranger;
DROP ROLE regress_trusted, regress_stranger;
