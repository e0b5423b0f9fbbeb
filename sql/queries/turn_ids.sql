-- Every turn's id and time, by ascending id.
SELECT {t.id}, {t.created_at} FROM {turns} AS t ORDER BY 1
