-- Turns whose content hash is not 64 lower-case hex digits. The length first: a long text matches nothing.
SELECT pg_catalog.count(*)
FROM {turns} AS t
WHERE (pg_catalog.octet_length({t.content_hash}) OPERATOR(pg_catalog.=) 64
       AND ({t.content_hash} COLLATE pg_catalog."C") OPERATOR(pg_catalog.~) '^[0-9a-f]+$'::pg_catalog.text) IS FALSE
