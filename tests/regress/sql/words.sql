-- Promise: words are scored by BM25 with counts that refresh_words keeps, or, where row security hides rows, by counts of
-- what may be seen.
BEGIN;
CREATE SCHEMA worded;
SELECT graph_kernel.create_tables('worded', '{"words": "english"}');
SELECT graph_kernel.bind_tables('worded.memory_turns', 'worded.memory_turn_edges') IS NOT NULL AS bound;
-- Some word is in every row, some in few, some in none; rows are long, short, and without words.
INSERT INTO worded.memory_turns (id, owner, content_text)
SELECT turn(n), CASE WHEN n <= 30 THEN 'worded_reader' END, concat_ws(' ', 'note', CASE WHEN n % 3 = 0 THEN 'apple' END, CASE WHEN n % 7 = 0 THEN 'it''s a \back\slash banana' END,
    CASE WHEN n % 10 = 0 THEN 'cherry, cherries and cherry' END, repeat('filler' || n || ' ', n % 4), CASE WHEN n % 2 = 0 THEN (SELECT string_agg('w' || i, ' ') FROM generate_series(1, n) AS i) END)
  FROM generate_series(1, 60) AS n UNION ALL SELECT turn(100), NULL, NULL UNION ALL SELECT turn(101), NULL, 'the of';
-- The same in SQL: of these rows, or by the constants before anybody has counted.
CREATE FUNCTION worded.naive(query text, counted boolean, of text DEFAULT 'true') RETURNS TABLE (id uuid, score float8) LANGUAGE plpgsql AS $$
BEGIN RETURN QUERY EXECUTE format($q$
    WITH t AS (SELECT id, words FROM worded.memory_turns WHERE words IS NOT NULL AND %s),
         c AS (SELECT CASE WHEN $2 THEN count(*) ELSE 100000 END AS turns, CASE WHEN $2 THEN avg(length(words))::float8 ELSE 16 END AS mean FROM t),
         q AS (SELECT l.lexeme, CASE WHEN $2 THEN (SELECT count(*) FROM t WHERE l.lexeme = ANY (tsvector_to_array(t.words))) ELSE 1 END AS n
                 FROM unnest(to_tsvector('english', $1)) AS l (lexeme, positions, weights))
    SELECT t.id, sum(ln(1 + (c.turns - q.n + 0.5::float8) / (q.n + 0.5)) * (f * 2.2::float8) / (f + 1.2 * (0.25 + 0.75 * length(t.words) / c.mean)))
      FROM t CROSS JOIN c CROSS JOIN unnest(t.words) AS l (lexeme, positions, weights) JOIN q ON q.lexeme = l.lexeme CROSS JOIN cardinality(l.positions) AS f
     GROUP BY t.id $q$, of) USING query, counted;
END $$;
CREATE FUNCTION worded.compared(query text, counted boolean, of text DEFAULT 'true') RETURNS TABLE (query_text text, found bigint, same boolean) LANGUAGE sql
AS $$ SELECT query, count(s.turn_id), count(s.turn_id) = count(n.id) AND coalesce(bool_and(abs(s.words - n.score) <= 1e-5 * n.score AND abs(s.strength - n.score / n.best) < 1e-5), true)
        FROM graph_search(NULL, query, 1000) AS s
        FULL JOIN (SELECT id, score, max(score) OVER () AS best FROM worded.naive(query, counted, of)) AS n ON n.id = s.turn_id $$;
