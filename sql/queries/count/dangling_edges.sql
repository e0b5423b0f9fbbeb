-- Edges with an end that is not a turn. A row without two ends is not an edge.
SELECT pg_catalog.count(*)
FROM (
    [[SELECT {e.parent} AS parent, {e.child} AS child FROM {edges} AS e]]
) AS e
WHERE e.parent IS NOT NULL AND e.child IS NOT NULL
  AND (NOT EXISTS (SELECT FROM {turns} AS t WHERE {t.id} OPERATOR(pg_catalog.=) e.parent)
       OR NOT EXISTS (SELECT FROM {turns} AS t WHERE {t.id} OPERATOR(pg_catalog.=) e.child))
