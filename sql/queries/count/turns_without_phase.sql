-- Turns without a phase.
SELECT pg_catalog.count(*) FROM {turns} AS t WHERE {t.phase} IS NULL
