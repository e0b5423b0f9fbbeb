-- $1 uuid[]: the turns among them that exist, with what scores them.
SELECT t.id, t.phase, t.salience
FROM pg_catalog.unnest($1) AS k(id)
-- OFFSET 0 keeps the subquery whole: one index probe for each id, never a scan of the table.
CROSS JOIN LATERAL (
    SELECT {t.id} AS id, {t.phase} AS phase, {t.salience} AS salience
    FROM {turns} AS t
    WHERE {t.id} OPERATOR(pg_catalog.=) k.id
    OFFSET 0
) AS t
