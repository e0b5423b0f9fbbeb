-- See prompts.sh. A step of a session is a turn of the model's: what is sent for it ends with the turn before it.
SET client_min_messages = warning;
VACUUM ANALYZE memory_turns, memory_turn_edges;

-- A session is the way from its latest turn back to its first one. A dozen of the longer ones, by their hashes.
CREATE TABLE session AS
    SELECT row_number() OVER (ORDER BY md5(session_id)) AS session, session_id,
           (SELECT id FROM memory_turns AS t WHERE t.session_id = s.session_id ORDER BY created_at DESC, id LIMIT 1)
               AS latest
    FROM (SELECT session_id FROM memory_turns GROUP BY 1 HAVING count(*) BETWEEN 200 AND 2000
          ORDER BY md5(session_id) LIMIT 12) AS s;
CREATE TABLE turn AS
    SELECT s.session, m.n AS place, m.turn_id AS id, m.role, m.tokens
    FROM session AS s, LATERAL graph_messages(s.latest, '{"preset": "lineage"}') AS m;
ALTER TABLE turn ADD PRIMARY KEY (session, place);
CREATE UNIQUE INDEX ON turn (session, id);
CREATE TABLE step AS
    SELECT session, row_number() OVER (PARTITION BY session ORDER BY place) AS step, place, anchor
    FROM (SELECT session, place - 1 AS place, lag(id) OVER (PARTITION BY session ORDER BY place) AS anchor,
                 role, lag(role) OVER (PARTITION BY session ORDER BY place) AS before
          FROM turn) AS t
    WHERE role = 'assistant' AND before IN ('user', 'tool') AND place > 0;
DELETE FROM step WHERE step > 200;
SELECT count(DISTINCT session) AS sessions, count(*) AS steps, round(avg(place)) AS mean_turns_before FROM step;

-- What is sent: turns with their tokens, in order.
CREATE TABLE sent (method text, budget int, session bigint, step bigint, ids uuid[], tokens int[]);

-- What graph_messages gives; in the policy, $1 is the budget, $2 the goal, $3 earlier turns as seeds.
CREATE PROCEDURE send_policy(method text, policy text) LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO sent
    SELECT method, b, s.session, s.step, m.ids, m.tokens
    FROM unnest(ARRAY[1000, 4000, 16000]) AS b, step AS s,
         LATERAL (SELECT id FROM turn AS t WHERE t.session = s.session AND t.role = 'user'
                  ORDER BY place LIMIT 1) AS goal,
         -- Stands in for what a search would find: turns of the session, by their hashes.
         LATERAL (SELECT jsonb_object_agg(f.id, 0.5) AS seeds
                  FROM (SELECT t.id FROM turn AS t WHERE t.session = s.session AND t.place <= s.place
                        ORDER BY md5(t.id::text || s.step) LIMIT 16) AS f) AS found,
         LATERAL (SELECT array_agg(turn_id ORDER BY n) AS ids, array_agg(g.tokens ORDER BY n) AS tokens
                  FROM graph_messages(s.anchor, replace(replace(replace(policy, '$1', b::text),
                                      '$2', goal.id::text), '$3', found.seeds::text)::slice_policy) AS g) AS m;
END $$;

-- The last turns that fit.
CREATE PROCEDURE send_last() LANGUAGE sql AS $$
    INSERT INTO sent
    SELECT 'the last turns that fit', b, s.session, s.step, array_agg(t.id ORDER BY t.place),
           array_agg(t.tokens ORDER BY t.place)
    FROM unnest(ARRAY[1000, 4000, 16000]) AS b, step AS s,
         LATERAL (SELECT t.*, sum(t.tokens) OVER (ORDER BY t.place DESC) AS together FROM turn AS t
                  WHERE t.session = s.session AND t.place <= s.place) AS t
    WHERE t.together <= b OR t.place = s.place
    GROUP BY b, s.session, s.step
$$;

-- A client that remembers what it sent: it adds the new turns, and where they are more than the budget it drops turns
-- at the beginning until half of it is left and the first is the user's.
CREATE PROCEDURE send_remembered() LANGUAGE plpgsql AS $$
DECLARE
    budget int;
    s record;
    first int;
    fitting int;
