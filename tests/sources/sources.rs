//! What the sources must not say. A value of type text can hold any bytes, and pgrx makes a `&str` of it unchecked: so
//! what comes from the server as text is read in src/pg/text.rs alone, which checks or replaces.

mod bodies;
mod callbacks;
mod hints;
mod layers;
mod lines;
mod words;

use std::fs;
use std::path::{Path, PathBuf};

/// Where texts are read and made.
const TEXTS: &str = "src/pg/text.rs";

/// The types that the signature of a SQL function is made of.
const IN_SIGNATURES: &[&str] = &[
    "&", // of u8 alone, as str and CStr are not here
    "Array",
    "CString",
    "CStringArg",
    "ChunkPolicy",
    "Internal",
    "JsonArg",
    "JsonText",
    "JsonbText",
    "TimestampWithTimeZone",
    "Oid",
    "Option",
    "Policy",
    "StoredJsonb",
    "StoredText",
    "TableIterator",
    "Text",
    "TextArg",
    "TextBytes",
    "TextOrStored",
    "Name",
    "TriggerCall",
    "FunctionCall",
    "Uuid",
    "VariadicArray",
    "Vec",
    "FunctionCall",
    "FunctionCallInfo",
    "bool",
    "f32",
    "f64",
    "i32",
    "i64",
    "u8",
    "pg_sys",
    "pgrx",
];

/// What text of the server must not be read or made with, and why.
const FORBIDDEN: &[(&str, &str)] = &[
    ("from_utf8", "use checked or replaced of pg::text"),
    (".to_str(", "use checked or replaced of pg::text"),
    (".into_string(", "use checked or replaced of pg::text"),
    ("to_string_lossy", "use checked or replaced of pg::text"),
    ("name_data_to_str", "use checked or replaced of pg::text"),
    ("text_to_rust_str", "use TextArg or StoredText"),
    ("varlena_to_byte_slice", "use TextArg or StoredText"),
    ("vardata_any", "use TextArg or StoredText"),
    ("varsize_any", "use TextArg or StoredText"),
    ("text_to_cstring", "use TextArg or StoredText"),
    ("JsonString", "use JsonArg"),
    ("JsonB", "use JsonbText"),
    ("pgrx::Json", "use JsonArg and JsonText"),
    ("Array<&", "use Array<TextArg>"),
    ("Array<String", "use Array<TextArg>"),
    ("PgHeapTuple", "use Row or PrivateRow"),
    ("PgTrigger", "its arguments are not checked"),
    ("heap_getattr(", "use Row or PrivateRow"),
    ("direct_function_call::<&str", "use TextArg"),
    ("direct_function_call::<String", "use TextArg"),
    ("impl UnboxDatum", "arguments are made in pg::sql"),
];

/// The types that a datum is read as: none of them is an unchecked text.
const FROM_DATUM: &[&str] = &["pg_sys::Oid", "Array::<Uuid>", "Policy", "T", "TextArg", "Uuid"];

/// What becomes a datum: none of them is a text, whose length is checked by `text_datum` alone.
const INTO_DATUM: &[&str] =
    &["to_sql_uuid(id)", "epoch", "created_at", "value", "self", "root", "this_database()"];

/// Functions of the server that raise where a value ends within a character.
const RAISING: &[&str] = &[
    "btrim",
    "char_length",
    "character_length",
    "initcap",
    "left",
    "length",
    "lower",
    "lpad",
    "ltrim",
    "overlay",
    "position",
    "regexp_replace",
    "reverse",
    "right",
    "rpad",
    "rtrim",
    "split_part",
    "strpos",
    "substr",
    "substring",
    "translate",
    "upper",
];

/// A source without comments and with each run of white space as one blank. Characters within quotes stay.
fn code(source: &str) -> String {
    let lines = source.lines().map(|line| match line.find("//") {
        Some(start) if !line[..start].ends_with([':', '"']) => &line[..start],
        _ => line,
    });
    lines.flat_map(str::split_whitespace).collect::<Vec<_>>().join(" ")
}

/// The text from an opening bracket to the one that closes it, both without.
fn bracketed(code: &str, open: char, close: char) -> &str {
    let mut depth = 0;
    for (at, c) in code.char_indices() {
        if c == open {
            depth += 1;
        } else if c == close {
            depth -= 1;
            if depth == 0 {
                return &code[1..at];
            }
        }
    }
    panic!("a bracket is not closed in {}", &code[..code.len().min(80)]);
}

