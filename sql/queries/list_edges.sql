-- $1 uuid[]: the edges that lead to these turns, each once.
SELECT DISTINCT e.parent, e.child, graph_kernel.text_prefix(e.edge_type, 64)
FROM (
    [[SELECT {e.parent} AS parent, {e.child} AS child, {e.edge_type} AS edge_type
    FROM {edges_by_child} AS e
    WHERE {e.child} OPERATOR(pg_catalog.=) ANY ($1)]]
) AS e
WHERE e.parent IS NOT NULL
ORDER BY 1, 2, 3
