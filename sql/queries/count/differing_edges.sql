-- Edges that one of both edges tables has more often than the other. OFFSET 0 has Citus read each of them to where the
-- statement is run.
SELECT pg_catalog.count(*)
FROM (
    (SELECT e.parent, e.child, e.edge_type FROM (
        SELECT {e.parent} AS parent, {e.child} AS child, {e.edge_type} AS edge_type FROM {edges} AS e OFFSET 0
     ) AS e EXCEPT ALL SELECT c.parent, c.child, c.edge_type FROM (
        SELECT {e.parent} AS parent, {e.child} AS child, {e.edge_type} AS edge_type FROM {edges_by_child} AS e OFFSET 0
     ) AS c)
    UNION ALL
    (SELECT c.parent, c.child, c.edge_type FROM (
        SELECT {e.parent} AS parent, {e.child} AS child, {e.edge_type} AS edge_type FROM {edges_by_child} AS e OFFSET 0
     ) AS c EXCEPT ALL SELECT e.parent, e.child, e.edge_type FROM (
        SELECT {e.parent} AS parent, {e.child} AS child, {e.edge_type} AS edge_type FROM {edges} AS e OFFSET 0
     ) AS e)
) AS d
