CREATE FUNCTION graph_kernel.list_statistics()
RETURNS TABLE (function text, calls bigint, total_time double precision, histogram jsonb, turns_read bigint,
               turns_selected bigint, errors jsonb, verifications jsonb)
    AS 'MODULE_PATHNAME', 'list_statistics_wrapper'
    LANGUAGE c VOLATILE PARALLEL RESTRICTED ROWS 40;
COMMENT ON FUNCTION graph_kernel.list_statistics() IS 'what graph_kernel.statistics shows';
CREATE FUNCTION graph_kernel.reset_statistics() RETURNS void
    AS 'MODULE_PATHNAME', 'reset_statistics_wrapper'
    LANGUAGE c VOLATILE PARALLEL RESTRICTED;
COMMENT ON FUNCTION graph_kernel.reset_statistics() IS 'sets the statistics of this database to zero';

CREATE VIEW graph_kernel.statistics AS SELECT * FROM graph_kernel.list_statistics();
COMMENT ON VIEW graph_kernel.statistics IS
    'calls of the functions in this database since the server started or the last reset; empty unless preloaded';
COMMENT ON COLUMN graph_kernel.statistics.function IS 'name of the function';
COMMENT ON COLUMN graph_kernel.statistics.calls IS 'calls, those that failed included';
COMMENT ON COLUMN graph_kernel.statistics.total_time IS 'time in these calls, in milliseconds';
COMMENT ON COLUMN graph_kernel.statistics.histogram IS
    'for each bound in milliseconds, how many calls took no longer';
COMMENT ON COLUMN graph_kernel.statistics.turns_read IS 'turns read from the tables';
COMMENT ON COLUMN graph_kernel.statistics.turns_selected IS 'turns selected into slices';
COMMENT ON COLUMN graph_kernel.statistics.errors IS 'errors by the word in DETAIL, or by SQLSTATE';
COMMENT ON COLUMN graph_kernel.statistics.verifications IS 'results of verifications: ok or a reason';
