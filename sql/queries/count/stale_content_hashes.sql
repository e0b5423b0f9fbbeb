-- Turns whose content is not what was hashed. One that is not text has no hash.
SELECT pg_catalog.count(*)
FROM {turns} AS t
WHERE {t.content_text} IS NOT NULL
  AND (pg_catalog.octet_length({t.content_hash}) OPERATOR(pg_catalog.=) 64
       AND ({t.content_hash} COLLATE pg_catalog."C") OPERATOR(pg_catalog.~) '^[0-9a-f]+$'::pg_catalog.text) IS TRUE
  AND ({t.content_hash} OPERATOR(pg_catalog.=) graph_kernel.content_hash_or_null({t.content_text})) IS NOT TRUE
