-- $1 uuid[]: writes the hashes of these turns, of their contents as they are when they are written.
UPDATE {turns} AS t
SET {hash_column} = graph_kernel.content_hash_or_null({t.content_text})
WHERE {t.id} OPERATOR(pg_catalog.=) ANY ($1) AND {stale}
RETURNING {t.id}
