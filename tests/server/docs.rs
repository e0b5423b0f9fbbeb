//! What the documentation shows is what the server answers: the SQL of each page runs in a fresh
//! database with the sample conversation, and the output printed below an example is compared.
//! `GRAPH_KERNEL_BLESS=1` writes the answers into the pages.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use crate::common::database::{Database, load_graph};
use crate::common::process::program;
use crate::common::{shared_roles, tell};
use crate::page::{Example, Page};

/// Beginnings of the names of functions that are not called by name: the reference has no entry for them.
const INTERNAL: &[&str] = &[
    "add_epoch",
    "require_library",
    "require_role_name",
    "require_text",
    "add_policy",
    "add_word_counts",
    "advisory_xact_lock",
    "announce_change",
    "api_",
    "bind_recorder_table_for",
    "bind_recorder_table_internal",
    "bind_store_for",
    "bind_store_internal",
    "bind_tables_for",
    "bind_tables_internal",
    "bind_traces_for",
    "bind_traces_internal",
    "bound_relation_",
    "bound_role_",
    "char_count",
    "check_graph",
    "check_tables",
    "check_rows",
    "check_promotion",
    "check_kept",
    "check_expressions",
    "check_code",
    "check_policy",
    "check_request",
    "check_store",
    "check_trace_table",
    "chosen_graph",
    "chunking_policy_",
    "content_hash_or_null",
    "content_hash_trigger_internal",
    "content_page",
    "free_trigger_name",
    "function_name",
    "whole_command",
    "count_found",
    "count_references",
    "make_recorder_table",
    "create_tables_internal",
    "create_trace_table_internal",
    "describe_",
    "epoch_times",
    "evaluate",
    "policy_internal",
    "policy_register_internal",
    "guard_table",
    "wanted_indexes",
    "index_command",
    "hidden_rows",
    "mapping_commands",
    "missing_grants",
    "row_checks",
    "tables_of",
    "times_command",
    "is_applying",
    "is_kid",
    "is_replaceable",
    "is_text",
    "json_text",
    "json_to_look_through",
    "kept_by_others",
    "list_kept",
    "list_keys",
    "list_proof_keys",
    "make_slice_store",
    "make_trace_table",
    "missing_references",
    "name_hash",
    "name_of",
    "own_name",
    "raising_row",
    "may_read_rows",
    "are_owned",
    "may_share_rows",
    "policy_not_found",
    "policy_ref",
    "presets",
    "policy_fault",
    "list_references",
    "promoting_tables",
    "promoting_triggers",
    "list_statistics",
    "provenance_reason",
    "registry_fingerprint",
    "store_word_totals",
    "refresh_batch",
    "rehash_",
    "requested_anchors",
    "requested_policy",
    "revoke_key_for",
    "revoke_key_internal",
    "roles_advice",
    "rotate_key_for",
    "rotate_key_internal",
    "search_",
    "secret_",
    "set_binder",
    "slice_policy_",
    "slice_support",
    "slice_summaries",
    "text_prefix",
    "trusted_owners",
    "turns_in_cycles",
    "turns_index_command",
    "unbind_tables_for",
    "unfit_documents",
    "unbind_tables_internal",
    "verify_chunks",
    "verify_proof",
    "verify_token",
    "write_trace",
];

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// A path as seen from the repository's root.
fn in_repository(path: &Path) -> String {
    path.strip_prefix(repository()).unwrap_or(path).display().to_string()
}

/// README.md and every page below docs/.
fn pages() -> Vec<PathBuf> {
    let mut pages = vec![repository().join("README.md")];
    let mut folders = vec![repository().join("docs")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                pages.push(path);
            }
        }
    }
    pages.sort();
    pages
}

/// The database the examples start from.
fn sample_database(name: &str) -> Database {
    let database = Database::with_tables(name);
    load_graph(&mut database.connect(), &repository().join("sql/sample"));
    database
}

fn has_pgvector(database: &Database) -> bool {
    let query = "SELECT FROM pg_available_extensions WHERE name = 'vector'";
    database.connect().query_opt(query, &[]).unwrap().is_some()
}

