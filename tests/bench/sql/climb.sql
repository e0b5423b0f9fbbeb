-- The turns from one back towards the beginning, nearest first, as long as their texts fit: what one would write
-- without an extension. An easier question than the slice's: no weights, no calls kept with their results, no
-- fingerprints.
CREATE OR REPLACE FUNCTION climb(anchor uuid, max_tokens bigint) RETURNS TABLE (id uuid, depth int, tokens bigint)
LANGUAGE sql STABLE AS $$
    WITH RECURSIVE up AS (
        SELECT climb.anchor AS id, 0 AS depth
        UNION
        SELECT e.parent_turn_id, up.depth + 1
        FROM up
        JOIN memory_turn_edges AS e ON e.child_turn_id = up.id
        WHERE up.depth < 256
    ), nearest AS (
        SELECT up.id, min(up.depth) AS depth FROM up GROUP BY up.id ORDER BY min(up.depth) LIMIT 256
    ), counted AS (
        SELECT n.id, n.depth, sum((octet_length(t.content_text) + 3) / 4) OVER (ORDER BY n.depth, n.id) AS tokens
        FROM nearest AS n
        JOIN memory_turns AS t ON t.id = n.id
    )
    SELECT c.id, c.depth, c.tokens FROM counted AS c WHERE c.tokens <= climb.max_tokens OR c.depth = 0
$$;
