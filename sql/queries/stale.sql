COALESCE({t.content_hash}, '') OPERATOR(pg_catalog.<>) graph_kernel.content_hash_or_null({t.content_text})
