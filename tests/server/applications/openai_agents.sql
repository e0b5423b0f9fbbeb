-- OpenAI Agents SDK: the tables of SQLAlchemySession, with a call of a tool; another session writes between.

CREATE TABLE agent_sessions (
    session_id varchar PRIMARY KEY,
    created_at timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP,
    updated_at timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP
);
CREATE TABLE agent_messages (
    id serial PRIMARY KEY,
    session_id varchar NOT NULL REFERENCES agent_sessions ON DELETE CASCADE,
    message_data text NOT NULL,
    created_at timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP
);
CREATE INDEX idx_agent_messages_session_time ON agent_messages (session_id, created_at);

INSERT INTO agent_sessions (session_id) VALUES ('a'), ('b');
INSERT INTO agent_messages (session_id, message_data, created_at) VALUES
    ('a', '{"role":"user","content":"Where is my parcel?"}', '2026-01-05 10:00:00'),
    ('b', '{"role":"user","content":"Cancel my order."}', '2026-01-05 10:00:01'),
    ('a', '{"type":"function_call","call_id":"c1","name":"track","arguments":"{}"}', '2026-01-05 10:00:02'),
    ('a', '{"type":"function_call_output","call_id":"c1","output":"in transit"}', '2026-01-05 10:00:02'),
    ('a', '{"type":"message","id":"m1","role":"assistant","status":"completed",'
          '"content":[{"type":"output_text","text":"It arrives today.","annotations":[]}]}', '2026-01-05 10:00:02'),
    ('a', '{"role":"user","content":"Thanks."}', '2026-01-05 10:00:03');
