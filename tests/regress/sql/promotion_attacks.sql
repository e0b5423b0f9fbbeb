-- Promise: whoever may do anything with a table that promotes, save owning it, gets no row in that is not admissible.
CREATE TABLE atoms (
    id int PRIMARY KEY,
    statement text,
    slice json,
    turns uuid[],
    slice_id text GENERATED ALWAYS AS (slice ->> 'slice_id') STORED
);
CREATE CONSTRAINT TRIGGER admissible AFTER INSERT OR UPDATE ON atoms NOT DEFERRABLE
    FOR EACH ROW EXECUTE FUNCTION graph_require_admissible('slice', 'turns');
ALTER TABLE atoms ENABLE ALWAYS TRIGGER admissible;
CREATE TABLE exports AS SELECT 1 AS id, graph_slice(turn(2)) AS slice;
INSERT INTO atoms (id, statement, slice, turns) SELECT id, 'promoted', slice, ARRAY[turn(2)] FROM exports;
CREATE ROLE regress_attacker;
GRANT ALL ON atoms, exports TO regress_attacker;
GRANT CREATE ON SCHEMA public TO regress_attacker;
SET ROLE regress_attacker;

-- It is not replaced, renamed, disabled or dropped.
SELECT statement, e.code FROM unnest(ARRAY[
    'CREATE OR REPLACE TRIGGER admissible AFTER INSERT OR UPDATE ON atoms FOR EACH ROW WHEN (false) EXECUTE FUNCTION graph_require_admissible(''slice'', ''turns'')',
    'CREATE OR REPLACE CONSTRAINT TRIGGER admissible AFTER INSERT OR UPDATE ON atoms FOR EACH ROW WHEN (false) EXECUTE FUNCTION graph_require_admissible(''slice'', ''turns'')',
    'CREATE CONSTRAINT TRIGGER admissible AFTER INSERT OR UPDATE ON atoms FOR EACH ROW WHEN (false) EXECUTE FUNCTION graph_require_admissible(''slice'', ''turns'')',
    'DROP TRIGGER admissible ON atoms', 'ALTER TABLE atoms DISABLE TRIGGER admissible', 'ALTER TRIGGER admissible ON atoms RENAME TO another',
    'CREATE RULE past AS ON INSERT TO atoms DO INSTEAD NOTHING', 'SET session_replication_role = replica']) AS statement, test_error(statement) AS e;
SET CONSTRAINTS ALL DEFERRED;
SELECT code, detail FROM test_error($$INSERT INTO atoms VALUES (2, 'forged', '{}', ARRAY[turn(2)])$$);

-- A trigger that changes columns that the statement does not name.
CREATE FUNCTION pg_temp.rewrite() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.slice := '{"forged": true}'; NEW.turns := ARRAY[turn(77)]; RETURN NEW; END $$;
CREATE TRIGGER a_rewrite BEFORE INSERT OR UPDATE ON atoms FOR EACH ROW EXECUTE FUNCTION pg_temp.rewrite();
SELECT code, detail FROM test_error('UPDATE atoms SET statement = ''changed''');
SELECT code, detail FROM test_error('INSERT INTO atoms (id, slice, turns) SELECT 2, slice, ARRAY[turn(2)] FROM exports');
DROP FUNCTION pg_temp.rewrite() CASCADE;
CREATE FUNCTION pg_temp.later() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.statement <> 'later' THEN
        UPDATE public.atoms SET statement = 'later', turns = ARRAY[turn(77)] WHERE id = NEW.id;
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER a_later AFTER INSERT OR UPDATE ON atoms FOR EACH ROW EXECUTE FUNCTION pg_temp.later();
SELECT code, detail FROM test_error('UPDATE atoms SET statement = ''changed''');
DROP FUNCTION pg_temp.later() CASCADE;

