//! An export as a drawing: text for Graphviz and for Mermaid.
//!
//! An export can come from anywhere. Its free texts are shortened and escaped, so that they cannot end a label nor
//! begin a directive of either program.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::export::parse::ParsedExport;
use crate::graph::edge::{Edge, EdgeType};
use crate::graph::turn::{Phase, Turn, TurnId};
use crate::interrupts::Interrupts;
use crate::policy::SlicePolicy;

/// The most characters of a free text that are drawn: the name of a policy's version is 15 long.
const TEXT_MOST: usize = 15;

/// The colours of a phase: of the inside and of the line.
#[must_use]
pub fn colours(phase: Phase) -> (&'static str, &'static str) {
    match phase {
        Phase::Synthesis => ("#d3ead9", "#2e7d4f"),
        Phase::Planning => ("#d9e6f5", "#2f6396"),
        Phase::Consolidation => ("#e6dff2", "#6b4a9e"),
        Phase::Debugging => ("#fae0d7", "#b4472a"),
        Phase::Exploration => ("#ececec", "#6a7683"),
    }
}

/// The colour of text.
pub const INK: &str = "#1c2733";
/// The colour of edges.
pub const LINE: &str = "#7b8896";

/// The lines of the caption: which slice, by which policy. Free texts are shortened and have no control characters.
#[must_use]
pub fn caption(export: &ParsedExport) -> [String; 2] {
    let hash_of = |name: &&str| SlicePolicy::preset(name).map(|policy| policy.params_hash());
    let preset = SlicePolicy::PRESETS
        .into_iter()
        .find(|name| hash_of(name).as_ref() == Some(&export.params_hash));
    let preset = preset.map(|name| format!(", {name}")).unwrap_or_default();
    let (turns, edges) = (export.turns.len(), export.edges.len());
    [
        format!("slice {}, turns {turns}, edges {edges}", export.slice_id),
        format!("{} {}{preset}", cut(&export.policy_id), export.params_hash),
    ]
}

/// The lines of a turn's label. Free texts are shortened and have no control characters.
#[must_use]
pub fn label(turn: &Turn) -> Vec<String> {
    let id = turn.id.to_string();
    let mut lines = vec![
        format!("{} {}", turn.role.name(), &id[..8]),
        format!("{} {}", turn.phase.name(), turn.salience),
    ];
    if !turn.session_id.is_empty() {
        lines.push(cut(&turn.session_id));
    }
    lines
}

/// A text, shortened to what is drawn, with spaces for what cannot be printed.
fn cut(text: &str) -> String {
    let printed = |c: char| if is_unprintable(c) { ' ' } else { c };
    let mut short: String = text.chars().take(TEXT_MOST).map(printed).collect();
    if text.chars().nth(TEXT_MOST).is_some() {
        short.push('…');
    }
    short
}

/// The font size: 9 for salience 0 to 18 for salience 1. An export from outside may have a salience out of range.
#[must_use]
pub fn letters(turn: &Turn) -> f32 {
    9.0 + 9.0 * turn.salience.clamp(0.0, 1.0)
}

/// Whether a character ends a line or changes the direction of the text after it.
fn is_unprintable(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}')
}

/// The drawing in Graphviz's language. `check_interrupts` is called often.
#[must_use]
pub fn dot(export: &ParsedExport, check_interrupts: &dyn Fn()) -> String {
    let interrupts = Interrupts::new(check_interrupts);
    let mut text = String::from("digraph slice {\n");
    let caption = dot_lines(&caption(export));
    let _ = writeln!(
        text,
        "  graph [label={caption}, labelloc=t, fontname=\"Helvetica\", fontsize=12, \
         fontcolor=\"{INK}\", nodesep=0.25, ranksep=0.4];\n  \
         node [shape=box, style=\"filled,rounded\", fontname=\"Helvetica\", fontcolor=\"{INK}\", \
         margin=\"0.12,0.06\"];\n  \
         edge [color=\"{LINE}\", arrowsize=0.7];"
    );
    for turn in &export.turns {
        interrupts.item();
        let (fill, line) = colours(turn.phase);
        let (kind, border) = match turn.id == export.anchor {
            true => ("anchor ", ", penwidth=2, peripheries=2"),
            false => ("", ""),
        };
        let _ = writeln!(
            text,
            "  \"{}\" [label={}, class=\"{kind}{}\", fillcolor=\"{fill}\", color=\"{line}\", \
             fontsize={:.1}{border}];",
            turn.id,
            dot_lines(&label(turn)),
            turn.phase.name(),
            letters(turn)
        );
    }
    for Edge { parent, child, edge_type } in &export.edges {
        interrupts.item();
        let style = match edge_type {
            EdgeType::Reply => "",
            EdgeType::Branch => " [style=bold, arrowhead=empty]",
            EdgeType::Reference => " [style=dashed]",
            EdgeType::Default => " [style=dotted]",
        };
        let _ = writeln!(text, "  \"{parent}\" -> \"{child}\"{style};");
    }
    text.push('}');
    text
}

