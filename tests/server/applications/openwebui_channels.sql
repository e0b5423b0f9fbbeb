-- Open WebUI: the table of messages of channels, with a thread; another channel writes between.

CREATE TABLE message (
    id text PRIMARY KEY,
    user_id text,
    channel_id text,
    content text,
    data json,
    meta json,
    created_at bigint,
    updated_at bigint,
    parent_id text,
    reply_to_id text,
    is_pinned boolean NOT NULL DEFAULT false
);

INSERT INTO message (id, user_id, channel_id, parent_id, reply_to_id, content, meta, created_at) VALUES
    ('n1', 'u1', 'general', NULL, NULL, 'Where is my parcel?', NULL, 1767607200000000000),
    ('n2', 'u1', 'other', NULL, NULL, 'Cancel my order.', NULL, 1767607201000000000),
    ('n3', 'u1', 'general', 'n1', NULL, 'It arrives today.', '{"model_id": "m"}', 1767607202000000000),
    ('n4', 'u1', 'general', 'n1', 'n3', 'Thanks.', NULL, 1767607203000000000),
    ('n5', 'u1', 'general', NULL, NULL, 'Who is on call?', NULL, 1767607204000000000);
