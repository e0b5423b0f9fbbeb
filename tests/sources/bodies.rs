//! What bodies of functions that are parsed when they run may do: code of users' may have changed the settings by which
//! they are parsed.

use super::files;

/// The functions of sql/*.sql whose bodies run statements that they have made. Those that read users' rows do so at
/// their end, as nothing may be parsed after it; the others make tables, or look at locks.
const RUN_MADE_STATEMENTS: &[&str] = &[
    "backfill_content_hashes",
    "content_hash_trigger_internal",
    "create_tables_internal",
    "make_recorder_table",
    "make_slice_store",
    "make_trace_table",
    "refresh_kept",
    "verify_chunks",
];

/// The functions of a script, each with its header and its body.
fn functions(script: &str) -> Vec<(String, String, String)> {
    let starts: Vec<usize> = ["CREATE FUNCTION ", "CREATE PROCEDURE ", "\nDO "]
        .iter()
        .flat_map(|word| script.match_indices(word).map(|(at, _)| at))
        .collect();
    let end = |start: usize| starts.iter().copied().filter(|at| *at > start).min();
    let functions = starts.iter().filter(|start| script[**start..].starts_with("CREATE"));
    let parts = functions.filter_map(|start| {
        let text = &script[*start..end(*start).unwrap_or(script.len())];
        let mut parts = text.split("$$");
        let (header, body) = (parts.next()?, parts.next()?);
        let name = header.split_whitespace().nth(2)?.split('(').next()?.rsplit('.').next()?;
        Some((name.to_owned(), header.to_owned(), body.to_owned()))
    });
    parts.collect()
}

#[test]
fn bodies_that_run_made_statements_are_known() {
    let mut found = Vec::new();
    for (_, script) in files("sql", "sql") {
        for (name, _, body) in functions(&script) {
            let runs = body.match_indices("EXECUTE ").any(|(at, word)| {
                let is_other = ["FUNCTION", "ON ", "decides"];
                !is_other.iter().any(|other| body[at + word.len()..].starts_with(other))
            });
            if runs {
                found.push(name);
            }
        }
    }
    found.sort();
    assert_eq!(found, RUN_MADE_STATEMENTS);
}

/// Without a SET clause a body is parsed by the search_path of whoever calls: there each type is one of the grammar's
/// words, or is named with its schema.
#[test]
fn bodies_without_a_path_name_no_type_by_the_path() {
    const WORDS: [&str; 6] =
        ["bigint", "boolean", "double precision", "integer", "pg_catalog.", "timestamp with"];
    let mut seen = 0;
    for (path, script) in files("sql", "sql") {
        for (name, header, body) in functions(&script) {
            if !header.contains("LANGUAGE plpgsql") || header.contains("SET search_path") {
                continue;
            }
            seen += 1;
            let declared = body.split("DECLARE").nth(1).and_then(|rest| rest.split("BEGIN").next());
            for line in declared.unwrap_or_default().lines() {
                let is_declaration = line.starts_with("    ") && !line.starts_with("     ");
                let words = line.trim().replacen(" CONSTANT", "", 1);
                let Some((_, of_type)) = words.split_once(' ').filter(|_| is_declaration) else {
                    continue;
                };
                let is_known =
                    words.starts_with('$') || WORDS.iter().any(|word| of_type.starts_with(word));
                assert!(is_known, "{path}: {name} declares {words}");
            }
        }
    }
    assert_eq!(seen, 2, "backfill_content_hashes and refresh_kept are the only ones");
}

/// The literals of a script or a statement that mean something else where `standard_conforming_strings` is off: those
/// with a backslash that are no escape strings.
fn literals_by_setting(script: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = script;
    while let Some(at) = rest.find(['\'', '-']) {
        let behind = &rest[at..];
        if behind.starts_with('-') {
            let comment = behind.starts_with("--");
            let end = if comment { behind.find('\n').unwrap_or(behind.len()) } else { 1 };
            rest = &behind[end..];
            continue;
        }
        let is_escaped = rest[..at].ends_with('E');
        let mut chars = behind.char_indices().skip(1).peekable();
        let mut end = behind.len();
        while let Some((place, c)) = chars.next() {
            if c == '\\' && is_escaped
                || c == '\'' && chars.peek().is_some_and(|next| next.1 == '\'')
            {
                chars.next();
            } else if c == '\'' {
                end = place + 1;
                break;
            }
        }
        if !is_escaped && behind[..end].contains('\\') {
            found.push(behind[..end].to_owned());
        }
        rest = &behind[end..];
    }
    found
}

#[test]
fn literals_do_not_depend_on_a_setting() {
    for (path, script) in files("sql", "sql").into_iter().chain(files("sql/queries", "sql")) {
        let found = literals_by_setting(&script);
        assert!(found.is_empty(), "{path}: {found:?}");
    }
    let planted =
        "-- it's '\\'\nSELECT 'a''b', E'\\'' , 'c - d' FROM t WHERE x ~ '\\d' AND y = 'z';";
    assert_eq!(literals_by_setting(planted), ["'\\d'"]);
}
