-- As kept_due.sql, slices that say of themselves that others have taken their place, where these are not there or are
-- themselves, or no time is given: whoever may insert may write so. No index has them. What comes out of JSON has no
-- collation, so that the index of keys has it whatever collation they have.
SELECT {s.key}, CASE WHEN pg_catalog.octet_length({s.document}) OPERATOR(pg_catalog.<=) 67125248 THEN {s.document} END
FROM {store} AS s
WHERE {s.graph} OPERATOR(pg_catalog.=) $1 AND {s.role} OPERATOR(pg_catalog.=) $2
  AND {s.rls} OPERATOR(pg_catalog.=) ($3)::pg_catalog.bool
  AND {s.kind} OPERATOR(pg_catalog.=) 'slice' AND {s.superseded_by} IS NOT NULL
  AND CASE WHEN ({s.checked_at} IS NULL OR {s.checked_at} OPERATOR(pg_catalog.<) $4
                 OR {s.checked_at} OPERATOR(pg_catalog.>)
                    (pg_catalog.clock_timestamp() OPERATOR(pg_catalog.+) '1 second'::pg_catalog.interval))
                AND pg_catalog.octet_length({s.key}) OPERATOR(pg_catalog.=) 64
           THEN ({s.key}) COLLATE pg_catalog."C" OPERATOR(pg_catalog.~) pg_catalog.repeat('[0-9a-f]', 64) END
  AND NOT EXISTS (SELECT FROM (SELECT {s.key} AS key FROM {store} AS s) AS o
                  WHERE o.key OPERATOR(pg_catalog.=)
                        CASE WHEN pg_catalog.octet_length({s.superseded_by}) OPERATOR(pg_catalog.=) 64
                             THEN pg_catalog.to_jsonb({s.superseded_by})
                                  OPERATOR(pg_catalog.#>>) ARRAY[]::pg_catalog.text[] END
                    AND o.key OPERATOR(pg_catalog.<>) {s.key}
                    AND {s.checked_at} IS NOT NULL)
LIMIT $5
