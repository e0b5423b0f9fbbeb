-- $1 text: the name of one of the server's own text search configurations. Whether its dictionaries are the server's
-- own as well: those of users give other lexemes after a change that nobody sees. No row where there is none of that
-- name.
SELECT NOT EXISTS (
    SELECT FROM pg_catalog.pg_ts_config_map AS m
    WHERE m.mapcfg OPERATOR(pg_catalog.=) c.oid
      AND m.mapdict OPERATOR(pg_catalog.>=) '16384'::pg_catalog.oid)
FROM pg_catalog.pg_ts_config AS c
WHERE c.cfgname OPERATOR(pg_catalog.=) $1::pg_catalog.name
  AND c.cfgnamespace OPERATOR(pg_catalog.=) 'pg_catalog'::pg_catalog.regnamespace
  AND c.oid OPERATOR(pg_catalog.<) '16384'::pg_catalog.oid
