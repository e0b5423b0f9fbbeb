//! What is tried on each object.

/// A statement on a relation, and the right that it needs; none where it takes the owner.
pub struct Attempt {
    pub name: &'static str,
    pub right: Option<&'static str>,
    pub statement: String,
}

/// A slice export, as a SQL literal: what those functions need that do not take any JSON.
macro_rules! an_export {
    () => {
        r#"'{"anchor_turn_id":"00000000-0000-4000-8000-000000000001","turns":[{
             "id":"00000000-0000-4000-8000-000000000001","session_id":"","role":"user",
             "phase":"planning","salience":0.5,"trajectory_depth":0,"trajectory_sibling_order":0,
             "trajectory_homogeneity":0.5,"trajectory_temporal":0.5,"trajectory_complexity":1.0,
             "created_at":0,"content_hash":null}],"edges":[],"policy_id":"slice_policy_v1",
             "policy_params_hash":"02005444cae1117d","schema_version":"1.0.0",
             "slice_id":"0123456789abcdef","graph_snapshot_hash":"0123456789abcdef",
             "admissibility_token":null,"attestation":null}'"#
    };
}

/// A call of each function of the extension, ordered by signature; none where SQL cannot call it.
pub const CALLS: &[(&str, Option<&str>)] = &[
    (
        "chunking_policy_eq(chunking_policy,chunking_policy)",
        Some("SELECT chunking_policy_eq('{}', '{}')"),
    ),
    ("chunking_policy_hash(chunking_policy)", Some("SELECT chunking_policy_hash('{}')")),
    ("chunking_policy_hash32(chunking_policy)", Some("SELECT chunking_policy_hash32('{}')")),
    (
        "chunking_policy_hash64(chunking_policy,bigint)",
        Some("SELECT chunking_policy_hash64('{}', 1)"),
    ),
    ("chunking_policy_in(cstring)", Some("SELECT chunking_policy_in('default')")),
    (
        "chunking_policy_ne(chunking_policy,chunking_policy)",
        Some("SELECT chunking_policy_ne('{}', '{}')"),
    ),
    ("chunking_policy_out(chunking_policy)", Some("SELECT chunking_policy_out('{}')")),
    ("chunking_policy_recv(internal)", None),
    ("chunking_policy_send(chunking_policy)", Some("SELECT chunking_policy_send('{}')")),
    ("graph_anchor(uuid,text,real[])", Some("SELECT graph_anchor()")),
    ("graph_anchors_recent(integer,text)", Some("SELECT graph_anchors_recent()")),
    ("graph_api_health()", Some("SELECT graph_api_health()")),
    ("graph_api_policies()", Some("SELECT graph_api_policies()")),
    (
        "graph_api_register_policy(json)",
        Some("SELECT graph_api_register_policy('{\"policy\": {\"max_nodes\": 1}}')"),
    ),
    (
        "graph_api_search_global(json)",
        Some("SELECT graph_api_search_global('{\"query_embedding\": [1]}')"),
    ),
    (
        "graph_api_search_slice(json)",
        Some(
            "SELECT graph_api_search_slice('{\"query_embedding\": [1], \"anchor_turn_id\":
                                             \"00000000-0000-4000-8000-000000000001\"}')",
        ),
    ),
    (
        "graph_api_slice(json)",
        Some(
            "SELECT graph_api_slice('{\"anchor_turn_id\":
                                      \"00000000-0000-4000-8000-000000000001\"}')",
        ),
    ),
    (
        "graph_api_slice_batch(json)",
        Some(
            "SELECT graph_api_slice_batch('{\"anchor_turn_ids\":
                                            [\"00000000-0000-4000-8000-000000000001\"]}')",
        ),
    ),
    (
        "graph_api_verify_proof(json)",
        Some("SELECT graph_api_verify_proof('{\"slice\": {}, \"proof\": {}, \"public_key\": \"\"}')"),
    ),
    (
        "graph_api_verify_token(json)",
        Some(
            "SELECT graph_api_verify_token(json_build_object(
                 'admissibility_token', '', 'slice_id', '', 'anchor_turn_id', '', 'policy_id', '',
                 'policy_params_hash', '', 'graph_snapshot_hash', '', 'schema_version', ''))",
        ),
    ),
    (
        "graph_atlas(uuid[],slice_policy,text,real,integer)",
        Some("SELECT graph_atlas('{00000000-0000-4000-8000-000000000001}')"),
    ),
    ("graph_can_promote(jsonb,uuid)", Some("SELECT graph_can_promote('{}', NULL)")),
    ("graph_check()", Some("SELECT * FROM graph_check()")),
    ("graph_content_audit(bigint)", Some("SELECT * FROM graph_content_audit()")),
    ("graph_content_hash(text)", Some("SELECT graph_content_hash('x')")),
    ("graph_content_hash_trigger()", None),
    (
        "graph_diversity(json)",
        Some("SELECT graph_diversity(graph_slice('00000000-0000-4000-8000-000000000001'))"),
    ),
    (
        "graph_document_bytes(json)",
        Some(concat!("SELECT graph_document_bytes(", an_export!(), ")")),
    ),
    (
        "graph_document_json(bytea)",
        Some(concat!("SELECT graph_document_json(graph_document_bytes(", an_export!(), "))")),
    ),
    (
        "graph_export_draw(json,text)",
        Some(concat!("SELECT graph_export_draw(", an_export!(), ")")),
    ),
    (
        "graph_export_from_published(json)",
        Some(concat!("SELECT graph_export_from_published(", an_export!(), ")")),
    ),
    ("graph_filter_admissible(json,uuid[])", Some("SELECT graph_filter_admissible('{}', '{}')")),
    (
        "graph_influence(uuid[],slice_policy)",
        Some("SELECT * FROM graph_influence('{00000000-0000-4000-8000-000000000001}')"),
    ),
    ("graph_is_admissible(json,uuid)", Some("SELECT graph_is_admissible('{}', NULL)")),
    ("graph_is_admissible_result(jsonb)", Some("SELECT graph_is_admissible_result('{}')")),
    (
        "graph_keep(json)",
        Some("SELECT graph_keep(graph_slice('00000000-0000-4000-8000-000000000001'))"),
    ),
    (
        "graph_kept(text)",
        Some("SELECT graph_kept('x')"),
    ),
    (
        "graph_kernel.\"references\"(jsonb)",
        Some("SELECT count(*) FROM graph_kernel.references('{}')"),
    ),
    ("graph_kernel.add_epoch()", Some("SELECT graph_kernel.add_epoch()")),
    (
        "graph_kernel.add_policy(slice_policy,text)",
        Some("SELECT graph_kernel.add_policy('{\"max_nodes\": 1}', 'one')"),
    ),
    (
        "graph_kernel.add_word_counts(oid,integer,jsonb)",
        Some("SELECT graph_kernel.add_word_counts(1, 1, '{}')"),
    ),
    (
        "graph_kernel.advisory_xact_lock(regclass,integer)",
        Some("SELECT graph_kernel.advisory_xact_lock('memory_turns', 1)"),
    ),
    ("graph_kernel.announce_change()", None),
    (
        "graph_kernel.api_search(json,boolean)",
        Some("SELECT graph_kernel.api_search('{\"query_embedding\": [1]}', true)"),
    ),
    (
        "graph_kernel.api_summaries(text[],slice_policy,boolean)",
        Some("SELECT * FROM graph_kernel.api_summaries('{00000000-0000-4000-8000-000000000001}', 'default', false)"),
    ),
    (
        "graph_kernel.api_verify_token(json)",
        Some(
            "SELECT graph_kernel.api_verify_token(json_build_object('admissibility_token', '', 'slice_id', '', \
            'anchor_turn_id', '', 'policy_id', '', 'policy_params_hash', '', 'graph_snapshot_hash', '', \
            'schema_version', ''))",
        ),
    ),
    (
        "graph_kernel.are_owned(regclass,oid[])",
        Some("SELECT graph_kernel.are_owned('promoted', '{10}')"),
    ),
    ("graph_kernel.backfill_content_hashes(integer)", None),
    (
        "graph_kernel.bind_recorder_table(regclass,jsonb)",
        Some("SELECT graph_kernel.bind_recorder_table('recorder_events')"),
    ),
    (
        "graph_kernel.bind_recorder_table_for(regclass,jsonb,oid)",
        Some("SELECT graph_kernel.bind_recorder_table_for('recorder_events', NULL, 10)"),
    ),
    (
        "graph_kernel.bind_recorder_table_internal(regclass,jsonb,oid)",
        Some("SELECT graph_kernel.bind_recorder_table_internal('recorder_events', NULL, 10)"),
    ),
    (
        "graph_kernel.bind_store(regclass,text)",
        Some("SELECT graph_kernel.bind_store('slice_store')"),
    ),
    (
        "graph_kernel.bind_store_for(regclass,text,oid)",
        Some("SELECT graph_kernel.bind_store_for('slice_store', 'default', 10)"),
    ),
    (
        "graph_kernel.bind_store_internal(regclass,text,oid)",
        Some("SELECT graph_kernel.bind_store_internal('slice_store', 'default', 10)"),
    ),
    (
        "graph_kernel.bind_tables(regclass,regclass,jsonb,text)",
        Some("SELECT graph_kernel.bind_tables('memory_turns', 'memory_turn_edges')"),
    ),
    (
        "graph_kernel.bind_tables_for(regclass,regclass,jsonb,text,oid)",
        Some("SELECT graph_kernel.bind_tables_for('memory_turns', 'memory_turn_edges', NULL, 'default', 10)"),
    ),
    (
        "graph_kernel.bind_tables_internal(regclass,regclass,jsonb,text,oid)",
        Some("SELECT graph_kernel.bind_tables_internal('memory_turns', 'memory_turn_edges', NULL, 'default', 10)"),
    ),
    (
        "graph_kernel.bind_traces(regclass)",
        Some("SELECT graph_kernel.bind_traces('retrieval_traces')"),
    ),
    (
        "graph_kernel.bind_traces_for(regclass,oid)",
        Some("SELECT graph_kernel.bind_traces_for('retrieval_traces', 10)"),
    ),
    (
        "graph_kernel.bind_traces_internal(regclass,oid)",
        Some("SELECT graph_kernel.bind_traces_internal('retrieval_traces', 10)"),
    ),
    (
        "graph_kernel.bound_relation_in(cstring)",
        Some("SELECT graph_kernel.bound_relation_in('memory_turns')"),
    ),
    (
        "graph_kernel.bound_relation_out(graph_kernel.bound_relation)",
        Some("SELECT graph_kernel.bound_relation_out('memory_turns')"),
    ),
    ("graph_kernel.bound_relation_recv(internal)", None),
    (
        "graph_kernel.bound_relation_send(graph_kernel.bound_relation)",
        Some("SELECT graph_kernel.bound_relation_send('memory_turns')"),
    ),
    ("graph_kernel.bound_role_in(cstring)", Some("SELECT graph_kernel.bound_role_in('postgres')")),
    (
        "graph_kernel.bound_role_out(graph_kernel.bound_role)",
        Some("SELECT graph_kernel.bound_role_out('postgres')"),
    ),
    ("graph_kernel.bound_role_recv(internal)", None),
    (
        "graph_kernel.bound_role_send(graph_kernel.bound_role)",
        Some("SELECT graph_kernel.bound_role_send('postgres')"),
    ),
    ("graph_kernel.char_count(text)", Some("SELECT graph_kernel.char_count('x')")),
    (
        "graph_kernel.check_code(text,jsonb)",
        Some("SELECT count(*) FROM graph_kernel.check_code('default', '{}')"),
    ),
    (
        "graph_kernel.check_expressions(text,jsonb)",
        Some("SELECT count(*) FROM graph_kernel.check_expressions('default', '{}')"),
    ),
    ("graph_kernel.check_graph(text)", Some("SELECT * FROM graph_kernel.check_graph('default')")),
    (
        "graph_kernel.check_kept(text)",
        Some("SELECT count(*) FROM graph_kernel.check_kept('default')"),
    ),
    (
        "graph_kernel.check_policy(slice_policy,text)",
        Some("SELECT graph_kernel.check_policy('{\"max_nodes\": 1}', 'one')"),
    ),
    (
        "graph_kernel.check_promotion(text,jsonb)",
        Some("SELECT count(*) FROM graph_kernel.check_promotion('default', '{}')"),
    ),
    (
        "graph_kernel.check_request(json,text[],text[])",
        Some("SELECT graph_kernel.check_request('{}', '{}', '{}')"),
    ),
    (
        "graph_kernel.check_rows(text,jsonb)",
        Some("SELECT count(*) FROM graph_kernel.check_rows('default', '{}')"),
    ),
    (
        "graph_kernel.check_store(oid,text,oid)",
        Some("SELECT graph_kernel.check_store('slice_store'::regclass::oid, 'default', 10)"),
    ),
    (
        "graph_kernel.check_tables(jsonb)",
        Some("SELECT count(*) FROM graph_kernel.check_tables('{}')"),
    ),
    (
        "graph_kernel.check_trace_table(oid,oid)",
        Some("SELECT graph_kernel.check_trace_table('retrieval_traces'::regclass::oid, 10)"),
    ),
    ("graph_kernel.chosen_graph()", Some("SELECT graph_kernel.chosen_graph()")),
    (
        "graph_kernel.chunking_policy_of(jsonb)",
        Some("SELECT graph_kernel.chunking_policy_of('{}')"),
    ),
    ("graph_kernel.content_hash(text)", Some("SELECT graph_kernel.content_hash('x')")),
    (
        "graph_kernel.content_hash_or_null(text)",
        Some("SELECT graph_kernel.content_hash_or_null('x')"),
    ),
    ("graph_kernel.content_hash_trigger_internal()", None),
    (
        "graph_kernel.content_page(text,oid,uuid,integer)",
        Some("SELECT graph_kernel.content_page('default', 'memory_turns'::regclass, NULL, 10)"),
    ),
    (
        "graph_kernel.count_found(text,text)",
        Some("SELECT graph_kernel.count_found('default', 'turns')"),
    ),
    (
        "graph_kernel.count_references(oid,text)",
        Some("SELECT count(*) FROM graph_kernel.count_references('promoted'::regclass::oid, 'slice')"),
    ),
    (
        "graph_kernel.create_recorder_table(name)",
        Some("SELECT graph_kernel.create_recorder_table('open')"),
    ),
    (
        "graph_kernel.create_slice_store(name)",
        Some("SELECT graph_kernel.create_slice_store('open')"),
    ),
    ("graph_kernel.create_tables(name,jsonb)", Some("SELECT graph_kernel.create_tables('open')")),
    (
        "graph_kernel.create_tables_internal(name,jsonb)",
        Some("SELECT graph_kernel.create_tables_internal('open', '{}')"),
    ),
    (
        "graph_kernel.create_trace_table(name)",
        Some("SELECT graph_kernel.create_trace_table('open')"),
    ),
    (
        "graph_kernel.create_trace_table_internal(name)",
        Some("SELECT graph_kernel.create_trace_table_internal('open')"),
    ),
    ("graph_kernel.describe_graph(text)", Some("SELECT graph_kernel.describe_graph('default')")),
    (
        "graph_kernel.describe_recorder_table(oid,jsonb,oid)",
        Some("SELECT graph_kernel.describe_recorder_table('recorder_events'::regclass::oid, NULL, 10)"),
    ),
    (
        "graph_kernel.describe_store(text)",
        Some("SELECT graph_kernel.describe_store('default')"),
    ),
    (
        "graph_kernel.describe_tables(oid,oid,jsonb,text,text,oid)",
        Some(
            "SELECT graph_kernel.describe_tables('memory_turns'::regclass::oid,
                                                 'memory_turn_edges'::regclass::oid, NULL, 'public', 'default', 10)",
        ),
    ),
    ("graph_kernel.epoch_times()", Some("SELECT * FROM graph_kernel.epoch_times()")),
    (
        "graph_kernel.evaluate(text,text)",
        Some("SELECT graph_kernel.evaluate('default', 'turns.id')"),
    ),
    (
        "graph_kernel.free_trigger_name(regclass,oid)",
        Some("SELECT graph_kernel.free_trigger_name('memory_turns', 0)"),
    ),
    (
        "graph_kernel.function_name(oid)",
        Some("SELECT graph_kernel.function_name('pg_catalog.now()'::regprocedure)"),
    ),
    ("graph_kernel.guard_table()", None),
    (
        "graph_kernel.hidden_rows(jsonb)",
        Some("SELECT graph_kernel.hidden_rows('{}')"),
    ),
    (
        "graph_kernel.index_command(regclass,boolean,text[],text[],boolean)",
        Some("SELECT graph_kernel.index_command('memory_turns', true, '{id}', '{}', true)"),
    ),
    ("graph_kernel.is_applying()", Some("SELECT graph_kernel.is_applying()")),
    ("graph_kernel.is_kid(text)", Some("SELECT graph_kernel.is_kid('1-0123456789abcdef')")),
    ("graph_kernel.is_replaceable(jsonb)", Some("SELECT graph_kernel.is_replaceable('{}')")),
    ("graph_kernel.is_text(text)", Some("SELECT graph_kernel.is_text('x')")),
    ("graph_kernel.json_text(json)", Some("SELECT graph_kernel.json_text('1'::json)")),
    ("graph_kernel.json_text(jsonb)", Some("SELECT graph_kernel.json_text('1'::jsonb)")),
    (
        "graph_kernel.json_to_look_through(jsonb)",
        Some("SELECT graph_kernel.json_to_look_through('1')"),
    ),
    (
        "graph_kernel.kept_by_others()",
        Some("SELECT graph_kernel.kept_by_others()"),
    ),
    (
        "graph_kernel.list_edges(uuid[],integer)",
        Some("SELECT * FROM graph_kernel.list_edges('{00000000-0000-4000-8000-000000000001}')"),
    ),
    (
        "graph_kernel.list_kept()",
        Some("SELECT count(*) FROM graph_kernel.list_kept()"),
    ),
    ("graph_kernel.list_keys()", Some("SELECT * FROM graph_kernel.list_keys()")),
    ("graph_kernel.list_proof_keys()", Some("SELECT * FROM graph_kernel.list_proof_keys()")),
    (
        "graph_kernel.list_references(text,jsonb,jsonb)",
        Some("SELECT count(*) FROM graph_kernel.list_references('default', '{}', '[]')"),
    ),
    (
        "graph_kernel.list_sessions(integer,integer,integer,text)",
        Some("SELECT * FROM graph_kernel.list_sessions()"),
    ),
    ("graph_kernel.list_statistics()", Some("SELECT * FROM graph_kernel.list_statistics()")),
    (
        "graph_kernel.list_turns(text,uuid[],text,boolean,integer,integer,integer)",
        Some("SELECT * FROM graph_kernel.list_turns()"),
    ),
    (
        "graph_kernel.make_recorder_table(name)",
        Some("SELECT graph_kernel.make_recorder_table('open')"),
    ),
    (
        "graph_kernel.make_slice_store(name)",
        Some("SELECT graph_kernel.make_slice_store('open')"),
    ),
    ("graph_kernel.make_trace_table(name)", Some("SELECT graph_kernel.make_trace_table('open')")),
    (
        "graph_kernel.mapping_commands(text,jsonb)",
        Some("SELECT count(*) FROM graph_kernel.mapping_commands('default', '{}')"),
    ),
    (
        "graph_kernel.may_read_rows(regclass,oid[])",
        Some("SELECT graph_kernel.may_read_rows('promoted', '{10}')"),
    ),
    (
        "graph_kernel.may_share_rows(oid,oid)",
        Some("SELECT graph_kernel.may_share_rows(1, 2)"),
    ),
    (
        "graph_kernel.missing_grants(text)",
        Some("SELECT graph_kernel.missing_grants('default')"),
    ),
    (
        "graph_kernel.missing_references(text,oid,text)",
        Some("SELECT graph_kernel.missing_references('default', 'promoted'::regclass::oid, 'slice')"),
    ),
    ("graph_kernel.name_hash(text)", Some("SELECT graph_kernel.name_hash('x')")),
    ("graph_kernel.name_of(bytea)", Some("SELECT graph_kernel.name_of('x')")),
    (
        "graph_kernel.own_name(text)",
        Some("SELECT graph_kernel.own_name('graph_check')"),
    ),
    (
        "graph_kernel.policy_fault(slice_policy,text)",
        Some("SELECT graph_kernel.policy_fault('{\"max_nodes\": 1}', 'one')"),
    ),
    (
        "graph_kernel.policy_internal(text)",
        Some("SELECT graph_kernel.policy_internal('default')"),
    ),
    ("graph_kernel.policy_not_found(text)", None),
    ("graph_kernel.policy_ref(slice_policy)", Some("SELECT graph_kernel.policy_ref('default')")),
    (
        "graph_kernel.policy_register_internal(slice_policy,text)",
        Some("SELECT graph_kernel.policy_register_internal('{\"max_nodes\": 1}', 'one')"),
    ),
    ("graph_kernel.presets()", Some("SELECT * FROM graph_kernel.presets()")),
    (
        "graph_kernel.promoting_tables(text)",
        Some("SELECT count(*) FROM graph_kernel.promoting_tables('default')"),
    ),
    (
        "graph_kernel.promoting_triggers()",
        Some("SELECT * FROM graph_kernel.promoting_triggers()"),
    ),
    ("graph_kernel.provenance_reason(jsonb)", Some("SELECT graph_kernel.provenance_reason('{}')")),
    (
        "graph_kernel.raising_row(text,text)",
        Some("SELECT * FROM graph_kernel.raising_row('default', 'turns.id')"),
    ),
    (
        "graph_kernel.recorder_chunks(chunking_policy,bigint,bigint,bigint,bigint,bigint,boolean)",
        Some(
            "SELECT * FROM graph_kernel.recorder_chunks('default', NULL, NULL, NULL, NULL, NULL, false)",
        ),
    ),
    // It needs a column of words.
    (
        "graph_kernel.refresh_batch(bigint,bigint)",
        Some("SELECT * FROM graph_kernel.refresh_batch(0, 1)"),
    ),
    ("graph_kernel.refresh_kept(bigint,interval)", None),
    ("graph_kernel.refresh_words(text)", None),
    (
        "graph_kernel.register_policy(slice_policy,text)",
        Some("SELECT * FROM graph_kernel.register_policy('{\"max_nodes\": 1}', 'one')"),
    ),
    (
        "graph_kernel.registry_fingerprint(text[],text[])",
        Some("SELECT graph_kernel.registry_fingerprint('{}', '{}')"),
    ),
    (
        "graph_kernel.rehash_free_turns(text,oid,uuid[])",
        Some("SELECT graph_kernel.rehash_free_turns('default', 'memory_turns'::regclass, '{}')"),
    ),
    (
        "graph_kernel.rehash_turn(text,oid,uuid)",
        Some("SELECT graph_kernel.rehash_turn('default', 'memory_turns'::regclass, gen_random_uuid())"),
    ),
    (
        "graph_kernel.requested_anchors(json)",
        Some("SELECT graph_kernel.requested_anchors('{\"anchor_turn_ids\": []}')"),
    ),
    ("graph_kernel.requested_policy(json)", Some("SELECT graph_kernel.requested_policy(NULL)")),
    ("graph_kernel.requested_policy_not_found(json)", None),
    ("graph_kernel.require_library()", Some("SELECT graph_kernel.require_library()")),
    (
        "graph_kernel.require_role_name(text)",
        Some("SELECT graph_kernel.require_role_name('x')"),
    ),
    ("graph_kernel.require_text(text)", Some("SELECT graph_kernel.require_text('x')")),
    ("graph_kernel.reset_statistics()", Some("SELECT graph_kernel.reset_statistics()")),
    ("graph_kernel.revoke_key(text)", Some("SELECT graph_kernel.revoke_key('7-0123456789abcdef')")),
    (
        "graph_kernel.revoke_key_for(text)",
        Some("SELECT graph_kernel.revoke_key_for('7-0123456789abcdef')"),
    ),
    (
        "graph_kernel.revoke_key_internal(text)",
        Some("SELECT graph_kernel.revoke_key_internal('7-0123456789abcdef')"),
    ),
    ("graph_kernel.roles_advice(text)", Some("SELECT graph_kernel.roles_advice('default')")),
    ("graph_kernel.rotate_key(boolean)", Some("SELECT graph_kernel.rotate_key(true)")),
    (
        "graph_kernel.rotate_key_for(boolean)",
        Some("SELECT graph_kernel.rotate_key_for(true)"),
    ),
    (
        "graph_kernel.rotate_key_internal(boolean)",
        Some("SELECT graph_kernel.rotate_key_internal(true)"),
    ),
    (
        "graph_kernel.row_checks(text,jsonb)",
        Some("SELECT count(*) FROM graph_kernel.row_checks('default', '{}')"),
    ),
    (
        "graph_kernel.search_body(real[],text,integer,jsonb)",
        Some("SELECT graph_kernel.search_body('{1}', NULL, 1, '{}')"),
    ),
    (
        "graph_kernel.search_export_body(real[],json,integer,real,real,text,jsonb)",
        Some(
            "SELECT graph_kernel.search_export_body('{1}', graph_slice('00000000-0000-4000-8000-000000000001'),
                                                    1, NULL, NULL, NULL, '{}')",
        ),
    ),
    (
        "graph_kernel.search_slice_body(real[],uuid,slice_policy,integer,real,real,text,jsonb)",
        Some(
            "SELECT graph_kernel.search_slice_body('{1}', '00000000-0000-4000-8000-000000000001',
                                                   'default', 1, NULL, NULL, NULL, '{}')",
        ),
    ),
    ("graph_kernel.secret_in(cstring)", Some("SELECT graph_kernel.secret_in(NULL)")),
    (
        "graph_kernel.secret_out(graph_kernel.secret)",
        Some("SELECT graph_kernel.secret_out(NULL::graph_kernel.secret)"),
    ),
    ("graph_kernel.secret_recv(internal)", None),
    (
        "graph_kernel.secret_send(graph_kernel.secret)",
        Some("SELECT graph_kernel.secret_send(NULL::graph_kernel.secret)"),
    ),
    ("graph_kernel.set_binder()", None),
    ("graph_kernel.slice_policy_of(jsonb)", Some("SELECT graph_kernel.slice_policy_of('{}')")),
    (
        "graph_kernel.slice_summaries(text[],slice_policy)",
        Some(
            "SELECT * FROM graph_kernel.slice_summaries(
                 '{00000000-0000-4000-8000-000000000001}', 'default')",
        ),
    ),
    ("graph_kernel.slice_support(internal)", None),
    (
        "graph_kernel.store_word_totals(oid,integer,bigint,bigint)",
        Some("SELECT graph_kernel.store_word_totals(1, 1, 1, 1)"),
    ),
    (
        "graph_kernel.tables_of(jsonb)",
        Some("SELECT graph_kernel.tables_of('{}')"),
    ),
    ("graph_kernel.text_prefix(text,integer)", Some("SELECT graph_kernel.text_prefix('x', 1)")),
    (
        "graph_kernel.times_command(jsonb)",
        Some("SELECT graph_kernel.times_command('{}')"),
    ),
    ("graph_kernel.trusted_owners(text)", Some("SELECT graph_kernel.trusted_owners('default')")),
    ("graph_kernel.turns_in_cycles(text)", Some("SELECT graph_kernel.turns_in_cycles('default')")),
    (
        "graph_kernel.turns_index_command(regclass)",
        Some("SELECT graph_kernel.turns_index_command('slice_store')"),
    ),
    ("graph_kernel.unbind_recorder_table()", Some("SELECT graph_kernel.unbind_recorder_table()")),
    (
        "graph_kernel.unbind_store(text)",
        Some("SELECT graph_kernel.unbind_store()"),
    ),
    ("graph_kernel.unbind_tables(text)", Some("SELECT graph_kernel.unbind_tables()")),
    (
        "graph_kernel.unbind_tables_for(text)",
        Some("SELECT graph_kernel.unbind_tables_for('default')"),
    ),
    (
        "graph_kernel.unbind_tables_internal(text)",
        Some("SELECT graph_kernel.unbind_tables_internal('default')"),
    ),
    (
        "graph_kernel.unfit_documents(text)",
        Some("SELECT count(*) FROM graph_kernel.unfit_documents('default')"),
    ),
    (
        "graph_kernel.verify_chunks(regclass,chunking_policy,boolean)",
        Some("SELECT * FROM graph_kernel.verify_chunks('kept_chunks', 'default', false)"),
    ),
    (
        "graph_kernel.verify_proof(json,json,text)",
        Some("SELECT * FROM graph_kernel.verify_proof('{}', '{}', '')"),
    ),
    (
        "graph_kernel.verify_token(text,text,uuid,text,text,text,text)",
        Some("SELECT graph_kernel.verify_token('', '', NULL, '', '', '', '')"),
    ),
    (
        "graph_kernel.wanted_indexes(jsonb)",
        Some("SELECT count(*) FROM graph_kernel.wanted_indexes('{}')"),
    ),
    ("graph_kernel.whole_command(text)", Some("SELECT graph_kernel.whole_command('x')")),
    (
        "graph_kernel.write_trace(jsonb)",
        Some("SELECT graph_kernel.write_trace(provenance) FROM graph_search('{1}')"),
    ),
    ("graph_kernel_version()", Some("SELECT graph_kernel_version()")),
    ("graph_message_role(jsonb)", Some("SELECT graph_message_role('null'::jsonb)")),
    ("graph_message_role(text)", Some("SELECT graph_message_role('null')")),
    ("graph_message_text(jsonb)", Some("SELECT graph_message_text('null'::jsonb)")),
    ("graph_message_text(text)", Some("SELECT graph_message_text('x')")),
    (
        "graph_messages(uuid,slice_policy)",
        Some("SELECT * FROM graph_messages('00000000-0000-4000-8000-000000000001')"),
    ),
    (
        "graph_messages_json(json,text,jsonb)",
        Some(
            "SELECT graph_messages_json(graph_messages_record('00000000-0000-4000-8000-000000000001'))",
        ),
    ),
    (
        "graph_messages_record(uuid,slice_policy,text)",
        Some("SELECT graph_messages_record('00000000-0000-4000-8000-000000000001')"),
    ),
    (
        "graph_messages_show(json,text[],jsonb[])",
        Some(
            "SELECT * FROM graph_messages_show(graph_messages_record('00000000-0000-4000-8000-000000000001'))",
        ),
    ),
    ("graph_normalize_text(text)", Some("SELECT graph_normalize_text('x')")),
    (
        "graph_overlap(uuid[],slice_policy,real)",
        Some("SELECT * FROM graph_overlap('{00000000-0000-4000-8000-000000000001}')"),
    ),
    ("graph_policy(text)", Some("SELECT graph_policy('default')")),
    ("graph_policy_hash(slice_policy)", Some("SELECT graph_policy_hash('default')")),
    (
        "graph_policy_register(slice_policy,text)",
        Some("SELECT * FROM graph_policy_register('{\"max_nodes\": 1}', 'one')"),
    ),
    ("graph_policy_registry_fingerprint()", Some("SELECT graph_policy_registry_fingerprint()")),
    (
        "graph_proof(json)",
        Some("SELECT graph_proof(graph_slice('00000000-0000-4000-8000-000000000001'))"),
    ),
    (
        "graph_recall(real[],text,slice_policy,uuid,jsonb)",
        Some("SELECT * FROM graph_recall('{1}')"),
    ),
    ("graph_replay(json,slice_policy)", Some("SELECT * FROM graph_replay('{}')")),
    (
        "graph_replay_retrieval(jsonb,real[])",
        Some("SELECT * FROM graph_replay_retrieval('{}', '{1}')"),
    ),
    ("graph_require_admissible()", None),
    ("graph_require_admissible_result()", None),
    (
        "graph_search(real[],text,integer,jsonb)",
        Some("SELECT * FROM graph_search('{1}')"),
    ),
    (
        "graph_search_export(real[],json,integer,real,real,text,jsonb)",
        Some("SELECT * FROM graph_search_export('{1}', graph_slice('00000000-0000-4000-8000-000000000001'))"),
    ),
    (
        "graph_search_slice(real[],uuid,slice_policy,integer,real,real,text,jsonb)",
        Some("SELECT * FROM graph_search_slice('{1}', '00000000-0000-4000-8000-000000000001')"),
    ),
    (
        "graph_slice(uuid,slice_policy)",
        Some("SELECT graph_slice('00000000-0000-4000-8000-000000000001')"),
    ),
    (
        "graph_slice_diff(json,json)",
        Some(concat!("SELECT * FROM graph_slice_diff(", an_export!(), ", ", an_export!(), ")")),
    ),
    (
        "graph_slice_draw(uuid,slice_policy,text,jsonb)",
        Some("SELECT graph_slice_draw('00000000-0000-4000-8000-000000000001')"),
    ),
    (
        "graph_slice_edges(uuid,slice_policy)",
        Some("SELECT * FROM graph_slice_edges('00000000-0000-4000-8000-000000000001')"),
    ),
    (
        "graph_slice_explain(uuid,slice_policy)",
        Some("SELECT * FROM graph_slice_explain('00000000-0000-4000-8000-000000000001')"),
    ),
    (
        "graph_slice_stats(uuid,slice_policy)",
        Some("SELECT * FROM graph_slice_stats('00000000-0000-4000-8000-000000000001')"),
    ),
    (
        "graph_slice_turns(uuid,slice_policy)",
        Some("SELECT * FROM graph_slice_turns('00000000-0000-4000-8000-000000000001')"),
    ),
    (
        "graph_slices(uuid[],slice_policy)",
        Some("SELECT * FROM graph_slices('{00000000-0000-4000-8000-000000000001}')"),
    ),
    ("graph_snapshot()", Some("SELECT graph_snapshot()")),
    (
        "graph_sufficiency(json,jsonb)",
        Some(
            "SELECT * FROM graph_sufficiency(graph_slice('00000000-0000-4000-8000-000000000001'))",
        ),
    ),
    ("graph_trace(jsonb)", Some("SELECT graph_trace(provenance) FROM graph_search('{1}')")),
    ("graph_turn_id(bigint)", Some("SELECT graph_turn_id(1)")),
    ("graph_turn_id(text)", Some("SELECT graph_turn_id('a')")),
    ("graph_turn_id(text[])", Some("SELECT graph_turn_id('a', 'b')")),
    ("graph_verify(json)", Some("SELECT * FROM graph_verify('{}')")),
    ("graph_verify_explain(json)", Some("SELECT * FROM graph_verify_explain('{}')")),
    (
        "graph_verify_proof(json,json,text)",
        Some("SELECT * FROM graph_verify_proof('{}', '{}', '')"),
    ),
    (
        "graph_verify_token(text,text,uuid,text,text,text,text)",
        Some("SELECT graph_verify_token('', '', NULL, '', '', '', '')"),
    ),
    (
        "graph_why(uuid,uuid,slice_policy)",
        Some(
            "SELECT * FROM graph_why('00000000-0000-4000-8000-000000000001',
                                     '00000000-0000-4000-8000-000000000001')",
        ),
    ),
    (
        "recorder_chunk_events(jsonb,chunking_policy)",
        Some("SELECT * FROM recorder_chunk_events('[]')"),
    ),
    (
        "recorder_chunk_span(bigint,bigint,integer,bigint,bigint,integer)",
        Some("SELECT * FROM recorder_chunk_span(0, 0, 0, 0, 0, 5)"),
    ),
    (
        "recorder_chunks(chunking_policy,bigint,bigint,bigint,bigint,bigint,boolean)",
        Some("SELECT * FROM recorder_chunks()"),
    ),
    (
        "recorder_chunks_since(bigint,bigint,chunking_policy)",
        Some("SELECT * FROM recorder_chunks_since(0, 0)"),
    ),
    (
        "recorder_event_chunks(bigint,bigint,chunking_policy)",
        Some("SELECT * FROM recorder_event_chunks(0, 0)"),
    ),
    (
        "recorder_verify_chunks(regclass,chunking_policy,boolean)",
        Some("SELECT * FROM recorder_verify_chunks('kept_chunks')"),
    ),
    ("slice_policy_eq(slice_policy,slice_policy)", Some("SELECT slice_policy_eq('{}', '{}')")),
    ("slice_policy_hash(slice_policy)", Some("SELECT slice_policy_hash('{}')")),
    (
        "slice_policy_hash_extended(slice_policy,bigint)",
        Some("SELECT slice_policy_hash_extended('{}', 1)"),
    ),
    ("slice_policy_in(cstring)", Some("SELECT slice_policy_in('default')")),
    ("slice_policy_ne(slice_policy,slice_policy)", Some("SELECT slice_policy_ne('{}', '{}')")),
    ("slice_policy_out(slice_policy)", Some("SELECT slice_policy_out('{}')")),
    ("slice_policy_recv(internal)", None),
    ("slice_policy_send(slice_policy)", Some("SELECT slice_policy_send('{}')")),
];

