-- Edges without a type.
SELECT pg_catalog.count(*)
FROM (
    [[SELECT {e.parent} AS parent, {e.child} AS child, {e.edge_type} AS edge_type FROM {edges} AS e]]
) AS e
WHERE e.parent IS NOT NULL AND e.child IS NOT NULL AND e.edge_type IS NULL
