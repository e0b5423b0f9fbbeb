SET LOCAL search_path TO pg_catalog, pg_temp; -- what bodies parsed now are resolved by

-- graph_content_hash, under a name that no other function can take.
CREATE FUNCTION graph_kernel.content_hash(content text) RETURNS text
    AS 'MODULE_PATHNAME', 'graph_content_hash_wrapper'
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 100;
COMMENT ON FUNCTION graph_kernel.content_hash(text) IS 'graph_content_hash, for statements';

-- What statements make of contents as they are stored, where bytes that are not UTF-8 are not an error: they have no
-- hash, and stand for U+FFFD.
CREATE FUNCTION graph_kernel.content_hash_or_null(content text) RETURNS text
    AS 'MODULE_PATHNAME', 'content_hash_or_null_wrapper'
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 100;
COMMENT ON FUNCTION graph_kernel.content_hash_or_null(text) IS
    'graph_content_hash, and NULL for a content that is not UTF-8';
CREATE FUNCTION graph_kernel.is_text(content text) RETURNS boolean
    AS 'MODULE_PATHNAME', 'is_text_wrapper'
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 10;
COMMENT ON FUNCTION graph_kernel.is_text(text) IS 'whether the bytes of a text are UTF-8';
CREATE FUNCTION graph_kernel.name_hash(name text) RETURNS text
    AS 'MODULE_PATHNAME', 'name_hash_wrapper'
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 100;
COMMENT ON FUNCTION graph_kernel.name_hash(text) IS
    'what stands for a long name: the SHA-256 of its bytes, which need not be UTF-8';
CREATE FUNCTION graph_kernel.name_of(bytes bytea) RETURNS name
    AS 'MODULE_PATHNAME', 'name_of_wrapper'
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 10;
COMMENT ON FUNCTION graph_kernel.name_of(bytea) IS
    'the name of these bytes, which need not be UTF-8; NULL where no name has them';
CREATE FUNCTION graph_kernel.char_count(content text) RETURNS integer
    AS 'MODULE_PATHNAME', 'char_count_wrapper'
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 10;
COMMENT ON FUNCTION graph_kernel.char_count(text) IS
    'how many characters a text has; bytes that are not UTF-8 are replaced';
CREATE FUNCTION graph_kernel.json_text(document jsonb) RETURNS text
    AS 'MODULE_PATHNAME', 'json_text_wrapper'
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 10 SET search_path = pg_catalog, pg_temp;
COMMENT ON FUNCTION graph_kernel.json_text(jsonb) IS
    'the text of a jsonb, its bytes that are not UTF-8 replaced; NULL where it is longer than 64 MiB, or than 32 times '
    'its size and 1 MiB';
CREATE FUNCTION graph_kernel.json_text(document json) RETURNS text
    AS 'MODULE_PATHNAME', 'json_as_text_wrapper'
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 10;
COMMENT ON FUNCTION graph_kernel.json_text(json) IS
    'the text of a json, its bytes that are not UTF-8 replaced; NULL where it is longer than 64 MiB';
CREATE FUNCTION graph_kernel.json_to_look_through(document jsonb) RETURNS text
    AS 'MODULE_PATHNAME', 'json_to_look_through_wrapper'
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 10 SET search_path = pg_catalog, pg_temp;
COMMENT ON FUNCTION graph_kernel.json_to_look_through(jsonb) IS
    'as json_text, with null for each number of more than 64 bytes';
CREATE FUNCTION graph_kernel.text_prefix(content text, chars integer) RETURNS text
    AS 'MODULE_PATHNAME', 'text_prefix_wrapper'
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 10;
COMMENT ON FUNCTION graph_kernel.text_prefix(text, integer) IS
    'the first characters of a text; bytes that are not UTF-8 are replaced';

-- Parts of the backfill: some turns after an id; hashes written where no other transaction holds the turn; one
-- turn's hash written, after waiting for it. They read and write the bound table if it still is this one.
CREATE FUNCTION graph_kernel.content_page(graph text, turns_table oid, after_id uuid, most integer)
RETURNS TABLE (turns bigint, last_id uuid, stale uuid[], not_text bigint)
    AS 'MODULE_PATHNAME', 'content_page_wrapper'
    LANGUAGE c STABLE PARALLEL RESTRICTED ROWS 1 SET search_path = pg_catalog, pg_temp;
