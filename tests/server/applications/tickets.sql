-- A ticket system: the comments of tickets. Those that were imported name 0 as the parent of a first comment.

CREATE TABLE comments (
    id bigint PRIMARY KEY,
    ticket_id bigint NOT NULL,
    parent_id bigint,
    quoted_id bigint,
    author varchar(80) NOT NULL,
    is_staff boolean NOT NULL DEFAULT false,
    rating smallint,
    body text NOT NULL,
    created_at timestamp NOT NULL
);
CREATE INDEX ON comments (ticket_id);

INSERT INTO comments VALUES
    (101, 7, 0, NULL, 'Ada', false, NULL, 'The export drops rows.', '2026-03-02 09:00'),
    (102, 7, 101, NULL, 'support', true, 2, 'Please clear your cache.', '2026-03-02 09:20'),
    (103, 7, 101, NULL, 'support', true, 5, 'It drops rows that begin at midnight. A fix is on its way.', '2026-03-02 09:40'),
    (104, 7, 103, NULL, 'Ada', false, NULL, 'When?', '2026-03-02 09:50'),
    (201, 8, 0, NULL, 'Ben', false, NULL, 'The invoice is wrong.', '2026-03-02 11:00'),
    (202, 8, 201, NULL, 'support', true, NULL, 'It will be sent again.', '2026-03-02 11:05'),
    (301, 9, NULL, 103, 'Cem', false, NULL, 'Is this the midnight fault of ticket 7?', '2026-03-04 08:00'),
    (302, 9, 301, NULL, 'support', true, 4, 'Yes. The fix is in version 2.4.', '2026-03-04 08:10');
