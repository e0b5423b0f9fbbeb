-- Edges without a type.
SELECT pg_catalog.count(*)
FROM {edges} AS e
WHERE {e.parent} IS NOT NULL AND {e.child} IS NOT NULL AND {e.edge_type} IS NULL
