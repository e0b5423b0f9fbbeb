-- $1 uuid[], $2 bigint: the contents of these turns, at most so many characters of each, with times and tokens. Where
-- whole contents are asked for, their bytes as well, and NULL for one of more than CONTENTS_MAX_BYTES: the length of a
-- stored value is known without reading it.
SELECT t.id,
       CASE WHEN $2 OPERATOR(pg_catalog.<=) 67108864
           OR pg_catalog.octet_length(t.content) OPERATOR(pg_catalog.<=) 67108864
            THEN graph_kernel.text_prefix(t.content, $2::pg_catalog.int4) END,
       t.created_at, t.tokens,
       CASE WHEN $2 OPERATOR(pg_catalog.>) 67108864 THEN pg_catalog.octet_length(t.content)::pg_catalog.int8 END
FROM pg_catalog.unnest($1) AS k(id)
CROSS JOIN LATERAL (
    SELECT {t.id} AS id, {t.content_text} AS content, {t.created_at} AS created_at, {tokens} AS tokens
    FROM {turns} AS t
    WHERE {t.id} OPERATOR(pg_catalog.=) k.id
    OFFSET 0
) AS t