/// Lines as a quoted string of Graphviz, which reads `\` escapes and, in labels, `&` entities.
pub(super) fn dot_lines(lines: &[String]) -> String {
    let mut quoted = String::from("\"");
    for (number, line) in lines.iter().enumerate() {
        quoted.push_str(if number == 0 { "" } else { "\\n" });
        for character in line.chars() {
            match character {
                '"' => quoted.push_str("\\\""),
                '\\' => quoted.push_str("\\\\"),
                '&' => quoted.push_str("&amp;"),
                c if is_unprintable(c) => quoted.push(' '),
                c => quoted.push(c),
            }
        }
    }
    quoted.push('"');
    quoted
}

/// The drawing in Mermaid's language. `check_interrupts` is called often.
#[must_use]
pub fn mermaid(export: &ParsedExport, check_interrupts: &dyn Fn()) -> String {
    let interrupts = Interrupts::new(check_interrupts);
    let mut text = String::from("flowchart TB\n");
    let _ = writeln!(text, "  subgraph slice[{}]", mermaid_lines(&caption(export)));
    // There are four font sizes, each a class.
    let mut sizes: BTreeMap<u32, Vec<String>> = BTreeMap::new();
    for (place, turn) in export.turns.iter().enumerate() {
        interrupts.item();
        let (open, close) = if turn.id == export.anchor { ("{{", "}}") } else { ("(", ")") };
        let label = mermaid_lines(&label(turn));
        let _ = writeln!(text, "    n{place}{open}{label}{close}:::{}", turn.phase.name());
        let size = 9 + (letters(turn) - 9.0) as u32 / 3 * 3;
        sizes.entry(size).or_default().push(format!("n{place}"));
    }
    text.push_str("  end\n");
    let place_of = |id: TurnId| export.turns.partition_point(|turn| turn.id < id);
    for Edge { parent, child, edge_type } in &export.edges {
        interrupts.item();
        let arrow = match edge_type {
            EdgeType::Reply => "-->",
            EdgeType::Branch => "==>",
            EdgeType::Reference => "-.->",
            EdgeType::Default => "--o",
        };
        let _ = writeln!(text, "  n{} {arrow} n{}", place_of(*parent), place_of(*child));
    }
    for phase in Phase::ALL {
        let (fill, line) = colours(*phase);
        let _ = writeln!(text, "  classDef {} fill:{fill},stroke:{line},color:{INK}", phase.name());
    }
    for (size, turns) in sizes {
        let _ = writeln!(text, "  classDef size{size} font-size:{size}px");
        let _ = writeln!(text, "  class {} size{size}", turns.join(","));
    }
    text.truncate(text.trim_end().len());
    text
}

/// Lines as a quoted label of Mermaid: all but letters, digits and a few signs are entities, as
/// its directives, comments and entities are looked for inside quotes too.
pub(super) fn mermaid_lines(lines: &[String]) -> String {
    let mut quoted = String::from("\"");
    for (number, line) in lines.iter().enumerate() {
        quoted.push_str(if number == 0 { "" } else { "<br/>" });
        for character in line.chars() {
            match character {
                c if c.is_alphanumeric() || " .,_-".contains(c) => quoted.push(c),
                c if is_unprintable(c) => quoted.push(' '),
                c => {
                    let _ = write!(quoted, "#{};", u32::from(c));
                }
            }
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_printed_is_a_space_in_a_label() {
        assert_eq!(
            dot_lines(&["a\u{7}b\nc".to_owned(), "\"&\\".to_owned()]),
            r#""a b c\n\"&amp;\\""#
        );
    }
}
