-- Promise: an expression in a mapping consists of columns, constants, and immutable parts of the server and of this
-- extension. All else is refused when the tables are bound, and whenever they are read.
CREATE SCHEMA foreign_parts;
CREATE SCHEMA app;
CREATE FUNCTION foreign_parts.f(text) RETURNS text LANGUAGE sql IMMUTABLE AS 'SELECT $1';
CREATE FUNCTION foreign_parts.same(text, text) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT true';
CREATE OPERATOR foreign_parts.=== (LEFTARG = text, RIGHTARG = text, FUNCTION = foreign_parts.same);
CREATE DOMAIN foreign_parts.checked AS text CHECK (foreign_parts.same(value, 'x'));
CREATE TYPE foreign_parts.pair AS (a text);
CREATE TYPE foreign_parts.label AS ENUM ('a', 'b');
CREATE TYPE foreign_parts.text_range AS RANGE (subtype = text);
CREATE TABLE app.messages (
    id uuid PRIMARY KEY, body text, key text, n integer, j json, at timestamptz, list text[],
    checked foreign_parts.checked, label foreign_parts.label, pair foreign_parts.pair);
CREATE TABLE app.links (parent_turn_id uuid, child_turn_id uuid);
CREATE FUNCTION pg_temp.bind(key text, expression text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    refused record;
BEGIN
    SELECT * INTO refused FROM test_error(format('SELECT graph_kernel.bind_tables(%L, %L, %L)', 'app.messages', 'app.links',
        jsonb_build_object('turns', jsonb_build_object(key, jsonb_build_object('expression', expression)))));
    IF refused.code <> '00000' THEN
        RETURN format('%s %s %s', refused.code, refused.detail, regexp_replace(refused.message, '^expression of "\w+" in turns ', ''));
    END IF;
    RETURN (SELECT resolved #>> ARRAY['turns', key, 'expression'] FROM graph_kernel.binding WHERE is_current AND name = 'default');
END $$;
SET client_min_messages = warning;
-- What is taken, as it is kept.
SELECT expression, pg_temp.bind('role', expression) FROM unnest(ARRAY[
    'body', 'messages.body', 'app.messages.body', 'body -- comment', '''user''', 'null', 'body || key', 'n::text', 'lower(body)', 'coalesce(body, key)',
    'greatest(body, key)', 'nullif(body, '''')', 'CASE WHEN body LIKE ''a%'' THEN ''user'' ELSE ''tool'' END', 'CASE key WHEN ''ai'' THEN ''assistant'' END',
    'j ->> ''a''', 'j #>> ''{}''', 'j::text', 'list[1]', 'checked', 'checked || body', 'label', 'graph_turn_id(body, ''-'', key)::text', 'graph_content_hash(body)',
    'body::numeric::text', 'body::varchar(4)'
]) AS expression;
SELECT expression, pg_temp.bind('created_at', expression) FROM unnest(ARRAY['at', 'to_timestamp(n)', 'to_timestamp(n / 1000.0)']) AS expression;
-- What is not the server's own or this extension's.
SELECT expression, pg_temp.bind('role', expression) FROM unnest(ARRAY[
    'foreign_parts.f(body)', 'body OPERATOR(foreign_parts.===) body', 'body OPERATOR(pg_catalog.foreign_parts.===) body', 'CASE WHEN body OPERATOR(foreign_parts.===) key THEN key END',
    'CASE WHEN satisfies_hash_partition(n::oid, 1, 0, body) THEN body END', 'body::foreign_parts.checked', '(pair).a', 'graph_kernel_version()', 'CASE WHEN graph_kernel_version() <> ''0.3.0'' THEN body END',
    'encode(unknownsend(''a''), ''hex'')', 'foreign_parts.text_range(body, key)::text', 'CASE WHEN label = ''a'' THEN body END'
]) AS expression;
-- A type is looked for before anything is analysed, and once.
SELECT pg_temp.bind('role', 'CASE WHEN lower(1, 2) IS NULL OR (''(x)'')::foreign_parts.to_come IS NULL THEN body END');
-- What is not immutable.
SELECT expression, pg_temp.bind('role', expression) FROM unnest(ARRAY[
    'extract(day FROM age(at, at))::text', 'encode(json_send(j), ''hex'')', 'pg_walfile_name(body::pg_lsn)',
    'concat(body)', 'format(''%s'', body)', 'label::text', 'pair::text', 'messages::text', 'at::text', 'to_char(at, ''YYYY'')', 'list::text',
    'array_to_string(list, '','')', 'random()::numeric::text', 'now()::text', 'graph_policy(''default'')::text', 'current_setting(''x'')', 'current_user'
]) AS expression;
SELECT expression, pg_temp.bind('created_at', expression) FROM unnest(ARRAY['body::timestamptz', 'at + interval ''1 day''']) AS expression;
-- What is not one scalar expression over a row's columns.
SELECT expression, pg_temp.bind('role', expression) FROM unnest(ARRAY[
    '*', 'messages.*', 'messages', 'ctid::text', 'row(body)', '', ' ', 'body, key', 'body AS x', 'body FROM app.links', 'body) FROM app.links --',
    'body; SELECT 1', 'DISTINCT body', 'body LIMIT 1', 'body UNION SELECT body', 'body INTO x', '(SELECT body)', 'max(body)', 'row_number() OVER ()',
    'unnest(list)', '$1', 'nope', 'nope(body)'
]) AS expression;
-- Of another type than the key has.
SELECT key, expression, pg_temp.bind(key, expression) FROM (VALUES
    ('id', 'body'), ('id', 'null'), ('role', 'n'), ('salience', 'n / 5.0'), ('created_at', 'n'), ('trajectory_depth', 'body')) AS v (key, expression);
-- Too much of it.
SELECT pg_temp.bind('role', repeat(' ', 16381) || 'body');
SELECT code, message, detail FROM test_error($$SELECT graph_kernel.bind_tables('app.messages', 'app.links', jsonb_build_object('turns',
    jsonb_build_object('parents', array_fill('{"parent": "id", "edge_type": "reply"}'::jsonb, ARRAY[17]))))$$);
-- A column's change is seen: the expression is checked at each resolution.
SELECT pg_temp.bind('role', 'lower(key)');
INSERT INTO app.messages (id, key) VALUES (turn(1), 'USER');
SELECT role FROM graph_slice_turns(turn(1));
ALTER TABLE app.messages RENAME key TO name;
SELECT code, message, detail FROM test_error('SELECT graph_slice(turn(1))');
ALTER TABLE app.messages RENAME name TO key;
ALTER TABLE app.messages ALTER key TYPE foreign_parts.label USING 'a';
SELECT code, message, detail FROM test_error('SELECT graph_slice(turn(1))');
SELECT ok, detail FROM graph_check() WHERE check_name = 'bound_tables';
-- One that raises on a row: the error says whom to ask, and graph_check names key and row.
SELECT pg_temp.bind('trajectory_depth', '(10 / n)::bigint');
SELECT graph_slice(turn(1)) IS NOT NULL AS no_number;
UPDATE app.messages SET n = 0;
SELECT code, message, detail, hint FROM test_error('SELECT graph_slice(turn(1))');
SELECT ok, detail, regexp_replace(hint, '\(\d+,\d+\)', '(page,row)') AS hint FROM graph_check() WHERE check_name = 'raising_expression';
SELECT graph_kernel.unbind_tables();
DROP SCHEMA app, foreign_parts CASCADE;

-- The index of the hint is found whatever the server prints of its expression: none is asked for twice.
CREATE SCHEMA kinds;
CREATE DOMAIN kinds.label AS text;
CREATE TYPE kinds.mood AS ENUM ('calm', 'glad');
CREATE TABLE kinds.t (
    id uuid PRIMARY KEY, parent uuid, other uuid, a text, b varchar(40), c char(8), d kinds.label, m kinds.mood, n integer,
    k bigint, f boolean, r numeric, j jsonb, js json, tags text[], at timestamptz, "Odd name" text
);
CREATE TABLE kinds.expression (number integer GENERATED ALWAYS AS IDENTITY, kind text, key text, expression text);
INSERT INTO kinds.expression (kind, key, expression) VALUES
    ('column', 'session_id', 'a'), ('column to quote', 'session_id', '"Odd name"'), ('varchar', 'session_id', 'b::text'),
    ('char', 'session_id', 'c::text'), ('domain', 'session_id', 'd'), ('function of a domain', 'session_id', 'upper(d)'),
    ('enum', 'session_id', 'm'), ('cast', 'session_id', 'n::text'), ('CASE', 'session_id', 'CASE WHEN n > 1 THEN a ELSE b END'),
    ('CASE of a value', 'session_id', 'CASE n WHEN 1 THEN a WHEN 2 THEN d END'), ('COALESCE', 'session_id', 'COALESCE(a, b)'),
    ('NULLIF', 'session_id', 'NULLIF(a, '''')'), ('GREATEST', 'session_id', 'GREATEST(a, b)'),
    ('LEAST', 'session_id', 'LEAST(a, d)'), ('function', 'session_id', 'lower(a)'), ('nested function', 'session_id', 'btrim(lower(b))'),
    ('operator', 'session_id', 'a || b'), ('operators', 'session_id', 'a || '':'' || b'), ('json', 'session_id', 'j ->> ''session'''),
    ('json path', 'session_id', 'j #>> ''{a,b}'''), ('json text', 'session_id', 'js ->> ''session'''),
    ('IN', 'session_id', 'CASE WHEN a IN (''x'', ''y'') THEN a END'), ('IN of varchar', 'session_id', 'CASE WHEN b IN (''x'', ''y'') THEN b END'),
    ('IS NULL', 'session_id', 'CASE WHEN a IS NULL THEN b ELSE a END'), ('IS TRUE', 'session_id', 'CASE WHEN f IS TRUE THEN a END'),
    ('IS DISTINCT', 'session_id', 'CASE WHEN a IS DISTINCT FROM b THEN a END'), ('AND, OR, NOT', 'session_id', 'CASE WHEN (n = 1 OR f) AND NOT f THEN a END'),
    ('BETWEEN', 'session_id', 'CASE WHEN n BETWEEN 1 AND 5 THEN a END'), ('LIKE', 'session_id', 'CASE WHEN a LIKE ''x\_%'' THEN a END'),
    ('COLLATE', 'session_id', 'a COLLATE "C"'), ('COLLATE inside', 'session_id', 'lower(a COLLATE "C")'), ('element', 'session_id', 'tags[1]'),
    ('array', 'session_id', '(ARRAY[a, b])[n]'), ('constant', 'session_id', '''one'' || n::text'), ('numeric', 'session_id', '(r + 1.5)::text'),
    ('substring', 'session_id', 'substring(a FROM 1 FOR 3)'), ('backslash', 'session_id', 'replace(a, ''\'', E''\n'')'),
    ('parent: COALESCE', 'parent', 'COALESCE(parent, other)'), ('parent: NULLIF', 'parent', 'NULLIF(parent, other)'),
    ('parent: CASE', 'parent', 'CASE WHEN f THEN parent ELSE other END'), ('parent: id of another', 'parent', 'graph_turn_id(a)'),
    ('parent: id where', 'parent', 'CASE WHEN a <> '''' THEN graph_turn_id(a) END'), ('parent: json', 'parent', '(j ->> ''parent'')::uuid');
CREATE FUNCTION pg_temp.try_kind(key text, expression text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    parent jsonb := CASE key WHEN 'parent' THEN jsonb_build_object('expression', expression) ELSE '"other"' END;
    session jsonb := CASE key WHEN 'session_id' THEN jsonb_build_object('expression', expression) ELSE 'null' END;
    place text := CASE key WHEN 'parent' THEN 'index_edge_parent' ELSE 'index_session' END;
    hint text;
BEGIN
    PERFORM graph_kernel.bind_tables('kinds.t', columns => jsonb_build_object('turns', jsonb_build_object(
        'session_id', session, 'created_at', 'at', 'role', null, 'phase', null, 'salience', null, 'content_text', null,
        'parents', jsonb_build_array(jsonb_build_object('parent', parent, 'edge_type', 'reply')))));
    SELECT c.hint INTO STRICT hint FROM graph_check() AS c WHERE c.check_name = place;
    IF hint IS NULL THEN RETURN 'found before it was made'; END IF;
    EXECUTE replace(hint, 'CONCURRENTLY ', '');
    SELECT c.hint INTO STRICT hint FROM graph_check() AS c WHERE c.check_name = place;
    RETURN coalesce('asked for twice: ' || hint, 'found');
END $$;
SET client_min_messages = warning;
SELECT k.kind, pg_temp.try_kind(k.key, k.expression) FROM kinds.expression AS k ORDER BY k.number;
SELECT count(*) - 1 AS indexes FROM pg_index WHERE indrelid = 'kinds.t'::regclass;
SELECT graph_kernel.unbind_tables();
RESET client_min_messages;
DROP SCHEMA kinds CASCADE;
-- Equal numbers are one id, however they are written, by the expression that is proposed for them.
CREATE TABLE decimals (id numeric PRIMARY KEY, parent_id numeric REFERENCES decimals, body text);
INSERT INTO decimals VALUES (1, NULL, 'first'), (2.0, 1.00, 'second'), (3, 2, 'third');
SELECT message, hint FROM test_error($$SELECT graph_kernel.bind_tables('decimals')$$);
SET client_min_messages = warning;
SELECT graph_kernel.bind_tables('decimals', columns => '{"turns": {"content_text": "body",
    "id": {"expression": "graph_turn_id(trim_scale(id)::text)"},
    "parents": [{"parent": {"expression": "graph_turn_id(trim_scale(parent_id)::text)"}, "edge_type": "reply"}]}}') IS NOT NULL AS bound;
SELECT content FROM graph_messages(graph_turn_id('3'));
SELECT graph_kernel.unbind_tables();
RESET client_min_messages;
DROP TABLE decimals;
