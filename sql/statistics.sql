CREATE FUNCTION graph_kernel.list_statistics()
RETURNS TABLE (function text, calls bigint, total_time double precision, histogram jsonb, turns_read bigint,
               turns_selected bigint, errors jsonb, verifications jsonb)
    AS 'MODULE_PATHNAME', 'list_statistics_wrapper'
    LANGUAGE c VOLATILE PARALLEL RESTRICTED ROWS 40;
CREATE FUNCTION graph_kernel.reset_statistics() RETURNS void
    AS 'MODULE_PATHNAME', 'reset_statistics_wrapper'
    LANGUAGE c VOLATILE PARALLEL RESTRICTED;

CREATE VIEW graph_kernel.statistics AS SELECT * FROM graph_kernel.list_statistics();
