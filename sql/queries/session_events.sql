-- $1 text[]: how many events are of each of these sessions.
SELECT {e.session_id}, pg_catalog.count(*)
FROM {events} AS e
WHERE {e.session_id} OPERATOR(pg_catalog.=) ANY ($1)
GROUP BY 1
