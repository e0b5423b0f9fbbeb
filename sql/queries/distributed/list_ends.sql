-- $1, $2, $3 bigint, …: of the turns that are sought and that no other follows so many after so many, the latest first.
-- OFFSET 0 as in dangling_edges.sql.
SELECT t.id, t.at
FROM (
    SELECT {t.id} AS id, {t.created_at} AS at
    FROM {turns} AS t
    WHERE {t.id} IS NOT NULL AND {is_sought}
    OFFSET 0
) AS t
LEFT JOIN (
    SELECT DISTINCT e.parent
    FROM (
        [[SELECT {e.parent} AS parent, {e.child} AS child FROM {edges_by_parent} AS e]]
    ) AS e
    WHERE e.parent OPERATOR(pg_catalog.<>) e.child
    OFFSET 0
) AS e ON e.parent OPERATOR(pg_catalog.=) t.id
WHERE e.parent IS NULL
ORDER BY t.at DESC NULLS LAST, t.id
LIMIT $1 OFFSET $2
