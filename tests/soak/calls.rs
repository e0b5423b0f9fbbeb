//! A graph with all that belongs to it, and calls of every function that reads.

use postgres::Client;

/// Turns in sessions of 100, each a reply to an earlier one; a log of events; a slice with its proof and others that
/// were kept.
const SET_UP: &str = "
    CREATE EXTENSION IF NOT EXISTS graph_kernel;
    CREATE FUNCTION public.turn(n int) RETURNS uuid IMMUTABLE LANGUAGE sql RETURN md5('turn ' || n)::uuid;
    SELECT graph_kernel.create_tables(options => jsonb_build_object('content_hash', false)), \
    graph_kernel.create_recorder_table();
    ALTER TABLE public.memory_turns ADD embedding real[];
    INSERT INTO public.memory_turns
        (id, session_id, role, trajectory_phase, salience_score, created_at, content_text, embedding)
    SELECT turn(n), 's' || n / 100, (ARRAY['user', 'assistant'])[1 + n % 2],
           (ARRAY['synthesis', 'planning', 'debugging'])[1 + n % 3], (n % 97) / 97.0, to_timestamp(1000000000 + n),
           'content of turn ' || n, ARRAY[1, n % 7, n % 11]::real[]
      FROM generate_series(1, {turns}) AS n;
    INSERT INTO public.memory_turn_edges
    SELECT turn(greatest(1, n - 1 - n * 7 % 20)), turn(n), (ARRAY['reply', 'branch'])[1 + n % 2]
      FROM generate_series(2, {turns}) AS n;
    INSERT INTO public.recorder_events (segment_id, ordinal, byte_offset, event_id, pane_id, occurred_at_ms, \
    event_type, text)
    SELECT 0, i, i, 'e' || i, i / 20, i * 1000, 'egress_output', repeat('x', 20 + i % 100)
      FROM generate_series(0, {events}) AS i;
    SELECT graph_kernel.rotate_key();
    VACUUM ANALYZE";
const KEEP: &str = "
    CREATE TABLE public.kept AS
    SELECT slice, graph_proof(slice) AS proof, public_key, graph_slice(turn(60), 'focused') AS other,
           graph_messages_record(turn(50), {policy}) AS record,
           (SELECT provenance FROM graph_search_slice('{1,2,3}', turn(50)) LIMIT 1) AS provenance,
           (SELECT jsonb_agg(e) FROM (SELECT * FROM public.recorder_events ORDER BY ordinal LIMIT 200) AS e) AS events
      FROM graph_slice(turn(50), {policy}) AS slice, graph_kernel.proof_keys
     WHERE state = 'active';
    CREATE TABLE public.kept_chunks AS
    SELECT chunk_id, start_segment_id, start_ordinal, start_char, content_hash FROM recorder_chunks()";

/// How large the calls are.
#[derive(Clone, Copy)]
pub struct Size {
    pub turns: u32,
    pub events: u32,
    /// The policy of slices.
    pub policy: &'static str,
    /// How many anchors calls of many have.
    pub anchors: u32,
}

impl Size {
    /// A statement with its places filled in.
    pub fn fill(&self, statement: &str) -> String {
        statement
            .replace("{turns}", &self.turns.to_string())
            .replace("{events}", &self.events.to_string())
            .replace("{policy}", &format!("'{}'", self.policy))
            .replace(
                "{anchors}",
                &format!(
                    "ARRAY(SELECT turn(n * 7 % {} + 1) FROM generate_series(1, {}) AS n)",
                    self.turns, self.anchors
                ),
            )
    }

    /// Makes the graph, which is no other's.
    pub fn set_up(&self, client: &mut Client) {
        for statement in SET_UP.split_inclusive(';') {
            client.batch_execute(&self.fill(statement)).unwrap();
        }
    }

    /// Keeps what the calls check: in the table `kept`.
    pub fn keep(&self, client: &mut Client) {
        client.batch_execute(&self.fill(KEEP)).unwrap();
    }
}

/// What no change of the graph's machinery may alter.
pub const ORDINARY: &str = "SELECT graph_slice(turn(77))::text";

