-- What one would write without graph_recall: the 128 nearest turns and the 128 best by ts_rank, both scores divided by
-- the best and added half and half, and around each hit a slice, in which a turn has what it was found by itself and
-- what the best hit near it leaves. $1 is the question's embedding, $2 the question, $3 the conversation. The best
-- come first.
WITH near AS MATERIALIZED (
    SELECT turn_id, rank, greatest(similarity, 0) AS similarity
      FROM graph_search($1, NULL, 1000, jsonb_build_object('owner', $3::text))
), words AS MATERIALIZED (
    SELECT t.id AS turn_id, ts_rank(t.words, q.query) AS score,
           row_number() OVER (ORDER BY ts_rank(t.words, q.query) DESC, t.id) AS rank
      FROM memory_turns AS t,
           CAST(replace(plainto_tsquery('english', $2)::text, '&', '|') AS tsquery) AS q (query)
     WHERE t.owner = $3 AND t.words @@ q.query
), hits AS MATERIALIZED (
    SELECT turn_id, coalesce(n.similarity / nullif(max(n.similarity) OVER (), 0), 0) / 2
                  + coalesce(w.score / max(w.score) OVER (), 0) / 2 AS strength
      FROM near AS n FULL JOIN words AS w USING (turn_id)
     WHERE n.rank <= 128 OR w.rank <= 128
)
SELECT s.turn_id
  FROM hits AS h,
       graph_slice_turns(h.turn_id, '{"max_radius": 2, "max_nodes": 5, "include_siblings": false}') AS s
 GROUP BY s.turn_id
 ORDER BY 0.7 * max(h.strength * 0.95 ^ s.distance)
              + 0.3 * coalesce(max(h.strength) FILTER (WHERE s.distance = 0), 0) DESC, s.turn_id
