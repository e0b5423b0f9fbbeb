-- "No token, no promotion" as a constraint. AFTER, so that no other trigger can change the row
-- after the check. Arguments: the slice column, the turns column, whose slices are trusted: no_rls
-- (the default: slices taken without row security) or roles=a,b; and graph=name (the default: default) for the graph.
-- The writer's setting graph_kernel.graph decides nothing here.
CREATE FUNCTION graph_kernel.check_promotion(slice json, turns uuid[], graph text)
RETURNS TABLE (valid boolean, reason text, role text, rls boolean, outside boolean)
    AS 'MODULE_PATHNAME', 'check_promotion_wrapper'
    LANGUAGE c STABLE PARALLEL SAFE COST 2000 ROWS 1 SET search_path = pg_catalog, pg_temp;

-- It runs with the writer's rights. Columns are read through the output functions of their types: a
-- type's owner could give it a cast.
CREATE FUNCTION @extschema@.graph_require_admissible() RETURNS trigger
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    slice json;
    turns uuid[];
    trust text := 'no_rls';
    graph text := 'default';
    arguments text[] := '{}';
    verified record;
    refused text;
BEGIN
    IF TG_WHEN <> 'AFTER' OR TG_LEVEL <> 'ROW' OR TG_OP NOT IN ('INSERT', 'UPDATE') THEN
        RAISE EXCEPTION 'graph_require_admissible() must run AFTER INSERT OR UPDATE FOR EACH ROW'
            USING ERRCODE = 'trigger_protocol_violated', DETAIL = 'INVALID_TRIGGER';
    END IF;
    FOR i IN 2 .. TG_NARGS - 1 LOOP
        arguments := arguments || TG_ARGV[i];
    END LOOP;
    IF arguments[cardinality(arguments)] LIKE 'graph=_%' THEN
        graph := substr(arguments[cardinality(arguments)], 7);
        arguments := trim_array(arguments, 1);
    END IF;
    trust := coalesce(arguments[1], trust);
    IF TG_NARGS < 2 OR cardinality(arguments) > 1 OR (trust <> 'no_rls' AND trust NOT LIKE 'roles=_%') THEN
        RAISE EXCEPTION 'trigger % has bad arguments', TG_NAME
            USING ERRCODE = 'invalid_parameter_value', DETAIL = 'INVALID_TRIGGER',
                  HINT = 'graph_require_admissible(''slice_column'', ''turns_column''[, ''no_rls'' | ''roles=a,b''][, ''graph=name''])';
    END IF;
    EXECUTE format('SELECT nullif(format(''%%s'', ($1).%I), '''')::json, nullif(format(''%%s'', ($1).%I), '''')::uuid[]',
                   TG_ARGV[0], TG_ARGV[1])
        INTO slice, turns USING NEW;
    SELECT * INTO verified FROM graph_kernel.check_promotion(slice, turns, graph);
    refused := CASE
        WHEN NOT verified.valid THEN format('its slice does not verify: %s', verified.reason)
        WHEN trust = 'no_rls' AND verified.rls THEN
            format('its slice was taken under row security by role %s', verified.role)
        WHEN trust <> 'no_rls' AND verified.role <> ALL (string_to_array(substr(trust, 7), ',')) THEN
            format('its slice was taken by role %s', verified.role)
        WHEN coalesce(cardinality(turns), 0) = 0
             OR EXISTS (SELECT FROM unnest(turns) AS t (id) WHERE t.id IS NULL) THEN
            'it names no source turns'
        WHEN verified.outside THEN
            'a source turn is not in its slice'
    END;
    IF refused IS NOT NULL THEN
        RAISE EXCEPTION 'row of %.% is not admissible: %', TG_TABLE_SCHEMA, TG_TABLE_NAME, refused
            USING ERRCODE = 'check_violation', DETAIL = 'NOT_ADMISSIBLE',
                  HINT = 'SELECT * FROM graph_verify_slice(slice);';
    END IF;
    RETURN NULL;
END
$$;
