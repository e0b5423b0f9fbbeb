//! What the verifying functions answer, whatever they are given: never an error, never NULL.

use postgres::Client;

use crate::common::export::EXPORT;
use crate::graph::{database, slice, text};

/// Anything but the export itself.
fn garbage(export: &str) -> Vec<String> {
    let mut texts: Vec<String> = [
        "null",
        "true",
        "0",
        "-1",
        "1e400",
        "\"\"",
        "\"slice\"",
        "[]",
        "[null]",
        "{}",
        r#"{"turns":[]}"#,
        r#"{"attestation":null}"#,
        r#"{"a":{"b":{"c":[]}}}"#,
        " \n\t{} ",
    ]
    .map(str::to_owned)
    .into();
    texts.push("[".repeat(2000) + &"]".repeat(2000));
    texts.push(format!("[{export}]"));
    texts.push(format!(r#"{{"slice":{export}}}"#));
    texts.push(serde_json::to_string(export).unwrap());
    for (from, to) in [
        (r#""role":"user""#, r#""role":"\u0000""#),
        (r#""role":"user""#, r#""role":"User""#),
        (r#""kid":""#, r#""kid":"\u0000"#),
        (r#""salience":0.1"#, r#""salience":1e999"#),
        (r#""edges":["#, r#""edges":[null,"#),
        (r#""v":3"#, r#""v":"3""#),
        (r#"gk3."#, r#"gk4."#),
    ] {
        let broken = export.replacen(from, to, 1);
        assert_ne!(broken, export, "{from}");
        texts.push(broken);
    }
    texts
}

/// The one row of a query, of which no column may be NULL.
fn answer(client: &mut Client, query: &str, export: Option<&str>) -> Vec<String> {
    let statement = format!("SELECT v::text FROM (SELECT {query}) AS q, unnest(q.answer) AS v");
    let rows = client.query(&statement, &[&export]);
    let rows = rows.unwrap_or_else(|error| panic!("{query} of {export:?}: {error}"));
    rows.iter().map(|row| row.get::<_, Option<String>>(0).expect("not NULL")).collect()
}

#[test]
fn garbage_is_answered_by_false() {
    let database = database("garbage");
    let mut client = database.connect();
    let export = slice(&mut client);
    let mut given: Vec<Option<String>> = garbage(&export).into_iter().map(Some).collect();
    given.push(None);
    for export in &given {
        let export = export.as_deref();
        let verified = answer(
            &mut client,
            "(SELECT ARRAY[count(*)::text, min(v.valid::text), min(v.reason)]
              FROM graph_verify($1::text::json) AS v) AS answer",
            export,
        );
        assert_eq!(verified[..2], ["1", "false"], "{export:?}");
        assert_ne!(verified[2], "ok", "{export:?}");
        let checks = answer(
            &mut client,
            "(SELECT ARRAY[(count(*) > 0)::text, (count(*) = count(v.check_name || v.detail))::text,
                           bool_and(v.ok)::text]
              FROM graph_verify_explain($1::text::json) AS v) AS answer",
            export,
        );
        assert_eq!(checks, ["true", "true", "false"], "{export:?}");
        let inside = answer(
            &mut client,
            "ARRAY[graph_is_admissible($1::text::json, turn(3))::text,
                   graph_is_admissible($1::text::json, NULL)::text,
                   cardinality(graph_filter_admissible($1::text::json, ARRAY[turn(3)]))::text,
                   cardinality(graph_filter_admissible($1::text::json, NULL))::text] AS answer",
            export,
        );
        assert_eq!(inside, ["false", "false", "0", "0"], "{export:?}");
    }
}

#[test]
fn a_slice_that_verifies_admits_its_turns_only() {
    let database = database("admits");
    let mut client = database.connect();
    let export = slice(&mut client);
    let inside = answer(
        &mut client,
        "ARRAY[graph_is_admissible($1::text::json, turn(3))::text,
               graph_is_admissible($1::text::json, turn(9))::text,
               graph_is_admissible($1::text::json, NULL)::text] AS answer",
        Some(&export),
    );
    assert_eq!(inside, ["true", "false", "false"]);
    let edited = export.replacen("planning", "synthesis", 1);
    let inside = answer(
        &mut client,
        "ARRAY[graph_is_admissible($1::text::json, turn(3))::text] AS answer",
        Some(&edited),
    );
    assert_eq!(inside, ["false"]);
}

#[test]
fn filtering_keeps_the_order_and_drops_what_is_not_inside() {
    let database = database("filter");
    let mut client = database.connect();
    let export = slice(&mut client);
    for (given, kept) in [
        ("{5,9,1,NULL,3,5,0,2}", "5,1,3,5,2"),
        ("{9,8}", ""),
        ("{NULL,NULL}", ""),
        ("{}", ""),
        ("{{4,NULL},{9,1}}", "4,1"),
        ("[-3:-2]={2,1}", "2,1"),
    ] {
        let given = with_turn_ids(given);
        let statement = format!(
            "SELECT coalesce(string_agg(right(k.id::text, 1), ',' ORDER BY k.n), '')
             FROM unnest(graph_filter_admissible($1::text::json, '{given}'::uuid[]))
                  WITH ORDINALITY AS k (id, n)"
        );
        let row = client.query_one(&statement, &[&export]).unwrap();
        assert_eq!(row.get::<_, String>(0), kept, "{given}");
    }
}

/// The array's text with turn ids in place of single digits after a brace or comma.
fn with_turn_ids(array: &str) -> String {
    let mut text = String::new();
    let mut before = ' ';
    for c in array.chars() {
        if c.is_ascii_digit() && matches!(before, '{' | ',') {
            text.push_str(&format!("00000000-0000-4000-8000-00000000000{c}"));
        } else {
            text.push(c);
        }
        before = c;
    }
    text
}

/// The arguments of `graph_verify_token` for an export.
const TOKEN_ARGUMENTS: [&str; 7] = [
    "e ->> 'admissibility_token'",
    "e ->> 'slice_id'",
    "(e ->> 'anchor_turn_id')::uuid",
    "e ->> 'policy_id'",
    "e ->> 'policy_params_hash'",
    "e ->> 'graph_snapshot_hash'",
    "e ->> 'schema_version'",
];

fn verifies(client: &mut Client, export: &str, arguments: &[&str]) -> bool {
    let statement = format!(
        "SELECT graph_verify_token({}) FROM (SELECT $1::text::json) AS given (e)",
        arguments.join(", ")
    );
    let row = client.query_one(&statement, &[&export]);
    let row = row.unwrap_or_else(|error| panic!("{arguments:?}: {error}"));
    row.get::<_, Option<bool>>(0).expect("never NULL")
}

#[test]
fn a_token_verifies_for_its_fields_alone() {
    let database = database("token");
    let mut client = database.connect();
    let export = slice(&mut client);
    assert!(verifies(&mut client, &export, &TOKEN_ARGUMENTS));
    for position in 0..TOKEN_ARGUMENTS.len() {
        let written = TOKEN_ARGUMENTS[position];
        let others = match position {
            2 => vec!["NULL".to_owned(), "turn(4)".to_owned()],
            _ => [
                "NULL",
                "''",
                "' ' || X",
                "X || '|'",
                "'|' || X",
                "left(X, 3)",
                "X || X",
                "'x'",
                "repeat('0', 16)",
            ]
            .map(|other| other.replace('X', &format!("({written})")))
            .into(),
        };
        for other in others {
            let mut arguments = TOKEN_ARGUMENTS;
            arguments[position] = &other;
            assert!(!verifies(&mut client, &export, &arguments), "{arguments:?}");
        }
    }
    let upper = "upper(e ->> 'admissibility_token')";
    let mut arguments = TOKEN_ARGUMENTS;
    arguments[0] = upper;
    let letters = text(&mut client, "SELECT graph_slice(turn(3)) ->> 'admissibility_token'")
        .bytes()
        .any(|b| b.is_ascii_lowercase());
    assert_eq!(verifies(&mut client, &export, &arguments), !letters);
}

#[test]
fn a_delimiter_moved_between_fields_does_not_verify() {
    let database = database("delimiter");
    let mut client = database.connect();
    let export = slice(&mut client);
    let mut arguments = TOKEN_ARGUMENTS;
    arguments[3] = "(e ->> 'policy_id') || '|' || (e ->> 'policy_params_hash')";
    arguments[4] = "e ->> 'graph_snapshot_hash'";
    arguments[5] = "e ->> 'schema_version'";
    arguments[6] = "'admissibility_token_v2_hmac'";
    assert!(!verifies(&mut client, &export, &arguments));
}

#[test]
fn a_revoked_key_verifies_nothing() {
    let database = database("revoked");
    let mut client = database.connect();
    let export = slice(&mut client);
    client.batch_execute("SELECT graph_kernel.rotate_key(revoke_old => true)").unwrap();
    assert_eq!(crate::graph::reason(&mut client, &export), "revoked_key");
    assert!(!verifies(&mut client, &export, &TOKEN_ARGUMENTS));
    let export = slice(&mut client);
    assert_eq!(crate::graph::reason(&mut client, &export), "ok");
    assert!(verifies(&mut client, &export, &TOKEN_ARGUMENTS));
}

#[test]
fn exports_survive_jsonb() {
    let database = database("jsonb");
    let mut client = database.connect();
    client
        .batch_execute(
            "UPDATE memory_turns SET session_id = E'a \"b\" \\\\ \\u00e9 \\u2028 \\U0001f600',
                 trajectory_complexity = '1e-40', trajectory_homogeneity = '7.038531e-26',
                 trajectory_temporal = 1e-7 WHERE id = turn(4);
             UPDATE memory_turns SET trajectory_complexity = '-3.4e38' WHERE id = turn(5)",
        )
        .unwrap();
    let export = slice(&mut client);
    assert_eq!(crate::graph::reason(&mut client, &export), "ok");
    for rewriting in [
        "$1::text::jsonb::text",
        "jsonb_pretty($1::text::jsonb)",
        "$1::text::json::jsonb::json::text",
    ] {
        let statement = format!("SELECT {rewriting}");
        let rewritten: String = client.query_one(&statement, &[&export]).unwrap().get(0);
        assert_ne!(rewritten, export);
        assert_eq!(crate::graph::reason(&mut client, &rewritten), "ok", "{rewriting}");
    }
}

#[test]
fn the_two_slices_of_the_collision_are_told_apart() {
    let database = database("collision");
    let mut client = database.connect();
    let anchor = "00000000-0000-4000-8000-000000000001";
    let children = ["b8deeab2-a2af-4000-8000-0000000021e1", "57c94f99-000e-4000-8000-00000000c160"];
    let exports = children.map(|child| {
        client
            .batch_execute(&format!(
                "TRUNCATE memory_turns, memory_turn_edges;
                 INSERT INTO memory_turns (id, created_at)
                     VALUES ('{anchor}', '2026-01-01'), ('{child}', '2026-01-01');
                 INSERT INTO memory_turn_edges VALUES ('{anchor}', '{child}', 'reply')"
            ))
            .unwrap();
        text(&mut client, &format!("SELECT graph_slice('{anchor}')::text"))
    });
    for export in &exports {
        assert!(export.contains(r#""slice_id":"7376cb43901cb287""#));
        assert_eq!(crate::graph::reason(&mut client, export), "ok");
    }
    let swapped = exports[0].replace(children[0], children[1]);
    assert_eq!(crate::graph::reason(&mut client, &swapped), "digest_mismatch");
    // The published token does not distinguish them: that is why it is not enough.
    assert!(verifies(&mut client, &swapped, &TOKEN_ARGUMENTS));
}

#[test]
fn verification_can_be_cancelled() {
    let database = database("cancelled");
    let mut client = database.connect();
    // 50 MB: below the size at which documents are refused.
    client.batch_execute(&EXPORT.replace("{}", "12000")).unwrap();
    let statement = "SELECT reason FROM given, graph_verify(j)";
    // It is read to its end: the reason is the missing attestation. Twice, as the first time takes longer.
    let mut whole = std::time::Duration::MAX;
    for _ in 0..2 {
        let start = std::time::Instant::now();
        let reason: String = client.query_one(statement, &[]).unwrap().get(0);
        assert_eq!(reason, "unattested");
        whole = whole.min(start.elapsed());
    }
    for part in [3, 6] {
        let timeout = (whole / part).as_millis().max(1);
        client.batch_execute(&format!("SET statement_timeout = {timeout}")).unwrap();
        let error = client.query_one(statement, &[]).unwrap_err();
        assert_eq!(error.code(), Some(&postgres::error::SqlState::QUERY_CANCELED), "{error}");
    }
}
