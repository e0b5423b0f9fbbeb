-- Ids that more than one turn has.
SELECT pg_catalog.count(*)
FROM (
    SELECT {t.id} FROM {turns} AS t WHERE {t.id} IS NOT NULL
    GROUP BY {t.id} HAVING pg_catalog.count(*) OPERATOR(pg_catalog.>) 1
) AS d
