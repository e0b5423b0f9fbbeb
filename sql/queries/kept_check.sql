-- $1, $2, $3, $5 text, $4 timestamptz: notes what taking a kept slice again has found, and the document that has taken
-- its place; where $5 says so at the next full second, as the column may have less than microseconds. Whether it is not
-- due any more: a trigger may have set another time.
UPDATE {store} AS s
SET checked_at = CASE WHEN ($5)::pg_catalog.bool
                      THEN pg_catalog.date_trunc('second', pg_catalog.clock_timestamp())
                           OPERATOR(pg_catalog.+) '1 second'::pg_catalog.interval
                      ELSE pg_catalog.clock_timestamp() END,
    status = $2, superseded_by = $3
WHERE {s.key} OPERATOR(pg_catalog.=) $1
RETURNING {s.checked_at} OPERATOR(pg_catalog.>=) $4
    AND {s.checked_at} OPERATOR(pg_catalog.<=)
        (pg_catalog.clock_timestamp() OPERATOR(pg_catalog.+) '1 second'::pg_catalog.interval)
