-- $1 uuid[]: the edges of each turn, both ways, of each way at most $2; then those of turns around them,
-- breadth first, $4 steps far, as long as rows are asked for; from a turn of $1 not towards the one at its place
-- in $3 uuid[], from the others not back.
-- The equality is said thrice: see neighbours.sql.
WITH RECURSIVE nearby(turn, is_parent, other, edge_type, came_from, step) AS (
    SELECT k.id, n.is_parent, n.other, n.edge_type, k.came_from, 1::pg_catalog.int8
    FROM ROWS FROM (pg_catalog.unnest($1), pg_catalog.unnest($3)) AS k(id, came_from)
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
    SELECT w.other, n.is_parent, n.other, n.edge_type, w.turn, w.step OPERATOR(pg_catalog.+) 1
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
    WHERE w.step OPERATOR(pg_catalog.<) $4
      AND w.other OPERATOR(pg_catalog.<>) w.came_from
      AND w.other OPERATOR(pg_catalog.<>) w.turn
)
SELECT nearby.turn, nearby.is_parent, nearby.other, nearby.edge_type FROM nearby
