-- Conversations of an agent as applications store them: by the forms of four providers' messages and without, with
-- calls at once and one after the other, calls without results, ids that come twice, odd names and empty texts; and a
-- thousand prompts of them: providers.prompts, with pins, recalled turns and small budgets. All of it follows from
-- the numbers.
CREATE SCHEMA providers;
CREATE TABLE providers.turns (
    id uuid PRIMARY KEY, session_id text, role text, content_text text, created_at timestamptz, payload jsonb
);
CREATE TABLE providers.edges (parent_turn_id uuid, child_turn_id uuid, edge_type text,
                              PRIMARY KEY (parent_turn_id, child_turn_id));
CREATE INDEX ON providers.edges (child_turn_id, parent_turn_id);

-- A number that looks drawn, of the numbers given.
CREATE FUNCTION providers.drawn(VARIADIC numbers int[]) RETURNS int LANGUAGE sql IMMUTABLE
RETURN ('x' || substr(md5(numbers::text), 1, 7))::bit(28)::int;

CREATE FUNCTION providers.turn(session int, n int) RETURNS uuid LANGUAGE sql IMMUTABLE
RETURN md5(session || '/' || n)::uuid;

-- What the assistant says, with so many calls, as an application stores it.
CREATE FUNCTION providers.said(form int, said text, calls text[]) RETURNS jsonb LANGUAGE sql IMMUTABLE
RETURN CASE form
    WHEN 0 THEN jsonb_build_object('role', 'assistant', 'content', nullif(said, ''), 'refusal', NULL)
        || CASE WHEN calls = '{}' THEN '{}' ELSE jsonb_build_object('tool_calls', (
               SELECT jsonb_agg(jsonb_build_object('id', c, 'type', 'function', 'function',
                      jsonb_build_object('name', 'get weather', 'arguments', '{"city": "Berne"}')) ORDER BY o)
               FROM unnest(calls) WITH ORDINALITY AS u(c, o))) END
    WHEN 1 THEN jsonb_build_object('role', 'assistant', 'content',
        jsonb_build_array(jsonb_build_object('type', 'thinking', 'thinking', 'hm', 'signature', 's'),
                          jsonb_build_object('type', 'text', 'text', said))
        || coalesce((SELECT jsonb_agg(jsonb_build_object('type', 'tool_use', 'id', c, 'name', 'clock', 'input',
                            jsonb_build_object('zone', 1.50)) ORDER BY o)
                     FROM unnest(calls) WITH ORDINALITY AS u(c, o)), '[]'))
    WHEN 2 THEN jsonb_build_object('role', 'assistant', 'output',
        jsonb_build_array(jsonb_build_object('type', 'message', 'role', 'assistant', 'content',
            jsonb_build_array(jsonb_build_object('type', 'output_text', 'text', said))))
        || coalesce((SELECT jsonb_agg(jsonb_build_object('type', 'function_call', 'call_id', c, 'name', 'search',
                            'arguments', 'not json') ORDER BY o)
                     FROM unnest(calls) WITH ORDINALITY AS u(c, o)), '[]'))
    WHEN 3 THEN jsonb_build_object('type', 'ai', 'data', jsonb_build_object('content', said, 'tool_calls',
        coalesce((SELECT jsonb_agg(jsonb_build_object('name', 'f', 'args', '{"a": [1]}'::jsonb, 'id', c) ORDER BY o)
                  FROM unnest(calls) WITH ORDINALITY AS u(c, o)), '[]')))
END;

CREATE FUNCTION providers.returned(form int, said text, call text) RETURNS jsonb LANGUAGE sql IMMUTABLE
RETURN CASE form
    WHEN 0 THEN jsonb_build_object('role', 'tool', 'tool_call_id', call, 'content', said)
    WHEN 1 THEN jsonb_build_object('role', 'user', 'content', jsonb_build_array(
        jsonb_build_object('type', 'tool_result', 'tool_use_id', call, 'is_error', said = '', 'content', said)))
    WHEN 2 THEN jsonb_build_object('role', 'tool', 'output', jsonb_build_array(
        jsonb_build_object('type', 'function_call_output', 'call_id', call, 'output', said)))
    WHEN 3 THEN jsonb_build_object('type', 'tool', 'data',
        jsonb_build_object('content', said, 'tool_call_id', call, 'status', 'success'))
