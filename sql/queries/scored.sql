-- $1 uuid[]: the turns of these ids that exist, with what a policy reads of them.
SELECT {t.id}, {t.phase}, {t.salience}, {t.created_at?}, {t.session_id?}, {t.role?}, {tokens}
FROM {turns} AS t
WHERE {t.id} OPERATOR(pg_catalog.=) ANY ($1)
