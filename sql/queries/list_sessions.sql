-- $1, $2, $3 bigint: of all sessions so many after so many, the latest first: the name, the number
-- of turns, the latest turn and its time, and so many characters of the first content and of the latest turn's.
SELECT s.name, s.turns, s.id, s.at,
       CASE WHEN $3 OPERATOR(pg_catalog.>) 0 THEN (
           SELECT graph_kernel.text_prefix({t.content_text}, ($3)::pg_catalog.int4)
           FROM {turns} AS t
           WHERE {t.id} OPERATOR(pg_catalog.=) s.first
           LIMIT 1
       ) END,
       CASE WHEN $3 OPERATOR(pg_catalog.>) 0 THEN (
           SELECT graph_kernel.text_prefix({t.content_text}, ($3)::pg_catalog.int4)
           FROM {turns} AS t
           WHERE {t.id} OPERATOR(pg_catalog.=) s.id
           LIMIT 1
       ) END
FROM (
    SELECT s.name, s.turns, s.id, s.at, s.first
    FROM (
        SELECT t.name, t.id, t.at,
               pg_catalog.count(*) OVER (PARTITION BY t.name) AS turns,
               pg_catalog.row_number() OVER (PARTITION BY t.name ORDER BY t.at DESC NULLS LAST, t.id) AS n,
               pg_catalog.first_value(t.id) OVER (
                   PARTITION BY t.name ORDER BY t.is_empty, t.at NULLS FIRST, t.id
               ) AS first
        FROM (
            SELECT ({name}) COLLATE pg_catalog."C" AS name, {t.id} AS id, {t.created_at} AS at,
                   CASE WHEN $3 OPERATOR(pg_catalog.>) 0
                        THEN COALESCE(pg_catalog.octet_length({t.content_text}), 0) OPERATOR(pg_catalog.=) 0 END
                       AS is_empty
            FROM {turns} AS t
            WHERE {t.id} IS NOT NULL
        ) AS t
    ) AS s
    WHERE s.n OPERATOR(pg_catalog.=) 1
    ORDER BY s.at DESC NULLS LAST, s.name
    LIMIT $1 OFFSET $2
) AS s
ORDER BY s.at DESC NULLS LAST, s.name
