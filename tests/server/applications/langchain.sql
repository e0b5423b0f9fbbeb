-- LangChain: a table of langchain-postgres, with a call of a tool; another session writes between.

CREATE TABLE chat_history (
    id serial PRIMARY KEY,
    session_id uuid NOT NULL,
    message jsonb NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX idx_chat_history_session_id ON chat_history (session_id);

INSERT INTO chat_history (session_id, message, created_at)
SELECT m.session::uuid, jsonb_build_object('type', m.type, 'data', m.data::jsonb || jsonb_build_object('type', m.type)),
       timestamptz '2026-01-05 10:00Z' + m.second * interval '1 second'
FROM (VALUES
    ('00000000-0000-0000-0000-000000000001', 'human', '{"content": "Where is my parcel?"}', 0),
    ('00000000-0000-0000-0000-000000000002', 'human', '{"content": "Cancel my order."}', 1),
    ('00000000-0000-0000-0000-000000000001', 'ai',
     '{"content": "", "tool_calls": [{"id": "c1", "args": {}, "name": "track", "type": "tool_call"}]}', 2),
    ('00000000-0000-0000-0000-000000000001', 'tool',
     '{"content": "in transit", "status": "success", "tool_call_id": "c1"}', 2),
    ('00000000-0000-0000-0000-000000000001', 'ai', '{"content": [{"type": "text", "text": "It arrives today."}]}', 2),
    ('00000000-0000-0000-0000-000000000001', 'human', '{"content": "Thanks."}', 3)
) AS m (session, type, data, second);
