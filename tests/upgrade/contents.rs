//! What a database holds whose owner has used the extension for a while.

use postgres::Client;

use crate::common::export::without_claims;
use crate::graph::{create_graph, slice, text};

/// Roles, for the whole cluster.
pub const ROLES: &str = "CREATE ROLE app LOGIN; CREATE ROLE auditor LOGIN";

/// Tables, bindings and objects of users over functions and types of the extension, once it is created.
pub fn make_objects(client: &mut Client) {
    create_graph(client);
    client
        .batch_execute(
            r#"
            ALTER TABLE public.memory_turns ADD embedding real[];
            UPDATE public.memory_turns SET embedding = ARRAY[salience_score, 1];
            SELECT graph_kernel.bind_tables('public.memory_turns', 'public.memory_turn_edges');

            CREATE TABLE public.notes (id bigint PRIMARY KEY, reply_to bigint, body text);
            CREATE UNIQUE INDEX notes_turn ON public.notes (graph_turn_id(id));
            CREATE INDEX notes_parent ON public.notes (graph_turn_id(reply_to), graph_turn_id(id));
            INSERT INTO public.notes SELECT n, nullif(n / 2, 0), 'note ' || n FROM generate_series(1, 9) AS n;
            SELECT graph_kernel.bind_tables('public.notes', columns => '{"turns": {
                "id": {"expression": "graph_turn_id(id)"}, "content_text": "body",
                "parents": [{"parent": {"expression": "graph_turn_id(reply_to)"}, "edge_type": "reply"}]}}',
                name => 'notes');

            SELECT graph_policy_register('{"max_nodes": 4}', 'four');
            SELECT graph_kernel.create_trace_table('public');

            CREATE TABLE public.kept (id integer PRIMARY KEY, slice json NOT NULL, provenance jsonb,
                                      proof json, public_key text);
            CREATE TABLE public.chats (name text PRIMARY KEY, context slice_policy NOT NULL DEFAULT 'focused',
                                       chunks chunking_policy);
            CREATE VIEW public.near AS
                SELECT c.name, s.turn_id, s.distance FROM public.chats AS c,
                       graph_slice_turns('00000000-0000-4000-8000-000000000003', c.context) AS s;
            CREATE VIEW public.keys_now AS SELECT kid, state FROM graph_kernel.keys;
            CREATE FUNCTION public.context(anchor uuid) RETURNS json LANGUAGE sql STABLE
                BEGIN ATOMIC SELECT graph_slice(anchor, 'focused'); END;
            CREATE TABLE public.atoms (id integer PRIMARY KEY, source_slice json NOT NULL, turns uuid[] NOT NULL);
            CREATE CONSTRAINT TRIGGER admissible AFTER INSERT OR UPDATE ON public.atoms
                NOT DEFERRABLE FOR EACH ROW EXECUTE FUNCTION graph_require_admissible('source_slice', 'turns');

            GRANT EXECUTE ON FUNCTION graph_kernel.bind_tables TO app;
            GRANT SELECT ON graph_kernel.keys TO auditor;
            REVOKE EXECUTE ON FUNCTION graph_slice FROM PUBLIC;
            GRANT EXECUTE ON FUNCTION graph_slice TO app;
            "#,
        )
        .unwrap();
}

/// Keeps what the extension has attested: under an older key and under the active one.
pub fn keep_documents(client: &mut Client) {
    client
        .batch_execute(
            r#"
            INSERT INTO public.chats VALUES ('all', DEFAULT, '{}'), ('four', graph_policy('four'), NULL);
            INSERT INTO public.kept SELECT 1, graph_slice('00000000-0000-4000-8000-000000000003');
            COMMIT; SELECT graph_kernel.rotate_key(); COMMIT;
            INSERT INTO public.kept SELECT 2, graph_slice('00000000-0000-4000-8000-000000000004', graph_policy('four'));
            INSERT INTO public.kept SELECT 3, graph_slice('00000000-0000-4000-8000-000000000002'), s.provenance
              FROM graph_search_slice(ARRAY[0.5, 1]::real[], '00000000-0000-4000-8000-000000000002') AS s LIMIT 1;
            SET graph_kernel.graph = 'notes';
            INSERT INTO public.kept SELECT 4, graph_slice(graph_turn_id(5));
            RESET graph_kernel.graph;
            UPDATE public.kept SET proof = graph_proof(slice) WHERE id < 4;
            UPDATE public.kept SET public_key = k.public_key FROM graph_kernel.proof_keys AS k
             WHERE k.kid = proof #>> '{signatures,0,keyid}';
            SELECT graph_trace(provenance) FROM public.kept WHERE id = 3;
            INSERT INTO public.atoms SELECT 1, slice, ARRAY['00000000-0000-4000-8000-000000000003']::uuid[]
              FROM public.kept WHERE id = 1;
            "#,
        )
        .unwrap();
}