SELECT c.* FROM unnest('{note apple,"banana\\backslash ''its''",cherry pie,filler3 w1 w2 w59,the,"",nowhere}'::text[]) AS q, worded.compared(q, false) AS c;
CALL graph_kernel.refresh_words();
SELECT turn_count, lexeme_count, (SELECT count(*) FROM graph_kernel.word_counts AS c WHERE c.turns = t.turns) AS lexemes FROM graph_kernel.word_totals AS t WHERE turns = 'worded.memory_turns'::regclass;
SELECT c.* FROM unnest('{note apple,"banana\\backslash ''its''",cherry pie,filler3 w1 w2 w59,the,"",nowhere}'::text[]) AS q, worded.compared(q, true) AS c;
-- Contents are counted as the JSON that they may become, in which a control character has six bytes.
SAVEPOINT long;
UPDATE worded.memory_turns SET content_text = 'durian ' || repeat(chr(1), CASE id WHEN turn(1) THEN 12000000 ELSE 1000000 END) WHERE id IN (turn(1), turn(2));
SELECT turn_id = turn(2) AS is_shorter, length(content) FROM graph_search(NULL, 'durian', 5);
ROLLBACK TO long;
-- The configuration is the column's, whatever the session's is; and until the next count nothing that is written or
-- analysed changes a score.
CREATE TEMP TABLE counted AS SELECT turn_id, words FROM graph_search(NULL, 'noted apples and cherries', 1000);
SAVEPOINT more;
SET LOCAL default_text_search_config = 'pg_catalog.simple';
SET LOCAL quote_all_identifiers = on;
INSERT INTO worded.memory_turns (id, content_text) SELECT turn(n), 'apple' FROM generate_series(200, 900) AS n;
ANALYZE worded.memory_turns;
SELECT count(*) AS same, (SELECT count(*) FROM counted) AS before FROM counted JOIN graph_search(NULL, 'noted apples and cherries', 1000) USING (turn_id, words);
-- Of a text that is too long for a tsvector the first 100000 characters are found.
INSERT INTO worded.memory_turns (id, content_text) SELECT turn(102), string_agg('word' || i, ' ' ORDER BY i) FROM generate_series(1, 300000) AS i;
SELECT word, count(turn_id) AS found FROM unnest('{word1,word9000,word299999}'::text[]) AS word LEFT JOIN LATERAL graph_search(NULL, word) ON true GROUP BY word ORDER BY word;
ROLLBACK TO more;
-- Of an owner, or of sessions, the counts are those of his turns, whoever asks.
CREATE FUNCTION worded.of_owner(query text, filter jsonb) RETURNS TABLE (query_text text, found bigint, same boolean) LANGUAGE sql
AS $$ SELECT query, count(s.turn_id), count(s.turn_id) = count(n.id) AND coalesce(bool_and(abs(s.words - n.score) <= 1e-5 * n.score), true)
        FROM graph_search(NULL, query, 1000, filter) AS s FULL JOIN worded.naive(query, true, 'owner = ''worded_reader''') AS n ON n.id = s.turn_id $$;
SELECT c.* FROM unnest('{note apple,cherry pie,filler3 w1 w2 w59,the,nowhere}'::text[]) AS q, worded.of_owner(q, '{"owner": "worded_reader"}') AS c;
-- Of many lexemes 128 count, and the answer comes.
SELECT count(*) AS found FROM graph_search(NULL, (SELECT string_agg('w' || i, ' ') FROM generate_series(1, 5000) AS i), 1000);
-- Without positions each lexeme counts once; a column of the application's own says its configuration in the mapping.
ALTER TABLE worded.memory_turns ADD own tsvector;
UPDATE worded.memory_turns SET own = strip(to_tsvector('simple', content_text));
SELECT value, e.code, e.message, e.detail FROM unnest('{"\"own\"","{\"column\": \"own\"}","{\"column\": \"own\", \"configuration\": \"klingon\"}","{\"column\": \"content_text\", \"configuration\": \"simple\"}","{\"column\": \"none\", \"configuration\": \"simple\"}",
    "{\"configuration\": \"simple\"}","{\"column\": \"own\", \"configuration\": 1}","{\"name\": \"own\"}",7}'::jsonb[]) WITH ORDINALITY AS v (value),
  test_error(format('SELECT graph_kernel.bind_tables(''worded.memory_turns'', ''worded.memory_turn_edges'', %L)', jsonb_build_object('turns', jsonb_build_object('words', value)))) AS e ORDER BY ordinality;
SELECT graph_kernel.bind_tables('worded.memory_turns', 'worded.memory_turn_edges', '{"turns": {"words": {"column": "own", "configuration": "simple"}}}') IS NOT NULL AS bound;
SELECT count(*) AS found, count(DISTINCT (length(t.own), s.words)) = count(DISTINCT length(t.own)) AS only_length_counts FROM graph_search(NULL, 'cherry note', 1000) AS s JOIN worded.memory_turns AS t ON t.id = s.turn_id WHERE t.own @@ 'cherry';
SELECT ok, detail, hint FROM graph_check() WHERE check_name = 'index_words';
SELECT graph_kernel.bind_tables('worded.memory_turns', 'worded.memory_turn_edges', '{"turns": {"words": null}}') IS NOT NULL AS bound;
SELECT code, message, detail FROM test_error($$SELECT graph_search(NULL, 'apple')$$);
-- A configuration of a user's is not one of the server's own, also where its name is.
CREATE TEXT SEARCH CONFIGURATION worded.english (COPY = pg_catalog.simple);
ALTER TABLE worded.memory_turns DROP own, ADD own tsvector GENERATED ALWAYS AS (to_tsvector('worded.english', content_text)) STORED;
SELECT code, message, detail FROM test_error($$SELECT graph_kernel.bind_tables('worded.memory_turns', 'worded.memory_turn_edges', '{"turns": {"words": "own"}}')$$);
SELECT graph_kernel.bind_tables('worded.memory_turns', 'worded.memory_turn_edges') IS NOT NULL AS bound;

