-- $1 uuid[]: how many characters the contents of these turns have together; NULL where none is stored.
SELECT pg_catalog.sum(graph_kernel.char_count(t.content))
FROM {each_id} (
    SELECT {t.content_text} AS content
    FROM {turns} AS t
    WHERE {t.id} OPERATOR(pg_catalog.=) {that_id}
    {probed}
) AS t
