-- See retrieval.sh.
SET maintenance_work_mem = '1GB';
SET client_min_messages = warning;

CREATE FUNCTION hash_embedding(content text) RETURNS real[]
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    WITH word AS (
        SELECT w FROM regexp_split_to_table(lower(left(content, 2000)), '[^a-z0-9]+') AS w WHERE w <> ''
    ), feature AS (
        SELECT hashtextextended(w, 0) AS h FROM word
        UNION ALL
        SELECT hashtextextended(substr(w, i, 3), 1) FROM word, generate_series(1, length(w) - 2) AS i
    ), summed AS (
        SELECT (h & 127)::int AS d, sum(CASE WHEN h & 128 = 0 THEN 1 ELSE -1 END)::real AS v
        FROM feature GROUP BY 1
    )
    SELECT CASE WHEN count(s.d) > 0 THEN array_agg(coalesce(s.v, 0) ORDER BY g.d) END
    FROM generate_series(0, 127) AS g (d) LEFT JOIN summed AS s ON s.d = g.d
$$;
CREATE TABLE text_embedding AS
    SELECT content_text, hash_embedding(content_text) AS embedding
    FROM (SELECT DISTINCT content_text FROM memory_turns WHERE content_text <> '') AS t;
ALTER TABLE memory_turns ADD COLUMN embedding vector(128);
UPDATE memory_turns AS t SET embedding = e.embedding::vector
FROM text_embedding AS e WHERE e.content_text = t.content_text AND vector_norm(e.embedding::vector) > 0;
VACUUM ANALYZE memory_turns;
SELECT count(*) AS turns, count(embedding) AS with_embedding, count(DISTINCT embedding) AS distinct_embeddings
FROM memory_turns;

-- A question is the embedding of some other turn; its slice has at least 20 turns to choose from.
CREATE TABLE question AS
    SELECT row_number() OVER (ORDER BY md5(a.id::text)) AS n, a.id AS anchor,
           (SELECT q.embedding FROM memory_turns AS q WHERE q.embedding IS NOT NULL
            ORDER BY md5(a.id::text || q.id::text) LIMIT 1) AS query
    FROM (SELECT id FROM memory_turns ORDER BY md5(id::text || 'anchor') LIMIT 300) AS a
    WHERE (SELECT count(embedding) FROM graph_slice_turns(a.id) AS s JOIN memory_turns AS t ON t.id = s.turn_id) >= 20
    LIMIT 40;
CREATE TABLE truth AS  -- the similarity that the ten best of each slice reach
    SELECT q.n, (SELECT b.d FROM (
        SELECT t.embedding <=> q.query AS d FROM graph_slice_turns(q.anchor) AS s
        JOIN memory_turns AS t ON t.id = s.turn_id WHERE t.embedding IS NOT NULL ORDER BY 1 LIMIT 10) AS b
        ORDER BY b.d DESC LIMIT 1) AS worst
    FROM question AS q;
SELECT count(*) AS questions, round(avg(s.turns)) AS mean_turns_of_slice, max(s.turns) AS most
FROM question AS q, LATERAL (SELECT count(*) AS turns FROM graph_slice_turns(q.anchor)) AS s;
CREATE TABLE result (method text, n bigint, recall float8, milliseconds float8, position serial);

-- Runs a search, $1 query, $2 anchor, $3 the slice's turns, for every question; recall counts what is at
-- least as close as the tenth best, so that ties do not matter.
CREATE PROCEDURE measure(method text, search text) LANGUAGE plpgsql AS $$
DECLARE
    q record;
    slice uuid[];
    begun timestamptz;
    found uuid[];
    took float8;
BEGIN
    FOR q IN SELECT question.*, truth.worst FROM question JOIN truth USING (n) LOOP
        slice := ARRAY(SELECT turn_id FROM graph_slice_turns(q.anchor));
        took := 'Infinity';
        FOR i IN 1 .. 3 LOOP  -- the best of three
            begun := clock_timestamp();
            EXECUTE search INTO found USING q.query, q.anchor, slice;
            took := least(took, extract(epoch FROM clock_timestamp() - begun) * 1000);
        END LOOP;
        INSERT INTO result (method, n, recall, milliseconds) SELECT measure.method, q.n, least(count(*) / 10.0, 1), took
        FROM memory_turns AS t
        WHERE t.id = ANY (found) AND t.id = ANY (slice) AND t.embedding <=> q.query <= q.worst + 1e-6;
    END LOOP;
END $$;

CALL measure('graph_slice_turns: the slice alone, no search',
    'SELECT array_agg(turn_id) FROM graph_slice_turns($2) WHERE $1 IS NOT NULL AND $3 IS NOT NULL');
CALL measure('graph_search_slice: slice, rank, sign',
    'SELECT array_agg(turn_id) FROM graph_search_slice($1::real[], $2) WHERE $3 IS NOT NULL');

-- From here on the slice is given and costs nothing; the index is what the planner must take.
\set filtered 'SELECT array_agg(id) FROM (SELECT id FROM memory_turns WHERE id = ANY ($3) ORDER BY embedding <=> $1 LIMIT 10) AS f WHERE $2 IS NOT NULL'
\set over 'SELECT array_agg(id) FROM (SELECT id FROM (SELECT id FROM memory_turns ORDER BY embedding <=> $1 LIMIT 100) AS o WHERE id = ANY ($3) LIMIT 10) AS f WHERE $2 IS NOT NULL'
SET enable_seqscan = off; SET enable_sort = off; SET enable_bitmapscan = off; SET jit = off;

\echo 'seconds to build the hnsw index:'
SELECT clock_timestamp() AS begun \gset
CREATE INDEX near ON memory_turns USING hnsw (embedding vector_cosine_ops);
SELECT round(extract(epoch FROM clock_timestamp() - :'begun'::timestamptz), 1) AS seconds;
CALL measure('hnsw, filter on the slice', :'filtered');
SET hnsw.ef_search = 400;
CALL measure('hnsw, ef_search 400, filter on the slice', :'filtered');
RESET hnsw.ef_search;
SET hnsw.iterative_scan = strict_order;
CALL measure('hnsw, iterative scan, filter on the slice', :'filtered');
RESET hnsw.iterative_scan;
SET hnsw.ef_search = 100;
CALL measure('hnsw, 100 nearest of all, then filter', :'over');
RESET hnsw.ef_search;
SET enable_sort = on; SET enable_bitmapscan = on; SET enable_seqscan = on;
CALL measure('filter on the slice, any plan', :'filtered');
SET enable_seqscan = off; SET enable_sort = off; SET enable_bitmapscan = off;
DROP INDEX near;

CREATE INDEX near ON memory_turns USING ivfflat (embedding vector_cosine_ops) WITH (lists = 300);
CALL measure('ivfflat, filter on the slice', :'filtered');
SET ivfflat.probes = 17;
CALL measure('ivfflat, 17 probes, filter on the slice', :'filtered');

SELECT method, count(*) AS searches, round(avg(recall)::numeric, 3) AS "recall@10",
       count(*) FILTER (WHERE recall = 0) AS "found none",
       round(percentile_cont(0.5) WITHIN GROUP (ORDER BY milliseconds)::numeric, 2) AS "median ms",
       round(max(milliseconds)::numeric, 2) AS "max ms"
FROM result GROUP BY method ORDER BY min(position);
