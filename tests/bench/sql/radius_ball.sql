-- What one would write without an extension: the turns within ten hops, best first by the same score.
CREATE FUNCTION radius_ball(anchor uuid)
RETURNS TABLE (turn_id uuid, distance int, priority double precision, session_id text, role text, phase text,
    salience real, trajectory_depth int, trajectory_sibling_order int, trajectory_homogeneity real,
    trajectory_temporal real, trajectory_complexity real, created_at timestamptz, content_hash text)
LANGUAGE sql STABLE AS $$
    WITH RECURSIVE ball(id, distance) AS (
        SELECT anchor, 0
        UNION
        SELECT n.id, b.distance + 1
        FROM ball b
        CROSS JOIN LATERAL (
            SELECT parent_turn_id FROM memory_turn_edges WHERE child_turn_id = b.id
            UNION ALL
            SELECT child_turn_id FROM memory_turn_edges WHERE parent_turn_id = b.id
        ) AS n(id)
        WHERE b.distance < 10
    ), nearest AS (
        SELECT id, min(distance) AS distance FROM ball GROUP BY id
    )
    SELECT t.id, n.distance,
           (CASE t.trajectory_phase WHEN 'synthesis' THEN 1.0 WHEN 'planning' THEN 0.9
                WHEN 'consolidation' THEN 0.6 WHEN 'debugging' THEN 0.5 ELSE 0.3 END
            + coalesce(t.salience_score, 0.5) * 0.3) * 0.9 ^ n.distance AS priority,
           t.session_id, t.role, t.trajectory_phase, t.salience_score, t.trajectory_depth,
           t.trajectory_sibling_order, t.trajectory_homogeneity, t.trajectory_temporal,
           t.trajectory_complexity, t.created_at, t.content_hash
    FROM nearest n
    JOIN memory_turns t ON t.id = n.id
    ORDER BY priority DESC, n.distance, t.id
    LIMIT 256
$$;
