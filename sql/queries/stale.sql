COALESCE({t.content_hash}, '') OPERATOR(pg_catalog.<>) graph_kernel.content_hash_or_null({t.content_text})
AND ({t.content_hash} IS NULL OR pg_catalog.octet_length({t.content_hash}) OPERATOR(pg_catalog.=) 64
     AND ({t.content_hash} COLLATE pg_catalog."C") OPERATOR(pg_catalog.~) '^[0-9a-f]+$')
