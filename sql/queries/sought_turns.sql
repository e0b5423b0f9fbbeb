-- …: the turns that are sought, and the sessions that they are in.
SELECT {t.id}, ({t.session_id})::pg_catalog.text FROM {turns} AS t WHERE {is_sought}
