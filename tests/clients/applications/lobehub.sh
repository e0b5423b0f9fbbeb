#!/usr/bin/env bash
# Topics of LobeHub: its migrations make the tables; the rows are those that its server writes, by SQL.
set -euo pipefail
psql() { command psql -X -q -v ON_ERROR_STOP=1 "$@"; }
for migration in "$PACKAGES"/lobehub/packages/database/migrations/*.sql; do
  PGOPTIONS='-c client_min_messages=error' psql -f "$migration"
done
psql <<'SQL'
INSERT INTO users (id) VALUES ('u1');
INSERT INTO topics (id, user_id, title) VALUES ('a', 'u1', 'a'), ('b', 'u1', 'b');
INSERT INTO messages (id, user_id, topic_id, role, parent_id, quota_id, content, created_at) VALUES
    ('msg_1', 'u1', 'a', 'user', NULL, NULL, 'Where is my parcel?', '2026-01-05 10:00:00+00'),
    ('msg_2', 'u1', 'b', 'user', NULL, NULL, 'Cancel my order.', '2026-01-05 10:00:01+00'),
    ('msg_3', 'u1', 'a', 'supervisor', 'msg_1', NULL, 'It arrives today.', '2026-01-05 10:00:02+00'),
    ('msg_4', 'u1', 'a', 'user', 'msg_3', NULL, 'Thanks.', '2026-01-05 10:00:03+00');
SQL
