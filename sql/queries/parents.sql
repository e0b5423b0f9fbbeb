-- $1 uuid[]: the edges into each turn, with the parent's score; NULLs where the edge dangles.
-- The equality is said thrice: alone it is estimated by the average, which a hub makes so large
-- that any index looks as good as the right one. A range with a parameter has a small estimate.
SELECT k.position, e.parent, e.edge_type, t.id, t.phase, t.salience
FROM pg_catalog.unnest($1) WITH ORDINALITY AS k(id, position)
CROSS JOIN LATERAL (
    SELECT {e.parent} AS parent, {e.edge_type} AS edge_type
    FROM {edges} AS e
    WHERE {e.child} OPERATOR(pg_catalog.=) k.id
      AND {e.child} OPERATOR(pg_catalog.>=) k.id
      AND {e.child} OPERATOR(pg_catalog.<=) k.id
    OFFSET 0
) AS e
LEFT JOIN LATERAL (
    SELECT {t.id} AS id, {t.phase} AS phase, {t.salience} AS salience
    FROM {turns} AS t
    WHERE {t.id} OPERATOR(pg_catalog.=) e.parent
    OFFSET 0
) AS t ON true
