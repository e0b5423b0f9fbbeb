-- "No token, no promotion" as a constraint: trigger functions, whose triggers run AFTER, so that no other trigger can
-- change the row after the check. Arguments: the column of the slice, or of the provenance of a search; the column of
-- the turns; whose slices are trusted: no_rls (the default: slices taken without row security) or roles=a,b; and
-- graph=name (the default: default) for the graph.
CREATE FUNCTION @extschema@.graph_require_admissible() RETURNS trigger
    AS 'MODULE_PATHNAME', 'graph_require_admissible_wrapper'
    LANGUAGE c SET search_path = pg_catalog, pg_temp;
COMMENT ON FUNCTION @extschema@.graph_require_admissible() IS
    'trigger: a row must carry a slice that verifies and name only turns inside it';
CREATE FUNCTION @extschema@.graph_require_admissible_result() RETURNS trigger
    AS 'MODULE_PATHNAME', 'graph_require_admissible_result_wrapper'
    LANGUAGE c SET search_path = pg_catalog, pg_temp;
COMMENT ON FUNCTION @extschema@.graph_require_admissible_result() IS
    'trigger: a row must carry the provenance of a search that may be promoted, and name only turns that it retrieved';
