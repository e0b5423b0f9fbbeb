-- Turns without a salience.
SELECT pg_catalog.count(*) FROM {turns} AS t WHERE {t.salience} IS NULL
