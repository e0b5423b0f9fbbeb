-- For each batch the turns of its ids that exist, with what scores them.
SELECT t.id, t.phase, t.salience
FROM batch AS b
LEFT JOIN LATERAL (
    SELECT {t.id} AS id, {t.phase} AS phase, {t.salience} AS salience
    FROM {turns} AS t
    WHERE {t.id} OPERATOR(pg_catalog.=) ANY (b.ids)
) AS t ON true
