-- $1 uuid[], …: the words of these turns, of those that are sought.
SELECT t.id, t.words
FROM pg_catalog.unnest($1) AS k(id)
-- OFFSET 0: one probe of the key for each id.
CROSS JOIN LATERAL (
    SELECT {t.id} AS id, {words} AS words
    FROM {turns} AS t
    WHERE {t.id} OPERATOR(pg_catalog.=) k.id AND {is_sought}
    OFFSET 0
) AS t
