-- How many rows refer to a document that is not kept.
SELECT pg_catalog.count(*)
FROM {atoms} AS a
WHERE {a.reference} IS NOT NULL
  AND NOT EXISTS (SELECT FROM {store} AS s WHERE {s.key} OPERATOR(pg_catalog.=) ({a.reference}) COLLATE pg_catalog."C")
