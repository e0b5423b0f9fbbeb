-- The names of roles in the first thousand rows.
SELECT DISTINCT graph_kernel.text_prefix(t.role, 64) COLLATE pg_catalog."C"
FROM (SELECT {t.role} AS role FROM {turns} AS t LIMIT 1000) AS t
WHERE t.role IS NOT NULL
