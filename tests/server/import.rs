//! The program `graph-kernel` and a database: importing conversations, and asking for slices, prompts and sessions.
//!
//! The exports below `tests/server/exports` are written for these tests after the formats of the applications, with
//! what is odd in them: nodes without messages, halves of surrogate pairs, regenerated answers, transcripts of called
//! agents. Beside each is what the tables hold after its import.

mod connections;
pub(crate) mod pooler;
mod real_files;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::cluster::{Cluster, give_to_server};
use crate::common::database::{Database, load_graph};
use crate::common::process::{peak_memory, run};
use crate::common::{Server, tell, variable};
use crate::page::Page;
use serde_json::{Value, json};
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

/// A folder for the files of a test, removed when it goes out of scope.
pub(crate) struct Folder(PathBuf);

impl Folder {
    /// `name` is the test's own.
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("gk_import_{}_{name}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn write(&self, file: &str, content: impl AsRef<[u8]>) -> String {
        let path = self.0.join(file);
        fs::write(&path, content).unwrap();
        path.to_str().unwrap().to_owned()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// What the program has printed on its two streams, and its exit status.
pub(crate) struct Answer {
    status: i32,
    pub(crate) out: String,
    err: String,
}

impl Answer {
    fn of(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).expect("the program prints UTF-8");
        Answer {
            status: output.status.code().expect("the program exits"),
            out: text(output.stdout),
            err: text(output.stderr),
        }
    }

    /// The number behind a name in the counts, such as `turns: `.
    fn count(&self, name: &str) -> u64 {
        let behind = self.out.split_once(name).unwrap_or_else(|| panic!("{name}: {}", self.out)).1;
        let digits: String = behind.chars().take_while(char::is_ascii_digit).collect();
        digits.parse().unwrap()
    }

    /// Says nothing but how far it has come, where it takes long.
    pub(crate) fn expect_success(self) -> Self {
        let is_progress = |line: &str| line.contains("B of ") && line.ends_with(" messages");
        let others: Vec<&str> = self.err.lines().filter(|line| !is_progress(line)).collect();
        assert_eq!((self.status, others), (0, Vec::new()), "{}", self.out);
        self
    }
}

/// The program, connected to a database by the environment.
pub(crate) fn graph_kernel(database: &Database) -> Command {
    let mut command = Command::new(variable("GRAPH_KERNEL_PROGRAM"));
    command.env("PGDATABASE", &database.name).env("NO_COLOR", "1").env_remove("PGOPTIONS");
    command
}

pub(crate) fn ask(database: &Database, arguments: &[&str]) -> Answer {
    Answer::of(graph_kernel(database).args(arguments).output().unwrap())
}

pub(crate) fn import(database: &Database, arguments: &[&str]) -> Answer {
    Answer::of(graph_kernel(database).arg("import").args(arguments).output().unwrap())
}

/// An export that comes with the tests.
pub(crate) fn export(file: &str) -> String {
    format!("{}/server/exports/{file}", env!("CARGO_MANIFEST_DIR"))
}

/// Every turn in the created tables: session, time, role, tokens, content, and the contents of its parents.
fn stored(database: &Database) -> String {
    let rows = database
        .connect()
        .query(
            r"SELECT concat_ws(' | ', t.session_id,
                       coalesce(to_char(t.created_at AT TIME ZONE 'UTC', 'MM-DD HH24:MI:SS.MS'), '-'),
                     t.role, coalesce(t.token_count::text, '-'), replace(t.content_text, E'\n', '\n'))
                     || coalesce(' <- ' || (
                        SELECT string_agg(e.edge_type || ' ' || replace(left(p.content_text, 20), E'\n', '\n'), ', '
                                          ORDER BY p.content_text COLLATE C, e.edge_type COLLATE C)
                          FROM memory_turn_edges AS e JOIN memory_turns AS p ON p.id = e.parent_turn_id
                         WHERE e.child_turn_id = t.id), '')
                FROM memory_turns AS t
               ORDER BY t.session_id COLLATE C, t.created_at NULLS FIRST, t.role COLLATE C DESC,
                        t.content_text COLLATE C"
                .replace("COLLATE C", "COLLATE \"C\"")
                .as_str(),
            &[],
        )
        .unwrap();
    rows.iter().map(|row| row.get::<_, String>(0) + "\n").collect()
}

fn number(database: &Database, query: &str) -> i64 {
    database.connect().query_one(query, &[]).unwrap().get(0)
}

/// The formats with their files, and what the tables hold afterwards.
const EXPORTS: [(&str, &[&str], &str); 7] = [
    ("chatgpt", &["chatgpt.json"], "chatgpt.txt"),
    ("claude", &["claude.json"], "claude.txt"),
    ("claude-code", &["agent-01.jsonl", "claude-code.jsonl"], "claude-code.txt"),
    ("librechat", &["librechat.json"], "librechat.txt"),
    ("librechat", &["librechat-recursive.json"], "librechat.txt"),
    ("openwebui", &["openwebui.json"], "openwebui.txt"),
    ("jsonl", &["rows.jsonl"], "rows.txt"),
];

#[test]
fn every_format_imports_twice_with_the_same_result() {
    for (format, files, expected) in EXPORTS {
        let database = Database::with_tables("import_formats");
        let files: Vec<String> = files.iter().map(|file| export(file)).collect();
        let mut arguments = vec![format];
        arguments.extend(files.iter().map(String::as_str));

        let dry = import(&database, &[&arguments[..], &["--dry-run"]].concat()).expect_success();
        assert_eq!(stored(&database), "", "{format}: a dry run stores nothing");
        let first = import(&database, &arguments).expect_success();
        // Edges between two files of one session are counted only where both are stored.
        for name in ["conversations: ", "turns: ", "broken records: "] {
            assert_eq!(dry.count(name), first.count(name), "{format}: {name}{}", dry.out);
        }
        assert_eq!(first.count(" new, "), 0, "{format}: nothing was there: {}", first.out);
        let text = stored(&database);
        let path = export(expected);
        if std::env::var("GRAPH_KERNEL_BLESS").is_ok_and(|value| value == "1") {
            fs::write(&path, &text).unwrap();
        }
        assert_eq!(text, fs::read_to_string(&path).unwrap(), "{format}: {expected}");

        let second = import(&database, &arguments).expect_success();
        assert_eq!(second.count("turns: "), 0, "{format}: {}", second.out);
        assert_eq!(second.count("edges: "), 0, "{format}: {}", second.out);
        assert_eq!(second.count(" new, "), first.count("turns: "), "{format}: {}", second.out);
        assert_eq!(second.count("conversations: "), 0, "{format}: {}", second.out);
        assert_eq!(stored(&database), text, "{format}: the second time nothing changes");
        let wrong = "SELECT count(*) FROM graph_check() WHERE NOT ok";
        assert_eq!(number(&database, wrong), 0, "{format}");
    }
}

#[test]
fn a_longer_export_adds_what_is_new() {
    let database = Database::with_tables("import_longer");
    let folder = Folder::new("longer");
    // Half a surrogate pair, which the program reads as U+FFFD, is not JSON for others.
    let text = fs::read_to_string(export("chatgpt.json")).unwrap().replace("\\ud83d", "\\ufffd");
    let mut conversations: Value = serde_json::from_str(&text).unwrap();
    let whole = conversations.clone();
    let nodes = conversations[0]["mapping"].as_object_mut().unwrap();
    nodes.remove("b1");
    nodes.remove("q1");
    let earlier = folder.write("earlier.json", conversations.to_string());
    let later = folder.write("later.json", whole.to_string());

    let first = import(&database, &["chatgpt", &earlier]).expect_success();
    let second = import(&database, &["chatgpt", &later]).expect_success();
    assert_eq!((second.count("turns: "), second.count("edges: ")), (2, 2), "{}", second.out);
    assert_eq!(second.count(" new, "), first.count("turns: "));
    assert_eq!(stored(&database), fs::read_to_string(export("chatgpt.txt")).unwrap());
}

#[test]
fn a_tree_with_regenerations_slices_by_lineage_as_its_active_branch() {
    let database = Database::with_tables("import_lineage");
    import(&database, &["chatgpt", &export("chatgpt.json")]).expect_success();
    let sessions = ask(&database, &["sessions"]).expect_success();
    let latest = |line: usize| -> Vec<&str> {
        sessions.out.lines().nth(line).unwrap().split_whitespace().collect()
    };
    assert_eq!(sessions.out.lines().count(), 2);
    assert_eq!(latest(0)[1], "2");
    let [at, turns, anchor, session] = latest(1).try_into().unwrap();
    assert_eq!(
        (at, turns, session),
        ("2025-03-01T10:01:41Z", "10", "chatgpt::67c2f6e0-0000-8000-8000-000000000001")
    );

    let prompt = ask(&database, &["prompt", anchor, "--policy", "lineage"]).expect_success();
    let expected = "\
user:
\x20 I keep the books.
\x20 Be brief.

user:
\x20 [image ledger.png]
\x20 Which invoices are overdue? \u{fffd}

assistant:
\x20 [call python] overdue(ledger)

tool:
\x20 [1041, 1057]

assistant:
\x20 Two: 1041 and 1057.

user:
\x20 Draft a reminder for 1057.

assistant:
\x20 Dear customer, invoice 1057 is overdue.
";
    assert_eq!(prompt.out, expected, "the regenerated answer is not on the branch");

    let slice = ask(&database, &["slice", anchor, "--policy", "lineage"]).expect_success();
    let query = "SELECT graph_slice($1::text::uuid, 'lineage')::text";
    let answer: String = database.connect().query_one(query, &[&anchor]).unwrap().get(0);
    assert_eq!(slice.out, answer + "\n");

    // A policy may be named as it was registered.
    let register = "SELECT FROM graph_policy_register('lineage', 'our lineage')";
    database.connect().batch_execute(register).unwrap();
    let named = ask(&database, &["slice", anchor, "--policy", "our lineage"]).expect_success();
    assert_eq!(named.out, slice.out);
    let other = ask(&database, &["slice", anchor, "--policy", "no such"]);
    assert!(other.status == 2 && other.err.contains("POLICY_NOT_FOUND"), "{}", other.err);

    let unknown = ask(&database, &["slice", "00000000-0000-4000-8000-00000000dead"]);
    assert_eq!(unknown.status, 2);
    assert!(
        unknown.err.contains("ANCHOR_NOT_FOUND") && unknown.err.contains("hint"),
        "{}",
        unknown.err
    );
    assert_eq!(ask(&database, &["prompt", "u1"]).status, 2);
    assert_eq!(ask(&database, &["prompt", anchor, "--policy", "{"]).status, 2);
}

#[test]
fn accounts_formats_and_conversations_keep_their_turns_apart() {
    let database = Database::with_tables("import_apart");
    let file = export("chatgpt.json");
    let first = import(&database, &["chatgpt", &file]).expect_success();
    let turns = first.count("turns: ");
    for account in ["ann", "bo"] {
        let other = import(&database, &["chatgpt", &file, "--account", account]).expect_success();
        assert_eq!(other.count("turns: "), turns);
    }
    assert_eq!(number(&database, "SELECT count(*) FROM memory_turns") as u64, 3 * turns);
    // Both conversations have a message u1. No edge, so no sibling, leads from one to the other.
    let across = "SELECT count(*) FROM memory_turn_edges AS e
                    JOIN memory_turns AS p ON p.id = e.parent_turn_id
                    JOIN memory_turns AS c ON c.id = e.child_turn_id
                   WHERE p.session_id <> c.session_id";
    assert_eq!(number(&database, across), 0);
    assert_eq!(number(&database, "SELECT count(DISTINCT session_id) FROM memory_turns"), 6);
    let ids = "SELECT count(*) FROM memory_turns
                WHERE id = graph_turn_id('[\"chatgpt\", \"ann\", \"67c2f6e0-0000-8000-8000-000000000002\", \"u1\"]')";
    assert_eq!(number(&database, ids), 1, "ids are those that the documentation gives");
    assert_eq!(import(&database, &["chatgpt", &file, "--account", "a:b"]).status, 2);
}

