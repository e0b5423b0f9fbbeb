-- Edges from a turn to itself.
SELECT pg_catalog.count(*) FROM {edges} AS e WHERE {e.parent} OPERATOR(pg_catalog.=) {e.child}
