-- Chainlit: the table of steps of its SQLAlchemy data layer; another thread writes between.

CREATE TABLE steps (
    id uuid PRIMARY KEY,
    name text NOT NULL,
    type text NOT NULL,
    "threadId" uuid NOT NULL,
    "parentId" uuid,
    streaming boolean NOT NULL,
    metadata jsonb,
    input text,
    output text,
    "createdAt" text,
    start text,
    "end" text
);

INSERT INTO steps (id, name, type, "threadId", "parentId", streaming, output, "createdAt")
SELECT ('00000000-0000-4000-8000-0000000000' || m.id)::uuid, 'step', m.type,
       ('00000000-0000-4000-8000-00000000000' || m.thread)::uuid,
       ('00000000-0000-4000-8000-0000000000' || m.parent)::uuid, false, m.output, '2026-01-05T10:00:0' || m.n || 'Z'
FROM (VALUES
    (1, 'a', 'c1', NULL, 'user_message', 'Where is my parcel?'),
    (2, 'b', 'd1', NULL, 'user_message', 'Cancel my order.'),
    (3, 'a', 'c2', 'c1', 'run', NULL),
    (4, 'a', 'c3', 'c2', 'tool', 'in transit'),
    (5, 'a', 'c4', 'c2', 'assistant_message', 'It arrives today.'),
    (6, 'a', 'c5', NULL, 'user_message', 'Thanks.')
) AS m (n, thread, id, parent, type, output);
