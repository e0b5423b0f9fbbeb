-- Phoenix: the table of spans, with three traces, two of them of one session.

CREATE TABLE spans (
    id serial PRIMARY KEY,
    trace_rowid integer NOT NULL,
    span_id varchar NOT NULL UNIQUE,
    parent_id varchar,
    name varchar NOT NULL,
    span_kind varchar NOT NULL,
    start_time timestamptz NOT NULL,
    end_time timestamptz NOT NULL,
    attributes jsonb NOT NULL,
    events jsonb NOT NULL,
    status_code varchar NOT NULL,
    status_message varchar NOT NULL
);
CREATE INDEX ix_spans_parent_id ON spans (parent_id);
CREATE INDEX ix_spans_trace_rowid ON spans (trace_rowid);
CREATE INDEX ix_spans_start_time ON spans (start_time);

INSERT INTO spans (trace_rowid, span_id, parent_id, name, span_kind, start_time, end_time, attributes, events,
                   status_code, status_message)
SELECT t.trace, lpad(t.trace || '' || s.n, 16, '0'), CASE WHEN s.n > 0 THEN lpad(t.trace || '0', 16, '0') END,
       s.name, s.kind, t.at + s.n * interval '1 second', t.at + (s.n + 1) * interval '1 second',
       jsonb_build_object('session', jsonb_build_object('id', t.session),
                          'input', jsonb_build_object('value', t.question),
                          'output', jsonb_build_object('value', CASE s.kind WHEN 'TOOL' THEN t.found ELSE t.answer END)),
       '[]', 'OK', ''
FROM (VALUES
    (1, 'a', timestamptz '2026-01-05 10:00:00Z', 'Where is my parcel?', 'in transit', 'It arrives today.'),
    (2, 'b', '2026-01-05 10:00:10Z', 'Cancel my order.', 'open', 'It is cancelled.'),
    (3, 'a', '2026-01-05 10:00:20Z', 'When exactly?', 'at 14:00', 'At two.')
) AS t (trace, session, at, question, found, answer),
(VALUES (0, 'clerk', 'AGENT'), (1, 'track', 'TOOL'), (2, 'write', 'LLM')) AS s (n, name, kind);
