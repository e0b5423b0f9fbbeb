-- $1 uuid[]: the contents of these turns, with their bytes, which are known before a stored value is read.
SELECT t.id, t.content, pg_catalog.octet_length(t.content)::pg_catalog.int8
FROM {each_id} (
    SELECT {t.id} AS id, {t.content_text} AS content
    FROM {turns} AS t
    WHERE {t.id} OPERATOR(pg_catalog.=) {that_id}
    {probed}
) AS t
