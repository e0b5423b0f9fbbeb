-- The names of roles that are not known: some of them, where there are many.
SELECT DISTINCT graph_kernel.text_prefix(t.role, 64) COLLATE pg_catalog."C" AS name
FROM (SELECT {t.role} AS role FROM {turns} AS t) AS t
WHERE (pg_catalog.octet_length(t.role) OPERATOR(pg_catalog.<=) 9
       AND pg_catalog.lower(t.role COLLATE pg_catalog."C") OPERATOR(pg_catalog.=)
           ANY (ARRAY['user', 'assistant', 'system', 'tool']::pg_catalog.text[])) IS FALSE
ORDER BY name
LIMIT 17
