-- $1 text, $2 bigint: so many turns after an id, whether their hash is missing or not that of their content, and
-- whether their content is not text. What stands in the place of a hash and is none may be the only copy of something.
SELECT p.id,
       p.computed IS NOT NULL AND (p.computed OPERATOR(pg_catalog.=) p.stored) IS NOT TRUE
           AND (p.stored IS NULL OR pg_catalog.octet_length(p.stored) OPERATOR(pg_catalog.=) 64
                AND (p.stored COLLATE pg_catalog."C") OPERATOR(pg_catalog.~) '^[0-9a-f]+$'),
       p.has_content AND p.computed IS NULL
FROM (
    SELECT {t.id} AS id, {t.content_hash} AS stored, {t.content_text} IS NOT NULL AS has_content,
           graph_kernel.content_hash_or_null({t.content_text}) AS computed
    FROM {turns} AS t
    WHERE $1 IS NULL OR {t.id} OPERATOR(pg_catalog.>) ($1)::pg_catalog.uuid
    ORDER BY 1
    LIMIT $2
) AS p
ORDER BY 1
