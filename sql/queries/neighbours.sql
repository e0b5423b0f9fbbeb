-- For each batch the edges into the turns of `ids` and out of those of `others`.
SELECT n.turn, n.is_parent, n.other, n.edge_type
FROM batch AS b
LEFT JOIN LATERAL (
    SELECT {e.child} AS turn, true AS is_parent, {e.parent} AS other, {e.edge_type} AS edge_type
    FROM {edges} AS e
    WHERE {e.child} OPERATOR(pg_catalog.=) ANY (b.ids)
      -- True of every row. Alone, the equality is estimated by the average, which a hub makes so large that any
      -- index looks as good as the right one; a range has a small estimate.
      AND {e.child} OPERATOR(pg_catalog.>=) b.first AND {e.child} OPERATOR(pg_catalog.<=) b.last
    UNION ALL
    SELECT {e.parent}, false, {e.child}, NULL::pg_catalog.text
    FROM {edges} AS e
    WHERE {e.parent} OPERATOR(pg_catalog.=) ANY (b.others)
      AND {e.parent} OPERATOR(pg_catalog.>=) b.first AND {e.parent} OPERATOR(pg_catalog.<=) b.last
) AS n ON true
