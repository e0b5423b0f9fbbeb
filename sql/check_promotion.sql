-- The triggers that promote, in any schema: their form, who may add others, and the tables that take rows without them.
-- Called by check_graph.
CREATE FUNCTION graph_kernel.check_promotion(name text) RETURNS TABLE (
    check_name text, ok boolean, count bigint, detail text, hint text
)
LANGUAGE plpgsql STABLE STRICT
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    -- In another form a trigger that promotes can be got round. There is one at any time while it is replaced. One
    -- statement does it, as psql may go on after an error, in a transaction too (ON_ERROR_ROLLBACK).
    RETURN QUERY
    SELECT 'promotion_triggers', g.name IS NULL, count(g.name) OVER (PARTITION BY g.guard),
           'triggers that promote and can be got round, or have bad arguments'
           || CASE WHEN g.name IS NULL THEN '' ELSE ': ' || graph_kernel.text_prefix(
                  format('%I on %s (%s)', g.name, g.place, array_to_string(g.faults || g.bad_arguments, ', ')),
                      100000) END,
           graph_kernel.whole_command(CASE
               WHEN g.name IS NULL THEN NULL
               WHEN g.bad_arguments <> '{}' AND NOT g.is_of_parent THEN
                   format('SELECT pg_catalog.pg_get_triggerdef(g.oid) FROM pg_catalog.pg_trigger AS g WHERE g.tgrelid'
                          ' OPERATOR(pg_catalog.=) %L::pg_catalog.regclass AND g.tgname OPERATOR(pg_catalog.=) %L;'
                          ' /* Create it with other arguments. */', g.place, g.name)
               WHEN g.is_of_parent OR g.faults <@ '{disabled,not ENABLE ALWAYS}' THEN
                   format('ALTER TABLE %s ENABLE ALWAYS TRIGGER %I;', g.place, g.name)
               WHEN r.relkind NOT IN ('r', 'p') THEN format('DROP TRIGGER %I ON %s;', g.name, g.place)
               ELSE format('DO %L;', format(
                   'BEGIN CREATE CONSTRAINT TRIGGER %3$I AFTER INSERT OR UPDATE ON %2$s NOT DEFERRABLE'
                   ' FOR EACH ROW EXECUTE FUNCTION %4$s; ALTER TABLE %2$s ENABLE ALWAYS TRIGGER %3$I;'
                   ' DROP TRIGGER %1$I ON %2$s; ALTER TRIGGER %3$I ON %2$s RENAME TO %1$I; END',
                   g.name, g.place, graph_kernel.free_trigger_name(g.place, g.guard), g.call)) END)
    FROM (SELECT) AS always
    LEFT JOIN (graph_kernel.promoting_triggers() AS g JOIN pg_class AS r ON r.oid = g.place)
           -- The form of a partition's trigger is that of its table's.
           ON CASE WHEN g.is_of_parent THEN g.faults && '{disabled,not ENABLE ALWAYS}'
                   ELSE g.faults <> '{}' OR g.bad_arguments <> '{}' END
    ORDER BY g.place::text, g.name;

    -- A trigger of another role runs with the rights of whoever writes.
    RETURN QUERY
    SELECT 'promotion_rights', h.place IS NULL, count(h.place) OVER (PARTITION BY h.place),
           'tables that promote on which others than the owner hold TRIGGER'
           || CASE WHEN h.place IS NULL THEN ''
                   ELSE ': ' || graph_kernel.text_prefix(format('%s (%s)', h.place, h.holders), 100000) END,
           graph_kernel.whole_command(CASE WHEN h.place IS NOT NULL THEN
               format('REVOKE TRIGGER ON %s FROM %s CASCADE;', h.place, h.holders) END)
    FROM (SELECT) AS always
    LEFT JOIN (
        SELECT r.oid::regclass AS place,
               string_agg(DISTINCT CASE WHEN a.grantee = 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END, ', ')
                   AS holders
        FROM pg_class AS r CROSS JOIN LATERAL aclexplode(r.relacl) AS a
        WHERE r.oid IN (SELECT g.place FROM graph_kernel.promoting_triggers() AS g)
          AND a.privilege_type = 'TRIGGER' AND a.grantee <> r.relowner
          AND NOT EXISTS (SELECT FROM pg_roles AS s WHERE s.oid = a.grantee AND s.rolsuper)
        GROUP BY r.oid) AS h ON true
    ORDER BY h.place::text;

    -- Only partitions inherit triggers. Strangers choose how many triggers and children there are: of theirs this looks
    -- at ten triggers a table, and says one a child, and what is below the child once that has it.
    RETURN QUERY
    WITH RECURSIVE guard AS MATERIALIZED (
        -- Each child repeats it: a command with a longer one is not given.
        SELECT t.guard, t.place, t.name, t.call, t.is_trusted
        FROM (SELECT g.guard, g.place, g.name, CASE WHEN octet_length(g.call) <= 4096 THEN g.call END AS call,
                     r.relowner = ANY (graph_kernel.trusted_owners(check_promotion.name)) AS is_trusted,
                     row_number() OVER (PARTITION BY g.place ORDER BY g.name) AS position
              FROM graph_kernel.promoting_triggers() AS g JOIN pg_class AS r ON r.oid = g.place
              WHERE g.bad_arguments = '{}') AS t
        WHERE t.is_trusted OR t.position <= 10
    ), descendant (top, child, is_trusted) AS (
        SELECT t.place::oid, h.inhrelid, t.is_trusted
        FROM (SELECT DISTINCT g.place, g.is_trusted FROM guard AS g) AS t JOIN pg_inherits AS h ON h.inhparent = t.place
        UNION
        SELECT d.top, h.inhrelid, true FROM descendant AS d JOIN pg_inherits AS h ON h.inhparent = d.child
        WHERE d.is_trusted
    ), bare AS (
        SELECT o.guard, o.name, d.child::regclass AS place, o.call
        FROM descendant AS d
        CROSS JOIN LATERAL (
            SELECT o.guard, o.name, o.call
            FROM guard AS o JOIN pg_trigger AS g ON g.oid = o.guard
            WHERE o.place = d.top
              AND NOT EXISTS (SELECT FROM pg_trigger AS own
                              WHERE own.tgrelid = d.child AND own.tgfoid = g.tgfoid AND own.tgargs = g.tgargs)
            ORDER BY o.name LIMIT CASE WHEN NOT d.is_trusted THEN 1 END
        ) AS o
    )
    SELECT 'promotion_children', d.place IS NULL, CASE WHEN d.place IS NULL THEN 0 ELSE 1 END::bigint,
           'tables that inherit from one that promotes and take rows without its trigger'
           || coalesce(': ' || CASE WHEN d.call IS NULL THEN d.place::text END, ''),
           graph_kernel.whole_command(CASE WHEN d.call IS NOT NULL THEN
               format('DO %L;', format(
                   'BEGIN CREATE CONSTRAINT TRIGGER %1$I AFTER INSERT OR UPDATE ON %2$s NOT DEFERRABLE FOR EACH'
                   ' ROW EXECUTE FUNCTION %3$s; ALTER TABLE %2$s ENABLE ALWAYS TRIGGER %1$I; END',
                   d.free, d.place, d.call)) END)
    FROM (SELECT) AS always
    LEFT JOIN (
        SELECT b.place, b.call,
               CASE WHEN EXISTS (SELECT FROM pg_trigger AS own WHERE own.tgrelid = b.place AND own.tgname = b.name)
                      OR EXISTS (SELECT FROM pg_constraint AS own WHERE own.conrelid = b.place AND own.conname = b.name)
                    THEN graph_kernel.free_trigger_name(b.place, b.guard) ELSE b.name END AS free
        FROM bare AS b) AS d ON true
    ORDER BY d.place::text, d.free;
END
$$;
COMMENT ON FUNCTION graph_kernel.check_promotion(text) IS 'what graph_check finds of triggers that promote';
