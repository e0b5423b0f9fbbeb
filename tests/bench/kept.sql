-- See kept.sh. So many slices are kept, at turns by their hashes.
SET client_min_messages = warning;
VACUUM ANALYZE memory_turns, memory_turn_edges;
SELECT graph_kernel.bind_store(graph_kernel.create_slice_store()) \g /dev/null
SELECT count(graph_keep(graph_slice(a.id))) AS kept
  FROM (SELECT id FROM memory_turns ORDER BY md5(id::text) LIMIT :slices) AS a;
VACUUM ANALYZE slice_store;
CREATE TABLE rounds (
    load float8, unchanged float8, refreshed float8, compared float8, named int, missed int, wrong int);