/// What all of it says; the same before and after, in every version.
pub fn answers(client: &mut Client) -> Vec<String> {
    [stored(client), attested(client)].concat()
}

/// That it says what it said.
pub fn assert_same(answers: &[String], before: &[String]) {
    assert_eq!(answers.len(), before.len());
    for (answer, before) in answers.iter().zip(before) {
        assert_eq!(answer, before);
    }
}

/// What it says whatever the keys are.
pub fn stored(client: &mut Client) -> Vec<String> {
    let mut answers = Vec::new();
    for statement in [
        "SELECT string_agg(md5(slice::text || coalesce(proof::text, '') || coalesce(provenance::text, '')), ' ' \
        ORDER BY id)
           FROM public.kept",
        "SELECT string_agg(format('%s %s %s', name, turns, columns), ' ' ORDER BY name) FROM graph_kernel.bindings",
        "SELECT string_agg(format('%s %s %s', name, policy_id, params_hash), ' ' ORDER BY name, params_hash)
           FROM graph_policies",
        "SELECT string_agg(format('%s %s %s', name, turn_id, distance), ' ' ORDER BY name, turn_id) FROM public.near",
        "SELECT string_agg(format('%s %s %s', name, context, chunks), ' ' ORDER BY name) FROM public.chats",
        "SELECT count(*)::text FROM public.retrieval_traces WHERE is_admissible",
        "SELECT string_agg(format('%s %s', id, content_hash), ' ' ORDER BY id) FROM public.memory_turns",
        "SELECT count(*)::text FROM public.notes WHERE graph_turn_id(id) = graph_turn_id(7)",
        "SELECT string_agg(format('%s %s', check_name, ok), ' ' ORDER BY check_name) FROM graph_check()",
    ] {
        answers.push(text(client, statement));
    }
    answers.push(without_claims(&slice(client)).to_owned());
    answers.push(without_claims(&slice_of_notes(client)).to_owned());
    answers
}

/// What it says with the same keys.
pub fn attested(client: &mut Client) -> Vec<String> {
    let mut answers = vec![slice(client), slice_of_notes(client)];
    answers.extend(verdicts(client));
    let keys =
        "SELECT string_agg(format('%s %s', kid, state), ' ' ORDER BY kid) FROM public.keys_now";
    answers.push(text(client, keys));
    answers
}

/// What it says of the documents that were kept: first of exports, then of proofs, of a search, of exports made again.
pub fn verdicts(client: &mut Client) -> Vec<String> {
    [
        "SELECT string_agg(v.reason, ' ' ORDER BY id) FROM public.kept, graph_verify(slice) AS v WHERE id < 4",
        "SELECT string_agg(v.reason, ' ' ORDER BY id)
           FROM public.kept, graph_verify_proof(slice, proof, public_key) AS v WHERE id < 4",
        "SELECT graph_is_admissible_result(provenance)::text FROM public.kept WHERE id = 3",
        "SELECT string_agg(r::text, ' ' ORDER BY id, r::text) FROM public.kept, graph_replay(slice) AS r WHERE id < 4",
    ]
    .map(|statement| text(client, statement))
    .to_vec()
}

fn slice_of_notes(client: &mut Client) -> String {
    client.batch_execute("SET graph_kernel.graph = 'notes'").unwrap();
    let slice = text(client, "SELECT graph_slice(graph_turn_id(5))::text");
    client.batch_execute("RESET graph_kernel.graph").unwrap();
    slice
}
