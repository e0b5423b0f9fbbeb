-- $1, $2 bigint, $3, $4 bigint: the events between two positions, both included.
SELECT {e.segment_id}, {e.ordinal}, {e.byte_offset}, {e.pane_id}, {e.occurred_at_ms}, {e.is_gap},
       {e.event_id}, {e.session_id}, {e.event_type}, {e.schema_version}, {e.text}
FROM {events} AS e
WHERE ROW({e.segment_id}, {e.ordinal}) OPERATOR(pg_catalog.>=) ROW($1, $2)
  AND ROW({e.segment_id}, {e.ordinal}) OPERATOR(pg_catalog.<=) ROW($3, $4)
ORDER BY {e.segment_id}, {e.ordinal}
