-- Turns whose content is not text.
SELECT pg_catalog.count(*) FROM {turns} AS t WHERE NOT graph_kernel.is_text({t.content_text})
