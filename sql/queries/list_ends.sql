-- $1, $2, $3 bigint, …: as list_turns.sql, of the turns that are sought and that no other follows.
SELECT s.id, s.name, graph_kernel.text_prefix(s.role, 64), graph_kernel.text_prefix(s.phase, 64), s.at,
       graph_kernel.text_prefix(s.content, ($3)::pg_catalog.int4)
FROM (
    SELECT {t.id} AS id, {name} AS name, {t.role} AS role, {t.phase} AS phase, {t.created_at} AS at,
           {t.content_text} AS content
    FROM {turns} AS t
    WHERE {t.id} IS NOT NULL AND {is_sought}
      AND NOT EXISTS (
          SELECT
          FROM ([[SELECT {e.parent} AS parent, {e.child} AS child FROM {edges_by_parent} AS e]]) AS e
          WHERE e.parent OPERATOR(pg_catalog.=) {t.id} AND e.child OPERATOR(pg_catalog.<>) {t.id}
      )
    {by_time}
    LIMIT $1 OFFSET $2
) AS s
{by_time}
