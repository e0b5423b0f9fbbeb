-- Runs last: the properties that pgrx does not write. Fixed search_path, costs, estimates, comments, rights.

ALTER FUNCTION graph_slice(uuid, slice_policy)
    SET search_path = pg_catalog, pg_temp COST 10000;
ALTER FUNCTION graph_slice_turns(uuid, slice_policy)
    SET search_path = pg_catalog, pg_temp COST 10000 ROWS 256 SUPPORT graph_kernel.slice_support;
ALTER FUNCTION graph_slice_edges(uuid, slice_policy)
    SET search_path = pg_catalog, pg_temp COST 10000 ROWS 256 SUPPORT graph_kernel.slice_support;
ALTER FUNCTION graph_slices(uuid[], slice_policy)
    SET search_path = pg_catalog, pg_temp COST 100000 ROWS 10;
ALTER FUNCTION graph_verify(json) SET search_path = pg_catalog, pg_temp COST 2000 ROWS 1;
ALTER FUNCTION graph_verify_explain(json) SET search_path = pg_catalog, pg_temp COST 2000 ROWS 15;
ALTER FUNCTION graph_verify_token(text, text, uuid, text, text, text, text)
    SET search_path = pg_catalog, pg_temp COST 100;
ALTER FUNCTION graph_proof(json) SET search_path = pg_catalog, pg_temp COST 3000;
ALTER FUNCTION graph_verify_proof(json, json, text) SET search_path = pg_catalog, pg_temp COST 3000 ROWS 1;
ALTER FUNCTION graph_is_admissible(json, uuid) SET search_path = pg_catalog, pg_temp COST 2000;
ALTER FUNCTION graph_filter_admissible(json, uuid[])
    SET search_path = pg_catalog, pg_temp COST 2000;
ALTER FUNCTION graph_replay(json, slice_policy)
    SET search_path = pg_catalog, pg_temp COST 20000 ROWS 10;
ALTER FUNCTION graph_check() COST 10000000 ROWS 26;
ALTER FUNCTION graph_slice_explain(uuid, slice_policy)
    SET search_path = pg_catalog, pg_temp COST 20000 ROWS 512;
ALTER FUNCTION graph_why(uuid, uuid, slice_policy)
    SET search_path = pg_catalog, pg_temp COST 100000 ROWS 1;
ALTER FUNCTION graph_slice_stats(uuid, slice_policy)
    SET search_path = pg_catalog, pg_temp COST 20000 ROWS 1;
ALTER FUNCTION graph_slice_diff(json, json) SET search_path = pg_catalog, pg_temp COST 4000 ROWS 50;
ALTER FUNCTION graph_export_draw(json, text) SET search_path = pg_catalog, pg_temp COST 2000;
ALTER FUNCTION graph_prompt(uuid, slice_policy)
    SET search_path = pg_catalog, pg_temp COST 10000 ROWS 256 SUPPORT graph_kernel.slice_support;
ALTER FUNCTION graph_slice_draw(uuid, slice_policy, text, jsonb)
    SET search_path = pg_catalog, pg_temp COST 20000;
ALTER FUNCTION graph_content_hash(text) COST 100;
-- Under row security only leakproof conditions reach an index.
ALTER FUNCTION graph_turn_id(text) COST 10 LEAKPROOF;
ALTER FUNCTION graph_turn_id(bigint) COST 10 LEAKPROOF;
ALTER FUNCTION graph_turn_id(text[]) COST 10 LEAKPROOF;
ALTER FUNCTION graph_message_text(text) COST 100;
ALTER FUNCTION graph_message_role(text) COST 100;
ALTER FUNCTION graph_content_audit(bigint)
    SET search_path = pg_catalog, pg_temp COST 10000000 ROWS 10;
ALTER FUNCTION graph_snapshot() SET search_path = pg_catalog, pg_temp COST 1000000;
ALTER FUNCTION graph_diversity(json) SET search_path = pg_catalog, pg_temp COST 2000;
ALTER FUNCTION graph_sufficiency(json, jsonb)
    SET search_path = pg_catalog, pg_temp COST 2000 ROWS 1;
ALTER FUNCTION graph_overlap(uuid[], slice_policy, real)
    SET search_path = pg_catalog, pg_temp COST 1000000 ROWS 1000;
ALTER FUNCTION graph_influence(uuid[], slice_policy)
    SET search_path = pg_catalog, pg_temp COST 1000000 ROWS 1000;
ALTER FUNCTION graph_atlas(uuid[], slice_policy, text, real, integer)
    SET search_path = pg_catalog, pg_temp COST 2000000;

COMMENT ON TYPE slice_policy IS
    'parameters of a slice (SlicePolicy v1): a JSON object or default, focused, broad';
