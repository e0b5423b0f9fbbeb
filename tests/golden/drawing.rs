//! Graphviz draws the texts of an export as text, whatever they contain.

use std::io::Write;
use std::process::{Command, Stdio};

use graph_kernel_tests::shared::skip;
use kernel::drawing::export::dot;
use kernel::export::parse::ParsedExport;

const HOSTILE: [&str; 12] = [
    r#""]; x -> y; ""#,
    r"\",
    r#"\""#,
    r"\N\G\L\l",
    "<b>bold</b>",
    "<script>",
    "&quot;&#65;",
    "a\nb\u{2028}c",
    r#"URL="javascript""#,
    "} digraph {",
    "/* // #",
    "é😀 ok",
];

/// An export of one turn in a session of this name.
fn export(session: &str) -> ParsedExport {
    let session = serde_json::to_string(session).unwrap();
    let text = format!(
        r#"{{"anchor_turn_id":"00000000-0000-4000-8000-000000000001","turns":[{{
        "id":"00000000-0000-4000-8000-000000000001","session_id":{session},"role":"user",
        "phase":"planning","salience":0.5,"trajectory_depth":0,"trajectory_sibling_order":0,
        "trajectory_homogeneity":0.5,"trajectory_temporal":0.5,"trajectory_complexity":1.0,
        "created_at":0,"content_hash":null}}],"edges":[],"policy_id":"slice_policy_v1",
        "policy_params_hash":"02005444cae1117d","schema_version":"1.0.0",
        "slice_id":"0123456789abcdef","graph_snapshot_hash":"0123456789abcdef",
        "admissibility_token":null,"attestation":null}}"#
    );
    ParsedExport::parse_whole(&text, &|| {}).unwrap()
}

/// What Graphviz draws of this text as SVG, or `None` where there is no Graphviz.
fn drawn(text: &str) -> Option<String> {
    let mut dot = Command::new("dot");
    dot.arg("-Tsvg").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = dot.spawn().ok()?;
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let messages = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && !messages.contains("syntax error"), "{text}\n{messages}");
    Some(String::from_utf8(output.stdout).unwrap())
}

/// The lines of text in an SVG, unescaped.
fn lines_of_text(svg: &str) -> Vec<String> {
    let between =
        |part: &str| part.split_once('>')?.1.split_once("</text>").map(|t| t.0.to_owned());
    let escapes = [("&#45;", "-"), ("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#39;", "'")];
    let texts = svg.split("<text ").skip(1).map(|part| between(part).unwrap());
    texts
        .map(|text| {
            let plain = escapes.iter().fold(text, |text, (from, to)| text.replace(from, to));
            plain.replace("&#160;", " ").replace('\u{a0}', " ").replace("&amp;", "&")
        })
        .collect()
}

#[test]
fn graphviz_draws_hostile_names_as_text() {
    for session in HOSTILE {
        let text = dot(&export(session), &|| {});
        let Some(svg) = drawn(&text) else {
            skip("graphviz_draws_hostile_names_as_text", "Graphviz is not installed");
            return;
        };
        let plain = session.replace(['\n', '\u{2028}'], " ");
        let shown: String = plain.chars().take(15).collect();
        let shown = if plain.chars().count() > 15 { format!("{shown}…") } else { shown };
        let lines = lines_of_text(&svg);
        assert_eq!(lines[2..4], ["user 00000000", "planning 0.5"], "{svg}");
        assert_eq!(lines[4..], [shown], "{text}\n{svg}");
        assert_eq!(svg.matches("class=\"node").count(), 1, "{svg}");
        assert!(!svg.contains("<a ") && !svg.contains("<script"), "{svg}");
    }
}
