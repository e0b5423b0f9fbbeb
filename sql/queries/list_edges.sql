-- $1 uuid[], $2 bigint: of the edges that lead to these turns so many, each once.
SELECT DISTINCT e.parent, e.child, graph_kernel.text_prefix(e.edge_type, 64)
FROM (
    [[SELECT {e.parent} AS parent, {e.child} AS child, {e.edge_type} AS edge_type
    FROM {edges} AS e
    WHERE {e.child} OPERATOR(pg_catalog.=) ANY ($1)]]
) AS e
WHERE e.parent IS NOT NULL
LIMIT $2
