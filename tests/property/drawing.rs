//! What a drawing has, and that the free texts of an export cannot change its structure.

use graph_kernel_tests::data::Graph;
use graph_kernel_tests::memory_store::MemoryStore;
use kernel::drawing::Format;
use kernel::drawing::export::{dot, mermaid};
use kernel::drawing::slice::{Picture, drawn_turns};
use kernel::explain::explanation::explain;
use kernel::export::document::Export;
use kernel::export::parse::ParsedExport;
use kernel::graph::edge::{Edge, EdgeType};
use kernel::policy::SlicePolicy;
use kernel::slicing::slice::{Part, SelectedTurn, Slice};
use kernel::slicing::slicer::{Limits, slice};
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
            part: Part::Line,
            seed: None,
            micros: 0,
            tokens: 0,
            selection_order: number as u32,
        }
    };
    let mut turns = vec![selected(1, session), selected(2, "")];
    turns.sort_by_key(|selected| selected.turn.id);
    let edges = vec![Edge { parent: id(1), child: id(2), edge_type: EdgeType::Reference }];
    let slice = Slice { anchor: id(1), turns, edges, pins_left_out: Vec::new() };
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

/// Turns of all phases with edges of all types: a turn, its answer with two results of a tool, and two more.
fn varied() -> Graph {
    let scores = [0, 2, 4, 6, 7, 5];
    let turns = [0, 1, 2, 5, 3, 4].into_iter().zip(scores);
    let edges = [
        (0, 1, EdgeType::Reply),
        (1, 2, EdgeType::Default),
        (1, 5, EdgeType::Reply),
        (3, 0, EdgeType::Reference),
        (0, 4, EdgeType::Branch),
    ];
    Graph {
        turns: turns.map(|(number, score)| turn(number, score)).collect(),
        edges: edges
            .map(|(parent, child, edge_type)| Edge {
                parent: id(parent),
                child: id(child),
                edge_type,
            })
            .to_vec(),
    }
}

/// A line of a text for each of these, in this order.
fn check_lines(text: &str, expected: &[&str]) {
    let lines: Vec<&str> = text.lines().map(str::trim_start).collect();
    let found: Vec<&str> = lines.iter().filter(|line| expected.contains(line)).copied().collect();
    assert_eq!(found, expected, "{text}");
}

