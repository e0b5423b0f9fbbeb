-- Every row, by its table, or partition, and ctid.
SELECT t.tableoid::pg_catalog.int8, t.ctid::pg_catalog.text FROM {table} AS t
