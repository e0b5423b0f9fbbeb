-- Promise: a slice that verifies has a proof, which anyone can check with a public key; nothing else has one.
CREATE TEMP TABLE kept AS SELECT p.name, graph_slice(turn(2), p.name::slice_policy) AS slice FROM (VALUES ('default'), ('chat')) AS p (name);
CREATE TEMP TABLE proven AS SELECT name, slice, graph_proof(slice) AS proof FROM kept;
CREATE TEMP TABLE published AS SELECT * FROM graph_kernel.proof_keys WHERE state = 'active';
SELECT p.name, v.* FROM proven AS p, published AS k, graph_verify_proof(p.slice, p.proof, k.public_key) AS v ORDER BY 1;
-- It is the same each time, and says where the key is kept.
SELECT bool_and(graph_proof(slice)::text = proof::text) AS same FROM proven;
SELECT p.name, s ->> '_type' AS type, s ->> 'predicateType' AS predicate, s #>> '{predicate,policy_id}' AS policy, s #>> '{predicate,key_source}' AS source,
       s #>> '{subject,0,digest,sha256}' = encode(sha256(convert_to(p.slice::text, 'UTF8')), 'hex') AS digest,
       s #>> '{predicate,kid}' = k.kid AND k.kid = p.proof #>> '{signatures,0,keyid}' AS kid
FROM proven AS p, published AS k, LATERAL (SELECT convert_from(decode(p.proof ->> 'payload', 'base64'), 'UTF8')::json AS s) AS t ORDER BY 1;
SELECT kid ~ '^[0-9]+-[0-9a-f]{16}$' AS kid, state, created_at <= now() AS created, public_key ~ '^-----BEGIN PUBLIC KEY-----\n[A-Za-z0-9+/=]{60}\n-----END PUBLIC KEY-----\n$' AS pem, key_source
FROM published;
-- Rewritten on the way it is the same slice; with one value changed it is another.
SELECT what, v.valid, v.reason FROM proven AS p, published AS k,
    LATERAL (VALUES (1, 'jsonb', p.slice::jsonb::json, p.proof), (2, 'edited', replace(p.slice::text, '"salience":0.1', '"salience":0.9')::json, p.proof),
                    (3, 'other', (SELECT o.slice FROM kept AS o WHERE o.name = 'chat'), p.proof), (4, 'no slice', '{}', p.proof), (5, 'no proof', p.slice, '{}'),
                    (6, 'null slice', NULL, p.proof), (7, 'null proof', p.slice, NULL)) AS e (n, what, slice, proof),
    graph_verify_proof(e.slice, e.proof, k.public_key) AS v
WHERE p.name = 'default' ORDER BY n;
SELECT v.* FROM proven AS p, unnest(ARRAY[NULL, '', 'key']) AS key, graph_verify_proof(p.slice, p.proof, key) AS v WHERE p.name = 'default';
-- What does not verify has none.
SELECT n, code, detail, message FROM (VALUES (1, 'NULL'), (2, '''{}'''), (3, 'replace(graph_slice(turn(2))::text, ''"salience":0.1'', ''"salience":0.9'')::json'))
    AS v (n, slice), test_error(format('SELECT graph_proof(%s)', slice)) ORDER BY n;
BEGIN;
UPDATE memory_turns SET salience_score = 0.6 WHERE id = turn(1);
SELECT code, message FROM test_error('SELECT graph_proof(graph_slice(turn(2)))');
ROLLBACK;
-- The key is that of the slice's epoch, and a revoked one signs nothing; proofs made before still check.
BEGIN;
SELECT graph_kernel.rotate_key() IS NOT NULL AS rotated;
SELECT bool_and(graph_proof(slice)::text = proof::text) AS same FROM proven;
SELECT k.state, v.valid, v.reason FROM proven AS p, graph_kernel.proof_keys AS k, graph_verify_proof(p.slice, p.proof, k.public_key) AS v
WHERE p.name = 'default' AND (v.valid OR k.state = 'active') ORDER BY 1;
SELECT FROM published AS k, graph_kernel.revoke_key(k.kid);
SELECT code, message FROM test_error('SELECT graph_proof(slice) FROM proven');
SELECT k.state, v.valid, v.reason FROM proven AS p, graph_kernel.proof_keys AS k, graph_verify_proof(p.slice, p.proof, k.public_key) AS v
WHERE p.name = 'default' AND (v.valid OR k.state = 'active') ORDER BY 1;
ROLLBACK;
-- For PostgREST.
SELECT graph_api_verify_proof(json_build_object('slice', p.slice, 'proof', p.proof, 'public_key', k.public_key)),
       graph_api_verify_proof(json_build_object('slice', p.slice, 'proof', '{}'::json, 'public_key', k.public_key)) FROM proven AS p, published AS k WHERE p.name = 'default';
SELECT code, detail, message FROM test_error($$SELECT graph_api_verify_proof('{"slice": {}}')$$);
-- Anyone may check and see the keys; no table is needed.
CREATE ROLE regress_auditor;
GRANT SELECT ON proven TO regress_auditor;
SET ROLE regress_auditor;
SELECT v.* FROM proven AS p, graph_kernel.proof_keys AS k, graph_verify_proof(p.slice, p.proof, k.public_key) AS v
WHERE p.name = 'chat' AND k.kid = p.proof #>> '{signatures,0,keyid}';
RESET ROLE;
DROP TABLE proven;
DROP ROLE regress_auditor;
