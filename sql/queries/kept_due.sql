-- $1, $2, $3 text, $4 timestamptz, $5 bigint: so many slices of a graph, taken by a role with or without row security,
-- that were not taken again since then, the longest first. What is longer than a document is stored is not read. As who
-- may insert may write any time, one that has not come counts for nothing, nor does a successor that is not there.
SELECT {s.key}, CASE WHEN pg_catalog.octet_length({s.document}) OPERATOR(pg_catalog.<=) 67125248 THEN {s.document} END
FROM {store} AS s
WHERE {s.graph} OPERATOR(pg_catalog.=) $1 AND {s.role} OPERATOR(pg_catalog.=) $2
  AND {s.rls} OPERATOR(pg_catalog.=) ($3)::pg_catalog.bool
  AND {s.kind} OPERATOR(pg_catalog.=) 'slice' AND {s.key} IS NOT NULL
  AND ({s.superseded_by} IS NULL OR {s.checked_at} IS NULL
       OR NOT EXISTS (SELECT FROM (SELECT {s.key} AS key FROM {store} AS s) AS o
                      WHERE o.key OPERATOR(pg_catalog.=) ({s.superseded_by}) COLLATE pg_catalog."C"))
  AND ({s.checked_at} IS NULL OR {s.checked_at} OPERATOR(pg_catalog.<) $4
       OR {s.checked_at} OPERATOR(pg_catalog.>)
          (pg_catalog.clock_timestamp() OPERATOR(pg_catalog.+) '1 second'::pg_catalog.interval))
ORDER BY {s.checked_at} NULLS FIRST, {s.key}
LIMIT $5
