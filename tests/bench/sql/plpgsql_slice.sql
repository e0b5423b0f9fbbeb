-- SlicePolicy v1 with its default parameters as one would write it in PL/pgSQL: the frontier in a
-- temporary table, one set-based insert for what each expanded turn discovers.
CREATE FUNCTION phase_weight(phase text) RETURNS real LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE lower(phase) WHEN 'synthesis' THEN 1.0 WHEN 'planning' THEN 0.9 WHEN 'consolidation' THEN 0.6
               WHEN 'debugging' THEN 0.5 ELSE 0.3 END::real
$$;

CREATE FUNCTION plpgsql_slice(anchor uuid) RETURNS SETOF uuid LANGUAGE plpgsql AS $$
DECLARE
    picked record;
    selected int := 0;
BEGIN
    CREATE TEMP TABLE IF NOT EXISTS frontier
        (id uuid PRIMARY KEY, priority real, distance int, selected boolean DEFAULT false);
    CREATE INDEX IF NOT EXISTS frontier_order ON frontier (priority DESC, distance, id) WHERE NOT selected;
    TRUNCATE frontier;
    INSERT INTO frontier
        SELECT t.id, phase_weight(trajectory_phase) + coalesce(salience_score, 0.5)::real * 0.3::real, 0
        FROM memory_turns t WHERE t.id = anchor;
    WHILE selected < 256 LOOP
        SELECT f.id, f.distance INTO picked FROM frontier f WHERE NOT f.selected
            ORDER BY f.priority DESC, f.distance, f.id LIMIT 1;
        EXIT WHEN NOT FOUND;
        UPDATE frontier SET selected = true WHERE id = picked.id;
        selected := selected + 1;
        RETURN NEXT picked.id;
        CONTINUE WHEN picked.distance >= 10;
        INSERT INTO frontier
            SELECT t.id,
                   ((phase_weight(t.trajectory_phase) + coalesce(t.salience_score, 0.5)::real * 0.3::real)
                    * power(0.9::real, n.distance)::real), n.distance
            FROM (SELECT parent_turn_id AS id, picked.distance + 1 AS distance
                    FROM memory_turn_edges WHERE child_turn_id = picked.id
                  UNION
                  SELECT child_turn_id, picked.distance + 1
                    FROM memory_turn_edges WHERE parent_turn_id = picked.id) AS n
            JOIN memory_turns t ON t.id = n.id
            ON CONFLICT DO NOTHING;
        INSERT INTO frontier
            SELECT s.id,
                   ((phase_weight(s.trajectory_phase) + coalesce(s.salience_score, 0.5)::real * 0.3::real)
                    * power(0.9::real, picked.distance)::real), picked.distance
            FROM (SELECT DISTINCT t.id, t.trajectory_phase, t.salience_score
                    FROM memory_turn_edges up
                    JOIN memory_turn_edges down ON down.parent_turn_id = up.parent_turn_id
                    JOIN memory_turns t ON t.id = down.child_turn_id
                   WHERE up.child_turn_id = picked.id AND down.child_turn_id <> picked.id
                   ORDER BY t.salience_score DESC, t.id LIMIT 5) AS s
            ON CONFLICT DO NOTHING;
    END LOOP;
END
$$;
