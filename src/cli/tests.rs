//! The program, run as people run it.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::thread;

use kernel::binary::pack;
use kernel::prompt::record::Document;
use kernel::trust::keys::{ProofKey, Secret, SigningKeys, VerifyingKey, VerifyingKeys};
use kernel::verification::proof::{KeySource, proof};
use kernel::verification::verify::{KeyRing, verify_document};
use serde_json::{Value, json};

/// A directory with a slice, its proof and the key, removed when it goes out of scope.
struct Files(PathBuf);

impl Files {
    /// `name` is the test's own.
    fn new(name: &str) -> Self {
        let cases = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden/data/proof.json");
        let cases: Value = serde_json::from_str(&fs::read_to_string(cases).unwrap()).unwrap();
        let path = std::env::temp_dir().join(format!("gk_cli_{}_{name}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        let files = Files(path);
        for (file, key) in [
            ("slice.json", "export_text"),
            ("proof.json", "proof_text"),
            ("key.pem", "public_key_pem"),
        ] {
            files.write(file, cases[0][key].as_str().unwrap());
        }
        files
    }

    fn write(&self, file: &str, text: &str) {
        fs::write(self.0.join(file), text).unwrap();
    }

    fn read(&self, file: &str) -> String {
        fs::read_to_string(self.0.join(file)).unwrap()
    }

    fn command(&self, arguments: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_graph-kernel"));
        command.args(arguments.split_whitespace()).current_dir(&self.0);
        for variable in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE"] {
            command.env_remove(variable);
        }
        command
    }

    /// The exit status, and what is printed on both streams.
    fn run(&self, arguments: &str) -> (i32, String) {
        said(&self.command(arguments).output().unwrap())
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn said(output: &Output) -> (i32, String) {
    let text = [&output.stdout[..], &output.stderr[..]].concat();
    (output.status.code().unwrap(), String::from_utf8(text).unwrap())
}

const VERIFY: &str = "verify slice.json --proof proof.json --key key.pem";

#[test]
fn a_proof_is_valid_or_not_and_why() {
    let files = Files::new("verify");
    assert_eq!(files.run(VERIFY), (0, "valid\n".to_owned()));
    let slice = files.read("slice.json");
    // What psql and editors leave at the end changes nothing.
    files.write("slice.json", &format!("{slice}\n"));
    assert_eq!(files.run(VERIFY).0, 0);
    files.write("slice.json", &slice.replacen("\"rls\":false", "\"rls\":true", 1));
    let (status, text) = files.run(VERIFY);
    assert_eq!((status, text.starts_with("not valid: other_export: ")), (1, true), "{text}");
    files.write("slice.json", "{}");
    assert!(files.run(VERIFY).1.starts_with("not valid: malformed_export: "));
    files.write("proof.json", "{}");
    assert!(files.run(VERIFY).1.starts_with("not valid: malformed_proof: "));
    files.write("key.pem", "");
    // A key that cannot be read says nothing of the proof.
    let (status, text) = files.run(VERIFY);
    assert!(status == 2 && text.contains("not an Ed25519 public key"), "{text}");
}

/// Files of a worked record, whose texts are in the case.
fn prompt_files(name: &str) -> (Files, Vec<(String, Option<String>)>) {
    let files = Files::new(name);
    let cases = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden/data/prompt.json.gz");
    let unpacked = Command::new("gzip").args(["-dc", cases]).output().unwrap().stdout;
    let cases: Value = serde_json::from_slice(&unpacked).unwrap();
    let case = &cases[0];
    files.write("record.json", &case["record"].to_string());
    let root: Vec<u8> = (0..32)
        .map(|n| u8::from_str_radix(&case["root_hex"].as_str().unwrap()[2 * n..][..2], 16).unwrap())
        .collect();
    let epoch = case["epoch"].as_u64().unwrap() as u32;
    let key = ProofKey::derive(&Secret::new(root.clone()), epoch);
    let ring = Ring(SigningKeys::derive(&Secret::new(root), epoch));
    let verdict = verify_document(&files.read("record.json"), &ring);
    files.write("proof.json", &proof(&verdict, &key, KeySource::File, &|| {}).unwrap());
    files.write("key.pem", &key.public_key().to_pem());
    let text = |id: &Value| {
        let row = case["all_turns"].as_array().unwrap().iter().find(|row| row["id"] == *id);
        row.unwrap()["content_text"].as_str().map(str::to_owned)
    };
    let messages = case["record"]["messages"].as_array().unwrap().iter();
    let texts = messages.map(|m| (m["turn_id"].as_str().unwrap().to_owned(), text(&m["turn_id"])));
    let texts = texts.collect();
    (files, texts)
}

/// The keys of the worked records.
struct Ring(SigningKeys);

impl KeyRing for Ring {
    fn graph(&self) -> &str {
        "default"
    }
    fn verifying_keys(&self, _kid: &str) -> Option<VerifyingKeys> {
        Some(self.0.verifying_keys())
    }
    fn is_revoked(&self, _kid: &str) -> bool {
        false
    }
    fn shared_v2_key(&self) -> Option<VerifyingKey> {
        None
    }
}

#[test]
fn a_record_of_a_prompt_is_verified_with_the_texts_that_were_kept() {
    const OF_RECORD: &str = "verify record.json --proof proof.json --key key.pem";
    let (files, texts) = prompt_files("prompt");
    assert_eq!(files.run(OF_RECORD), (0, "valid\n".to_owned()));
    let with = |contents: &Value| {
        files.write("messages.json", &contents.to_string());
        files.run(&format!("{OF_RECORD} --contents messages.json"))
    };
    let kept: Vec<Value> = texts.iter().map(|(_, text)| Value::from(text.clone())).collect();
    let count = kept.len();
    let valid = (0, "valid: the contents are those of the messages\n".to_owned());
    assert_eq!(with(&Value::from(kept.clone())), valid);
    let objects: Vec<Value> = kept.iter().map(|text| json!({ "content": text })).collect();
    assert_eq!(with(&Value::from(objects)), valid);
    // Each message is said that is another one.
    for place in [0, count - 1] {
        let mut other = kept.clone();
        other[place] = json!("what nobody was shown");
        let (turn, said) = (&texts[place].0, with(&Value::from(other)));
        let line =
            format!("not valid: message {}, turn {turn}, is not what was shown\n", place + 1);
        assert_eq!(said, (1, line));
    }
    let mut payloads = kept.clone();
    payloads[0] = json!({ "content": kept[0], "payload": { "nobody": "stored it" } });
    assert!(with(&Value::from(payloads)).1.starts_with("not valid: message 1, "));
    let (status, text) = with(&Value::from(kept[1..].to_vec()));
    let line = format!("not valid: {} contents are given for {count} messages\n", count - 1);
    assert_eq!((status, text), (1, line));
    for contents in [json!({}), json!([1]), json!([{}]), json!([{ "text": "" }])] {
        let (status, text) = with(&contents);
        assert_eq!(
            (status, text.contains("messages.json: not an array of contents: ")),
            (2, true),
            "{text}"
        );
    }
    // What was kept is only told of a record that is valid.
    let record = files.read("record.json");
    files.write("record.json", &record.replacen("\"tokens\":", "\"tokens\":1", 1));
    assert!(with(&Value::from(kept.clone())).1.starts_with("not valid: other_export: "));
    files.write("record.json", &record);
    // The slice in a record is not what is proven, and has no messages.
    let slice: Value = serde_json::from_str::<Value>(&record).unwrap()["slice"].clone();
    files.write("record.json", &slice.to_string());
    assert!(files.run(OF_RECORD).1.starts_with("not valid: other_export: "));
    let slices = Files::new("prompt_slice");
    slices.write("messages.json", "[]");
    let (status, text) = slices.run(&format!("{VERIFY} --contents messages.json"));
    assert_eq!((status, text.contains("needs the record of a prompt")), (2, true), "{text}");
}

#[test]
fn a_record_of_a_prompt_is_shown() {
    let (files, texts) = prompt_files("inspect_prompt");
    let (status, text) = files.run("inspect record.json");
    assert_eq!(status, 0, "{text}");
    let record: Value = serde_json::from_str(&files.read("record.json")).unwrap();
    let line = format!("prompt       {}\n", record["digest"].as_str().unwrap());
    assert!(text.contains(&line), "{text}");
    for (message, (id, _)) in record["messages"].as_array().unwrap().iter().zip(&texts) {
        let hash = message["content"].as_str().unwrap_or("none");
        assert!(text.contains(&format!("{id} {hash}\n")), "{text}");
    }
    for check in ["messages", "message_order", "prompt_digest"] {
        assert!(text.contains(&format!("{check:<20} ok")), "{text}");
    }
    let messages = record["messages"].as_array().unwrap();
    let mut turned = record.clone();
    turned["messages"] = messages.iter().rev().cloned().collect();
    files.write("record.json", &turned.to_string());
    let (status, text) = files.run("inspect record.json");
    assert_eq!((status, text.contains("message_order        wrong")), (1, true), "{text}");
    files.write("record.json", &files.read("record.json").replacen("\"v\":1", "\"v\":2", 1));
    let (status, text) = files.run("inspect record.json");
    assert_eq!((status, text.contains("record.v must be 1")), (2, true), "{text}");
}

#[test]
fn documents_in_few_bytes_are_read_as_their_json_is() {
    for (files, document) in
        [(Files::new("bytes"), "slice"), (prompt_files("bytes-record").0, "record")]
    {
        let json = format!("{document}.json");
        let read = Document::parse(&files.read(&json), &|| {}).unwrap();
        let bytes = pack(&read, &|| {}).unwrap();
        fs::write(files.0.join("document.gkd"), &bytes).unwrap();
        let commands: &[&str] = match document {
            "slice" => {
                &["inspect FILE", "diff FILE slice.json", "draw FILE", "draw FILE --format svg"]
            }
            _ => &["inspect FILE"],
        };
        for command in [&["verify FILE --proof proof.json --key key.pem"][..], commands].concat() {
            let (status, said) = files.run(&command.replace("FILE", "document.gkd"));
            assert_eq!(
                (status, &said),
                (0, &files.run(&command.replace("FILE", &json)).1),
                "{command}"
            );
        }
        fs::write(files.0.join("document.gkd"), &bytes[..bytes.len() - 1]).unwrap();
        let (status, said) = files.run("inspect document.gkd");
        assert!(status == 2 && said.contains("the bytes are not those of a document"), "{said}");
    }
}

#[test]
fn one_file_can_be_the_standard_input() {
    let files = Files::new("stdin");
    let mut command = files.command("verify - --proof proof.json --key key.pem");
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(files.read("slice.json").as_bytes()).unwrap();
    assert_eq!(said(&child.wait_with_output().unwrap()), (0, "valid\n".to_owned()));
    let (status, text) = files.run("verify - --proof - --key key.pem");
    assert_eq!((status, text.contains("standard input")), (2, true), "{text}");
}

#[test]
fn wrong_use_is_told_from_a_wrong_answer() {
    let files = Files::new("use");
    files.write("latin1.json", "");
    fs::write(files.0.join("latin1.json"), b"\xe9").unwrap();
    for (arguments, word) in [
        ("", "Usage"),
        ("verify slice.json", "--proof"),
        ("verify nowhere.json --proof proof.json --key key.pem", "nowhere.json"),
        ("inspect proof.json", "neither a slice export nor a record"),
        ("inspect latin1.json", "not UTF-8"),
        ("inspect .", "directory"),
        ("draw slice.json --format png", "png"),
    ] {
        let (status, text) = files.run(arguments);
        assert_eq!((status, text.contains(word)), (2, true), "{arguments}: {text}");
    }
}

#[test]
fn a_slice_is_shown_with_its_fingerprints_computed() {
    let files = Files::new("inspect");
    let (status, text) = files.run("inspect slice.json");
    assert_eq!(status, 0, "{text}");
    for line in [
        "turns        5\n",
        "taken for    alice, without row security\n",
        "digest               ok",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    let slice = files.read("slice.json");
    files.write("slice.json", &slice.replacen("\"salience\":0.3", "\"salience\":0.4", 1));
    let (status, text) = files.run("inspect slice.json");
    assert_eq!((status, text.contains("digest               wrong")), (1, true), "{text}");
}

#[test]
fn slices_are_compared_and_drawn() {
    let files = Files::new("diff");
    let slice = files.read("slice.json");
    assert_eq!(files.run("diff slice.json slice.json"), (0, String::new()));
    files.write("other.json", &slice.replacen("\"salience\":0.3", "\"salience\":0.4", 1));
    let id = "00000000-0000-0000-0000-000000000001";
    let expected = format!("turn {id} salience: 0.3 -> 0.4\n");
    assert_eq!(files.run("diff slice.json other.json"), (1, expected));
    let (status, text) = files.run("draw slice.json");
    assert_eq!((status, text.starts_with("flowchart TB\n")), (0, true), "{text}");
    let (status, text) = files.run("draw slice.json --format dot");
    assert_eq!((status, text.starts_with("digraph slice {\n")), (0, true), "{text}");
    // As SlicePolicy v1 §6.1 has it: without hashes of contents and tokens.
    let mut locked: Value = serde_json::from_str(&slice).unwrap();
    for key in ["graph_snapshot_hash", "admissibility_token", "attestation"] {
        locked.as_object_mut().unwrap().remove(key).unwrap();
    }
    for turn in locked["turns"].as_array_mut().unwrap() {
        turn.as_object_mut().unwrap().remove("content_hash").unwrap();
    }
    files.write("locked.json", &locked.to_string());
    assert_eq!(files.run("diff slice.json locked.json"), (0, String::new()));
    assert_eq!(files.run("draw locked.json"), files.run("draw slice.json"));
    let (status, text) = files.run("inspect locked.json");
    assert!(status == 1 && text.contains("\nsnapshot     none\n"), "{text}");
}

#[test]
fn a_picture_shows_each_turn_and_edge_of_the_slice() {
    let files = Files::new("picture");
    let (status, text) = files.run("draw slice.json --format svg");
    assert_eq!(status, 0, "{text}");
    let slice: Value = serde_json::from_str(&files.read("slice.json")).unwrap();
    let picture = roxmltree::Document::parse(&text).unwrap();
    let of_class = |class: &str| {
        let has = |node: &roxmltree::Node| {
            node.attribute("class").is_some_and(|all| all.split(' ').any(|one| one == class))
        };
        picture.descendants().filter(has).collect::<Vec<_>>()
    };
    let titles: Vec<_> = of_class("turn")
        .iter()
        .map(|turn| turn.first_element_child().unwrap().text().unwrap())
        .collect();
    let turns: Vec<_> = slice["turns"]
        .as_array()
        .unwrap()
        .iter()
        .map(|turn| turn["id"].as_str().unwrap())
        .collect();
    assert_eq!(titles, turns);
    assert_eq!(of_class("anchor").len(), 1);
    let arrows = of_class("edge").iter().filter(|edge| edge.has_attribute("marker-end")).count();
    assert_eq!(arrows, slice["edges"].as_array().unwrap().len());
    // No two turns overlap.
    let boxes: Vec<[f64; 4]> = of_class("turn")
        .iter()
        .map(|turn| {
            let outline = turn.children().find(|child| child.has_tag_name("rect")).unwrap();
            ["x", "y", "width", "height"]
                .map(|name| outline.attribute(name).unwrap().parse().unwrap())
        })
        .collect();
    for (number, a) in boxes.iter().enumerate() {
        for b in &boxes[..number] {
            let apart =
                |side: usize| a[side] + a[side + 2] <= b[side] || b[side] + b[side + 2] <= a[side];
            assert!(apart(0) || apart(1), "{a:?} {b:?}");
        }
    }
}

#[test]
fn a_picture_shows_hostile_text_as_text() {
    let files = Files::new("markup");
    let slice = files.read("slice.json");
    let id = "\"policy_id\":\"slice_policy_v1\"";
    assert!(slice.contains(id), "{slice}");
    for (hostile, shown) in [
        ("</text><a>&", "</text><a>& "),
        ("\"'&amp;<!--", "\"'&amp;<!-- "),
        ("]]>\u{202e}\u{ffff}\u{1}x", "]]>   x "),
    ] {
        let text = Value::from(hostile).to_string();
        files.write("hostile.json", &slice.replacen(id, &format!("\"policy_id\":{text}"), 1));
        let (status, text) = files.run("draw hostile.json --format svg");
        assert_eq!(status, 0, "{text}");
        let picture = roxmltree::Document::parse(&text).unwrap();
        let mut texts = picture.descendants().filter_map(|node| node.text());
        assert!(texts.any(|text| text.trim_start().starts_with(shown)), "{hostile}: {text}");
    }
}

/// The slice of the tests with this many turns in a chain; the edges are pairs of their numbers.
fn chain(files: &Files, turns: usize, edges: &[(usize, usize)]) -> Value {
    let mut slice: Value = serde_json::from_str(&files.read("slice.json")).unwrap();
    let (turn, edge) = (slice["turns"][0].clone(), slice["edges"][0].clone());
    let id = |number: usize| Value::from(format!("00000000-0000-0000-0000-{number:012}"));
    let with = |mut object: Value, fields: &[(&str, Value)]| {
        for (name, value) in fields {
            object[*name] = value.clone();
        }
        object
    };
    slice["turns"] = (0..turns).map(|n| with(turn.clone(), &[("id", id(n))])).collect();
    slice["edges"] = edges
        .iter()
        .map(|(parent, child)| {
            with(edge.clone(), &[("parent", id(*parent)), ("child", id(*child))])
        })
        .collect();
    slice["anchor_turn_id"] = id(0);
    slice
}

#[test]
fn every_edge_is_inside_the_picture() {
    let files = Files::new("inside");
    const TURNS: usize = 16;
    // A chain, and edges from its first turn to all others.
    let mut edges: Vec<(usize, usize)> = (1..TURNS).map(|n| (n - 1, n)).collect();
    edges.extend((2..TURNS).map(|n| (0, n)));
    edges.sort_unstable();
    files.write("chain.json", &chain(&files, TURNS, &edges).to_string());
    let (status, text) = files.run("draw chain.json --format svg");
    assert_eq!(status, 0, "{text}");
    let picture = roxmltree::Document::parse(&text).unwrap();
    let number = |text: &str| text.parse::<f64>().unwrap();
    let [width, height] =
        ["width", "height"].map(|name| number(picture.root_element().attribute(name).unwrap()));
    let paths: Vec<_> = picture
        .descendants()
        .filter(|node| {
            node.has_tag_name("path") && !node.ancestors().any(|up| up.has_tag_name("marker"))
        })
        .collect();
    assert_eq!(paths.len(), edges.len());
    for path in paths {
        let shift = path.ancestors().find_map(|up| up.attribute("transform")).unwrap();
        let shift: Vec<f64> = shift
            .trim_start_matches("translate(")
            .trim_end_matches(')')
            .split(' ')
            .map(number)
            .collect();
        for point in
            path.attribute("d").unwrap().split(['M', 'L']).filter(|point| !point.is_empty())
        {
            let point: Vec<f64> = point.split_whitespace().map(number).collect();
            let (x, y) = (point[0] + shift[0], point[1] + shift[1]);
            assert!(
                (0.0..=width).contains(&x) && (0.0..=height).contains(&y),
                "{x} {y} in {width} {height}"
            );
        }
    }
}

#[test]
fn a_slice_that_takes_too_long_to_lay_out_is_refused() {
    let files = Files::new("large");
    // A chain of which each turn but the first also has the first for its parent.
    let edges: std::collections::BTreeSet<(usize, usize)> =
        (2..600).map(|n| (0, n)).chain((1..600).map(|n| (n - 1, n))).collect();
    let edges: Vec<(usize, usize)> = edges.into_iter().collect();
    let slice = chain(&files, 600, &edges);
    files.write("slice.json", &slice.to_string());
    assert_eq!(files.run("draw slice.json --format dot").0, 0);
    let (status, text) = files.run("draw slice.json --format svg");
    assert_eq!((status, text.contains("--format dot")), (2, true), "{text}");
}

#[test]
fn terminals_get_colours_only_where_they_want_them_and_never_a_files_control_characters() {
    let files = Files::new("colours");
    let hostile = files.read("slice.json").replacen(
        "\"role\":\"alice\"",
        "\"role\":\"\\u001b[2J\\u202ex\"",
        1,
    );
    files.write("slice.json", &hostile);
    let plain = files.run("inspect slice.json").1;
    assert!(plain.contains("\\u{1b}[2J\\u{202e}x"), "{plain}");
    assert!(!plain.contains('\u{1b}'), "{plain}");
    let mut forced = files.command("inspect slice.json");
    let coloured = said(&forced.env("CLICOLOR_FORCE", "1").output().unwrap()).1;
    assert!(coloured.contains("\u{1b}[") && !coloured.contains("\u{1b}[2J"), "{coloured}");
    let without =
        said(&forced.env("NO_COLOR", "1").env_remove("CLICOLOR_FORCE").output().unwrap()).1;
    assert_eq!(without, plain);
}

#[test]
fn help_completions_and_manual_come_from_one_source() {
    let files = Files::new("help");
    fs::create_dir(files.0.join("pages")).unwrap();
    assert_eq!(files.run("man --all pages").0, 0);
    let mut pages: Vec<String> = fs::read_dir(files.0.join("pages"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    pages.sort_unstable();
    let commands = [
        "-completions",
        "-diff",
        "-draw",
        "-import",
        "-inspect",
        "-man",
        "-mcp",
        "-prompt",
        "-serve",
        "-sessions",
        "-slice",
        "-verify",
        "",
    ];
    assert_eq!(pages, commands.map(|command| format!("graph-kernel{command}.1")));
    assert_eq!(files.run("man --all .").0, 0);
    let (status, text) = files.run("man nothing");
    assert_eq!((status, text.contains("no command nothing")), (2, true), "{text}");
    for command in ["verify", "inspect", "diff", "draw"] {
        let (status, text) = files.run(&format!("{command} --help"));
        assert_eq!((status, text.contains("Example")), (0, true), "{text}");
        for (arguments, spelt) in
            [("--help", command.to_owned()), ("man", format!("graph\\-kernel\\-{command}"))]
        {
            let (status, text) = files.run(arguments);
            assert_eq!((status, text.contains(&spelt)), (0, true), "{spelt}: {text}");
        }
        let (status, text) = files.run(&format!("man {command}"));
        assert_eq!((status, text), (0, files.read(&format!("graph-kernel-{command}.1"))));
        for shell in ["bash", "zsh", "fish"] {
            let (status, text) = files.run(&format!("completions {shell}"));
            assert_eq!((status, text.contains(command)), (0, true), "{shell}");
        }
    }
}

/// What a server answers to every query.
#[derive(Clone, Copy)]
enum Row {
    /// A row of these columns: type and value.
    Of(&'static [(i32, Option<&'static [u8]>)]),
    /// Rows without end.
    Endless,
    /// An error, with a message of so many megabytes.
    Error(usize),
    /// An error whose SQLSTATE is one character.
    ShortCode,
    /// The list of sessions, with control characters in each column.
    Sessions,
}

const TEXT: i32 = 25;

/// A message of the protocol.
fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    [&[kind], &(body.len() as i32 + 4).to_be_bytes()[..], body].concat()
}

/// A result with one row, without its end.
fn result(columns: &[(i32, Option<&[u8]>)]) -> (Vec<u8>, Vec<u8>) {
    let mut description = (columns.len() as i16).to_be_bytes().to_vec();
    let mut row = description.clone();
    for (oid, value) in columns {
        description.extend(b"c\0\0\0\0\0\0\0");
        description.extend(oid.to_be_bytes());
        description.extend([0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 1]);
        row.extend(value.map_or(-1, |value| value.len() as i32).to_be_bytes());
        row.extend(value.unwrap_or_default());
    }
    (message(b'T', &description), message(b'D', &row))
}

/// Serves one client, until it goes.
fn serve(client: &mut (impl Read + Write), answer: Row) -> std::io::Result<()> {
    const GRAPH: &[u8] =
        b"\x01{\"turns\": {\"from\": \"x\", \"oid\": 1}, \"edges\": {\"from\": \"y\"}}";
    const HOSTILE: &[u8] = b"\x1b]0;x\x07\x1b[31mX\xe2\x80\xae";
    let text = |value: &'static [u8]| (TEXT, Some(value));
    let mut head = [0; 4];
    let body = |client: &mut dyn Read, length: [u8; 4]| {
        let mut body = vec![0; u32::from_be_bytes(length) as usize - 4];
        client.read_exact(&mut body).map(|()| body)
    };
    for _ in 0..2 {
        client.read_exact(&mut head)?;
        let request = body(client, head)?;
        if request.len() > 4 {
            break;
        }
        client.write_all(b"N")?;
    }
    let start =
        [message(b'R', &[0; 4]), message(b'S', b"client_encoding\0UTF8\0"), message(b'Z', b"I")];
    client.write_all(&start.concat())?;
    let mut query = Vec::new();
    loop {
        let mut kind = [0];
        client.read_exact(&mut kind)?;
        client.read_exact(&mut head)?;
        let body = body(client, head)?;
        let said = |part: &str| String::from_utf8_lossy(&body).contains(part);
        match kind[0] {
            b'X' => return Ok(()),
            b'P' => query = body,
            b'Q' => {
                let state = if said("BEGIN") { b"T" } else { b"I" };
                let done = message(b'C', b"SET\0").repeat(5);
                client.write_all(&[done, message(b'Z', state)].concat())?;
            }
            b'S' => {
                let is_about = |part: &str| String::from_utf8_lossy(&query).contains(part);
                client.write_all(&[message(b'1', b""), message(b'2', b"")].concat())?;
                let error = |code: &[u8], text: &[u8]| {
                    let start = [b"SERROR\0VERROR\0C", code, b"\0M"].concat();
                    let body = [&start[..], text, b"\0\0"].concat();
                    [message(b'E', &body), message(b'Z', b"T")].concat()
                };
                let end = [message(b'C', b"SELECT 1\0"), message(b'Z', b"T")].concat();
                let columns = match answer {
                    Row::Error(size) => {
                        client.write_all(&error(b"42P01", &vec![b'a'; size << 20]))?;
                        continue;
                    }
                    Row::ShortCode => {
                        client.write_all(&error(b"4", b"short"))?;
                        continue;
                    }
                    Row::Endless => {
                        let (description, row) = result(&[(TEXT, Some(&[b'x'; 100_000]))]);
                        client.write_all(&description)?;
                        loop {
                            client.write_all(&row)?;
                        }
                    }
                    Row::Of(columns) => columns.to_vec(),
                    Row::Sessions if is_about("pg_extension") => {
                        let oid = (26, Some(&[0, 0, 64, 1][..]));
                        vec![text(b"public"), (TEXT, None), (TEXT, None), oid]
                    }
                    Row::Sessions if is_about("describe_graph") => {
                        vec![text(b"default"), (3802, Some(GRAPH))]
                    }
                    // No schema of another role.
                    Row::Sessions if is_about("pg_database_owner") => {
                        let (description, _) = result(&[text(b""); 3]);
                        client.write_all(&[description, end].concat())?;
                        continue;
                    }
                    Row::Sessions => {
                        let one = (20, Some(&[0, 0, 0, 0, 0, 0, 0, 1][..]));
                        vec![text(HOSTILE), one, text(HOSTILE), text(HOSTILE)]
                    }
                };
                let (description, row) = result(&columns);
                client.write_all(&[description, row, end].concat())?;
            }
            _ => {}
        }
    }
}

/// What `sessions` says of a server with this answer.
fn asked(files: &Files, answer: Row) -> (i32, String) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || serve(&mut listener.accept().unwrap().0, answer));
    let mut command = files.command("sessions --database");
    command.arg(format!("host=127.0.0.1 port={port} user=u dbname=d"));
    said(&command.output().unwrap())
}

#[test]
fn a_server_that_answers_something_else_is_an_error() {
    let files = Files::new("answers");
    for answer in [
        Row::Of(&[]),
        Row::Of(&[(TEXT, None)]),
        Row::Of(&[(23, Some(&[0, 0, 0, 1]))]),
        Row::Of(&[(TEXT, Some(b"\xff\xfe"))]),
        Row::Of(&[(TEXT, Some(b"a")), (TEXT, Some(b"b"))]),
        Row::ShortCode,
        Row::Endless,
        Row::Error(50),
    ] {
        let (status, text) = asked(&files, answer);
        let start = text.get(..200).unwrap_or(&text);
        assert!(status == 2 && text.starts_with("error: "), "{status}: {start}");
        assert!(text.lines().count() == 1 && text.len() < 20_000, "{}: {start}", text.len());
    }
}

#[test]
fn a_server_that_says_nothing_is_waited_for_as_long_as_was_said() {
    let files = Files::new("silent");
    // Connections are made, and nobody answers.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let mut command = files.command("sessions --database");
    command.arg(format!("host=127.0.0.1 port={port} user=u dbname=d connect_timeout=1"));
    let (status, text) = said(&command.output().unwrap());
    assert_eq!(status, 2);
    assert!(text.ends_with("connection timed out\n"), "{text}");
}

#[test]
fn nothing_that_a_server_says_reaches_a_terminal_raw() {
    let files = Files::new("raw");
    let (status, text) = asked(&files, Row::Sessions);
    assert_eq!((status, text.matches("\\u{1b}]0;x\\u{7}").count()), (0, 3), "{text}");
    assert!(!text.contains(['\u{1b}', '\u{7}', '\u{202e}']), "{text}");
}
