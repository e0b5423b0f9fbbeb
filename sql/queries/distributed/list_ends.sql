-- $1, $2, $3 bigint, …: as ../list_ends.sql, the ids and times of so many turns after so many, the latest first.
-- OFFSET 0 as in dangling_edges.sql.
SELECT t.id, t.at
FROM (
    SELECT {t.id} AS id, {t.created_at} AS at, {t.session_id} AS session_id
    FROM {turns} AS t
    WHERE {t.id} IS NOT NULL AND {is_sought}
    OFFSET 0
) AS t
LEFT JOIN (
    SELECT DISTINCT e.parent, COALESCE(c.session_id, '') COLLATE pg_catalog."C" AS session_id
    FROM (
        [[SELECT {e.parent} AS parent, {e.child} AS child, {e.edge_type} AS edge_type FROM {edges_by_parent} AS e]]
    ) AS e
    JOIN (SELECT {t.id} AS id, {t.session_id} AS session_id FROM {turns} AS t OFFSET 0) AS c
      ON c.id OPERATOR(pg_catalog.=) e.child
    WHERE e.parent OPERATOR(pg_catalog.<>) e.child
      AND (pg_catalog.octet_length(e.edge_type) OPERATOR(pg_catalog.=) 9
           AND pg_catalog.lower((e.edge_type) COLLATE pg_catalog."C") OPERATOR(pg_catalog.=) 'reference') IS NOT TRUE
    OFFSET 0
) AS e ON e.parent OPERATOR(pg_catalog.=) t.id
  AND e.session_id OPERATOR(pg_catalog.=) COALESCE(t.session_id, '') COLLATE pg_catalog."C"
WHERE e.parent IS NULL
ORDER BY t.at DESC NULLS LAST, t.id
LIMIT $1 OFFSET $2
