-- $1 uuid[], …: the embeddings of these turns, of those that are sought.
SELECT t.id, t.embedding
-- One probe of the key for each id; an approximate index would lose turns.
FROM {each_id} (
    SELECT {t.id} AS id, {embedding} AS embedding
    FROM {turns} AS t
    WHERE {t.id} OPERATOR(pg_catalog.=) {that_id} AND {is_sought}
    {probed}
) AS t
