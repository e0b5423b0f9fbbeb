-- $1 uuid[]: the edges of these turns, both ways.
SELECT {e.child}, true, {e.parent}, {e.edge_type}
FROM {edges} AS e
WHERE {e.child} OPERATOR(pg_catalog.=) ANY ($1)
  -- True of every row. Alone, the equality is estimated by the average, which a hub makes so large that any
  -- index looks as good as the right one; a range has a small estimate.
  AND {e.child} OPERATOR(pg_catalog.>=) $2 AND {e.child} OPERATOR(pg_catalog.<=) $3
UNION ALL
SELECT {e.parent}, false, {e.child}, NULL::pg_catalog.text
FROM {edges} AS e
WHERE {e.parent} OPERATOR(pg_catalog.=) ANY ($1)
  AND {e.parent} OPERATOR(pg_catalog.>=) $2 AND {e.parent} OPERATOR(pg_catalog.<=) $3
