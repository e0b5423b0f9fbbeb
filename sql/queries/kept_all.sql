-- Every document that is kept, with what its row says of it. What is longer than a document is stored is not read.
SELECT {s.key}, CASE WHEN pg_catalog.octet_length({s.document}) OPERATOR(pg_catalog.<=) 67125248 THEN {s.document} END,
       {s.kind}, {s.graph}, {s.role}, {s.rls}, {s.anchor},
       pg_catalog.array_to_string({s.turns}, ' ')
FROM {store} AS s