/// Runs a page's examples in one psql session and returns what each printed, errors included.
fn run(page: &Page, database: &Database) -> Vec<Vec<String>> {
    let mut script = String::from("\\set VERBOSITY default\n");
    for (number, example) in page.examples.iter().enumerate() {
        if example.runs {
            script += &example.text;
            script += "\n";
        }
        script += &format!("\\echo {}\n", end_mark(number));
    }
    let printed = psql(&database.name, &script);
    let mut lines = printed.lines();
    let mut outputs = Vec::new();
    for (number, example) in page.examples.iter().enumerate() {
        let mark = end_mark(number);
        let output: Vec<&str> = lines.by_ref().take_while(|line| *line != mark).collect();
        outputs.push(trimmed(output.iter().copied()));
        // A statement that is not ended takes what follows with it.
        assert!(ends_whole(&example.text), "{}: no ; at the end", place(page, example));
    }
    outputs
}

fn end_mark(number: usize) -> String {
    format!("end-of-example-{number}")
}

fn ends_whole(sql: &str) -> bool {
    let last = sql.lines().rfind(|line| {
        let line = line.trim();
        !line.is_empty() && !line.starts_with("--")
    });
    last.is_none_or(|line| line.contains(';') || line.contains('\\'))
}

/// What psql prints to this script.
fn psql(database: &str, script: &str) -> String {
    let (mut reader, writer) = std::io::pipe().unwrap();
    let mut psql = program("psql");
    // Examples name files as seen from the repository's root.
    psql.current_dir(repository())
        .args(["-X", "--dbname", database])
        .env("PGCLIENTENCODING", "UTF8")
        .env("LC_ALL", "C.UTF-8")
        .env_remove("PGOPTIONS")
        .stdin(Stdio::piped())
        .stdout(writer.try_clone().unwrap())
        .stderr(writer);
    let mut child = psql.spawn().unwrap();
    // Else the pipe would stay open on this side, and reading would not end.
    drop(psql);
    let mut input = child.stdin.take().unwrap();
    let script = script.to_owned();
    let feeder = std::thread::spawn(move || input.write_all(script.as_bytes()));
    let printed = std::io::read_to_string(&mut reader).unwrap();
    feeder.join().unwrap().unwrap();
    assert!(child.wait().unwrap().success(), "psql failed: {printed}");
    printed
}

/// Lines without white space at their ends, and without empty ones at the end.
fn trimmed<'a>(lines: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut lines: Vec<String> = lines.map(|line| line.trim_end().to_owned()).collect();
    while lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
    lines
}

/// The page and the line of an example.
fn place(page: &Page, example: &Example) -> String {
    format!("{}:{}", in_repository(&page.path), example.line)
}

/// What is wrong with an example, or `None`.
fn fault(page: &Page, example: &Example, printed: &[String]) -> Option<String> {
    let place = place(page, example);
    match page.output(example) {
        _ if !example.runs => None,
        Some(shown) => {
            let shown = trimmed(shown.iter().map(String::as_str));
            let diff = difference(&shown, printed)?;
            Some(format!("{place}: - is what the page shows, + what psql prints\n{diff}"))
        }
        // An error is fine where the page shows it.
        None => {
            let error = printed.iter().position(|line| line.contains("ERROR:"))?;
            Some(format!("{place}: fails\n{}", printed[error..].join("\n")))
        }
    }
}

/// The lines that differ, without what is the same before and after them.
fn difference(shown: &[String], printed: &[String]) -> Option<String> {
    if shown == printed {
        return None;
    }
    let pairs = shown.iter().zip(printed);
    let before = pairs.take_while(|(a, b)| a == b).count();
    let (shown, printed) = (&shown[before..], &printed[before..]);
    let pairs = shown.iter().rev().zip(printed.iter().rev());
    let after = pairs.take_while(|(a, b)| a == b).count();
    let lines = |sign: char, lines: &[String]| -> String {
        let lines = &lines[..lines.len() - after];
        lines.iter().map(|line| format!("{sign}{line}\n")).collect()
    };
    Some(lines('-', shown) + &lines('+', printed))
}

