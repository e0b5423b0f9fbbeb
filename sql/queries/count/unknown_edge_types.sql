-- Edges whose type is not a known one.
SELECT pg_catalog.count(*)
FROM {edges} AS e
WHERE {e.parent} IS NOT NULL AND {e.child} IS NOT NULL
  AND (pg_catalog.lower({e.edge_type}) OPERATOR(pg_catalog.=)
       ANY (ARRAY['reply', 'branch', 'reference', 'default']::pg_catalog.text[])) IS FALSE