COMMENT ON FUNCTION graph_kernel.content_page(text, oid, uuid, integer) IS
    'turns after an id, and those whose content hash is missing or wrong';
CREATE FUNCTION graph_kernel.rehash_free_turns(graph text, turns_table oid, turns uuid[])
RETURNS TABLE (changed bigint, held uuid[])
    AS 'MODULE_PATHNAME', 'rehash_free_turns_wrapper'
    LANGUAGE c VOLATILE STRICT ROWS 1 SET search_path = pg_catalog, pg_temp;
COMMENT ON FUNCTION graph_kernel.rehash_free_turns(text, oid, uuid[]) IS
    'writes the content hashes of those of these turns that no other transaction holds';
CREATE FUNCTION graph_kernel.rehash_turn(graph text, turns_table oid, turn uuid) RETURNS bigint
    AS 'MODULE_PATHNAME', 'rehash_turn_wrapper'
    LANGUAGE c VOLATILE STRICT SET search_path = pg_catalog, pg_temp;
COMMENT ON FUNCTION graph_kernel.rehash_turn(text, oid, uuid) IS
    'writes the content hash of a turn, after waiting for a transaction that has locked it';

-- Two arguments: the content column and the hash column. The library writes the hash where both are of type text or
-- varchar, as it does so many times faster. Else the function below does, or says what is wrong.
CREATE FUNCTION @extschema@.graph_content_hash_trigger() RETURNS trigger
    AS 'MODULE_PATHNAME', 'graph_content_hash_trigger_wrapper'
    LANGUAGE c;
COMMENT ON FUNCTION @extschema@.graph_content_hash_trigger() IS
    'trigger: keeps the hash of a row, its second argument, that of the content, its first one';

-- It runs with the writer's rights. The content is read through its type's output function: a type's owner could give
-- it a cast, which to_jsonb would call.
CREATE FUNCTION graph_kernel.content_hash_trigger_internal() RETURNS trigger
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    fault text;
    fault_code text := 'invalid_parameter_value';
    place regclass;
    guard regproc;
    content text;
    old_content text;
    read_content text;
BEGIN
    IF TG_WHEN <> 'BEFORE' OR TG_LEVEL <> 'ROW' OR TG_OP NOT IN ('INSERT', 'UPDATE') THEN
        RAISE EXCEPTION 'graph_content_hash_trigger() must run BEFORE INSERT OR UPDATE FOR EACH ROW'
            USING ERRCODE = 'trigger_protocol_violated', DETAIL = 'INVALID_TRIGGER';
    END IF;
    IF TG_NARGS <> 2 THEN
        fault := format('trigger %s takes two arguments, the names of the content column and of the hash column,'
                        ' not %s',
                        TG_NAME, TG_NARGS);
    ELSIF TG_ARGV[0] = TG_ARGV[1] THEN
        fault := format('column "%s" of table %s is both the content and its hash', TG_ARGV[0], TG_RELID::regclass);
    ELSE
        -- The value of a generated column comes after the triggers.
        SELECT CASE WHEN a.attname IS NULL THEN format('table %s has no column "%s"', TG_RELID::regclass, n.name)
                    ELSE format('column "%s" of table %s is generated', n.name, TG_RELID::regclass) END,
               CASE WHEN a.attname IS NULL THEN 'undefined_column' ELSE fault_code END
        INTO fault, fault_code
        FROM unnest(ARRAY[TG_ARGV[0], TG_ARGV[1]]) WITH ORDINALITY AS n (name, position)
        LEFT JOIN pg_attribute AS a ON a.attrelid = TG_RELID AND a.attname = n.name AND a.attnum > 0
            AND NOT a.attisdropped
        WHERE a.attname IS NULL OR a.attgenerated <> ''
        ORDER BY n.position LIMIT 1;
    END IF;
    IF fault IS NOT NULL THEN
        -- That of a partition is changed on the table that it was created on.
        SELECT g.tgrelid, g.tgfoid INTO place, guard
        FROM unnest(array_prepend(TG_RELID::regclass, ARRAY(SELECT pg_partition_ancestors(TG_RELID))))
            WITH ORDINALITY AS a (relation, distance)
        JOIN pg_trigger AS g ON g.tgrelid = a.relation AND g.tgname = TG_NAME AND g.tgparentid = 0
        ORDER BY a.distance LIMIT 1;
        RAISE EXCEPTION '%', fault
            USING ERRCODE = fault_code, DETAIL = 'INVALID_TRIGGER',
                  HINT = format('CREATE OR REPLACE TRIGGER %I BEFORE INSERT OR UPDATE ON %s FOR EACH ROW'
                                ' EXECUTE FUNCTION'
                                ' %s(''content_column'', ''hash_column'');', TG_NAME, place, guard);
    END IF;
    read_content := format('SELECT CASE WHEN ($1).%1$I IS NOT NULL THEN format(''%%s'', ($1).%1$I) END', TG_ARGV[0]);
    EXECUTE read_content INTO content USING NEW;
    -- A row without content keeps the hash that it is written with, unless the update takes the content away.
    IF content IS NULL THEN
        IF TG_OP = 'UPDATE' THEN
            EXECUTE read_content INTO old_content USING OLD;
        END IF;
        IF old_content IS NULL THEN
            RETURN NEW;
        END IF;
    END IF;
    NEW := jsonb_populate_record(NEW, jsonb_build_object(TG_ARGV[1], graph_kernel.content_hash(content)));
    RETURN NEW;
