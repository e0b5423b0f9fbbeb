-- Edges with an end that is not a turn. A row without two ends is not an edge. Tables are joined where the statement is
-- run: OFFSET 0 has Citus read each of them to there.
SELECT pg_catalog.count(*)
FROM (
    SELECT e.parent, e.child
    FROM (
        [[SELECT {e.parent} AS parent, {e.child} AS child FROM {edges} AS e]]
    ) AS e
    WHERE e.parent IS NOT NULL AND e.child IS NOT NULL
    OFFSET 0
) AS e
LEFT JOIN (SELECT DISTINCT {t.id} AS id FROM {turns} AS t OFFSET 0) AS p ON p.id OPERATOR(pg_catalog.=) e.parent
LEFT JOIN (SELECT DISTINCT {t.id} AS id FROM {turns} AS t OFFSET 0) AS c ON c.id OPERATOR(pg_catalog.=) e.child
WHERE p.id IS NULL OR c.id IS NULL
