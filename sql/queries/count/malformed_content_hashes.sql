-- Turns whose content hash is not 64 lower-case hex digits.
SELECT pg_catalog.count(*)
FROM {turns} AS t
WHERE ({t.content_hash} OPERATOR(pg_catalog.~) '^[0-9a-f]+$'::pg_catalog.text
       AND pg_catalog.octet_length({t.content_hash}) OPERATOR(pg_catalog.=) 64) IS FALSE
