//! The words in DETAIL are those of one list, which the Rust sources, the scripts and the pages use alike.

use std::collections::BTreeSet;

use crate::files;

/// Names in capitals that the scripts and pages use for something else.
const OTHER_NAMES: &[&str] = &[
    "ANSWER_TOO_LARGE",
    "CARGO_PKG_VERSION",
    "CHAT_MODEL",
    "DATABASE_URL",
    "DB_MAX_CONNECTIONS",
    "ERRORDATA_STACK_SIZE",
    "GRAPH_KERNEL_IMPORT_BYTES",
    "GRAPH_KERNEL_TIMEOUT",
    "GRAPH_KERNEL_URL",
    "IS_TEMPLATE",
    "KERNEL_HMAC_SECRET",
    "LOG_FORMAT",
    "MODULE_PATHNAME",
    "NO_COLOR",
    "ON_ERROR_STOP",
    "OUT_DIR",
    "PGCONNECT_TIMEOUT",
    "PG_CONFIG",
    "PG_MAJOR",
    "POSTGRESQL_JDBC",
    "ROW_COUNT",
    "RUSTC_BOOTSTRAP",
    "RUST_BACKTRACE",
    "RUST_LOG",
    "SHOW_CONTEXT",
    "USE_VALGRIND",
];

/// The words of the list, as src/pg/error/word.rs declares them.
fn listed() -> BTreeSet<String> {
    let (_, list) = files("src/pg/error", "rs")
        .into_iter()
        .find(|(path, _)| path.ends_with("/word.rs"))
        .expect("the list is there");
    list.split('"').skip(1).step_by(2).map(str::to_owned).collect()
}

/// The names in a text that are written as words are: capitals with underscores between them.
fn names_in_capitals(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').filter(|name| {
        name.trim_matches('_').contains('_')
            && name.starts_with(|c: char| c.is_ascii_uppercase())
            && name.bytes().all(|b| b.is_ascii_uppercase() || b == b'_')
    })
}

/// What stands in quotes, in a source without comments.
fn quoted(source: &str, quote: char) -> impl Iterator<Item = &str> {
    let code = source.lines().filter(|line| !line.trim_start().starts_with("//"));
    code.flat_map(move |line| line.split(quote).skip(1).step_by(2))
}

#[test]
fn a_word_is_in_the_list() {
    let listed = listed();
    assert!(listed.len() > 60, "{} words", listed.len());
    let known = |name: &str| listed.contains(name) || OTHER_NAMES.contains(&name);
    let mut used = BTreeSet::new();
    let mut faults = Vec::new();

    let rust: Vec<_> = ["src/api", "src/pg", "src/service"]
        .iter()
        .flat_map(|folder| files(folder, "rs"))
        .filter(|(path, _)| !path.ends_with("error/word.rs"))
        .collect();
    let variants: BTreeSet<_> = rust
        .iter()
        .flat_map(|(_, source)| source.split("Word::").skip(1))
        .map(|rest| rest.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default())
        .collect();
    for word in &listed {
        let lower = word.to_lowercase();
        let variant: String =
            lower.split('_').map(|part| part[..1].to_uppercase() + &part[1..]).collect();
        if variants.contains(variant.as_str()) {
            used.insert(word.clone());
        }
    }
    for (path, source) in &rust {
        for name in quoted(source, '"').filter(|text| names_in_capitals(text).eq([*text])) {
            if !known(name) {
                faults.push(format!("{path}: {name}"));
            }
        }
    }
    for (path, script) in files("sql", "sql") {
        let details = script.split("DETAIL = '").skip(1).filter_map(|rest| rest.split('\'').next());
        for name in
            details.chain(quoted(&script, '\'').filter(|text| names_in_capitals(text).eq([*text])))
        {
            used.insert(name.to_owned());
            if !known(name) {
                faults.push(format!("{path}: {name}"));
            }
        }
    }
    let pages = files("docs", "md");
    let reference = pages.iter().find(|(path, _)| path == "docs/reference.md").unwrap();
    for (path, page) in &pages {
        for name in names_in_capitals(page).filter(|name| !known(name)) {
            faults.push(format!("{path}: {name}"));
        }
    }
    for word in &listed {
        if !used.contains(word) {
            faults.push(format!("{word} is used nowhere"));
        }
        if !reference.1.contains(word.as_str()) {
            faults.push(format!("{word} is not in the reference"));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
