//! Who may do what with everything in the extension: `matrix.txt` says it, and it is tried.

#[path = "../server/common/mod.rs"]
mod common;

mod attempts;
mod locks;
mod names;
mod roles;
mod table;

use attempts::{Attempt, CALLS, calls_of, on_relations};
use roles::{ROLES, Setup};
use table::Table;

/// The extension's objects of a catalog, as text.
const MEMBERS: &str = "
    SELECT CASE d.classid WHEN 'pg_proc'::regclass THEN d.objid::regprocedure::text
                          WHEN 'pg_class'::regclass THEN d.objid::regclass::text
                          WHEN 'pg_namespace'::regclass THEN d.objid::regnamespace::text END
    FROM pg_depend AS d JOIN pg_extension AS x ON x.oid = d.refobjid
    WHERE d.refclassid = 'pg_extension'::regclass AND d.deptype = 'e'
      AND x.extname = 'graph_kernel' AND d.classid = $1::text::regclass";

fn members(setup: &Setup, catalog: &str) -> Vec<String> {
    let rows = setup.superuser().query(MEMBERS, &[&catalog]).unwrap();
    let mut names: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
    names.sort_unstable();
    names
}

#[test]
fn everyone_can_do_what_the_matrix_says_and_nothing_else() {
    let setup = Setup::create("matrix");
    let mut table = Table::new(ROLES.map(|(name, _)| name));
    table.section("schema: U usage, C create");
    for schema in members(&setup, "pg_namespace") {
        table.row(&schema, ROLES.map(|(role, _)| setup.rights_on_schema(role, &schema)));
    }
    table.section(
        "functions: yes; no (not executable); graph (executable, but the graph is not readable, or what \
         it calls not executable); may (executable, not callable in a query)",
    );
    for function in members(&setup, "pg_proc") {
        let call = calls_of(&function);
        table.row(&function, ROLES.map(|(role, _)| setup.call(role, &function, call)));
    }
    table.section(
        "relations: ok, rows (some), none (allowed, no row); - (no right); guarded (refused \
         in spite of the right, by row security or a trigger)",
    );
    for relation in members(&setup, "pg_class") {
        for Attempt { name, right, statement } in on_relations(&relation) {
            let cells = ROLES.map(|(role, _)| setup.attempt(role, &relation, right, &statement));
            table.row(&format!("{relation} {name}"), cells);
        }
    }
    let expected = include_str!("matrix.txt");
    assert!(table.text() == expected, "matrix.txt says otherwise; it is:\n{}", table.text());
}

#[test]
fn every_function_is_tried() {
    let setup = Setup::create("functions");
    let functions = members(&setup, "pg_proc");
    let tried: Vec<&str> = CALLS.iter().map(|(function, _)| *function).collect();
    assert_eq!(functions, tried);
}

#[test]
fn statistics_hold_no_root() {
    let setup = Setup::create("statistics");
    setup.superuser().batch_execute("SELECT graph_kernel.rotate_key(); ANALYZE").unwrap();
    setup.connect("db_owner").batch_execute("ANALYZE graph_kernel.root_keys").unwrap();
    let stored = "SELECT count(*) FROM pg_statistic
                  WHERE starelid = 'graph_kernel.root_keys'::regclass AND staattnum = 2";
    let row = setup.connect("read_all").query_one(stored, &[]).unwrap();
    assert_eq!(row.get::<_, i64>(0), 0);
}

/// PostgreSQL looks in an index for what leakproof operators ask before row security hides the rows, and EXPLAIN says
/// how many there were.
#[test]
fn no_plan_of_a_reader_of_all_data_looks_for_a_word_before_row_security() {
    let setup = Setup::create("words");
    let mut reader = setup.connect("read_all");
    reader.batch_execute("SET enable_seqscan = off").unwrap();
    for (compared, is_sought) in [("turns = 1", true), ("lexeme >= '{a}'", false)] {
        let explain =
            format!("EXPLAIN SELECT FROM graph_kernel.word_counts WHERE turns = 1 AND {compared}");
        let plan: Vec<String> =
            reader.query(&explain, &[]).unwrap().iter().map(|row| row.get(0)).collect();
        // From 17 on the planner sees that no row passes, and reads nothing.
        if plan.iter().any(|line| line.trim() == "One-Time Filter: false") {
            assert_eq!(plan.len(), 2, "{plan:?}");
            continue;
        }
        let sought = plan.iter().find(|line| line.contains("Index Cond")).unwrap();
        assert!(sought.contains("turns") && !sought.contains("lexeme"), "{plan:?}");
        let filter = plan.iter().any(|line| line.contains("Filter") && line.contains("lexeme"));
        assert_ne!(filter, is_sought, "{plan:?}");
    }
}

