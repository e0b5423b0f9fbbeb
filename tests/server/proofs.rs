//! Proofs in other hands: the commands of docs/proofs.md, as printed, accept a proof of the server's, and nothing else.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::common::database::Database;
use crate::common::variable;
use graph_kernel_tests::data::read_text;

const ANCHOR: &str = "a9ad8365-bc0a-5da2-93e6-e37e99d95d9c";
const EARLIER: &str = "00000000-0000-4000-8000-0000000000e1";

/// The blocks of commands on the page: those that make the files, those that check them, and those that make the files
/// of a prompt.
fn commands() -> [String; 3] {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/proofs.md");
    let page = read_text(&page);
    let blocks = page.split("```sh\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    let blocks: Vec<String> = blocks.map(str::to_owned).collect();
    blocks.try_into().expect("the page has three blocks of commands")
}

fn is_installed(program: &str) -> bool {
    Command::new(program).arg("-h").output().is_ok()
}

/// A directory, removed when it goes out of scope.
struct Directory(PathBuf);

impl Directory {
    fn new() -> Self {
        let path = std::env::temp_dir().join(format!("gk_proofs_{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Directory(path)
    }

    /// Runs commands in it, with the server's programs, connected to a database.
    fn run(&self, commands: &str, database: &Database) -> Output {
        let path = std::env::var("PATH").unwrap();
        Command::new("bash")
            .args(["-euo", "pipefail", "-c", commands])
            .current_dir(&self.0)
            .env("PATH", format!("{}:{path}", variable("GRAPH_KERNEL_BINDIR")))
            .env("PGDATABASE", &database.name)
            .env("PGUSER", "postgres")
            .output()
            .unwrap()
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn standard_tools_accept_a_proof_and_nothing_else() {
    if let Some(missing) = ["openssl", "jq"].into_iter().find(|program| !is_installed(program)) {
        println!("proofs by standard tools: skipped: {missing} is not installed");
        return;
    }
    let database = Database::with_tables("proofs");
    database
        .connect()
        .batch_execute(&format!(
            "INSERT INTO memory_turns (id, content_text) SELECT gen_random_uuid(), 'é ' || n FROM generate_series(1, \
            200) AS n;
             INSERT INTO memory_turns (id, content_text) VALUES ('{ANCHOR}', 'anchor');
             INSERT INTO memory_turn_edges (parent_turn_id, child_turn_id) SELECT '{ANCHOR}', id FROM memory_turns
             WHERE id <> '{ANCHOR}';
             INSERT INTO memory_turns (id, content_text) VALUES ('{EARLIER}', E'earlier: \\u00e9 \\\\ \"quoted\"\n');
             INSERT INTO memory_turn_edges (parent_turn_id, child_turn_id) VALUES ('{EARLIER}', '{ANCHOR}')"
        ))
        .unwrap();
    let directory = Directory::new();
    let [make, check, make_prompt] = commands();
    let made = directory.run(&make, &database);
    assert!(made.status.success(), "{made:?}");

    let checked = directory.run(&check, &database);
    assert!(checked.status.success(), "{checked:?}");
    let answer = String::from_utf8(checked.stdout).unwrap();
    let lines: Vec<&str> = answer.lines().collect();
    assert_eq!(lines[0], "Signature Verified Successfully");
    assert_eq!(Some(lines[1]), lines[2].strip_suffix("  -"));

    // The program takes the same three files.
    let program = format!(
        "{} verify slice.json --proof proof.json --key key.pem",
        variable("GRAPH_KERNEL_PROGRAM")
    );
    let verified = directory.run(&program, &database);
    assert_eq!(verified.stdout, b"valid\n", "{verified:?}");

    // And those of a prompt, with the texts that were kept.
    let made = directory.run(&make_prompt, &database);
    assert!(made.status.success(), "{made:?}");
    let program = format!(
        "{} verify record.json --proof record-proof.json --key key.pem --contents messages.json",
        variable("GRAPH_KERNEL_PROGRAM")
    );
    let verified = directory.run(&program, &database);
    assert_eq!(verified.stdout, b"valid: the contents are those of the messages\n", "{verified:?}");
    let messages = directory.0.join("messages.json");
    let kept = fs::read_to_string(&messages).unwrap();
    fs::write(&messages, kept.replacen("anchor", "Anchor", 1)).unwrap();
    let refused = directory.run(&program, &database);
    let line = format!("not valid: message 2, turn {ANCHOR}, is not what was shown\n");
    assert_eq!((refused.status.code(), refused.stdout), (Some(1), line.into_bytes()));

    // Of a slice with one digit changed the digest is another.
    let slice = fs::read_to_string(directory.0.join("slice.json")).unwrap();
    fs::write(
        directory.0.join("slice.json"),
        slice.replacen("\"salience\":0.5", "\"salience\":0.6", 1),
    )
    .unwrap();
    let edited = String::from_utf8(directory.run(&check, &database).stdout).unwrap();
    let lines: Vec<&str> = edited.lines().collect();
    assert_ne!(Some(lines[1]), lines[2].strip_suffix("  -"));

    // Under another key the signature is none.
    let other = "openssl genpkey -algorithm ed25519 | openssl pkey -pubout > key.pem";
    assert!(directory.run(other, &database).status.success());
    let refused = directory.run(&check, &database);
    assert!(!refused.status.success());
    assert!(
        String::from_utf8_lossy(&refused.stdout).starts_with("Signature Verification Failure"),
        "{refused:?}"
    );
}
