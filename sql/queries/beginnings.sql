-- $1 uuid[], $2 bigint: at most so many characters of the content of each of these turns.
SELECT t.id, graph_kernel.text_prefix(t.content, $2::pg_catalog.int4)
FROM {each_id} (
    SELECT {t.id} AS id, {t.content_text} AS content
    FROM {turns} AS t
    WHERE {t.id} OPERATOR(pg_catalog.=) {that_id}
    {probed}
) AS t
