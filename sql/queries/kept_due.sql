-- $1, $2, $3 text, $4 timestamptz, $5 bigint: so many slices of a graph, taken by a role with or without row security,
-- that were not taken again since then, the longest first. What is longer than a document is stored is not read. As who
-- may insert may write any time, one that has not come counts for nothing. A key of other bytes than one has could not
-- be sought again. Within CASE the planner does not expect few rows, and looks at few keys.
SELECT {s.key}, CASE WHEN pg_catalog.octet_length({s.document}) OPERATOR(pg_catalog.<=) 67125248 THEN {s.document} END
FROM {store} AS s
WHERE {s.graph} OPERATOR(pg_catalog.=) $1 AND {s.role} OPERATOR(pg_catalog.=) $2
  AND {s.rls} OPERATOR(pg_catalog.=) ($3)::pg_catalog.bool
  AND {s.kind} OPERATOR(pg_catalog.=) 'slice' AND {s.superseded_by} IS NULL
  AND CASE WHEN ({s.checked_at} IS NULL OR {s.checked_at} OPERATOR(pg_catalog.<) $4
                 OR {s.checked_at} OPERATOR(pg_catalog.>)
                    (pg_catalog.clock_timestamp() OPERATOR(pg_catalog.+) '1 second'::pg_catalog.interval))
                AND pg_catalog.octet_length({s.key}) OPERATOR(pg_catalog.=) 64
           THEN ({s.key}) COLLATE pg_catalog."C" OPERATOR(pg_catalog.~) pg_catalog.repeat('[0-9a-f]', 64) END
ORDER BY {s.checked_at} NULLS FIRST, {s.key}
LIMIT $5
