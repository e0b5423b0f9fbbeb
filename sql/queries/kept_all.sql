-- Every document that is kept, with what its row says of it.
SELECT {s.key}, {s.document}, {s.kind}, {s.graph}, {s.role}, {s.rls}, {s.anchor},
       pg_catalog.array_to_string({s.turns}, ' ')
FROM {store} AS s
