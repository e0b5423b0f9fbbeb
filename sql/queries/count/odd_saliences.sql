-- Turns whose salience is NaN or outside 0 to 1.
SELECT pg_catalog.count(*)
FROM {turns} AS t
WHERE ({t.salience} OPERATOR(pg_catalog.>=) 0::pg_catalog.float8
       AND {t.salience} OPERATOR(pg_catalog.<=) 1::pg_catalog.float8) IS FALSE
