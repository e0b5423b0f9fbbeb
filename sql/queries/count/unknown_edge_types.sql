-- Edges whose type is not a known one. What is longer is none, and is not read.
SELECT pg_catalog.count(*)
FROM (
    [[SELECT {e.parent} AS parent, {e.child} AS child, {e.edge_type} AS edge_type FROM {edges} AS e]]
) AS e
WHERE e.parent IS NOT NULL AND e.child IS NOT NULL
  AND (pg_catalog.octet_length(e.edge_type) OPERATOR(pg_catalog.<=) 9
       AND pg_catalog.lower((e.edge_type) COLLATE pg_catalog."C") OPERATOR(pg_catalog.=)
           ANY (ARRAY['reply', 'branch', 'reference', 'default']::pg_catalog.text[])) IS FALSE