/// The signatures of SQL functions: those marked as such, and those in a call of a macro that marks them.
fn signatures(code: &str) -> Vec<&str> {
    let mut found = Vec::new();
    for (at, _) in code.match_indices("#[pg_extern") {
        let function = &code[at + code[at..].find(" fn ").map_or(0, |fn_at| fn_at + 4)..];
        if !function.starts_with('$') {
            let end = function.find(" {").unwrap_or(function.len());
            found.push(&function[..end]);
        }
    }
    for (at, _) in code.match_indices("macro_rules! ") {
        let name = code[at..].split(' ').nth(1).unwrap_or_default();
        let body = &code[at + code[at..].find('{').unwrap_or(0)..];
        if !bracketed(body, '{', '}').contains("#[pg_extern") {
            continue;
        }
        for (call, _) in code.match_indices(&format!("{name}! {{")) {
            let body = bracketed(&code[call + name.len() + 2..], '{', '}');
            let functions =
                body.match_indices("fn ").filter(|(at, _)| *at == 0 || body[..*at].ends_with(' '));
            let rows = &body[body.find('(').unwrap_or(0)..];
            found.push(bracketed(rows, '(', ')'));
            for (at, _) in functions {
                let arguments = &body[at + body[at..].find('(').unwrap_or(0)..];
                found.push(bracketed(arguments, '(', ')'));
            }
        }
    }
    found
}

/// The types in a signature: what follows a colon, the name of a column, an arrow or an angle bracket.
fn types(signature: &str) -> Vec<String> {
    let mut text = signature.to_owned();
    // Names of arguments, of columns, defaults and a result of fixed words.
    text = text.replace("&'static str", "").replace("'static", "").replace("'_", "");
    let mut left = String::new();
    let mut quoted = false;
    for c in text.chars() {
        if c == '"' {
            quoted = !quoted;
        } else if !quoted {
            left.push(c);
        }
    }
    let words: Vec<&str> = left
        .split(|c: char| !(c.is_alphanumeric() || "_&:!".contains(c)))
        .filter(|word| !word.is_empty())
        .collect();
    let mut types = Vec::new();
    let name_end = signature.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(0);
    let mut skip = signature[name_end..].starts_with('(') && name_end > 0;
    for (n, word) in words.iter().enumerate() {
        if skip {
            // The name of the function.
            skip = false;
            continue;
        }
        let is_name = word.ends_with(':') || n > 0 && words[n - 1] == "name!";
        let is_default = matches!(*word, "default!" | "name!" | "NULL" | "false" | "true" | "mut")
            || word.chars().all(|c| c.is_ascii_digit());
        if !is_name && !is_default {
            types.extend(word.split("::").map(str::to_owned).filter(|part| !part.is_empty()));
        }
    }
    types
}

/// What a file of Rust says that it must not.
fn faults(path: &str, source: &str) -> Vec<String> {
    let code = code(source);
    let mut faults = Vec::new();
    for signature in signatures(&code) {
        for part in types(signature) {
            if !IN_SIGNATURES.contains(&part.as_str()) {
                faults.push(format!("{path}: {part} in the signature {signature}"));
            }
        }
    }
    if path == TEXTS {
        return faults;
    }
    // Parts of statements.
    faults.extend(statement_faults(path, &code.replace("\\\"", "\"")));
    // It is read as any jsonb is, by its text, which is checked.
    let others = code.replace("impl UnboxDatum for JsonbText", "");
    for (word, instead) in FORBIDDEN {
        if others.contains(word) {
            faults.push(format!("{path}: {word}: {instead}"));
        }
    }
    let receiver = |at: usize| {
        let before = &code[..at];
        let mut depth = 0;
        let start = before
            .char_indices()
            .rev()
            .find(|(_, c)| {
                depth += i32::from(*c == ')') - i32::from(*c == '(');
                depth < 0 || depth == 0 && !(c.is_alphanumeric() || "_:&<>.()".contains(*c))
            })
            .map_or(0, |(start, c)| start + c.len_utf8());
        before[start..].to_owned()
    };
    for (at, _) in code.match_indices("::from_datum(") {
        let read = receiver(at);
        if !FROM_DATUM.contains(&read.as_str()) {
            faults.push(format!("{path}: {read}::from_datum"));
        }
    }
    for (at, what) in
        code.match_indices("into_datum").filter(|(at, _)| !code[..*at].ends_with("fn "))
    {
        let made = receiver(at);
        let made = made.trim_end_matches('.');
        if !INTO_DATUM.contains(&made) {
            faults.push(format!("{path}: {made}.{what}"));
        }
    }
    faults
}

