-- Computes a value of every row.
SELECT pg_catalog.count({value}) FROM {table} AS t