-- Every way to write.
SELECT statement, e.code, e.detail FROM unnest(ARRAY[
    $$INSERT INTO atoms (id, slice, turns) SELECT 1, slice, ARRAY[turn(2)] FROM exports ON CONFLICT (id) DO UPDATE SET turns = ARRAY[turn(77)]$$,
    $$INSERT INTO atoms (id, slice, turns) SELECT 1, slice, ARRAY[turn(2)] FROM exports ON CONFLICT (id) DO UPDATE SET slice = '{}'$$,
    $$MERGE INTO atoms USING exports AS e ON e.id = atoms.id WHEN MATCHED THEN UPDATE SET turns = ARRAY[turn(77)]$$,
    $$MERGE INTO atoms USING exports AS e ON e.id = 7 WHEN NOT MATCHED THEN INSERT (id, slice, turns) VALUES (7, e.slice, ARRAY[turn(77)])$$,
    $$WITH w AS (UPDATE atoms SET turns = turns || NULL::uuid RETURNING id) SELECT * FROM w$$,
    $$UPDATE atoms SET (slice, turns) = (SELECT replace(slice::text, 'user', 'system')::json, turns)$$,
    $$UPDATE atoms SET slice = NULL$$, $$UPDATE atoms SET turns = NULL$$, $$UPDATE atoms SET slice = replace(slice::text, '{', ' {')::json, turns = '{}'$$,
    $$INSERT INTO atoms (id, slice, turns) SELECT 2, NULL, ARRAY[turn(2)]$$, $$INSERT INTO atoms DEFAULT VALUES$$,
    $$UPDATE atoms SET statement = 'changed'$$, $$INSERT INTO atoms (id, slice, turns) SELECT 3, slice, ARRAY[turn(3), turn(2)] FROM exports$$]) AS statement, test_error(statement) AS e;
CREATE VIEW pg_temp.seen AS SELECT id, slice, turns FROM atoms;
SELECT code, detail FROM test_error($$UPDATE pg_temp.seen SET turns = ARRAY[turn(77)]$$);
SELECT code, detail FROM test_error($$INSERT INTO pg_temp.seen VALUES (8, '{}', ARRAY[turn(2)])$$);
\set VERBOSITY terse
COPY atoms (id, statement, slice, turns) FROM STDIN;
9	copied	{}	{00000000-0000-0000-0000-000000000002}
\.
\set VERBOSITY default
RESET ROLE;
SELECT id, statement, cardinality(turns) AS turns, slice_id = slice ->> 'slice_id' AS same FROM atoms ORDER BY id;

-- ALWAYS: whoever may set session_replication_role gets nothing past it.
GRANT SET ON PARAMETER session_replication_role TO regress_attacker;
SET ROLE regress_attacker;
SET session_replication_role = replica;
SELECT code, detail FROM test_error($$INSERT INTO atoms VALUES (2, 'forged', '{}', ARRAY[turn(2)])$$);
RESET session_replication_role;
RESET ROLE;
REVOKE SET ON PARAMETER session_replication_role FROM regress_attacker;

-- A row that stands as it is read can be corrected in its other columns, whatever the state of its key; a large one too.
-- One that came in while the trigger was disabled stays until its slice or turns are written.
ALTER TABLE atoms ADD note text, ALTER slice SET STORAGE EXTERNAL;
ALTER TABLE atoms DISABLE TRIGGER admissible;
INSERT INTO atoms (id, slice, turns) VALUES (21, json_build_object('large', repeat('x', 100000)), NULL), (22, NULL, NULL);
ALTER TABLE atoms ENABLE ALWAYS TRIGGER admissible;
SELECT graph_kernel.rotate_key(revoke_old => true) IS NOT NULL AS rotated;
SELECT statement, e.code, e.detail FROM unnest(ARRAY[
    'UPDATE atoms SET note = ''corrected''', 'UPDATE atoms SET note = ''again'', turns = turns, slice = slice WHERE id <> 22',
    'UPDATE atoms SET slice = slice::jsonb::json WHERE id = 1', 'UPDATE atoms SET turns = turns[1:1] WHERE id = 1', 'UPDATE atoms SET turns = turns[1:1] WHERE id = 3',
    'UPDATE atoms SET turns = ''{}'' WHERE id = 22', 'UPDATE atoms SET turns = ''{}'' WHERE id = 21', 'UPDATE atoms SET slice = ''{}'' WHERE id = 22',
    'UPDATE atoms SET id = 23 WHERE id = 22']) AS statement, test_error(statement) AS e;
