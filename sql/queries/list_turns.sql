-- $1, $2, $3 bigint, …: of the turns that are sought so many after so many, the latest first, with so many characters
-- of each content.
SELECT s.id, s.name, graph_kernel.text_prefix(s.role, 64), graph_kernel.text_prefix(s.phase, 64), s.at,
       graph_kernel.text_prefix(s.content, ($3)::pg_catalog.int4)
FROM (
    SELECT {t.id} AS id, {name} AS name, {t.role} AS role, {t.phase} AS phase, {t.created_at} AS at,
           {t.content_text} AS content
    FROM {turns} AS t
    WHERE {t.id} IS NOT NULL AND {is_sought}
    {by_time}
    LIMIT $1 OFFSET $2
) AS s
{by_time}
