-- Promise: with graph_require_admissible_result() a table takes a row only with the signed record of a search that may be
-- promoted, and turns that the search retrieved.
ALTER TABLE memory_turns ADD COLUMN embedding real[];
UPDATE memory_turns SET embedding = ARRAY[turn_number(id), 1];
CREATE TABLE found_atoms (id int GENERATED ALWAYS AS IDENTITY, provenance jsonb, turn uuid, note text);
CREATE CONSTRAINT TRIGGER admissible AFTER INSERT OR UPDATE ON found_atoms NOT DEFERRABLE
    FOR EACH ROW EXECUTE FUNCTION graph_require_admissible_result('provenance', 'turn');
ALTER TABLE found_atoms ENABLE ALWAYS TRIGGER admissible;
CREATE TABLE found_many (provenance json, turns uuid[]);
CREATE CONSTRAINT TRIGGER admissible AFTER INSERT OR UPDATE ON found_many NOT DEFERRABLE
    FOR EACH ROW EXECUTE FUNCTION graph_require_admissible_result('provenance', 'turns', 'no_rls', 'graph=default');
ALTER TABLE found_many ENABLE ALWAYS TRIGGER admissible;

-- The searches an attacker may have got hold of.
-- The first row has the record.
SELECT rank, provenance IS NOT NULL AS has_it FROM graph_search_slice('{1,1}', turn(2), limit_count => 3) UNION ALL
SELECT rank, provenance IS NOT NULL FROM graph_search('{1,1}', limit_count => 2);
CREATE TABLE searches AS SELECT 'good' AS name, s.turn_id, first_value(s.provenance) OVER (ORDER BY s.rank) AS provenance
FROM graph_search_slice('{1,1}', turn(2), limit_count => 2) AS s;
INSERT INTO searches SELECT 'global', s.turn_id, first_value(s.provenance) OVER (ORDER BY s.rank) FROM graph_search('{1,1}', limit_count => 2) AS s;
UPDATE memory_turns SET embedding = NULL WHERE id = turn(4);
INSERT INTO searches SELECT 'shortfall', s.turn_id, first_value(s.provenance) OVER (ORDER BY s.rank) FROM graph_search_slice('{1,1}', turn(2), limit_count => 100) AS s;
INSERT INTO searches SELECT 'edited', turn(5), jsonb_set(s.provenance, '{retrieved_turn_ids,0}', to_jsonb(turn(5)::text)) FROM searches AS s WHERE name = 'good' LIMIT 1;
INSERT INTO searches SELECT 'unsigned', turn_id, s.provenance || '{"mac": null}' FROM searches AS s WHERE name = 'good' LIMIT 1;
INSERT INTO searches SELECT 'no longer short', turn_id, s.provenance || '{"admissibility_shortfall": false, "is_admissible": true}' FROM searches AS s WHERE name = 'shortfall' LIMIT 1;
BEGIN;
UPDATE memory_turns SET role = 'system' WHERE id = turn(1);
SELECT provenance AS uncommitted FROM graph_search_slice('{1,1}', turn(2), limit_count => 1) \gset
ROLLBACK;
INSERT INTO searches VALUES ('uncommitted', turn(1), :'uncommitted');
SELECT name, turn_number(turn_id) AS turn, graph_can_promote(provenance, turn_id) AS can FROM searches WHERE name <> 'shortfall' ORDER BY 1, 2;

INSERT INTO found_atoms (provenance, turn) SELECT provenance, turn_id FROM searches WHERE name = 'good';
INSERT INTO found_many SELECT min(provenance::text)::json, array_agg(turn_id) FROM searches WHERE name = 'good';
SELECT DISTINCT name, e.code, e.message, e.detail, e.hint FROM searches,
    test_error(format('INSERT INTO found_atoms (provenance, turn) VALUES (%L, %L)', provenance, turn_id)) AS e WHERE name <> 'good' ORDER BY name;
