-- $1 text, $2 bigint, …: of the turns that are sought so many nearest to an embedding, as an index on the column may
-- find them.
SELECT {t.id}, {embedding}
FROM {turns} AS t
WHERE {is_sought}
ORDER BY {column} {operator} ($1)::{type}
LIMIT $2
