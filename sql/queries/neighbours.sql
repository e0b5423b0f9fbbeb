-- $1, $2 uuid[], $3, $4 uuid: the edges into the turns of $1 and out of those of $2, all between $3 and $4.
-- The range is true of every row, and has a small estimate. The equality alone is estimated by the average, which a
-- hub makes so large that any index looks as good as the right one.
[[SELECT {e.child} AS turn, true AS is_parent, {e.parent} AS other, {e.edge_type} AS edge_type
FROM {edges_by_child} AS e
WHERE {e.child} OPERATOR(pg_catalog.=) ANY ($1)
  AND {e.child} OPERATOR(pg_catalog.>=) $3 AND {e.child} OPERATOR(pg_catalog.<=) $4
UNION ALL
SELECT {e.parent}, false, {e.child}, {e.edge_type?}
FROM {edges_by_parent} AS e
WHERE {e.parent} OPERATOR(pg_catalog.=) ANY ($2)
  AND {e.parent} OPERATOR(pg_catalog.>=) $3 AND {e.parent} OPERATOR(pg_catalog.<=) $4]]
