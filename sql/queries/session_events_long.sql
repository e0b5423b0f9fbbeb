-- $1 text[]: how many events are of the sessions with names of more than 4 KiB, or that are not UTF-8, that have these
-- hashes.
SELECT e.name, pg_catalog.count(*)
FROM (
    SELECT graph_kernel.name_hash({e.session_id}) AS name
    FROM {events} AS e
    WHERE pg_catalog.octet_length({e.session_id}) OPERATOR(pg_catalog.>) 4096
       OR NOT graph_kernel.is_text({e.session_id})
) AS e
WHERE e.name OPERATOR(pg_catalog.=) ANY ($1)
GROUP BY 1