COMMENT ON FUNCTION slice_policy_in(cstring) IS 'reads a slice policy';
COMMENT ON FUNCTION slice_policy_out(slice_policy) IS 'canonical JSON of a slice policy';
COMMENT ON FUNCTION slice_policy_recv(internal) IS 'reads a slice policy in the binary protocol';
COMMENT ON FUNCTION slice_policy_send(slice_policy) IS
    'canonical JSON of a slice policy in the binary protocol';
COMMENT ON FUNCTION slice_policy_eq(slice_policy, slice_policy) IS 'same parameters';
COMMENT ON FUNCTION slice_policy_ne(slice_policy, slice_policy) IS 'other parameters';
COMMENT ON FUNCTION slice_policy_hash(slice_policy) IS 'hash of a slice policy for hash indexes and joins';
COMMENT ON FUNCTION slice_policy_hash_extended(slice_policy, bigint) IS
    'seeded hash of a slice policy';
COMMENT ON OPERATOR = (slice_policy, slice_policy) IS 'same parameters';
COMMENT ON OPERATOR <> (slice_policy, slice_policy) IS 'other parameters';
COMMENT ON OPERATOR FAMILY slice_policy_ops USING hash IS 'equality of slice policies';
COMMENT ON OPERATOR CLASS slice_policy_ops USING hash IS 'equality of slice policies';
COMMENT ON CAST (jsonb AS slice_policy) IS 'reads a slice policy';
COMMENT ON CAST (json AS slice_policy) IS 'reads a slice policy';
COMMENT ON CAST (text AS slice_policy) IS 'reads a slice policy';
COMMENT ON CAST (slice_policy AS jsonb) IS 'a slice policy as JSON';
COMMENT ON CAST (slice_policy AS json) IS 'a slice policy as JSON';
COMMENT ON FUNCTION graph_kernel.slice_support(internal) IS 'planner support: rows of a slice';
COMMENT ON FUNCTION graph_kernel_version() IS 'version of the loaded library';
COMMENT ON FUNCTION graph_policy_hash(slice_policy) IS 'params_hash of a slice policy';
COMMENT ON FUNCTION graph_normalize_text(text) IS
    'content as it is hashed: line ends LF, outer white space trimmed';
COMMENT ON FUNCTION graph_turn_id(text) IS
    'the turn id of a text: the uuid that it spells, else its UUIDv5';
COMMENT ON FUNCTION graph_turn_id(bigint) IS 'the turn id of a number: that of its decimal text';
COMMENT ON FUNCTION graph_turn_id(text[]) IS
    'the turn id of a text in parts, NULL if one is';
COMMENT ON FUNCTION graph_message_text(text) IS
    'the text of a message stored as JSON; what is not such a message is itself the text';
COMMENT ON FUNCTION graph_message_role(text) IS
    'the role of a message stored as JSON: user, assistant, system, tool or the name it has';
COMMENT ON FUNCTION graph_content_hash(text) IS 'SHA-256 of the normalised content, in hex';
COMMENT ON FUNCTION graph_slice(uuid, slice_policy) IS
    'the context slice at an anchor turn, as canonical JSON';
COMMENT ON FUNCTION graph_slice_turns(uuid, slice_policy) IS
    'the turns of the slice at an anchor turn, ordered by turn_id';
COMMENT ON FUNCTION graph_slice_edges(uuid, slice_policy) IS
    'the edges of the slice at an anchor turn, ordered by parent, child, type';
COMMENT ON FUNCTION graph_slices(uuid[], slice_policy) IS
    'the slices at many anchor turns, in order; a bad anchor gives a row with an error';
COMMENT ON FUNCTION graph_verify(json) IS
    'whether an export is the kernel''s and unchanged; else the reason';
COMMENT ON FUNCTION graph_verify_explain(json) IS 'every check of an export, for people';
COMMENT ON FUNCTION graph_verify_token(text, text, uuid, text, text, text, text) IS
    'whether an admissibility token is the kernel''s for these fields';
COMMENT ON FUNCTION graph_proof(json) IS
    'a signed statement about a slice that verifies, which anyone can check with a public key';
COMMENT ON FUNCTION graph_verify_proof(json, json, text) IS
    'whether a proof is that of a slice under a public key; else the reason';
COMMENT ON FUNCTION graph_is_admissible(json, uuid) IS
    'whether a turn is in a slice that verifies';
COMMENT ON FUNCTION graph_filter_admissible(json, uuid[]) IS
    'the turns that are in a slice that verifies, in the order given';
COMMENT ON FUNCTION graph_replay(json, slice_policy) IS
    'takes a slice again and says what differs';
COMMENT ON FUNCTION graph_slice_explain(uuid, slice_policy) IS
    'every turn that slicing at an anchor turn read, with its outcome';
COMMENT ON FUNCTION graph_why(uuid, uuid, slice_policy) IS
    'why a turn is in the slice at an anchor turn, or what change of the policy brings it in';
COMMENT ON FUNCTION graph_slice_stats(uuid, slice_policy) IS
    'how the slice at an anchor turn fills its bounds, and what is in it';