/// A call of each function that reads.
pub const READING: [&str; 65] = [
    "SELECT graph_slice(turn(50), {policy})",
    "SELECT count(*) FROM graph_slice_turns(turn(50), {policy})",
    "SELECT count(*) FROM graph_slice_edges(turn(50), {policy})",
    "SELECT count(slice) FROM graph_slices({anchors}, {policy})",
    "SELECT count(*) FROM graph_messages(turn(50), {policy})",
    "SELECT graph_messages_record(turn(50), {policy})",
    "SELECT count(*) FROM kept, graph_messages_show(record)",
    "SELECT reason FROM kept, graph_verify(record)",
    "SELECT graph_proof(record) FROM kept",
    "SELECT count(*) FROM graph_slice_explain(turn(50), {policy})",
    "SELECT explanation FROM graph_why(turn(50), turn(90), {policy})",
    "SELECT count(*) FROM graph_slice_stats(turn(50), {policy})",
    "SELECT graph_slice_draw(turn(50), {policy})",
    "SELECT count(*) FROM kept, graph_slice_diff(slice, other)",
    "SELECT graph_export_draw(slice, 'dot') FROM kept",
    "SELECT graph_export_draw(slice) FROM kept",
    "SELECT graph_policy_hash({policy})",
    "SELECT graph_policy('broad')",
    "SELECT graph_policy_registry_fingerprint()",
    "SELECT count(*) FROM graph_policies",
    "SELECT reason FROM kept, graph_verify(slice)",
    "SELECT count(*) FROM kept, graph_verify_explain(slice)",
    "SELECT graph_verify_token(slice ->> 'admissibility_token', slice ->> 'slice_id', turn(50), slice ->> 'policy_id',
        slice ->> 'policy_params_hash', slice ->> 'graph_snapshot_hash', slice ->> 'schema_version') FROM kept",
    "SELECT graph_is_admissible(slice, turn(50)) FROM kept",
    "SELECT graph_filter_admissible(slice, {anchors}) FROM kept",
    "SELECT count(*) FROM kept, graph_replay(slice, {policy})",
    "SELECT graph_proof(slice) FROM kept",
    "SELECT reason FROM kept, graph_verify_proof(slice, proof, public_key)",
    "SELECT graph_anchor(query_embedding => '{1,2,3}')",
    "SELECT count(*) FROM graph_anchors_recent(20)",
    "SELECT count(*) FROM graph_search_slice('{1,2,3}', turn(50), {policy}, limit_count => 20)",
    "SELECT count(*) FROM graph_search('{1,2,3}', limit_count => 20)",
    "SELECT count(*) FROM graph_recall('{1,2,3}')",
    "SELECT graph_is_admissible_result(provenance) FROM kept",
    "SELECT graph_can_promote(provenance, turn(50)) FROM kept",
    "SELECT count(*) FROM kept, graph_replay_retrieval(provenance, '{1,2,3}')",
    "SELECT graph_diversity(slice) FROM kept",
    "SELECT count(*) FROM kept, graph_sufficiency(slice)",
    "SELECT count(*) FROM graph_overlap({anchors}, {policy})",
    "SELECT count(*) FROM graph_influence({anchors}, {policy})",
    "SELECT graph_atlas({anchors}, {policy})",
    "SELECT graph_snapshot()",
    "SELECT graph_api_slice(json_build_object('anchor_turn_id', turn(50)))",
    "SELECT graph_api_slice_batch(json_build_object('anchor_turn_ids', ({anchors})[:20]))",
    "SELECT graph_api_policies()",
    "SELECT graph_api_health()",
    "SELECT graph_api_verify_token(json_build_object('admissibility_token', slice -> 'admissibility_token',
        'slice_id', slice -> 'slice_id', 'anchor_turn_id', turn(50), 'policy_id', slice -> 'policy_id',
        'policy_params_hash', slice -> 'policy_params_hash', 'graph_snapshot_hash', slice -> 'graph_snapshot_hash',
        'schema_version', slice -> 'schema_version')) FROM kept",
    "SELECT graph_api_verify_proof(json_build_object('slice', other, 'proof', graph_proof(other), 'public_key', \
    public_key))
        FROM kept",
    "SELECT graph_api_search_slice(json_build_object('anchor_turn_id', turn(50), 'query_embedding', '[1,2,3]'::json))",
    "SELECT graph_api_search_global('{\"query_embedding\": [1, 2, 3]}')",
    "SELECT graph_content_hash(repeat('content ', 1000))",
    "SELECT graph_message_text(json_build_object('role', 'user', 'content', repeat('content ', 1000))::text)",
    "SELECT graph_message_role('{\"role\": \"model\", \"parts\": []}')",
    "SELECT graph_normalize_text(repeat(E'content\\r\\n', 1000))",
    "SELECT count(*) FROM graph_content_audit(50)",
    "SELECT count(*) FROM graph_check()",
    "SELECT graph_turn_id('one'), graph_turn_id(2), graph_turn_id('three', 'four')",
    "SELECT count(*) FROM recorder_chunks()",
    "SELECT count(*) FROM recorder_chunks_since(0, 25)",
    "SELECT count(*) FROM recorder_event_chunks(0, 30)",
    "SELECT count(*) FROM recorder_chunk_span(0, 0, 0, 0, 1, 15)",
    "SELECT count(*) FROM kept, recorder_chunk_events(events)",
    "SELECT count(*) FROM recorder_verify_chunks('kept_chunks')",
    "SELECT count(*) FROM graph_kernel.keys, graph_kernel.proof_keys, graph_kernel.bindings",
    "SELECT graph_kernel_version(), chunking_policy_hash('default')",
];

/// Calls that end in an error.
pub const FAILING: [&str; 16] = [
    "SELECT graph_slice(turn(-1))",
    "SELECT count(*) FROM graph_slice_turns(turn(-1))",
    "SELECT count(*) FROM graph_slice_explain(turn(-1))",
    "SELECT graph_slice(turn(50), repeat('x', 3)::slice_policy)",
    "SELECT graph_slice(turn(50), repeat('[', 300)::slice_policy)",
    "SELECT graph_policy('no such policy')",
    "SELECT graph_filter_admissible('{}', array_fill(NULL::uuid, ARRAY[1000001]))",
    "SELECT graph_anchor(turn(-1))",
    "SELECT count(*) FROM graph_search_slice('{1}', turn(50))",
    "SELECT count(*) FROM graph_search('{NaN,1,2}')",
    "SELECT count(*) FROM graph_overlap(ARRAY[turn(-1)])",
    "SELECT graph_atlas(ARRAY[turn(50)], min_jaccard => 2)",
    "SELECT graph_api_slice('{}')",
    "SELECT graph_api_search_slice('[]')",
    "SELECT graph_proof('{}')",
    "SELECT count(*) FROM recorder_chunk_events('[{}]')",
];
