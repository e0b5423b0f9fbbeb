-- Calls each immutable function of the server's own with samples of its arguments under two sets of settings, and notes
-- those whose result, or whether there is one, is not the same. Aggregates and functions that return sets are not part
-- of a mapping.
CREATE SCHEMA sweep;
CREATE TABLE sweep.samples (type regtype, text text);
INSERT INTO sweep.samples VALUES
    ('bool', 'true'), ('"char"', '''a'''), ('name', '''aName'''), ('bytea', 'decode(''00ff41'', ''hex'')'),
    ('int2', '1'), ('int4', '1'), ('int4', '3'), ('int8', '2'), ('int8', '-1'), ('numeric', '1.5'),
        ('money', '1.5::numeric'),
    ('float4', '0.1234567'), ('float8', '0.12345678901234567'),
    ('text', '''IST'''), ('text', '''europe/berlin'''), ('text', '''utc'''), ('text', '''Ab"c'''), ('text', '''year'''),
    ('text', '''msk'''), ('text', '''2020-01-02 03:04:05 IST'''), ('text', '''timezone'''), ('text', '''12:30'''),
    ('bpchar', '''aB'''), ('varchar', '''IST'''), ('cstring', '''1'''), ('cstring', '''IST'''),
    ('cstring', '''ä'''), ('unknown', '''ä'''), ('name', '''ä'''), ('text', '''ä'''), ('bpchar', '''ä'''),
   
    ('date', '''2020-03-04'''), ('time', '''03:04:05.6'''), ('timetz', '''03:04:05.6+01'''),
    ('timestamp', '''2020-03-04 05:06:07.8'''), ('interval', '''1 year 5 months 2 days 03:04:05'''),
    ('timestamptz', '''2020-03-29 00:30:00+00'''), ('timestamptz', '''2019-12-31 23:30:00+00'''),
    ('bit', 'B''1'''), ('varbit', 'B''101'''), ('uuid', '''00000000-0000-4000-8000-000000000001'''),
    ('oid', '1'), ('tid', '''(1,2)'''), ('xid', '''5'''), ('xid8', '''5'''), ('cid', '''5'''), ('pg_lsn', '''0/1'''),
    ('oidvector', '''1 2'''), ('int2vector', '''1 2'''), ('pg_snapshot', '''10:20:10,14'''),
        ('txid_snapshot', '''10:20:10,14'''),
    ('json', '''{"ä":[1.5,"x"]}'''), ('xml', '''<a>1</a>'''),
    ('jsonb', '''{"ä":[1.5,"2020-01-02 03:04:05 IST"]}'''), ('jsonb', '''"2020-01-02 10:04:05 IST"'''),
    ('jsonpath', '''$.ä'''), ('jsonpath', '''$[*].datetime()'''),
    ('jsonpath', '''$.datetime("YYYY-MM-DD HH24:MI:SS TZ")'''),
    ('jsonpath',
        '''$.ä[1].datetime("YYYY-MM-DD HH24:MI:SS TZ")
            < "2020-01-02 00:04:05+00".datetime("YYYY-MM-DD HH24:MI:SSTZH")'''),
    ('tsvector', '''ä:1 b'''), ('tsquery', '''ä & b'''), ('regconfig', '''simple'''), ('regdictionary', '''simple'''),
    ('regclass', '''pg_class'''), ('regtype', '''int4'''), ('aclitem', '''=r/postgres'''),
    ('macaddr', '''08:00:2b:01:02:03'''), ('macaddr8', '''08:00:2b:01:02:03:04:05'''), ('inet', '''10.0.0.1/8'''),
        ('cidr', '''10.0.0.0/8'''),
    ('point', 'point(0.12345678901234567, 0.3)'), ('lseg', 'lseg(point(0.12345678901234567, 0.3), point(1, 2))'),
    ('path', '''[(0.12345678901234567,0.3),(1,2)]'''), ('box', '''(0.12345678901234567,0.3),(1,2)'''),
    ('polygon', '''((0.12345678901234567,0.3),(1,2),(3,1))'''), ('line', '''{1,0.12345678901234567,3}'''),
    ('circle', '''<(0.12345678901234567,1),2>'''),
    ('int4range', '''[1,3)'''), ('int8range', '''[1,3)'''), ('numrange', '''[1,3)'''),
        ('daterange', '''[2020-01-01,2021-01-01)'''),
    ('tsrange', '''[2020-01-01,2021-01-01)'''), ('tstzrange', '''[2020-01-01+00,2021-01-01+00)'''),
        ('int4multirange', '''{[1,3)}''');
