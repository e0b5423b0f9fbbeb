-- Replies whose ends are turns of different sessions.
SELECT pg_catalog.count(*)
FROM (
    [[SELECT {e.parent} AS parent, {e.child} AS child, {e.edge_type} AS edge_type FROM {edges} AS e]]
) AS e
JOIN (SELECT {t.id} AS id, {t.session_id} AS session_id FROM {turns} AS t) AS p ON p.id OPERATOR(pg_catalog.=) e.parent
JOIN (SELECT {t.id} AS id, {t.session_id} AS session_id FROM {turns} AS t) AS c ON c.id OPERATOR(pg_catalog.=) e.child
WHERE pg_catalog.octet_length(e.edge_type) OPERATOR(pg_catalog.=) 5
  AND pg_catalog.lower((e.edge_type) COLLATE pg_catalog."C") OPERATOR(pg_catalog.=) 'reply'
  AND COALESCE(p.session_id, '') COLLATE pg_catalog."C" OPERATOR(pg_catalog.<>) COALESCE(c.session_id,
      '') COLLATE pg_catalog."C"