#[test]
fn ids_in_a_file_are_never_turn_ids() {
    let database = Database::with_tables("import_ids");
    let folder = Folder::new("ids");
    let victim = "00000000-0000-4000-8000-00000000aaaa";
    database
        .connect()
        .batch_execute(&format!(
            "INSERT INTO memory_turns (id, content_text) VALUES ('{victim}', 'mine')"
        ))
        .unwrap();
    let node = |id: &str, parent: &str| {
        json!({"id": id, "parent": parent, "message": {"id": id, "author": {"role": "user"}, "create_time": 1,
               "content": {"content_type": "text", "parts": ["theirs"]}}})
    };
    let file = folder.write(
        "named.json",
        json!([{"id": victim, "mapping": {victim: node(victim, "x"), "y": node("y", victim)}}])
            .to_string(),
    );
    import(&database, &["chatgpt", &file]).expect_success();
    let edges = format!(
        "SELECT count(*) FROM memory_turn_edges WHERE '{victim}' IN (parent_turn_id, child_turn_id)"
    );
    assert_eq!(number(&database, &edges), 0);
    let mine = format!(
        "SELECT count(*) FROM memory_turns WHERE id = '{victim}' AND content_text = 'mine'"
    );
    assert_eq!(number(&database, &mine), 1);
    assert_eq!(number(&database, "SELECT count(*) FROM memory_turns"), 3);
}

#[test]
fn times_and_sessions_choose_conversations() {
    let database = Database::with_tables("import_chosen");
    let file = export("chatgpt.json");
    let since = import(&database, &["chatgpt", &file, "--since", "2025-03-02"]).expect_success();
    assert_eq!((since.count("conversations: "), since.count("turns: ")), (1, 2), "{}", since.out);
    let session = "67c2f6e0-0000-8000-8000-000000000001";
    let chosen = import(&database, &["chatgpt", &file, "--session", session]).expect_success();
    assert_eq!((chosen.count("conversations: "), chosen.count("turns: ")), (1, 10));
    // A session as it is listed, of the account and the format that are read.
    let listed = format!("chatgpt:ann:{session}");
    let of_ann = ["chatgpt", &file, "--account", "ann", "--session", &listed];
    let chosen = import(&database, &of_ann).expect_success();
    assert_eq!((chosen.count("conversations: "), chosen.count("turns: ")), (1, 10));
    for (wrong, account) in [("nosuch", ""), (listed.as_str(), ""), (listed.as_str(), "bo")] {
        let options = ["--session", wrong, "--account", account];
        let answer = import(&database, &[&["chatgpt", &file][..], &options].concat());
        let said = (answer.status, answer.err.as_str());
        assert_eq!(said, (1, format!("no conversation with the id {wrong} was read\n").as_str()));
        assert_eq!(answer.count("conversations: "), 0, "{}", answer.out);
    }
    let wrong = import(&database, &["chatgpt", &file, "--since", "yesterday"]);
    assert!(wrong.status == 2 && wrong.err.contains("2025-03-01"), "{}", wrong.err);
    let restore = import(&database, &["jsonl", &export("rows.jsonl"), "--since", "2025-03-02"]);
    assert_eq!(restore.status, 2);
}

#[test]
fn a_broken_record_leaves_its_conversation_out_or_only_itself() {
    let folder = Folder::new("broken");
    let message = |id: &str, parent: Value, role: Value| {
        json!({"uuid": id, "sender": role, "text": id, "parent_message_uuid": parent,
               "created_at": "2025-01-01T00:00:00Z"})
    };
    let whole =
        json!({"uuid": "whole", "chat_messages": [message("w1", Value::Null, json!("human"))]});
    let broken = json!({"uuid": "broken", "chat_messages": [
        message("b1", Value::Null, json!("human")),
        message("b2", json!("b1"), json!(7)),
        message("b3", json!("b2"), json!("human"))
    ]});
    let text = format!("[\n{broken},\n{whole}\n]");
    let file = folder.write("claude.json", &text);

    let database = Database::with_tables("import_broken");
    let strict = import(&database, &["claude", &file]);
    assert_eq!(strict.status, 1);
    let column = text.lines().nth(1).unwrap().match_indices("{\"").nth(2).unwrap().0 + 1;
    let place = format!("{file}:2:{column}: ");
    assert!(strict.err.starts_with(&place), "{place}\n{}", strict.err);
    assert!(strict.err.contains("\"sender\" is not text"), "{}", strict.err);
    assert_eq!(strict.count("conversations: "), 1);
    assert_eq!(strict.count("broken records: "), 1);
    assert_eq!(number(&database, "SELECT count(*) FROM memory_turns"), 1);

    let skipping = import(&database, &["claude", &file, "--skip-broken"]);
    assert_eq!((skipping.status, skipping.count("conversations: ")), (1, 1), "{}", skipping.err);
    assert_eq!(skipping.count(" stored, "), 1, "{}", skipping.out);
    assert_eq!(skipping.count("turns whose parent is missing: "), 1);
    assert_eq!(number(&database, "SELECT count(*) FROM memory_turns"), 3);
    assert_eq!(number(&database, "SELECT count(*) FROM memory_turn_edges"), 0);

    // A file that ends in the middle: what was whole before is stored.
    let cut = folder.write("cut.json", format!("[{whole},{}", &broken.to_string()[..150]));
    let database = Database::with_tables("import_broken");
    let answer = import(&database, &["claude", &cut, "--skip-broken"]);
    assert_eq!((answer.status, answer.count("turns: ")), (1, 1), "{}", answer.err);
    assert!(answer.err.contains("cut.json:1:"), "{}", answer.err);

    // A value that the server refuses.
    let folder_file = folder.write(
        "rows.jsonl",
        "{\"id\":\"00000000-0000-4000-8000-000000000001\",\"salience_score\":1e300}\n",
    );
    let refused = import(&database, &["jsonl", &folder_file]);
    assert_eq!(refused.status, 1, "{}", refused.err);
    assert_eq!(number(&database, "SELECT count(*) FROM memory_turns"), 1);
}

#[test]
fn a_restore_brings_back_the_rows_of_the_created_tables() {
    let database = Database::with_tables("import_restore");
    load_graph(
        &mut database.connect(),
        &Path::new(env!("CARGO_MANIFEST_DIR")).join("../sql/sample"),
    );
    // What no other format has.
    database
        .connect()
        .batch_execute(
            r#"UPDATE memory_turns SET owner = E'al"\u00e9\\', valid_until = '2031-02-03 04:05:06.000007+01',
                   payload = '{"role": "user", "content": [1e2, null]}' WHERE trajectory_depth = 1;
               UPDATE memory_turns SET owner = '', valid_until = 'infinity' WHERE trajectory_depth = 2"#,
        )
        .unwrap();
    let rows = "SELECT row_to_json(t)::text FROM memory_turns AS t UNION ALL SELECT row_to_json(e)::text \
        FROM memory_turn_edges AS e";
    let lines: Vec<String> =
        database.connect().query(rows, &[]).unwrap().iter().map(|row| row.get(0)).collect();
    let folder = Folder::new("restore");
    let file = folder.write("rows.jsonl", lines.join("\n"));
    let sum = "SELECT md5(string_agg(row::text, ',' ORDER BY row::text COLLATE \"C\"))
                 FROM (SELECT t::text FROM memory_turns AS t UNION ALL SELECT e::text \
                 FROM memory_turn_edges AS e) AS a (row)";
    let before: String = database.connect().query_one(sum, &[]).unwrap().get(0);
    let other = Database::with_tables("import_restored");
    import(&other, &["jsonl", &file]).expect_success();
    let after: String = other.connect().query_one(sum, &[]).unwrap().get(0);
    assert_eq!(before, after);
}

#[test]
fn roles_are_stored_by_the_names_that_the_kernel_knows() {
    let database = Database::with_tables("import_roles");
    let folder = Folder::new("roles");
    let item = r#"{"type":"response_item","payload":{"type":"message","role":"developer",
        "content":[{"type":"input_text","text":"dev"}]}}"#;
    let file = folder.write("rollout-s.jsonl", item.replace('\n', ""));
    import(&database, &["codex", &file]).expect_success();
    let node = |role: &str| {
        let content = json!({"content_type": "text", "parts": [role]});
        json!({"message": {"author": {"role": role}, "content": content}})
    };
    let mapping = json!({"1": node("Developer"), "2": node("function"), "3": node("critic")});
    let file = folder.write("c.json", json!({"id": "c", "mapping": mapping}).to_string());
    import(&database, &["chatgpt", &file]).expect_success();
    let roles = "SELECT string_agg(concat_ws(' ', content_text, role, payload ->> 'role'), ', '
                                   ORDER BY content_text COLLATE \"C\") FROM memory_turns";
    let roles: String = database.connect().query_one(roles, &[]).unwrap().get(0);
    let expected =
        "Developer system Developer, critic critic, dev system developer, function tool function";
    assert_eq!(roles, expected);
    let sent =
        "SELECT graph_messages_json(graph_messages_record(id), 'openai')::text FROM memory_turns
                 WHERE content_text = 'dev'";
    let sent: String = database.connect().query_one(sent, &[]).unwrap().get(0);
    let sent: Value = serde_json::from_str(&sent).unwrap();
    assert_eq!(sent["messages"][0], json!({"role": "system", "content": "dev"}));
}

#[test]
fn a_message_that_does_not_say_who_speaks_is_a_broken_record() {
    let database = Database::with_tables("import_speakers");
    let folder = Folder::new("speakers");
    let chat = |message: Value| json!({"id": "c", "history": {"messages": {"a": message}}});
    let librechat = |message: Value| json!({"conversationId": "c", "messages": [message]});
    let rollout = |payload: Value| json!({"type": "response_item", "payload": payload});
    let text = json!([{"type": "output_text", "text": "x"}]);
    let files = [
        ("openwebui", chat(json!({"id": "a", "content": "x"})), "no \"role\""),
        ("openwebui", chat(json!({"content": "x", "role": "", "model": "m"})), "\"role\" is empty"),
        ("openwebui", chat(json!({"content": "x", "models": ["m"]})), "no \"role\""),
        (
            "librechat",
            librechat(json!({"messageId": "a", "text": "x", "sender": "User"})),
            "no \"isCreatedByUser\"",
        ),
        (
            "librechat",
            librechat(json!({"messageId": "a", "text": "x", "isCreatedByUser": null})),
            "no \"isCreatedByUser\"",
        ),
        (
            "librechat",
            librechat(json!({"messageId": "a", "text": "x", "isCreatedByUser": "true"})),
            "\"isCreatedByUser\" is neither true nor false",
        ),
        ("codex", rollout(json!({"type": "message", "content": text})), "no \"role\""),
        (
            "codex",
            rollout(json!({"type": "message", "role": 7, "content": text})),
            "\"role\" is not text",
        ),
        ("codex", json!({"type": "message", "role": "", "content": text}), "\"role\" is empty"),
    ];
    for (format, content, why) in files {
        let file = folder.write("file.jsonl", content.to_string());
        let answer = import(&database, &[format, &file]);
        assert_eq!(
            (answer.status, answer.count("broken records: ")),
            (1, 1),
            "{format} {content}\n{}{}",
            answer.out,
            answer.err
        );
        assert!(answer.err.contains(why), "{format} {content}\n{}", answer.err);
    }
    assert_eq!(number(&database, "SELECT count(*) FROM memory_turns"), 0);

    // What only an answer has says it as well.
    let messages = json!({"a": {"content": "x", "model": "m"},
                          "b": {"output": [{"type": "message", "content": text}]}});
    let file = json!({"id": "c", "history": {"messages": messages}}).to_string();
    import(&database, &["openwebui", &folder.write("file.json", file)]).expect_success();
    assert_eq!(number(&database, "SELECT count(*) FROM memory_turns WHERE role = 'assistant'"), 2);
}

