-- All events in log order. Rows without a position come last: they are refused.
SELECT {e.segment_id}, {e.ordinal}, {e.byte_offset}, {e.pane_id}, {e.occurred_at_ms}, {e.is_gap},
       {e.event_id}, {e.session_id}, {e.event_type}, {e.schema_version}, {e.text}
FROM {events} AS e
ORDER BY {e.segment_id}, {e.ordinal}
