-- $1 text: the document of a key; NULL where it is longer than one is stored.
SELECT CASE WHEN pg_catalog.octet_length({s.document}) OPERATOR(pg_catalog.<=) 67125248 THEN {s.document} END
FROM {store} AS s
WHERE {s.key} OPERATOR(pg_catalog.=) $1