#[test]
fn times_of_rows_are_those_that_the_server_stores_or_broken_records() {
    let database = Database::with_tables("import_row_times");
    let folder = Folder::new("row_times");
    let mut client = database.connect();
    let mut random = fastrand::Rng::with_seed(7);
    let mut times: Vec<String> = Vec::new();
    for _ in 0..200 {
        let zone =
            ["UTC", "Europe/Amsterdam", "Asia/Kathmandu", "Africa/Monrovia"][random.usize(..4)];
        let from = "SELECT to_json(t)::text, to_json(t AT TIME ZONE 'UTC')::text, t::text
                      FROM (SELECT 'epoch'::timestamptz + $1::bigint * interval '1 microsecond') AS a (t)";
        let seconds = match random.u8(..4) {
            0 => random.i64(-210_866_803_200..-62_000_000_000),
            1 => random.i64(200_000_000_000..9_224_318_016_000),
            _ => random.i64(-10_000_000_000..10_000_000_000),
        };
        client.batch_execute(&format!("SET TimeZone = '{zone}'")).unwrap();
        let row =
            client.query_one(from, &[&(seconds * 1_000_000 + random.i64(0..1_000_000))]).unwrap();
        times.extend((0..3).map(|n| row.get::<_, String>(n).trim_matches('"').to_owned()));
    }
    client.batch_execute("SET TimeZone = 'UTC'").unwrap();
    let held = [
        "infinity",
        "-infinity",
        "4714-11-24T00:00:00+00:00 BC",
        "294276-12-31T23:59:59.999999Z",
        "2025-03-01",
        "4714-11-23T23:00:00-01 BC",
        "2025-03-01 10:00",
        "2025-03-01T10:00:00.123456789+0530",
        "2024-02-29T24:00:00",
        "0001-01-01T00:00:00Z",
        "0001-02-29T00:00:00 BC",
        "2016-12-31T23:59:60Z",
        "2025-03-01 10:00:00 UTC",
    ];
    times.extend(held.map(str::to_owned));
    let stored = times.len();
    // Of these some are refused by the server, and others are times that follow its settings or the day.
    let refused = [
        "4714-11-23T23:59:59Z BC",
        "294277-01-01T00:00:00Z",
        "2025-02-29",
        "2025-13-01",
        "0000-01-01",
        "999999-01-01",
        "2025-03-01T25:00:00Z",
        "2025-03-01T24:00:01Z",
        "2025-03-01T10:60:00Z",
        "2025-03-01T10:00:61Z",
        "2025-03-01T10:00:00+16",
        "-0044-03-15T00:00:00Z",
        "44-03-15",
        "01/02/2025",
        "20250301",
        "1 Mar 2025",
        "2025-03-01 tomorrow",
        "2025-03-01T10:00:00 PST",
        "2025-03-01T10:00:00Z AD",
        "2025-03-01T10:00:00+1",
        "12345678-01-01",
        "2025-03-01 BC BC",
        "2025-03-01T",
        "2025-03-01T10:00:00.Z",
        "+2025-03-01",
        "2025-1-1",
        "1e3",
    ];
    times.extend(refused.map(str::to_owned));
    let row = |n: usize, time: &str| {
        let id = format!("{:032x}", n + 1);
        json!({"id": id, "role": "user", "content_text": time, "created_at": time, "valid_until": time}).to_string()
    };
    let rows: Vec<String> = times.iter().enumerate().map(|(n, time)| row(n, time)).collect();
    let file = folder.write("times.jsonl", rows.join("\n"));
    let answer = import(&database, &["jsonl", "--skip-broken", &file]);
    let counts = ["turns: ", "broken records: "].map(|name| answer.count(name));
    assert_eq!(counts, [stored as u64, refused.len() as u64], "{}{}", answer.out, answer.err);
    let differ = "SELECT count(*) FROM memory_turns \
        WHERE created_at IS DISTINCT FROM content_text::timestamptz OR valid_until IS DISTINCT FROM created_at";
    assert_eq!(number(&database, differ), 0);
}

/// Turns of one message are a microsecond apart, which may lead to another year.
#[test]
fn the_last_time_of_an_export_is_stored() {
    let database = Database::with_tables("import_last_time");
    let folder = Folder::new("last_time");
    let blocks = json!([{"type": "tool_result", "content": "a"}, {"type": "text", "text": "b"}]);
    let record = json!({"type": "user", "uuid": "u", "sessionId": "s", "message": {"content": blocks},
                        "timestamp": "9999-12-31T23:59:59.999999Z"});
    let file = folder.write("s.jsonl", record.to_string());
    import(&database, &["claude-code", &file]).expect_success();
    let last = "SELECT max(created_at)::text FROM memory_turns WHERE role = 'user'";
    let mut client = database.connect();
    client.batch_execute("SET TimeZone = 'UTC'").unwrap();
    let last: String = client.query_one(last, &[]).unwrap().get(0);
    assert_eq!(last, "10000-01-01 00:00:00+00");
}

/// A number of JSON, at the limits of what jsonb holds and beyond them.
fn random_number(random: &mut fastrand::Rng) -> String {
    let mut digits = |most: usize| -> String {
        let length = random.usize(1..=most);
        (0..length).map(|_| char::from(random.u8(b'0'..=b'9'))).collect()
    };
    let (whole, decimals, few) = (digits(40), digits(60), digits(3));
    let whole = match whole.trim_start_matches('0') {
        "" => "0",
        whole => whole,
    };
    let exponent: i64 = match random.u8(..8) {
        0 => 131_071 - whole.len() as i64 + random.i64(0..4),
        1 => random.i64(0..4) - 16_383,
        2 => decimals.len() as i64 - 16_385 + random.i64(0..4),
        3 => random.i64(-3_000_000_000..3_000_000_000),
        4 => random.i64(-20_000..140_000),
        _ => random.i64(-400..400),
    };
    let sign = if random.bool() { "-" } else { "" };
    match random.u8(..6) {
        0 => format!("{sign}{whole}"),
        1 => format!("{sign}{whole}.{decimals}"),
        2 => format!("{sign}{whole}.{decimals}e{exponent}"),
        3 => format!("{sign}0.{few}E{exponent:+}"),
        4 => format!("{sign}0e{exponent}"),
        _ => format!("{sign}{whole}e{exponent}"),
    }
}

#[test]
fn numbers_of_payloads_come_back_as_jsonb_holds_them() {
    let (database, other) =
        (Database::with_tables("import_numbers"), Database::with_tables("import_numbers_again"));
    let mut client = database.connect();
    let mut random = fastrand::Rng::with_seed(11);
    let mut numbers: Vec<String> = (0..600).map(|_| random_number(&mut random)).collect();
    let others = ["12345678901234567890123456", "0.12345678901234567890123", "1.10", "-0", "1e309"];
    numbers.extend(others.map(str::to_owned));
    let row = |n: usize, number: &str| {
        format!(
            r#"{{"id": "{:032x}", "session_id": "s", "role": "user", "content_text": "{n}",
                "payload": {{"number": [{number}], "file": "data:image/png;base64,{}"}}}}"#,
            n + 1,
            "A".repeat(80)
        )
        .replace('\n', "")
    };
    let held: Vec<bool> = numbers
        .iter()
        .map(|number| client.query_one("SELECT $1::text::jsonb", &[number]).is_ok())
        .collect();
    let count = held.iter().filter(|held| **held).count();
    assert!(count > 300 && numbers.len() - count > 50, "{count}");
    let lines: Vec<String> = numbers.iter().enumerate().map(|(n, number)| row(n, number)).collect();
    let folder = Folder::new("numbers");
    let file = folder.write("numbers.jsonl", lines.join("\n"));
    let answer = import(&database, &["jsonl", "--skip-broken", &file]);
    assert_eq!(answer.count("broken records: "), (numbers.len() - count) as u64, "{}", answer.err);
    assert_eq!(answer.count("turns: "), count as u64, "{}", answer.err);
    assert!(answer.err.contains("a number that jsonb cannot hold"), "{}", answer.err);
    for (line, _) in lines.iter().zip(held).filter(|(_, held)| *held) {
        let same = "SELECT payload::text = ($1::text::jsonb ->> 'payload') FROM memory_turns \
            WHERE id = ($1::text::jsonb ->> 'id')::uuid";
        let is_same: bool = client.query_one(same, &[line]).unwrap().get(0);
        assert!(is_same, "{line}");
    }

    // As PostgreSQL prints them, without exponents.
    let rows = client.query("SELECT row_to_json(t)::text FROM memory_turns AS t", &[]).unwrap();
    let lines: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
    let file = folder.write("again.jsonl", lines.join("\n"));
    import(&other, &["jsonl", &file]).expect_success();
    let sum = "SELECT md5(string_agg(t::text, ',' ORDER BY t.id)) FROM memory_turns AS t";
    let sum =
        |database: &Database| -> String { database.connect().query_one(sum, &[]).unwrap().get(0) };
    assert_eq!(sum(&database), sum(&other));
}

#[test]
fn numbers_of_exports_are_kept_as_they_are_written() {
    let database = Database::with_tables("import_export_numbers");
    let folder = Folder::new("export_numbers");
    let numbers = r#"{"a":12345678901234567890123456,"b":1.10,"c":1e400}"#;
    let transcript = format!(
        r#"{{"type":"assistant","uuid":"u","sessionId":"s","message":{{"content":[{{"type":"tool_use","id":"c","name":"f","input":{numbers}}}]}}}}"#
    );
    let file = folder.write("s.jsonl", transcript);
    import(&database, &["claude-code", &file]).expect_success();
    let chat = format!(
        r#"{{"id":"c","mapping":{{"n":{{"message":{{"author":{{"role":"user"}},"content":{{"parts":["x",{numbers}]}}}}}}}}}}"#
    );
    let file = folder.write("c.json", chat);
    import(&database, &["chatgpt", &file]).expect_success();
    let found = "SELECT string_agg(jsonb_path_query_first(payload, 'strict $.**.a')::text
                     || ' ' || jsonb_path_query_first(payload, '$.**.b')::text
                     || ' ' || length(jsonb_path_query_first(payload, '$.**.c')::text), ' '), max(content_text)
                   FROM memory_turns";
    let row = database.connect().query_one(found, &[]).unwrap();
    let each = "12345678901234567890123456 1.10 401";
    assert_eq!(row.get::<_, String>(0), format!("{each} {each}"));
    let calls = "SELECT content_text FROM memory_turns WHERE content_text LIKE '[call%'";
    let call: String = database.connect().query_one(calls, &[]).unwrap().get(0);
    assert_eq!(call, format!("[call f] {numbers}"));
}

/// A file says nothing of whose turns it has: what the table says by itself stays.
#[test]
fn an_owner_that_is_not_in_the_file_is_what_the_table_makes_it() {
    let database = Database::with_tables("import_owner");
    database
        .connect()
        .batch_execute(
            "ALTER TABLE memory_turns ALTER owner SET DEFAULT 'alice', ALTER owner SET NOT NULL,
                 ALTER valid_until SET DEFAULT 'infinity';
             ALTER TABLE memory_turns RENAME payload TO sent;
             SELECT graph_kernel.bind_tables('memory_turns', 'memory_turn_edges',
                 '{\"turns\": {\"payload\": \"sent\"}}')",
        )
        .unwrap();
    import(&database, &["claude-code", &export("claude-code.jsonl"), &export("agent-01.jsonl")])
        .expect_success();
    let turns = number(&database, "SELECT count(*) FROM memory_turns");
    assert!(turns > 0);
    let made =
        "SELECT count(*) FROM memory_turns WHERE owner = 'alice' AND valid_until = 'infinity'";
    assert_eq!(number(&database, made), turns);
    assert!(
        number(&database, "SELECT count(*) FROM memory_turns WHERE jsonb_typeof(sent) = 'object'")
            > 0
    );
    // A payload that is computed is not written.
    database
        .connect()
        .batch_execute(
            r#"SELECT graph_kernel.bind_tables('memory_turns', 'memory_turn_edges', name => 'computed', columns =>
                   '{"turns": {"payload": {"expression": "sent -> ''content''"},
                               "valid_until": {"expression": "valid_until"}}}');
               DELETE FROM memory_turn_edges; DELETE FROM memory_turns"#,
        )
        .unwrap();
    let arguments = [
        "claude-code",
        &export("claude-code.jsonl"),
        &export("agent-01.jsonl"),
        "--graph",
        "computed",
    ];
    import(&database, &arguments).expect_success();
    assert_eq!(number(&database, "SELECT count(*) FROM memory_turns"), turns);
    assert_eq!(number(&database, "SELECT count(*) FROM memory_turns WHERE sent IS NOT NULL"), 0);
}

