//! What the server calls back is not called from Rust.
//!
//! A function with `#[pg_guard]` turns a panic into an error of the server, which jumps to whoever catches it. Where
//! Rust has called the function, that is over frames whose values are never dropped.

use crate::files;

/// The functions of a text that the server calls back and that the text calls too.
fn called_back_and_called(text: &str) -> Vec<&str> {
    let names = text.split("#[pg_guard]").skip(1).filter_map(|behind| {
        let (_, function) = behind.split_once("fn ")?;
        function.split_once(['(', '<']).map(|(name, _)| name)
    });
    names.filter(|name| is_called(text, name)).collect()
}

fn is_called(text: &str, name: &str) -> bool {
    text.match_indices(&format!("{name}(")).any(|(place, _)| {
        let before = &text[..place];
        let is_part = before.ends_with(|c: char| c.is_alphanumeric() || "_.:".contains(c));
        !is_part && !before.ends_with("fn ")
    })
}

#[test]
fn what_is_called_back_is_not_called() {
    let (mut seen, mut faults) = (0, Vec::new());
    for (path, text) in files("src/pg", "rs") {
        seen += text.matches("#[pg_guard]").count();
        let called = called_back_and_called(&text);
        faults.extend(called.into_iter().map(|name| format!("{path}: {name}")));
    }
    assert!(seen > 20, "{seen} functions");
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn a_callback_that_is_called_is_found() {
    let callback = "#[pg_guard]\nunsafe extern \"C-unwind\" fn walk(node: *mut Node) -> bool {\n    visit(node)\n}\n";
    assert!(called_back_and_called(callback).is_empty());
    let passed = format!(
        "{callback}fn f() {{ walker(node, walk, context); sleepwalk(node); on.walk(node) }}"
    );
    assert!(called_back_and_called(&passed).is_empty());
    let called = format!("{callback}fn f() {{\n    unsafe {{ walk(node) }};\n}}");
    assert_eq!(called_back_and_called(&called), ["walk"]);
    let itself = callback.replace("visit(", "walk(");
    assert_eq!(called_back_and_called(&itself), ["walk"]);
}
