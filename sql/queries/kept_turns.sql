-- $1 uuid[]: what is kept, with the turns that it names, but for more than a document has; where there are ids, what
-- names one of them.
SELECT {s.key}, CASE WHEN pg_catalog.octet_length({s.kind}) OPERATOR(pg_catalog.<=) 4096 THEN {s.kind} END,
       CASE WHEN pg_catalog.cardinality({s.turns}) OPERATOR(pg_catalog.<=) 20000
            THEN pg_catalog.array_to_string({s.turns}, ' ') END
FROM {store} AS s
WHERE pg_catalog.cardinality($1) OPERATOR(pg_catalog.=) 0 OR {s.turns} OPERATOR(pg_catalog.&&) $1
