-- $1, $2 bigint: the events up to a position, backwards, with the columns that make a resume point. The text is
-- not read: '' stands for it.
SELECT {e.segment_id}, {e.ordinal}, {e.byte_offset}, {e.pane_id}, {e.occurred_at_ms}, {e.is_gap},
       {e.event_id}, {e.session_id}, {e.event_type}, {e.schema_version}, ''::pg_catalog.text
FROM {events} AS e
WHERE ROW({e.segment_id}, {e.ordinal}) OPERATOR(pg_catalog.<=) ROW($1, $2)
ORDER BY {e.segment_id} DESC, {e.ordinal} DESC