#[test]
fn no_function_takes_or_gives_bytes_but_those_of_documents() {
    let setup = Setup::create("bytes");
    let functions = "
        SELECT coalesce(string_agg(p.oid::regprocedure::text, ', ' ORDER BY p.proname), '')
        FROM pg_proc AS p JOIN pg_depend AS d ON d.objid = p.oid AND d.deptype = 'e'
        JOIN pg_extension AS x ON x.oid = d.refobjid AND x.extname = 'graph_kernel'
        WHERE 'bytea'::regtype = ANY (p.prorettype || p.proargtypes || p.proallargtypes)";
    let row = setup.superuser().query_one(functions, &[]).unwrap();
    let sending = "graph_kernel.bound_relation_send(graph_kernel.bound_relation), \
                   graph_kernel.bound_role_send(graph_kernel.bound_role), \
                   chunking_policy_send(chunking_policy), graph_document_bytes(json), \
                   graph_document_json(bytea), graph_kernel.name_of(bytea), \
                   graph_kernel.secret_send(graph_kernel.secret), \
                   slice_policy_send(slice_policy)";
    assert_eq!(row.get::<_, &str>(0), sending);
}

#[test]
fn the_extensions_owner_hands_administration_on() {
    let setup = Setup::create("grants");
    let mut owner = setup.connect("ext_owner");
    let mut plain = setup.connect("plain");
    let administration = [
        "graph_kernel.rotate_key(boolean)",
        "graph_kernel.revoke_key(text)",
        "graph_kernel.bind_tables(regclass, regclass, jsonb, text)",
        "graph_kernel.bind_traces(regclass)",
        "graph_kernel.unbind_tables(text)",
        "graph_kernel.list_keys()",
        "graph_kernel.epoch_times()",
        "graph_kernel.register_policy(slice_policy, text)",
    ];
    for function in administration {
        let grant = format!("GRANT EXECUTE ON FUNCTION {function} TO plain");
        owner.batch_execute(&setup.named(&grant)).unwrap();
    }
    owner.batch_execute(&setup.named("GRANT SELECT ON graph_kernel.keys TO plain")).unwrap();
    // A binder may use what he binds.
    let traces = "GRANT INSERT ON retrieval_traces TO plain";
    setup.connect("superuser").batch_execute(&setup.named(traces)).unwrap();
    for statement in [
        "SELECT graph_kernel.rotate_key(true)",
        "SELECT graph_kernel.revoke_key('7-0123456789abcdef')",
        "SELECT graph_kernel.unbind_tables()",
        "SELECT graph_kernel.bind_tables('memory_turns', 'memory_turn_edges')",
        "SELECT graph_kernel.bind_traces('retrieval_traces')",
        "SELECT kid, state, created_at FROM graph_kernel.keys",
        "SELECT graph_api_register_policy('{\"policy\": {\"max_nodes\": 1}, \"name\": \"one\"}')",
    ] {
        plain.batch_execute(statement).unwrap_or_else(|error| panic!("{statement}: {error}"));
    }
    // What is the extension's own stays so.
    for function in [
        "add_epoch()",
        "announce_change()",
        "bind_tables_internal(regclass, regclass, jsonb, text, oid)",
        "bind_tables_for(regclass, regclass, jsonb, text, oid)",
        "describe_tables(oid, oid, jsonb, text, text, oid)",
        "guard_table()",
        "rotate_key_internal(boolean)",
        "unbind_tables_internal(text)",
    ] {
        let grant = format!("GRANT EXECUTE ON FUNCTION graph_kernel.{function} TO plain");
        assert!(owner.batch_execute(&setup.named(&grant)).is_err(), "{function}");
    }
}
