//! Slices belong to the graph and the key they were taken with.

use postgres::Client;

use crate::graph::{
    attested, connect_as, database, database_with_another_key, reason, refusal, slice, status,
    text, turns,
};

/// Two more turns tables with the same columns and one turn each, and an edges table.
const TABLES: &str = "
    CREATE SCHEMA other;
    SELECT graph_kernel.create_tables('other');
    INSERT INTO other.memory_turns (id, role) VALUES (turn(3), 'tool');
    ALTER TABLE other.memory_turns ADD COLUMN more text";

fn bind(client: &mut Client, turns: &str, edges: &str, columns: &str) -> String {
    text(client, &format!("SELECT graph_kernel.bind_tables('{turns}', '{edges}', {columns})::text"))
}

#[test]
fn a_slice_of_another_database_is_signed_by_an_unknown_key() {
    let (here, there) = (database("here"), database_with_another_key("there"));
    let (mut here, mut there) = (here.connect(), there.connect());
    let export = slice(&mut here);
    assert_eq!(reason(&mut here, &export), "ok");
    assert_eq!(reason(&mut there, &export), "unknown_key");
    // Under the key id of the verifier it is a forgery.
    let known = attested(&slice(&mut there), "kid");
    let renamed = export.replace(&attested(&export, "kid"), &known);
    assert_eq!(reason(&mut there, &renamed), "bad_mac");
}

