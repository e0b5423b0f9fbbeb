//! The program, run as people run it.

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

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
    assert!(status == 2 && text.contains("no Ed25519 public key"), "{text}");
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
        ("inspect proof.json", "no slice export"),
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

#[test]
fn a_slice_that_takes_too_long_to_lay_out_is_refused() {
    let files = Files::new("large");
    let mut slice: Value = serde_json::from_str(&files.read("slice.json")).unwrap();
    let (turn, edge) = (slice["turns"][0].clone(), slice["edges"][0].clone());
    let id = |number: usize| Value::from(format!("00000000-0000-0000-0000-{number:012}"));
    let with = |mut object: Value, fields: &[(&str, Value)]| {
        for (name, value) in fields {
            object[*name] = value.clone();
        }
        object
    };
    // A chain of which each turn but the first also has the first for its parent.
    slice["turns"] = (0..600).map(|n| with(turn.clone(), &[("id", id(n))])).collect();
    slice["edges"] = (2..600)
        .map(|n| (0, n))
        .chain((1..600).map(|n| (n - 1, n)))
        .collect::<std::collections::BTreeSet<_>>()
        .into_iter()
        .map(|(parent, child)| with(edge.clone(), &[("parent", id(parent)), ("child", id(child))]))
        .collect();
    slice["anchor_turn_id"] = id(0);
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
    assert_eq!(files.run("man --all .").0, 0);
    let (status, text) = files.run("man nothing");
    assert_eq!((status, text.contains("no command nothing")), (2, true), "{text}");
    for command in ["verify", "inspect", "diff", "draw"] {
        let (status, text) = files.run(&format!("{command} --help"));
        assert_eq!((status, text.contains("Example:")), (0, true), "{text}");
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
