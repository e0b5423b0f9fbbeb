COALESCE({t.content_hash}, '') OPERATOR(pg_catalog.<>) graph_kernel.content_hash_or_null({t.content_text})
AND ({t.content_hash} IS NULL OR pg_catalog.octet_length({t.content_hash}) OPERATOR(pg_catalog.=) 64
     AND pg_catalog.translate({t.content_hash}, '0123456789abcdef', '') OPERATOR(pg_catalog.=) '')
