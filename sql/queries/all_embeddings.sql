-- Every turn's embedding.
SELECT {t.id}, {embedding} FROM {turns} AS t
