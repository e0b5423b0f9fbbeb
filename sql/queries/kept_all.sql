-- Every document that is kept, with what its row says of it. What is longer than a document is stored is not read.
SELECT {s.key}, CASE WHEN pg_catalog.octet_length({s.document}) OPERATOR(pg_catalog.<=) 67125248 THEN {s.document} END,
       CASE WHEN pg_catalog.octet_length({s.kind}) OPERATOR(pg_catalog.<=) 4096 THEN {s.kind} END,
       CASE WHEN pg_catalog.octet_length({s.graph}) OPERATOR(pg_catalog.<=) 4096 THEN {s.graph} END,
       CASE WHEN pg_catalog.octet_length({s.role}) OPERATOR(pg_catalog.<=) 4096 THEN {s.role} END,
       {s.rls}, {s.anchor},
       CASE WHEN pg_catalog.cardinality({s.turns}) OPERATOR(pg_catalog.<=) 20000
            THEN pg_catalog.array_to_string({s.turns}, ' ') END,
       {s.checked_at} IS NULL AND {s.status} IS NULL AND {s.superseded_by} IS NULL
       OR {s.checked_at} IS NOT NULL AND {s.status} IS NOT NULL AND {s.checked_at} OPERATOR(pg_catalog.<=)
          (pg_catalog.clock_timestamp() OPERATOR(pg_catalog.+) '1 second'::pg_catalog.interval)
          AND ({s.superseded_by} IS NULL
               OR ({s.superseded_by}) COLLATE pg_catalog."C" OPERATOR(pg_catalog.<>) ({s.key}) COLLATE pg_catalog."C")
FROM {store} AS s
