-- $1, $2 bigint: of all sessions so many after so many, the latest first: the name, the number of turns and the time of
-- the latest.
SELECT s.name, s.turns, s.at
FROM (
    SELECT t.name, pg_catalog.count(*) AS turns, pg_catalog.max(t.at) AS at
    FROM (
        SELECT ({name}) COLLATE pg_catalog."C" AS name, {t.created_at} AS at
        FROM {turns} AS t
        WHERE {t.id} IS NOT NULL
    ) AS t
    GROUP BY t.name
) AS s
ORDER BY s.at DESC NULLS LAST, s.name
LIMIT $1 OFFSET $2
