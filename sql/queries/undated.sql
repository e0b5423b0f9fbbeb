-- $1 text, $2 bigint: so many turns without a time, which come after all others.
SELECT {t.id}, {t.created_at}
FROM {turns} AS t
WHERE {t.created_at} IS NULL AND {in_session}
ORDER BY {t.id}
LIMIT $2
