//! The free texts of an export cannot change the structure of its drawing.

use kernel::export::document::Export;
use kernel::export::parse::ParsedExport;
use kernel::graph::edge::{Edge, EdgeType};
use kernel::insight::draw::{dot, mermaid};
use kernel::policy::SlicePolicy;
use kernel::slicing::slice::{SelectedTurn, Slice};
use proptest::prelude::*;
use proptest::sample::select;

use crate::cases;
use crate::generate::{id, turn};

/// Two turns and an edge, with these free texts.
fn export(session: &str, policy_id: &str) -> ParsedExport {
    let selected = |number: usize, session: &str| {
        let mut turn = turn(number, 1);
        // An export has no NUL: PostgreSQL could not store it.
        turn.session_id = session.replace('\0', "");
        SelectedTurn {
            turn: turn.into(),
            distance: 0,
            priority: 1.0,
            tokens: 0,
            selection_order: number as u32,
        }
    };
    let mut turns = vec![selected(1, session), selected(2, "")];
    turns.sort_by_key(|selected| selected.turn.id);
    let edges = vec![Edge { parent: id(1), child: id(2), edge_type: EdgeType::Reference }];
    let slice = Slice { anchor: id(1), turns, edges };
    let text = Export::new(&slice, &SlicePolicy::default(), &|| {}).to_json();
    let mut export = ParsedExport::parse_whole(&text, &|| {}).unwrap();
    export.policy_id = policy_id.to_owned();
    export
}

fn hostile() -> impl Strategy<Value = String> {
    let piece = select(vec![
        "\"",
        "\\",
        "\\\"",
        "\\n",
        "\n",
        "\r\n",
        "\u{2028}",
        "\u{202e}",
        "]",
        ")",
        "}",
        "}}",
        ";",
        "%%",
        "%%{init: {'securityLevel':'loose'}}%%",
        "---",
        "-->",
        "<b>",
        "<",
        ">",
        "<script>",
        "&",
        "&quot;",
        "#quot;",
        "#35;",
        "`",
        "click n0 call x()",
        "end",
        "subgraph",
        "\\l",
        "\\G",
        "URL=\"javascript:x\"",
        "]; x -> y",
        "style a:b",
        "a",
        "é",
        "😀",
        " ",
        ":::",
        "\t",
    ]);
    prop_oneof![
        prop::collection::vec(piece, 0..8).prop_map(|pieces| pieces.concat()),
        any::<String>(),
    ]
}

/// The text with each quoted string emptied, as Graphviz reads strings.
fn without_dot_strings(text: &str) -> String {
    let (mut kept, mut characters, mut quoted) = (String::new(), text.chars(), false);
    while let Some(character) = characters.next() {
        match character {
            '"' => quoted = !quoted,
            '\\' if quoted => drop(characters.next()),
            c if !quoted => kept.push(c),
            _ => {}
        }
    }
    assert!(!quoted, "a string is not closed: {text}");
    kept
}

/// The quoted parts of a Mermaid text, and the rest.
fn mermaid_strings(text: &str) -> (Vec<&str>, String) {
    let parts: Vec<&str> = text.split('"').collect();
    assert_eq!(parts.len() % 2, 1, "a string is not closed: {text}");
    let strings = parts.iter().skip(1).step_by(2).copied().collect();
    (strings, parts.iter().step_by(2).copied().collect())
}

proptest! {
    #![proptest_config(cases(4000))]

    #[test]
    fn no_text_gets_out_of_a_label_of_graphviz(session in hostile(), policy in hostile()) {
        let drawn = dot(&export(&session, &policy), &|| {});
        let plain = dot(&export("s", "p"), &|| {});
        prop_assert_eq!(without_dot_strings(&drawn), without_dot_strings(&plain));
        prop_assert!(drawn.lines().count() == plain.lines().count());
        prop_assert!(drawn.chars().all(|c| c == '\n' || !c.is_control()));
    }

    #[test]
    fn no_text_gets_out_of_a_label_of_mermaid(session in hostile(), policy in hostile()) {
        let (drawn, plain) = (export(&session, &policy), export("s", "p"));
        let (drawn, plain) = (mermaid(&drawn, &|| {}), mermaid(&plain, &|| {}));
        let (strings, rest) = mermaid_strings(&drawn);
        prop_assert_eq!(rest, mermaid_strings(&plain).1);
        for string in strings {
            for part in string.split("<br/>") {
                let is_plain = |c: char| c.is_alphanumeric() || " .,_-#;".contains(c);
                prop_assert!(part.chars().all(is_plain), "{}", part);
                // # and ; stand only around the digits of an entity.
                for entity in part.split('#').skip(1) {
                    let (digits, text) = entity.split_once(';').unwrap();
                    prop_assert!(digits.parse::<u32>().is_ok_and(|code| char::from_u32(code).is_some()));
                    prop_assert!(!text.contains(';'));
                }
            }
        }
    }
}
