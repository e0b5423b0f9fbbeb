-- $1 uuid[]: the existing children of each turn, once for each edge, with its type and what a policy reads of them.
-- The equality is stated three times: alone it is estimated by the average, which a hub makes so
-- large that any index looks as good as the right one. A range with a parameter has a small estimate.
SELECT k.position, t.id, t.phase, t.salience, t.created_at, t.session_id, t.role, t.tokens, e.edge_type
FROM pg_catalog.unnest($1) WITH ORDINALITY AS k(id, position)
CROSS JOIN LATERAL (
    [[SELECT {e.child} AS child, {e.edge_type?} AS edge_type
    FROM {edges_by_parent} AS e
    WHERE {e.parent} OPERATOR(pg_catalog.=) k.id
      AND {e.parent} OPERATOR(pg_catalog.>=) k.id
      AND {e.parent} OPERATOR(pg_catalog.<=) k.id]]
    OFFSET 0
) AS e
CROSS JOIN LATERAL (
    SELECT {t.id} AS id, {t.phase} AS phase, {t.salience} AS salience, {t.created_at?} AS created_at,
           {t.session_id?} AS session_id, {t.role?} AS role, {tokens} AS tokens
    FROM {turns} AS t
    WHERE {t.id} OPERATOR(pg_catalog.=) e.child
    OFFSET 0
) AS t
