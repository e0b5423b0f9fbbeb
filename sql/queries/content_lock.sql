-- $1 uuid[]: those of these turns that no other transaction holds, held from now on.
SELECT {t.id}
FROM {turns} AS t
WHERE {t.id} OPERATOR(pg_catalog.=) ANY ($1)
FOR NO KEY UPDATE SKIP LOCKED
