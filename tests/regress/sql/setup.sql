-- What the tests share: the extension, the five-turn graph, and helpers whose names start with test_.
CREATE EXTENSION graph_kernel;
SELECT graph_kernel.create_tables();

-- The id of the n-th turn; ids order as their numbers do.
CREATE FUNCTION turn(n bigint) RETURNS uuid
LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$ SELECT ('00000000-0000-0000-0000-' || lpad(n::text, 12, '0'))::uuid $$;

-- And back: the number of a turn.
CREATE FUNCTION turn_number(id uuid) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$ SELECT right(id::text, 12)::bigint $$;

CREATE FUNCTION slice_id(n bigint, policy slice_policy DEFAULT 'default') RETURNS text
LANGUAGE sql STABLE
AS $$ SELECT graph_slice(turn(n), policy) ->> 'slice_id' $$;

-- A slice in short: turn@distance in order of selection, parent>child in order of the export.
CREATE FUNCTION test_slice(n bigint, policy slice_policy DEFAULT 'default')
RETURNS TABLE (selected text, edges text, slice_id text)
LANGUAGE sql STABLE
AS $$
    SELECT (SELECT string_agg(turn_number(t.turn_id) || '@' || t.distance, ' ' ORDER BY t.selection_order)
            FROM graph_slice_turns(turn(n), policy) AS t),
           (SELECT string_agg(format('%s>%s %s', turn_number(e.parent), turn_number(e.child), e.edge_type), ', '
                              ORDER BY e.ordinality)
            FROM graph_slice_edges(turn(n), policy) WITH ORDINALITY AS e),
           slice_id(n, policy)
$$;

-- How a statement ends: 00000, or its error as a client sees it.
CREATE FUNCTION test_error(statement text)
RETURNS TABLE (code text, message text, detail text, hint text)
LANGUAGE plpgsql
AS $$
BEGIN
    EXECUTE statement;
    code := '00000';
    RETURN NEXT;
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS code = RETURNED_SQLSTATE, message = MESSAGE_TEXT,
                            detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
    RETURN NEXT;
END
$$;

-- The five turns of the specification's reference values:
--   1 ─reply→ 2 ─reply→ 3 ─reply→ 5,  2 ─branch→ 4,  2 ─reference→ 5
INSERT INTO memory_turns
SELECT turn(n), '11111111-1111-1111-1111-111111111111', role, phase, salience, depth, sibling_order,
       homogeneity, temporal, complexity, timestamptz '2024-01-01 00:00:00+00' + (n - 1) * interval '1 min',
       content, graph_content_hash(content)
FROM (VALUES
    (1, 'user', 'exploration', 0.3, 0, 0, 0.5, 0.0, 1.0, 'turn one'),
    (2, 'assistant', 'planning', 0.8, 1, 0, 0.6, 0.25, 2.0, 'turn two'),
    (3, 'user', 'synthesis', 0.9, 2, 0, 0.7, 0.5, 3.0, 'turn three'),
    (4, 'user', 'debugging', 0.1, 2, 1, 0.2, 0.75, 1.0, 'turn four'),
    (5, 'assistant', 'consolidation', 0.5, 3, 0, 0.4, 1.0, 1.0, 'turn five')
) AS v (n, role, phase, salience, depth, sibling_order, homogeneity, temporal, complexity, content);
INSERT INTO memory_turn_edges
SELECT turn(parent), turn(child), edge_type
FROM (VALUES (1, 2, 'reply'), (2, 3, 'reply'), (2, 4, 'branch'), (2, 5, 'reference'), (3, 5, 'reply'))
    AS v (parent, child, edge_type);
ANALYZE memory_turns, memory_turn_edges;

SELECT slice_id(2);
