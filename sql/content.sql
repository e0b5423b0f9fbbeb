SET LOCAL search_path TO pg_catalog, pg_temp; -- what bodies parsed now are resolved by

-- graph_content_hash, by a name that nobody can put another function behind.
CREATE FUNCTION graph_kernel.content_hash(content text) RETURNS text
    AS 'MODULE_PATHNAME', 'graph_content_hash_wrapper'
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 100;

-- The bound turns as audit and backfill read and write them: names as they stand in a statement.
CREATE FUNCTION graph_kernel.describe_content(
    expected regclass DEFAULT NULL, -- else an error
    OUT turns regclass,
    OUT from_turns text,            -- with alias t
    OUT id text,
    OUT stored text,                -- the hash and the content as texts
    OUT content text,
    OUT stale text,                 -- a condition: the hash is missing or not that of the content
    OUT rehash text                 -- an UPDATE, to be continued
)
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    graph jsonb := graph_kernel.describe_graph() -> 'turns';
    missing text := (SELECT min(k.key) FROM jsonb_each(graph -> 'columns') AS k
                     WHERE k.key IN ('content_hash', 'content_text') AND k.value = 'null');
BEGIN
    turns := (graph ->> 'oid')::oid;
    IF turns <> expected THEN
        RAISE EXCEPTION 'other tables were bound while content hashes were written'
            USING ERRCODE = 'object_not_in_prerequisite_state', DETAIL = 'GRAPH_TABLES',
                  HINT = 'CALL graph_kernel.backfill_content_hashes();';
    END IF;
    IF missing IS NOT NULL THEN
        RAISE EXCEPTION 'table % has no column for %', turns, missing
            USING ERRCODE = 'undefined_column', DETAIL = 'GRAPH_TABLES',
                  HINT = format('ALTER TABLE %s ADD COLUMN %I text;', turns, missing)
                         || ' or name the column with graph_kernel.bind_tables.';
    END IF;
    from_turns := graph ->> 'from';
    id := graph #>> '{expressions,id}';
    stored := graph #>> '{expressions,content_hash}';
    content := graph #>> '{expressions,content_text}';
    stale := format('%2$s IS NOT NULL AND (%1$s OPERATOR(pg_catalog.=) graph_kernel.content_hash(%2$s)) IS NOT TRUE',
                    stored, content);
    rehash := format('UPDATE %s AS t SET %I = graph_kernel.content_hash(%s)',
                     from_turns, graph #>> '{columns,content_hash}', content);
END
$$;

-- Turns whose stored hash is not that of their content. Invoker's rights: it sees what slices see. Called while
-- DROP EXTENSION waits.
CREATE FUNCTION graph_kernel.audit_content(limit_count bigint)
RETURNS TABLE (turn_id uuid, stored text, computed text)
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    d record;
BEGIN
    SELECT * INTO d FROM graph_kernel.describe_content();
    RETURN QUERY EXECUTE format(
        'SELECT (%1$s)::uuid, (%2$s)::text, graph_kernel.content_hash(%3$s) FROM %4$s AS t WHERE %5$s ORDER BY 1 LIMIT $1',
        d.id, d.stored, d.content, d.from_turns, d.stale)
        USING limit_count;
END
$$;

CREATE FUNCTION @extschema@.graph_content_audit(limit_count bigint DEFAULT NULL)
RETURNS TABLE (turn_id uuid, stored text, computed text)
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT FROM graph_kernel.binding LIMIT 0; -- DROP EXTENSION waits
    SELECT a.turn_id, a.stored, a.computed FROM graph_kernel.audit_content($1) AS a;
END;

-- Arguments: the content column and the hash column; without, those of the bound table, or
-- content_text and content_hash. It runs with the writer's rights. The content is read through its type's
-- output function: a type's owner could give it a cast, which to_jsonb would call.
CREATE FUNCTION graph_kernel.content_hash_trigger() RETURNS trigger
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    names text[];
    lacking text;
    content text;
BEGIN
    IF TG_WHEN <> 'BEFORE' OR TG_LEVEL <> 'ROW' OR TG_OP NOT IN ('INSERT', 'UPDATE') THEN
        RAISE EXCEPTION 'content_hash_trigger() must run BEFORE INSERT OR UPDATE FOR EACH ROW'
            USING ERRCODE = 'trigger_protocol_violated', DETAIL = 'INVALID_TRIGGER';
    END IF;
    CASE TG_NARGS
        WHEN 2 THEN
            names := ARRAY[TG_ARGV[0], TG_ARGV[1]];
        WHEN 0 THEN
            names := (SELECT ARRAY[b.columns #>> '{turns,content_text}', b.columns #>> '{turns,content_hash}']
                      FROM graph_kernel.binding AS b
                      WHERE b.turns = TG_RELID
                         OR b.turns IN (SELECT a.relid FROM pg_partition_ancestors(TG_RELID) AS a));
            names := ARRAY[coalesce(names[1], 'content_text'), coalesce(names[2], 'content_hash')];
        ELSE
            RAISE EXCEPTION 'trigger % has bad arguments', TG_NAME
                USING ERRCODE = 'invalid_parameter_value', DETAIL = 'INVALID_TRIGGER',
                      HINT = 'graph_kernel.content_hash_trigger([''content_column'', ''hash_column''])';
    END CASE;
    SELECT n.name INTO lacking FROM unnest(names) WITH ORDINALITY AS n (name, position)
    WHERE NOT EXISTS (SELECT FROM pg_attribute AS a WHERE a.attrelid = TG_RELID AND a.attname = n.name
                      AND a.attnum > 0 AND NOT a.attisdropped)
    ORDER BY n.position LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'table % has no column "%"', TG_RELID::regclass, lacking
            USING ERRCODE = 'undefined_column', DETAIL = 'INVALID_TRIGGER',
                  HINT = 'Name the columns: graph_kernel.content_hash_trigger(''content_column'', ''hash_column'').';
    END IF;
    EXECUTE format('SELECT CASE WHEN ($1).%1$I IS NOT NULL THEN format(''%%s'', ($1).%1$I) END', names[1])
        INTO content USING NEW;
    NEW := jsonb_populate_record(NEW, jsonb_build_object(names[2], graph_kernel.content_hash(content)));
    RETURN NEW;
END
$$;

-- COMMIT forbids a SET clause, so all names and operators say their schema. COMMIT also gives up the lock that
-- makes DROP EXTENSION wait, so each batch takes it: it locks what is called binding, and goes on if it holds the
-- extension's table of that name. Each batch is a range
-- of ids, looked at first and locked where it has to be written: the procedure never waits for a
-- row while it holds another, so it ends no writer in a deadlock. What a row gets is computed from
-- the row as it is when it is written, so no writer's change is lost.
CREATE PROCEDURE graph_kernel.backfill_content_hashes(batch integer DEFAULT 10000)
LANGUAGE plpgsql
AS $$
DECLARE
    d record;
    turns pg_catalog.regclass;
    total bigint;
    done bigint := 0;
    written bigint := 0;
    after_id pg_catalog.uuid;   -- the batch's ids are above it
    last_id pg_catalog.uuid;    -- and not above this one; NULL: no bound
    looked_at bigint;
    wrong pg_catalog.uuid[];
    busy pg_catalog.uuid[];
    waiting pg_catalog.uuid[] := '{}';
    one pg_catalog.uuid;
    changed bigint;
    held boolean;
    is_held CONSTANT pg_catalog.text := $query$
        SELECT EXISTS (
            SELECT FROM pg_catalog.pg_locks AS l
            JOIN pg_catalog.pg_class AS c ON c.oid OPERATOR(pg_catalog.=) l.relation
            JOIN pg_catalog.pg_namespace AS n ON n.oid OPERATOR(pg_catalog.=) c.relnamespace
            JOIN pg_catalog.pg_depend AS d ON d.objid OPERATOR(pg_catalog.=) c.oid
            JOIN pg_catalog.pg_extension AS x ON x.oid OPERATOR(pg_catalog.=) d.refobjid
            WHERE l.pid OPERATOR(pg_catalog.=) pg_catalog.pg_backend_pid() AND l.granted
              AND l.database OPERATOR(pg_catalog.=) (SELECT b.oid FROM pg_catalog.pg_database AS b
                                                     WHERE b.datname OPERATOR(pg_catalog.=) pg_catalog.current_database())
              AND n.nspname OPERATOR(pg_catalog.=) 'graph_kernel' AND c.relname OPERATOR(pg_catalog.=) 'binding'
              AND d.classid OPERATOR(pg_catalog.=) 'pg_catalog.pg_class'::pg_catalog.regclass
              AND d.refclassid OPERATOR(pg_catalog.=) 'pg_catalog.pg_extension'::pg_catalog.regclass
              AND d.deptype OPERATOR(pg_catalog.=) 'e' AND x.extname OPERATOR(pg_catalog.=) 'graph_kernel')
    $query$;
    began timestamp with time zone := pg_catalog.clock_timestamp();
    seconds double precision;
BEGIN
    IF batch IS NULL OR batch OPERATOR(pg_catalog.<) 1 THEN
        RAISE EXCEPTION 'batch must be 1 or more'
            USING ERRCODE = 'invalid_parameter_value', DETAIL = 'INVALID_BATCH';
    END IF;
    LOOP
        LOCK TABLE graph_kernel.binding IN ACCESS SHARE MODE;
        EXECUTE is_held INTO held;
        IF NOT held THEN
            RAISE EXCEPTION 'extension graph_kernel was dropped'
                USING ERRCODE = 'object_not_in_prerequisite_state', DETAIL = 'GRAPH_TABLES';
        END IF;
        SELECT * INTO d FROM graph_kernel.describe_content(turns);
        IF turns IS NULL THEN
            turns := d.turns;
            IF pg_catalog.row_security_active(turns) THEN
                RAISE NOTICE 'row security hides turns from this role: they are left as they are';
            END IF;
            EXECUTE pg_catalog.format('SELECT pg_catalog.count(*) FROM %s AS t', d.from_turns) INTO total;
        END IF;

        EXECUTE pg_catalog.format(
            'SELECT %1$s FROM %2$s AS t WHERE $1 IS NULL OR %1$s OPERATOR(pg_catalog.>) $1 ORDER BY %1$s OFFSET $2 LIMIT 1',
            d.id, d.from_turns) INTO last_id USING after_id, batch OPERATOR(pg_catalog.-) 1;
        EXECUTE pg_catalog.format(
            'SELECT pg_catalog.count(*), pg_catalog.array_agg(%1$s) FILTER (WHERE %3$s) FROM %2$s AS t'
            ' WHERE ($1 IS NULL OR %1$s OPERATOR(pg_catalog.>) $1) AND ($2 IS NULL OR %1$s OPERATOR(pg_catalog.<=) $2)',
            d.id, d.from_turns, d.stale) INTO looked_at, wrong USING after_id, last_id;
        done := done OPERATOR(pg_catalog.+) looked_at;
        IF wrong IS NOT NULL THEN
            EXECUTE pg_catalog.format(
                'WITH free AS MATERIALIZED ('
                '    SELECT %1$s AS id FROM %2$s AS t WHERE %1$s OPERATOR(pg_catalog.=) ANY ($1)'
                '    FOR NO KEY UPDATE SKIP LOCKED'
                '), changed AS ('
                '    %3$s FROM free WHERE %1$s OPERATOR(pg_catalog.=) free.id AND %4$s RETURNING 1'
                ') SELECT (SELECT pg_catalog.count(*) FROM changed),'
                '         (SELECT pg_catalog.array_agg(w.id) FROM pg_catalog.unnest($1) AS w (id)'
                '          WHERE NOT EXISTS (SELECT FROM free WHERE free.id OPERATOR(pg_catalog.=) w.id))',
                d.id, d.from_turns, d.rehash, d.stale) INTO changed, busy USING wrong;
            written := written OPERATOR(pg_catalog.+) changed;
            waiting := waiting OPERATOR(pg_catalog.||) busy;
        END IF;
        COMMIT;

        seconds := pg_catalog.date_part('epoch', pg_catalog.clock_timestamp() OPERATOR(pg_catalog.-) began);
        RAISE NOTICE 'content hashes: % of % turns, % written, % turns/s, % s left', done, total, written,
            pg_catalog.round(done OPERATOR(pg_catalog./) GREATEST(seconds, 0.001)),
            pg_catalog.ceil(seconds OPERATOR(pg_catalog.*) GREATEST(total OPERATOR(pg_catalog.-) done, 0)
                            OPERATOR(pg_catalog./) GREATEST(done, 1));
        EXIT WHEN last_id IS NULL;
        after_id := last_id;
    END LOOP;

    -- What other transactions held is waited for now, one row in a transaction.
    IF pg_catalog.cardinality(waiting) OPERATOR(pg_catalog.>) 0 THEN
        RAISE NOTICE 'content hashes: waiting for % turns that other transactions hold',
            pg_catalog.cardinality(waiting);
        FOREACH one IN ARRAY waiting LOOP
            LOCK TABLE graph_kernel.binding IN ACCESS SHARE MODE;
            EXECUTE is_held INTO held;
            IF NOT held THEN
                RAISE EXCEPTION 'extension graph_kernel was dropped'
                    USING ERRCODE = 'object_not_in_prerequisite_state', DETAIL = 'GRAPH_TABLES';
            END IF;
            SELECT * INTO d FROM graph_kernel.describe_content(turns);
            EXECUTE pg_catalog.format('%s WHERE %s OPERATOR(pg_catalog.=) $1 AND %s',
                                      d.rehash, d.id, d.stale) USING one;
            GET DIAGNOSTICS changed = ROW_COUNT;
            written := written OPERATOR(pg_catalog.+) changed;
            COMMIT;
        END LOOP;
        RAISE NOTICE 'content hashes: % written', written;
    END IF;
END
$$;

SET LOCAL search_path TO @extschema@, pg_temp;
