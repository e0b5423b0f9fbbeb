-- MLflow: the table of spans, with two traces.
DROP TABLE IF EXISTS spans; -- Phoenix has one of the same name.

CREATE TABLE spans (
    trace_id varchar(50) NOT NULL,
    experiment_id integer NOT NULL,
    span_id varchar(50) NOT NULL,
    parent_span_id varchar(50),
    name text,
    type varchar(500),
    status varchar(50) NOT NULL,
    start_time_unix_nano bigint NOT NULL,
    end_time_unix_nano bigint,
    content text NOT NULL,
    PRIMARY KEY (trace_id, span_id)
);

INSERT INTO spans
SELECT t.trace, 1, 's' || s.n, CASE WHEN s.n > 0 THEN 's0' END, s.name, s.type, 'OK', 1767607200000000000 + s.n,
       1767607201000000000, json_build_object('name', s.name, 'attributes', json_build_object(
         'mlflow.spanInputs', '{"question": ' || to_json(t.question) || '}',
         'mlflow.spanOutputs', to_json(CASE s.type WHEN 'TOOL' THEN 'in "transit"' ELSE t.answer END)::text))
FROM (VALUES ('tr-1', 'Where is my parcel?', 'It arrives today.'), ('tr-2', 'Cancel my order.', 'It is cancelled.'))
     AS t (trace, question, answer),
(VALUES (0, 'clerk', 'AGENT'), (1, 'track', 'TOOL'), (2, 'write', 'CHAT_MODEL')) AS s (n, name, type);
