-- Flowise: the table of messages; another session writes between.

CREATE TABLE chat_message (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    role varchar NOT NULL,
    chatflowid uuid NOT NULL,
    content text NOT NULL,
    "sourceDocuments" text,
    "createdDate" timestamp NOT NULL DEFAULT now(),
    "chatType" varchar NOT NULL DEFAULT 'INTERNAL',
    "chatId" varchar NOT NULL,
    "memoryType" varchar,
    "sessionId" varchar,
    "usedTools" text,
    "agentReasoning" text
);

INSERT INTO chat_message (role, chatflowid, content, "createdDate", "chatId", "sessionId")
SELECT m.role, '00000000-0000-4000-8000-00000000000f', m.content,
       timestamp '2026-01-05 10:00' + m.n * interval '1 second', m.session, m.session
FROM (VALUES
    (1, 'a', 'userMessage', 'Where is my parcel?'),
    (2, 'b', 'userMessage', 'Cancel my order.'),
    (3, 'a', 'apiMessage', 'It arrives today.'),
    (4, 'a', 'userMessage', 'Thanks.')
) AS m (n, session, role, content);