END;

DO $do$
DECLARE
    at timestamptz := '2026-01-01 00:00:00Z';
    form int;
    n int;
    parent int;
    calls text[];
    said text;
BEGIN
    FOR session IN 0..39 LOOP
        form := session % 5;
        n := 0;
        parent := NULL;
        FOR step IN 1..30 LOOP
            said := CASE providers.drawn(session, step, 1) % 8
                WHEN 0 THEN '' WHEN 1 THEN ' ' WHEN 2 THEN 'ends in space '
                ELSE repeat('word ' || step || ' ', 1 + step % 9) || 'é.' END;
            n := n + 1;
            at := at + interval '1 minute';
            IF providers.drawn(session, step, 2) % 3 = 0 THEN
                INSERT INTO providers.turns VALUES (providers.turn(session, n), session::text,
                    CASE step WHEN 1 THEN 'system' ELSE 'user' END, said, at, CASE WHEN form = 1 THEN
                        jsonb_build_object('role', 'user', 'content', jsonb_build_array(
                        jsonb_build_object('type', 'text', 'text', said),
                        '{"type": "image", "source": {"type": "url", "url": "https://example.org/a"}}'::jsonb)) END);
                INSERT INTO providers.edges SELECT providers.turn(session, parent), providers.turn(session, n), 'reply'
                 WHERE parent IS NOT NULL;
                parent := n;
                CONTINUE;
            END IF;
            calls := (SELECT coalesce(array_agg(CASE WHEN c = 2 THEN 'call_again'
                                                     ELSE 'call ' || session || '.' || step || '.' || c END), '{}')
                      FROM generate_series(1, providers.drawn(session, step, 3) % 4) AS c);
            INSERT INTO providers.turns VALUES (providers.turn(session, n), session::text, 'assistant', said, at,
                providers.said(form, said, calls));
            INSERT INTO providers.edges SELECT providers.turn(session, parent), providers.turn(session, n), 'reply'
             WHERE parent IS NOT NULL;
            parent := n;
            FOR c IN 1..cardinality(calls) LOOP
                CONTINUE WHEN providers.drawn(session, step, c, 4) % 5 = 0; -- it never got a result
                n := n + 1;
                at := at + interval '1 second';
                said := CASE providers.drawn(session, step, c, 5) % 6 WHEN 0 THEN '' ELSE repeat('row ', step) END;
                INSERT INTO providers.turns VALUES (providers.turn(session, n), session::text, 'tool', said, at,
                    providers.returned(form, said, calls[c]));
                -- At once, or one after the other.
                INSERT INTO providers.edges
                VALUES (providers.turn(session, parent), providers.turn(session, n), 'reply');
                IF session % 2 = 0 THEN
                    parent := n;
                END IF;
            END LOOP;
            parent := n;
        END LOOP;
    END LOOP;
END $do$;
ANALYZE providers.turns, providers.edges;
SELECT graph_kernel.bind_tables('providers.turns', 'providers.edges', name => 'providers');
GRANT USAGE ON SCHEMA providers TO PUBLIC;

-- The thousand turns at which prompts are taken, and by which policies.
CREATE VIEW providers.prompts AS
SELECT n, id AS anchor, jsonb_strip_nulls(jsonb_build_object(
           'preset', 'chat', 'max_tokens', 40 + providers.drawn(n, 6) % 900,
           'pins', CASE WHEN n % 3 = 0 THEN jsonb_build_array(providers.turn(session_id::int, 1)) END,
           'recall_tokens', CASE WHEN n % 2 = 0 THEN 100 END,
           'seeds', CASE WHEN n % 2 = 0 THEN jsonb_build_object(
               providers.turn((session_id::int + 1) % 40, 3)::text, 1,
               providers.turn((session_id::int + 7) % 40, 9)::text, 0.5) END
       ))::text AS policy
  FROM (SELECT row_number() OVER (ORDER BY id)::int AS n, id, session_id FROM providers.turns) AS t
 WHERE n <= 1000;
