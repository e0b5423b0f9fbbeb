-- Google ADK: the table of events, with a call of a tool; another session writes between.

CREATE TABLE events (
    id varchar(128),
    app_name varchar(128),
    user_id varchar(128),
    session_id varchar(128),
    invocation_id varchar(256) NOT NULL,
    "timestamp" timestamp NOT NULL,
    event_data jsonb,
    PRIMARY KEY (id, app_name, user_id, session_id)
);
CREATE INDEX idx_events_app_user_session_ts_id
    ON events (app_name, user_id, session_id, "timestamp" DESC, id DESC);

INSERT INTO events
SELECT 'e' || m.n, 'shop', 'u1', m.session, 'i' || m.n, timestamp '2026-01-05 10:00' + m.n * interval '1 second',
       jsonb_build_object('id', 'e' || m.n, 'author', m.author, 'content', m.content::jsonb)
FROM (VALUES
    (1, 'a', 'user', '{"role": "user", "parts": [{"text": "Where is my parcel?"}]}'),
    (2, 'b', 'user', '{"role": "user", "parts": [{"text": "Cancel my order."}]}'),
    (3, 'a', 'clerk', '{"role": "model", "parts": [{"function_call": {"id": "c1", "args": {}, "name": "track"}}]}'),
    (4, 'a', 'clerk', '{"role": "user", "parts": [{"function_response":
                         {"id": "c1", "name": "track", "response": {"result": "in transit"}}}]}'),
    (5, 'a', 'clerk', '{"role": "model", "parts": [{"text": "It arrives today."}]}'),
    (6, 'a', 'user', '{"role": "user", "parts": [{"text": "Thanks."}]}')
) AS m (n, session, author, content);