COMMENT ON FUNCTION graph_slice_diff(json, json) IS 'what differs between two slices';
COMMENT ON FUNCTION graph_export_draw(json, text) IS 'an export as a drawing for Mermaid or Graphviz';
COMMENT ON FUNCTION graph_slice_draw(uuid, slice_policy, text, jsonb) IS
    'a picture of the slice at an anchor, with the beginnings of its contents';
COMMENT ON FUNCTION graph_prompt(uuid, slice_policy) IS
    'the turns of the slice at an anchor in the order of the conversation, with contents and tokens';
COMMENT ON FUNCTION graph_require_admissible() IS
    'trigger: a row must carry a slice that verifies and name only turns inside it';
COMMENT ON FUNCTION graph_require_admissible_result() IS
    'trigger: a row must carry the provenance of a search that may be promoted, and name only turns that it retrieved';
COMMENT ON VIEW graph_kernel.keys IS 'the keys by name and state; no secret';
COMMENT ON COLUMN graph_kernel.keys.kid IS 'names the key in attestations';
COMMENT ON COLUMN graph_kernel.keys.state IS 'active, verifying or revoked';
COMMENT ON COLUMN graph_kernel.keys.created_at IS 'when the epoch began';
COMMENT ON VIEW graph_kernel.proof_keys IS 'the public keys that check proofs';
COMMENT ON COLUMN graph_kernel.proof_keys.kid IS 'names the key in proofs';
COMMENT ON COLUMN graph_kernel.proof_keys.state IS 'active, verifying or revoked';
COMMENT ON COLUMN graph_kernel.proof_keys.created_at IS 'when the epoch began';
COMMENT ON COLUMN graph_kernel.proof_keys.public_key IS 'the key in PEM';
COMMENT ON COLUMN graph_kernel.proof_keys.key_source IS 'where its root is kept: database or file';
COMMENT ON FUNCTION graph_kernel.list_proof_keys() IS 'key ids, states and public keys';
COMMENT ON FUNCTION graph_kernel.rotate_key(boolean) IS
    'begins a new key epoch and returns its key id; may revoke the one before';
COMMENT ON FUNCTION graph_kernel.revoke_key(text) IS
    'makes a key''s tokens fail verification for good';
COMMENT ON FUNCTION graph_kernel.add_epoch() IS 'writes the root of a new key epoch';
COMMENT ON FUNCTION graph_kernel.list_keys() IS 'key ids and states';
COMMENT ON FUNCTION graph_kernel.epoch_times() IS 'when the key epochs began';
COMMENT ON FUNCTION graph_kernel.is_kid(text) IS 'whether a text has the form of a key id';
COMMENT ON FUNCTION graph_kernel.function_name(oid) IS
    'a function as commands name it whatever their search_path is';
COMMENT ON FUNCTION graph_kernel.whole_command(text) IS
    'a command of a hint, and NULL where it is too long';
COMMENT ON FUNCTION graph_kernel.free_trigger_name(regclass, oid) IS
    'a name that no trigger and no constraint of a table has';
COMMENT ON FUNCTION graph_kernel.index_command(regclass, boolean, text[], text[]) IS
    'the command that creates an index';
COMMENT ON FUNCTION graph_check() IS 'what is wrong with the bound graph, and how to fix it';
COMMENT ON FUNCTION graph_content_audit(bigint) IS
    'turns whose content_hash is missing or not that of their content, by ascending id';
COMMENT ON FUNCTION graph_snapshot() IS 'fingerprint of which turns and edges the graph has';
COMMENT ON FUNCTION graph_diversity(json) IS
    'how varied the turns of a slice that verifies are';
COMMENT ON FUNCTION graph_sufficiency(json, jsonb) IS
    'whether a slice that verifies is enough evidence; else a row for each thing it lacks';
COMMENT ON FUNCTION graph_overlap(uuid[], slice_policy, real) IS
    'which of the slices at these anchors share turns';
COMMENT ON FUNCTION graph_influence(uuid[], slice_policy) IS
    'in how many of the slices at these anchors each turn is';
COMMENT ON FUNCTION graph_atlas(uuid[], slice_policy, text, real, integer) IS
    'fingerprints of the slices at these anchors and of how they relate';
COMMENT ON FUNCTION graph_content_hash_trigger() IS
    'trigger: keeps the hash of a row, its second argument, that of the content, its first one';
COMMENT ON FUNCTION graph_kernel.content_hash_trigger_internal() IS
    'what graph_content_hash_trigger does for columns that the library does not write';
COMMENT ON PROCEDURE graph_kernel.backfill_content_hashes(integer) IS
    'writes content hashes that are missing or wrong, batch by batch';
COMMENT ON FUNCTION graph_kernel.create_tables(name, jsonb) IS
    'creates memory_turns and memory_turn_edges with their indexes and the triggers that keep content hashes, owned by the caller';
COMMENT ON FUNCTION graph_kernel.bind_tables(regclass, regclass, jsonb, text) IS
    'makes these tables the graph of this name; returns the name of the graph in attestations';
