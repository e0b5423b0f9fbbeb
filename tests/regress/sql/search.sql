-- Promise: graph_search finds the turns of the whole graph that fit a question best, by its embedding, its words or both.
BEGIN;
CREATE SCHEMA found;
SELECT graph_kernel.create_tables('found', '{"words": "english"}');
ALTER TABLE found.memory_turns ADD embedding real[];
SELECT graph_kernel.bind_tables('found.memory_turns', 'found.memory_turn_edges') IS NOT NULL AS bound;
INSERT INTO found.memory_turns (id, session_id, role, salience_score, owner, created_at, content_text, embedding)
SELECT turn(n), CASE WHEN n > 8 THEN NULL WHEN n > 4 THEN 'late' ELSE 'early' END, (ARRAY['user', 'ASSISTANT', 'tool', 'robot', NULL])[1 + n % 5],
       CASE n WHEN 3 THEN NULL WHEN 4 THEN 'NaN' ELSE n / 10.0 END, CASE WHEN n % 2 = 0 THEN 'alice' END,
       CASE WHEN n <> 7 THEN to_timestamp(n * 100 + 0.5) END, content, embedding
  FROM (VALUES (1, 'The invoice was paid.', '{1,0}'::real[]), (2, 'Which invoice?', '{1,1}'), (3, 'Number nine, invoices of May', '{0,1}'),
    (4, 'A refund', '{-1,0}'), (5, 'Refunds, refunded: the invoice of the refund', '{1,2}'), (6, 'Nothing here', '{2,1}'),
    (7, 'paid paid paid', NULL), (8, 'It is its', '{NaN,1}'), (9, NULL, '{3,1}'), (10, 'unpaid', '{0,0}')) AS v (n, content, embedding);
CREATE FUNCTION found.numbers(query_embedding real[] DEFAULT NULL, query_text text DEFAULT NULL, filter jsonb DEFAULT '{}') RETURNS text LANGUAGE sql
    RETURN (SELECT string_agg(turn_number(turn_id)::text, ' ' ORDER BY rank) FROM graph_search(query_embedding, query_text, 100, filter));

-- Each list is divided by its best; a similarity below 0, and what has no embedding or no such word, counts 0.
SELECT turn_number(turn_id) AS turn, strength, similarity, words FROM graph_search('{1,0}');
SELECT turn_number(turn_id) AS turn, strength, similarity, words, role, content, provenance IS NOT NULL AS record FROM graph_search(NULL, 'a refund that was paid');
SELECT turn_number(turn_id) AS turn, strength, similarity, words FROM graph_search('{1,0}', 'a refund that was paid');
-- A list whose best is 0 counts nothing.
SELECT found.numbers('{1,0}', 'the') AS no_word, (SELECT max(strength) FROM graph_search('{1,0}', 'the')) AS half, found.numbers(NULL, 'the') AS nothing;
-- Of each list the first 128 are looked at, or as many as are wanted: turn 1129 is the next in both, and would be the
-- best.
SAVEPOINT many;
INSERT INTO found.memory_turns (id, content_text, embedding)
SELECT turn(1000 + n), CASE WHEN n < 129 THEN 'common' WHEN n = 129 THEN 'rare' ELSE 'rare rare' END, CASE WHEN n <= 129 THEN ARRAY[1000, n] ELSE '{-1,1}' END
  FROM generate_series(1, 257) AS n;
SELECT wanted, turn_number(turn_id) AS best, strength FROM unnest(ARRAY[1, 128, 129]) AS wanted, graph_search('{1000,0}', 'rare', wanted) WHERE rank = 1;
ROLLBACK TO many;
-- Filters.
SELECT filter, found.numbers('{1,1}', NULL, filter) AS embedding, found.numbers(NULL, 'invoice paid refund', filter) AS words
  FROM unnest('{"{\"owner\": \"alice\"}","{\"sessions\": [\"late\"]}","{\"sessions\": [\"\", \"none\"]}","{\"roles\": [\"assistant\"]}","{\"roles\": [\"user\"]}","{\"roles\": [\"tool\", \"system\"]}",
      "{\"from\": 300}","{\"to\": 300}","{\"from\": 0, \"to\": 99}","{\"from\": 9007199254740991}","{\"to\": -9007199254740991}","{\"min_salience\": 0.5}","{\"min_salience\": 0.51}","{\"min_salience\": 1.5}",
      "{\"owner\": \"alice\", \"roles\": [\"user\"], \"to\": 500}"}'::jsonb[]) WITH ORDINALITY AS f (filter) ORDER BY ordinality;
