-- $1 uuid[]: the ends of edges out of each turn that do not exist. The equality is stated three times as in
-- children.sql.
SELECT k.position, e.child, e.edge_type
FROM pg_catalog.unnest($1) WITH ORDINALITY AS k(id, position)
CROSS JOIN LATERAL (
    [[SELECT {e.child} AS child, {e.edge_type?} AS edge_type
    FROM {edges_by_parent} AS e
    WHERE {e.parent} OPERATOR(pg_catalog.=) k.id
      AND {e.parent} OPERATOR(pg_catalog.>=) k.id
      AND {e.parent} OPERATOR(pg_catalog.<=) k.id]]
    OFFSET 0
) AS e
LEFT JOIN LATERAL (
    SELECT {t.id} AS id
    FROM {turns} AS t
    WHERE {t.id} OPERATOR(pg_catalog.=) e.child
    OFFSET 0
) AS t ON true
WHERE t.id IS NULL AND e.child IS NOT NULL