#[test]
fn a_slice_of_another_binding_is_of_another_graph() {
    let database = database("bindings");
    let mut client = database.connect();
    client.batch_execute(TABLES).unwrap();
    let unbound = slice(&mut client);
    assert_eq!(attested(&unbound, "graph"), "default");

    let mut exports = vec![unbound];
    for (turns, edges, columns) in [
        // The tables of before, by name now.
        ("public.memory_turns", "public.memory_turn_edges", "NULL"),
        ("other.memory_turns", "other.memory_turn_edges", "NULL"),
        // Other columns of the same tables are another graph.
        ("other.memory_turns", "other.memory_turn_edges", r#"'{"turns":{"session_id":"more"}}'"#),
        ("other.memory_turns", "public.memory_turn_edges", "NULL"),
    ] {
        let graph = bind(&mut client, turns, edges, columns);
        let export = slice(&mut client);
        assert_eq!(attested(&export, "graph"), graph);
        assert_eq!(reason(&mut client, &export), "ok");
        for earlier in &exports {
            assert_eq!(reason(&mut client, earlier), "other_graph");
            let renamed = earlier.replace(&attested(earlier, "graph"), &graph);
            assert_eq!(reason(&mut client, &renamed), "bad_mac");
        }
        exports.push(export);
    }
    client.batch_execute("SELECT graph_kernel.unbind_tables()").unwrap();
    let mut reasons = || exports.iter().map(|e| reason(&mut client, e)).collect::<Vec<_>>();
    let other = ["other_graph"; 4];
    assert_eq!(reasons(), [&["ok"], &other[..]].concat());

    // What was bound before comes back with its name.
    let mut client = database.connect();
    let graph = bind(&mut client, "other.memory_turns", "other.memory_turn_edges", "NULL");
    assert_eq!(graph, attested(&exports[2], "graph"));
    let reasons: Vec<String> = exports.iter().map(|e| reason(&mut client, e)).collect();
    assert_eq!(reasons, ["other_graph", "other_graph", "ok", "other_graph", "other_graph"]);
}

#[test]
fn graphs_of_several_names_are_several_graphs() {
    let database = database("names");
    let mut client = database.connect();
    client.batch_execute(TABLES).unwrap();
    let bind = |client: &mut Client, name: &str, schema: &str| {
        let bind = format!(
            "SELECT graph_kernel.bind_tables('{schema}.memory_turns', '{schema}.memory_turn_edges', NULL, \
            '{name}')::text"
        );
        text(client, &bind)
    };
    let one = bind(&mut client, "one", "public");
    // The same tables under another name are another graph.
    let graphs = [
        ("one", one.clone()),
        ("two", bind(&mut client, "two", "public")),
        ("three", bind(&mut client, "three", "other")),
    ];
    let default = slice(&mut client);
    let exports: Vec<String> = graphs
        .iter()
        .map(|(name, graph)| {
            client.batch_execute(&format!("SET graph_kernel.graph = '{name}'")).unwrap();
            let export = slice(&mut client);
            assert_eq!(attested(&export, "graph"), *graph);
            export
        })
        .chain([default])
        .collect();
    for (number, name) in ["one", "two", "three", "default"].into_iter().enumerate() {
        client.batch_execute(&format!("SET graph_kernel.graph = '{name}'")).unwrap();
        for (of, export) in exports.iter().enumerate() {
            let expected = if of == number { "ok" } else { "other_graph" };
            assert_eq!(reason(&mut client, export), expected, "{of} as {name}");
        }
    }
    client.batch_execute("SET graph_kernel.graph = 'four'").unwrap();
    for call in ["graph_slice(turn(3))", "graph_verify('{}')", "graph_snapshot()"] {
        assert_eq!(refusal(&mut client, &format!("SELECT {call}")), "42704", "{call}");
    }
    client
        .batch_execute("RESET graph_kernel.graph; SELECT graph_kernel.unbind_tables('one')")
        .unwrap();
    assert_eq!(refusal(&mut client, "SELECT graph_kernel.unbind_tables('one')"), "42704");
    assert_eq!(bind(&mut client, "one", "public"), one);
}

#[test]
fn binding_the_same_again_keeps_the_graph() {
    let database = database("same_binding");
    let mut client = database.connect();
    let [one, two] = [(); 2]
        .map(|()| bind(&mut client, "public.memory_turns", "public.memory_turn_edges", "NULL"));
    assert_eq!(one, two);
}

#[test]
fn prepared_statements_follow_a_rebinding() {
    let database = database("prepared_plans");
    let (mut admin, mut client) = (database.connect(), database.connect());
    admin.batch_execute(TABLES).unwrap();
    let prepared = client.prepare("SELECT graph_slice(turn(3))::text").unwrap();
    let mut run = || -> String { client.query_one(&prepared, &[]).unwrap().get(0) };
    // Often enough for the server to keep a plan.
    let before: Vec<String> = (0..8).map(|_| run()).collect();
    assert_eq!(turns(&before[7]), [1, 2, 3, 4, 5]);

    let graph = bind(&mut admin, "other.memory_turns", "other.memory_turn_edges", "NULL");
    let after = run();
    assert_eq!((turns(&after), attested(&after, "graph")), (vec![3], graph));
    assert_eq!(reason(&mut admin, &after), "ok");
    assert_eq!(reason(&mut admin, &before[0]), "other_graph");

    admin.batch_execute("SELECT graph_kernel.unbind_tables()").unwrap();
    assert_eq!(run(), before[0]);
}

#[test]
fn kept_plans_stay_with_the_bound_tables_when_names_change_hands() {
    let database = database("names_change");
    let (mut admin, mut client) = (database.connect(), database.connect());
    bind(&mut admin, "public.memory_turns", "public.memory_turn_edges", "NULL");
    let before = slice(&mut client);
    admin
        .batch_execute(
            "CREATE SCHEMA evil;
             SELECT graph_kernel.create_tables('evil');
             INSERT INTO evil.memory_turns (id, role) VALUES (turn(3), 'tool');
             ALTER INDEX evil.memory_turns_pkey RENAME TO evil_pkey;
             ALTER INDEX evil.memory_turns_session_id_created_at_idx RENAME TO evil_session_idx;
             ALTER INDEX evil.memory_turns_scores_idx RENAME TO evil_scores_idx;
             ALTER TABLE memory_turns RENAME TO turns_before;
             ALTER TABLE evil.memory_turns SET SCHEMA public",
        )
        .unwrap();
    assert_eq!(slice(&mut client), before);
    // The schema's name as well.
    admin.batch_execute("ALTER TABLE memory_turns SET SCHEMA evil").unwrap();
    admin.batch_execute("ALTER TABLE turns_before RENAME TO memory_turns").unwrap();
    admin
        .batch_execute("ALTER SCHEMA public RENAME TO aside; ALTER SCHEMA evil RENAME TO public")
        .unwrap();
    let statement = "SELECT aside.graph_slice('00000000-0000-4000-8000-000000000003')::text";
    assert_eq!(text(&mut client, statement), before);
}

#[test]
fn an_owner_cannot_give_a_binding_a_name_of_his_choice() {
    let database = database("chosen_name");
    let mut admin = database.connect();
    admin
        .batch_execute(&format!(
            "DROP EXTENSION graph_kernel CASCADE; ALTER DATABASE {} OWNER TO trust_owner",
            database.name
        ))
        .unwrap();
    let mut owner = connect_as(&database, "trust_owner");
    owner.batch_execute("CREATE EXTENSION graph_kernel").unwrap();
    // A restore adds the row like this. With a key file shared by databases a chosen name would
    // let slices of this one pass in the other.
    let chosen = "7f0c1bd8-6b0a-4a5f-8a52-111111111111";
    owner
        .batch_execute(&format!(
            "INSERT INTO graph_kernel.binding (graph, name, is_current, turns, edges, resolved, bound_by)
             VALUES ('{chosen}', 'default', true, 'memory_turns', 'memory_turn_edges', '{{}}', 'somebody')"
        ))
        .unwrap();
    let export = slice(&mut owner);
    assert_eq!(status(&export), "attested");
    assert_ne!(attested(&export, "graph"), chosen);
    for statement in [
        format!("UPDATE graph_kernel.binding SET graph = '{chosen}'"),
        "UPDATE graph_kernel.binding SET turns = 'pg_class'".to_owned(),
        "DELETE FROM graph_kernel.binding".to_owned(),
        "TRUNCATE graph_kernel.binding".to_owned(),
        "DELETE FROM graph_kernel.revoked_keys".to_owned(),
        "ALTER TABLE graph_kernel.binding DISABLE TRIGGER guard".to_owned(),
        "DROP TRIGGER guard ON graph_kernel.binding".to_owned(),
        "ALTER TABLE graph_kernel.revoked_keys DISABLE TRIGGER announce".to_owned(),
        "DROP TRIGGER announce ON graph_kernel.revoked_keys".to_owned(),
        "ALTER FUNCTION graph_kernel.guard_table() RESET ALL".to_owned(),
    ] {
        assert_eq!(refusal(&mut owner, &statement), "42501", "{statement}");
    }
}
