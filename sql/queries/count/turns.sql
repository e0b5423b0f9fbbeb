-- All turns.
SELECT pg_catalog.count(*) FROM {turns} AS t
