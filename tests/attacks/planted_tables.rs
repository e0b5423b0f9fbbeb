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
             CREATE TABLE planted.memory_turns (id uuid)",
        )
        .unwrap();
    for (call, table) in [
        ("create_trace_table()", "public.retrieval_traces"),
        ("create_recorder_table()", "public.recorder_events"),
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
