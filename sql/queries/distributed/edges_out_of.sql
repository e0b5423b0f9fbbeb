-- $1 uuid[]: the edges out of these turns, of one of the sources of edges: Citus asks those servers that may have them.
[[SELECT {e.parent}, false, {e.child}, {e.edge_type?}
FROM {edges_by_parent} AS e
WHERE {e.parent} OPERATOR(pg_catalog.=) ANY ($1)]]