BEGIN
    FOREACH budget IN ARRAY ARRAY[1000, 4000, 16000] LOOP
        FOR s IN SELECT * FROM step ORDER BY session, step LOOP
            IF s.step = 1 THEN first := 1; END IF;
            IF (SELECT sum(tokens) FROM turn
                WHERE session = s.session AND place BETWEEN first AND s.place) > budget THEN
                SELECT min(place) INTO fitting
                FROM (SELECT place, role, sum(tokens) OVER (ORDER BY place DESC) AS together FROM turn
                      WHERE session = s.session AND place <= s.place) AS t
                WHERE together <= budget / 2 AND role = 'user';
                first := coalesce(fitting, (SELECT min(place)
                    FROM (SELECT place, sum(tokens) OVER (ORDER BY place DESC) AS together FROM turn
                          WHERE session = s.session AND place <= s.place) AS t
                    WHERE together <= budget / 2), s.place);
            END IF;
            INSERT INTO sent
            SELECT 'a client that remembers', budget, s.session, s.step, array_agg(id ORDER BY place),
                   array_agg(tokens ORDER BY place)
            FROM turn WHERE session = s.session AND place BETWEEN first AND s.place;
        END LOOP;
    END LOOP;
END $$;

CALL send_policy('lineage', '{"preset": "lineage", "max_tokens": $1}');
CALL send_policy('chat', '{"preset": "chat", "max_tokens": $1}');
CALL send_policy('chat, the goal pinned', '{"preset": "chat", "max_tokens": $1, "pins": ["$2"]}');
CALL send_policy('chat, a quarter recalled',
                 format('{"preset": "chat", "max_tokens": $1, "recall_tokens": %s, "seeds": $3}', 250));
CALL send_policy('chat without a cut',
                 '{"preset": "chat", "max_tokens": $1, "cut_share": 0, "cut_to_user": false}');
CALL send_last();
CALL send_remembered();

-- Of each step: how many turns at its beginning are those of the step before.
CREATE TABLE compared AS
    SELECT s.*, b.ids IS NOT NULL AS has_before, s.ids[1] IS DISTINCT FROM b.ids[1] AS has_changed,
           coalesce((SELECT min(i) - 1 FROM generate_subscripts(s.ids, 1) AS i
                     WHERE s.ids[i] IS DISTINCT FROM b.ids[i]), cardinality(s.ids)) AS same
    FROM sent AS s LEFT JOIN sent AS b USING (method, budget, session)
    WHERE b.step = s.step - 1;
CREATE TABLE measured AS
    SELECT c.*, (SELECT sum(t) FROM unnest(c.tokens) AS t) AS sent,
           (SELECT coalesce(sum(t), 0) FROM unnest(c.tokens[:c.same]) AS t) AS cached,
           s.place - (SELECT min(t.place) FROM turn AS t WHERE t.session = c.session AND t.id = ANY (c.ids)) AS oldest,
           (SELECT t.id FROM turn AS t WHERE t.session = c.session AND t.role = 'user' ORDER BY place LIMIT 1)
               = ANY (c.ids) AS goal_in,
           (SELECT lower(role) FROM memory_turns WHERE id = c.ids[1]) = 'user' AS first_is_user,
           (SELECT count(*) FROM unnest(c.ids) AS r JOIN memory_turns AS t ON t.id = r AND lower(t.role) = 'tool'
            WHERE NOT EXISTS (SELECT FROM memory_turn_edges AS e WHERE e.child_turn_id = r AND e.parent_turn_id <> r
                              AND e.edge_type <> 'reference' AND e.parent_turn_id = ANY (c.ids))) AS orphans
    FROM compared AS c JOIN step AS s USING (session, step);
SELECT budget, method, round(avg(sent)) AS tokens, round(100 * sum(cached) / sum(sent)) AS "cached %",
       round(avg(sent - cached)) AS uncached, round(100 * avg(has_changed::int)) AS "beginning changes %",
       round(avg(oldest)) AS "oldest turn back", round(100 * avg(goal_in::int)) AS "goal in %",
       round(100 * avg(first_is_user::int)) AS "first is user %", sum(orphans) AS "results without call"
FROM measured GROUP BY budget, method ORDER BY budget, method;
