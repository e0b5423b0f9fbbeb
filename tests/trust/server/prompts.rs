//! Records of prompts: what is attested and when, and what is shown of them after the graph has changed.

use postgres::Client;
use serde_json::Value;

use crate::common::database::Database;
use crate::graph::{connect_as, database, db_error, reason, text};

/// Texts and payloads: one turn has neither, one a payload alone.
const TEXTS: &str = "
    UPDATE memory_turns SET content_text = 'text ' || id WHERE id NOT IN (turn(2), turn(4));
    UPDATE memory_turns SET payload = jsonb_build_object('n', salience_score, 'role', role)
     WHERE id IN (turn(3), turn(4));
    SELECT graph_kernel.bind_tables('memory_turns', 'memory_turn_edges',
                                    columns => '{\"turns\": {\"payload\": \"payload\"}}')";

/// A graph whose turns have texts and payloads; its owner's connection.
fn prompts(name: &str) -> (Database, Client) {
    let database = database(&format!("prompts_{name}"));
    let mut admin = database.connect();
    admin.batch_execute(TEXTS).unwrap();
    (database, admin)
}

/// The record of the prompt at the fifth turn.
fn record(client: &mut Client) -> String {
    text(client, "SELECT graph_messages_record(turn(5))::text")
}

fn read(record: &str) -> Value {
    serde_json::from_str(record).unwrap()
}

/// Turn and state of each message, `3 changed`; the turn alone where it is unchanged.
fn states(client: &mut Client, record: &str) -> Vec<String> {
    let statement = "SELECT right(turn_id::text, 1) || replace(' ' || state, ' unchanged', '')
                     FROM graph_messages_show($1::text::json) ORDER BY n";
    let rows = client.query(statement, &[&record]);
    let rows = rows.unwrap_or_else(|error| panic!("{error:?}: {record}"));
    rows.iter().map(|row| row.get(0)).collect()
}

const UNCHANGED: [&str; 5] = ["1", "2", "3", "4", "5"];

/// What `matches` says of the messages, `-` for NULL.
fn matches(client: &mut Client, record: &str, contents: &str, payloads: &str) -> String {
    let statement = format!(
        "SELECT string_agg(coalesce(left(matches::text, 1), '-'), '' ORDER BY n)
         FROM graph_messages_show($1::text::json, {contents}, {payloads})"
    );
    client
        .query_one(&statement, &[&record])
        .unwrap_or_else(|error| panic!("{statement}: {error:?}"))
        .get(0)
}

/// The hash that the server itself computes of a text.
fn sha256(client: &mut Client, expression: &str) -> String {
    text(client, &format!("SELECT encode(sha256(convert_to({expression}, 'UTF8')), 'hex')"))
}