-- Of polymorphic types.
INSERT INTO sweep.samples
SELECT type::regtype, '0.12345678901234567::float8'
FROM unnest('{anyelement,anynonarray,anycompatible,anycompatiblenonarray,"\"any\""}'::text[]) AS type;
INSERT INTO sweep.samples VALUES
    ('anyarray', 'ARRAY[0.12345678901234567::float8]'), ('anycompatiblearray', 'ARRAY[0.12345678901234567::float8]'),
    ('anyrange', '''[1,3)''::numrange'), ('anycompatiblerange', '''[1,3)''::numrange'),
    ('anymultirange', '''{[1,3)}''::nummultirange'), ('record', 'ROW(0.12345678901234567::float8)');

CREATE FUNCTION sweep.set_all(other boolean) RETURNS void LANGUAGE sql AS $$
    SELECT set_config(name, CASE WHEN other THEN two ELSE one END, false) FROM (VALUES
        ('extra_float_digits', '1', '-10'), ('bytea_output', 'hex', 'escape'), ('quote_all_identifiers', 'off', 'on'),
        ('timezone_abbreviations', 'Default', 'India'), ('DateStyle', 'ISO, MDY', 'German, DMY'),
        ('IntervalStyle', 'postgres', 'iso_8601'), ('array_nulls', 'on', 'off'), ('xmlbinary', 'base64', 'hex'),
        ('xmloption', 'content', 'document'), ('transform_null_equals', 'off', 'on'),
            ('backslash_quote', 'safe_encoding', 'on'),
        ('default_text_search_config', 'pg_catalog.simple', 'pg_catalog.english'), ('lc_monetary', 'C', 'C.UTF-8'),
        ('lc_numeric', 'C', 'C.UTF-8'), ('lc_time', 'C', 'C.UTF-8'), ('client_encoding', 'UTF8', 'LATIN1'),
        ('search_path', 'pg_catalog', 'public, pg_catalog'),
        -- A zone with summer time; then one that abbreviates itself as another is called.
        ('TimeZone', 'UTC', CASE current_setting('sweep.zone', true) WHEN 'posix' THEN '<UTC>+5<EUROPE/BERLIN>+4'
            ELSE 'Asia/Kolkata' END)
    ) AS v (name, one, two) $$;

CREATE TABLE sweep.found (function oid PRIMARY KEY, call text);
CREATE TABLE sweep.called (functions bigint, calls bigint, answered bigint);
-- A transaction each, as others wait for the end of a long one.
CREATE PROCEDURE sweep.run() LANGUAGE plpgsql AS $$
DECLARE
    called record; call text; query text; one record; two record; one_error text; two_error text;
    functions bigint := 0; calls bigint := 0; answered bigint := 0; has_answered boolean;
BEGIN
    FOR called IN
        SELECT p.oid, p.proname, p.proargtypes, p.pronargs, p.prorettype FROM pg_proc AS p
        WHERE p.oid < 16384 AND p.provolatile = 'i' AND p.prokind = 'f' AND NOT p.proretset AND p.pronargs BETWEEN 1
            AND 4
          AND p.prorettype NOT IN ('trigger'::regtype, 'internal'::regtype)
              AND 'internal'::regtype <> ALL (p.proargtypes)
          AND NOT EXISTS (SELECT FROM sweep.found AS f WHERE f.function = p.oid)
    LOOP
        has_answered := false;
        FOR call IN
            WITH RECURSIVE chosen AS (
                SELECT 0 AS count, ARRAY[]::text[] AS arguments
                UNION ALL
                SELECT c.count + 1,
                       c.arguments || CASE WHEN t.typtype = 'p' AND t.typname NOT IN ('cstring', 'unknown') THEN s.text
                                           ELSE format('(%s)::%s', s.text, s.type) END
                FROM chosen AS c JOIN sweep.samples AS s ON s.type = called.proargtypes[c.count] JOIN pg_type AS t
                    ON t.oid = s.type
                WHERE c.count < called.pronargs
            )
            SELECT array_to_string(arguments, ', ') FROM chosen WHERE count = called.pronargs LIMIT 250
        LOOP
            query := format('pg_catalog.%I(%s)', called.proname, call);
            IF called.prorettype = 'cstring'::regtype THEN
                query := format('pg_catalog.textin(%s)', query);
            END IF;
            query := format('SELECT %s AS value', query);
            calls := calls + 1;
            one_error := NULL;
            two_error := NULL;
            BEGIN
                PERFORM sweep.set_all(false);
                EXECUTE query INTO one;
            EXCEPTION WHEN OTHERS THEN one_error := SQLSTATE; END;
            BEGIN
                PERFORM sweep.set_all(true);
                EXECUTE query INTO two;
            EXCEPTION WHEN OTHERS THEN two_error := SQLSTATE; END;
            PERFORM sweep.set_all(false);
            CONTINUE WHEN one_error IS NOT NULL AND two_error IS NOT NULL;
            has_answered := true;
            answered := answered + 1;
            IF one_error IS DISTINCT FROM two_error OR one *<> two THEN
                INSERT INTO sweep.found VALUES (called.oid, call);
                EXIT;
            END IF;
        END LOOP;
        functions := functions + has_answered::int;
        COMMIT;
    END LOOP;
    INSERT INTO sweep.called VALUES (functions, calls, answered);
END $$;