-- Who may count, and who may read the counts.
CREATE ROLE worded_reader;
GRANT USAGE ON SCHEMA worded TO worded_reader;
GRANT SELECT ON ALL TABLES IN SCHEMA worded TO worded_reader;
SET ROLE worded_reader;
SELECT call, e.code, e.message FROM unnest(ARRAY['CALL graph_kernel.refresh_words()', 'CALL graph_kernel.refresh_words(''none'')', 'SELECT FROM graph_kernel.word_counts', 'SELECT FROM graph_kernel.word_totals',
    'SELECT graph_kernel.store_word_totals(1, 1, 1, 1)', 'SELECT graph_kernel.add_word_counts(1, 1, ''{}'')']) WITH ORDINALITY AS c (call), test_error(call) AS e ORDER BY ordinality;
-- Who may not read the words may not search by them.
RESET ROLE;
REVOKE SELECT ON worded.memory_turns FROM worded_reader;
GRANT SELECT (id, content_text, session_id, role, created_at, valid_until) ON worded.memory_turns TO worded_reader;
SET ROLE worded_reader;
SELECT code, message FROM test_error($$SELECT graph_search(NULL, 'apple')$$);
RESET ROLE;
GRANT SELECT ON worded.memory_turns TO worded_reader;
SET ROLE worded_reader;
-- They weigh what he finds as long as he may see all.
SELECT c.* FROM worded.compared('apple cherry', true) AS c;
RESET ROLE;
-- What row security hides shows in no score, whatever was counted, and however often it changes.
ALTER TABLE worded.memory_turns ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON worded.memory_turns USING (owner = current_user);
SET ROLE worded_reader;
SELECT c.* FROM unnest('{note apple,cherry pie,filler3 w1 w2 w59,nowhere}'::text[]) AS q, worded.compared(q, true) AS c;
SELECT check_name, ok, detail, hint FROM graph_check() WHERE check_name LIKE '%words%';
RESET ROLE;
DROP INDEX worded.memory_turns_session_id_created_at_idx;
SET ROLE worded_reader;
SELECT check_name, ok, hint FROM graph_check() WHERE check_name = 'words_row_security';
CREATE TEMP TABLE before AS SELECT turn_id, strength, words FROM graph_search(NULL, 'apple cherry w3', 1000);
RESET ROLE;
INSERT INTO worded.memory_turns (id, content_text) SELECT turn(n), 'apple apple cherry w3' FROM generate_series(200, 400) AS n;
CALL graph_kernel.refresh_words();
SET ROLE worded_reader;
SELECT count(*) AS rows, (SELECT count(*) FROM before) AS before FROM before JOIN graph_search(NULL, 'apple cherry w3', 1000) USING (turn_id, strength, words);
RESET ROLE;
-- More lexemes than are given to the database at once: 50 pairs of turns, each with 50 of 1920 bytes.
INSERT INTO worded.memory_turns (id, content_text)
SELECT turn(1000 + n), (SELECT string_agg(repeat(translate(md5(format('%s %s', n / 2, k)), '0123456789', 'ghijklmnop'), 60), ' ') FROM generate_series(1, 50) AS k)
FROM generate_series(0, 99) AS n;
CALL graph_kernel.refresh_words();
SELECT count(*), min(turn_count), max(turn_count), sum(octet_length(lexeme[1])) AS bytes FROM graph_kernel.word_counts WHERE octet_length(lexeme[1]) > 1000;
-- Of a column that was dropped no word stays.
ALTER TABLE worded.memory_turns DROP COLUMN words;
ALTER TABLE worded.memory_turns ADD COLUMN words tsvector GENERATED ALWAYS AS (to_tsvector('english', content_text)) STORED;
CALL graph_kernel.refresh_words();
SELECT count(DISTINCT attribute) AS columns, bool_and(attribute = a.attnum) AS of_the_new_one
FROM graph_kernel.word_counts JOIN pg_attribute AS a ON a.attrelid = 'worded.memory_turns'::regclass AND a.attname = 'words';
-- Row security that is forced on the owner would leave the counts of what he may see.
ALTER TABLE worded.memory_turns FORCE ROW LEVEL SECURITY, OWNER TO worded_reader;
SET ROLE worded_reader;
SELECT code, message, hint FROM test_error('CALL graph_kernel.refresh_words()');
RESET ROLE;
ROLLBACK;
