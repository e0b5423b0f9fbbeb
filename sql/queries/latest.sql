-- $1 text, $2 bigint: the latest turns of a session, or of all, so many.
SELECT {t.id}, {t.created_at}
FROM {turns} AS t
WHERE {t.created_at} IS NOT NULL AND {in_session}
ORDER BY {t.created_at} DESC, {t.id}
LIMIT $2
