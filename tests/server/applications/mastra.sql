-- Mastra: the table of messages of PostgresStore; another thread writes between.

CREATE TABLE mastra_messages (
    id text PRIMARY KEY,
    thread_id text NOT NULL,
    content text NOT NULL,
    role text NOT NULL,
    type text NOT NULL,
    "createdAt" timestamp NOT NULL,
    "resourceId" text,
    "createdAtZ" timestamptz DEFAULT now()
);
CREATE INDEX public_mastra_messages_thread_id_createdat_idx ON mastra_messages (thread_id, "createdAt" DESC);

INSERT INTO mastra_messages
SELECT 'm' || m.n, m.thread, '{"format":2,"parts":[' || m.parts || ']}', m.role, 'v2', t.at, 'u1', t.at AT TIME ZONE 'UTC'
FROM (VALUES
    (1, 'a', 'user', '{"type":"text","text":"Where is my parcel?"}'),
    (2, 'b', 'user', '{"type":"text","text":"Cancel my order."}'),
    (3, 'a', 'assistant', '{"type":"step-start"},{"type":"tool-invocation","toolInvocation":{"state":"result",'
        '"toolCallId":"c1","toolName":"track","args":{},"result":"in transit"}},{"type":"text","text":"It arrives today."}'),
    (4, 'a', 'user', '{"type":"text","text":"Thanks."}')
) AS m (n, thread, role, parts), LATERAL (SELECT timestamp '2026-01-05 10:00' + m.n * interval '1 second') AS t (at);
