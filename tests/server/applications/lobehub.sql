-- LobeHub: the table of messages, with a topic that has a tool call, an answer that was generated again, and a quote.

CREATE TABLE messages (
    id text PRIMARY KEY,
    role varchar(255) NOT NULL,
    content text,
    metadata jsonb,
    model text,
    favorite boolean DEFAULT false,
    tools jsonb,
    user_id text NOT NULL,
    session_id text,
    topic_id text,
    thread_id text,
    parent_id text REFERENCES messages ON DELETE SET NULL,
    quota_id text REFERENCES messages ON DELETE SET NULL,
    accessed_at timestamptz NOT NULL DEFAULT now(),
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX messages_created_at_idx ON messages (created_at);
CREATE INDEX messages_topic_id_idx ON messages (topic_id);
CREATE INDEX messages_parent_id_idx ON messages (parent_id);
CREATE INDEX messages_quota_id_idx ON messages (quota_id);

INSERT INTO messages (id, role, content, favorite, tools, user_id, session_id, topic_id, parent_id, quota_id, created_at) VALUES
    ('msg_a1', 'user', 'The nightly import fails. Why?', false, NULL, 'u1', 'ssn_1', 'tpc_1', NULL, NULL, '2026-03-02 09:00Z'),
    ('msg_a2', 'assistant', '', false, '[{"id": "call_1", "type": "default", "identifier": "sandbox", "apiName": "runCommand"}]',
     'u1', 'ssn_1', 'tpc_1', 'msg_a1', NULL, '2026-03-02 09:00:04Z'),
    ('msg_a3', 'tool', 'import.py: line 40: KeyError: ''zone''', false, NULL, 'u1', 'ssn_1', 'tpc_1', 'msg_a2', NULL,
     '2026-03-02 09:00:06Z'),
    ('msg_a4', 'assistant', 'Perhaps the disk is full.', false, NULL, 'u1', 'ssn_1', 'tpc_1', 'msg_a3', NULL,
     '2026-03-02 09:00:09Z'),
    ('msg_a5', 'assistant', 'A row has no time zone; line 40 expects one.', true, NULL, 'u1', 'ssn_1', 'tpc_1', 'msg_a3', NULL,
     '2026-03-02 09:00:15Z'),
    ('msg_a6', 'user', 'Take UTC then.', false, NULL, 'u1', 'ssn_1', 'tpc_1', 'msg_a5', NULL, '2026-03-02 09:01Z'),
    ('msg_b1', 'user', 'Write this into the runbook.', false, NULL, 'u1', 'ssn_1', 'tpc_2', NULL, 'msg_a5', '2026-03-03 10:00Z'),
    ('msg_b2', 'assistant', 'Done: rows without a time zone count as UTC.', false, NULL, 'u1', 'ssn_1', 'tpc_2', 'msg_b1', NULL,
     '2026-03-03 10:00:08Z');
