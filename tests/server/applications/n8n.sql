-- n8n: the table of messages of the chat hub, with a retry, a revision and a tool's message.

CREATE TABLE chat_hub_messages (
    id uuid PRIMARY KEY,
    "sessionId" uuid NOT NULL,
    "previousMessageId" uuid REFERENCES chat_hub_messages ON DELETE CASCADE,
    "revisionOfMessageId" uuid REFERENCES chat_hub_messages ON DELETE CASCADE,
    "retryOfMessageId" uuid REFERENCES chat_hub_messages ON DELETE CASCADE,
    type varchar(16) NOT NULL,
    name varchar(128) NOT NULL,
    content text NOT NULL,
    provider varchar(16),
    model varchar(256),
    "executionId" integer,
    status varchar(16) NOT NULL DEFAULT 'success',
    attachments json,
    "createdAt" timestamptz(3) NOT NULL DEFAULT now(),
    "updatedAt" timestamptz(3) NOT NULL DEFAULT now()
);

INSERT INTO chat_hub_messages (id, "sessionId", "previousMessageId", "revisionOfMessageId", "retryOfMessageId", type, name,
                               content, "createdAt")
SELECT ('00000000-0000-4000-8000-0000000000' || m.id)::uuid, '00000000-0000-4000-8000-0000000000ff',
       ('00000000-0000-4000-8000-0000000000' || m.previous)::uuid,
       ('00000000-0000-4000-8000-0000000000' || m.revision)::uuid,
       ('00000000-0000-4000-8000-0000000000' || m.retry)::uuid,
       m.type, m.name, m.content, timestamptz '2026-03-02 09:00Z' + m.second * interval '1 second'
FROM (VALUES
    ('c1', NULL, NULL, NULL, 'human', 'Ada', 'Is the shop slow?', 0),
    ('c2', NULL, 'c1', NULL, 'human', 'Ada', 'Is the shop slow today?', 20),
    ('c3', 'c2', NULL, NULL, 'tool', 'HTTP Tool', '{"p95_ms": 2300}', 23),
    ('c4', 'c3', NULL, NULL, 'ai', 'AI', 'I do not know.', 25),
    ('c5', 'c3', NULL, 'c4', 'ai', 'AI', 'Yes: the 95th percentile is 2.3 seconds.', 40),
    ('c6', 'c5', NULL, NULL, 'human', 'Ada', 'Open a ticket.', 60)
) AS m (id, previous, revision, retry, type, name, content, second);