END
$$;
COMMENT ON FUNCTION graph_kernel.content_hash_trigger_internal() IS
    'what graph_content_hash_trigger does for columns that the library does not write';

-- COMMIT forbids a SET clause, so all names, types and operators say their schema: record has no name with one. COMMIT
-- also gives up the lock that makes DROP EXTENSION wait, so each transaction takes it: it locks the table named
-- binding, and goes on if a table that the extension has in dumps is locked. No other function may ask that, as it
-- could be anybody's by then: both procedures that commit do. Each page is a range of ids, read first; only rows that
-- have to be written are locked. The procedure never waits for a row while it holds another, so it causes no deadlock.
-- A hash is computed from the row as it is when it is written, so no writer's change is lost.
CREATE PROCEDURE graph_kernel.backfill_content_hashes(batch integer DEFAULT 10000)
LANGUAGE plpgsql
AS $$
DECLARE
    page_turns bigint;
    page_not_text bigint;
    stale pg_catalog.uuid[];
    page_written bigint;
    page_held pg_catalog.uuid[];
    graph pg_catalog.text;
    turns_table pg_catalog.regclass;
    total bigint;
    done bigint := 0;
    written bigint := 0;
    not_text bigint := 0;
    after_id pg_catalog.uuid;
    has_more boolean := true;
    waiting pg_catalog.uuid[] := '{}';
    waited integer := 0; -- how many of them
    held boolean;
    is_held CONSTANT pg_catalog.text := $query$
        SELECT EXISTS (
            SELECT FROM pg_catalog.pg_locks AS l
            JOIN pg_catalog.pg_extension AS x ON l.relation OPERATOR(pg_catalog.=) ANY (x.extconfig)
            JOIN pg_catalog.pg_database AS d ON d.oid OPERATOR(pg_catalog.=) l.database
            WHERE l.pid OPERATOR(pg_catalog.=) pg_catalog.pg_backend_pid() AND l.granted
              AND d.datname OPERATOR(pg_catalog.=) pg_catalog.current_database()
              AND x.extname OPERATOR(pg_catalog.=) 'graph_kernel')
    $query$;
    began timestamp with time zone := pg_catalog.clock_timestamp();
    seconds double precision;
    check_hint pg_catalog.text;
