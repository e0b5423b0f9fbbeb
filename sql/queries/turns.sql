-- $1 uuid[]: the whole rows of these turns.
SELECT {t.id}, {t.session_id}, {t.role}, {t.phase}, {t.salience}, {t.trajectory_depth}, {t.trajectory_sibling_order},
       {t.trajectory_homogeneity}, {t.trajectory_temporal}, {t.trajectory_complexity}, {t.created_at}, {t.content_hash},
       {tokens}
FROM {turns} AS t
WHERE {t.id} OPERATOR(pg_catalog.=) ANY ($1)
