-- Open WebUI: the table of messages, with a chat in which one answer was generated twice.
DROP TABLE IF EXISTS chat_message; -- Flowise has one of the same name.

CREATE TABLE chat (
    id varchar PRIMARY KEY,
    user_id varchar,
    title text,
    chat json,
    created_at bigint,
    updated_at bigint,
    current_message_id text
);
CREATE TABLE chat_message (
    id text PRIMARY KEY,
    chat_id text NOT NULL,
    user_id text,
    role text NOT NULL,
    parent_id text,
    content json,
    output json,
    model_id text,
    done boolean,
    usage json,
    created_at bigint,
    updated_at bigint
);
CREATE INDEX ix_chat_message_chat_id ON chat_message (chat_id);
CREATE INDEX ix_chat_message_created_at ON chat_message (created_at);
CREATE INDEX chat_message_chat_parent_idx ON chat_message (chat_id, parent_id);

INSERT INTO chat (id, user_id, title, current_message_id) VALUES ('c1', 'u1', 'Invoices', 'm5'), ('c2', 'u1', 'Greeting', 'm2');
-- The fifth message has its time in milliseconds, as rows of older versions have.
INSERT INTO chat_message (id, chat_id, user_id, role, parent_id, content, output, model_id, done, usage, created_at)
SELECT m.chat_id || '-' || m.message_id, m.chat_id, 'u1', m.role, m.parent_id, m.content::json, m.output::json,
       CASE m.role WHEN 'assistant' THEN 'llama3.1:8b' END, true, m.usage::json, m.created_at
FROM (VALUES
    ('c1', 'm1', 'user', NULL, '"Which invoices are overdue?"', NULL, NULL, 1772442000),
    ('c1', 'm2', 'assistant', 'm1', '"I would need to see the ledger."', NULL, '{"output_tokens": 9}', 1772442005),
    ('c1', 'm3', 'assistant', 'm1', '"Two: 1041 and 1057."',
     '[{"type": "function_call", "name": "query_ledger", "call_id": "t1"}, {"type": "function_call_output", "call_id": "t1"}]',
     '{"output_tokens": 12}', 1772442031),
    ('c1', 'm4', 'user', 'm3', '[{"type": "text", "text": "Draft a reminder for this one."}, {"type": "image_url"}]', NULL, NULL,
     1772442090),
    ('c1', 'm5', 'assistant', 'm4', '"Dear customer, invoice 1057 is overdue since Monday."', NULL, '{"output_tokens": 14}',
     1772442099000),
    ('c2', 'm1', 'user', NULL, '"Translate: good morning"', NULL, NULL, 1772443000),
    ('c2', 'm2', 'assistant', 'm1', '"Guten Morgen"', NULL, '{"output_tokens": 4}', 1772443002)
) AS m (chat_id, message_id, role, parent_id, content, output, usage, created_at);
