-- $1 text[]: how many events are of the sessions with names of more than 4 KiB that have these hashes.
SELECT e.name, pg_catalog.count(*)
FROM (
    SELECT pg_catalog.concat('sha256:', pg_catalog.encode(pg_catalog.sha256(
               pg_catalog.replace(({e.session_id}) COLLATE pg_catalog."C", pg_catalog.chr(92),
                   pg_catalog.repeat(pg_catalog.chr(92), 2))::pg_catalog.bytea), 'hex')) AS name
    FROM {events} AS e
    WHERE pg_catalog.octet_length({e.session_id}) OPERATOR(pg_catalog.>) 4096
) AS e
WHERE e.name OPERATOR(pg_catalog.=) ANY ($1)
GROUP BY 1
