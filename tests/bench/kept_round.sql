-- See kept.sh. One round: all slices as they are, changes, a comparison of each slice with one taken anew, all again.
SET client_min_messages = warning;
SELECT split_part(pg_read_file('/proc/loadavg'), ' ', 1) AS load \gset
SELECT clock_timestamp() AS began, cpu_seconds() AS began_cpu \gset
CALL graph_kernel.refresh_kept();
SELECT clock_timestamp() AS unchanged, cpu_seconds() AS unchanged_cpu \gset
-- Another hundredth in each round: their salience, their phase or their text.
UPDATE memory_turns
   SET salience_score = CASE WHEN n % 3 = 0 THEN 1 - salience_score ELSE salience_score END,
       trajectory_phase = CASE WHEN n % 3 = 1 THEN 'synthesis' ELSE trajectory_phase END,
       content_text = CASE WHEN n % 3 = 2 THEN concat(content_text, ' ', :round::text) ELSE content_text END
  FROM (SELECT id AS turn, row_number() OVER (ORDER BY md5(id::text || :round)) AS n, count(*) OVER () AS turns
          FROM memory_turns) AS t
 WHERE t.turn = id AND t.n <= t.turns / 100;
SELECT clock_timestamp() AS changed \gset
CREATE TEMP TABLE differing AS
SELECT s.key
  FROM slice_store AS s CROSS JOIN LATERAL graph_kept(s.key) AS d
 CROSS JOIN LATERAL graph_slice(s.anchor) AS n
 WHERE s.superseded_by IS NULL AND (d ->> 'turns', d ->> 'edges') IS DISTINCT FROM (n ->> 'turns', n ->> 'edges');
CREATE TEMP TABLE before AS SELECT s.key FROM slice_store AS s WHERE s.superseded_by IS NULL;
SELECT clock_timestamp() AS compared, cpu_seconds() AS compared_cpu \gset
CALL graph_kernel.refresh_kept();
INSERT INTO rounds
SELECT :load, extract(epoch FROM :'unchanged'::timestamptz - :'began'),
       extract(epoch FROM clock_timestamp() - :'compared'::timestamptz),
       :unchanged_cpu - :began_cpu, cpu_seconds() - :compared_cpu,
       count(*) FILTER (WHERE s.status = 'changed'),
       count(*) FILTER (WHERE d.key IS NOT NULL AND s.status <> 'changed'),
       count(*) FILTER (WHERE d.key IS NULL AND s.status <> 'identical')
  FROM before AS b JOIN slice_store AS s USING (key) LEFT JOIN differing AS d USING (key);
SELECT * FROM rounds ORDER BY ctid DESC LIMIT 1;
