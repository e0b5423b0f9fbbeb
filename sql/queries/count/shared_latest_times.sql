-- Sessions whose latest time is that of several turns.
SELECT pg_catalog.count(*)
FROM (
    SELECT DISTINCT ON (t.session_id) pg_catalog.count(*) AS turns
    FROM (
        SELECT ({t.session_id}) COLLATE pg_catalog."C" AS session_id, {t.created_at} AS created_at FROM {turns} AS t
    ) AS t
    WHERE t.session_id IS NOT NULL AND t.created_at IS NOT NULL
    GROUP BY t.session_id, t.created_at
    ORDER BY t.session_id, t.created_at DESC
) AS s
WHERE s.turns OPERATOR(pg_catalog.>) 1
