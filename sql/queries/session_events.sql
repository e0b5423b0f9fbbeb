-- $1 text[]: how many events are of each of these sessions. What the column takes as equal its index finds.
SELECT ({e.session_id}) COLLATE pg_catalog."C", pg_catalog.count(*)
FROM {events} AS e
WHERE {e.session_id} OPERATOR(pg_catalog.=) ANY ($1)
  AND ({e.session_id}) COLLATE pg_catalog."C" OPERATOR(pg_catalog.=) ANY ($1)
GROUP BY 1
