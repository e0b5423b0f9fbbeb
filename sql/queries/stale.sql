{t.content_text} IS NOT NULL
  AND ({t.content_hash} OPERATOR(pg_catalog.=) graph_kernel.content_hash({t.content_text})) IS NOT TRUE
