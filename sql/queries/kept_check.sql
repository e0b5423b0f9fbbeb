-- $1, $2, $3 text: notes what taking a kept slice again has found, and the document that has taken its place. What a
-- trigger has set back is not noted; the column may have less than microseconds.
UPDATE {store} AS s
SET checked_at = pg_catalog.clock_timestamp(), status = $2, superseded_by = $3
WHERE {s.key} OPERATOR(pg_catalog.=) $1
RETURNING {s.checked_at} OPERATOR(pg_catalog.>=) (pg_catalog.transaction_timestamp()
          OPERATOR(pg_catalog.-) '1 second'::pg_catalog.interval)