COMMENT ON FUNCTION graph_kernel.guard_table() IS
    'trigger: keeps rows of private tables from being written past the functions';
COMMENT ON FUNCTION graph_kernel.announce_change() IS
    'trigger: invalidates what every backend has cached of a private table';
COMMENT ON FUNCTION graph_kernel.unbind_tables(text) IS
    'takes the name from a graph; public.memory_turns and public.memory_turn_edges are the default graph again';
COMMENT ON FUNCTION graph_kernel.wanted_indexes(jsonb) IS
    'the indexes that a described graph is read by, whether they are there, and the commands that create them';
COMMENT ON FUNCTION graph_kernel.describe_tables(oid, oid, jsonb, text, text, oid) IS
    'checks tables for use as a graph and says what holds what';
COMMENT ON FUNCTION graph_kernel.chosen_graph() IS 'the name in the setting graph_kernel.graph';
COMMENT ON FUNCTION graph_kernel.describe_graph(text) IS
    'a bound graph: its tables and what holds what';
COMMENT ON FUNCTION graph_kernel.count_found(text, text) IS
    'how many rows of a bound graph have this finding of graph_check';
COMMENT ON FUNCTION graph_kernel.evaluate(text, text) IS
    'computes a bound expression for every row, and raises what it raises';
COMMENT ON FUNCTION graph_kernel.evaluate_row(text, text, oid, text) IS
    'computes a bound expression for one row';
COMMENT ON FUNCTION graph_kernel.content_hash_or_null(text) IS
    'graph_content_hash, and NULL for a content that is not UTF-8';
COMMENT ON FUNCTION graph_kernel.is_text(text) IS 'whether the bytes of a text are UTF-8';
COMMENT ON FUNCTION graph_kernel.char_count(text) IS
    'how many characters a text has; bytes that are not UTF-8 are replaced';
COMMENT ON FUNCTION graph_kernel.text_prefix(text, integer) IS
    'the first characters of a text; bytes that are not UTF-8 are replaced';
COMMENT ON FUNCTION graph_kernel.content_page(text, oid, uuid, integer) IS
    'turns after an id, and those whose content hash is missing or wrong';
COMMENT ON FUNCTION graph_kernel.rehash_free_turns(text, oid, uuid[]) IS
    'writes the content hashes of those of these turns that no other transaction holds';
COMMENT ON FUNCTION graph_kernel.rehash_turn(text, oid, uuid) IS
    'writes the content hash of a turn, after waiting for a transaction that has locked it';
COMMENT ON FUNCTION graph_kernel.turns_in_cycles(text) IS
    'how many turns of a bound graph lie on or between cycles; NULL when it is too large';

COMMENT ON TYPE chunking_policy IS
    'parameters of chunking (ft.recorder.chunking.v1): a JSON object or default';
COMMENT ON FUNCTION chunking_policy_in(cstring) IS 'reads a chunking policy';
COMMENT ON FUNCTION chunking_policy_out(chunking_policy) IS 'canonical JSON of a chunking policy';
COMMENT ON FUNCTION chunking_policy_recv(internal) IS 'reads a chunking policy in the binary protocol';
COMMENT ON FUNCTION chunking_policy_send(chunking_policy) IS
    'canonical JSON of a chunking policy in the binary protocol';
COMMENT ON FUNCTION chunking_policy_eq(chunking_policy, chunking_policy) IS 'same parameters';
COMMENT ON FUNCTION chunking_policy_ne(chunking_policy, chunking_policy) IS 'other parameters';
COMMENT ON FUNCTION chunking_policy_hash32(chunking_policy) IS
    'hash of a chunking policy for hash indexes and joins';
COMMENT ON FUNCTION chunking_policy_hash64(chunking_policy, bigint) IS
    'seeded hash of a chunking policy';
COMMENT ON OPERATOR = (chunking_policy, chunking_policy) IS 'same parameters';
COMMENT ON OPERATOR <> (chunking_policy, chunking_policy) IS 'other parameters';
COMMENT ON OPERATOR FAMILY chunking_policy_ops USING hash IS 'equality of chunking policies';
COMMENT ON OPERATOR CLASS chunking_policy_ops USING hash IS 'equality of chunking policies';
COMMENT ON CAST (jsonb AS chunking_policy) IS 'reads a chunking policy';
COMMENT ON CAST (json AS chunking_policy) IS 'reads a chunking policy';
COMMENT ON CAST (text AS chunking_policy) IS 'reads a chunking policy';
COMMENT ON CAST (chunking_policy AS jsonb) IS 'a chunking policy as JSON';
COMMENT ON CAST (chunking_policy AS json) IS 'a chunking policy as JSON';
COMMENT ON FUNCTION chunking_policy_hash(chunking_policy) IS 'fingerprint of a chunking policy';
COMMENT ON TYPE recorder_chunk IS 'a chunk of recorder events';
COMMENT ON FUNCTION recorder_chunks(chunking_policy, bigint, bigint, bigint, bigint, bigint, boolean) IS
    'the chunks of the bound event table, in log order';
