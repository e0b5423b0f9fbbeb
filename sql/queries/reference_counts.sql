-- How many rows refer to each document. No other text is a key.
SELECT ({a.reference}) COLLATE pg_catalog."C", pg_catalog.count(*)
FROM {atoms} AS a
WHERE pg_catalog.octet_length({a.reference}) OPERATOR(pg_catalog.=) 64
GROUP BY 1