pub fn calls_of(function: &str) -> Option<&'static str> {
    let found = CALLS.iter().find(|(name, _)| *name == function);
    found.unwrap_or_else(|| panic!("{function} is new: say how to call it")).1
}

/// What is tried on a relation.
pub fn on_relations(relation: &str) -> Vec<Attempt> {
    let select = Attempt {
        name: "select",
        right: Some("SELECT"),
        statement: format!("SELECT * FROM {relation}"),
    };
    let owner_only = |name, statement: &str| Attempt {
        name,
        right: None,
        statement: statement.replace('@', relation),
    };
    let (insert, update) = match relation {
        "graph_kernel.binding" => (
            "(name, is_current, turns, edges, resolved, bound_by)
             VALUES ('other', true, 'memory_turns', 'memory_turn_edges', '{}', 'x') ON CONFLICT DO NOTHING",
            "graph = gen_random_uuid()",
        ),
        "graph_kernel.recorder_binding" => {
            ("(events) VALUES ('recorder_events') ON CONFLICT DO NOTHING", "columns = '{}'")
        }
        "graph_kernel.policies" => ("(policy, registered_by) VALUES ('{}', 'x')", "name = 'x'"),
        "graph_kernel.trace_binding" => (
            "(traces) VALUES ('retrieval_traces') ON CONFLICT DO NOTHING",
            "traces = 'memory_turns'",
        ),
        "graph_kernel.store_binding" => (
            "(name, store) VALUES ('default', 'slice_store') ON CONFLICT DO NOTHING",
            "store = 'memory_turns'",
        ),
        "graph_kernel.revoked_keys" => ("(kid) VALUES ('7-0123456789abcdef')", "kid = 'x'"),
        "graph_kernel.root_keys" => ("VALUES (9, NULL, now())", "root = NULL"),
        "graph_kernel.bindings"
        | "graph_kernel.keys"
        | "graph_kernel.proof_keys"
        | "graph_kernel.kept"
        | "graph_kernel.known_policies"
        | "graph_policies" => {
            return vec![select, owner_only("alter", "ALTER VIEW @ RENAME TO mine")];
        }
        // Indexes and what else cannot be written to.
        _ => return Vec::new(),
    };
    let writing = |name, right, statement: String| Attempt { name, right: Some(right), statement };
    vec![
        select,
        writing("insert", "INSERT", format!("INSERT INTO {relation} {insert}")),
        writing("update", "UPDATE", format!("UPDATE {relation} SET {update}")),
        writing("delete", "DELETE", format!("DELETE FROM {relation}")),
        writing("truncate", "TRUNCATE", format!("TRUNCATE {relation}")),
        writing(
            "trigger",
            "TRIGGER",
            format!(
                "CREATE TRIGGER mine BEFORE INSERT ON {relation} FOR EACH ROW
                     EXECUTE FUNCTION suppress_redundant_updates_trigger()"
            ),
        ),
        owner_only("rule", "CREATE RULE mine AS ON INSERT TO @ DO INSTEAD NOTHING"),
        owner_only("policy", "CREATE POLICY mine ON @"),
        owner_only("alter", "ALTER TABLE @ NO FORCE ROW LEVEL SECURITY"),
    ]
}