-- Both are compared byte by byte, whatever a collation takes for equal.
-- Not every server is built with ICU.
SELECT EXISTS (SELECT FROM pg_collation WHERE collname = 'und-x-icu') AS icu \gset
\if :icu
CREATE COLLATION regress_blind (provider = icu, locale = 'und-u-ks-level1', deterministic = false);
\else
CREATE COLLATION regress_blind FROM "C";
\endif
CREATE DOMAIN document AS text COLLATE regress_blind;
CREATE DOMAIN turn_id AS uuid;
CREATE TABLE blind (slice document, turn turn_id, turns turn_id[]);
CREATE CONSTRAINT TRIGGER one AFTER INSERT OR UPDATE ON blind NOT DEFERRABLE FOR EACH ROW EXECUTE FUNCTION graph_require_admissible('slice', 'turn');
CREATE CONSTRAINT TRIGGER many AFTER INSERT OR UPDATE ON blind NOT DEFERRABLE FOR EACH ROW EXECUTE FUNCTION graph_require_admissible('slice', 'turns');
INSERT INTO blind SELECT graph_slice(turn(2))::text, turn(2), ARRAY[turn(2)];
SELECT statement, e.code, e.detail FROM unnest(ARRAY[
    $$UPDATE blind SET slice = replace(slice::text COLLATE "C", '"role":"user"', '"role":"USER"')$$, 'UPDATE blind SET turn = turn(77)', 'UPDATE blind SET turn = NULL',
    'UPDATE blind SET turns = ARRAY[turn(2), turn(77)]', 'UPDATE blind SET turn = turn']) AS statement, test_error(statement) AS e;

-- A generated column is read as it is stored.
CREATE TABLE made (base text, turns uuid[], slice json GENERATED ALWAYS AS (base::json) STORED, turn uuid GENERATED ALWAYS AS (turns[1]) STORED);
CREATE CONSTRAINT TRIGGER admissible AFTER INSERT OR UPDATE ON made NOT DEFERRABLE FOR EACH ROW EXECUTE FUNCTION graph_require_admissible('slice', 'turn');
ALTER TABLE made ENABLE ALWAYS TRIGGER admissible;
INSERT INTO made SELECT graph_slice(turn(2))::text, ARRAY[turn(2)];
SELECT statement, e.code, e.detail FROM unnest(ARRAY['UPDATE made SET base = ''{}''', 'UPDATE made SET turns[1] = turn(77)', 'UPDATE made SET turns[2] = turn(77)',
    'INSERT INTO made VALUES (''{}'', ARRAY[turn(2)])']) AS statement, test_error(statement) AS e;
-- What a foreign key writes is checked as well, and a row that moves to another partition as a new one.
CREATE TABLE sources (id uuid PRIMARY KEY);
INSERT INTO sources VALUES (turn(2));
CREATE TABLE referring (slice json, turn uuid REFERENCES sources ON UPDATE CASCADE ON DELETE SET NULL, part int) PARTITION BY LIST (part);
CREATE TABLE referring_1 PARTITION OF referring FOR VALUES IN (1);
CREATE TABLE referring_2 PARTITION OF referring FOR VALUES IN (2);
CREATE CONSTRAINT TRIGGER admissible AFTER INSERT OR UPDATE ON referring NOT DEFERRABLE FOR EACH ROW EXECUTE FUNCTION graph_require_admissible('slice', 'turn');
ALTER TABLE referring ENABLE ALWAYS TRIGGER admissible;
INSERT INTO referring SELECT graph_slice(turn(2)), turn(2), 1;
SELECT code, detail FROM test_error('UPDATE sources SET id = turn(77)');
SELECT code, detail FROM test_error('DELETE FROM sources');
UPDATE referring SET part = 2;
SELECT graph_kernel.rotate_key(revoke_old => true) IS NOT NULL AS rotated;
SELECT code, detail FROM test_error('UPDATE referring SET part = 1');
DROP TABLE made, referring, sources;

-- What stays possible is said.
SELECT check_name, ok, count, detail FROM graph_check() WHERE check_name ~ '^(promotion|trigger|foreign)';
\set ECHO none
SELECT hint FROM graph_check() WHERE check_name IN ('trigger_rights', 'promotion_triggers') AND hint IS NOT NULL \gexec
\set ECHO all
SELECT check_name, ok FROM graph_check() WHERE check_name ~ '^(promotion|trigger|foreign)';
-- Through PUBLIC, by a role that others are members of, on a partition; not for superusers.
SELECT graph_kernel.bind_tables('memory_turns', 'memory_turn_edges', name => 'x\y') IS NOT NULL AS bound;
CREATE ROLE regress_group;
CREATE ROLE regress_super SUPERUSER;
GRANT regress_group TO regress_attacker;
CREATE TABLE parts (id int, slice json, turns uuid[]) PARTITION BY LIST (id);
CREATE TABLE "part ""1" PARTITION OF parts FOR VALUES IN (1);
CREATE CONSTRAINT TRIGGER admissible AFTER INSERT OR UPDATE ON parts NOT DEFERRABLE
    FOR EACH ROW EXECUTE FUNCTION graph_require_admissible('slice', 'turns');
