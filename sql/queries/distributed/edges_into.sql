-- $1 uuid[]: the edges into these turns, of one of the sources of edges: Citus asks those servers that may have them.
[[SELECT {e.child}, true, {e.parent}, {e.edge_type}
FROM {edges_by_child} AS e
WHERE {e.child} OPERATOR(pg_catalog.=) ANY ($1)]]