#[test]
fn a_record_has_the_messages_in_their_order_by_their_hashes() {
    let (_database, mut client) = prompts("hashes");
    let record = read(&record(&mut client));
    let keys: Vec<&String> = record.as_object().unwrap().keys().collect();
    assert_eq!(keys.len(), 6);
    let messages = record["messages"].as_array().unwrap();
    let shown = client.query(
        "SELECT turn_id::text, part, role, tokens FROM graph_messages(turn(5)) ORDER BY n",
        &[],
    );
    for (message, row) in messages.iter().zip(shown.unwrap()) {
        let (id, part, role): (&str, &str, &str) = (row.get(0), row.get(1), row.get(2));
        assert_eq!([&message["turn_id"], &message["part"], &message["role"]], [id, part, role]);
        assert_eq!(message["tokens"], row.get::<_, i32>(3));
        assert_eq!(message["created_at"], 1_767_225_600_000_000_i64);
        for (key, column) in [("content", "content_text"), ("payload", "payload::text")] {
            let stored = format!("(SELECT {column} FROM memory_turns WHERE id = '{id}')");
            let is_null = text(&mut client, &format!("SELECT ({stored} IS NULL)::text")) == "true";
            let expected = if is_null { Value::Null } else { sha256(&mut client, &stored).into() };
            assert_eq!(message[key], expected, "{id} {key}");
        }
    }
    // The slice in it is that of graph_slice.
    let slice = text(&mut client, "SELECT graph_slice(turn(5), 'chat')::text");
    assert!(
        text(&mut client, "SELECT graph_messages_record(turn(5))::text")
            .ends_with(&format!(r#""slice":{slice}}}"#))
    );
    assert_eq!(record["context"], Value::Null);
    let context = "ab".repeat(32);
    let with = text(
        &mut client,
        &format!("SELECT graph_messages_record(turn(5), context => '{context}')::text"),
    );
    assert_eq!(read(&with)["context"], context.as_str());
    assert_ne!(read(&with)["digest"], record["digest"]);
    assert_eq!(reason(&mut client, &with), "ok");
    for bad in ["", "AB", &context[1..], &context.to_uppercase(), &format!(" {context}")] {
        let error = db_error(
            &mut client,
            &format!("SELECT graph_messages_record(turn(5), context => '{bad}')"),
        );
        assert_eq!(
            (error.code().code(), error.detail()),
            ("22023", Some("INVALID_CONTEXT")),
            "{bad}"
        );
    }
}

#[test]
fn what_its_own_transaction_has_changed_is_not_attested() {
    let (_database, mut client) = prompts("uncommitted");
    let committed = record(&mut client);
    for write in [
        "INSERT INTO memory_turns (id) VALUES (turn(9))",
        "UPDATE memory_turns SET content_text = 'other' WHERE id = turn(1)",
        "DELETE FROM memory_turn_edges WHERE child_turn_id = turn(5)",
        "SAVEPOINT s; UPDATE memory_turns SET payload = '{}'; RELEASE s",
        "ALTER TABLE memory_turns ADD COLUMN more text",
    ] {
        client.batch_execute(&format!("BEGIN; {write}")).unwrap();
        let uncommitted = record(&mut client);
        // What was attested before is still so, and what it shows is the transaction's own state.
        assert_eq!(reason(&mut client, &committed), "ok", "{write}");
        assert_eq!(reason(&mut client, &uncommitted), "unattested", "{write}");
        assert_eq!(states(&mut client, &committed).len(), 5, "{write}");
        client.batch_execute("ROLLBACK").unwrap();
        let value = read(&uncommitted);
        assert_eq!(
            [&value["token"], &value["slice"]["attestation"]["token"]],
            [&Value::Null; 2],
            "{write}"
        );
        assert_eq!(value["slice"]["attestation"]["status"], "uncommitted", "{write}");
        assert_eq!(reason(&mut client, &uncommitted), "unattested", "{write}");
        // With a token of another one, also of the same messages.
        let mut forged = value.clone();
        forged["token"] = read(&committed)["token"].clone();
        assert_eq!(reason(&mut client, &forged.to_string()), "unattested", "{write}");
        for call in ["graph_messages_show", "graph_proof"] {
            let error = client
                .query(&format!("SELECT {call}($1::text::json)"), &[&uncommitted])
                .unwrap_err();
            let error = error.as_db_error().unwrap();
            assert_eq!(error.detail(), Some("NOT_ADMISSIBLE: unattested"), "{write} {call}");
        }
    }
    assert_eq!(record(&mut client), committed);
    assert_eq!(states(&mut client, &committed), UNCHANGED);
}

#[test]
fn what_became_of_each_message_is_shown() {
    let (_database, mut client) = prompts("changes");
    let taken = record(&mut client);
    assert_eq!(states(&mut client, &taken), UNCHANGED);
    for (change, expected) in [
        (
            "UPDATE memory_turns SET content_text = 'edited' WHERE id = turn(3)",
            ["1", "2", "3 changed", "4", "5"],
        ),
        (
            "UPDATE memory_turns SET content_text = '' WHERE id = turn(2)",
            ["1", "2 changed", "3", "4", "5"],
        ),
        (
            "UPDATE memory_turns SET content_text = NULL WHERE id = turn(1)",
            ["1 changed", "2", "3", "4", "5"],
        ),
        (
            "UPDATE memory_turns SET payload = payload || '{\"more\": 1}' WHERE id = turn(4)",
            ["1", "2", "3", "4 changed", "5"],
        ),
        (
            "UPDATE memory_turns SET payload = NULL WHERE id = turn(4)",
            ["1", "2", "3", "4 changed", "5"],
        ),
        (
            "UPDATE memory_turns SET payload = 'null' WHERE id = turn(5)",
            ["1", "2", "3", "4", "5 changed"],
        ),
        (
            "UPDATE memory_turns SET role = 'system' WHERE id = turn(5)",
            ["1", "2", "3", "4", "5 changed"],
        ),
        (
            "UPDATE memory_turns SET created_at = created_at + interval '1 microsecond' WHERE id = turn(1)",
            ["1 changed", "2", "3", "4", "5"],
        ),
        (
            "UPDATE memory_turns SET created_at = NULL WHERE id = turn(1)",
            ["1 changed", "2", "3", "4", "5"],
        ),
        (
            "UPDATE memory_turns SET created_at = 'infinity' WHERE id = turn(1)",
            ["1 changed", "2", "3", "4", "5"],
        ),
        ("DELETE FROM memory_turns WHERE id = turn(2)", ["1", "2 gone", "3", "4", "5"]),
        (
            "TRUNCATE memory_turns, memory_turn_edges",
            ["1 gone", "2 gone", "3 gone", "4 gone", "5 gone"],
        ),
        // What a model was not shown is not compared.
        ("UPDATE memory_turns SET salience_score = 0.9, session_id = 'other'", UNCHANGED),
        ("DELETE FROM memory_turn_edges", UNCHANGED),
        ("INSERT INTO memory_turn_edges VALUES (turn(5), turn(1))", UNCHANGED),
        ("UPDATE memory_turns SET payload = (payload::text)::jsonb", UNCHANGED),
    ] {
        client
            .batch_execute(&format!(
                "BEGIN; ALTER TABLE memory_turns DISABLE TRIGGER ALL; {change}"
            ))
            .unwrap();
        let found = states(&mut client, &taken);
        client.batch_execute("ROLLBACK").unwrap();
        assert_eq!(found, expected, "{change}");
    }
    // Committed, and changed back: it is what was shown.
    client
        .batch_execute("UPDATE memory_turns SET content_text = 'edited' WHERE id = turn(3)")
        .unwrap();
    assert_eq!(states(&mut client, &taken), ["1", "2", "3 changed", "4", "5"]);
    let now = "SELECT content FROM graph_messages_show($1::text::json) WHERE state = 'changed'";
    assert_eq!(client.query_one(now, &[&taken]).unwrap().get::<_, &str>(0), "edited");
    client
        .batch_execute("UPDATE memory_turns SET content_text = 'text ' || id WHERE id = turn(3)")
        .unwrap();
    assert_eq!(states(&mut client, &taken), UNCHANGED);
    // What is gone has neither text nor payload.
    client
        .batch_execute("DELETE FROM memory_turn_edges; DELETE FROM memory_turns WHERE id = turn(3)")
        .unwrap();
    let gone = "SELECT num_nulls(content, payload) FROM graph_messages_show($1::text::json) WHERE state = 'gone'";
    assert_eq!(client.query_one(gone, &[&taken]).unwrap().get::<_, i32>(0), 2);
    assert_eq!(reason(&mut client, &taken), "ok");
}

#[test]
fn texts_that_were_kept_are_compared_by_their_hashes() {
    let (_database, mut client) = prompts("kept");
    let taken = record(&mut client);
    let all = |column: &str| format!("(SELECT array_agg({column} ORDER BY id) FROM memory_turns)");
    let (contents, payloads) = (all("content_text"), all("payload"));
    assert_eq!(matches(&mut client, &taken, "NULL", "NULL"), "-----");
    assert_eq!(matches(&mut client, &taken, &contents, "NULL"), "ttttt");
    assert_eq!(matches(&mut client, &taken, "NULL", &payloads), "ttttt");
    assert_eq!(matches(&mut client, &taken, &contents, &payloads), "ttttt");
    // A NULL is a message without a text, an empty text is one.
    assert_eq!(matches(&mut client, &taken, "array_fill(NULL::text, '{5}')", "NULL"), "ftftf");
    assert_eq!(matches(&mut client, &taken, "NULL", "array_fill(NULL::jsonb, '{5}')"), "ttfft");
    assert_eq!(matches(&mut client, &taken, "array_fill(''::text, '{5}')", "NULL"), "fffff");
    // Either is enough not to match.
    assert_eq!(matches(&mut client, &taken, &contents, "array_fill(NULL::jsonb, '{5}')"), "ttfft");
    // Kept texts are what was shown, whatever the tables hold now.
    client
        .batch_execute(
            "CREATE TABLE kept AS SELECT * FROM memory_turns;
             TRUNCATE memory_turns, memory_turn_edges",
        )
        .unwrap();
    let (contents, payloads) =
        (contents.replace("memory_turns", "kept"), payloads.replace("memory_turns", "kept"));
    assert_eq!(matches(&mut client, &taken, &contents, &payloads), "ttttt");
    for (contents, payloads, what) in [
        ("ARRAY['a']", "NULL", "1 contents are given for 5 messages"),
        ("'{}'", "NULL", "0 contents are given for 5 messages"),
        ("array_fill('a'::text, '{6}')", "NULL", "6 contents are given for 5 messages"),
        ("NULL", "array_fill('{}'::jsonb, '{4}')", "4 payloads are given for 5 messages"),
    ] {
        let statement =
            format!("SELECT FROM graph_messages_show($1::text::json, {contents}, {payloads})");
        let error = client.query(&statement, &[&taken]).unwrap_err();
        let error = error.as_db_error().unwrap();
        assert_eq!(
            (error.code().code(), error.message(), error.detail()),
            ("22023", what, Some("INVALID_PROMPT"))
        );
    }
    // Together at most 64 MiB.
    for (contents, payloads, code) in [
        ("array_fill(repeat('x', 14000000), '{5}')", "NULL", "54000"),
        ("array_fill(repeat('x', 13000000), '{5}')", "NULL", ""),
        (
            "array_fill(repeat('x', 7000000), '{5}')",
            "array_fill(to_jsonb(repeat('x', 7000000)), '{5}')",
            "54000",
        ),
    ] {
        let statement =
            format!("SELECT FROM graph_messages_show($1::text::json, {contents}, {payloads})");
        let answer = client.query(&statement, &[&taken]);
        let found = answer.err().map(|error| error.as_db_error().unwrap().code().code().to_owned());
        assert_eq!(found.unwrap_or_default(), code, "{contents} {payloads}");
    }
}

#[test]
fn texts_longer_than_the_limit_are_refused_when_stored() {
    let (_database, mut client) = prompts("long");
    client
        .batch_execute(
            "UPDATE memory_turns SET content_text = repeat('x', 14000000), content_hash = NULL",
        )
        .unwrap();
    let policy = r#"{"preset": "chat", "max_tokens": 100000000}"#;
    let error =
        db_error(&mut client, &format!("SELECT graph_messages_record(turn(5), '{policy}')"));
    assert_eq!((error.code().code(), error.detail()), ("54000", Some("SEARCH_TOO_LARGE")));
    client.batch_execute("UPDATE memory_turns SET content_text = repeat('x', 13000000)").unwrap();
    let taken =
        text(&mut client, &format!("SELECT graph_messages_record(turn(5), '{policy}')::text"));
    assert_eq!(states(&mut client, &taken), UNCHANGED);
    client.batch_execute("UPDATE memory_turns SET content_text = repeat('x', 14000000)").unwrap();
    let error =
        client.query("SELECT FROM graph_messages_show($1::text::json)", &[&taken]).unwrap_err();
    assert_eq!(error.as_db_error().unwrap().code().code(), "54000");
}

#[test]
fn a_record_is_shown_to_whoever_may_read_and_no_more() {
    let (database, mut admin) = prompts("rights");
    admin
        .batch_execute(
            "CREATE POLICY filtered ON memory_turns USING (
                 id::text <> ALL (string_to_array(current_setting('trust.hidden', true), ',')) IS NOT FALSE);
             ALTER TABLE memory_turns ENABLE ROW LEVEL SECURITY;
             GRANT SELECT ON memory_turns, memory_turn_edges TO trust_reader",
        )
        .unwrap();
    let of_admin = record(&mut admin);
    let mut reader = connect_as(&database, "trust_reader");
    let of_reader = record(&mut reader);
    assert_eq!(states(&mut reader, &of_admin), UNCHANGED);
    reader.batch_execute("SELECT set_config('trust.hidden', turn(4)::text, false)").unwrap();
    // Hidden is gone, and no text of it is given; its id stands in the record that the caller has given.
    for taken in [&of_admin, &of_reader] {
        assert_eq!(states(&mut reader, taken), ["1", "2", "3", "4 gone", "5"]);
        let shown = "SELECT count(*) FROM graph_messages_show($1::text::json)
                     WHERE state = 'gone' AND content IS NULL AND payload IS NULL";
        assert_eq!(reader.query_one(shown, &[taken]).unwrap().get::<_, i64>(0), 1);
    }
    assert_eq!(states(&mut admin, &of_reader), UNCHANGED);
    // Whose it is, is signed.
    let value = read(&of_reader);
    assert_eq!(value["slice"]["attestation"]["rls"], true);
    let forged = of_reader.replacen("trust_reader", "postgres", 1);
    assert_ne!(forged, of_reader);
    assert_ne!(reason(&mut admin, &forged), "ok");
    // A slice that is otherwise the same was taken for another role: its record is not this one.
    let mut mixed = value.clone();
    mixed["slice"] = read(&of_admin)["slice"].clone();
    assert_eq!(reason(&mut admin, &mixed.to_string()), "prompt_token_mismatch");
    // Without a right on the texts there is neither a record nor a show of one.
    admin
        .batch_execute(
            "REVOKE SELECT ON memory_turns FROM trust_reader;
             GRANT SELECT (id) ON memory_turns TO trust_reader",
        )
        .unwrap();
    for statement in
        ["SELECT graph_messages_record(turn(5))", "SELECT FROM kept, graph_messages_show(record)"]
    {
        if statement.contains("kept") {
            admin
                .batch_execute("CREATE TABLE kept (record json); GRANT SELECT ON kept TO PUBLIC")
                .unwrap();
            admin.execute("INSERT INTO kept SELECT $1::text::json", &[&of_admin]).unwrap();
        }
        assert_eq!(db_error(&mut reader, statement).code().code(), "42501", "{statement}");
    }
    assert_eq!(reason(&mut reader, &of_admin), "ok");
}

#[test]
fn a_record_of_another_graph_or_key_is_not_shown() {
    let (database, mut client) = prompts("graphs");
    let taken = record(&mut client);
    let show = |client: &mut Client, record: &str| {
        let error = client
            .query("SELECT FROM graph_messages_show($1::text::json)", &[&record])
            .unwrap_err();
        error.as_db_error().unwrap().detail().unwrap().to_owned()
    };
    client.batch_execute("CREATE TABLE t2 (LIKE memory_turns INCLUDING ALL);
             CREATE TABLE e2 (LIKE memory_turn_edges INCLUDING ALL);
        SELECT graph_kernel.bind_tables('t2', 'e2', name => 'other'); SET graph_kernel.graph = 'other'").unwrap();
    assert_eq!(show(&mut client, &taken), "NOT_ADMISSIBLE: other_graph");
    client.batch_execute("RESET graph_kernel.graph").unwrap();
    // A rotation changes nothing, a revocation ends it.
    client.batch_execute("SELECT graph_kernel.rotate_key()").unwrap();
    assert_eq!(states(&mut client, &taken), UNCHANGED);
    let next = record(&mut client);
    let digest = |record: &str| read(record)["digest"].clone();
    assert_eq!(digest(&next), digest(&taken));
    assert_ne!(read(&next)["token"], read(&taken)["token"]);
    client.batch_execute("SELECT graph_kernel.rotate_key(true)").unwrap();
    assert_eq!(states(&mut client, &taken), UNCHANGED);
    assert_eq!(show(&mut client, &next), "NOT_ADMISSIBLE: revoked_key");
    assert_eq!(reason(&mut client, &next), "revoked_key");
    // Neither an export nor anything else is a record.
    let slice = text(&mut client, "SELECT graph_slice(turn(5), 'chat')::text");
    assert_eq!(show(&mut client, &slice), "INVALID_PROMPT");
    assert_eq!(show(&mut client, "{}"), "NOT_ADMISSIBLE: malformed");
    for call in [
        "graph_is_admissible($1::text::json, turn(3))",
        "graph_filter_admissible($1::text::json, ARRAY[turn(3)]) = ARRAY[turn(3)]",
    ] {
        let answer = client
            .query_one(&format!("SELECT {call}"), &[&record(&mut database.connect())])
            .unwrap();
        assert!(!answer.get::<_, bool>(0), "{call}");
    }
}

/// Times at and beyond what microseconds since 1970 reach, and between two seconds.
#[test]
fn any_time_is_recorded_and_found_again() {
    let (_database, mut client) = prompts("times");
    client.batch_execute("ALTER TABLE memory_turns DISABLE TRIGGER ALL").unwrap();
    for (times, expected) in [
        ("infinity", i64::MAX),
        ("-infinity", i64::MIN),
        (
            "294276-12-31 23:59:59.999999+00",
            9_224_318_015_999_999_999_i128.min(i64::MAX.into()) as i64,
        ),
        ("4714-11-24 00:00:00+00 BC", -210_866_803_200_000_000),
        ("1969-12-31 23:59:59.999999+00", -1),
        ("1970-01-01 00:00:00+00", 0),
        ("2026-01-01 00:00:00.250001+00", 1_767_225_600_250_001),
    ] {
        client
            .execute("UPDATE memory_turns SET created_at = $1::text::timestamptz", &[&times])
            .unwrap();
        let taken = record(&mut client);
        assert_eq!(read(&taken)["messages"][0]["created_at"], expected, "{times}");
        assert_eq!(reason(&mut client, &taken), "ok", "{times}");
        assert_eq!(states(&mut client, &taken), UNCHANGED, "{times}");
        // Also as a column of type jsonb keeps it.
        let rewritten: String =
            client.query_one("SELECT ($1::text::jsonb)::text", &[&taken]).unwrap().get(0);
        assert_eq!(reason(&mut client, &rewritten), "ok", "{times}");
    }
    client.batch_execute("UPDATE memory_turns SET created_at = NULL").unwrap();
    let taken = record(&mut client);
    assert_eq!(read(&taken)["messages"][0]["created_at"], Value::Null);
    assert_eq!(states(&mut client, &taken), UNCHANGED);
    // No time, and the beginning of 1970, are not the same message.
    client
        .batch_execute("UPDATE memory_turns SET created_at = to_timestamp(0) WHERE id = turn(2)")
        .unwrap();
    assert_eq!(states(&mut client, &taken), ["1", "2 changed", "3", "4", "5"]);
}

/// A column of type json keeps white space, order of keys, and escapes that a jsonb cannot hold.
#[test]
fn a_payload_of_type_json_has_the_hash_of_its_jsonb() {
    let (_database, mut client) = prompts("json");
    client
        .batch_execute(
            r#"ALTER TABLE memory_turns DISABLE TRIGGER ALL;
             SELECT graph_kernel.unbind_tables();
             ALTER TABLE memory_turns DROP payload, ADD payload json;
             SELECT graph_kernel.bind_tables('memory_turns', 'memory_turn_edges',
                                             columns => '{"turns": {"payload": "payload"}}');
             UPDATE memory_turns SET payload = v.p::json FROM (VALUES
                 (1, '{"b" : 1.50, "aa":[1e2, -0.0 ,{} ], "b":2}'), (2, ' "\u00e9\n\u001f/\/" '), (3, 'null'),
                 (4, '[1E-3, 12345678901234567890123, true]')) AS v (n, p) WHERE id = turn(n)"#,
        )
        .unwrap();
    let taken = record(&mut client);
    for (place, turn) in (1..=4).enumerate() {
        let stored =
            format!("(SELECT payload::jsonb::text FROM memory_turns WHERE id = turn({turn}))");
        assert_eq!(
            read(&taken)["messages"][place]["payload"],
            sha256(&mut client, &stored).as_str(),
            "{turn}"
        );
    }
    assert_eq!(read(&taken)["messages"][4]["payload"], Value::Null);
    assert_eq!(states(&mut client, &taken), UNCHANGED);
    let payloads = "(SELECT array_agg(payload::jsonb ORDER BY id) FROM memory_turns)";
    assert_eq!(matches(&mut client, &taken, "NULL", payloads), "ttttt");
    // Another spelling of the same value is the same payload.
    client
        .batch_execute(
            r#"UPDATE memory_turns SET payload = '{"aa":[100, 0.0,{}],"b":2}' WHERE id = turn(1)"#,
        )
        .unwrap();
    assert_eq!(states(&mut client, &taken), UNCHANGED);
    // What no jsonb can hold: a NUL character and half of a pair are U+FFFD.
    client
        .batch_execute(r#"UPDATE memory_turns SET payload = '{"k\u0000": ["a\u0000b", "\ud800x"]}' WHERE id = turn(1)"#)
        .unwrap();
    let taken = record(&mut client);
    let written = r#"U&'{"k\fffd": ["a\fffdb", "\fffdx"]}'"#;
    assert_eq!(read(&taken)["messages"][0]["payload"], sha256(&mut client, written).as_str());
    assert_eq!(states(&mut client, &taken), UNCHANGED);
    let shown = "SELECT payload::text FROM graph_messages_show($1::text::json) WHERE n = 1";
    let payload: String = client.query_one(shown, &[&taken]).unwrap().get(0);
    assert_eq!(payload, "{\"k\u{fffd}\": [\"a\u{fffd}b\", \"\u{fffd}x\"]}");
    // What no jsonb is stands as its text, so that an edit of it shows.
    let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
    for (json, edited) in [("[1e200000]", "[2e200000]"), (&*deep, "[1]")] {
        let set = "UPDATE memory_turns SET payload = $1::text::json WHERE id = turn(1)";
        client.execute(set, &[&json]).unwrap();
        let taken = record(&mut client);
        assert_eq!(states(&mut client, &taken), UNCHANGED);
        let payload: String = client.query_one(shown, &[&taken]).unwrap().get(0);
        assert_eq!(payload, format!("\"{json}\""));
        client.execute(set, &[&edited]).unwrap();
        assert_ne!(states(&mut client, &taken), UNCHANGED, "{json}");
    }
}

#[test]
fn messages_slice_and_hashes_are_of_one_snapshot() {
    let (database, mut client) = prompts("snapshot");
    let taken = record(&mut client);
    client.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1").unwrap();
    let mut writer = database.connect();
    writer
        .batch_execute("UPDATE memory_turns SET content_text = 'edited', payload = NULL")
        .unwrap();
    assert_eq!(record(&mut client), taken);
    assert_eq!(states(&mut client, &taken), UNCHANGED);
    client.batch_execute("COMMIT").unwrap();
    let expected = ["1 changed", "2 changed", "3 changed", "4 changed", "5 changed"];
    assert_eq!(states(&mut client, &taken), expected);
    // Both of one statement are of one state, whatever is committed between them.
    let both = "SELECT r::text, (SELECT string_agg(state, ' ') FROM graph_messages_show(r))
                FROM graph_messages_record(turn(5)) AS r";
    let row = client.query_one(both, &[]).unwrap();
    assert_eq!(row.get::<_, &str>(1), ["unchanged"; 5].join(" "));
}