ALTER TABLE parts ENABLE ALWAYS TRIGGER admissible;
CREATE TABLE part_2 PARTITION OF parts FOR VALUES IN (2);
GRANT TRIGGER ON "part ""1" TO regress_group WITH GRANT OPTION;
SET ROLE regress_group;
GRANT TRIGGER ON "part ""1" TO regress_attacker;
RESET ROLE;
GRANT TRIGGER ON atoms TO PUBLIC;
GRANT TRIGGER ON parts TO regress_super;
ALTER TABLE part_2 DISABLE TRIGGER admissible;
CREATE TRIGGER "odd 'one" AFTER UPDATE OF turns ON blind FOR EACH ROW WHEN (false) EXECUTE FUNCTION graph_require_admissible('slice', 'turns', 'roles=a,''b', 'graph=x\y');
CREATE VIEW seen AS SELECT * FROM atoms;
CREATE TRIGGER instead INSTEAD OF INSERT ON seen FOR EACH ROW EXECUTE FUNCTION graph_require_admissible('slice', 'turns');
SELECT count, detail, regexp_replace(hint, 'promotion_\d+', 'promotion_OID', 'g') AS hint FROM graph_check() WHERE check_name ~ '^(promotion|trigger|foreign)' AND NOT ok;
\set ECHO none
SELECT hint FROM graph_check() WHERE check_name ~ '^(promotion|trigger|foreign)' AND NOT ok \gexec
\set ECHO all
SELECT check_name, ok, detail FROM graph_check() WHERE check_name ~ '^(promotion|trigger|foreign)';
SELECT tgname, tgargs, pg_get_triggerdef(oid) FROM pg_trigger WHERE tgrelid = 'blind'::regclass AND tgname ~ 'odd';

