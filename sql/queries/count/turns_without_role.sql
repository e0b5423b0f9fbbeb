-- Turns without a role.
SELECT pg_catalog.count(*) FROM {turns} AS t WHERE {t.role} IS NULL
