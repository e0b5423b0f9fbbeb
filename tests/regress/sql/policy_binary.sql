-- Promise: binary transfer carries the canonical text and goes through the same validation as text.
SELECT convert_from(slice_policy_send('{"max_nodes": 3}'), 'UTF8') = '{"max_nodes": 3}'::slice_policy::text AS sent_as_text;
CREATE TEMP TABLE policies (n int, policy slice_policy);
INSERT INTO policies VALUES (1, 'default'), (2, 'focused'), (3, 'broad'), (4, NULL), (5, '{"phase_weights": {"planning": -1.5}}');
-- A file that only this server writes and reads.
SELECT current_setting('data_directory') || '/regress_policies.bin' AS file \gset
COPY policies TO :'file' (FORMAT binary);
CREATE TEMP TABLE copied (LIKE policies);
COPY copied FROM :'file' (FORMAT binary);
SELECT n, p.policy = c.policy AS equal, p.policy::text = c.policy::text AS bytes FROM policies AS p JOIN copied AS c USING (n) ORDER BY n;

-- Any text that is a policy may come in binary, any other is refused with the usual error.
CREATE TEMP TABLE single (policy slice_policy);
CREATE FUNCTION pg_temp.receive(payload bytea, file text) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    header bytea := '\x5047434f50590aff0d0a00' || '\x0000000000000000'::bytea;  -- signature, flags, no extension
    large_object oid;
BEGIN
    large_object := lo_from_bytea(0, header || '\x0001' || int4send(length(payload)) || payload || '\xffff');
    PERFORM lo_export(large_object, file);
    PERFORM lo_unlink(large_object);
    EXECUTE format('COPY single FROM %L (FORMAT binary)', file);
    RETURN (SELECT policy FROM single);
EXCEPTION WHEN OTHERS THEN
    RETURN SQLSTATE || ' ' || SQLERRM;
END $$;
\t
\a
SELECT pg_temp.receive('focused', :'file');
TRUNCATE single;
SELECT pg_temp.receive(convert_to(' {"max_nodes" : 3} ', 'UTF8'), :'file');
TRUNCATE single;
SELECT pg_temp.receive('', :'file');
SELECT pg_temp.receive('\x00', :'file');
SELECT pg_temp.receive('{"max_nodes": 3' || '\x00'::bytea || '}', :'file');
SELECT pg_temp.receive('{"max_nodes": "' || '\xff'::bytea || '"}', :'file');
SELECT pg_temp.receive('\xc3', :'file');
SELECT pg_temp.receive(substr(slice_policy_send('default'), 1, 100), :'file');
SELECT pg_temp.receive('\x01' || slice_policy_send('default'), :'file');
SELECT pg_temp.receive(slice_policy_send('default') || '}', :'file');
SELECT pg_temp.receive('{"max_nodes": 0}', :'file');
SELECT pg_temp.receive(convert_to('{' || repeat(' ', 70000) || '}', 'UTF8'), :'file');
\a
\t
SELECT count(*) FROM single;
