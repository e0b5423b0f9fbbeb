//! Commands in hints: whoever runs one has a search_path of his own, in which others may have put objects with the
//! names of the extension's.

use super::files;

/// Words of a command after which a function or a relation stands.
const BEFORE_NAMES: [&str; 6] =
    ["SELECT ", "FROM ", "JOIN ", "CALL ", "EXECUTE FUNCTION ", "EXECUTE PROCEDURE "];

/// What names of the extension begin with, outside its private schema.
const OWN: [&str; 4] = ["graph_", "recorder_", "chunking_", "slice_"];

/// The extension's names in a text that stand in a command without their schema.
fn unqualified(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for word in BEFORE_NAMES {
        for (at, _) in text.match_indices(word) {
            let rest = text[at + word.len()..].trim_start();
            let name: String =
                rest.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
            let after = &rest[name.len()..];
            // The role of sql/roles.
            let is_own = OWN.iter().any(|own| name.starts_with(own)) && name != "graph_reader";
            // A column, as in SELECT slice_id, is followed by neither.
            let is_used = word != "SELECT " || after.starts_with('(');
            if is_own && is_used && !after.starts_with('.') {
                found.push(format!("{word}{name}"));
            }
        }
    }
    found
}

#[test]
fn commands_name_the_schema_of_what_is_the_extensions() {
    let mut faults = Vec::new();
    let sources = ["src/api", "src/service", "src/pg", "src/kernel"]
        .into_iter()
        .flat_map(|at| files(at, "rs"));
    for (path, text) in sources.chain(files("sql", "sql")) {
        let is_example = |line: &&str| {
            let line = line.trim_start();
            line.starts_with("//") || line.starts_with("--")
        };
        let code: Vec<&str> = text.lines().filter(|line| !is_example(line)).collect();
        // A text goes on in the next line of the source.
        let code = code.join("\n").replace("\\\n", "");
        if path.ends_with("tests.rs") || code.contains("#[cfg(test)]") && path.contains("kernel") {
            continue;
        }
        faults.extend(unqualified(&code).into_iter().map(|fault| format!("{path}: {fault}")));
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn a_name_without_its_schema_is_found() {
    for text in [
        "x: SELECT * FROM graph_check();",
        "EXECUTE FUNCTION graph_require_admissible('a')",
        "SELECT graph_slice(x)",
    ] {
        assert_eq!(unqualified(text).len(), 1, "{text}");
    }
    for text in [
        "SELECT * FROM public.graph_check();",
        "CALL graph_kernel.backfill_content_hashes();",
        "SELECT slice_id",
    ] {
        assert!(unqualified(text).is_empty(), "{text}");
    }
}
