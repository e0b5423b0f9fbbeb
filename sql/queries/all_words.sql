-- The words of every turn that is sought and has any.
SELECT {t.id}, {words} FROM {turns} AS t WHERE {words} IS NOT NULL AND {is_sought}
