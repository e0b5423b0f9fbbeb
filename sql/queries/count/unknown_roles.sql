-- Turns whose role is not a known one. What is longer is none, and is not read.
SELECT pg_catalog.count(*)
FROM {turns} AS t
WHERE (pg_catalog.octet_length({t.role}) OPERATOR(pg_catalog.<=) 9
       AND pg_catalog.lower(({t.role}) COLLATE pg_catalog."C") OPERATOR(pg_catalog.=)
           ANY (ARRAY['user', 'assistant', 'system', 'tool']::pg_catalog.text[])) IS FALSE
