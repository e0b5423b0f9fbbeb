//! Files as applications write them today: what they hold becomes turns, and what is not read is named.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};

use super::{Answer, Folder, export, graph_kernel, import, number, stored};
use crate::common::database::Database;

/// Lines of JSON.
fn lines(records: &[Value]) -> String {
    records.iter().map(|record| format!("{record}\n")).collect()
}

/// The turns of a session: role, text, and the texts that they follow.
fn turns(database: &Database) -> Vec<String> {
    let rows = database
        .connect()
        .query(
            "SELECT concat_ws(' | ', t.role, replace(t.content_text, E'\\n', '/'))
                    || coalesce(' <- ' || (
                       SELECT string_agg(e.edge_type || ' ' || replace(left(p.content_text, 30), E'\\n', '/'), ', '
                                         ORDER BY p.content_text COLLATE \"C\")
                         FROM memory_turn_edges AS e JOIN memory_turns AS p ON p.id = e.parent_turn_id
                        WHERE e.child_turn_id = t.id), '')
               FROM memory_turns AS t
              ORDER BY t.session_id COLLATE \"C\", t.created_at NULLS FIRST, t.content_text COLLATE \"C\"",
            &[],
        )
        .unwrap();
    rows.iter().map(|row| row.get(0)).collect()
}

/// The payload of the turn whose text begins so.
fn payload(database: &Database, text: &str) -> Value {
    let row = database
        .connect()
        .query_one(
            "SELECT payload::text FROM memory_turns
              WHERE starts_with(content_text, $1) AND (content_text = '') = ($1 = '') ORDER BY created_at LIMIT 1",
            &[&text],
        )
        .unwrap();
    row.get::<_, Option<String>>(0).map_or(Value::Null, |text| serde_json::from_str(&text).unwrap())
}

#[test]
fn answers_of_open_webui_are_taken_from_their_output() {
    let database = Database::with_tables("import_output");
    let folder = Folder::new("output");
    let text = |text: &str| json!([{"type": "output_text", "text": text}]);
    let message = |id: &str, parent: Value, more: Value| {
        let mut message =
            json!({"id": id, "parentId": parent, "childrenIds": [], "timestamp": 1_750_000_000});
        message.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        message
    };
    let file = folder.write(
        "chat.json",
        json!([{"id": "c", "chat": {"history": {"currentId": "q2", "messages": {
            "q1": message("q1", Value::Null, json!({"role": "user", "content": "Is it raining?"})),
            "a1": message("a1", json!("q1"), json!({"role": "assistant", "content": "", "timestamp": 1_750_000_001,
                "usage": {"completion_tokens": 900},
                "output": [
                    {"type": "reasoning", "id": "rs_1", "summary": [], "content": text("Ask the tool.")},
                    {"type": "message", "role": "assistant", "content": text("I look.")},
                    {"type": "function_call", "call_id": "c1", "name": "weather", "arguments": "{\"city\": \"Bern\"}"},
                    {"type": "function_call", "call_id": "c2", "name": "clock", "arguments": ""},
                    {"type": "function_call_output", "call_id": "c2",
                     "output": [{"type": "input_text", "text": "noon"}]},
                    {"type": "function_call_output", "call_id": "c1", "status": "incomplete",
                     "output": [{"type": "input_text", "text": "no such city"}]},
                    {"type": "open_webui:code_interpreter", "code": "1+1", "lang": "python", "output": {"stdout": "2"}},
                    {"type": "message", "role": "assistant", "content": text("It is not.")}]})),
            "q2": message("q2", json!("a1"), json!({"role": "user", "content": "Thanks", "timestamp": 1_750_000_002})),
            "a2": message("a2", json!("q2"), json!({"role": "assistant", "content": "Kept.", "timestamp": 1_750_000_003,
                "output": [{"type": "reasoning", "summary": [{"type": "summary_text", "text": "Be polite."}]},
                           {"type": "message", "content": []}]})),
            "a3": message("a3", json!("q2"), json!({"role": "assistant", "content": "", "timestamp": 1_750_000_004,
                "output": [{"type": "function_call", "call_id": "c9", "name": "bow", "arguments": "{}"}]}))
        }}}}])
        .to_string(),
    );
    let answer = import(&database, &["openwebui", &file]).expect_success();
    assert_eq!(
        turns(&database),
        [
            "user | Is it raining?",
            "assistant | I look./[call weather] {\"city\": \"Bern\"}/[call clock] <- reply Is it raining?",
            "tool | noon <- reply I look./[call weather] {\"city\"",
            "tool | no such city <- reply I look./[call weather] {\"city\"",
            "assistant | [call code_interpreter] 1+1 <- reply no such city",
            "tool | 2 <- reply [call code_interpreter] 1+1",
            "assistant | It is not. <- reply 2",
            "user | Thanks <- reply It is not.",
            "assistant | Kept. <- reply Thanks",
            "assistant | [call bow] {} <- reply Thanks",
        ],
        "{}",
        answer.out
    );
    let called = payload(&database, "I look.");
    assert_eq!(called["role"], "assistant");
    let kinds: Vec<&str> = called["output"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["type"].as_str().unwrap())
        .collect();
    assert_eq!(kinds, ["reasoning", "message", "function_call", "function_call"]);
    assert_eq!(called["output"][2]["arguments"], "{\"city\": \"Bern\"}");
    let result = payload(&database, "no such city");
    assert_eq!(
        (&result["output"][0]["call_id"], &result["output"][0]["status"]),
        (&json!("c1"), &json!("incomplete"))
    );
    assert_eq!(payload(&database, "Kept.")["output"][0]["summary"][0]["text"], "Be polite.");
    // 900 tokens were spent on thoughts as well; these are not sent again.
    assert_eq!(number(&database, "SELECT count(*) FROM memory_turns WHERE token_count >= 100"), 0);
    let call = number(
        &database,
        "SELECT token_count::bigint FROM memory_turns WHERE content_text = '[call bow] {}'",
    );
    assert!(call > 0, "the name and the arguments of a call count");
}

/// A record of a transcript.
fn record(uuid: &str, parent: Value, second: u32, kind: &str, content: Value) -> Value {
    json!({"uuid": uuid, "parentUuid": parent, "sessionId": "s", "isSidechain": false, "type": kind,
           "timestamp": format!("2026-01-01T00:{:02}:{:02}Z", second / 60, second % 60),
           "message": {"role": kind, "content": content}})
}

/// The record in a subagent's transcript.
fn aside(agent: &str, mut record: Value) -> Value {
    record["isSidechain"] = json!(true);
    record["agentId"] = json!(agent);
    record
}

fn spawn(tool_use: &str) -> Value {
    json!({"type": "tool_use", "id": tool_use, "name": "Agent", "input": {"prompt": "Look.", "description": tool_use}})
}

fn result(tool_use: &str, text: &str) -> Value {
    json!([{"type": "tool_result", "tool_use_id": tool_use, "content": text, "is_error": false}])
}

#[test]
fn subagents_are_joined_to_the_calls_that_started_them_at_any_depth() {
    // Names in both orders, so that a deeper agent's file comes before that of its caller, and after.
    for (first, second, deep) in [("bb", "cc", "aa"), ("aa", "bb", "cc")] {
        let database = Database::with_tables("import_agents");
        let folder = Folder::new(&format!("agents_{first}"));
        let below = folder.0.join("s/subagents");
        fs::create_dir_all(&below).unwrap();
        folder.write(
            "z.jsonl",
            lines(&[
                record("u", Value::Null, 0, "user", json!("Go.")),
                record("c", json!("u"), 1, "assistant", json!([spawn("t1"), spawn("t2"), spawn("t3")])),
                // The results come in another order, and something stands between.
                json!({"uuid": "x", "parentUuid": "c", "sessionId": "s", "type": "attachment", "attachment": {}}),
                {
                    let mut done = record("r2", json!("x"), 30, "user", result("t2", "second done"));
                    done["toolUseResult"] = json!({"agentId": second, "status": "completed"});
                    done
                },
                {
                    let mut done = record("r1", json!("r2"), 31, "user", result("t1", "first done"));
                    done["sourceToolAssistantUUID"] = json!("c");
                    done
                },
                record("e", json!("r1"), 32, "assistant", json!([{"type": "text", "text": "Done."}])),
            ]),
        );
        let agent = |name: &str, records: &[Value]| {
            fs::write(below.join(format!("agent-{name}.jsonl")), lines(records)).unwrap();
        };
        let meta = |name: &str, tool_use: &str| {
            let meta =
                json!({"agentType": "general-purpose", "toolUseId": tool_use, "spawnDepth": 1});
            fs::write(below.join(format!("agent-{name}.meta.json")), meta.to_string()).unwrap();
        };
        agent(
            first,
            &[
                aside(first, record("f1", Value::Null, 2, "user", json!("Look."))),
                aside(
                    first,
                    record(
                        "f2",
                        json!("f1"),
                        3,
                        "assistant",
                        json!([
                    {"type": "text", "text": "Deeper."}, spawn("t4")]),
                    ),
                ),
                aside(first, record("f3", json!("f2"), 9, "user", result("t4", "deep done"))),
            ],
        );
        meta(first, "t1");
        agent(second, &[aside(second, record("g1", Value::Null, 4, "user", json!("Look.")))]);
        agent(deep, &[aside(deep, record("d1", Value::Null, 5, "user", json!("Look.")))]);
        meta(deep, "t4");
        let third = {
            let mut first = aside("dd", record("h1", Value::Null, 6, "user", json!("Look.")));
            first["sourceToolUseID"] = json!("t3");
            first
        };
        agent("dd", &[third]);

        let answer =
            import(&database, &["claude-code", folder.0.to_str().unwrap()]).expect_success();
        assert_eq!(answer.count("turns whose parent is missing: "), 0, "{}", answer.out);
        let edge = |child: &str| -> Vec<(String, String)> {
            let id = |message: &str| {
                format!("graph_turn_id('[\"claude-code\", \"\", \"s\", \"{message}\"]')")
            };
            let mut found = Vec::new();
            for parent in ["u", "c", "r1", "r2", "e", "f1", "f2", "f3"] {
                let query = format!(
                    "SELECT edge_type FROM memory_turn_edges WHERE child_turn_id = {} AND parent_turn_id = {}",
                    id(child),
                    id(parent)
                );
                let rows = database.connect().query(&query, &[]).unwrap();
                found.extend(rows.iter().map(|row| (parent.to_owned(), row.get(0))));
            }
            found
        };
        let one = |parent: &str, kind: &str| vec![(parent.to_owned(), kind.to_owned())];
        assert_eq!(edge("f1"), one("c", "branch"), "by the meta file");
        assert_eq!(edge("g1"), one("c", "branch"), "by the agent's id in the result");
        assert_eq!(edge("h1"), one("c", "branch"), "by the tool use in the record");
        assert_eq!(edge("d1"), one("f2", "branch"), "one level deeper");
        assert_eq!(edge("r1"), one("c", "reply"), "a result hangs at its call");
        assert_eq!(edge("r2"), one("c", "reply"));
        assert_eq!(edge("f3"), one("f2", "reply"));
        assert_eq!(edge("e"), one("r1", "reply"));
        let payload = payload(&database, "first done");
        assert_eq!(payload["role"], "user");
        assert_eq!(payload["content"][0]["tool_use_id"], "t1");
        assert_eq!(payload["content"][0]["is_error"], false);

        let again =
            import(&database, &["claude-code", folder.0.to_str().unwrap()]).expect_success();
        assert_eq!((again.count("turns: "), again.count("edges: ")), (0, 0), "{}", again.out);
    }
}

#[test]
fn two_spawns_with_one_prompt_are_told_apart() {
    let database = Database::with_tables("import_spawns");
    let folder = Folder::new("spawns");
    let file = folder.write(
        "s.jsonl",
        lines(&[
            record("u", Value::Null, 0, "user", json!("Go.")),
            record(
                "c1",
                json!("u"),
                1,
                "assistant",
                json!([{"type": "text", "text": "one"}, spawn("t1")]),
            ),
            record(
                "c2",
                json!("c1"),
                2,
                "assistant",
                json!([{"type": "text", "text": "two"}, spawn("t2")]),
            ),
            aside("", record("f1", Value::Null, 3, "user", json!("Look."))),
            aside("", record("g1", Value::Null, 4, "user", json!("Look."))),
            record("r1", json!("c1"), 5, "user", result("t1", "done")),
        ]),
    );
    import(&database, &["claude-code", &file]).expect_success();
    let found = turns(&database);
    let looks: Vec<&str> =
        found.iter().filter(|turn| turn.contains("| Look.")).map(String::as_str).collect();
    assert_eq!(looks.len(), 2);
    assert!(looks[0].contains("<- branch one/"), "{looks:?}");
    assert!(looks[1].contains("<- branch two/"), "{looks:?}");
}

#[test]
fn thoughts_calls_and_errors_are_in_the_payload() {
    let database = Database::with_tables("import_payload");
    let folder = Folder::new("payload");
    let file = folder.write(
        "claude.json",
        json!([{"uuid": "c", "chat_messages": [
            {"uuid": "q", "sender": "human", "created_at": "2026-01-01T00:00:00Z", "text": "Read it.",
             "content": [{"type": "text", "text": "Read it."}],
             "attachments": [{"file_name": "a.txt", "file_size": 3, "extracted_content": "abc"}],
             "files": [{"file_name": "b.png"}]},
            {"uuid": "a", "sender": "assistant", "created_at": "2026-01-01T00:00:01Z", "content": [
                {"type": "thinking", "thinking": "Hm\u{0}m.", "signature": "sig"},
                {"type": "tool_use", "id": "t", "name": "read", "input": {"path": "a.txt", "lines": [1, 2.5]}},
                {"type": "tool_result", "tool_use_id": "t", "name": "read", "is_error": true,
                 "content": [{"type": "text", "text": "denied"},
                             {"type": "image",
                              "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}]},
                {"type": "text", "text": "I may not."}]}]}])
        .to_string(),
    );
    import(&database, &["claude", &file]).expect_success();
    assert_eq!(
        turns(&database),
        [
            "user | Read it./[file a.txt]/abc/[file b.png]",
            "assistant | [call read] {\"lines\":[1,2.5],\"path\":\"a.txt\"} <- reply Read it./[file a.txt]/abc/[fil",
            "tool | denied/[image] <- reply [call read] {\"lines\":[1,2.5],\"",
            "assistant | I may not. <- reply denied/[image]",
        ]
    );
    let plain =
        "SELECT count(*) FROM memory_turns WHERE payload IS NULL AND content_text = 'I may not.'";
    assert_eq!(number(&database, plain), 1, "role and text say all of it");
    let asked = payload(&database, "Read it.");
    assert_eq!(asked["role"], "user");
    assert_eq!(asked["content"], json!([{"type": "text", "text": "Read it."}]));
    assert_eq!(asked["attachments"][0]["file_name"], "a.txt");
    assert_eq!(asked["files"][0]["file_name"], "b.png");
    assert_eq!(
        payload(&database, "[call read]"),
        json!({"role": "assistant", "content": [
            {"type": "thinking", "thinking": "Hm\u{fffd}m.", "signature": "sig"},
            {"type": "tool_use", "id": "t", "name": "read", "input": {"path": "a.txt", "lines": [1, 2.5]}}]})
    );
    let denied = payload(&database, "denied");
    assert_eq!(
        (&denied["role"], &denied["content"][0]["is_error"]),
        (&json!("user"), &json!(true))
    );
    assert_eq!(
        denied["content"][0]["content"][1]["source"],
        json!({"type": "base64", "media_type": "image/png"})
    );

    // What role and text say alone needs no payload; calls, results and files do.
    for (format, file) in [
        ("chatgpt", "chatgpt.json"),
        ("claude", "claude.json"),
        ("claude-code", "claude-code.jsonl"),
        ("librechat", "librechat.json"),
        ("openwebui", "openwebui.json"),
        ("codex", "rollout-codex.jsonl"),
    ] {
        let database = Database::with_tables("import_payloads");
        import(&database, &[format, &export(file)]).expect_success();
        let without = "SELECT count(*) FROM memory_turns WHERE jsonb_typeof(payload) IS DISTINCT FROM 'object'
                          AND (role = 'tool' OR content_text = '' OR content_text ~ '\\[(call|file|image) ')
                          AND NOT (role = 'system' OR content_text ~ '^[[(]1041|details')";
        assert_eq!(number(&database, without), 0, "{format}");
        assert!(number(&database, "SELECT count(*) FROM memory_turns") > 0);
        // What is counted is what would be sent: never less than the text.
        let fewer = "SELECT count(*) FROM memory_turns
                      WHERE token_count < octet_length(content_text) / 4 AND content_text LIKE '[call %'";
        assert_eq!(number(&database, fewer), 0, "{format}");
    }
}

#[test]
fn rollouts_of_codex_become_turns() {
    let database = Database::with_tables("import_codex");
    let folder = Folder::new("codex");
    let below = folder.0.join("2026/01/02");
    fs::create_dir_all(&below).unwrap();
    let item = |second: u32, item: Value| {
        let timestamp = format!("2026-01-02T00:00:{second:02}Z");
        json!({"timestamp": timestamp, "type": "response_item", "payload": item})
    };
    let event = |kind: &str, more: Value| {
        let mut payload = json!({"type": kind});
        payload.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({"timestamp": "2026-01-02T00:00:00Z", "type": "event_msg", "payload": payload})
    };
    let says = |role: &str, text: &str| {
        let kind = if role == "assistant" { "output_text" } else { "input_text" };
        json!({"type": "message", "role": role, "content": [{"type": kind, "text": text}]})
    };
    fs::write(
        below.join("rollout-2026-01-02T00-00-00-0199.jsonl"),
        lines(&[
            json!({"timestamp": "2026-01-02T00:00:00Z", "type": "session_meta",
                   "payload": {"id": "0199", "cwd": "/src", "cli_version": "0.80.0"}}),
            json!({"timestamp": "2026-01-02T00:00:00Z", "type": "turn_context", "payload": {"model": "m"}}),
            item(1, says("user", "Fix it.")),
            event("user_message", json!({"message": "Fix it."})),
            item(2, json!({"type": "reasoning", "summary": [{"type": "summary_text", "text": "Look first."}],
                           "encrypted_content": "gAAA"})),
            item(3, json!({"type": "function_call", "name": "shell", "arguments": "{\"command\":[\"ls\"]}",
                           "call_id": "k1"})),
            item(4, json!({"type": "function_call", "name": "shell", "arguments": "{\"command\":[\"pwd\"]}",
                           "call_id": "k2"})),
            item(5, json!({"type": "function_call_output", "call_id": "k2", "output": "/src"})),
            item(6, json!({"type": "function_call_output", "call_id": "k1",
                           "output": [{"type": "input_text", "text": "a.rs"}]})),
            item(7, json!({"type": "custom_tool_call", "name": "apply_patch", "input": "*** Begin", "call_id": "k3"})),
            item(8, json!({"type": "custom_tool_call_output", "call_id": "k3", "output": "ok"})),
            item(9, says("assistant", "Fixed.")),
            json!({"timestamp": "2026-01-02T00:00:10Z", "type": "compacted", "payload": {"message": "They fixed it."}}),
            item(11, says("user", "Undo.")),
            item(12, says("assistant", "No.")),
            event("thread_rolled_back", json!({"num_turns": 1})),
            item(13, says("user", "Thanks.")),
            item(14, json!({"type": "web_search_call", "action": {"type": "search", "query": "tea"},
                            "status": "completed"})),
            item(15, json!({"type": "some_new_call", "call_id": "k4", "name": "dance"})),
        ]),
    )
    .unwrap();
    // Before the envelope there were records without one.
    fs::write(
        below.join("rollout-2025-05-01-old.jsonl"),
        lines(&[
            json!({"id": "old", "timestamp": "2025-05-01T00:00:00Z", "instructions": null}),
            json!({"record_type": "state"}),
            says("user", "Hello."),
            says("assistant", "Hi."),
        ]),
    )
    .unwrap();
    folder.write("history.jsonl", "{\"session_id\": \"0199\", \"ts\": 1, \"text\": \"Fix it.\"}\n");
    let path = folder.0.to_str().unwrap();
    let answer = import(&database, &["codex", path]).expect_success();
    assert_eq!(answer.count("conversations: "), 2, "{}", answer.out);
    assert_eq!(answer.count("files that are not transcripts: "), 1, "{}", answer.out);
    assert_eq!(
        turns(&database),
        [
            "user | Fix it.",
            "assistant |  <- reply Fix it.",
            "assistant | [call shell] {\"command\":[\"ls\"]} <- reply ",
            "assistant | [call shell] {\"command\":[\"pwd\"]} <- reply [call shell] {\"command\":[\"ls\"]",
            "tool | /src <- reply [call shell] {\"command\":[\"pwd\"",
            "tool | a.rs <- reply [call shell] {\"command\":[\"ls\"]",
            "assistant | [call apply_patch] *** Begin <- reply /src",
            "tool | ok <- reply [call apply_patch] *** Begin",
            "assistant | Fixed. <- reply ok",
            "system | They fixed it. <- reference Fixed.",
            "user | Undo. <- reply They fixed it.",
            "assistant | No. <- reply Undo.",
            "user | Thanks. <- reply They fixed it.",
            "assistant | [call web_search] {\"query\":\"tea\",\"type\":\"search\"} <- reply Thanks.",
            "assistant | [call dance] <- reply [call web_search] {\"query\":\"te",
            "user | Hello.",
            "assistant | Hi. <- reply Hello.",
        ]
    );
    assert_eq!(payload(&database, "[call apply_patch]")["output"][0]["call_id"], "k3");
    let thought = payload(&database, "");
    assert_eq!(thought["output"][0]["encrypted_content"], "gAAA", "{thought}");
    let again = import(&database, &["codex", path]).expect_success();
    assert_eq!((again.count("turns: "), again.count("edges: ")), (0, 0), "{}", again.out);
    // A session that goes on in the same file adds what is new.
    let mut text = fs::read_to_string(below.join("rollout-2025-05-01-old.jsonl")).unwrap();
    text.push_str(&lines(&[says("user", "More.")]));
    fs::write(below.join("rollout-2025-05-01-old.jsonl"), text).unwrap();
    let more = import(&database, &["codex", path]).expect_success();
    assert_eq!((more.count("turns: "), more.count("edges: ")), (1, 1), "{}", more.out);
}

#[test]
fn links_are_followed_once_and_what_is_not_read_is_named() {
    let database = Database::with_tables("import_links");
    let folder = Folder::new("links");
    let real = Folder::new("links_elsewhere");
    fs::create_dir_all(real.0.join("p")).unwrap();
    fs::copy(export("claude-code.jsonl"), real.0.join("p/5e55-1.jsonl")).unwrap();
    fs::copy(export("agent-01.jsonl"), real.0.join("agent-01.jsonl")).unwrap();
    symlink(real.0.join("p"), folder.0.join("project")).unwrap();
    symlink(real.0.join("p"), folder.0.join("project-again")).unwrap();
    symlink(real.0.join("agent-01.jsonl"), folder.0.join("agent-01.jsonl")).unwrap();
    symlink(&folder.0, folder.0.join("circle")).unwrap();
    let path = folder.0.to_str().unwrap();
    let answer = import(&database, &["claude-code", path]).expect_success();
    assert_eq!(answer.count("turns: "), 14, "{}{}", answer.out, answer.err);
    assert_eq!(stored(&database), fs::read_to_string(export("claude-code.txt")).unwrap());

    symlink("/nowhere/at/all", folder.0.join("gone.jsonl")).unwrap();
    symlink("/dev/zero", folder.0.join("zero.jsonl")).unwrap();
    folder.write("journal.jsonl", "{\"type\":\"started\",\"agentId\":\"x\"}\n");
    folder.write("settings.json", "{}");
    folder.write(
        "torn.jsonl",
        "{\"type\":\"file-history-snapshot\",\"messageId\":\"m\",\"snapshot\":{}}\n",
    );
    let answer = import(&database, &["claude-code", path]);
    assert_eq!(answer.status, 0, "{}{}", answer.out, answer.err);
    assert!(
        answer.err.contains("gone.jsonl: ") && answer.err.contains("zero.jsonl: "),
        "{}",
        answer.err
    );
    assert_eq!(answer.count("files that are not transcripts: "), 5, "{}", answer.out);
    assert_eq!(answer.count("broken records: "), 0, "{}", answer.out);
}

/// Applications delete transcripts, also while they are imported.
#[test]
fn files_that_go_away_are_reported_and_the_others_are_imported() {
    let database = Database::with_tables("import_gone");
    let folder = Folder::new("gone");
    let says = |text: &str| {
        lines(&[json!({"type": "message", "role": "user",
                       "content": [{"type": "input_text", "text": text}]})])
    };
    for name in ["a", "b", "c", "d"] {
        folder.write(&format!("{name}.jsonl"), says(name));
    }
    // The program finds the files before it asks the server for anything.
    let mut holder = database.connect();
    holder.batch_execute("BEGIN; LOCK TABLE pg_extension IN ACCESS EXCLUSIVE MODE").unwrap();
    let child = graph_kernel(&database)
        .args(["import", "codex", folder.0.to_str().unwrap()])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'pg_extension'::regclass
                      AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
    while holder.query_one(waiting, &[]).unwrap().get::<_, i64>(0) == 0 {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    fs::remove_file(folder.0.join("a.jsonl")).unwrap();
    fs::remove_file(folder.0.join("b.jsonl")).unwrap();
    symlink("b.jsonl", folder.0.join("b.jsonl")).unwrap();
    holder.batch_execute("COMMIT").unwrap();
    let answer = Answer::of(child.wait_with_output().unwrap());
    assert_eq!((answer.status, answer.count("turns: ")), (0, 2), "{}{}", answer.out, answer.err);
    let named = ["a.jsonl: No such file", "b.jsonl: Too many levels of symbolic links"];
    assert!(named.iter().all(|named| answer.err.contains(named)), "{}", answer.err);
    assert_eq!(answer.count("files that are not transcripts: "), 2, "{}", answer.out);

    // Of files that were named, one that cannot be read is no success.
    symlink("/proc/self/mem", folder.0.join("e.jsonl")).unwrap();
    let path = |name: &str| folder.0.join(name).to_str().unwrap().to_owned();
    let files = [path("e.jsonl"), folder.write("f.jsonl", says("f"))];
    let answer = import(&database, &["codex", &files[0], &files[1]]);
    assert_eq!((answer.status, answer.count("turns: ")), (1, 1), "{}{}", answer.out, answer.err);
    assert!(answer.err.contains("e.jsonl: Input/output error"), "{}", answer.err);
    assert_eq!(answer.count("broken records: "), 1, "{}", answer.out);
}

#[test]
fn a_folder_without_transcripts_and_a_file_of_another_format_are_named() {
    let database = Database::with_tables("import_named");
    let folder = Folder::new("named");
    fs::create_dir_all(folder.0.join("empty/below")).unwrap();
    fs::write(folder.0.join("empty/notes.txt"), "x").unwrap();
    let empty = folder.0.join("empty");
    for format in ["claude-code", "codex"] {
        let answer = import(&database, &[format, empty.to_str().unwrap()]);
        assert_eq!(answer.status, 1, "{format}: {}", answer.out);
        assert!(
            answer.err.contains("empty: ") && answer.err.contains("no transcript"),
            "{}",
            answer.err
        );
        assert_eq!(answer.count("files that are not transcripts: "), 1, "{}", answer.out);
    }
    let files = [
        ("chatgpt", "chatgpt.json"),
        ("claude", "claude.json"),
        ("claude-code", "claude-code.jsonl"),
        ("codex", "rollout-codex.jsonl"),
        ("librechat", "librechat.json"),
        ("librechat", "librechat-recursive.json"),
        ("openwebui", "openwebui.json"),
        ("jsonl", "rows.jsonl"),
    ];
    for (format, _) in files {
        for (actual, file) in files.iter().filter(|(actual, _)| *actual != format) {
            let answer = import(&database, &[format, &export(file)]);
            assert_eq!(answer.status, 1, "{format} {file}: {}", answer.out);
            let expected = format!("this looks like {actual}");
            assert!(answer.err.contains(&expected), "{format} {file}: {}", answer.err);
        }
    }
    // What it looks like stands before what is wrong with its lines, of which one is enough.
    let lines = "{\n  \"mapping\": {\"a\":\n    {\"message\": null}\n  }\n}\n".repeat(30);
    let pretty = folder.write("pretty.json", lines);
    for (format, broken) in [("claude-code", 150), ("codex", 150), ("jsonl", 150)] {
        let answer = import(&database, &[format, &pretty]);
        let said: Vec<&str> = answer.err.lines().collect();
        assert!(said[0].ends_with("is in it; this looks like chatgpt"), "{format}: {}", answer.err);
        assert!(said[1].contains("pretty.json:1: not JSON"), "{format}: {}", answer.err);
        assert_eq!(said[2..], ["and 149 more broken records"], "{format}");
        assert_eq!((answer.status, answer.count("broken records: ")), (1, broken), "{format}");
    }
    for (format, actual, file) in [
        ("codex", "claude-code", "claude-code.jsonl"),
        ("claude-code", "codex", "rollout-codex.jsonl"),
    ] {
        let path = folder.0.join(format).join("below");
        fs::create_dir_all(&path).unwrap();
        fs::write(path.join("a.jsonl"), "{\"neither\": 1}\n").unwrap();
        fs::copy(export(file), path.join(file)).unwrap();
        let answer = import(&database, &[format, path.parent().unwrap().to_str().unwrap()]);
        let expected =
            format!("no transcript in the format {format} is in it; this looks like {actual}\n");
        assert!(answer.err.ends_with(&expected), "{}", answer.err);
        assert_eq!(answer.status, 1, "{}", answer.out);
    }
    assert_eq!(number(&database, "SELECT count(*) FROM memory_turns"), 0);
    let empty_file = folder.write("nothing.jsonl", "");
    for format in ["claude-code", "codex", "chatgpt"] {
        let answer = import(&database, &[format, &empty_file]);
        assert!(
            answer.status == 1 && answer.err.contains("nothing.jsonl"),
            "{format}: {}",
            answer.err
        );
    }
}

#[test]
fn what_cannot_be_reached_or_is_another_users_says_so() {
    let database = Database::with_tables("import_said");
    let port = super::free_port().to_string();
    let mut command = graph_kernel(&database);
    command.env("PGHOST", "127.0.0.1").env("PGPORT", &port).args([
        "import",
        "chatgpt",
        &export("chatgpt.json"),
    ]);
    let refused = Answer::of(command.output().unwrap());
    assert_eq!(refused.status, 2);
    assert!(
        refused.err.contains("127.0.0.1")
            && refused.err.contains(&port)
            && refused.err.contains("refused"),
        "{}",
        refused.err
    );
    let unknown = super::ask(&database, &["sessions", "nosuch"]);
    assert_eq!((unknown.status, unknown.out.as_str()), (1, ""));
    assert!(unknown.err.contains("no session nosuch"), "{}", unknown.err);

    database
        .connect()
        .batch_execute(
            "CREATE ROLE gk_test_ann LOGIN; CREATE ROLE gk_test_bo LOGIN;
             ALTER TABLE memory_turns ADD COLUMN tenant name NOT NULL DEFAULT current_user;
             ALTER TABLE memory_turns ENABLE ROW LEVEL SECURITY;
             CREATE POLICY own ON memory_turns USING (tenant = current_user);
             GRANT SELECT, INSERT ON memory_turns, memory_turn_edges TO gk_test_ann, gk_test_bo",
        )
        .unwrap();
    let by = |user: &str, more: &[&str]| {
        let mut command = graph_kernel(&database);
        command.env("PGUSER", user).args(["import", "chatgpt", &export("chatgpt.json")]).args(more);
        Answer::of(command.output().unwrap())
    };
    by("gk_test_ann", &[]).expect_success();
    let taken = by("gk_test_bo", &[]);
    assert_eq!(taken.status, 1, "{}", taken.out);
    assert!(taken.err.contains("--account"), "{}", taken.err);
    by("gk_test_bo", &["--account", "bo"]).expect_success();
    for role in ["gk_test_ann", "gk_test_bo"] {
        database.drop_role(role);
    }
    assert!(Path::new(&export("chatgpt.json")).is_file());
}

/// What was once lost without a word.
#[test]
fn what_is_odd_in_a_file_is_read_or_reported() {
    let database = Database::with_tables("import_odd");
    let folder = Folder::new("odd");
    let claude = |messages: Value| json!([{"uuid": "c", "chat_messages": messages}]).to_string();
    let at = "2026-01-01T00:00:00Z";
    let said = claude(
        json!([{"uuid": "a", "sender": "human", "created_at": at, "text": "", "content": "A text."}]),
    );
    import(&database, &["claude", &folder.write("text.json", said)]).expect_success();
    assert_eq!(turns(&database), ["user | A text."]);

    let twice = |second: &str| {
        let message =
            |text: &str| json!({"uuid": "a", "sender": "human", "created_at": at, "text": text});
        claude(json!([message("one"), message(second)]))
    };
    let other = folder.write("other.json", twice("two"));
    let doubled = import(&database, &["claude", &other, "--account", "other"]).expect_success();
    assert_eq!(doubled.count("turns left out, as one before has the id: "), 1, "{}", doubled.out);
    let left_out = "turns left out, as another session has the id: ";
    let again = import(&database, &["claude", &other, "--account", "other"]).expect_success();
    assert!(!again.out.contains(left_out), "{}", again.out);
    let moved = "UPDATE memory_turns SET session_id = 'moved' WHERE session_id LIKE '%:other:%'";
    database.connect().batch_execute(moved).unwrap();
    let again = import(&database, &["claude", &other, "--account", "other"]).expect_success();
    assert_eq!(again.count(left_out), 1, "{}", again.out);
    let rows = folder.write(
        "rows.jsonl",
        r#"{"id": "a0000000-0000-4000-8000-000000000001", "session_id": "mine", "role": "user", "content_text": "x"}"#,
    );
    import(&database, &["jsonl", &rows]).expect_success();
    let again = import(&database, &["jsonl", &rows]).expect_success();
    assert!(!again.out.contains(left_out), "{}", again.out);
    let moved = "UPDATE memory_turns SET session_id = 'moved' WHERE session_id = 'mine'";
    database.connect().batch_execute(moved).unwrap();
    let again = import(&database, &["jsonl", &rows]).expect_success();
    assert_eq!(again.count(left_out), 1, "{}", again.out);

    let same = folder.write("same.json", twice("one"));
    let doubled = import(&database, &["claude", &same, "--account", "same"]).expect_success();
    assert!(!doubled.out.contains("left out, as"), "{}", doubled.out);

    let chats = json!([
        {"id": "old", "chat": {"messages": [{"id": "q", "role": "user", "content": "legacy"}]}},
        {"id": "new", "chat": {"messages": [{"id": "q"}], "history": {"messages": {
            "q": {"id": "q", "role": "user", "content": "x", "timestamp": 1},
            "a": {"id": "a", "parentId": "q", "role": "assistant", "content": "", "timestamp": 2,
                  "merged": {"status": true, "content": "one of two"}},
            "r": {"id": "r", "parentId": "q", "role": "assistant", "content": "", "timestamp": 3,
                  "output": [{"type": "message", "content": [{"type": "refusal", "refusal": "No."}]}]}}}}}]);
    let chats = import(&database, &["openwebui", &folder.write("chats.json", chats.to_string())]);
    assert_eq!((chats.status, chats.count("broken records: ")), (1, 1), "{}", chats.out);
    assert!(chats.err.contains("without a history"), "{}", chats.err);
    let found = turns(&database);
    for text in ["assistant | one of two <- reply x", "assistant | No. <- reply x"] {
        assert!(found.iter().any(|turn| turn == text), "{found:?}");
    }

    let null = json!({"timestamp": at, "type": "response_item", "payload": null});
    let null = import(&database, &["codex", &folder.write("rollout-null.jsonl", lines(&[null]))]);
    assert_eq!((null.status, null.count("broken records: ")), (1, 1), "{}", null.out);
}
