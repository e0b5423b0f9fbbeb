-- LangGraph: the table of checkpoints, with a thread that was forked and ran a subgraph.

CREATE TABLE checkpoints (
    thread_id text NOT NULL,
    checkpoint_ns text NOT NULL DEFAULT '',
    checkpoint_id text NOT NULL,
    parent_checkpoint_id text,
    type text,
    checkpoint jsonb NOT NULL,
    metadata jsonb NOT NULL DEFAULT '{}',
    PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id)
);
CREATE INDEX checkpoints_thread_id_idx ON checkpoints (thread_id);

INSERT INTO checkpoints (thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id, checkpoint, metadata)
SELECT m.thread_id, m.ns, '1f0f5e00-0000-6000-8000-00000000000' || m.id, '1f0f5e00-0000-6000-8000-00000000000' || m.parent,
       jsonb_build_object('v', 4, 'id', '1f0f5e00-0000-6000-8000-00000000000' || m.id,
                          'ts', '2026-03-02T09:00:0' || m.id || '.000000+00:00', 'channel_values', '{}'::jsonb),
       jsonb_build_object('source', m.source, 'step', m.step, 'parents', m.parents::jsonb)
FROM (VALUES
    ('order-7', '', 1, NULL, 'input', -1, '{}'),
    ('order-7', '', 2, 1, 'loop', 0, '{}'),
    ('order-7', '', 3, 2, 'loop', 1, '{}'),
    ('order-7', 'check:6b1f', 4, NULL, 'input', -1, '{"": "1f0f5e00-0000-6000-8000-000000000003"}'),
    ('order-7', 'check:6b1f', 5, 4, 'loop', 0, '{"": "1f0f5e00-0000-6000-8000-000000000003"}'),
    ('order-7', '', 6, 3, 'loop', 2, '{}'),
    ('order-7', '', 7, 2, 'fork', 1, '{}'),
    ('order-7', '', 8, 7, 'loop', 2, '{}'),
    ('order-8', '', 1, NULL, 'input', -1, '{}')
) AS m (thread_id, ns, id, parent, source, step, parents);
