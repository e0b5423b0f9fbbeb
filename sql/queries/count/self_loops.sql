-- Edges from a turn to itself.
SELECT pg_catalog.count(*)
FROM (
    [[SELECT {e.parent} AS parent, {e.child} AS child FROM {edges} AS e]]
) AS e
WHERE e.parent OPERATOR(pg_catalog.=) e.child