COMMENT ON FUNCTION recorder_chunks_since(bigint, bigint, chunking_policy) IS
    'the chunks from the last resume point at or before a position';
COMMENT ON FUNCTION recorder_event_chunks(bigint, bigint, chunking_policy) IS
    'the chunks that hold an event';
COMMENT ON FUNCTION recorder_chunk_events(jsonb, chunking_policy) IS
    'the chunks of a JSON array of events';
COMMENT ON FUNCTION recorder_chunk_span(bigint, bigint, integer, bigint, bigint, integer) IS
    'the events of a chunk, and which of their characters it holds';
COMMENT ON FUNCTION recorder_verify_chunks(regclass, chunking_policy, boolean) IS
    'compares a table of chunks with the log: ok, changed, missing, extra';
COMMENT ON FUNCTION graph_kernel.create_recorder_table(name) IS
    'creates recorder_events, owned by the caller';
COMMENT ON FUNCTION graph_kernel.bind_recorder_table(regclass, jsonb) IS
    'makes this table the log of recorder events';
COMMENT ON FUNCTION graph_kernel.unbind_recorder_table() IS
    'makes public.recorder_events the log of recorder events again';
COMMENT ON FUNCTION graph_kernel.describe_recorder_table(oid, jsonb, oid) IS
    'checks a table for use as a log and says which columns hold what';

ALTER FUNCTION graph_policy_register(slice_policy, text) COST 1000 ROWS 1;
COMMENT ON FUNCTION graph_kernel.list_statistics() IS 'what graph_kernel.statistics shows';
COMMENT ON FUNCTION graph_kernel.reset_statistics() IS 'sets the statistics of this database to zero';
COMMENT ON VIEW graph_kernel.statistics IS
    'calls of the functions in this database since the server started or the last reset; empty unless preloaded';
COMMENT ON COLUMN graph_kernel.statistics.function IS 'name of the function';
COMMENT ON COLUMN graph_kernel.statistics.calls IS 'calls, those that failed included';
COMMENT ON COLUMN graph_kernel.statistics.total_time IS 'time in these calls, in milliseconds';
COMMENT ON COLUMN graph_kernel.statistics.histogram IS
    'for each bound in milliseconds, how many calls took no longer';
COMMENT ON COLUMN graph_kernel.statistics.turns_read IS 'turns read from the tables';
COMMENT ON COLUMN graph_kernel.statistics.turns_selected IS 'turns selected into slices';
COMMENT ON COLUMN graph_kernel.statistics.errors IS 'errors by the word in DETAIL, or by SQLSTATE';
COMMENT ON COLUMN graph_kernel.statistics.verifications IS 'results of verifications: ok or a reason';
COMMENT ON VIEW graph_policies IS 'the presets and the registered policies, a row for each name';
COMMENT ON FUNCTION graph_policy_register(slice_policy, text) IS
    'registers a policy for good, and may give it a name; returns its reference';
COMMENT ON FUNCTION graph_policy(text) IS 'the policy of this name or params_hash';
COMMENT ON FUNCTION graph_policy_registry_fingerprint() IS 'fingerprint of all registered policies';
COMMENT ON VIEW graph_kernel.known_policies IS 'registered policies and presets, by name';
COMMENT ON FUNCTION graph_kernel.register_policy(slice_policy, text) IS
    'registers a policy, under a name if one is given; EXECUTE on it is the right to register';
COMMENT ON FUNCTION graph_kernel.add_policy(slice_policy, text) IS 'adds a row to the registered policies';
COMMENT ON FUNCTION graph_kernel.policy_fault(slice_policy, text) IS
    'the word for what forbids to register a policy; NULL where nothing does';
COMMENT ON FUNCTION graph_kernel.check_policy(slice_policy, text) IS
    'raises what forbids to register a policy';
COMMENT ON FUNCTION graph_kernel.policy_not_found(text) IS 'raises that no policy is called so';
COMMENT ON FUNCTION graph_kernel.presets() IS 'the policies that are always there';
COMMENT ON FUNCTION graph_kernel.registry_fingerprint(text[], text[]) IS
    'fingerprint of a registry with these policies';
COMMENT ON FUNCTION graph_api_slice(json) IS 'REST: the slice at an anchor turn';
COMMENT ON FUNCTION graph_api_slice_batch(json) IS 'REST: the slices at up to 100 anchor turns';
COMMENT ON FUNCTION graph_api_policies() IS 'REST: the registered policies';
COMMENT ON FUNCTION graph_api_register_policy(json) IS 'REST: registers a policy';
COMMENT ON FUNCTION graph_api_verify_token(json) IS 'REST: whether an admissibility token is the kernel''s';
COMMENT ON FUNCTION graph_api_verify_proof(json) IS 'REST: whether a proof is that of a slice under a public key';
COMMENT ON FUNCTION graph_api_health() IS 'REST: whether slices can be taken';
COMMENT ON FUNCTION graph_kernel.slice_summaries(text[], slice_policy) IS
    'slices as the REST bodies have them, or what is wrong';
