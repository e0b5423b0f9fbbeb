-- $1 text: the lexemes of a question.
SELECT l.lexeme
FROM pg_catalog.unnest(pg_catalog.tsvector_to_array(
    pg_catalog.to_tsvector({configuration}::pg_catalog.regconfig, $1))) AS l (lexeme)
