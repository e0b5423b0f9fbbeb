-- $1 text: the document of a key.
SELECT {s.document} FROM {store} AS s WHERE {s.key} OPERATOR(pg_catalog.=) $1