COMMENT ON FUNCTION graph_kernel.api_summaries(text[], slice_policy, boolean) IS
    'slices as the REST bodies have them; an error has the SQLSTATE of its status';
COMMENT ON FUNCTION graph_kernel.check_request(json, text[], text[]) IS
    'refuses a request that lacks keys or has others';
COMMENT ON FUNCTION graph_kernel.requested_policy(json) IS 'the policy that a request refers to';
COMMENT ON FUNCTION graph_kernel.requested_policy_not_found(json) IS
    'raises that a request refers to no registered policy';
COMMENT ON FUNCTION graph_kernel.requested_anchors(json) IS 'the anchors of a batch';
COMMENT ON FUNCTION graph_kernel.verify_token(text, text, uuid, text, text, text, text) IS
    'graph_verify_token, for api_verify_token';
COMMENT ON FUNCTION graph_kernel.verify_proof(json, json, text) IS
    'graph_verify_proof, for functions of the extension';
COMMENT ON FUNCTION graph_kernel.api_verify_token(json) IS 'graph_api_verify_token';
COMMENT ON FUNCTION graph_kernel.api_search(json, boolean) IS 'graph_api_search_slice and graph_api_search_global';
COMMENT ON FUNCTION graph_kernel.check_graph(text) IS 'graph_check';
COMMENT ON FUNCTION graph_kernel.promoting_triggers() IS
    'the triggers that hold rows to slices or searches, and how they can be got round';
COMMENT ON FUNCTION graph_kernel.content_hash(text) IS 'graph_content_hash, for statements';
COMMENT ON FUNCTION graph_kernel.recorder_chunks(chunking_policy, bigint, bigint, bigint, bigint, bigint, boolean) IS
    'recorder_chunks, for verify_chunks';
COMMENT ON FUNCTION graph_kernel.verify_chunks(regclass, chunking_policy, boolean) IS 'recorder_verify_chunks';
COMMENT ON FUNCTION graph_kernel.make_trace_table(name) IS 'creates retrieval_traces, owned by the caller';
COMMENT ON FUNCTION graph_kernel.write_trace(jsonb) IS 'adds a row to the trace table';
COMMENT ON FUNCTION graph_kernel.rotate_key_internal(boolean) IS 'rotate_key';
COMMENT ON FUNCTION graph_kernel.revoke_key_internal(text) IS 'revoke_key';
COMMENT ON FUNCTION graph_kernel.create_tables_internal(name, jsonb, regproc) IS 'create_tables';
COMMENT ON FUNCTION graph_kernel.bind_tables_internal(regclass, regclass, jsonb, text, oid) IS 'bind_tables';
COMMENT ON FUNCTION graph_kernel.bind_tables_for(regclass, regclass, jsonb, text, oid) IS 'bind_tables, for its caller';
COMMENT ON FUNCTION graph_kernel.unbind_tables_internal(text) IS 'unbind_tables';
COMMENT ON FUNCTION graph_kernel.bind_recorder_table_internal(regclass, jsonb, oid) IS 'bind_recorder_table';
COMMENT ON FUNCTION graph_kernel.bind_recorder_table_for(regclass, jsonb, oid) IS 'bind_recorder_table, for its caller';
COMMENT ON FUNCTION graph_kernel.bind_traces_internal(regclass, oid) IS 'bind_traces';
COMMENT ON FUNCTION graph_kernel.bind_traces_for(regclass, oid) IS 'bind_traces, for its caller';
COMMENT ON FUNCTION graph_kernel.is_restorable(regclass, boolean) IS
    'whether a row that names this relation can be restored from a dump';
COMMENT ON FUNCTION graph_kernel.policy_ref(slice_policy) IS 'a reference to a policy, as compact JSON';

-- Retrieval.
ALTER FUNCTION graph_anchor(uuid, text, real[]) SET search_path = pg_catalog, pg_temp COST 1000 ROWS 1;
ALTER FUNCTION graph_anchors_recent(integer, text) SET search_path = pg_catalog, pg_temp COST 1000 ROWS 5;
ALTER FUNCTION graph_search_slice(real[], uuid, slice_policy, integer, real, real, text)
    SET search_path = pg_catalog, pg_temp COST 10000 ROWS 10;
ALTER FUNCTION graph_search_global(real[], integer, real, text)
    SET search_path = pg_catalog, pg_temp COST 10000 ROWS 10;
ALTER FUNCTION graph_is_admissible_result(jsonb) SET search_path = pg_catalog, pg_temp COST 1000;
ALTER FUNCTION graph_can_promote(jsonb, uuid) SET search_path = pg_catalog, pg_temp COST 1000;
ALTER FUNCTION graph_replay_retrieval(jsonb, real[])
    SET search_path = pg_catalog, pg_temp COST 20000 ROWS 7;

