-- $1 uuid[], …: the words of these turns, of those that are sought.
SELECT t.id, t.words
-- One probe of the key for each id.
FROM {each_id} (
    SELECT {t.id} AS id, {words} AS words
    FROM {turns} AS t
    WHERE {t.id} OPERATOR(pg_catalog.=) {that_id} AND {is_sought}
    {probed}
) AS t