-- What functions write is written by superusers too: TRIGGER on it counts, and a trigger that stays when it is revoked.
-- So do REFERENCES, as what a foreign key compares with runs as the owner of the table that it refers to, and such keys.
SELECT graph_kernel.bind_store(graph_kernel.create_slice_store('public'));
CREATE SCHEMA regress_theirs AUTHORIZATION regress_attacker;
GRANT TRIGGER ON slice_store, memory_turns TO regress_attacker;
GRANT REFERENCES (id) ON memory_turns TO regress_attacker;
SET ROLE regress_attacker;
CREATE TABLE regress_theirs.referring (turn uuid REFERENCES memory_turns);
CREATE FUNCTION regress_theirs.own() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN new; END $$;
CREATE TRIGGER "their ""own" BEFORE UPDATE ON slice_store FOR EACH ROW EXECUTE FUNCTION regress_theirs.own();
CREATE TRIGGER own BEFORE INSERT ON memory_turns FOR EACH ROW EXECUTE FUNCTION regress_theirs.own();
RESET ROLE;
SELECT check_name, detail, hint FROM graph_check() WHERE check_name ~ '^(promotion|trigger|foreign)' AND NOT ok;
\set ECHO none
SELECT hint FROM graph_check() WHERE check_name ~ '^(trigger|foreign)' AND NOT ok \gexec
\set ECHO all
SELECT check_name, detail FROM graph_check() WHERE check_name ~ '^(trigger|foreign)' AND NOT ok;
-- What WHEN calls runs likewise, also by a function that runs what it is given; and by its arguments a function of the
-- owner or a superuser writes other columns than it should. Not where none of that is so.
GRANT TRIGGER ON slice_store, memory_turns, atoms TO regress_attacker;
CREATE TABLE noted (slice text, turn uuid, noted text, changed timestamptz, words tsvector);
CREATE CONSTRAINT TRIGGER admissible AFTER INSERT OR UPDATE ON noted NOT DEFERRABLE FOR EACH ROW EXECUTE FUNCTION graph_require_admissible('ref=slice', 'turn');
ALTER TABLE noted ENABLE ALWAYS TRIGGER admissible;
GRANT TRIGGER ON noted TO regress_attacker;
CREATE FUNCTION nothing() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
CREATE FUNCTION set_column() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN jsonb_populate_record(NEW, jsonb_build_object(TG_ARGV[0], 'x')); END $$;
DROP TRIGGER "their ""own" ON slice_store;
DROP TRIGGER own ON memory_turns;
SET ROLE regress_attacker;
CREATE FUNCTION regress_theirs.calls() RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RETURN true; END $$;
CREATE FUNCTION regress_theirs.equal(text, text) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT true';
CREATE OPERATOR regress_theirs.=== (FUNCTION = regress_theirs.equal, LEFTARG = text, RIGHTARG = text);
CREATE VIEW regress_theirs.seen AS SELECT regress_theirs.calls();
CREATE DOMAIN regress_theirs.checked AS text CHECK (regress_theirs.calls());
CREATE DOMAIN regress_theirs.checked_list AS text[] CHECK (regress_theirs.calls());
RESET ROLE;
CREATE TYPE made_of_theirs AS (checked regress_theirs.checked);
CREATE TYPE enumerated AS ENUM ('x', 'y');
SET ROLE regress_attacker;
CREATE TRIGGER a_function BEFORE UPDATE ON slice_store FOR EACH ROW WHEN (regress_theirs.calls()) EXECUTE FUNCTION suppress_redundant_updates_trigger();
CREATE TRIGGER b_function BEFORE UPDATE ON memory_turns FOR EACH ROW WHEN (regress_theirs.calls()) EXECUTE FUNCTION suppress_redundant_updates_trigger();
CREATE TRIGGER c_operator BEFORE UPDATE ON atoms FOR EACH ROW WHEN (NEW.statement OPERATOR(regress_theirs.===) 'x') EXECUTE FUNCTION suppress_redundant_updates_trigger();
CREATE TRIGGER d_domain BEFORE UPDATE ON atoms FOR EACH ROW WHEN (NEW.statement::regress_theirs.checked <> 'x') EXECUTE FUNCTION suppress_redundant_updates_trigger();
CREATE TRIGGER d_list BEFORE UPDATE ON atoms FOR EACH ROW WHEN (NEW.statement::regress_theirs.checked_list IS NULL) EXECUTE FUNCTION suppress_redundant_updates_trigger();
CREATE TRIGGER d_row BEFORE UPDATE ON atoms FOR EACH ROW WHEN (NEW.statement::made_of_theirs IS NULL) EXECUTE FUNCTION suppress_redundant_updates_trigger();
CREATE TRIGGER e_given BEFORE UPDATE ON memory_turns FOR EACH ROW WHEN (query_to_xml('SELECT regress_theirs.calls()', true, true, '') IS NOT NULL) EXECUTE FUNCTION suppress_redundant_updates_trigger();
CREATE TRIGGER f_seen BEFORE UPDATE ON memory_turns FOR EACH ROW WHEN (table_to_xml('regress_theirs.seen', true, true, '') IS NOT NULL) EXECUTE FUNCTION set_column('summary');
CREATE TRIGGER g_bounds BEFORE UPDATE ON memory_turns FOR EACH ROW WHEN (satisfies_hash_partition('memory_turns'::regclass, 2, 0, NEW.id)) EXECUTE FUNCTION suppress_redundant_updates_trigger();
CREATE TRIGGER g_hash BEFORE UPDATE ON memory_turns FOR EACH ROW EXECUTE FUNCTION graph_content_hash_trigger('session_id', 'content_text');
CREATE TRIGGER h_column BEFORE UPDATE ON memory_turns FOR EACH ROW EXECUTE FUNCTION set_column('role');
CREATE TRIGGER i_store BEFORE INSERT ON slice_store FOR EACH ROW EXECUTE FUNCTION graph_content_hash_trigger('kept_by', 'key');
CREATE TRIGGER j_column BEFORE INSERT ON noted FOR EACH ROW EXECUTE FUNCTION set_column('slice');
CREATE TRIGGER o_form BEFORE INSERT OR UPDATE ON memory_turns FOR EACH ROW WHEN (false) EXECUTE FUNCTION graph_content_hash_trigger('content_text', 'content_hash');
CREATE TRIGGER p_empty BEFORE INSERT OR UPDATE ON memory_turns FOR EACH ROW EXECUTE FUNCTION graph_content_hash_trigger('content_text', 'content_hash', '');
CREATE CONSTRAINT TRIGGER q_store AFTER INSERT OR UPDATE ON slice_store NOT DEFERRABLE FOR EACH ROW EXECUTE FUNCTION graph_require_admissible('kept_by', 'turns');
-- What is long is named without a look at it.
DO $$
BEGIN
    EXECUTE format('CREATE TRIGGER r_long BEFORE UPDATE ON atoms FOR EACH ROW WHEN (NEW.statement <> %L) EXECUTE FUNCTION suppress_redundant_updates_trigger()',
                   (SELECT string_agg(md5(i::text), '') FROM generate_series(1, 1000) AS i));
    EXECUTE format('CREATE TRIGGER s_long BEFORE UPDATE ON atoms FOR EACH ROW WHEN (NEW.statement <> %L) EXECUTE FUNCTION suppress_redundant_updates_trigger()',
                   repeat('x', 100000));
    EXECUTE format('CREATE TRIGGER t_long BEFORE UPDATE ON atoms FOR EACH ROW EXECUTE FUNCTION set_column(%L, %L)',
                   'statement', repeat('x', 9000));