BEGIN
    IF (batch OPERATOR(pg_catalog.>=) 1 AND batch OPERATOR(pg_catalog.<=) 1000000) IS NOT TRUE THEN
        RAISE EXCEPTION 'batch must be between 1 and 1000000'
            USING ERRCODE = 'invalid_parameter_value', DETAIL = 'INVALID_BATCH';
    END IF;
    WHILE has_more OR waited OPERATOR(pg_catalog.<) pg_catalog.cardinality(waiting) LOOP
        LOCK TABLE graph_kernel.binding IN ACCESS SHARE MODE;
        EXECUTE is_held INTO held;
        IF NOT held THEN
            RAISE EXCEPTION 'extension graph_kernel was dropped'
                USING ERRCODE = 'object_not_in_prerequisite_state', DETAIL = 'GRAPH_TABLES';
        END IF;
        IF turns_table IS NULL THEN
            graph := graph_kernel.chosen_graph();
            turns_table := (graph_kernel.describe_graph(graph) OPERATOR(pg_catalog.#>>) '{turns,oid}')::pg_catalog.oid;
            IF pg_catalog.row_security_active(turns_table) THEN
                RAISE NOTICE 'row security hides turns from this role: they are left as they are';
            END IF;
            total := graph_kernel.count_found(graph, 'turns');
            check_hint := pg_catalog.format(
                'SELECT * FROM %s() WHERE check_name OPERATOR(pg_catalog.=) ''contents_not_text'';',
                graph_kernel.own_name('graph_check'));
        END IF;

        -- Rows that other transactions held are waited for at the end, one row in a transaction.
        IF NOT has_more THEN
            waited := waited OPERATOR(pg_catalog.+) 1;
            written := written OPERATOR(pg_catalog.+) graph_kernel.rehash_turn(graph, turns_table, waiting[waited]);
            COMMIT;
            IF waited OPERATOR(pg_catalog.=) pg_catalog.cardinality(waiting) THEN
                RAISE NOTICE 'content hashes: % written', written;
            END IF;
            CONTINUE;
        END IF;

        SELECT p.turns, p.last_id, p.stale, p.not_text INTO page_turns, after_id, stale, page_not_text
        FROM graph_kernel.content_page(graph, turns_table, after_id, batch) AS p;
        done := done OPERATOR(pg_catalog.+) page_turns;
        not_text := not_text OPERATOR(pg_catalog.+) page_not_text;
        IF pg_catalog.cardinality(stale) OPERATOR(pg_catalog.>) 0 THEN
            SELECT w.changed, w.held INTO page_written, page_held
            FROM graph_kernel.rehash_free_turns(graph, turns_table, stale) AS w;
            written := written OPERATOR(pg_catalog.+) page_written;
            waiting := waiting OPERATOR(pg_catalog.||) page_held;
        END IF;
        has_more := after_id IS NOT NULL;
        COMMIT;

        seconds := pg_catalog.date_part('epoch', pg_catalog.clock_timestamp() OPERATOR(pg_catalog.-) began);
        RAISE NOTICE 'content hashes: % of % turns, % written, % turns/s, % s left', done, total, written,
            pg_catalog.round(done OPERATOR(pg_catalog./) GREATEST(seconds, 0.001)),
            pg_catalog.ceil(seconds OPERATOR(pg_catalog.*) GREATEST(total OPERATOR(pg_catalog.-) done, 0)
                            OPERATOR(pg_catalog./) GREATEST(done, 1));
        IF NOT has_more AND not_text OPERATOR(pg_catalog.>) 0 THEN
            RAISE NOTICE 'content hashes: % turns have a content that is not UTF-8: they are left as they are', not_text
                USING DETAIL = 'INVALID_TEXT', HINT = check_hint;
        END IF;
        IF NOT has_more AND waiting OPERATOR(pg_catalog.<>) '{}' THEN
            RAISE NOTICE 'content hashes: waiting for % turns that other transactions hold',
                pg_catalog.cardinality(waiting);
        END IF;
    END LOOP;
END
$$;
COMMENT ON PROCEDURE graph_kernel.backfill_content_hashes(integer) IS
    'writes content hashes that are missing or wrong, batch by batch';

SET LOCAL search_path TO @extschema@, pg_temp;
