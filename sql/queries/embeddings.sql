-- $1 uuid[], …: the embeddings of these turns, of those that are sought.
SELECT t.id, t.embedding
FROM pg_catalog.unnest($1) AS k(id)
-- OFFSET 0: one probe of the key for each id; an approximate index would lose turns.
CROSS JOIN LATERAL (
    SELECT {t.id} AS id, {embedding} AS embedding
    FROM {turns} AS t
    WHERE {t.id} OPERATOR(pg_catalog.=) k.id AND {is_sought}
    OFFSET 0
) AS t
