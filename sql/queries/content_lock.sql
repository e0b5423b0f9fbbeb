-- $1 uuid[]: locks those of these turns that no other transaction has locked.
SELECT {t.id}
FROM {turns} AS t
WHERE {t.id} OPERATOR(pg_catalog.=) ANY ($1)
FOR NO KEY UPDATE SKIP LOCKED
