-- Loads the sample conversation into the tables that graph_kernel.create_tables() has made. In this folder:
-- psql -f load.sql
\set ON_ERROR_STOP on
BEGIN;
\copy public.memory_turns (id, session_id, role, trajectory_phase, salience_score, trajectory_depth, trajectory_sibling_order, trajectory_homogeneity, trajectory_temporal, trajectory_complexity, created_at, content_text, content_hash) from memory_turns.csv with (format csv, header match)
\copy public.memory_turn_edges (parent_turn_id, child_turn_id, edge_type) from memory_turn_edges.csv with (format csv, header match)
COMMIT;
ANALYZE public.memory_turns, public.memory_turn_edges;
