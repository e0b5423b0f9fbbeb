-- $1, … text: stores the provenance of a search.
INSERT INTO {traces} (id, retrieval_mode, is_admissible, slice_id, admissibility_token, provenance)
VALUES (($1)::pg_catalog.uuid, $2, ($3)::pg_catalog.bool, $4, $5, ($6)::pg_catalog.jsonb)
RETURNING ($1)::pg_catalog.uuid
