-- Replies whose ends are turns of different sessions. OFFSET 0 as in dangling_edges.sql.
SELECT pg_catalog.count(*)
FROM (
    SELECT e.parent, e.child
    FROM (
        [[SELECT {e.parent} AS parent, {e.child} AS child, {e.edge_type} AS edge_type FROM {edges} AS e]]
    ) AS e
    WHERE pg_catalog.octet_length(e.edge_type) OPERATOR(pg_catalog.=) 5
      AND pg_catalog.lower((e.edge_type) COLLATE pg_catalog."C") OPERATOR(pg_catalog.=) 'reply'
    OFFSET 0
) AS e
JOIN (SELECT {t.id} AS id, {t.session_id} AS session_id FROM {turns} AS t OFFSET 0) AS p
  ON p.id OPERATOR(pg_catalog.=) e.parent
JOIN (SELECT {t.id} AS id, {t.session_id} AS session_id FROM {turns} AS t OFFSET 0) AS c
  ON c.id OPERATOR(pg_catalog.=) e.child
WHERE COALESCE(p.session_id, '') COLLATE pg_catalog."C" OPERATOR(pg_catalog.<>) COALESCE(c.session_id,
      '') COLLATE pg_catalog."C"
