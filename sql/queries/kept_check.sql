-- $1, $2, $3 text: notes what taking a kept slice again has found, and the document that has taken its place.
UPDATE {store} AS s
SET checked_at = pg_catalog.clock_timestamp(), status = $2, superseded_by = $3
WHERE {s.key} OPERATOR(pg_catalog.=) $1
RETURNING true
