-- Turns without a content hash.
SELECT pg_catalog.count(*) FROM {turns} AS t WHERE {t.content_hash} IS NULL