SELECT found.numbers('{1,0}', 'refund paid', '{"min_similarity": 0.7}') AS similar;
-- Those at the ends of time too, by the seconds that they are read as.
SAVEPOINT ends;
UPDATE found.memory_turns SET created_at = v.time FROM (VALUES (1, '-infinity'::timestamptz), (2, '4714-11-24 BC+0'), (4, '294276-12-31 23:59:59.999999+0'), (5, 'infinity')) AS v (n, time) WHERE id = turn(n);
SELECT filter, found.numbers(NULL, 'invoice paid refund', filter) AS words
  FROM unnest('{"{\"from\": -9223372036854775808}","{\"to\": 9223372036854775807}","{\"to\": -210866803200}","{\"from\": -210866803199}","{\"from\": 9224318015999}","{\"from\": 9224318016000}",
      "{\"to\": 9224318015999}","{\"to\": 9224318015998}"}'::jsonb[]) WITH ORDINALITY AS f (filter) ORDER BY ordinality;
ROLLBACK TO ends;
-- An embedding that had a NULL in it has none.
SAVEPOINT bitmap;
UPDATE found.memory_turns SET embedding = '{NULL,0}' WHERE id = turn(2);
SELECT found.numbers('{1,0}') AS with_a_null;
UPDATE found.memory_turns SET embedding[1] = 9 WHERE id = turn(2);
SELECT found.numbers('{1,0}') AS without, (SELECT similarity FROM graph_search('{1,0}') WHERE turn_id = turn(2)) AS similarity;
UPDATE found.memory_turns SET embedding = ('{9,0,NULL}'::real[])[1:2] WHERE id = turn(2);
SELECT found.numbers('{1,0}') AS of_a_longer, (SELECT similarity FROM graph_search('{1,0}') WHERE turn_id = turn(2)) AS similarity;
ROLLBACK TO bitmap;
SELECT call, e.code, e.message, e.detail FROM unnest(ARRAY['graph_search()', 'graph_search(NULL, ''paid'', filter => ''{"min_similarity": 0.5}'')', 'graph_search(''{1}'')',
    'graph_search(NULL, ''paid'', 0)', 'graph_search(NULL, ''paid'', 1001)', 'graph_search(NULL, repeat(''x'', 65537))']) WITH ORDINALITY AS c (call), test_error('SELECT ' || call) AS e ORDER BY ordinality;
SELECT filter, e.code, e.message, e.detail FROM unnest('{[],"{\"who\": 1}","{\"sessions\": []}","{\"sessions\": \"late\"}","{\"sessions\": null}","{\"sessions\": [1]}","{\"roles\": [\"USER\"]}","{\"from\": 1.5}","{\"to\": \"now\"}",
    "{\"min_salience\": 1e99}","{\"min_similarity\": true}"}'::text[]) WITH ORDINALITY AS f (filter), test_error(format('SELECT graph_search(NULL, ''paid'', filter => %L)', filter)) AS e ORDER BY ordinality;
SELECT count(*) AS no_limit FROM graph_search('{1,0}', limit_count => NULL);
-- The record, and the search made again.
CREATE TABLE found.kept AS SELECT provenance FROM graph_search('{1,0}', 'refund', 2, '{"sessions": ["late"], "roles": ["user", "tool"], "from": 1}') WHERE rank = 1;
SELECT provenance -> 'retrieval_mode' AS mode, provenance -> 'is_admissible' AS admissible, provenance -> 'query_text' AS text, provenance -> 'limit_returned' AS found, provenance -> 'filters_applied' AS filters FROM found.kept;
SELECT matches, field FROM found.kept, graph_replay_retrieval(provenance, '{1,0}');
SELECT string_agg(field, ' ') AS differs FROM found.kept, graph_replay_retrieval(provenance, '{0,1}') WHERE NOT matches;
SELECT bool_and(matches) FILTER (WHERE field <> 'mac') AS words_alone FROM graph_search(NULL, 'refund', 2) AS s, graph_replay_retrieval(s.provenance, '{9}') WHERE s.rank = 1;
SELECT body ->> 'query' AS query, body #>> '{results,0,strength}' AS strength, json_array_length(body -> 'results') AS results FROM graph_api_search_global('{"query": "refund", "filter": {"sessions": ["late"]}}') AS body;
-- A salience of type double precision is sought as it is read, in binary32.
CREATE TABLE found.tenths (id uuid PRIMARY KEY, salience double precision, embedding real[], parent uuid);
INSERT INTO found.tenths SELECT turn(n), n / 10.0, ARRAY[1], turn(n - 1) FROM generate_series(1, 10) AS n;
SELECT graph_kernel.bind_tables('found.tenths', columns => '{"turns": {"session_id": null, "role": null, "content_text": null, "created_at": null, "phase": null,
    "parents": [{"parent": "parent", "edge_type": "reply"}]}}', name => 'tenths') IS NOT NULL AS bound;
SET LOCAL graph_kernel.graph = 'tenths';
SELECT array_agg((SELECT count(*) FROM graph_search('{1}', NULL, 10, jsonb_build_object('min_salience', n / 10.0))) ORDER BY n) AS found,
       array_agg((SELECT count(*) FROM graph_search_slice('{1}', turn(1), min_salience => (n / 10.0)::real)) ORDER BY n) AS in_the_slice FROM generate_series(1, 10) AS n;
ROLLBACK;