END $$;
CREATE CONSTRAINT TRIGGER v_promotes AFTER INSERT ON memory_turns NOT DEFERRABLE FOR EACH ROW EXECUTE FUNCTION graph_require_admissible('content_text', 'id');
CREATE TRIGGER u_zeros BEFORE UPDATE ON atoms FOR EACH ROW EXECUTE FUNCTION set_column('a \000 b', 'slice');
-- The columns of a stranger's own table are not those of others.
CREATE TABLE regress_theirs.promoted (noted json, changed uuid);
CREATE CONSTRAINT TRIGGER p AFTER INSERT OR UPDATE ON regress_theirs.promoted NOT DEFERRABLE FOR EACH ROW EXECUTE FUNCTION graph_require_admissible('noted', 'changed');
RESET ROLE;
CREATE TRIGGER k_fit BEFORE UPDATE ON memory_turns FOR EACH ROW WHEN (OLD.* IS DISTINCT FROM NEW.* AND pg_trigger_depth() < 3) EXECUTE FUNCTION suppress_redundant_updates_trigger();
CREATE TRIGGER k_fit_enum BEFORE UPDATE ON noted FOR EACH ROW WHEN (OLD.noted::enumerated = ANY ('{x,y}'::enumerated[])) EXECUTE FUNCTION set_column('changed');
CREATE TRIGGER l_fit BEFORE UPDATE ON noted FOR EACH ROW WHEN (OLD.noted = ANY ('{a,b}')) EXECUTE FUNCTION set_column('changed');
CREATE TRIGGER m_fit BEFORE UPDATE ON noted FOR EACH ROW EXECUTE FUNCTION tsvector_update_trigger('words', 'pg_catalog.english', 'noted');
CREATE TRIGGER n_fit AFTER UPDATE ON noted REFERENCING OLD TABLE AS o FOR EACH STATEMENT EXECUTE FUNCTION nothing('all', 'of it');
\set ECHO none
SELECT hint FROM graph_check() WHERE check_name = 'trigger_rights' AND NOT ok \gexec
\set ECHO all
SELECT check_name, detail FROM graph_check() WHERE check_name ~ '^(trigger|foreign)' AND NOT ok;
SET client_min_messages = warning;
DROP TABLE noted;
DROP FUNCTION set_column CASCADE;
DROP FUNCTION nothing;
DROP TRIGGER g_bounds ON memory_turns;
DROP TRIGGER g_hash ON memory_turns;
DROP TRIGGER o_form ON memory_turns;
DROP TRIGGER v_promotes ON memory_turns;
DROP TRIGGER p_empty ON memory_turns;
DROP TRIGGER q_store ON slice_store;
DROP TRIGGER r_long ON atoms;
DROP TRIGGER s_long ON atoms;
DROP TRIGGER i_store ON slice_store;
DROP TRIGGER e_given ON memory_turns;
DROP TRIGGER k_fit ON memory_turns;
DROP TRIGGER d_row ON atoms;
DROP SCHEMA regress_theirs CASCADE;
DROP TYPE made_of_theirs, enumerated;
RESET client_min_messages;
SELECT check_name, detail FROM graph_check() WHERE check_name ~ '^(trigger|foreign)' AND NOT ok;
SELECT graph_kernel.unbind_store();
DROP TABLE slice_store;
-- Arguments that are columns of expressions and of parents, on a partition of what promotes; what the recorder reads, and what a bound table is a partition of.
CREATE FUNCTION set_column() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
CREATE TABLE mapped (id uuid PRIMARY KEY, raw jsonb, "Par ent" uuid, named text, spare text, made_of text, made text GENERATED ALWAYS AS (made_of || 'x') STORED) PARTITION BY HASH (id);
CREATE TABLE mapped_part PARTITION OF mapped FOR VALUES WITH (MODULUS 1, REMAINDER 0);
SELECT graph_kernel.bind_tables('mapped_part', columns => '{"turns": {"content_text": {"expression": "Raw ->> ''t''"}, "role": {"expression": "coalesce(named, ''user'')"}, "phase": "made", "salience": null, "parents": [{"parent": "Par ent", "edge_type": "reply"}]}}', name => 'mapped') IS NOT NULL AS bound;
CREATE TRIGGER a_raw BEFORE INSERT ON mapped_part FOR EACH ROW EXECUTE FUNCTION set_column('raw');
CREATE TRIGGER b_parent BEFORE INSERT ON mapped_part FOR EACH ROW EXECUTE FUNCTION set_column('Par ent');
CREATE TRIGGER c_named BEFORE INSERT ON mapped_part FOR EACH ROW EXECUTE FUNCTION set_column('x', 'named');
CREATE TRIGGER c_of_made BEFORE INSERT ON mapped_part FOR EACH ROW EXECUTE FUNCTION set_column('made_of');
CREATE TRIGGER d_fit BEFORE INSERT ON mapped_part FOR EACH ROW EXECUTE FUNCTION set_column('spare', '');
GRANT REFERENCES ON mapped TO regress_attacker;
CREATE TABLE promoted (id int, slice json, turns uuid[]) PARTITION BY LIST (id);
CREATE TABLE promoted_part PARTITION OF promoted FOR VALUES IN (1);
CREATE CONSTRAINT TRIGGER p AFTER INSERT OR UPDATE ON promoted NOT DEFERRABLE FOR EACH ROW EXECUTE FUNCTION graph_require_admissible('slice', 'turns');
CREATE TRIGGER e_turns BEFORE INSERT ON promoted_part FOR EACH ROW EXECUTE FUNCTION set_column('turns');
-- What a table that promotes is a partition of.
CREATE TABLE whole (id int, slice json, turns uuid[]) PARTITION BY LIST (id);
CREATE TABLE whole_part PARTITION OF whole FOR VALUES IN (1);
CREATE CONSTRAINT TRIGGER p AFTER INSERT OR UPDATE ON whole_part NOT DEFERRABLE FOR EACH ROW EXECUTE FUNCTION graph_require_admissible('slice', 'turns');
GRANT TRIGGER ON whole TO regress_attacker;
SET ROLE regress_attacker;
CREATE FUNCTION pg_temp.own() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
CREATE TRIGGER o BEFORE INSERT ON whole FOR EACH STATEMENT EXECUTE FUNCTION pg_temp.own();
RESET ROLE;
SELECT graph_kernel.create_recorder_table();
SELECT graph_kernel.bind_recorder_table('recorder_events');
GRANT REFERENCES ON recorder_events TO regress_attacker;
SET graph_kernel.graph = mapped;
SELECT check_name, detail FROM graph_check() WHERE check_name ~ '^(trigger|foreign)' AND NOT ok;
RESET graph_kernel.graph;
SET client_min_messages = warning;
SELECT graph_kernel.unbind_recorder_table();
SELECT graph_kernel.unbind_tables('mapped');
DROP TABLE mapped, promoted, whole, recorder_events;
DROP FUNCTION pg_temp.own;
DROP FUNCTION set_column;
RESET client_min_messages;

