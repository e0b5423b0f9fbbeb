//! Lines have up to 120 characters.

use crate::files;

/// The longest line, in characters.
const LONGEST: usize = 120;

/// Files whose lines are what they are: data, and what PostgreSQL's test programs print again.
const AS_THEY_ARE: [&str; 8] = [
    "sql/install/",
    "sql/sample/",
    "tests/bench/retrieval.sql", // a command of psql is one line
    "tests/golden/data/",
    "tests/isolation/",
    "tests/regress/",
    "tests/server/applications/", // shown in pages
    "tests/upgrade/documents/",
];

/// Whether a line is too long. One that is a single word, such as a text of JSON, cannot be broken.
fn is_too_long(line: &str) -> bool {
    line.chars().count() > LONGEST && line.trim_end_matches([',', ';', '\\']).trim().contains(' ')
}

#[test]
fn lines_are_short() {
    let mut seen = 0;
    let mut faults = Vec::new();
    for folder in ["packaging", "sql", "src", "tests"] {
        for ending in ["awk", "rs", "sh", "sql"] {
            for (path, text) in files(folder, ending) {
                if AS_THEY_ARE.iter().any(|folder| path.starts_with(folder)) {
                    continue;
                }
                seen += 1;
                for (number, line) in text.lines().enumerate() {
                    if is_too_long(line) {
                        faults.push(format!("{path}:{}", number + 1));
                    }
                }
            }
        }
    }
    assert!(seen > 300, "{seen} files");
    assert!(faults.is_empty(), "longer than {LONGEST}:\n{}", faults.join("\n"));
}

#[test]
fn a_line_that_can_be_broken_is_too_long() {
    let word = "x".repeat(LONGEST);
    assert!(!is_too_long(&word));
    assert!(!is_too_long(&format!("    {word}x,")));
    assert!(is_too_long(&format!("{word} x")));
    assert!(is_too_long(&format!("    {} 'x',", "é ".repeat(58))));
    assert!(!is_too_long(&"é".repeat(LONGEST)));
}
