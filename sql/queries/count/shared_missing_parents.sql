-- Ids that are not turns, and a parent of turns of several sessions: an import's marker for a beginning, mostly.
SELECT pg_catalog.count(*)
FROM (
    SELECT FROM (
        [[SELECT {e.parent} AS parent, {e.child} AS child FROM {edges} AS e]]
    ) AS e
    JOIN {turns} AS t ON {t.id} OPERATOR(pg_catalog.=) e.child
    WHERE e.parent IS NOT NULL
      AND NOT EXISTS (SELECT FROM {turns} AS t WHERE {t.id} OPERATOR(pg_catalog.=) e.parent)
    GROUP BY e.parent
    HAVING pg_catalog.min({t.session_id}) OPERATOR(pg_catalog.<>) pg_catalog.max({t.session_id})
) AS m
