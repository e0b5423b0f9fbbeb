-- What one would write without the extension, over a table with each turn's position in its session: the 128 nearest
-- turns by pgvector and the 1000 best by ts_rank, both scores divided by the best and added half and half; around each
-- of the 128 best the two turns before it and the two after it, as many as fit into {} tokens, in the order of the
-- conversation. $1 is the question's embedding, $2 the question, $3 whose turns are asked.
WITH near AS MATERIALIZED (
    SELECT id, greatest(1 - (embedding <=> $1::real[]::vector), 0) AS score
      FROM memory_turns WHERE owner = $3
     ORDER BY embedding <=> $1::real[]::vector LIMIT 128
), words AS MATERIALIZED (
    SELECT t.id, ts_rank(t.words, q.query) AS score
      FROM memory_turns AS t,
           CAST(replace(plainto_tsquery('english', $2)::text, '&', '|') AS tsquery) AS q (query)
     WHERE owner = $3 AND t.words @@ q.query
     ORDER BY ts_rank(t.words, q.query) DESC LIMIT 1000
), hits AS MATERIALIZED (
    SELECT id, coalesce(n.score / nullif(max(n.score) OVER (), 0), 0) / 2
             + coalesce(w.score / max(w.score) OVER (), 0) / 2 AS strength
      FROM near AS n FULL JOIN words AS w USING (id)
     ORDER BY strength DESC LIMIT 128
), around AS (
    SELECT DISTINCT ON (t.id) t.id, t.session_id, t.position, t.role, t.content_text, h.strength,
           abs(t.position - s.position) AS distance, ceil(octet_length(t.content_text) / 4.0) AS tokens
      FROM hits AS h
      JOIN memory_turns AS s ON s.id = h.id
      JOIN memory_turns AS t ON t.session_id = s.session_id
                            AND t.position BETWEEN s.position - 2 AND s.position + 2
     WHERE t.owner = $3
     ORDER BY t.id, h.strength DESC, distance
), filled AS (
    SELECT *, sum(tokens) OVER (ORDER BY strength DESC, distance, id) AS total FROM around
)
SELECT id, role, content_text FROM filled WHERE total <= {} ORDER BY session_id, position
