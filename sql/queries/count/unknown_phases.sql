-- Turns whose phase is not a known one. What is longer is none, and is not read.
SELECT pg_catalog.count(*)
FROM {turns} AS t
WHERE (pg_catalog.octet_length({t.phase}) OPERATOR(pg_catalog.<=) 13
       AND pg_catalog.lower(({t.phase}) COLLATE pg_catalog."C") OPERATOR(pg_catalog.=)
           ANY (ARRAY['exploration', 'debugging', 'planning', 'consolidation', 'synthesis']::pg_catalog.text[]))
      IS FALSE
