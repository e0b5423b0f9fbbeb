-- $1 uuid[]: the edges of each turn, both ways; of each way at most $2.
-- The equality is said thrice: alone it is estimated by the average, which a hub makes so large
-- that any index looks as good as the right one. A range with a parameter has a small estimate.
SELECT k.position, n.is_parent, n.other, n.edge_type
FROM pg_catalog.unnest($1) WITH ORDINALITY AS k(id, position)
CROSS JOIN LATERAL (
    (SELECT true AS is_parent, {e.parent} AS other, {e.edge_type} AS edge_type
     FROM {edges} AS e
     WHERE {e.child} OPERATOR(pg_catalog.=) k.id
       AND {e.child} OPERATOR(pg_catalog.>=) k.id
       AND {e.child} OPERATOR(pg_catalog.<=) k.id
     LIMIT $2)
    UNION ALL
    (SELECT false, {e.child}, NULL::pg_catalog.text
     FROM {edges} AS e
     WHERE {e.parent} OPERATOR(pg_catalog.=) k.id
       AND {e.parent} OPERATOR(pg_catalog.>=) k.id
       AND {e.parent} OPERATOR(pg_catalog.<=) k.id
     LIMIT $2)
) AS n
