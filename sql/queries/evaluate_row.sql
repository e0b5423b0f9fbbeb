-- $1, $2 text: computes a value of the row of this table, or partition, and ctid.
SELECT pg_catalog.count({value})
FROM {table} AS t
WHERE t.tableoid OPERATOR(pg_catalog.=) ($1)::pg_catalog.oid AND t.ctid OPERATOR(pg_catalog.=) ($2)::pg_catalog.tid