#[test]
fn examples_print_what_the_pages_show() {
    let bless = std::env::var("GRAPH_KERNEL_BLESS").is_ok_and(|value| value == "1");
    let sample = sample_database("docs_sample");
    let mut faults = Vec::new();
    for path in pages() {
        let page = Page::read(&path);
        let needs_pgvector =
            page.examples.iter().any(|e| e.text.contains("CREATE EXTENSION vector"));
        if needs_pgvector && !has_pgvector(&sample) {
            tell(&format!("SKIPPED: {}: pgvector is not installed", in_repository(&path)));
            continue;
        }
        let database = sample.copy("docs_page");
        let makes_roles = page.examples.iter().any(|e| e.text.contains("sql/roles/"));
        let roles = makes_roles.then(shared_roles);
        let printed = run(&page, &database);
        drop(roles);
        let run = page.examples.iter().filter(|example| example.runs).count();
        tell(&format!(
            "{}: {run} examples run, {} not run",
            in_repository(&path),
            page.examples.len() - run
        ));
        let mut answers = Vec::new();
        for (example, printed) in page.examples.iter().zip(printed) {
            let fault = fault(&page, example, &printed);
            answers.push(fault.is_some().then_some(printed));
            // Blessing rewrites what the page shows, not an example that fails where none is shown.
            faults.extend(fault.filter(|_| !bless || page.output(example).is_none()));
        }
        if bless {
            fs::write(&path, page.with_outputs(&answers)).unwrap();
        }
    }
    assert!(faults.is_empty(), "\n{}", faults.join("\n\n"));
}

/// A writer may set `session_replication_role`, which turns plain triggers off.
#[test]
fn triggers_of_tables_that_promote_are_always_enabled() {
    let after = |statement: &str, word: &str| {
        let mut words = statement.split_whitespace().skip_while(|other| *other != word);
        words.nth(1).unwrap_or_default().to_owned()
    };
    let mut promoting = 0;
    for path in pages() {
        let page = Page::read(&path);
        let statements = page.examples.iter().flat_map(|example| example.text.split(';'));
        let statements: Vec<&str> = statements.map(str::trim).collect();
        let made = |start: &'static str| {
            let made = statements.iter().filter(move |statement| statement.starts_with(start));
            made.map(|statement| (after(statement, "ON"), after(statement, "TRIGGER")))
        };
        let tables: Vec<String> =
            made("CREATE CONSTRAINT TRIGGER").map(|(table, _)| table).collect();
        promoting += tables.len();
        for (table, trigger) in made("CREATE CONSTRAINT TRIGGER").chain(made("CREATE TRIGGER")) {
            let enabled = statements.iter().any(|statement| {
                statement.starts_with(&format!("ALTER TABLE {table} "))
                    && statement.contains(&format!("ENABLE ALWAYS TRIGGER {trigger}"))
            });
            let place = in_repository(&path);
            assert!(enabled || !tables.contains(&table), "{place}: {trigger} on {table}");
        }
    }
    assert!(promoting > 5, "{promoting}");
}

/// Programs whose parts docs/clients.md shows; tests/harness/clients.sh runs them.
fn client_examples() -> Vec<(String, String)> {
    let folder = fs::read_dir(repository().join("docs/examples")).unwrap();
    folder
        .map(|entry| {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            (name, fs::read_to_string(&path).unwrap())
        })
        .collect()
}

/// Whether the lines of a part stand together in a text, indented as a whole or not.
fn is_part_of(part: &str, text: &str) -> bool {
    let part: Vec<&str> = part.lines().collect();
    let lines: Vec<&str> = text.lines().collect();
    lines.windows(part.len()).any(|window| {
        let indent = window[0].len().saturating_sub(part[0].len());
        window.iter().zip(&part).all(|(line, part)| {
            line.get(..indent.min(line.len())).is_some_and(|start| start.trim().is_empty())
                && line.get(indent.min(line.len())..) == Some(*part)
        })
    })
}

