-- See kept.sh. So many slices of three policies are kept, at turns by their hashes.
SET client_min_messages = warning;
VACUUM ANALYZE memory_turns, memory_turn_edges;
SELECT graph_kernel.bind_store(graph_kernel.create_slice_store()) \g /dev/null
SELECT count(graph_keep(graph_slice(a.id, p.policy::slice_policy))) AS kept
  FROM (SELECT id, row_number() OVER (ORDER BY md5(id::text)) AS n FROM memory_turns) AS a
  JOIN unnest('{default,lineage,chat}'::text[]) WITH ORDINALITY AS p (policy, m) ON p.m = 1 + a.n % 3
 WHERE a.n <= :slices;
VACUUM ANALYZE slice_store;
CREATE TABLE rounds (load float8, unchanged float8, refreshed float8, compared float8, named int, missed int, wrong int);
