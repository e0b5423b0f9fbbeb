//! What a caller gives wrongly is refused in PostgreSQL's words, not in Rust's.

use postgres::error::DbError;

use crate::setup::{Outcome, Setup, attempt};

fn error(setup: &Setup, statement: &str) -> DbError {
    let error = setup.admin().batch_execute(statement).expect_err(statement);
    error.as_db_error().unwrap_or_else(|| panic!("{statement}: {error}")).clone()
}

/// Column mappings that are valid jsonb and no mapping: numbers that no f64 holds, and too deep.
fn mappings() -> Vec<String> {
    let deep = |open: &str, close: &str, levels| {
        format!("{}1{}", open.repeat(levels), close.repeat(levels))
    };
    vec![
        r#"{"x": 1e400}"#.to_owned(),
        r#"{"turns": {"id": 1e400}}"#.to_owned(),
        r#"[-1e400]"#.to_owned(),
        "1e400".to_owned(),
        deep("[", "]", 129),
        deep(r#"{"turns":"#, "}", 129),
        deep(r#"{"a":["#, "]}", 500),
        "\"text\"".to_owned(),
        r#"{"turns": null}"#.to_owned(),
        r#"{"turns": {"embedding": {"column": 1e400}}}"#.to_owned(),
    ]
}

fn is_stable_word(error: &DbError) -> bool {
    let word = error.detail().unwrap_or_default();
    !word.is_empty() && word.bytes().all(|b| b.is_ascii_uppercase() || b == b'_')
}

#[test]
fn a_mapping_that_rust_cannot_read() {
    let setup = Setup::new("messages_mapping");
    for mapping in mappings() {
        for call in [
            format!("SELECT graph_kernel.bind_tables('b2.turns', 'b2.edges', '{mapping}')"),
            format!("SELECT graph_kernel.bind_recorder_table('b2.events', '{mapping}')"),
        ] {
            let error = error(&setup, &call);
            // 54: too deep.
            let code = error.code().code();
            assert!(code == "22023" || code.starts_with("54"), "{call:.120}: {error:?}");
            assert!(is_stable_word(&error), "{call:.120}: {error:?}");
        }
    }
    // Nothing of it was kept.
    let slice = "SELECT graph_slice(turn(5)) ->> 'slice_id'";
    attempt(&mut setup.admin(), slice).answer(slice).expect("a slice");
}

/// What the extension's owner writes into the table itself, as a restore does.
#[test]
fn a_binding_that_rust_cannot_read() {
    let mut setup = Setup::new("messages_binding");
    for mapping in mappings() {
        let mut admin = setup.admin();
        admin.batch_execute("BEGIN").unwrap();
        for (write, calls) in [
            (
                format!(
                    "DELETE FROM graph_kernel.binding;
                     INSERT INTO graph_kernel.binding (turns, edges, columns)
                     VALUES ('b2.turns', 'b2.edges', '{mapping}')"
                ),
                ["SELECT graph_slice(turn(5))", "SELECT * FROM graph_check()", "SELECT graph_verify('{}'::json)"],
            ),
            (
                format!(
                    "DELETE FROM graph_kernel.recorder_binding;
                     INSERT INTO graph_kernel.recorder_binding (events, columns) VALUES ('b2.events', '{mapping}')"
                ),
                ["SELECT recorder_chunks()", "SELECT recorder_chunks_since(0, 3)", "SELECT recorder_event_chunks(0, \
                    3)"],
            ),
        ] {
            admin.batch_execute("SAVEPOINT w").unwrap();
            // Refused here, or by each call that reads it.
            match attempt(&mut admin, &write) {
                Outcome::Answer(_) => {
                    for call in calls {
                        admin.batch_execute("SAVEPOINT s").unwrap();
                        attempt(&mut admin, call).answer(&format!("{call} with {mapping:.60}"));
                        admin.batch_execute("ROLLBACK TO s").unwrap();
                    }
                    let unbind = "SELECT graph_kernel.unbind_tables(), graph_kernel.unbind_recorder_table()";
                    attempt(&mut admin, unbind).answer(unbind).expect("it can be unbound");
                }
                Outcome::Refused(_) => {}
                Outcome::Unsafe(fault) => panic!("{write:.120}: {fault}"),
            }
            admin.batch_execute("ROLLBACK TO w").unwrap();
        }
    }
    setup.assert_sound();
}

/// Trigger functions and what only the extension calls.
#[test]
fn what_cannot_be_called_says_so() {
    let mut setup = Setup::new("messages_called");
    let mut admin = setup.admin();
    for call in [
        "SELECT graph_kernel.announce_change()",
        "SELECT graph_kernel.guard_table()",
        "SELECT graph_content_hash_trigger()",
        "SELECT graph_require_admissible()",
        "CREATE TEMP TABLE a (x int); CREATE TRIGGER t BEFORE INSERT ON a \
        EXECUTE FUNCTION graph_kernel.announce_change();
         INSERT INTO a VALUES (1)",
        "CREATE TEMP TABLE b (x int); CREATE TRIGGER t AFTER INSERT ON b FOR EACH ROW
             EXECUTE FUNCTION graph_kernel.announce_change(); INSERT INTO b VALUES (1)",
        "SELECT graph_kernel.slice_support(NULL)",
        "SELECT graph_kernel.describe_tables(NULL, NULL, NULL, NULL, NULL)",
        "SELECT graph_kernel.describe_tables(0, 0, '1e400', 'public', 'default')",
        "SELECT graph_kernel.describe_recorder_table(0, '1e400')",
    ] {
        attempt(&mut admin, call).answer(call);
    }
    let by_hand = "SELECT graph_kernel.announce_change()";
    let error = error(&setup, by_hand);
    assert!(is_stable_word(&error) || error.code().code() == "0A000", "{error:?}");
    setup.assert_sound();
}

/// pgrx ended the process where a message had a gigabyte.
#[test]
fn messages_are_cut_however_long_the_value_is_that_they_name() {
    let setup = Setup::new("messages_long");
    for call in [
        "SELECT graph_slice_draw(turn(5), format => repeat(E'\\x01', 220000000))",
        "SELECT graph_kernel.describe_graph(repeat('x', 1073741815))",
    ] {
        let error = setup.reader().batch_execute(call).expect_err(call);
        let error = error.as_db_error().unwrap_or_else(|| panic!("{call}: {error}"));
        assert!(error.message().len() < 1000, "{call}");
    }
    let key = "SELECT graph_kernel.bind_tables('b2.turns', 'b2.edges',
                   jsonb_build_object('turns', jsonb_build_object(repeat('é', 100000), 'x')))";
    let bytes = error(&setup, key).message().len();
    assert!((8000..9000).contains(&bytes), "{bytes} bytes");
}

/// A hint is a command to type.
#[test]
fn a_hint_repeats_a_long_mapping_as_a_whole() {
    let setup = Setup::new("messages_hint");
    let call = "SELECT graph_kernel.bind_tables('b2.turns', 'b2.edges', jsonb_build_object('turns', jsonb_build_object(
                    'role', jsonb_build_object('expression', '''' || repeat('r', 12000) || ''''), 'salience', \
                    'role')))";
    let error = error(&setup, call);
    let hint = error.hint().unwrap_or_default();
    assert!(hint.len() > 12000 && hint.ends_with(')'), "{error:?}");
}