#[test]
fn code_for_clients_is_that_of_the_programs_that_are_run() {
    let examples = client_examples();
    let path = repository().join("docs/clients.md");
    let text = fs::read_to_string(&path).unwrap();
    let mut faults = Vec::new();
    let mut compared = 0;
    for (kind, ending) in [("python", ".py"), ("js", ".mjs"), ("java", ".java"), ("rust", ".rs")] {
        let page = Page::read_blocks(&path, kind);
        for part in page.examples.iter().filter(|part| part.runs) {
            let mut programs = examples.iter().filter(|(name, _)| name.ends_with(ending));
            compared += 1;
            if !programs.any(|(_, program)| is_part_of(&part.text, program)) {
                faults.push(format!("{}: is in no program of docs/examples", place(&page, part)));
            }
        }
    }
    for (name, _) in &examples {
        if !text.contains(&format!("(examples/{name})")) {
            faults.push(format!("docs/clients.md has no link to docs/examples/{name}"));
        }
    }
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
    assert!(compared > 0 && !examples.is_empty());
}

#[path = "../../docs/examples/rust_postgres.rs"]
mod rust_postgres;

#[test]
fn the_example_for_rust_postgres_slices() {
    let database = sample_database("docs_rust_postgres");
    let anchor = uuid::uuid!("a9ad8365-bc0a-5da2-93e6-e37e99d95d9c");
    let turns = rust_postgres::slice(&mut database.connect(), anchor).unwrap();
    assert_eq!(turns.len(), 28);
    assert!(turns.contains(&anchor));
}

/// The figures that are drawn (tests/harness/figures.sh), and the policies of their slices.
const FIGURES: [(&str, &str); 2] =
    [("why-focused", "focused"), ("why-ten", r#"{"max_nodes": 10}"#)];

#[test]
fn the_figures_show_slices_of_the_sample_as_they_are() {
    let database = sample_database("docs_figures");
    let mut client = database.connect();
    for (name, policy) in FIGURES {
        let slice = "SELECT graph_slice('a9ad8365-bc0a-5da2-93e6-e37e99d95d9c',
                                        $1::text::slice_policy) ->> 'slice_id'";
        let slice_id: String = client.query_one(slice, &[&policy]).unwrap().get(0);
        let path = repository().join(format!("docs/figures/{name}.svg"));
        let figure = fs::read_to_string(path).unwrap();
        assert!(figure.contains(&slice_id), "{name} is not slice {slice_id}: run make figures");
        assert!(figure.contains("prefers-color-scheme: dark"), "{name} is not themed");
    }
}

/// The pictures that are drawn with contents, with their anchors and policies.
const PICTURES: [(&str, &str, &str); 4] = [
    (
        "policies-chat",
        "a9ad8365-bc0a-5da2-93e6-e37e99d95d9c",
        r#"{"preset": "chat", "max_tokens": 600}"#,
    ),
    (
        "policies-agent",
        "944708e3-3cb7-565f-a2fc-971543aaaa99",
        r#"{"preset": "chat", "max_tokens": 700}"#,
    ),
    (
        "policies-notes",
        "a9ad8365-bc0a-5da2-93e6-e37e99d95d9c",
        r#"{"version": "slice_policy_v2", "max_nodes": 12, "edge_weights": {"branch": 0.5},
            "halving_seconds": 604800}"#,
    ),
    (
        "policies-audit",
        "ee76b8d6-817c-5696-918a-8a34a1af0a8b",
        r#"{"version": "slice_policy_v2", "as_of": 1768219200}"#,
    ),
];

