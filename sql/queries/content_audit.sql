-- $1 bigint: so many turns whose hash is missing or not that of their content, both hashes.
SELECT {t.id}, {t.content_hash}, graph_kernel.content_hash({t.content_text})
FROM {turns} AS t
WHERE {stale}
ORDER BY 1
LIMIT $1