-- In the slice, and not retrieved; none; no record at all.
SELECT row, e.code, e.message, e.detail FROM unnest(ARRAY['provenance, turn(5)', 'provenance, NULL', 'NULL, turn_id', '''{}'', turn_id', '''null'', turn_id', '''[]'', turn_id', 'graph_slice(turn(2))::jsonb, turn(2)']) AS row,
    test_error(format('INSERT INTO found_atoms (provenance, turn) SELECT %s FROM searches WHERE name = ''good''', row)) AS e;
SELECT row, e.code, e.detail FROM unnest(ARRAY['ARRAY[turn_id, turn(5)]', 'ARRAY[turn_id, NULL]', '''{}''', 'NULL', 'ARRAY[turn_id, turn_id]']) AS row,
    test_error(format('INSERT INTO found_many SELECT provenance, %s FROM searches WHERE name = ''good''', row)) AS e;
-- What is malformed, what is unsigned, and what has a wrong signature.
SELECT change, graph_kernel.provenance_reason(CASE WHEN jsonb_typeof(change) = 'string' THEN provenance - (change #>> '{}') ELSE provenance || change END) AS reason
FROM (SELECT provenance FROM searches WHERE name = 'good' LIMIT 1) AS s,
    jsonb_array_elements('[{"limit_returned": 77}, {"is_admissible": false}, {"x": 1}, "mac", {"mac": null}, {"mac": "x"}, {"query_text": "x"}]') AS change;
-- A good row does not turn bad; its other columns can be changed.
SELECT statement, e.code, e.detail FROM unnest(ARRAY['UPDATE found_atoms SET turn = turn(5)', 'UPDATE found_atoms SET provenance = NULL', 'UPDATE found_atoms SET note = ''x''',
    'UPDATE found_atoms SET provenance = provenance || ''{"elapsed_ms": 0}''', 'UPDATE found_atoms SET provenance = provenance || ''{"query_text": "x"}''']) AS statement, test_error(statement) AS e;
-- As the other trigger function, it refuses triggers that could be got round.
CREATE TRIGGER plain AFTER INSERT OR UPDATE ON found_many FOR EACH ROW EXECUTE FUNCTION graph_require_admissible_result('provenance', 'turns');
SELECT code, message, detail, hint FROM test_error('INSERT INTO found_many SELECT min(provenance::text)::json, array_agg(turn_id) FROM searches WHERE name = ''good''');
DROP TRIGGER plain ON found_many;
CREATE CONSTRAINT TRIGGER bad AFTER INSERT OR UPDATE ON found_many FOR EACH ROW EXECUTE FUNCTION graph_require_admissible_result('provenance');
SELECT code, message, detail, hint FROM test_error('INSERT INTO found_many SELECT min(provenance::text)::json, array_agg(turn_id) FROM searches WHERE name = ''good''');
DROP TRIGGER bad ON found_many;

-- Whose searches are trusted.
CREATE ROLE regress_finder;
CREATE ROLE regress_stranger;
GRANT SELECT ON memory_turns, memory_turn_edges TO regress_finder, regress_stranger;
GRANT INSERT ON searches TO regress_finder, regress_stranger;
CREATE POLICY all_rows ON memory_turns USING (true);
CREATE POLICY all_edges ON memory_turn_edges USING (true);
ALTER TABLE memory_turns ENABLE ROW LEVEL SECURITY;
SET ROLE regress_finder;
INSERT INTO searches SELECT 'finder', s.turn_id, s.provenance FROM graph_search_slice('{1,1}', turn(2), limit_count => 1) AS s;
SET ROLE regress_stranger;
INSERT INTO searches SELECT 'stranger', s.turn_id, s.provenance FROM graph_search_slice('{1,1}', turn(2), limit_count => 1) AS s;
RESET ROLE;
CREATE TABLE found_by (provenance jsonb, turn uuid);
CREATE CONSTRAINT TRIGGER admissible AFTER INSERT OR UPDATE ON found_by NOT DEFERRABLE
    FOR EACH ROW EXECUTE FUNCTION graph_require_admissible_result('provenance', 'turn', 'roles=regress_other,regress_finder');
SELECT name, into_table, e.code, e.message, e.detail FROM unnest('{found_by,found_atoms}'::text[]) AS into_table, searches,
    test_error(format('INSERT INTO %I (provenance, turn) VALUES (%L, %L)', into_table, provenance, turn_id)) AS e
WHERE name IN ('finder', 'stranger') ORDER BY name, into_table;
-- Of another graph than the trigger names.
CREATE SCHEMA elsewhere;
SELECT graph_kernel.create_tables('elsewhere');
SELECT graph_kernel.bind_tables('elsewhere.memory_turns', 'elsewhere.memory_turn_edges', name => 'elsewhere') IS NOT NULL AS bound;
CREATE TABLE found_elsewhere (provenance jsonb, turn uuid);
CREATE CONSTRAINT TRIGGER admissible AFTER INSERT OR UPDATE ON found_elsewhere NOT DEFERRABLE
    FOR EACH ROW EXECUTE FUNCTION graph_require_admissible_result('provenance', 'turn', 'graph=elsewhere');
SELECT code, detail FROM searches, test_error(format('INSERT INTO found_elsewhere VALUES (%L, %L)', provenance, turn_id)) WHERE name = 'good' LIMIT 1;
-- A revoked key promotes nothing more.
SELECT graph_kernel.rotate_key(revoke_old => true) IS NOT NULL AS rotated;
SELECT code, detail FROM searches, test_error(format('INSERT INTO found_by VALUES (%L, %L)', provenance, turn_id)) WHERE name = 'finder';

SELECT graph_kernel.unbind_tables('elsewhere');
ALTER TABLE memory_turns DISABLE ROW LEVEL SECURITY, DROP COLUMN embedding;
DROP POLICY all_rows ON memory_turns;
DROP POLICY all_edges ON memory_turn_edges;
SET client_min_messages = warning;
DROP SCHEMA elsewhere CASCADE;
DROP TABLE found_atoms, found_many, found_by, found_elsewhere, searches;
REVOKE ALL ON memory_turns, memory_turn_edges FROM regress_finder, regress_stranger;
DROP ROLE regress_finder, regress_stranger;
