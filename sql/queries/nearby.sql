-- $1 uuid[]: the edges of each turn, both ways, of each way at most $2; then those of turns around them,
-- breadth first, as long as rows are asked for. Nothing beyond the turns of $3 uuid[] is looked up, nor back
-- where it came from.
-- The equality is said thrice: see neighbours.sql.
WITH RECURSIVE nearby(turn, is_parent, other, edge_type, came_from) AS (
    SELECT k.id, n.is_parent, n.other, n.edge_type, NULL::pg_catalog.uuid
    FROM pg_catalog.unnest($1) AS k(id)
    CROSS JOIN LATERAL (
        (SELECT true AS is_parent, {e.parent} AS other, {e.edge_type} AS edge_type
         FROM {edges} AS e
         WHERE {e.child} OPERATOR(pg_catalog.=) k.id
           AND {e.child} OPERATOR(pg_catalog.>=) k.id
           AND {e.child} OPERATOR(pg_catalog.<=) k.id
         LIMIT $2)
        UNION ALL
        (SELECT false, {e.child}, NULL::pg_catalog.text
         FROM {edges} AS e
         WHERE {e.parent} OPERATOR(pg_catalog.=) k.id
           AND {e.parent} OPERATOR(pg_catalog.>=) k.id
           AND {e.parent} OPERATOR(pg_catalog.<=) k.id
         LIMIT $2)
    ) AS n
    UNION
    SELECT w.other, n.is_parent, n.other, n.edge_type, w.turn
    FROM nearby AS w
    CROSS JOIN LATERAL (
        (SELECT true AS is_parent, {e.parent} AS other, {e.edge_type} AS edge_type
         FROM {edges} AS e
         WHERE {e.child} OPERATOR(pg_catalog.=) w.other
           AND {e.child} OPERATOR(pg_catalog.>=) w.other
           AND {e.child} OPERATOR(pg_catalog.<=) w.other
         LIMIT $2)
        UNION ALL
        (SELECT false, {e.child}, NULL::pg_catalog.text
         FROM {edges} AS e
         WHERE {e.parent} OPERATOR(pg_catalog.=) w.other
           AND {e.parent} OPERATOR(pg_catalog.>=) w.other
           AND {e.parent} OPERATOR(pg_catalog.<=) w.other
         LIMIT $2)
    ) AS n
    WHERE (w.came_from IS NULL OR w.other OPERATOR(pg_catalog.<>) w.came_from)
      AND NOT (w.other OPERATOR(pg_catalog.=) ANY (SELECT k.id FROM pg_catalog.unnest($3) AS k(id)))
)
SELECT nearby.turn, nearby.is_parent, nearby.other, nearby.edge_type FROM nearby
