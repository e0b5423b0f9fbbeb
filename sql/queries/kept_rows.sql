-- What is kept, without the documents.
SELECT {s.key}, {s.kind}, {s.graph}, {s.role}, {s.rls}, {s.anchor},
       pg_catalog.cardinality({s.turns})::pg_catalog.int8, {s.kept_by}, {s.kept_at}, {s.checked_at}, {s.status},
       {s.superseded_by}
FROM {store} AS s
