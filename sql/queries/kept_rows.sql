-- What is kept, without the documents. Nobody of us writes a text that is longer than these.
SELECT {s.key},
       CASE WHEN pg_catalog.octet_length({s.kind}) OPERATOR(pg_catalog.<=) 4096 THEN {s.kind} END,
       CASE WHEN pg_catalog.octet_length({s.graph}) OPERATOR(pg_catalog.<=) 4096 THEN {s.graph} END,
       CASE WHEN pg_catalog.octet_length({s.role}) OPERATOR(pg_catalog.<=) 4096 THEN {s.role} END,
       {s.rls}, {s.anchor}, pg_catalog.cardinality({s.turns})::pg_catalog.int8,
       CASE WHEN pg_catalog.octet_length({s.kept_by}) OPERATOR(pg_catalog.<=) 4096 THEN {s.kept_by} END,
       {s.kept_at}, {s.checked_at},
       CASE WHEN pg_catalog.octet_length({s.status}) OPERATOR(pg_catalog.<=) 4096 THEN {s.status} END,
       CASE WHEN pg_catalog.octet_length({s.superseded_by}) OPERATOR(pg_catalog.<=) 4096 THEN {s.superseded_by} END
FROM {store} AS s