/// A picture of the slice at turn 0, of so many of its turns and with its frontier, and how many lines it has.
fn picture(max_nodes: usize, most: usize, format: Format) -> (String, usize) {
    let mut store = MemoryStore::new(varied());
    let policy = format!(r#"{{"max_nodes":{max_nodes}}}"#).parse().unwrap();
    let slice = slice(&mut store, &policy, id(0)).unwrap();
    let explanation = explain(&mut store, &policy, id(0), Limits::default(), &|| {}).unwrap();
    let drawn = drawn_turns(&slice, most);
    let text = |of| if of == id(1) { "\"hi\"".to_owned() } else { String::new() };
    let picture = Picture::new(&slice, &policy, &drawn, Some(&explanation), text);
    let text = picture.text(id(0), format);
    let lines = text.lines().count();
    (text, lines)
}

#[test]
fn a_picture_has_the_turns_as_selected_calls_in_frames_and_all_edges() {
    let (text, lines) = picture(6, 6, Format::Mermaid);
    let expected = [
        "flowchart TB",
        r#"subgraph slice["6 turns, 5 edges<br/>at most 6 turns, 10 hops, 5 siblings of each turn"]"#,
        r#"subgraph calls0[" "]"#,
        r#"n2("2 assistant<br/>#34;hi#34;<br/>distance 1"):::planning"#,
        r#"n3("3 tool<br/>distance 2"):::synthesis"#,
        r#"n5("5 tool<br/>distance 2"):::debugging"#,
        "end",
        r#"n0{{"0 user<br/>distance 0"}}:::exploration"#,
        r#"n1("1 assistant<br/>distance 1"):::synthesis"#,
        r#"n4("4 user<br/>distance 1"):::consolidation"#,
        "end",
        "n0 ==> n1",
        "n0 --> n2",
        "n2 --> n5",
        "n2 --o n3",
        "n4 -.-> n0",
    ];
    check_lines(&text, &expected);
    // Colours of five phases and of the frontier, and a frame.
    assert_eq!(lines, expected.len() + 7);
    let (text, lines) = picture(6, 6, Format::Dot);
    let expected = [
        "n0 -> n1 [style=bold, arrowhead=empty];",
        "n0 -> n2;",
        "n2 -> n5;",
        "n2 -> n3 [style=dotted];",
        "n4 -> n0 [style=dashed];",
        "}",
    ];
    check_lines(&text, &expected);
    // Four lines before the turns, six turns, and a frame.
    assert_eq!(lines, expected.len() + 11);
    let framed: Vec<&str> = text.lines().filter(|line| line.contains("class=\"calls\"")).collect();
    assert!(framed.len() == 1 && framed[0].ends_with("; n2; n3; n5; }"), "{text}");
    let anchors: Vec<&str> = text.lines().filter(|line| line.contains("peripheries")).collect();
    assert!(
        anchors.len() == 1 && anchors[0].contains(r#"n0 [label="0 user\ndistance 0""#),
        "{text}"
    );
}

#[test]
fn a_picture_has_the_frontier_and_says_how_many_turns_it_leaves_out() {
    let next = r#"("next<br/>distance"#;
    let (text, lines) = picture(3, 3, Format::Mermaid);
    let arrows = ["n0 ==> n1", "n0 --> n2", "n2 -.- n3", "n4 -.- n0", "n2 -.- n5"];
    check_lines(&text, &arrows);
    assert_eq!(text.lines().filter(|line| line.contains(next)).count(), 3, "{text}");
    // Two lines before and one after the turns, six of them, and colours of three phases and of the frontier.
    assert_eq!(lines, arrows.len() + 13, "{text}");
    let left_out = r#"more("and 1 turn more"):::next"#;
    assert!(!text.contains("more("), "{text}");
    check_lines(&picture(3, 2, Format::Mermaid).0, &[left_out, "n0 ==> n1", "n3 -.- n0"]);
    assert!(
        picture(4, 2, Format::Dot).0.contains(r#"more [label="and 2 turns more", class="next""#)
    );
    let dot = picture(3, 3, Format::Dot).0;
    assert!(dot.contains("n4 -> n0 [style=dashed, color=\"#c3cad2\", arrowhead=none];"), "{dot}");
}

#[test]
fn a_drawing_of_an_export_has_all_its_turns_and_edges() {
    let (policy, mut store) = (SlicePolicy::default(), MemoryStore::new(varied()));
    let slice = slice(&mut store, &policy, id(0)).unwrap();
    let text = Export::new(&slice, &policy, &|| {}).to_json();
    let mut export = ParsedExport::parse_whole(&text, &|| {}).unwrap();
    export.turns[1].salience = 1.0;
    export.turns[2].salience = 0.0;
    let text = mermaid(&export, &|| {});
    let expected = [
        r#"n0{{"user 00000000<br/>exploration 0.5"}}:::exploration"#,
        r#"n1("tool 10000000<br/>debugging 1<br/>q#34;uote"):::debugging"#,
        r#"n2("tool 30000000<br/>synthesis 0<br/>q#34;uote"):::synthesis"#,
        r#"n3("assistant 70000000<br/>synthesis 0.5<br/>s#124;2"):::synthesis"#,
        r#"n4("assistant 90000000<br/>planning 0.5<br/>s#124;2"):::planning"#,
        r#"n5("user d0000000<br/>consolidation 0.5"):::consolidation"#,
        "end",
        "n0 ==> n3",
        "n0 --> n4",
        "n4 --> n1",
        "n4 --o n2",
        "n5 -.-> n0",
        "class n2 size9",
        "class n0,n3,n4,n5 size12",
        "class n1 size18",
    ];
    check_lines(&text, &expected);
    assert!(
        text.contains(", turns 6, edges 5<br/>slice_policy_v1 02005444cae1117d, default\""),
        "{text}"
    );
    let text = dot(&export, &|| {});
    let ids = [0, 1, 2, 3, 4, 5].map(id);
    let edge = |parent: usize, child: usize, style: &str| {
        format!("\"{}\" -> \"{}\"{style};", ids[parent], ids[child])
    };
    let mut edges = vec![
        edge(0, 4, " [style=bold, arrowhead=empty]"),
        edge(0, 1, ""),
        edge(1, 5, ""),
        edge(1, 2, " [style=dotted]"),
        edge(3, 0, " [style=dashed]"),
    ];
    edges.push("}".to_owned());
    check_lines(&text, &edges.iter().map(String::as_str).collect::<Vec<_>>());
    for (turn, size, border) in [
        (&export.turns[0], "13.5", ", penwidth=2, peripheries=2"),
        (&export.turns[1], "18.0", ""),
        (&export.turns[2], "9.0", ""),
    ] {
        let start = format!("  \"{}\" [label=", turn.id);
        let end = format!(", fontsize={size}{border}];");
        let drawn = text.lines().find(|line| line.starts_with(&start)).unwrap();
        assert!(drawn.ends_with(&end), "{drawn}");
    }
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
