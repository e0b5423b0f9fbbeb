-- Ids that are not turns, and a parent of turns of several sessions. OFFSET 0 as in dangling_edges.sql.
SELECT pg_catalog.count(*)
FROM (
    SELECT e.parent
    FROM (
        SELECT e.parent, e.child
        FROM (
            [[SELECT {e.parent} AS parent, {e.child} AS child FROM {edges} AS e]]
        ) AS e
        WHERE e.parent IS NOT NULL
        OFFSET 0
    ) AS e
    JOIN (SELECT {t.id} AS id, {t.session_id} AS session_id FROM {turns} AS t OFFSET 0) AS t
      ON t.id OPERATOR(pg_catalog.=) e.child
    LEFT JOIN (SELECT DISTINCT {t.id} AS id FROM {turns} AS t OFFSET 0) AS p ON p.id OPERATOR(pg_catalog.=) e.parent
    WHERE p.id IS NULL
    GROUP BY e.parent
    HAVING pg_catalog.min(t.session_id) OPERATOR(pg_catalog.<>) pg_catalog.max(t.session_id)
) AS m
