-- How many rows refer to each document that is kept. No other text is a key.
SELECT ({a.reference}) COLLATE pg_catalog."C", pg_catalog.count(*)
FROM {atoms} AS a
WHERE pg_catalog.octet_length({a.reference}) OPERATOR(pg_catalog.=) 64
  AND EXISTS (SELECT FROM {store} AS s WHERE {s.key} OPERATOR(pg_catalog.=) ({a.reference}) COLLATE pg_catalog."C")
GROUP BY 1
