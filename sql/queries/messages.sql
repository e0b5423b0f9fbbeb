-- $1 uuid[]: the contents and payloads of these turns, with their bytes, and their times. NULL for what has more than
-- CONTENTS_MAX_BYTES, which is known of a stored value without reading it.
SELECT t.id,
       CASE WHEN pg_catalog.octet_length(t.content) OPERATOR(pg_catalog.<=) 67108864
            THEN t.content END,
       pg_catalog.octet_length(t.content)::pg_catalog.int8,
       CASE WHEN pg_catalog.octet_length(t.payload) OPERATOR(pg_catalog.<=) 67108864
            THEN t.payload END,
       pg_catalog.octet_length(t.payload)::pg_catalog.int8,
       t.created_at
FROM {each_id} (
    SELECT {t.id} AS id, {t.content_text} AS content, {t.payload} AS payload, {t.created_at} AS created_at
    FROM {turns} AS t
    WHERE {t.id} OPERATOR(pg_catalog.=) {that_id}
    {probed}
) AS t
