-- How many turns have each lexeme, for the scores of words. Kept by table and column, whatever it is bound as. In no
-- dump: the counts are of a table's rows, and are made again. No row security policy shows a row: the lexemes are those
-- of texts that a reader of this table may not read. Only the library reads it.
CREATE TABLE graph_kernel.word_totals (
    turns oid NOT NULL,
    attribute integer NOT NULL,
    turn_count bigint NOT NULL,
    lexeme_count bigint NOT NULL,
    counted_at timestamptz NOT NULL,
    PRIMARY KEY (turns, attribute)
);
ALTER TABLE graph_kernel.word_totals ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
COMMENT ON TABLE graph_kernel.word_totals IS 'columns of words that were counted';
COMMENT ON COLUMN graph_kernel.word_totals.turns IS 'table of the turns';
COMMENT ON COLUMN graph_kernel.word_totals.attribute IS 'number of the column of words';
COMMENT ON COLUMN graph_kernel.word_totals.turn_count IS 'how many turns have words';
COMMENT ON COLUMN graph_kernel.word_totals.lexeme_count IS 'how many different lexemes each has, together';
COMMENT ON COLUMN graph_kernel.word_totals.counted_at IS 'when they were counted';

CREATE TABLE graph_kernel.word_counts (
    turns oid NOT NULL,
    attribute integer NOT NULL,
    lexeme text[] COLLATE pg_catalog."C" NOT NULL,
    turn_count bigint NOT NULL,
    PRIMARY KEY (turns, attribute, lexeme)
);
-- The operators of arrays are not leakproof, as those of text are: PostgreSQL does not look in the index for what they
-- ask before it has asked row security. ANALYZE would copy lexemes into pg_statistic.
ALTER TABLE graph_kernel.word_counts ALTER COLUMN lexeme SET STATISTICS 0;
ALTER TABLE graph_kernel.word_counts ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
COMMENT ON TABLE graph_kernel.word_counts IS 'lexemes that more than one turn has';
COMMENT ON COLUMN graph_kernel.word_counts.turns IS 'table of the turns';
COMMENT ON COLUMN graph_kernel.word_counts.attribute IS 'number of the column of words';
COMMENT ON COLUMN graph_kernel.word_counts.lexeme IS 'the lexeme, alone in an array';
COMMENT ON COLUMN graph_kernel.word_counts.turn_count IS 'how many turns have it';

-- A subscription brings counts of the publisher's tables. There are too many rows for a function to be called for each.
CREATE TRIGGER guard BEFORE INSERT OR UPDATE OR DELETE ON graph_kernel.word_totals
    FOR EACH ROW WHEN (graph_kernel.is_applying()) EXECUTE FUNCTION graph_kernel.guard_table();
CREATE TRIGGER guard_truncate BEFORE TRUNCATE ON graph_kernel.word_totals
    FOR EACH STATEMENT WHEN (graph_kernel.is_applying()) EXECUTE FUNCTION graph_kernel.guard_table();
ALTER TABLE graph_kernel.word_totals ENABLE ALWAYS TRIGGER guard, ENABLE ALWAYS TRIGGER guard_truncate;
CREATE TRIGGER guard BEFORE INSERT OR UPDATE OR DELETE ON graph_kernel.word_counts
    FOR EACH ROW WHEN (graph_kernel.is_applying()) EXECUTE FUNCTION graph_kernel.guard_table();
CREATE TRIGGER guard_truncate BEFORE TRUNCATE ON graph_kernel.word_counts
    FOR EACH STATEMENT WHEN (graph_kernel.is_applying()) EXECUTE FUNCTION graph_kernel.guard_table();
ALTER TABLE graph_kernel.word_counts ENABLE ALWAYS TRIGGER guard, ENABLE ALWAYS TRIGGER guard_truncate;
COMMENT ON TRIGGER guard ON graph_kernel.word_totals IS 'no count comes from a publisher';
COMMENT ON TRIGGER guard_truncate ON graph_kernel.word_totals IS 'no count is deleted by a publisher';
COMMENT ON TRIGGER guard ON graph_kernel.word_counts IS 'no count comes from a publisher';
COMMENT ON TRIGGER guard_truncate ON graph_kernel.word_counts IS 'no count is deleted by a publisher';

SET LOCAL search_path TO pg_catalog, pg_temp; -- what bodies parsed now are resolved by

-- No role may execute it: the library calls it, after it has counted with the rights of the table's owner. A second
-- call at once waits at the row of the totals.
CREATE FUNCTION graph_kernel.store_word_totals(
    turns oid, attribute integer, turn_count bigint, lexeme_count bigint
) RETURNS void
LANGUAGE sql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT FROM graph_kernel.binding LIMIT 0; -- DROP EXTENSION waits
    INSERT INTO graph_kernel.word_totals AS t (turns, attribute, turn_count, lexeme_count, counted_at)
    VALUES ($1, $2, $3, $4, now())
    ON CONFLICT ON CONSTRAINT word_totals_pkey DO UPDATE
    SET turn_count = excluded.turn_count, lexeme_count = excluded.lexeme_count, counted_at = excluded.counted_at;
    DELETE FROM graph_kernel.word_counts AS c WHERE c.turns = $1 AND c.attribute = $2;
    -- Of tables and columns that were dropped. Another call may be deleting them: it is not waited for.
    WITH dropped AS (
        SELECT t.turns, t.attribute
        FROM graph_kernel.word_totals AS t
        WHERE NOT EXISTS (SELECT FROM pg_attribute AS a WHERE a.attrelid = t.turns AND a.attnum = t.attribute
                                                          AND NOT a.attisdropped)
        FOR UPDATE OF t SKIP LOCKED
    ), counts AS (
        DELETE FROM graph_kernel.word_counts AS c USING dropped AS d
        WHERE c.turns = d.turns AND c.attribute = d.attribute
    )
    DELETE FROM graph_kernel.word_totals AS t USING dropped AS d
    WHERE t.turns = d.turns AND t.attribute = d.attribute;
END;
COMMENT ON FUNCTION graph_kernel.store_word_totals(oid, integer, bigint, bigint) IS
    'refresh_words, for its caller: totals in place of what was counted before';

-- No role may execute it: the library calls it with some of the lexemes at a time, after store_word_totals.
CREATE FUNCTION graph_kernel.add_word_counts(turns oid, attribute integer, counts jsonb) RETURNS void
LANGUAGE sql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT FROM graph_kernel.binding LIMIT 0; -- DROP EXTENSION waits
    INSERT INTO graph_kernel.word_counts (turns, attribute, lexeme, turn_count)
    SELECT $1, $2, ARRAY[c.lexeme], c.turn_count::bigint FROM jsonb_each_text($3) AS c (lexeme, turn_count);
END;
COMMENT ON FUNCTION graph_kernel.add_word_counts(oid, integer, jsonb) IS
    'refresh_words, for its caller: how many turns have these lexemes';

CREATE PROCEDURE graph_kernel.refresh_words(name text DEFAULT 'default')
    AS 'MODULE_PATHNAME', 'refresh_words_wrapper'
    LANGUAGE c SET search_path = pg_catalog, pg_temp;
COMMENT ON PROCEDURE graph_kernel.refresh_words(text) IS
    'counts the words of a bound graph''s turns, by which searches weigh them';

SET LOCAL search_path TO @extschema@, pg_temp;
