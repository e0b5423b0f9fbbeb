-- Promise: both published dialects, other types of the same meaning and any names through a mapping give one slice.
SET client_min_messages = warning; -- no notices of missing indexes
CREATE SCHEMA dialect;
CREATE FUNCTION pg_temp.try(turns regclass, edges regclass, columns jsonb DEFAULT NULL)
RETURNS TABLE (slice_id text, snapshot text, same_turns boolean) LANGUAGE plpgsql AS $$
DECLARE
    was text;
BEGIN
    PERFORM graph_kernel.unbind_tables();
    was := (SELECT string_agg(md5((t #- '{content_hash}')::text), '' ORDER BY t ->> 'id') FROM jsonb_array_elements(graph_slice(turn(2))::jsonb -> 'turns') AS t);
    PERFORM graph_kernel.bind_tables(turns, edges, columns);
    RETURN QUERY SELECT s ->> 'slice_id', s ->> 'graph_snapshot_hash',
        was = (SELECT string_agg(md5((t #- '{content_hash}')::text), '' ORDER BY t ->> 'id') FROM jsonb_array_elements(s::jsonb -> 'turns') AS t)
    FROM graph_slice(turn(2)) AS s;
    PERFORM graph_kernel.unbind_tables();
END $$;

-- The specification's tables as published: timestamp, no content columns, edges by (parent, child).
CREATE TABLE dialect.spec_turns (
    id uuid PRIMARY KEY, session_id text, role text, trajectory_phase text, salience_score real, trajectory_depth integer,
    trajectory_sibling_order integer, trajectory_homogeneity real, trajectory_temporal real, trajectory_complexity real, created_at timestamp);
CREATE TABLE dialect.spec_edges (
    parent_turn_id uuid REFERENCES dialect.spec_turns, child_turn_id uuid REFERENCES dialect.spec_turns, edge_type text,
    PRIMARY KEY (parent_turn_id, child_turn_id));
INSERT INTO dialect.spec_turns
SELECT id, session_id, role, trajectory_phase, salience_score, trajectory_depth, trajectory_sibling_order,
       trajectory_homogeneity, trajectory_temporal, trajectory_complexity, created_at AT TIME ZONE 'UTC' FROM memory_turns;
INSERT INTO dialect.spec_edges SELECT * FROM memory_turn_edges;
SELECT * FROM pg_temp.try('dialect.spec_turns', 'dialect.spec_edges');
-- A timestamp is UTC whatever the session's time zone.
SET timezone = 'Pacific/Kiritimati';
SELECT * FROM pg_temp.try('dialect.spec_turns', 'dialect.spec_edges');
RESET timezone;

-- The other dialect: conversation_id uuid, phase, salience in double precision, complexity an integer.
CREATE TABLE dialect.orbit_turns (
    id uuid PRIMARY KEY, conversation_id uuid, role varchar(20), phase varchar(40), salience double precision, trajectory_depth smallint,
    trajectory_sibling_order bigint, trajectory_homogeneity double precision, trajectory_temporal double precision,
    trajectory_complexity integer, created_at timestamptz, content_text text, content_hash char(64));
INSERT INTO dialect.orbit_turns
SELECT id, session_id::uuid, role, trajectory_phase, salience_score::numeric, trajectory_depth, trajectory_sibling_order,
       trajectory_homogeneity::numeric, trajectory_temporal, trajectory_complexity, created_at, content_text, content_hash FROM memory_turns;
SELECT * FROM pg_temp.try('dialect.orbit_turns', 'dialect.spec_edges');

-- Enums and domains, NOT NULL and CHECKed, and character of fixed length.
CREATE TYPE dialect.role AS ENUM ('user', 'assistant');
CREATE TYPE dialect.phase AS ENUM ('Exploration', 'Debugging', 'Planning', 'Consolidation', 'Synthesis');
CREATE TYPE dialect.edge_type AS ENUM ('Reply', 'Branch', 'Reference', 'Default');
CREATE DOMAIN dialect.turn_id AS uuid NOT NULL;
CREATE DOMAIN dialect.unit AS real CHECK (VALUE BETWEEN 0 AND 1);
CREATE DOMAIN dialect.half AS dialect.unit;
CREATE DOMAIN dialect.moment AS timestamptz;
CREATE TABLE dialect.typed_turns (
    id dialect.turn_id PRIMARY KEY, session_id char(50), role dialect.role, phase dialect.phase, salience dialect.half, trajectory_depth integer,
    trajectory_sibling_order integer, trajectory_homogeneity dialect.unit, trajectory_temporal dialect.unit, trajectory_complexity smallint,
    created_at dialect.moment);
CREATE TABLE dialect.typed_edges (parent_turn_id dialect.turn_id, child_turn_id dialect.turn_id, edge_type dialect.edge_type);
INSERT INTO dialect.typed_turns
SELECT id, session_id, role::dialect.role, initcap(trajectory_phase)::dialect.phase, salience_score, trajectory_depth, trajectory_sibling_order,
       trajectory_homogeneity, trajectory_temporal, trajectory_complexity, created_at FROM memory_turns;
INSERT INTO dialect.typed_edges SELECT parent_turn_id, child_turn_id, initcap(edge_type)::dialect.edge_type FROM memory_turn_edges;
SELECT * FROM pg_temp.try('dialect.typed_turns', 'dialect.typed_edges');

-- Any names, however odd, through a mapping.
CREATE TABLE dialect."Turns of ""mine"" {turns}" AS
SELECT id AS "ID; --", session_id AS "the ""session""", role AS "{t.id}", trajectory_phase AS "Phase $1", salience_score AS "salience score",
       trajectory_depth AS "depth'", trajectory_sibling_order AS "ordre é", trajectory_homogeneity AS "select", trajectory_temporal AS "%I",
       trajectory_complexity AS "\", created_at AS "When?", content_text AS "{e.child}", content_hash AS "{edges}" FROM memory_turns;
CREATE UNIQUE INDEX ON dialect."Turns of ""mine"" {turns}" ("ID; --");
CREATE TABLE dialect."{t.id}" AS SELECT parent_turn_id AS "from", child_turn_id AS "to", edge_type AS "{turns}" FROM memory_turn_edges;
SELECT $${
    "turns": {"id": "ID; --", "session_id": "the \"session\"", "role": "{t.id}", "phase": "Phase $1", "salience": "salience score", "trajectory_depth": "depth'",
        "trajectory_sibling_order": "ordre é", "trajectory_homogeneity": "select", "trajectory_temporal": "%I", "trajectory_complexity": "\\",
        "created_at": "When?", "content_text": "{e.child}", "content_hash": "{edges}"},
    "edges": {"parent": "from", "child": "to", "edge_type": "{turns}"}}$$ AS columns \gset
SELECT * FROM pg_temp.try('dialect."Turns of ""mine"" {turns}"', 'dialect."{t.id}"', :'columns');
SELECT graph_kernel.bind_tables('dialect."Turns of ""mine"" {turns}"', 'dialect."{t.id}"', :'columns') IS NOT NULL AS bound;
SELECT check_name, ok, count FROM graph_check() WHERE NOT ok;
SELECT c.check_name, e.code FROM graph_check() AS c, test_error(replace(c.hint, 'CONCURRENTLY ', '')) AS e WHERE c.hint IS NOT NULL;
SELECT bool_and(ok) FROM graph_check();

-- The least there can be: ids. All else is mapped to null and read with its default; indexes are proposed without what is not there.
CREATE TABLE dialect.bare_turns AS SELECT id FROM memory_turns;
CREATE UNIQUE INDEX ON dialect.bare_turns (id);
CREATE TABLE dialect.bare_edges AS SELECT parent_turn_id, child_turn_id FROM memory_turn_edges;
SELECT graph_kernel.bind_tables('dialect.bare_turns', 'dialect.bare_edges', jsonb_build_object('edges', '{"edge_type": null}'::jsonb, 'turns',
    (SELECT jsonb_object_agg(key, NULL) FROM unnest(ARRAY['session_id', 'role', 'phase', 'salience', 'trajectory_depth', 'trajectory_sibling_order',
        'trajectory_homogeneity', 'trajectory_temporal', 'trajectory_complexity', 'created_at']) AS key))) IS NOT NULL AS bound;
SELECT * FROM test_slice(2);
SELECT graph_slice(turn(1), '{"max_nodes": 1}') -> 'turns' -> 0 AS turn;
SELECT check_name, ok, count, hint FROM graph_check() WHERE NOT ok OR count IS NULL;
SELECT c.check_name, e.code FROM graph_check() AS c, test_error(replace(c.hint, 'CONCURRENTLY ', '')) AS e WHERE c.hint IS NOT NULL;
SELECT bool_and(ok) FROM graph_check();

-- A mapping goes before a recognised name; the specification's name before the other dialect's.
ALTER TABLE dialect.spec_turns ADD phase text DEFAULT 'synthesis', ADD conversation_id uuid, ADD salience real DEFAULT 1, ADD stage text;
UPDATE dialect.spec_turns SET stage = trajectory_phase;
SELECT * FROM pg_temp.try('dialect.spec_turns', 'dialect.spec_edges');
SELECT * FROM pg_temp.try('dialect.spec_turns', 'dialect.spec_edges', '{"turns": {"phase": "stage"}}');
SELECT * FROM pg_temp.try('dialect.spec_turns', 'dialect.spec_edges', '{"turns": {"phase": "phase"}}');
-- Dropped columns leave no trace.
ALTER TABLE dialect.spec_turns DROP phase, DROP stage, DROP salience, ADD phase text;
SELECT * FROM pg_temp.try('dialect.spec_turns', 'dialect.spec_edges');

-- graph_check understands each dialect.
SELECT graph_kernel.bind_tables('dialect.typed_turns', 'dialect.typed_edges') IS NOT NULL AS bound;
SELECT check_name, ok, count FROM graph_check();
SELECT graph_kernel.bind_tables('dialect.orbit_turns', 'dialect.spec_edges') IS NOT NULL AS bound;
SELECT check_name, ok, count FROM graph_check() WHERE NOT ok OR check_name LIKE '%hashes';
SELECT graph_kernel.unbind_tables();
SET client_min_messages = warning;
DROP SCHEMA dialect CASCADE;
