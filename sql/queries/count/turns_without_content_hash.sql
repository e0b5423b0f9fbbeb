-- Turns without a content hash, of those that have a content where contents are stored.
SELECT pg_catalog.count(*) FROM {turns} AS t WHERE {t.content_hash} IS NULL AND {has_content}
