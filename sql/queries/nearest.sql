-- $1 text: the turns nearest to an embedding, as an index on the column may find them.
SELECT {t.id}, {embedding}
FROM {turns} AS t
ORDER BY {column} {operator} ($1)::{type}
LIMIT {limit}
