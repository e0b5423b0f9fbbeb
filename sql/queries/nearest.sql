-- $1 text, $2 bigint: so many turns nearest to an embedding, as an index on the column may find them.
SELECT {t.id}, {embedding}
FROM {turns} AS t
ORDER BY {column} {operator} ($1)::{type}
LIMIT $2