#[test]
fn edges_that_a_restore_cannot_store_are_counted_or_reported() {
    let database = Database::with_tables("import_lost_edges");
    let folder = Folder::new("lost_edges");
    let id = |n: u8| format!("00000000-0000-4000-8000-00000000000{n}");
    let edge = |parent, child| json!({"parent_turn_id": id(parent), "child_turn_id": id(child)});
    let lines = [json!({"id": id(1)}), edge(1, 2), edge(1, 3), edge(4, 1), edge(4, 5), edge(1, 1)];
    let lines = lines.map(|line| line.to_string());
    let file = folder.write("rows.jsonl", lines[..5].join("\n"));
    let answer = import(&database, &["jsonl", &file]).expect_success();
    assert_eq!(answer.count("turns whose parent is missing: "), 1, "{}", answer.out);
    assert_eq!(answer.count("edges whose child is missing: "), 3, "{}", answer.out);
    let file = folder.write("rows.jsonl", lines.join("\n"));
    let answer = import(&database, &["jsonl", &file]);
    let place = format!("{file}:6: an edge from a turn to itself");
    assert!(answer.status == 1 && answer.err.contains(&place), "{}", answer.err);
}

#[test]
fn what_is_wrong_with_a_file_is_said_in_words_and_not_a_million_times() {
    let database = Database::with_tables("import_words");
    let folder = Folder::new("words");
    let file = folder.write("rows.jsonl", "{} x\n{\"id\"\n{\"id\": tru}\n".repeat(2_000));
    let answer = import(&database, &["jsonl", &file]);
    assert_eq!((answer.status, answer.count("broken records: ")), (1, 6_000), "{}", answer.out);
    let lines: Vec<&str> = answer.err.lines().collect();
    assert!(
        lines[0].ends_with("rows.jsonl:1: not JSON: more follows after the value"),
        "{}",
        lines[0]
    );
    assert!(lines[1].ends_with("rows.jsonl:2: not JSON: a colon is missing"), "{}", lines[1]);
    let is_name = |word: &str| word.chars().filter(char::is_ascii_uppercase).count() == 2;
    assert!(!lines[2].split(' ').skip(3).any(is_name), "{}", lines[2]);
    assert_eq!(lines.len(), 101);
    assert_eq!(lines[100], "and 5900 more broken records");
}

#[test]
fn what_a_file_says_is_neither_executed_nor_printed_raw() {
    let database = Database::with_tables("import_hostile");
    let folder = Folder::new("hostile");
    let evil = "'); DROP TABLE memory_turns; -- \u{1b}]0;x\u{7}$1 \\ \u{0} {id:s.message}";
    let message =
        json!({"uuid": evil, "sender": evil, "text": evil, "created_at": "2025-01-01T00:00:00Z"});
    let broken = json!({"uuid": evil, "sender": evil, "created_at": evil});
    let file = folder.write(
        "claude\u{1b}[31m.json",
        json!([{"uuid": evil, "chat_messages": [message, broken]}]).to_string(),
    );
    let answer = import(&database, &["claude", &file, "--skip-broken", "--account", "a'b\"c"]);
    assert_eq!((answer.status, answer.count("turns: ")), (1, 1), "{}", answer.err);
    let printed = answer.out.clone() + &answer.err;
    let is_raw = |c: char| c.is_control() && c != '\n';
    assert!(!printed.contains(is_raw), "{printed:?}");
    let stored: String =
        database.connect().query_one("SELECT content_text FROM memory_turns", &[]).unwrap().get(0);
    assert_eq!(stored, evil.replace('\0', "\u{fffd}"));
    let sessions = ask(&database, &["sessions"]).expect_success();
    assert!(!sessions.out.contains(is_raw), "{:?}", sessions.out);
    let anchor = sessions.out.split_whitespace().nth(2).unwrap();
    let prompt = ask(&database, &["prompt", anchor]).expect_success();
    assert!(!prompt.out.contains(is_raw) && prompt.out.contains("DROP TABLE"), "{:?}", prompt.out);
}

/// A zip archive with one file, packed.
fn archive(name: &str, content: &mut dyn std::io::Read) -> Vec<u8> {
    let mut archive = ZipWriter::new(std::io::Cursor::new(Vec::new()));
    archive.start_file(name, SimpleFileOptions::default()).unwrap();
    std::io::copy(content, &mut archive).unwrap();
    archive.finish().unwrap().into_inner()
}

#[test]
fn archives_are_read_within_bounds() {
    let database = Database::with_tables("import_zip");
    let folder = Folder::new("zip");
    let whole = fs::read(export("chatgpt.json")).unwrap();
    let file = folder.write("export.zip", archive("export/conversations.json", &mut &whole[..]));
    import(&database, &["chatgpt", &file]).expect_success();
    assert_eq!(stored(&database), fs::read_to_string(export("chatgpt.txt")).unwrap());

    // 400 MB of spaces in less than one.
    let mut bomb =
        std::io::Read::chain(&b"["[..], std::io::Read::take(std::io::repeat(b' '), 400 << 20));
    let packed = archive("conversations.json", &mut bomb);
    assert!(packed.len() < 1 << 20);
    let answer = import(&database, &["chatgpt", &folder.write("bomb.zip", packed)]);
    assert_eq!(answer.status, 1, "{}", answer.err);
    assert!(answer.err.contains("times as large"), "{}", answer.err);

    // What the archive says of its size is not believed.
    let mut packed = fs::read(folder.0.join("bomb.zip")).unwrap();
    let directory = packed.windows(4).rposition(|bytes| bytes == b"PK\x01\x02").unwrap();
    packed[directory + 20..directory + 24].copy_from_slice(&0xffff_fff0_u32.to_le_bytes());
    let answer = import(&database, &["chatgpt", &folder.write("liar.zip", packed)]);
    assert!(answer.status == 1 && answer.err.contains("times as large"), "{}", answer.err);

    let other = folder.write("other.zip", archive("notes.txt", &mut &b"x"[..]));
    let answer = import(&database, &["chatgpt", &other]);
    assert!(answer.status == 1 && answer.err.contains("no conversations.json"), "{}", answer.err);
    let cut = folder.write("cut.zip", &fs::read(&file).unwrap()[..200]);
    assert_eq!(import(&database, &["chatgpt", &cut]).status, 1);
    assert_eq!(import(&database, &["openwebui", &file]).status, 1);
}

#[test]
fn deep_and_long_documents_are_read_within_bounds() {
    let database = Database::with_tables("import_deep");
    let folder = Folder::new("deep");
    // Each answer within what it answers.
    let tree = |depth: usize| {
        let mut text = String::from("{\"conversationId\":\"deep\",\"messagesTree\":[");
        for n in 0..depth {
            let parent = n.checked_sub(1).map_or("null".to_owned(), |n| format!("\"m{n}\""));
            text += &format!(
                "{{\"messageId\":\"m{n}\",\"parentMessageId\":{parent},\"text\":\"x\",\"isCreatedByUser\":true,\
                 \"children\":["
            );
        }
        text + &"]}".repeat(depth) + "]}"
    };
    let file = folder.write("deep.json", tree(9_000));
    let answer = import(&database, &["librechat", &file]).expect_success();
    assert_eq!((answer.count("turns: "), answer.count("edges: ")), (9_000, 8_999));
    let file = folder.write("deeper.json", tree(60_000));
    let answer = import(&database, &["librechat", &file]);
    assert!(answer.status == 1 && answer.err.contains("deeper than 20000"), "{}", answer.err);
    assert_eq!(answer.count("turns: "), 0);

    let long = json!({"uuid": "l", "sessionId": "s", "type": "user", "message": {"content": "x".repeat(17 << 20)}});
    let next =
        json!({"uuid": "n", "sessionId": "s", "type": "user", "message": {"content": "next"}});
    let file = folder.write("long.jsonl", format!("{long}\n{next}\n"));
    let answer = import(&database, &["claude-code", &file, "--skip-broken"]);
    assert_eq!((answer.status, answer.count("turns: ")), (1, 1), "{}", answer.err);
    assert!(answer.err.contains("long.jsonl:1: the line is longer"), "{}", answer.err);
    assert_eq!(import(&database, &["claude-code", &file, "--dry-run"]).count("turns: "), 0);
}

