//! Whoever recurses has the stack's limit met wherever they like within a call: that is an error of the call, and
//! leaves nothing behind.

use crate::setup::{READER, Setup, text};

/// Functions that call each other so often, and then run a statement: of two sizes, so that the limit is met at many
/// places of it. `met` runs one from ever fewer calls, until it is answered, and gives what else than the limit it met.
const RECURSION: &str = "
    CREATE FUNCTION deep.calls(n int, m int, q text) RETURNS int LANGUAGE plpgsql AS $$ DECLARE r int; BEGIN
        IF n > 0 THEN PERFORM deep.calls(n - 1, m, q); ELSIF m > 0 THEN r := deep.less(m, q); ELSE EXECUTE q; END IF;
        RETURN 1; END $$;
    CREATE FUNCTION deep.less(m int, q text) RETURNS int LANGUAGE plpgsql AS $$ DECLARE r int; BEGIN
        IF m > 0 THEN r := deep.less(m - 1, q); ELSE EXECUTE q; END IF; RETURN 1; END $$;
    CREATE FUNCTION deep.most() RETURNS int LANGUAGE plpgsql AS $$ DECLARE n int := 100; BEGIN
        LOOP BEGIN PERFORM deep.calls(0, n, 'SELECT 1'); n := n + 10;
             EXCEPTION WHEN statement_too_complex THEN RETURN n; END; END LOOP; END $$;
    CREATE FUNCTION deep.met(most int, q text) RETURNS text LANGUAGE plpgsql AS $$ BEGIN
        FOR n IN REVERSE most + most / 12..most * 7 / 8 LOOP FOR m IN REVERSE 12..0 LOOP
            BEGIN PERFORM deep.calls(n, m, q);
            EXCEPTION WHEN statement_too_complex THEN NULL; WHEN internal_error THEN RETURN SQLERRM; END;
        END LOOP; END LOOP; RETURN 'the limit'; END $$;";

#[test]
fn the_limit_of_the_stack_leaves_nothing_behind() {
    let setup = Setup::new("stack");
    setup.admin().batch_execute(&format!("CREATE SCHEMA deep AUTHORIZATION {READER}")).unwrap();
    let mut reader = setup.reader();
    reader.batch_execute(RECURSION).unwrap();
    let most = text(&mut reader, "SELECT deep.most()::text");
    for call in
        ["graph_anchors_recent()", "graph_kernel.list_sessions()", "graph_kernel.list_turns()"]
    {
        let call = format!("SELECT count(*)::text FROM {call}");
        let met = format!("SELECT deep.met({most}, '{call}')");
        assert_eq!(text(&mut reader, &met), "the limit", "{call}");
        assert_ne!(text(&mut reader, &call), "0", "{call}");
    }
}
