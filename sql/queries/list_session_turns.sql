-- $1 bigint, …: each turn of the sessions that are sought: the name of its session, its time, and, where characters of
-- contents are asked for, whether it has none.
SELECT {name}, {t.id}, {t.created_at},
       CASE WHEN $1 OPERATOR(pg_catalog.>) 0
            THEN COALESCE(pg_catalog.octet_length({t.content_text}), 0) OPERATOR(pg_catalog.=) 0 END
FROM {turns} AS t
WHERE {t.id} IS NOT NULL AND {is_sought}
