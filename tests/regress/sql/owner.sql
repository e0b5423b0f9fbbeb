-- Promise: whose turn it is and until when it is valid choose what a search finds, and no slice looks at them; the
-- message as it was sent is a column of JSON. A column of such a name and another type is not one of them.
CREATE SCHEMA owned;
CREATE DOMAIN owned.email AS text CHECK (value <> 'never');
CREATE FUNCTION owned.bind(key text, value jsonb) RETURNS TABLE (answer text, hint text) LANGUAGE plpgsql AS $$
DECLARE
    refused record;
BEGIN
    SELECT * INTO refused FROM test_error(format('SELECT graph_kernel.bind_tables(%L, columns => %L)', 'owned.t',
        jsonb_build_object('turns', '{"parents": [{"parent": "parent", "edge_type": "reply"}]}'
            || jsonb_build_object('role', null, 'phase', null, 'salience', null, 'content_text', null, 'session_id', null, 'created_at', null)
            || coalesce(jsonb_build_object(key, value), '{}'))));
    IF refused.code = '00000' THEN
        RETURN QUERY SELECT concat(resolved -> 'turns' -> key, ' as ', graph_kernel.describe_graph('default') #>> ARRAY['turns', 'expressions', key]), NULL::text
            FROM graph_kernel.binding WHERE is_current AND name = 'default';
    ELSE
        RETURN QUERY SELECT concat_ws(' ', refused.code, refused.detail, refused.message), concat(substring(refused.hint, '^[^:;]*'), ' ', substring(refused.hint, '"' || key || '": ?("\w+"|null|\{[^}]*\})'));
    END IF;
END $$;
CREATE TABLE owned.t (
    id uuid PRIMARY KEY, parent uuid, body text, char_one char(3), number bigint, list text[], at_zone timestamptz, at_none timestamp, on_day date,
    seconds bigint, j json, jb jsonb, who varchar(20), mail owned.email, uid uuid, bytes bytea,
    made text GENERATED ALWAYS AS (lower(body)) STORED, "Odd ""name'" text, gone text, embedding real[]
);
CREATE INDEX ON owned.t (parent);
ALTER TABLE owned.t DROP gone;

-- What each key takes.
SELECT value, b.* FROM unnest('{"who","mail","uid","body","made","Odd \"name''"}'::text[]) AS value, owned.bind('owner', to_jsonb(value)) AS b;
SELECT value, b.* FROM unnest('{"char_one","number","list","bytes","jb","ctid","tableoid","gone","........pg.dropped.19........","lower(who)","nobody"}'::text[]) AS value, owned.bind('owner', to_jsonb(value)) AS b;
SELECT value, b.* FROM unnest('{"{\"expression\": \"lower(who)\"}","{\"expression\": \"who\"}",true,7,[],"{}","null"}'::text[]) WITH ORDINALITY AS v (value), owned.bind('owner', value::jsonb) AS b ORDER BY ordinality;
SELECT value, b.* FROM unnest('{"\"at_zone\"","\"at_none\"","\"on_day\"","\"seconds\"","\"body\"","{\"expression\": \"to_timestamp(seconds)\"}","{\"expression\": \"now()\"}","null"}'::text[]) WITH ORDINALITY AS v (value), owned.bind('valid_until', value::jsonb) AS b ORDER BY ordinality;
SELECT value, b.* FROM unnest('{"\"j\"","\"jb\"","\"body\"","\"bytes\"","{\"expression\": \"jb -> ''message''\"}","{\"expression\": \"body\"}","null"}'::text[]) WITH ORDINALITY AS v (value), owned.bind('payload', value::jsonb) AS b ORDER BY ordinality;

-- Recognised by name and type; one that was recognised, and has another type now, is an error and not left out.
SELECT answer AS none FROM owned.bind('role', 'null');
ALTER TABLE owned.t ADD owner bigint, ADD payload bytea, ADD valid_until date;
SELECT answer FROM owned.bind('role', 'null');
SELECT key, value AS other_types FROM graph_kernel.binding, jsonb_each(resolved -> 'turns') WHERE is_current AND name = 'default' AND key IN ('owner', 'payload', 'valid_until') ORDER BY key;
ALTER TABLE owned.t ALTER owner TYPE uuid USING NULL, ALTER payload TYPE json USING NULL, ALTER valid_until TYPE timestamp;
SELECT answer FROM owned.bind('role', 'null');
SELECT key, value AS recognised FROM graph_kernel.binding, jsonb_each(resolved -> 'turns') WHERE is_current AND name = 'default' AND key IN ('owner', 'payload', 'valid_until') ORDER BY key;
ALTER TABLE owned.t ALTER owner TYPE bigint USING NULL;
SELECT code, message, detail FROM test_error('SELECT graph_slice(turn(1))');
ALTER TABLE owned.t DROP owner, DROP payload, DROP valid_until;
SELECT code, message, detail FROM test_error('SELECT graph_slice(turn(1))');

-- Twelve turns in a row: every second is alice's, every third was valid until a while ago, two are valid for a while.
INSERT INTO owned.t (id, parent, who, mail, uid, body, "Odd ""name'", at_zone, at_none, seconds, embedding)
SELECT turn(n), turn(n - 1), who, who, md5(who)::uuid, who, who, until, until AT TIME ZONE 'UTC', CASE WHEN isfinite(until) THEN extract(epoch FROM until) END, ARRAY[1, n]
  FROM generate_series(1, 12) AS n, LATERAL (SELECT CASE WHEN n % 2 = 0 THEN 'alice' ELSE 'bob' END,
      CASE WHEN n % 3 = 0 THEN now() - interval '1 hour' WHEN n = 5 THEN 'infinity' WHEN n = 10 THEN now() + interval '1 hour' END) AS v (who, until);
CREATE FUNCTION owned.found(key text, value jsonb, options jsonb) RETURNS TABLE (in_slice text, in_graph text, anchor bigint, selected text) LANGUAGE plpgsql AS $$
BEGIN
    IF (SELECT b.hint FROM owned.bind(key, value) AS b) IS NOT NULL THEN
        RAISE 'not bound';
    END IF;
    RETURN QUERY SELECT (SELECT string_agg(turn_number(s.turn_id)::text, ' ' ORDER BY rank) FROM graph_search_slice('{1,6}', turn(6), limit_count => 20, options => options) AS s),
        (SELECT string_agg(turn_number(g.turn_id)::text, ' ' ORDER BY rank) FROM graph_search('{1,6}', limit_count => 20, filter => options) AS g),
        (SELECT turn_number(a.anchor_turn_id) FROM graph_anchor(query_embedding => '{1,6}') AS a), (SELECT t.selected FROM test_slice(6) AS t);
END $$;
SET client_min_messages = warning;
SELECT key, f.* FROM unnest('{who,mail,body,"Odd \"name''"}'::text[]) WITH ORDINALITY AS k (key), owned.found('owner', to_jsonb(key), '{"owner": "alice"}') AS f ORDER BY ordinality;
SELECT f.* FROM owned.found('owner', '"uid"', jsonb_build_object('owner', upper(md5('alice')))) AS f;
SELECT code, message, detail, hint FROM test_error($$SELECT graph_search('{1,6}', filter => '{"owner": "alice"}')$$);
SELECT code, message, detail, hint FROM test_error($$SELECT owned.found('owner', 'null', '{"owner": "alice"}')$$);
-- No value of another spelling is an owner: case counts, white space counts, and nobody has the empty name.
SELECT who, f.* FROM unnest('{alice,Alice,"alice ","",bob," OR true --","x"}'::text[]) WITH ORDINALITY AS w (who), owned.found('owner', '"who"', jsonb_build_object('owner', who)) AS f ORDER BY ordinality;
-- Moments after which a search does not find a turn, in any time zone; a slice takes no notice.
SET timezone = 'Pacific/Auckland';
SELECT value, f.* FROM unnest('{"\"at_zone\"","\"at_none\"","{\"expression\": \"to_timestamp(seconds)\"}"}'::text[]) WITH ORDINALITY AS v (value), owned.found('valid_until', value::jsonb, '{}') AS f ORDER BY ordinality;
RESET timezone;
-- An expression that raises on a row ends searches, not slices, and graph_check names the row.
UPDATE owned.t SET number = turn_number(id) - 2;
SELECT hint FROM owned.bind('valid_until', '{"expression": "to_timestamp(10 / number)"}');
SELECT code, message, detail, hint FROM test_error($$SELECT graph_search('{1,6}')$$);
SELECT selected FROM test_slice(6);
SELECT ok, detail FROM graph_check() WHERE check_name = 'raising_expression';
-- A search that leaves out what is not sought falls short of nothing; of what is sought one without an embedding counts.
SELECT graph_kernel.bind_tables('owned.t', columns => '{"turns": {"owner": "who", "valid_until": "at_zone", "parents": [{"parent": "parent", "edge_type": "reply"}]}}') IS NOT NULL AS bound;
UPDATE owned.t SET embedding = NULL WHERE turn_number(id) IN (1, 3, 8);
SELECT options, string_agg(turn_number(turn_id)::text, ' ' ORDER BY rank) AS found, min(graph_kernel.provenance_reason(provenance)) FILTER (WHERE rank = 1) AS reason, min(provenance -> 'filters_applied' ->> 'owner') AS recorded
  FROM unnest('{"{}","{\"owner\": \"bob\"}","{\"owner\": \"alice\"}"}'::jsonb[]) AS options, graph_search_slice('{1,6}', turn(6), limit_count => CASE options ->> 'owner' WHEN 'alice' THEN 4 ELSE 3 END, options => options)
 GROUP BY options ORDER BY options;
SELECT code, message, detail, hint FROM unnest('{"{\"owner\": null}","{\"owner\": 7}","{\"owner\": [\"alice\"]}","{\"owners\": \"alice\"}","[]","\"alice\"",null}'::text[]) WITH ORDINALITY AS o (options),
    test_error(format('SELECT graph_search(''{1,6}'', filter => %L)', options)) ORDER BY ordinality;
SELECT code, left(message, 60) AS message, detail FROM test_error($$SELECT graph_search('{1,6}', filter => jsonb_build_object('owner', repeat('x', 1025)))$$);
SELECT count(*) FROM graph_search('{1,6}', filter => NULL);
-- The record names the owner, and is made again as of then: what is valid no more is found once more.
CREATE TABLE owned.kept AS SELECT provenance FROM graph_search_slice('{1,6}', turn(6), options => '{"owner": "alice"}') WHERE rank = 1;
SELECT pg_sleep(0.01);
UPDATE owned.t SET at_zone = clock_timestamp() - interval '5 ms' WHERE at_zone > now();
SELECT string_agg(turn_number(turn_id)::text, ' ' ORDER BY rank) AS now FROM graph_search_slice('{1,6}', turn(6), options => '{"owner": "alice"}');
SELECT matches, field, turns FROM owned.kept, graph_replay_retrieval(provenance, '{1,6}') AS r,
    LATERAL (SELECT string_agg(turn_number(id::uuid)::text, ' ') FROM unnest(CASE r.field WHEN 'retrieved_turn_ids' THEN string_to_array(r.now, ' ') END) AS id) AS t (turns);
SELECT graph_can_promote(jsonb_set(provenance, '{filters_applied,owner}', 'null'), turn(6)) AS edited, graph_kernel.provenance_reason(jsonb_set(provenance, '{filters_applied,owner}', '"bob"')) AS forged,
       graph_kernel.provenance_reason(jsonb_set(provenance, '{timestamp}', '"now"')) AS timeless FROM owned.kept;
-- REST.
SELECT body -> 'provenance' -> 'filters_applied' -> 'owner' AS owner, json_array_length(body -> 'results') AS results
  FROM unnest('{"{\"owner\": \"bob\"}","{}"}'::jsonb[]) AS o, graph_api_search_global(json_build_object('filter', o, 'query_embedding', ARRAY[1, 6])) AS body;
SELECT code, message, detail FROM test_error($$SELECT graph_api_search_slice(json_build_object('query_embedding', ARRAY[1, 6], 'anchor_turn_id', turn(6), 'owner', null))$$);

-- Who may not read these columns may take slices, and search where nothing is asked of them.
CREATE ROLE owner_reader;
GRANT USAGE ON SCHEMA owned TO owner_reader;
GRANT SELECT (id, parent, embedding, at_zone) ON owned.t TO owner_reader;
SET ROLE owner_reader;
SELECT code FROM test_error('SELECT graph_slice(turn(6))') UNION ALL SELECT code FROM test_error($$SELECT graph_search('{1,6}')$$)
UNION ALL SELECT code FROM test_error($$SELECT graph_search('{1,6}', filter => '{"owner": "alice"}')$$);
RESET ROLE;
-- Nor may a role bind a column that it may not read, whether it is named or recognised.
ALTER TABLE owned.t ADD owner text;
CREATE ROLE owner_binder;
GRANT USAGE ON SCHEMA owned TO owner_binder;
GRANT SELECT (id, parent, embedding, who) ON owned.t TO owner_binder;
GRANT EXECUTE ON FUNCTION graph_kernel.bind_tables TO owner_binder;
SET ROLE owner_binder;
SELECT value, code, message, detail FROM unnest('{"\"who\"","\"mail\"","{\"expression\": \"mail\"}",null}'::text[]) WITH ORDINALITY AS v (value),
    test_error(format('SELECT graph_kernel.bind_tables(''owned.t'', columns => %L, name => ''mine'')', jsonb_build_object('turns', jsonb_build_object(
        'parents', '[{"parent": "parent", "edge_type": "reply"}]'::jsonb) || CASE WHEN value IS NULL THEN '{}' ELSE jsonb_build_object('owner', value::jsonb) END))) ORDER BY ordinality;
RESET ROLE;
SELECT graph_kernel.unbind_tables();
SELECT graph_kernel.unbind_tables('mine');
DROP OWNED BY owner_reader, owner_binder;
DROP ROLE owner_reader, owner_binder;
DROP SCHEMA owned CASCADE;
