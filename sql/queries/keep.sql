-- $1, $3 to $6, $9 text, $2 bytea, $7 uuid, $8 uuid[]: keeps a document, if it is not kept already.
INSERT INTO {store} (key, document, kind, graph, role, rls, anchor, turns, kept_by, kept_at)
VALUES ($1, $2, $3, $4, $5, ($6)::pg_catalog.bool, $7, $8, $9, pg_catalog.now())
ON CONFLICT DO NOTHING
RETURNING true