/// What a statement says that it must not.
fn statement_faults(path: &str, statement: &str) -> Vec<String> {
    let lines: Vec<&str> =
        statement.lines().filter(|line| !line.trim_start().starts_with("--")).collect();
    let statement = lines.join(" ").to_lowercase();
    let mut faults = Vec::new();
    for function in RAISING {
        for (at, _) in statement.match_indices(&format!("pg_catalog.{function}(")) {
            let arguments = bracketed(&statement[at + 11 + function.len()..], '(', ')');
            // In this collation it looks at bytes.
            if !(*function == "lower" && arguments.ends_with(r#"collate pg_catalog."c""#)) {
                faults.push(format!(
                    "{path}: {function} raises where a value ends within a character"
                ));
            }
        }
    }
    faults
}

/// The files below a folder of the repository that have this ending, and what is in them.
fn files(folder: &str, ending: &str) -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut found = Vec::new();
    let mut folders: Vec<PathBuf> = vec![root.join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == ending) {
                let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
                found.push((name, fs::read_to_string(path).unwrap()));
            }
        }
    }
    found
}

#[test]
fn text_of_the_server_is_checked_wherever_it_is_read() {
    let sources: Vec<_> = ["src/api", "src/pg", "src/service"]
        .iter()
        .flat_map(|folder| files(folder, "rs"))
        .collect();
    assert!(sources.len() > 50, "{} files", sources.len());
    let signatures: usize = sources.iter().map(|(_, source)| signatures(&code(source)).len()).sum();
    assert!(signatures > 80, "{signatures} signatures");
    let faults: Vec<String> =
        sources.iter().flat_map(|(path, source)| faults(path, source)).collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn statements_take_any_bytes() {
    let statements = files("sql/queries", "sql");
    assert!(statements.len() > 30, "{} statements", statements.len());
    let faults: Vec<String> =
        statements.iter().flat_map(|(path, statement)| statement_faults(path, statement)).collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// Functions of the scripts that check what they look at otherwise than by `is_text`, or look at text that is ASCII.
const CHECKED_OTHERWISE: &[&str] = &[
    "graph_kernel.check_request(",       // an EXCEPTION block
    "graph_kernel.promoting_triggers(",  // encoded
    "graph_kernel.check_graph(",         // within a hint
    "graph_kernel.check_promotion(",     // texts of jsonb
    "graph_kernel.revoke_key_internal(", // is_kid
    "graph_kernel.rotate_key_internal(", // ids that list_keys gives
    "@extschema@.graph_check(",          // text_prefix
    "graph_kernel.references(",          // text_prefix
];

/// Functions of a script that use what raises on bytes that are not text, and do not check.
fn script_faults(path: &str, script: &str) -> Vec<String> {
    let mut faults = Vec::new();
    for function in script.split("\nCREATE FUNCTION ").skip(1) {
        let end = function.find("\n$$;").or(function.find("\nEND;")).unwrap_or(function.len());
        let (body, name) = (&function[..end], &function[..=function.find('(').unwrap_or(0)]);
        let raises = RAISING.iter().find(|word| {
            body.match_indices(&format!("{word}(")).any(|(at, _)| {
                !body[..at].ends_with(|c: char| c.is_alphanumeric() || "_.".contains(c))
            })
        });
        if let Some(word) = raises
            && !body.contains("graph_kernel.is_text(")
            && !CHECKED_OTHERWISE.contains(&name)
        {
            faults.push(format!("{path}: {name} uses {word} without is_text"));
        }
    }
    faults
}

#[test]
fn functions_of_scripts_check_text() {
    let scripts = files("sql", "sql");
    let faults: Vec<String> =
        scripts.iter().flat_map(|(path, script)| script_faults(path, script)).collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    let planted = "\nCREATE FUNCTION graph_kernel.f(x text) RETURNS text\nRETURN left(x, 3);\n$$;";
    assert_eq!(script_faults("planted", planted).len(), 1);
}

/// Statements find `=` by the name of its schema: IS DISTINCT FROM looks along the search path.
#[test]
fn statements_compare_by_qualified_operators() {
    for (path, statement) in files("sql/queries", "sql") {
        assert!(!statement.contains("DISTINCT FROM"), "{path}");
    }
}

#[test]
fn what_is_planted_is_found() {
    let planted = [
        // Arguments and results.
        "#[pg_extern(stable)]\nfn f(id: &str) -> bool {",
        "#[pg_extern]\nfn f(id: default!(Option<&str>, \"NULL\")) -> bool {",
        "#[pg_extern]\nfn f(id: String) -> bool {",
        "#[pg_extern]\nfn f(id: TextArg) -> String {",
        "#[pg_extern]\nfn f(id: TextArg) -> Option<String> {",
        "#[pg_extern]\nfn f(ids: Array<&str>) -> bool {",
        "#[pg_extern]\nfn f(ids: VariadicArray<String>) -> bool {",
        "#[pg_extern]\nfn f(ids: Vec<String>) -> bool {",
        "#[pg_extern]\nfn f(ids: Vec<Option<&str>>) -> bool {",
        "#[pg_extern]\nfn f(slice: pgrx::Json) -> bool {",
        "#[pg_extern]\nfn f(slice: JsonB) -> bool {",
        "#[pg_extern]\nfn f(text: &CStr) -> bool {",
        "#[pg_extern]\nfn f(text: Cow<'_, str>) -> bool {",
        "#[pg_extern]\nfn f() -> TableIterator<'static, (name!(id, i32), name!(field, Option<String>))> {",
        "#[pg_extern(sql = false)]\n#[allow(clippy::type_complexity)] // why\nfn f() -> TableIterator<'static, \
        (name!(kid, String),)>\n{",
        "macro_rules! m_functions { ($row:tt $(fn $name:ident $arguments:tt $body:block)*) => { $( #[pg_extern] fn \
        $name $arguments -> $row $body )* }; }\n\
         m_functions! { ( name!(rank, i32), name!(id, String), ) fn f(id: TextArg) { true } }",
        "macro_rules! m_functions { ($row:tt $(fn $name:ident $arguments:tt $body:block)*) => { $( #[pg_extern] fn \
        $name $arguments -> $row $body )* }; }\n\
         m_functions! { ( name!(rank, i32), ) fn f(id: TextArg) { true } fn g(id: Option<&str>) { true } }",
        // Strings of the server.
        "let name = unsafe { CStr::from_ptr(name) }.to_str().unwrap();",
        "let name = unsafe { CStr::from_ptr(name) }\n    .to_str()\n    .expect(\"it is UTF-8\");",
        "let name = unsafe { CStr::from_ptr(name) }.to_string_lossy();",
        "let name = unsafe { std::str::from_utf8_unchecked(bytes) };",
        "let name = unsafe { String::from_utf8_unchecked(bytes) };",
        "let path = GRAPH.get().unwrap().into_string().unwrap();",
        // Rows and the catalog.
        "let text = unsafe { <&str>::from_datum(datum, false) };",
        "let text = unsafe { String::from_datum(datum, is_null) };",
        "let text = unsafe { <String as FromDatum>::from_datum(datum, is_null) };",
        "let text: Option<String> = unsafe { FromDatum::from_datum(datum, is_null) };",
        "let json = unsafe { JsonB::from_datum(datum, is_null) };",
        "let text = unsafe { pgrx::text_to_rust_str_unchecked(varlena) };",
        "let bytes = unsafe { pgrx::varlena_to_byte_slice(varlena) };",
        "let name = name_data_to_str(&(*class).relname);",
        "let text: Option<String> = tuple.get_by_name::<String>(\"x\").unwrap(); let t: PgHeapTuple<_> = tuple;",
        "let text = pgrx::direct_function_call::<&str>(pg_sys::textout, &[Some(datum)]);",
        // Texts that become values.
        "let datum = text.into_datum();",
        "Argument::Text(text) => text.and_then(IntoDatum::into_datum),",
        "let datum = export.to_string().into_datum();",
        // A part of a statement.
        r#"let shown = format!("pg_catalog.left({text}, 64)");"#,
    ];
    for source in planted {
        assert!(!faults("src/api/planted.rs", source).is_empty(), "not found: {source}");
    }
    for statement in [
        "SELECT pg_catalog.left({t.content_text}, $1) FROM {turns} AS t",
        "SELECT pg_catalog.lower({t.role}) FROM {turns} AS t",
        "SELECT pg_catalog.sum(pg_catalog.length(t.content)) FROM t",
    ] {
        assert!(!statement_faults("planted.sql", statement).is_empty(), "not found: {statement}");
    }
    let fine = "#[pg_extern(stable)]\n#[allow(clippy::type_complexity)] // the columns\nfn graph_anchor(\n    \
        turn_id: default!(Option<Uuid>, \"NULL\"), session_id: default!(Option<TextArg>, \
        \"NULL\"),\n) -> TableIterator<'static, (name!(id, Uuid), name!(strategy, &'static str))> {";
    assert_eq!(faults("src/api/fine.rs", fine), Vec::<String>::new());
}
