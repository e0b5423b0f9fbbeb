-- How many rows refer to each document.
SELECT {a.reference}, pg_catalog.count(*)
FROM {atoms} AS a
WHERE {a.reference} IS NOT NULL
GROUP BY 1
