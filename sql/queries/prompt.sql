-- $1 uuid[], $2 bigint: the contents of these turns, at most so many characters of each, with times and tokens.
SELECT t.id, t.content, t.created_at, t.tokens
FROM pg_catalog.unnest($1) AS k(id)
CROSS JOIN LATERAL (
    SELECT {t.id} AS id, graph_kernel.text_prefix({t.content_text}, $2::pg_catalog.int4) AS content,
           {t.created_at} AS created_at, {tokens} AS tokens
    FROM {turns} AS t
    WHERE {t.id} OPERATOR(pg_catalog.=) k.id
    OFFSET 0
) AS t
