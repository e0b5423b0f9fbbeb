//! A plain role makes a table under the name of one that the extension creates, before an administrator asks for that:
//! no hint leads to the use of it, and who owns it is said.

use crate::setup::{OWNER, Setup};

#[test]
fn a_table_of_others_in_the_place_of_a_created_one_is_named_as_theirs() {
    let setup = Setup::new("planted_tables");
    let mut admin = setup.admin();
    admin.batch_execute(&format!("GRANT CREATE ON SCHEMA public TO {OWNER}")).unwrap();
    setup
        .owner()
        .batch_execute(
            "CREATE TABLE public.retrieval_traces (id uuid, retrieval_mode text, is_admissible boolean, slice_id text,
                                                   admissibility_token text, provenance jsonb);
             CREATE TABLE public.recorder_events (segment_id bigint, ordinal bigint);
             CREATE TABLE public.slice_store (key text);
             CREATE TABLE planted.memory_turns (id uuid)",
        )
        .unwrap();
    for (call, table) in [
        ("create_trace_table()", "public.retrieval_traces"),
        ("create_recorder_table()", "public.recorder_events"),
        ("create_slice_store()", "public.slice_store"),
        ("create_tables('planted')", "planted.memory_turns"),
    ] {
        let error = admin.batch_execute(&format!("SELECT graph_kernel.{call}")).unwrap_err();
        let error = error.as_db_error().unwrap();
        assert_eq!(error.code().code(), "42P07", "{call}");
        let message = format!("table {table} already exists, and belongs to {OWNER}");
        assert_eq!(error.message(), message, "{call}");
        let hint = error.hint().unwrap_or_default();
        assert!(!hint.contains("bind_") && hint.contains("create_"), "{call}: {hint}");
    }
    // Of one's own, the hint binds it.
    admin.batch_execute("ALTER TABLE public.retrieval_traces OWNER TO postgres").unwrap();
    let error = admin.batch_execute("SELECT graph_kernel.create_trace_table()").unwrap_err();
    let hint = error.as_db_error().unwrap().hint().unwrap_or_default().to_owned();
    assert_eq!(hint, "SELECT graph_kernel.bind_traces('public.retrieval_traces');");
}