#[test]
fn bound_tables_take_what_they_have_columns_for() {
    let database = Database::empty("import_bound");
    let mut client = database.connect();
    client
        .batch_execute(
            "CREATE EXTENSION graph_kernel;
             CREATE TABLE message (id uuid PRIMARY KEY, chat uuid, parent uuid, author varchar(9), said text,
                                   at timestamp);
             CREATE INDEX ON message (parent, id);
             SELECT graph_kernel.bind_tables('message', columns => '{\"turns\": {
                 \"id\": \"id\", \"session_id\": \"chat\", \"role\": \"author\", \"content_text\": \"said\",
                 \"created_at\": \"at\", \"parents\": [{\"parent\": \"parent\", \"edge_type\": \"reply\"}]}}', \
                 name => 'chats');
             CREATE TABLE made (id text PRIMARY KEY, parent text);
             SELECT graph_kernel.bind_tables('made', columns => '{\"turns\": {
                 \"id\": {\"expression\": \"graph_turn_id(id)\"},
                 \"parents\": [{\"parent\": {\"expression\": \"graph_turn_id(parent)\"}, \"edge_type\": \"reply\"}]}}',
                 name => 'made');
             SELECT graph_kernel.bind_tables('message', columns => '{\"turns\": {\"session_id\": \"chat\",
                 \"follows\": {\"session\": \"chat\", \"order\": [\"at\"], \"edge_type\": \"reply\"}}}', \
                 name => 'ordered')",
        )
        .unwrap();
    let file = export("chatgpt.json");
    let first = import(&database, &["chatgpt", &file, "--graph", "chats"]).expect_success();
    assert_eq!(first.count("turns: "), 12);
    let second = import(&database, &["chatgpt", &file, "--graph", "chats"]).expect_success();
    assert_eq!((second.count("turns: "), second.count(" new, ")), (0, 12));
    let sessions = ask(&database, &["sessions", "--graph", "chats"]).expect_success();
    let line = sessions.out.lines().nth(1).unwrap();
    let anchor = line.split_whitespace().nth(2).unwrap();
    let prompt = ask(&database, &["prompt", anchor, "--policy", "lineage", "--graph", "chats"]);
    assert_eq!(prompt.out.matches("\nassistant:\n").count(), 3, "{}", prompt.out);

    for graph in ["made", "ordered"] {
        let refused = import(&database, &["chatgpt", &file, "--graph", graph]);
        assert!(refused.status == 2 && refused.err.contains("create_tables"), "{}", refused.err);
    }
    let unknown = import(&database, &["chatgpt", &file, "--graph", "none"]);
    assert!(unknown.status == 2 && unknown.err.contains("give --graph"), "{}", unknown.err);
}

#[test]
fn turns_that_a_trigger_leaves_out_have_no_edges() {
    let folder = Folder::new("left_out");
    let database = Database::with_tables("import_left_out");
    database
        .connect()
        .batch_execute(
            "CREATE FUNCTION leave_out() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                 IF NEW.content_text = 'no' THEN RETURN NULL; END IF; RETURN NEW; END $$;
             CREATE TRIGGER leave_out BEFORE INSERT ON memory_turns FOR EACH ROW EXECUTE FUNCTION leave_out()",
        )
        .unwrap();
    let after = |parent: &str, text: &str| node(Some(parent.to_owned()), Some(text));
    let mapping = json!({"a": node(None, Some("one")), "b": after("a", "no"), "c": after("b", "three"),
                         "d": after("c", "four")});
    let file = folder.write("chat.json", json!([{"id": "x", "mapping": mapping}]).to_string());
    let answer = import(&database, &["chatgpt", &file]).expect_success();
    let counts = |answer: &Answer| {
        ["turns: ", "edges: ", "parent is missing: ", "child is missing: "]
            .map(|line| answer.count(line))
    };
    assert_eq!(counts(&answer), [3, 1, 1, 1], "{}", answer.out);
    let again = import(&database, &["chatgpt", &file]).expect_success();
    assert_eq!(counts(&again), [0, 0, 1, 1], "{}", again.out);
}

/// Where there is an index, each id is looked up in it; where there is none, the table is read.
#[test]
fn tables_without_indexes_get_the_same_rows() {
    let databases = ["import_indexes", "import_no_indexes"].map(Database::with_tables);
    databases[1]
        .connect()
        .batch_execute(
            "ALTER TABLE memory_turn_edges DROP CONSTRAINT memory_turn_edges_parent_turn_id_fkey,
                 DROP CONSTRAINT memory_turn_edges_child_turn_id_fkey, DROP CONSTRAINT memory_turn_edges_pkey;
             ALTER TABLE memory_turns DROP CONSTRAINT memory_turns_pkey;
             DROP INDEX memory_turn_edges_child_idx, memory_turns_scores_idx;
             -- Neither an index of some rows nor one of another order is of use.
             CREATE INDEX ON memory_turns (id) WHERE role = 'user';
             CREATE INDEX ON memory_turns (role, id);
             CREATE INDEX ON memory_turn_edges (child_turn_id)",
        )
        .unwrap();
    let files = [export("claude-code.jsonl"), export("chatgpt.json")];
    for database in &databases {
        for _ in 0..2 {
            import(database, &["claude-code", &files[0]]).expect_success();
            import(database, &["chatgpt", &files[1]]).expect_success();
        }
    }
    let rows = "SELECT md5(string_agg(r, ',' ORDER BY r)) FROM (
                    SELECT concat(id, role, content_hash) FROM memory_turns
                    UNION ALL SELECT e::text FROM memory_turn_edges AS e) AS r (r)";
    let [with, without] = databases
        .map(|database| database.connect().query_one(rows, &[]).unwrap().get::<_, String>(0));
    assert_eq!(with, without);
}

#[test]
fn labels_are_given_only_when_asked_for() {
    let database = Database::with_tables("import_labels");
    let file = export("claude-code.jsonl");
    import(&database, &["claude-code", &file]).expect_success();
    let labelled = "SELECT count(*) FROM memory_turns WHERE trajectory_phase IS NOT NULL OR salience_score IS NOT NULL";
    assert_eq!(number(&database, labelled), 0);
    let other = Database::with_tables("import_labels_asked");
    import(&other, &["claude-code", &file, "--label", "keywords"]).expect_success();
    let debugging = "SELECT count(*) FROM memory_turns WHERE trajectory_phase = 'debugging'";
    assert!(number(&other, debugging) > 0);
}

#[test]
fn an_import_without_the_rights_says_so() {
    let database = Database::with_tables("import_rights");
    database
        .connect()
        .batch_execute("DROP ROLE IF EXISTS gk_test_importer; CREATE ROLE gk_test_importer LOGIN")
        .unwrap();
    let refused = Answer::of(
        graph_kernel(&database)
            .env("PGUSER", "gk_test_importer")
            .args(["import", "chatgpt", &export("chatgpt.json")])
            .output()
            .unwrap(),
    );
    assert!(refused.status == 2 && refused.err.contains("permission denied"), "{}", refused.err);
    database.drop_role("gk_test_importer");
    let empty = Database::empty("import_nothing");
    let refused = import(&empty, &["chatgpt", &export("chatgpt.json")]);
    assert!(refused.status == 2 && refused.err.contains("CREATE EXTENSION"), "{}", refused.err);
    let missing = import(&database, &["chatgpt", "/nowhere/export.zip"]);
    assert!(missing.status == 2 && missing.err.contains("/nowhere/export.zip"), "{}", missing.err);
}

/// The program's answer, and the most memory that it used, in KiB.
fn import_measured(database: &Database, arguments: &[&str]) -> (Answer, u64) {
    let mut child = graph_kernel(database)
        .arg("import")
        .args(arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut peak = 0;
    while child.try_wait().unwrap().is_none() {
        peak = peak.max(peak_memory(child.id()));
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    (Answer::of(child.wait_with_output().unwrap()), peak)
}

/// Whoever may write the table can hold the lock of an import.
#[test]
fn an_import_that_waits_says_for_whom() {
    let database = Database::with_tables("import_waits");
    let folder = Folder::new("waits");
    let file = folder.write(
        "one.jsonl",
        "{\"id\":\"00000000-0000-4000-8000-000000000001\",\"role\":\"user\",\"content_text\":\"t\"}\n",
    );
    let mut holder = database.connect();
    let lock = "SELECT pg_backend_pid()
        FROM graph_kernel.advisory_xact_lock('memory_turns', hashtext('default'))";
    holder.batch_execute("BEGIN").unwrap();
    let pid: i32 = holder.query_one(lock, &[]).unwrap().get(0);
    let mut child = graph_kernel(&database)
        .args(["import", "jsonl", &file])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut err = std::io::BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    std::io::BufRead::read_line(&mut err, &mut line).unwrap();
    assert!(line.starts_with(&format!("waiting for process {pid} of role ")), "{line}");
    holder.batch_execute("ROLLBACK").unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!(number(&database, "SELECT count(*) FROM memory_turns"), 1);

    // A prepared transaction holds it without a process.
    holder.batch_execute(&format!("BEGIN; {lock}; PREPARE TRANSACTION 'waits'")).unwrap();
    let mut child = graph_kernel(&database)
        .args(["import", "jsonl", &file])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut err = std::io::BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    std::io::BufRead::read_line(&mut err, &mut line).unwrap();
    holder.batch_execute("ROLLBACK PREPARED 'waits'").unwrap();
    assert!(line.starts_with("waiting for the prepared transaction waits of role "), "{line}");
    assert!(child.wait().unwrap().success());
}

/// A node of ChatGPT; one without a text is skipped.
fn node(parent: Option<String>, text: Option<&str>) -> Value {
    let message = text.map(|text| {
        json!({"author": {"role": "user"}, "create_time": 1, "content": {"content_type": "text", "parts": [text]}})
    });
    json!({"parent": parent, "message": message})
}

/// Statements that joined these with themselves would take hours, or all memory of the server.
#[test]
fn what_a_file_repeats_costs_no_more_than_its_length() {
    const COUNT: usize = 15_000;
    let folder = Folder::new("repeated");
    let chatgpt = |name: &str, nodes: Vec<String>| {
        folder.write(name, format!("[{{\"id\":\"c\",\"mapping\":{{{}}}}}]", nodes.join(",")))
    };
    let entry = |id: String, node: Value| format!("\"{id}\":{node}");
    let skipped =
        |n: usize| entry(format!("s{n}"), node(n.checked_sub(1).map(|n| format!("s{n}")), None));
    let last = Some(format!("s{}", COUNT - 1));
    let chain: Vec<String> = (0..COUNT).map(skipped).collect();
    let below = (0..COUNT).map(|n| entry(format!("k{n}"), node(last.clone(), Some("t"))));
    let comb = chatgpt("comb.json", chain.iter().cloned().chain(below).collect());
    let same = chatgpt(
        "same.json",
        (0..COUNT).map(|n| entry("same".to_owned(), node(None, Some(&n.to_string())))).collect(),
    );
    let skips = (0..COUNT).map(|n| entry("s".to_owned(), node(Some(format!("k{n}")), None)));
    let under = (0..COUNT).map(|n| entry(format!("k{n}"), node(Some("s".to_owned()), Some("t"))));
    let crossed = chatgpt("crossed.json", skips.chain(under).collect());
    for (file, turns) in [(comb, COUNT), (same, 1), (crossed, COUNT)] {
        let database = Database::with_tables("import_repeated");
        let answer = import(&database, &["chatgpt", &file]).expect_success();
        assert_eq!(answer.count("turns: "), turns as u64, "{}", answer.out);
    }
    // Calls of subagents and chains of them, all with one prompt.
    let line = |n: usize, mut more: Value| {
        let fields =
            json!({"uuid": format!("u{n}"), "sessionId": "s", "timestamp": "2026-01-01T00:00:00Z"});
        more.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        format!("{more}\n")
    };
    let called = |n: usize| {
        let call = json!([{"type": "tool_use", "id": format!("c{n}"), "name": "Task", "input": {"prompt": "p"}}]);
        let result =
            json!([{"type": "tool_result", "tool_use_id": format!("c{n}"), "content": "r"}]);
        line(2 * n, json!({"type": "assistant", "message": {"role": "assistant", "content": call}}))
            + &line(
                2 * n + 1,
                json!({"type": "user", "toolUseResult": {"agentId": format!("a{n}")},
                "message": {"role": "user", "content": result}}),
            )
    };
    let chain = |n: usize| {
        let prompt = json!({"role": "user", "content": "p"});
        line(
            2 * COUNT + n,
            json!({"type": "user", "isSidechain": true, "parentUuid": null, "message": prompt}),
        )
    };
    let agents: String = (0..COUNT).map(called).chain((0..COUNT).map(chain)).collect();
    let database = Database::with_tables("import_agents");
    let agents = folder.write("agents.jsonl", agents);
    let answer = import(&database, &["claude-code", &agents]);
    assert_eq!((answer.status, answer.count("turns: ")), (0, 3 * COUNT as u64), "{}", answer.out);
    // A linear conversation in a table with a parent column, and a server that sorts and hashes in little memory.
    let linear = chatgpt(
        "linear.json",
        (0..COUNT)
            .map(|n| {
                entry(format!("k{n}"), node(n.checked_sub(1).map(|n| format!("k{n}")), Some("t")))
            })
            .collect(),
    );
    let database = Database::empty("import_linear");
    database
        .connect()
        .batch_execute(&format!(
            "CREATE EXTENSION graph_kernel;
             CREATE TABLE message (id uuid PRIMARY KEY, parent uuid, content text);
             CREATE INDEX ON message (parent, id);
             SELECT graph_kernel.bind_tables('message', columns =>
                 '{{\"turns\": {{\"parents\": [{{\"parent\": \"parent\", \"edge_type\": \"reply\"}}]}}}}');
             ALTER DATABASE {} SET work_mem = '256kB'",
            database.name
        ))
        .unwrap();
    let answer = import(&database, &["chatgpt", &linear]).expect_success();
    let counts = (answer.count("turns: "), answer.count("edges: "));
    assert_eq!(counts, (COUNT as u64, COUNT as u64 - 1), "{}", answer.out);
}

#[test]
fn records_of_hostile_sizes_take_little_memory() {
    const MAX_MEMORY_KIB: u64 = 200 << 10;
    let database = Database::with_tables("import_sizes");
    let folder = Folder::new("sizes");
    let claude = |message: String| format!("[{{\"uuid\":\"c\",\"chat_messages\":[{message}]}}]");
    let long = "x".repeat(1 << 20);
    let files = [
        (
            "chatgpt",
            format!(
                "[{{\"id\":\"c\",\"mapping\":{{\"n\":{{\"junk\":[{}0]}}}}}}]",
                "0,".repeat(8_000_000)
            ),
        ),
        (
            "chatgpt",
            format!(
                "[{{\"id\":\"c\",\"mapping\":{{\"n\":{{\"junk\":{{{}\"\":0}}}}}}}}]",
                (0..1_000_000).map(|n| format!("\"{n}\":0,")).collect::<String>()
            ),
        ),
        (
            "claude",
            claude(format!(
                "{{\"uuid\":\"{long}\",\"sender\":\"human\",\"content\":[{}{{}}]}}",
                "{\"type\":\"tool_result\"},".repeat(3_000)
            )),
        ),
        (
            "claude",
            claude(format!(
                "{{\"uuid\":\"m\",\"sender\":\"human\",\"content\":[{}{{}}]}}",
                "{\"type\":\"tool_result\"},".repeat(100_000)
            )),
        ),
        (
            "claude-code",
            format!(
                "{{\"uuid\":\"u\",\"sessionId\":\"s\",\"type\":\"user\",\"j\":[{}0]}}\n",
                "{\"\":0},".repeat(1_000_000)
            ),
        ),
        ("jsonl", format!("{{\"id\":\"u\",\"j\":[{}0]}}\n", "{\"\":0},".repeat(1_000_000))),
    ];
    for (number, (format, text)) in files.iter().enumerate() {
        let file = folder.write("hostile", text);
        let (answer, peak) = import_measured(&database, &[format, &file]);
        assert_eq!((answer.status, answer.count("broken records: ")), (1, 1), "{number} {format}");
        assert!(peak > 0 && peak < MAX_MEMORY_KIB, "{number} {format}: {peak} KiB");
        fs::remove_file(file).unwrap();
    }
    // Messages with long ids that name many others.
    let names = format!("[{}\"k\"]", "\"k\",".repeat(200_000));
    let message = |n| {
        let id = format!("{n}{}", "i".repeat(1_000));
        format!(
            "\"{id}\":{{\"id\":\"{id}\",\"parentId\":null,\"childrenIds\":{names},\"role\":\"user\",\"content\":\"t\"}}"
        )
    };
    let chat = format!(
        "[{{\"id\":\"c\",\"chat\":{{\"history\":{{\"messages\":{{{},{}}}}}}}}}]",
        message(1),
        message(2)
    );
    let file = folder.write("children.json", chat);
    let (answer, peak) = import_measured(&database, &["openwebui", &file]);
    assert_eq!((answer.status, answer.count("turns: ")), (0, 2), "{}", answer.out);
    assert!(peak < MAX_MEMORY_KIB, "children: {peak} KiB");
    // A chat within a chat within a chat is no deeper than the first.
    let nested = format!("{}{{}}{}", "{\"chat\":".repeat(19_000), "}".repeat(19_000));
    assert_eq!(import(&database, &["openwebui", &folder.write("nested.json", nested)]).status, 1);
}

#[test]
fn values_that_a_column_cannot_hold_are_reported_and_not_cut() {
    let database = Database::empty("import_narrow");
    let mut client = database.connect();
    client
        .batch_execute(
            "CREATE EXTENSION graph_kernel;
             CREATE TABLE message (id uuid PRIMARY KEY, parent_id uuid, conversation_id varchar(48), \
             content varchar(30),
                                   content_hash text GENERATED ALWAYS AS (md5(content)) STORED);
             CREATE INDEX ON message (parent_id, id);
             SELECT graph_kernel.bind_tables('message', columns => '{\"turns\": {\"content_text\": \"content\",
                 \"content_hash\": null, \"parents\": [{\"parent\": \"parent_id\", \"edge_type\": \"reply\"}]}}')",
        )
        .unwrap();
    let answer = import(&database, &["chatgpt", &export("chatgpt.json")]);
    assert_eq!((answer.status, answer.count("conversations: ")), (1, 1), "{}", answer.out);
    assert!(answer.err.contains("too long"), "{}", answer.err);
    let sessions =
        "SELECT count(DISTINCT conversation_id) FROM message WHERE length(conversation_id) = 45";
    assert_eq!(number(&database, sessions), 1);
    client
        .batch_execute(
            "TRUNCATE message; ALTER TABLE message ALTER conversation_id TYPE varchar(40)",
        )
        .unwrap();
    assert_eq!(import(&database, &["chatgpt", &export("chatgpt.json")]).status, 1);
    assert_eq!(number(&database, "SELECT count(*) FROM message"), 0);
}

#[test]
fn one_conversation_that_is_refused_stops_no_other() {
    let folder = Folder::new("refused");
    let database = Database::with_tables("import_refused");
    database
        .connect()
        .batch_execute(
            "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                 IF NEW.content_text = 'ledger' THEN RAISE 'no ledgers'; END IF; RETURN NEW; END $$;
             CREATE TRIGGER refuse BEFORE INSERT ON memory_turns FOR EACH ROW EXECUTE FUNCTION refuse()",
        )
        .unwrap();
    let conversation =
        |id: &str, text: &str| json!({"id": id, "mapping": {"m": node(None, Some(text))}});
    let long: String = (0..6000).map(|n| char::from(b'a' + (n * n % 23) as u8)).collect();
    let file = folder.write(
        "mixed.json",
        json!([
            conversation("a", "one"),
            conversation("b", "ledger"),
            conversation(&long, "x"),
            conversation("c", "two")
        ])
        .to_string(),
    );
    let answer = import(&database, &["chatgpt", &file]);
    assert_eq!((answer.status, answer.count("conversations: ")), (1, 2), "{}", answer.err);
    assert!(
        answer.err.contains("no ledgers") && answer.err.contains("longer than 1024"),
        "{}",
        answer.err
    );
    assert!(answer.err.len() < 2_000, "{} bytes", answer.err.len());
    // What the server says of its functions is of no use to whoever imports.
    assert!(!answer.err.contains("PL/pgSQL"), "{}", answer.err);

    // A policy refuses a row, and not the import.
    database
        .connect()
        .batch_execute(
            "DROP ROLE IF EXISTS gk_test_import_policy; CREATE ROLE gk_test_import_policy LOGIN;
             GRANT SELECT, INSERT ON memory_turns, memory_turn_edges TO gk_test_import_policy;
             TRUNCATE memory_turns CASCADE; DROP TRIGGER refuse ON memory_turns;
             ALTER TABLE memory_turns ENABLE ROW LEVEL SECURITY; CREATE POLICY p ON memory_turns USING (true);
             CREATE POLICY r ON memory_turns AS RESTRICTIVE FOR INSERT WITH CHECK (content_text <> 'ledger')",
        )
        .unwrap();
    let mut command = graph_kernel(&database);
    command.env("PGUSER", "gk_test_import_policy").args(["import", "chatgpt", &file]);
    let answer = Answer::of(command.output().unwrap());
    assert_eq!((answer.status, answer.count("conversations: ")), (1, 2), "{}", answer.err);
    assert!(answer.err.contains("row-level security"), "{}", answer.err);
    database
        .connect()
        .batch_execute(
            "DROP POLICY p ON memory_turns; DROP POLICY r ON memory_turns;
             ALTER TABLE memory_turns DISABLE ROW LEVEL SECURITY; TRUNCATE memory_turns CASCADE;
             DROP OWNED BY gk_test_import_policy; DROP ROLE gk_test_import_policy",
        )
        .unwrap();

    // The second record of one session is broken: nothing of what follows of it is stored either.
    let line = |session: &str, id: &str, parent: &str| {
        json!({"uuid": id, "parentUuid": parent, "sessionId": session, "type": "user",
               "message": {"content": id}})
        .to_string()
    };
    let lines = [
        line("B", "b1", ""),
        line("A", "a1", ""),
        "{\"type\":".to_owned(),
        line("B", "b2", "b1"),
        line("A", "a2", "a1"),
    ];
    let file = folder.write("mixed.jsonl", lines.join("\n"));
    let answer = import(&database, &["claude-code", &file]);
    assert_eq!((answer.status, answer.count("turns: ")), (1, 2), "{}", answer.out);
    assert_eq!(
        number(&database, "SELECT count(*) FROM memory_turns WHERE content_text LIKE 'a_'"),
        0
    );
}

#[test]
fn a_file_of_another_format_is_no_success() {
    let database = Database::with_tables("import_other");
    for (format, file) in [
        ("librechat", "chatgpt.json"),
        ("claude", "chatgpt.json"),
        ("chatgpt", "librechat.json"),
        ("openwebui", "librechat.json"),
        ("claude-code", "chatgpt.json"),
        ("jsonl", "claude-code.jsonl"),
    ] {
        let answer = import(&database, &[format, &export(file)]);
        assert!(answer.status == 1 && !answer.err.is_empty(), "{format} {file}: {}", answer.out);
    }
    let folder = Folder::new("other");
    let text = fs::read_to_string(export("claude.json")).unwrap();
    let answer =
        import(&database, &["claude", &folder.write("twice.json", format!("{text}{text}"))]);
    assert!(answer.status == 1 && answer.err.contains("the rest of the file"), "{}", answer.err);
    let empty = import(&database, &["claude", &folder.write("empty.json", "[]")]).expect_success();
    assert_eq!(empty.count("conversations: "), 0);
}

#[test]
fn a_file_may_come_through_the_standard_input() {
    let database = Database::with_tables("import_stdin");
    let file = fs::File::open(export("chatgpt.json")).unwrap();
    let output =
        graph_kernel(&database).args(["import", "chatgpt", "-"]).stdin(file).output().unwrap();
    assert_eq!(Answer::of(output).expect_success().count("turns: "), 12);
    let mut child = graph_kernel(&database)
        .args(["import", "chatgpt", "-", "--account", "pipe"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(&fs::read(export("chatgpt.json")).unwrap()).unwrap();
    assert_eq!(Answer::of(child.wait_with_output().unwrap()).count("turns: "), 12);
}

/// What is not a file, a pipe or a folder may have no end. Each call has a limit of time, so that none hangs the test.
#[test]
fn devices_and_sockets_are_refused_and_pipes_are_read() {
    let database = Database::with_tables("import_devices");
    let folder = Folder::new("devices");
    let limited = |script: &str| {
        let mut command = Command::new("timeout");
        command.args(["20", "bash", "-c", script, &variable("GRAPH_KERNEL_PROGRAM")]);
        command.env("PGDATABASE", &database.name).env("NO_COLOR", "1").env_remove("PGOPTIONS");
        Answer::of(command.current_dir(&folder.0).output().unwrap())
    };
    let _listener = std::os::unix::net::UnixListener::bind(folder.0.join("socket")).unwrap();
    fs::create_dir(folder.0.join("folder")).unwrap();
    std::os::unix::fs::symlink("/dev/zero", folder.0.join("link.jsonl")).unwrap();
    for format in ["chatgpt", "claude", "claude-code", "librechat", "openwebui", "jsonl"] {
        for path in ["/dev/zero", "/dev/urandom", "/dev/full", "/dev/null", "socket", "link.jsonl"]
        {
            let answer = limited(&format!("$0 import {format} {path}"));
            assert_eq!(answer.status, 2, "{format} {path}: {}", answer.err);
            let expected = format!("{path}: neither a regular file nor a pipe");
            assert!(answer.err.contains(&expected), "{format}: {}", answer.err);
        }
    }
    let answer = limited("$0 import chatgpt - < /dev/zero");
    assert!(answer.status == 2 && answer.err.contains("-: neither"), "{}", answer.err);
    let answer = limited("$0 import chatgpt folder");
    assert!(answer.status == 2 && answer.err.contains("directory"), "{}", answer.err);

    // Of a folder, transcripts are read that are files.
    let transcript = export("claude-code.jsonl");
    let answer = limited(&format!(
        "cp {transcript} folder/a.jsonl; ln -s /dev/zero folder/b.jsonl; \
                                   mkfifo folder/c.jsonl; $0 import claude-code folder --dry-run"
    ));
    assert_eq!((answer.status, answer.count("conversations: ")), (0, 1), "{}", answer.err);
    let named = ["folder/b.jsonl: not a regular file", "folder/c.jsonl: not a regular file"];
    assert!(named.iter().all(|named| answer.err.contains(named)), "{}", answer.err);
    assert_eq!(answer.count("files that are not transcripts: "), 2);

    let file = export("chatgpt.json");
    let scripts = [
        "cat FILE | $0 import chatgpt /dev/stdin",
        "cat FILE | $0 import chatgpt -",
        "$0 import chatgpt /dev/stdin < FILE",
        "$0 import chatgpt - < FILE",
        "$0 import chatgpt <(cat FILE)",
        "mkfifo pipe; cat FILE > pipe & $0 import chatgpt pipe",
        "ln -s FILE link; $0 import chatgpt link",
    ];
    for (number, script) in scripts.iter().enumerate() {
        let script = script.replace("FILE", &file) + &format!(" --account {number}");
        assert_eq!(limited(&script).expect_success().count("turns: "), 12, "{script}");
    }
    // Some programs give those that they start a socket.
    let (mut ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
    let import = graph_kernel(&database)
        .args(["import", "chatgpt", "-", "--account", "socket"])
        .stdin(Stdio::from(std::os::fd::OwnedFd::from(theirs)))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    ours.write_all(&fs::read(&file).unwrap()).unwrap();
    drop(ours);
    assert_eq!(Answer::of(import.wait_with_output().unwrap()).count("turns: "), 12);
}

#[test]
fn a_folder_of_transcripts_is_read_with_what_is_below_it() {
    let database = Database::with_tables("import_folder");
    let folder = Folder::new("projects");
    let below = folder.0.join("5e55-1/subagents");
    fs::create_dir_all(&below).unwrap();
    fs::copy(export("agent-01.jsonl"), below.join("agent-01.jsonl")).unwrap();
    fs::copy(export("claude-code.jsonl"), folder.0.join("5e55-1.jsonl")).unwrap();
    folder.write("settings.json", "{}");
    import(&database, &["claude-code", folder.0.to_str().unwrap()]).expect_success();
    assert_eq!(stored(&database), fs::read_to_string(export("claude-code.txt")).unwrap());
    assert_eq!(import(&database, &["chatgpt", folder.0.to_str().unwrap()]).status, 2);
}

#[test]
fn sessions_and_slices_of_odd_rows_are_printed() {
    let database = Database::with_tables("import_odd");
    let mut client = database.connect();
    client
        .batch_execute(
            "INSERT INTO memory_turns (id, session_id, created_at) VALUES
                 ('00000000-0000-4000-8000-000000000001', E'a\\u009b\\u007f\\u202e', 'infinity'),
                 ('00000000-0000-4000-8000-000000000002', 'b', '-infinity'),
                 ('00000000-0000-4000-8000-000000000003', NULL, NULL),
                 ('00000000-0000-4000-8000-000000000004', 'd', '0044-03-15 BC')",
        )
        .unwrap();
    let sessions = ask(&database, &["sessions"]).expect_success();
    assert_eq!(sessions.out.lines().count(), 4, "{}", sessions.out);
    assert!(
        sessions.out.contains("infinity") && !sessions.out.contains('\u{9b}'),
        "{}",
        sessions.out
    );
    // To a file the slice goes as it is, so that it verifies.
    let anchor = "00000000-0000-4000-8000-000000000001";
    let slice = ask(&database, &["slice", anchor]).expect_success();
    let valid = "SELECT reason FROM graph_verify($1::text::json)";
    let reason: String = client.query_one(valid, &[&slice.out.trim_end()]).unwrap().get(0);
    assert_eq!(reason, "ok");
    // A restore takes what row_to_json gives of such rows.
    let rows: String = client
        .query_one("SELECT string_agg(row_to_json(t)::text, E'\\n') FROM memory_turns AS t", &[])
        .unwrap()
        .get(0);
    let nan = "{\"id\":\"00000000-0000-4000-8000-000000000005\",\"salience_score\":\"NaN\"}";
    let file = Folder::new("odd").write("rows.jsonl", format!("{rows}\n{nan}\n"));
    let other = Database::with_tables("import_odd_restored");
    fs::create_dir_all(Path::new(&file).parent().unwrap()).unwrap();
    fs::write(&file, format!("{rows}\n{nan}\n")).unwrap();
    assert_eq!(import(&other, &["jsonl", &file]).expect_success().count("turns: "), 5);
}

#[test]
fn the_latest_of_turns_of_one_time_is_that_of_graph_anchor() {
    let database = Database::with_tables("import_one_time");
    let mut client = database.connect();
    let turns = "INSERT INTO memory_turns (id, session_id, created_at)
        SELECT ('00000000-0000-4000-8000-00000000000' || n)::uuid, 'a', '2026-01-01' FROM generate_series(1, 4) AS n";
    client.batch_execute(turns).unwrap();
    let anchor = "SELECT anchor_turn_id::text FROM graph_anchor(session_id => 'a')";
    let anchor: String = client.query_one(anchor, &[]).unwrap().get(0);
    let sessions = ask(&database, &["sessions"]).expect_success();
    assert_eq!(sessions.out.split_whitespace().nth(2), Some(anchor.as_str()), "{}", sessions.out);
}

#[test]
fn the_ends_of_branches_are_listed() {
    for (name, bind) in [
        ("import_ends", "SELECT graph_kernel.create_tables()"),
        (
            "import_ends_bound",
            "CREATE TABLE message (id uuid PRIMARY KEY, session_id text, parent uuid, content text, \
            created_at timestamptz);
             SELECT graph_kernel.bind_tables('message', columns => '{\"turns\": {\"content_text\": \"content\",
                 \"parents\": [{\"parent\": \"parent\", \"edge_type\": \"reply\"}]}}')",
        ),
    ] {
        let database = Database::empty(name);
        database.connect().batch_execute(&format!("CREATE EXTENSION graph_kernel; {bind}")).unwrap();
        let imported = import(&database, &["chatgpt", &export("chatgpt.json")]).expect_success();
        assert_eq!(imported.count("edges: "), 10, "{name}: {}", imported.out);
        let session = "chatgpt::67c2f6e0-0000-8000-8000-000000000001";
        let ends = ask(&database, &["sessions", session]).expect_success();
        let texts: Vec<&str> = ends.out.lines().map(|line| line.splitn(4, ' ').last().unwrap()).collect();
        assert_eq!(texts.len(), 2, "{}", ends.out);
        assert!(texts[0].contains("invoice 1057 is overdue"), "{}", ends.out);
        assert!(texts[1].contains("I would need to see the ledger."), "{}", ends.out);
        let none = ask(&database, &["sessions", "nosuch"]);
        let said = (none.status, none.out.as_str(), none.err.as_str());
        assert_eq!(said, (1, "", "there is no session nosuch\n"));
        // The id that the application has is not the session.
        let id = "67c2f6e0-0000-8000-8000-000000000001";
        let named = ask(&database, &["sessions", id]);
        let expected = format!("there is no session {id}, but {session}\n");
        assert_eq!((named.status, named.out.as_str(), named.err), (1, "", expected));
    }
}

#[test]
fn two_imports_of_one_conversation_store_it_once() {
    let database = Database::with_tables("import_twice");
    database
        .connect()
        .batch_execute(&format!(
            "ALTER DATABASE {} SET default_transaction_isolation = 'repeatable read'",
            database.name
        ))
        .unwrap();
    let folder = Folder::new("twice");
    let nodes: serde_json::Map<String, Value> = (0..3_000)
        .map(|n: usize| {
            let parent = n.checked_sub(1).map(|n| format!("m{n}"));
            (format!("m{n}"), node(parent, Some("x")))
        })
        .collect();
    let file = folder.write("one.json", json!([{"id": "c", "mapping": nodes}]).to_string());
    let started: Vec<_> = (0..3)
        .map(|_| {
            graph_kernel(&database)
                .args(["import", "chatgpt", &file])
                .stdout(Stdio::piped())
                .spawn()
                .unwrap()
        })
        .collect();
    let answers: Vec<Answer> =
        started.into_iter().map(|child| Answer::of(child.wait_with_output().unwrap())).collect();
    assert!(answers.iter().all(|answer| answer.status == 0));
    assert_eq!(answers.iter().map(|answer| answer.count("turns: ")).sum::<u64>(), 3_000);
    assert_eq!(number(&database, "SELECT count(*) FROM memory_turn_edges"), 2_999);
}

/// Conversations of one message with this text, with ids of these numbers.
fn small_conversations(numbers: std::ops::Range<usize>, text: &str) -> Vec<Value> {
    numbers
        .map(|n| json!({"id": format!("c{n}"), "mapping": {"m": node(None, Some(text))}}))
        .collect()
}

/// Two connections store, where there can be two. A batch has 256 small conversations.
#[test]
fn batches_are_stored_in_the_order_of_the_file() {
    let database = Database::with_tables("import_batches");
    database
        .connect()
        .batch_execute(
            "DROP ROLE IF EXISTS gk_test_single; CREATE ROLE gk_test_single LOGIN CONNECTION LIMIT 1;
             GRANT SELECT, INSERT, DELETE ON memory_turns, memory_turn_edges TO gk_test_single;
             CREATE TABLE writers (pid integer); GRANT INSERT ON writers TO gk_test_single;
             CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                 INSERT INTO public.writers VALUES (pg_backend_pid()); RETURN NULL; END $$;
             CREATE TRIGGER note AFTER INSERT ON memory_turns FOR EACH ROW EXECUTE FUNCTION note()",
        )
        .unwrap();
    let folder = Folder::new("batches");
    // What comes again is in the next batch.
    let parts = [
        small_conversations(0..256, "first"),
        small_conversations(0..256, "again"),
        small_conversations(256..600, "other"),
    ];
    let file = folder.write("batches.json", Value::from(parts.concat()).to_string());
    for (role, connections) in [("postgres", 2), ("gk_test_single", 1)] {
        database.connect().batch_execute("TRUNCATE writers; DELETE FROM memory_turns").unwrap();
        let mut command = graph_kernel(&database);
        command.env("PGUSER", role).args(["import", "chatgpt", &file]);
        let answer = Answer::of(command.output().unwrap()).expect_success();
        assert_eq!(answer.count("turns: "), 600, "{role}");
        let again = "SELECT count(*) FROM memory_turns WHERE content_text = 'again'";
        assert_eq!(number(&database, again), 0, "{role}");
        let writers = "SELECT count(DISTINCT pid) FROM writers";
        assert_eq!(number(&database, writers), connections, "{role}");
    }
    database.drop_role("gk_test_single");
}

/// The second connection waits within its transaction until the batch before is stored.
#[test]
fn no_timeout_of_transactions_ends_an_import() {
    let database = Database::with_tables("import_idle");
    database
        .connect()
        .batch_execute(&format!(
            "ALTER DATABASE {0} SET idle_in_transaction_session_timeout = '500ms';
             DO $$ BEGIN IF current_setting('server_version_num')::int >= 170000 THEN
                 ALTER DATABASE {0} SET transaction_timeout = '1500ms'; END IF; END $$;
             CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS
                 $$ BEGIN PERFORM pg_sleep(1); RETURN NULL; END $$;
             CREATE TRIGGER wait AFTER INSERT ON memory_turns FOR EACH STATEMENT EXECUTE FUNCTION wait()",
            database.name
        ))
        .unwrap();
    let folder = Folder::new("idle");
    let file =
        folder.write("idle.json", Value::from(small_conversations(0..600, "text")).to_string());
    let answer = import(&database, &["chatgpt", &file]).expect_success();
    assert_eq!(answer.count("turns: "), 600);
}

#[test]
fn what_follows_a_batch_that_fails_is_not_stored() {
    let database = Database::with_tables("import_fails");
    database
        .connect()
        .batch_execute(
            "CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                 IF NEW.content_text = 'fail' THEN
                     PERFORM pg_sleep(1); RAISE 'nobody may' USING ERRCODE = '42501'; END IF;
                 RETURN NEW; END $$;
             CREATE TRIGGER fail BEFORE INSERT ON memory_turns FOR EACH ROW EXECUTE FUNCTION fail()",
        )
        .unwrap();
    let folder = Folder::new("fails");
    let parts = [
        small_conversations(0..256, "first"),
        small_conversations(256..257, "fail"),
        small_conversations(257..2_000, "other"),
    ];
    let file = folder.write("fails.json", Value::from(parts.concat()).to_string());
    let answer = import(&database, &["chatgpt", &file]);
    assert!(answer.status == 2 && answer.err.contains("nobody may"), "{}", answer.err);
    assert_eq!(number(&database, "SELECT count(*) FROM memory_turns"), 256);
    let open = "SELECT count(*) FROM pg_stat_activity
                 WHERE datname = current_database() AND pid <> pg_backend_pid()
                   AND backend_type = 'client backend' AND state <> 'idle'";
    assert_eq!(number(&database, open), 0);
}

/// As the server's own default does from PostgreSQL 19 on. What somebody has set counts.
#[test]
fn texts_are_compressed_by_lz4_unless_somebody_has_chosen() {
    let database = Database::with_tables("import_compressed");
    let folder = Folder::new("compressed");
    let text = "nobody knows who wrote them. ".repeat(400);
    let file = folder.write(
        "long.json",
        json!([{"id": "c", "mapping": {"m": node(None, Some(&text))}}]).to_string(),
    );
    let has_lz4 = "SELECT count(*) FROM pg_settings
                    WHERE name = 'default_toast_compression' AND 'lz4' = ANY (enumvals)";
    let default = if number(&database, has_lz4) == 1 { "lz4" } else { "pglz" };
    let choose = format!("ALTER DATABASE {} SET default_toast_compression = pglz", database.name);
    for (settings, expected) in [("SELECT 1", default), (&choose, "pglz")] {
        database.connect().batch_execute(&format!("DELETE FROM memory_turns; {settings}")).unwrap();
        import(&database, &["chatgpt", &file]).expect_success();
        let query = "SELECT pg_column_compression(content_text) FROM memory_turns";
        let method: String = database.connect().query_one(query, &[]).unwrap().get(0);
        assert_eq!(method, expected);
    }
}

#[test]
fn a_role_with_the_documented_rights_can_import() {
    let database = Database::with_tables("import_granted");
    database
        .connect()
        .batch_execute(&format!(
            "DROP ROLE IF EXISTS gk_test_writer; CREATE ROLE gk_test_writer LOGIN;
             REVOKE TEMPORARY ON DATABASE {0} FROM PUBLIC; GRANT TEMPORARY ON DATABASE {0} TO gk_test_writer;
             GRANT SELECT, INSERT ON memory_turns, memory_turn_edges TO gk_test_writer",
            database.name
        ))
        .unwrap();
    let mut command = graph_kernel(&database);
    command.env("PGUSER", "gk_test_writer").args(["import", "chatgpt", &export("chatgpt.json")]);
    assert_eq!(Answer::of(command.output().unwrap()).expect_success().count("turns: "), 12);
    database.drop_role("gk_test_writer");
}

/// Whose schema it is, is asked of the tables that are written, not of their names, which may have changed.
#[test]
fn a_superuser_is_refused_whatever_the_schema_is_called_meanwhile() {
    let database = Database::empty("import_renamed");
    let mut owner = database.connect();
    owner
        .batch_execute(
            "CREATE ROLE gk_test_import_owner; CREATE SCHEMA made; CREATE EXTENSION graph_kernel SCHEMA made;
             SELECT graph_kernel.create_tables('made');
             CREATE TABLE public.memory_turns (LIKE made.memory_turns INCLUDING ALL) PARTITION BY HASH (id);
             CREATE TABLE public.part PARTITION OF public.memory_turns FOR VALUES WITH (MODULUS 1, REMAINDER 0);
             CREATE TABLE public.memory_turn_edges (LIKE made.memory_turn_edges INCLUDING ALL);
             ALTER SCHEMA public OWNER TO gk_test_import_owner",
        )
        .unwrap();
    let refused = |answer: Answer| {
        assert_eq!(answer.status, 2, "{}", answer.out);
        assert!(answer.err.contains("gk_test_import_owner, who owns the schema"), "{}", answer.err);
    };
    refused(import(&database, &["chatgpt", &export("chatgpt.json")]));
    let mut transaction = owner.transaction().unwrap();
    transaction.batch_execute("LOCK TABLE public.part IN ACCESS EXCLUSIVE MODE").unwrap();
    let mut command = graph_kernel(&database);
    command.args(["import", "chatgpt", &export("chatgpt.json")]);
    let import = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut other = database.connect();
    let waits = "SELECT EXISTS (SELECT FROM pg_stat_activity \
                 WHERE datname = current_database() AND wait_event_type = 'Lock')";
    while !other.query_one(waits, &[]).unwrap().get::<_, bool>(0) {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    other.batch_execute("ALTER SCHEMA public RENAME TO renamed").unwrap();
    transaction.commit().unwrap();
    refused(Answer::of(import.wait_with_output().unwrap()));
    let turns: i64 =
        other.query_one("SELECT count(*) FROM renamed.memory_turns", &[]).unwrap().get(0);
    assert_eq!(turns, 0);
    other
        .batch_execute("ALTER SCHEMA renamed OWNER TO CURRENT_USER; DROP ROLE gk_test_import_owner")
        .unwrap();
}

/// A ChatGPT export of about this many bytes, written to a file.
fn write_large_export(path: &str, bytes: usize) -> usize {
    let mut out = std::io::BufWriter::new(fs::File::create(path).unwrap());
    let (mut written, mut turns) = (0, 0);
    let text = "The rows without a zone are in the second file, and nobody knows who wrote them. "
        .repeat(40);
    let mut conversation = 0;
    write!(out, "[").unwrap();
    while written < bytes {
        let mut mapping = serde_json::Map::new();
        // One conversation in fifty is long.
        let length = if conversation % 50 == 7 { 2_000 } else { 40 };
        for n in 0..length {
            let id = format!("m{n}");
            let parent =
                if n == 0 { "client-created-root".to_owned() } else { format!("m{}", n - 1) };
            let role = if n % 2 == 0 { "user" } else { "assistant" };
            mapping.insert(
                id.clone(),
                json!({"id": id, "parent": parent, "children": [], "message": {"id": id, "author": {"role": role},
                       "create_time": 1.7e9 + (conversation * 3_000 + n) as f64,
                       "content": {"content_type": "text", "parts": [format!("{conversation} {n} {text}")]}}}),
            );
            turns += 1;
        }
        let text = json!({"title": "t", "mapping": mapping, "conversation_id": format!("c{conversation}")}).to_string();
        if conversation > 0 {
            write!(out, ",").unwrap();
        }
        out.write_all(text.as_bytes()).unwrap();
        written += text.len();
        conversation += 1;
    }
    write!(out, "]").unwrap();
    turns
}

/// `GRAPH_KERNEL_IMPORT_BYTES` sets the size of the file, by default 80 MiB, more than two batches.
#[test]
fn memory_does_not_grow_with_the_file() {
    const MAX_MEMORY_KIB: u64 = 30 << 10;
    let bytes =
        std::env::var("GRAPH_KERNEL_IMPORT_BYTES").map_or(80 << 20, |text| text.parse().unwrap());
    let database = Database::with_tables("import_large");
    let folder = Folder::new("large");
    let file = folder.write("large.json", "");
    let turns = write_large_export(&file, bytes);
    let start = std::time::Instant::now();
    let (answer, peak) = import_measured(&database, &["chatgpt", &file]);
    assert_eq!((answer.status, answer.count("turns: ") as usize), (0, turns), "{}", answer.out);
    tell(&format!(
        "import of {} MiB, {turns} turns: {} s, {} MiB of memory",
        bytes >> 20,
        start.elapsed().as_secs(),
        peak >> 10
    ));
    assert!(peak > 0 && peak < MAX_MEMORY_KIB, "{peak} KiB");
}

/// A port that nobody listens on.
fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

#[test]
fn connections_are_encrypted_as_with_libpq() {
    let skip = |why| tell(&format!("SKIPPED: connections_are_encrypted_as_with_libpq: {why}"));
    let mut admin = Server::primary().connect_admin();
    if admin.query_one("SHOW ssl_library", &[]).unwrap().get::<_, &str>(0).is_empty() {
        return skip("the server is built without TLS");
    }
    if Command::new("openssl").arg("version").output().is_err() {
        return skip("openssl is not installed");
    }
    let folder = Folder::new("tls");
    let path = |file: &str| folder.0.join(file).to_str().unwrap().to_owned();
    for name in ["server", "other"] {
        run(Command::new("openssl")
            .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"])
            .args(["-nodes", "-subj", "/CN=db.test", "-addext", "subjectAltName=DNS:db.test"])
            .args(["-addext", "basicConstraints=critical,CA:FALSE"])
            .args([
                "-keyout",
                &path(&format!("{name}.key")),
                "-out",
                &path(&format!("{name}.crt")),
            ]));
    }
    for file in [".", "server.key", "server.crt"] {
        give_to_server(&folder.0.join(file));
    }
    let port = free_port();
    let mut cluster = Cluster::start_on(
        port,
        &format!(
            "listen_addresses = '127.0.0.1'\nssl = on\nssl_cert_file = '{}'\nssl_key_file = '{}'",
            path("server.crt"),
            path("server.key")
        ),
    );
    cluster
        .client()
        .batch_execute("CREATE EXTENSION graph_kernel; SELECT graph_kernel.create_tables()")
        .unwrap();
    let sessions = |parameters: &str| {
        let database = format!("postgresql://postgres@{parameters}");
        let mut command = Command::new(variable("GRAPH_KERNEL_PROGRAM"));
        for name in ["PGHOST", "PGPORT", "PGUSER", "PGDATABASE"] {
            command.env_remove(name);
        }
        Answer::of(command.args(["sessions", "--database", &database]).output().unwrap())
    };
    let at = |host: &str, rest: &str| format!("{host}:{port}/postgres?hostaddr=127.0.0.1&{rest}");
    let (right, other) = (path("server.crt"), path("other.crt"));
    for parameters in [
        at("db.test", "sslmode=require"),
        at("elsewhere.test", "sslmode=require"),
        at("elsewhere.test", ""),
        at("db.test", "sslmode=disable"),
        at("db.test", &format!("sslmode=verify-full&sslrootcert={right}")),
        at("db.test", &format!("sslmode=require&sslrootcert={right}")),
    ] {
        let parameters = parameters.trim_end_matches('&');
        let answer = sessions(parameters);
        assert_eq!((answer.status, answer.err.as_str()), (0, ""), "{parameters}");
    }
    for (parameters, reason) in [
        (at("elsewhere.test", &format!("sslmode=verify-full&sslrootcert={right}")), "certificate"),
        (at("db.test", &format!("sslmode=verify-full&sslrootcert={other}")), "certificate"),
        (at("db.test", "sslmode=verify-full"), "certificate"),
        (at("db.test", "sslrootcert=system"), "certificate"),
        (at("db.test", "sslmode=verify-full&sslrootcert=/nowhere.crt"), "/nowhere.crt"),
        (at("db.test", "sslmode=strict"), "verify-full"),
    ] {
        let answer = sessions(&parameters);
        assert!(answer.status == 2 && answer.err.contains(reason), "{parameters}: {}", answer.err);
    }
    // A password, with and without the channel bound to it.
    let rules = cluster.data().join("pg_hba.conf");
    let trust = fs::read_to_string(&rules).unwrap();
    fs::write(&rules, format!("hostssl all bound all scram-sha-256\n{trust}")).unwrap();
    cluster
        .client()
        .batch_execute(
            "CREATE ROLE bound LOGIN SUPERUSER PASSWORD 'secret'; SELECT pg_reload_conf()",
        )
        .unwrap();
    let bound = |channel_binding: &str, password: &str| {
        let database = format!(
            "postgresql://bound@db.test:{port}/postgres?hostaddr=127.0.0.1&sslmode=require"
        );
        let mut command = Command::new(variable("GRAPH_KERNEL_PROGRAM"));
        command.args(["sessions", "--database", &database]);
        command.env("PGCHANNELBINDING", channel_binding).env("PGPASSWORD", password);
        Answer::of(command.output().unwrap())
    };
    let start = std::time::Instant::now();
    while bound("prefer", "wrong").status == 0 {
        assert!(start.elapsed().as_secs() < 60, "the rule is not read");
    }
    for channel_binding in ["require", "prefer", "disable"] {
        let answer = bound(channel_binding, "secret");
        assert_eq!((answer.status, answer.err.as_str()), (0, ""), "{channel_binding}");
        assert!(bound(channel_binding, "wrong").err.contains("password authentication failed"));
    }
    // No connection without encryption where the server must have one.
    cluster.set("ssl", "off");
    assert_eq!(sessions(&at("db.test", "sslmode=require")).status, 2);
    assert_eq!(sessions(&at("db.test", "sslmode=prefer")).status, 0);
    cluster.stop();
}

/// The commands of the page, with the output below each; `GRAPH_KERNEL_BLESS=1` writes the outputs into it.
#[test]
fn the_page_does_what_it_shows() {
    if Command::new("jq").arg("--version").output().is_err() {
        return tell("SKIPPED: the_page_does_what_it_shows: jq is not installed");
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/import.md");
    let page = Page::read_blocks(&path, "sh");
    let database = Database::empty("import_page");
    let folder = Folder::new("page");
    let program = PathBuf::from(variable("GRAPH_KERNEL_PROGRAM"));
    let programs = program.parent().unwrap().to_str().unwrap();
    let search_path = [programs, &variable("GRAPH_KERNEL_BINDIR"), &variable("PATH")].join(":");
    let answers = page.examples.iter().map(|example| {
        let output = Command::new("bash")
            .args(["-euo", "pipefail", "-c", &format!("exec 2>&1\n{}", example.text)])
            .current_dir(export(""))
            .env("PATH", &search_path)
            .env("PGDATABASE", &database.name)
            .env("TMPDIR", &folder.0)
            .env("LC_ALL", "C.UTF-8")
            .output()
            .unwrap();
        let printed = String::from_utf8(output.stdout).unwrap();
        printed.trim_end().lines().map(str::to_owned).collect::<Vec<_>>()
    });
    let answers: Vec<Vec<String>> = answers.collect();
    if std::env::var("GRAPH_KERNEL_BLESS").is_ok_and(|value| value == "1") {
        let answers: Vec<_> = answers.into_iter().map(Some).collect();
        return fs::write(&path, page.with_outputs(&answers)).unwrap();
    }
    for (example, answer) in page.examples.iter().zip(&answers) {
        let shown = page.output(example).unwrap_or_default();
        assert_eq!(answer, shown, "{}:{}", path.display(), example.line);
    }
}
