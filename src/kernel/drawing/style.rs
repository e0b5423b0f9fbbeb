//! What all drawings share: colours, arrows, labels, and the beginning of a text.

use std::fmt::Write;

use crate::graph::edge::EdgeType;
use crate::graph::turn::Phase;

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

/// Whether a character changes the direction of the text around it, ends a line, or is not seen: texts of others with
/// it could show something else than they say. The one list of them, for drawings and terminals.
#[must_use]
pub fn is_misleading(character: char) -> bool {
    matches!(
        character,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}'
    )
}

/// Whether a drawing has a space in place of a character.
pub(super) fn is_unprintable(character: char) -> bool {
    is_misleading(character)
        || matches!(character, '\u{fffe}' | '\u{ffff}')
        || character.is_control()
}

/// The beginning of a text for Graphviz; `node` are further attributes of every node.
pub(super) fn dot_beginning(caption: &[String], node: &str) -> String {
    let caption = dot_lines(caption);
    format!(
        "digraph slice {{\n  graph [label={caption}, labelloc=t, fontname=\"Helvetica\", fontsize=12, \
         fontcolor=\"{INK}\", nodesep=0.25, ranksep=0.4];\n  \
         node [shape=box, style=\"filled,rounded\", fontname=\"Helvetica\", {node}fontcolor=\"{INK}\", \
         margin=\"0.12,0.06\"];\n  \
         edge [color=\"{LINE}\", arrowsize=0.7];\n"
    )
}

/// The attributes of an edge for Graphviz, after a space; none for a reply.
pub(super) fn dot_edge(edge_type: EdgeType) -> &'static str {
    match edge_type {
        EdgeType::Reply => "",
        EdgeType::Branch => " [style=bold, arrowhead=empty]",
        EdgeType::Reference => " [style=dashed]",
        EdgeType::Default => " [style=dotted]",
    }
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

/// The beginning of a text for Mermaid.
pub(super) fn mermaid_beginning(caption: &[String]) -> String {
    format!("flowchart TB\n  subgraph slice[{}]\n", mermaid_lines(caption))
}

/// The arrow of an edge for Mermaid.
pub(super) fn mermaid_arrow(edge_type: EdgeType) -> &'static str {
    match edge_type {
        EdgeType::Reply => "-->",
        EdgeType::Branch => "==>",
        EdgeType::Reference => "-.->",
        EdgeType::Default => "--o",
    }
}

/// The class of a phase for Mermaid, as a line.
pub(super) fn mermaid_class(phase: Phase) -> String {
    let (fill, line) = colours(phase);
    format!("  classDef {} fill:{fill},stroke:{line},color:{INK}\n", phase.name())
}

/// Lines as a quoted label of Mermaid. All characters but letters, digits and a few signs are entities, because Mermaid
/// looks for directives, comments and entities inside quotes too.
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