-- A plain trigger that partitions have from their table.
CREATE TABLE plain_parts (id int, slice json, turns uuid[]) PARTITION BY LIST (id);
CREATE TABLE plain_part PARTITION OF plain_parts FOR VALUES IN (1);
CREATE TRIGGER admissible AFTER INSERT OR UPDATE ON plain_parts FOR EACH ROW EXECUTE FUNCTION graph_require_admissible('slice', 'turns');
SELECT count, regexp_replace(hint, 'promotion_\d+', 'promotion_OID', 'g') AS hint FROM graph_check() WHERE check_name = 'promotion_triggers';
\set ECHO none
SELECT hint FROM graph_check() WHERE check_name = 'promotion_triggers' \gexec
\set ECHO all
SELECT ok FROM graph_check() WHERE check_name = 'promotion_triggers';
SELECT tgrelid::regclass, tgenabled, tgconstraint <> 0 AS is_constraint FROM pg_trigger WHERE tgname = 'admissible' AND tgrelid::regclass::text ~ 'plain' ORDER BY 1;
DROP TABLE plain_parts;
-- There is no command for partitions of an owner who is not trusted: it would compute the constants of their key.
CREATE TABLE their_parts (id int, slice json, turns uuid[]) PARTITION BY LIST (id);
CREATE TRIGGER admissible AFTER INSERT OR UPDATE ON their_parts FOR EACH ROW EXECUTE FUNCTION graph_require_admissible('slice', 'turns');
ALTER TABLE their_parts OWNER TO regress_attacker;
CREATE TABLE their_statements (id int, slice json, turns uuid[]) PARTITION BY LIST (id);
CREATE TABLE their_statement PARTITION OF their_statements DEFAULT;
CREATE TRIGGER admissible AFTER INSERT OR UPDATE ON their_statements FOR EACH STATEMENT EXECUTE FUNCTION graph_require_admissible('slice', 'turns');
ALTER TABLE their_statement OWNER TO regress_attacker;
SELECT detail, hint IS NULL AS without_hint FROM graph_check() WHERE check_name ~ 'promotion' AND detail ~ 'their';
ALTER TABLE their_statement OWNER TO CURRENT_USER;
SELECT detail, hint IS NULL AS without_hint FROM graph_check() WHERE check_name = 'promotion_children' AND detail ~ 'their';
DROP TABLE their_parts, their_statements;
-- Whoever holds TRIGGER takes the name that the command uses; psql goes on after each error, in a transaction too.
CREATE TABLE taken (id int, slice json, turns uuid[]);
CREATE TRIGGER admissible AFTER INSERT OR UPDATE ON taken FOR EACH ROW EXECUTE FUNCTION graph_require_admissible('slice', 'turns');
SELECT hint AS command, substring(hint FROM 'promotion_\d+_1') AS free
FROM graph_check() WHERE check_name = 'promotion_triggers' \gset
CREATE FUNCTION nothing() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
CREATE TRIGGER :"free" AFTER INSERT ON taken FOR EACH ROW EXECUTE FUNCTION nothing();
\set ON_ERROR_ROLLBACK on
\set VERBOSITY sqlstate
:command
\set VERBOSITY default
\set ON_ERROR_ROLLBACK off
SELECT regexp_replace(tgname, '\d+', 'OID') AS name, tgfoid::regproc, tgenabled FROM pg_trigger WHERE tgrelid = 'taken'::regclass ORDER BY tgname;
DROP TABLE taken;
DROP FUNCTION nothing;
-- A trigger with bad arguments refuses every row: it is named, and no command repeats them. Those that are right are not.
CREATE TABLE argued (slice json, turns uuid[], "é" uuid, other int);
CREATE TABLE argued_child () INHERITS (argued);
SELECT format('CREATE CONSTRAINT TRIGGER %s AFTER INSERT OR UPDATE ON argued NOT DEFERRABLE FOR EACH ROW EXECUTE FUNCTION graph_require_admissible(%s);'
              ' ALTER TABLE argued ENABLE ALWAYS TRIGGER %1$s;', name, arguments)
