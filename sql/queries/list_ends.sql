-- $1, $2, $3 bigint, …: as list_turns.sql, of the turns that are sought and that no other of their session follows.
-- What refers to a turn does not follow it.
SELECT s.id, s.name, graph_kernel.text_prefix(s.role, 64), graph_kernel.text_prefix(s.phase, 64), s.at,
       graph_kernel.text_prefix(s.content, ($3)::pg_catalog.int4)
FROM (
    SELECT {t.id} AS id, {name} AS name, {t.role} AS role, {t.phase} AS phase, {t.created_at} AS at,
           {t.content_text} AS content
    FROM {turns} AS t
    WHERE {t.id} IS NOT NULL AND {is_sought}
      AND NOT EXISTS (
          SELECT
          FROM (
              [[SELECT {e.parent} AS parent, {e.child} AS child, {e.edge_type} AS edge_type
              FROM {edges_by_parent} AS e]]
          ) AS e
          JOIN (SELECT {t.id} AS id, {t.session_id} AS session_id FROM {turns} AS t) AS c
            ON c.id OPERATOR(pg_catalog.=) e.child
          WHERE e.parent OPERATOR(pg_catalog.=) {t.id} AND e.child OPERATOR(pg_catalog.<>) {t.id}
            AND (pg_catalog.octet_length(e.edge_type) OPERATOR(pg_catalog.=) 9
                 AND pg_catalog.lower((e.edge_type) COLLATE pg_catalog."C") OPERATOR(pg_catalog.=) 'reference')
                IS NOT TRUE
            AND COALESCE(c.session_id, '') COLLATE pg_catalog."C" OPERATOR(pg_catalog.=) COALESCE({t.session_id},
                '') COLLATE pg_catalog."C"
      )
    {by_time}
    LIMIT $1 OFFSET $2
) AS s
{by_time}