COMMENT ON FUNCTION graph_anchor(uuid, text, real[]) IS
    'the turn to take a slice at, and the strategy that found it';
COMMENT ON FUNCTION graph_anchors_recent(integer, text) IS 'the latest turns, of a session or of all';
COMMENT ON FUNCTION graph_search_slice(real[], uuid, slice_policy, integer, real, real, text) IS
    'the turns of a slice that are most similar to an embedding, with signed provenance';
COMMENT ON FUNCTION graph_search_global(real[], integer, real, text) IS
    'the turns of the whole graph that are most similar to an embedding: never admissible';
COMMENT ON FUNCTION graph_is_admissible_result(jsonb) IS
    'whether what a search retrieved may be promoted';
COMMENT ON FUNCTION graph_can_promote(jsonb, uuid) IS
    'whether a search that may be promoted retrieved this turn';
COMMENT ON FUNCTION graph_replay_retrieval(jsonb, real[]) IS
    'makes a search again and says what differs';
COMMENT ON FUNCTION graph_trace(jsonb) IS 'stores the provenance of a search; returns its query_id';
COMMENT ON FUNCTION graph_api_search_slice(json) IS 'REST: a search within a slice';
COMMENT ON FUNCTION graph_api_search_global(json) IS 'REST: a search over the whole graph';
COMMENT ON FUNCTION graph_kernel.create_trace_table(name) IS
    'creates retrieval_traces with its indexes, owned by the caller, and binds it';
COMMENT ON FUNCTION graph_kernel.bind_traces(regclass) IS 'makes graph_trace write to this table';
COMMENT ON FUNCTION graph_kernel.search_slice_body(real[], uuid, slice_policy, integer, real, real, text) IS
    'graph_search_slice as the body of a response';
COMMENT ON FUNCTION graph_kernel.search_global_body(real[], integer, real, text) IS
    'graph_search_global as the body of a response';
COMMENT ON FUNCTION graph_kernel.provenance_reason(jsonb) IS
    'ok, or why what a search retrieved must not be promoted';

-- All of it belongs to the bootstrap superuser, whoever creates the extension: its owner may lose SUPERUSER, or have what he owns
-- reassigned, and an owner of the private tables reads the roots of the keys. Before the grants, which an owner makes.
DO $$
DECLARE
    bootstrap name := (SELECT r.rolname FROM pg_catalog.pg_roles AS r WHERE r.oid OPERATOR(pg_catalog.=) 10);
    command text;
BEGIN
    FOR command IN
        SELECT pg_catalog.format('ALTER %s %s OWNER TO %I', o.type, o.identity, bootstrap)
        FROM pg_catalog.pg_extension AS x
        JOIN pg_catalog.pg_depend AS d ON d.refclassid OPERATOR(pg_catalog.=) 'pg_catalog.pg_extension'::pg_catalog.regclass
            AND d.refobjid OPERATOR(pg_catalog.=) x.oid AND d.deptype OPERATOR(pg_catalog.=) 'e'
        CROSS JOIN LATERAL pg_catalog.pg_identify_object(d.classid, d.objid, 0) AS o
        WHERE x.extname OPERATOR(pg_catalog.=) 'graph_kernel' AND o.type OPERATOR(pg_catalog.<>) 'cast'
    LOOP
        EXECUTE command;
    END LOOP;
END
$$;

