-- Vercel's chat template: the table of messages; another chat writes between.

CREATE TABLE "Message_v2" (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    "chatId" uuid NOT NULL,
    role varchar NOT NULL,
    parts json NOT NULL,
    attachments json NOT NULL,
    "createdAt" timestamp NOT NULL
);

INSERT INTO "Message_v2" ("chatId", role, parts, attachments, "createdAt")
SELECT ('00000000-0000-4000-8000-00000000000' || m.chat)::uuid, m.role, m.parts::json, '[]',
       timestamp '2026-01-05 10:00' + m.n * interval '1 second'
FROM (VALUES
    (1, 'a', 'user', '[{"type": "text", "text": "Where is my parcel?"}]'),
    (2, 'b', 'user', '[{"type": "text", "text": "Cancel my order."}]'),
    (3, 'a', 'assistant', '[{"type": "step-start"}, {"type": "tool-track", "toolCallId": "c1", "state": "output-available",
                            "input": {}, "output": "in transit"}, {"type": "text", "text": "It arrives today."}]'),
    (4, 'a', 'user', '[{"type": "text", "text": "Thanks."}]')
) AS m (n, chat, role, parts);
