-- $1, $2, $3 text: how many slices of a graph another role has taken, or with other row security.
SELECT pg_catalog.count(*)
FROM {store} AS s
WHERE {s.graph} OPERATOR(pg_catalog.=) $1 AND {s.kind} OPERATOR(pg_catalog.=) 'slice' AND {s.superseded_by} IS NULL
  AND ({s.role} OPERATOR(pg_catalog.<>) $2 OR {s.rls} OPERATOR(pg_catalog.<>) ($3)::pg_catalog.bool)