-- Administration belongs to the extension's owner, who may grant it on. Privileges that
-- default privileges gave to other roles are revoked first, also on the tables.
DO $$
DECLARE
    owner name := (SELECT r.rolname FROM pg_catalog.pg_extension AS x
                   JOIN pg_catalog.pg_roles AS r ON r.oid OPERATOR(pg_catalog.=) x.extowner
                   WHERE x.extname OPERATOR(pg_catalog.=) 'graph_kernel');
    admin text[] := ARRAY[
        'FUNCTION graph_kernel.register_policy(@extschema@.slice_policy, text)',
        'FUNCTION graph_kernel.bind_tables(regclass, regclass, jsonb, text)',
        'FUNCTION graph_kernel.unbind_tables(text)',
        'FUNCTION graph_kernel.bind_recorder_table(regclass, jsonb)',
        'FUNCTION graph_kernel.unbind_recorder_table()',
        'FUNCTION graph_kernel.rotate_key(boolean)',
        'FUNCTION graph_kernel.revoke_key(text)',
        'FUNCTION graph_kernel.list_keys()',
        'FUNCTION graph_kernel.bind_traces(regclass)',
        'FUNCTION graph_kernel.list_statistics()',
        'FUNCTION graph_kernel.reset_statistics()'];
    internal text[] := ARRAY[
        'FUNCTION graph_kernel.require_library()',
        'FUNCTION graph_kernel.describe_tables(oid, oid, jsonb, text, text, oid)',
        'FUNCTION graph_kernel.describe_recorder_table(oid, jsonb, oid)',
        'FUNCTION graph_kernel.check_trace_table(oid, oid)',
        'FUNCTION graph_kernel.add_epoch()',
        'FUNCTION graph_kernel.rotate_key_internal(boolean)',
        'FUNCTION graph_kernel.revoke_key_internal(text)',
        'FUNCTION graph_kernel.bind_tables_internal(regclass, regclass, jsonb, text, oid)',
        'FUNCTION graph_kernel.bind_tables_for(regclass, regclass, jsonb, text, oid)',
        'FUNCTION graph_kernel.unbind_tables_internal(text)',
        'FUNCTION graph_kernel.bind_recorder_table_internal(regclass, jsonb, oid)',
        'FUNCTION graph_kernel.bind_recorder_table_for(regclass, jsonb, oid)',
        'FUNCTION graph_kernel.bind_traces_internal(regclass, oid)',
        'FUNCTION graph_kernel.bind_traces_for(regclass, oid)',
        'FUNCTION graph_kernel.guard_table()',
        'FUNCTION graph_kernel.set_binder()',
        'FUNCTION graph_kernel.content_hash_trigger_internal()',
        'FUNCTION graph_kernel.announce_change()',
        'SCHEMA graph_kernel',
        'TABLE graph_kernel.root_keys',
        'TABLE graph_kernel.revoked_keys',
        'TABLE graph_kernel.binding',
        'TABLE graph_kernel.bindings',
        'TABLE graph_kernel.recorder_binding',
        'TABLE graph_kernel.policies',
        'TABLE graph_kernel.known_policies',
        'TABLE @extschema@.graph_policies',
        'TABLE graph_kernel.trace_binding',
        'TABLE graph_kernel.keys',
        'TABLE graph_kernel.proof_keys',
        'TABLE graph_kernel.statistics'];
    object text;
    holder name;
BEGIN
    FOREACH object IN ARRAY admin OPERATOR(pg_catalog.||) internal LOOP
        EXECUTE pg_catalog.format('REVOKE ALL ON %s FROM PUBLIC', object);
        FOR holder IN
            SELECT DISTINCT r.rolname
            FROM (SELECT p.proacl, p.proowner FROM pg_catalog.pg_proc AS p
                  WHERE p.pronamespace OPERATOR(pg_catalog.=) 'graph_kernel'::pg_catalog.regnamespace
                  UNION ALL
                  SELECT n.nspacl, n.nspowner FROM pg_catalog.pg_namespace AS n
                  WHERE n.nspname OPERATOR(pg_catalog.=) 'graph_kernel'
                  UNION ALL
                  SELECT c.relacl, c.relowner FROM pg_catalog.pg_class AS c
                  WHERE c.relnamespace OPERATOR(pg_catalog.=) 'graph_kernel'::pg_catalog.regnamespace
                     OR c.oid OPERATOR(pg_catalog.=) '@extschema@.graph_policies'::pg_catalog.regclass
                 ) AS granted (acl, owner)
            CROSS JOIN LATERAL pg_catalog.aclexplode(granted.acl) AS a
            JOIN pg_catalog.pg_roles AS r ON r.oid OPERATOR(pg_catalog.=) a.grantee
            WHERE a.grantee OPERATOR(pg_catalog.<>) granted.owner
        LOOP
            EXECUTE pg_catalog.format('REVOKE ALL ON %s FROM %I', object, holder);
        END LOOP;
    END LOOP;
    FOREACH object IN ARRAY admin LOOP
        EXECUTE pg_catalog.format('GRANT EXECUTE ON %s TO %I WITH GRANT OPTION', object, owner);
    END LOOP;
    EXECUTE pg_catalog.format('GRANT SELECT ON graph_kernel.keys, graph_kernel.statistics TO %I WITH GRANT OPTION', owner);
    -- So that an owner who is not a superuser can dump and restore them.
    EXECUTE pg_catalog.format(
        'GRANT SELECT, INSERT ON graph_kernel.binding, graph_kernel.recorder_binding, graph_kernel.trace_binding, graph_kernel.revoked_keys, graph_kernel.policies TO %I',
        owner);
END
$$;
GRANT USAGE ON SCHEMA graph_kernel TO PUBLIC;
GRANT EXECUTE ON FUNCTION graph_kernel.list_statistics() TO pg_monitor;
GRANT SELECT ON graph_kernel.statistics TO pg_monitor;
GRANT SELECT ON graph_kernel.binding, graph_kernel.bindings, graph_kernel.recorder_binding, graph_kernel.trace_binding, graph_kernel.policies, graph_kernel.known_policies, graph_kernel.proof_keys, @extschema@.graph_policies TO PUBLIC;
-- Registering runs with the caller's rights: the table's trigger checks EXECUTE on register_policy.
GRANT INSERT (name, policy) ON graph_kernel.policies TO PUBLIC;