/// Its definition calls a function of many types, or compares without the cast that is there: what others have made for
/// these types is a better match.
#[test]
fn the_command_for_an_index_calls_no_better_match_of_others() {
    let setup = Setup::new("index_commands");
    let mut admin = setup.admin();
    admin.batch_execute(&format!("GRANT CREATE ON SCHEMA public TO {OWNER}")).unwrap();
    setup
        .owner()
        .batch_execute(
            "CREATE FUNCTION public.trim_array(text[], integer) RETURNS text[] LANGUAGE plpgsql IMMUTABLE AS
                 $$ BEGIN PERFORM planted.f(); RETURN $1; END $$;
             CREATE FUNCTION public.is_same(varchar, text) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS
                 $$ BEGIN PERFORM planted.f(); RETURN true; END $$;
             CREATE OPERATOR public.= (LEFTARG = varchar, RIGHTARG = text, FUNCTION = public.is_same);
             CREATE TABLE b2.keyed (k text[], parent text[], kind varchar)",
        )
        .unwrap();
    admin
        .batch_execute(
            "INSERT INTO b2.keyed VALUES ('{a,x}', NULL, 'x'), ('{b,x}', '{a,x}', 'x');
             SELECT graph_kernel.bind_tables('b2.keyed', columns => '{\"turns\": {
                 \"id\": {\"expression\": \"graph_turn_id((trim_array(k, 1))[1])\"},
                 \"parents\": [{\"parent\": {\"expression\":
                     \"CASE kind WHEN ''x'' THEN graph_turn_id((parent)[1]) END\"}, \"edge_type\": \"reply\"}]}}')",
        )
        .unwrap();
    let hints = "SELECT hint FROM graph_check() WHERE check_name LIKE 'index%' AND NOT ok";
    let commands = admin.query(hints, &[]).unwrap();
    assert_eq!(commands.len(), 2);
    for path in ["\"$user\", public", "public, pg_catalog"] {
        admin.batch_execute(&format!("SET search_path = {path}")).unwrap();
        for command in &commands {
            admin.batch_execute(command.get(0)).unwrap();
            assert!(!setup.has_caught(), "{}", command.get::<_, &str>(0));
        }
    }
    let mut other = setup.admin();
    assert_eq!(other.query(hints, &[]).unwrap().len(), 0);
}

/// As above, of the commands for words: a literal's type is not known, and a text may be a varchar.
#[test]
fn the_commands_for_words_call_no_better_match_of_others() {
    let setup = Setup::new("words_commands");
    let mut admin = setup.admin();
    admin.batch_execute(&format!("GRANT CREATE ON SCHEMA public TO {OWNER}")).unwrap();
    setup
        .owner()
        .batch_execute(
            "CREATE FUNCTION public.trim_array(text[], integer) RETURNS text[] LANGUAGE plpgsql IMMUTABLE AS
                 $$ BEGIN PERFORM planted.f(); RETURN $1; END $$;
             CREATE FUNCTION public.to_tsvector(text, text) RETURNS tsvector LANGUAGE plpgsql IMMUTABLE AS
                 $$ BEGIN PERFORM planted.f(); RETURN ''::tsvector; END $$;
             CREATE FUNCTION public.\"left\"(varchar, integer) RETURNS text LANGUAGE plpgsql IMMUTABLE AS
                 $$ BEGIN PERFORM planted.f(); RETURN $1; END $$",
        )
        .unwrap();
    admin
        .batch_execute(
            "CREATE TABLE b2.worded (id uuid PRIMARY KEY, parent uuid, tags text[], content_text varchar,
                 words tsvector GENERATED ALWAYS AS (pg_catalog.to_tsvector('english'::regconfig,
                     pg_catalog.\"left\"(content_text::text, 100000))) STORED);
             CREATE TABLE b2.wordless (LIKE b2.worded INCLUDING INDEXES);
             ALTER TABLE b2.wordless DROP COLUMN words;
             ALTER TABLE b2.worded ENABLE ROW LEVEL SECURITY;
             INSERT INTO b2.worded VALUES (gen_random_uuid(), NULL, '{a,b}', 'x');
             INSERT INTO b2.wordless VALUES (gen_random_uuid(), NULL, '{a,b}', 'x');
             SELECT graph_kernel.bind_tables('b2.worded', name => 'worded', columns => '{\"turns\": {
                 \"parents\": [{\"parent\": \"parent\", \"edge_type\": \"reply\"}],
                 \"session_id\": {\"expression\": \"(trim_array(tags, 1))[1]\"}}}');
             SELECT graph_kernel.bind_tables('b2.wordless', name => 'wordless', columns => '{\"turns\": {
                 \"parents\": [{\"parent\": \"parent\", \"edge_type\": \"reply\"}]}}');
             SET graph_kernel.graph = 'worded'",
        )
        .unwrap();
    let hints =
        "SELECT hint FROM graph_check() WHERE check_name ~ 'words' AND NOT ok AND hint IS NOT NULL";
    let mut commands: Vec<String> =
        admin.query(hints, &[]).unwrap().iter().map(|row| row.get(0)).collect();
    assert!(commands.iter().any(|command| command.contains("trim_array")), "{commands:?}");
    admin.batch_execute("SET graph_kernel.graph = 'wordless'").unwrap();
    let error = admin.batch_execute("SELECT graph_search(query_text => 'x')").unwrap_err();
    let hint = error.as_db_error().unwrap().hint().unwrap();
    let end = hint.find(" STORED;").unwrap() + " STORED;".len();
    commands.push(hint[hint.find("ALTER TABLE").unwrap()..end].to_owned());
    admin.batch_execute("SET search_path = \"$user\", public").unwrap();
    for command in &commands {
        admin.batch_execute(command).unwrap_or_else(|error| panic!("{command}: {error:?}"));
        assert!(!setup.has_caught(), "{command}");
    }
}