#[test]
fn the_pictures_show_slices_of_the_sample_as_they_are() {
    let database = sample_database("docs_pictures");
    let mut client = database.connect();
    for (name, anchor, policy) in PICTURES {
        let draw = "SELECT graph_slice_draw($1::text::uuid, $2::text::slice_policy, 'dot', '{\"chars\": 32}')";
        let drawn: String = client.query_one(draw, &[&anchor, &policy]).unwrap().get(0);
        let caption = drawn.split_once("label=\"").unwrap().1.split_once("\\n").unwrap().0;
        let path = repository().join(format!("docs/figures/{name}.svg"));
        let figure = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(figure.contains(caption), "{name} is not of {caption}: run make figures");
        let boxes = drawn.lines().filter(|line| line.starts_with("  n") && !line.contains(" -> n"));
        assert_eq!(figure.matches("class=\"node").count(), boxes.count() - 1, "{name}");
        assert!(figure.contains("prefers-color-scheme: dark"), "{name} is not themed");
    }
}

#[test]
fn the_reference_documents_every_function_and_runs_an_example_of_it() {
    let database = Database::with_tables("docs_functions");
    let rows = database
        .connect()
        .query(
            "SELECT DISTINCT p.proname::text
             FROM pg_depend AS d
             JOIN pg_proc AS p ON d.classid = 'pg_proc'::regclass AND p.oid = d.objid
             JOIN pg_extension AS x ON d.refclassid = 'pg_extension'::regclass
                                   AND x.oid = d.refobjid
             WHERE d.deptype = 'e' AND x.extname = 'graph_kernel'",
            &[],
        )
        .unwrap();
    let functions: BTreeSet<String> = rows.iter().map(|row| row.get(0)).collect();
    assert!(functions.contains("graph_slice"));
    let path = repository().join("docs/reference.md");
    let text =
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("docs/reference.md: {error}"));
    let page = Page::read(&path);
    let run: Vec<&Example> = page.examples.iter().filter(|example| example.runs).collect();
    let mut faults = Vec::new();
    for function in &functions {
        if INTERNAL.iter().any(|internal| function.starts_with(internal)) {
            continue;
        }
        if !mentions(&text, function) {
            faults.push(format!("{function} is not documented"));
        } else if !run.iter().any(|example| mentions(&example.text, function)) {
            faults.push(format!("{function} has no example that is run"));
        }
    }
    assert!(faults.is_empty(), "docs/reference.md:\n{}", faults.join("\n"));
}

/// Whether a text has this name, not as a part of a longer one.
fn mentions(text: &str, name: &str) -> bool {
    let in_name = |character: char| character.is_alphanumeric() || character == '_';
    text.match_indices(name).any(|(at, _)| {
        !text[..at].ends_with(in_name) && !text[at + name.len()..].starts_with(in_name)
    })
}

mod tests {
    use super::{difference, ends_whole, is_part_of, mentions};

    #[test]
    fn a_part_stands_in_its_text_whole_and_in_order() {
        let text = "a\n    b\n\n      c\nd\n";
        assert!(is_part_of("b\n\n  c", text));
        assert!(is_part_of("a\n    b", text));
        assert!(!is_part_of("b\n\nc", text));
        assert!(!is_part_of("b\n  c", text));
        assert!(!is_part_of("b\n\n  c\nd", text));
    }

    #[test]
    fn a_name_is_not_found_in_a_longer_one() {
        assert!(mentions("SELECT graph_slice(1)", "graph_slice"));
        assert!(!mentions("SELECT graph_slice_turns(1)", "graph_slice"));
        assert!(!mentions("SELECT my_graph_slice(1)", "graph_slice"));
    }

    #[test]
    fn a_difference_shows_only_what_differs() {
        let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
        let shown = lines("a\nb\nc\nd");
        assert_eq!(difference(&shown, &shown), None);
        let printed = lines("a\nB\nC\nc\nd");
        assert_eq!(difference(&shown, &printed).unwrap(), "-b\n+B\n+C\n");
        assert_eq!(difference(&shown, &shown[..3]).unwrap(), "-d\n");
    }

    #[test]
    fn an_unended_statement_is_found() {
        assert!(ends_whole("SELECT 1;\n-- that was it"));
        assert!(ends_whole("SELECT 1 \\gset"));
        assert!(!ends_whole("SELECT 1;\nSELECT 2"));
    }
}
