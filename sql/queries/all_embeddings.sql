-- The embedding of every turn that is sought.
SELECT {t.id}, {embedding} FROM {turns} AS t WHERE {is_sought}
