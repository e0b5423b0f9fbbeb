-- See kept.sh. So many slices are kept, at turns by their hashes.
SET client_min_messages = warning;
VACUUM ANALYZE memory_turns, memory_turn_edges;
SELECT graph_kernel.bind_store(graph_kernel.create_slice_store()) \g /dev/null
SELECT count(graph_keep(graph_slice(a.id))) AS kept
  FROM (SELECT id FROM memory_turns ORDER BY md5(id::text) LIMIT :slices) AS a;
VACUUM ANALYZE slice_store;
CREATE TABLE rounds (
    load float8, unchanged float8, refreshed float8, unchanged_cpu float8, refreshed_cpu float8, named int, missed int,
    wrong int);
-- Of the processor, by this backend: the figure to compare where other programs run.
CREATE FUNCTION cpu_seconds() RETURNS float8 LANGUAGE sql AS $$
    SELECT (f[12]::float8 + f[13]::float8) / 100
    FROM (SELECT string_to_array(regexp_replace(pg_read_file('/proc/self/stat'), '^.*[)] ', ''), ' ') AS f) AS s $$;
