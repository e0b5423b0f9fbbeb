\echo Use "ALTER EXTENSION graph_kernel UPDATE TO '0.3.0'" to load this file. \quit

SELECT graph_kernel.require_library();

CREATE OR REPLACE FUNCTION @extschema@.graph_require_admissible() RETURNS trigger
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    slice json;
    turns uuid[];
    trust text := 'no_rls';
    graph text := 'default';
    arguments text[] := '{}';
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
    refused := graph_kernel.promotion_refusal(slice, turns, graph, trust);
    IF refused IS NOT NULL THEN
        RAISE EXCEPTION 'row of %.% is not admissible: %', TG_TABLE_SCHEMA, TG_TABLE_NAME, refused
            USING ERRCODE = 'check_violation', DETAIL = 'NOT_ADMISSIBLE',
                  HINT = CASE
                      WHEN starts_with(refused, 'its slice does not verify') THEN 'SELECT * FROM graph_verify_slice(slice);'
                      WHEN starts_with(refused, 'its slice was taken') THEN 'Arguments of the trigger say whose slices are trusted.'
                      ELSE 'Name the turns that the row was made from; each must be in its slice.'
                  END;
    END IF;
    RETURN NULL;
END
$$;
