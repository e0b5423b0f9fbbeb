-- Promise: what functions of the extension share with each other, and every role can so call, answers odd arguments with an
-- error of the extension's own: a word in DETAIL, or a status for PostgREST. Nothing raises what its caller says.
CREATE ROLE regress_nobody;
GRANT SELECT ON memory_turns, memory_turn_edges TO regress_nobody;
SET ROLE regress_nobody;
SELECT call, e.code, e.message, e.detail FROM unnest(ARRAY[
    $$graph_kernel.api_summaries(NULL, NULL, NULL)$$, $$graph_kernel.api_summaries('{x}', 'default', false)$$, $$graph_kernel.api_summaries('{NULL}', 'default', false)$$,
    $$graph_kernel.api_summaries('{x}', 'default', NULL)$$, $$graph_kernel.api_summaries('{00000000-0000-0000-0000-000000000001}', 'default', true)$$,
    $$graph_kernel.check_request(NULL, '{}', '{}')$$, $$graph_kernel.check_request('{}', NULL, '{}')$$, $$graph_kernel.check_request('{}', '{a}', NULL)$$,
    $$graph_kernel.check_request('{}', '{{a,b},{c,d}}', '{e}')$$, $$graph_kernel.check_request('{}', '{a,NULL}', '{}')$$, $$graph_kernel.check_request('{"a": 1}', '{}', '{{a},{b}}')$$,
    $$graph_kernel.check_request('{"a": 1}', '{}', '{}')$$, $$graph_kernel.check_request('{"a": "\u0000"}', '{a}', '{}')$$, $$graph_kernel.check_request('{"\u0000": 1}', '{}', '{a}')$$,
    $$graph_kernel.check_request('{"a": {"b": ["\ud800"]}}', '{a}', '{}')$$, $$graph_kernel.requested_anchors(NULL)$$, $$graph_kernel.requested_anchors('["a"]')$$,
    $$graph_kernel.requested_anchors('{"anchor_turn_ids": ["\u0000"]}')$$, $$graph_kernel.requested_anchors('{"anchor_turn_ids": 1}')$$, $$graph_kernel.requested_policy('{"policy_id": "\udc00", "params_hash": "x"}')$$,
    $$graph_kernel.requested_policy('1')$$, $$graph_kernel.requested_policy_not_found(NULL)$$, $$graph_kernel.policy_not_found(NULL)$$,
    $$graph_kernel.api_search(NULL, NULL)$$, $$graph_kernel.api_search('{"query_embedding": ["\u0000"]}', true)$$, $$graph_kernel.api_search('{"query_embedding": ["x"]}', true)$$,
    $$graph_kernel.api_search('{"query_embedding": {}}', true)$$, $$graph_kernel.api_search('{"query_embedding": [1e400]}', true)$$, $$graph_kernel.api_search('{"query_embedding": [1], "limit": "x"}', true)$$,
    $$graph_kernel.api_verify_token('{"slice_id": "\u0000"}')$$,
    $$graph_kernel.check_policy(NULL, NULL)$$, $$graph_kernel.check_policy('default', '')$$, $$graph_kernel.check_policy('focused', 'default')$$, $$graph_kernel.check_policy('focused', 'chat')$$,
    $$graph_kernel.check_policy('focused', 'focused')$$, $$graph_api_slice('{"anchor_turn_id": "\u0000"}')$$, $$graph_api_verify_proof('{"public_key": "\u0000"}')$$,
    $$graph_api_search_slice('{"anchor_turn_id": "\u0000", "query_embedding": [1]}')$$]) AS call, test_error(format('SELECT %s', call)) AS e;
RESET ROLE;
SELECT code, message, detail, hint FROM test_error('SELECT * FROM graph_content_audit(-1)');
SELECT code, message, detail FROM test_error('SELECT * FROM graph_kernel.content_page(''default'', ''memory_turns''::regclass, NULL, -1)');
REVOKE ALL ON memory_turns, memory_turn_edges FROM regress_nobody;
DROP ROLE regress_nobody;