FROM (VALUES ('right_1', '''slice'', ''turns'''), ('right_2', '''slice'', ''é'', ''roles=a,b'', ''graph=default'''),
             ('right_3', '''slice'', ''turns'', ''no_rls'''), ('right_4', '''slice'', ''turns'', ''graph=default'''),
             ('bad_1', '''slice'', ''turn'''), ('bad_2', '''nix'', ''turns'', ''role=a'''), ('bad_3', '''slice'', ''turns'', ''graph=nix'''),
             ('bad_4', '''slice'', ''other'', ''roles=''')) AS v (name, arguments) \gexec
SELECT count, detail FROM graph_check() WHERE check_name = 'promotion_triggers';
SELECT hint FROM graph_check() WHERE check_name = 'promotion_triggers';
SELECT hint FROM graph_check() WHERE check_name = 'promotion_children' AND hint ~ 'bad_';
DROP TABLE argued CASCADE;
-- However long their arguments are, many triggers of many tables do not add up: a long call is in no command.
CREATE TABLE lengthy (k text, ids uuid[]);
DO $$
BEGIN
    FOR i IN 1..30 LOOP EXECUTE format('CREATE TABLE lengthy_%s () INHERITS (lengthy)', i); END LOOP;
    FOR i IN 1..10 LOOP
        EXECUTE format('CREATE CONSTRAINT TRIGGER t%s AFTER INSERT OR UPDATE ON lengthy NOT DEFERRABLE FOR EACH ROW'
                       ' EXECUTE FUNCTION graph_require_admissible(%L, %L, %L)', i, 'ref=k', 'ids',
                       'roles=' || repeat(E'\\', 7900) || i);
    END LOOP;
END $$;
SELECT check_name, count(*), count(hint), max(length(hint)) < 10000 AS is_short FROM graph_check() WHERE check_name IN ('promotion_children', 'promotion_triggers') GROUP BY 1 ORDER BY 1;
SET client_min_messages = warning;
DROP TABLE lengthy CASCADE;
RESET client_min_messages;
SELECT graph_kernel.unbind_tables('x\y');

SET client_min_messages = warning;
DROP TABLE atoms, exports, blind, parts CASCADE;
DROP DOMAIN document, turn_id;
DROP COLLATION regress_blind;
REVOKE ALL ON SCHEMA public FROM regress_attacker;
DROP ROLE regress_attacker, regress_group, regress_super;
