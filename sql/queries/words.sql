-- $1 text, …: the words of the turns that have any of these lexemes, of those that are sought.
SELECT {t.id}, {words}
FROM {turns} AS t
WHERE {words} OPERATOR(pg_catalog.@@) ($1)::pg_catalog.tsquery AND {is_sought}
