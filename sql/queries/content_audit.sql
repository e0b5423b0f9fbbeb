-- $1 bigint: so many turns whose hash is missing or not that of their content, both hashes. A content that is not text
-- has none.
SELECT a.id, a.stored, a.computed
FROM (
    SELECT {t.id} AS id, {t.content_hash} AS stored, graph_kernel.content_hash_or_null({t.content_text}) AS computed
    FROM {turns} AS t
    WHERE {t.content_text} IS NOT NULL
    ORDER BY 1
    OFFSET 0
) AS a
WHERE a.computed IS NULL OR (a.computed OPERATOR(pg_catalog.=) a.stored) IS NOT TRUE
ORDER BY 1
LIMIT $1
