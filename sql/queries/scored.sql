-- $1 uuid[]: the turns of these ids that exist, with the columns that score them.
SELECT {t.id}, {t.phase}, {t.salience}
FROM {turns} AS t
WHERE {t.id} OPERATOR(pg_catalog.=) ANY ($1)
