-- $1 text, $2 bigint: so many turns after an id, and whether their hash is missing or not that of their content.
SELECT {t.id}, ({stale}) IS TRUE
FROM {turns} AS t
WHERE $1 IS NULL OR {t.id} OPERATOR(pg_catalog.>) ($1)::pg_catalog.uuid
ORDER BY 1
LIMIT $2
