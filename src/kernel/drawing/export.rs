//! An export as a drawing.
//!
//! An export can come from anywhere. Its free texts are shortened and escaped, so that they cannot end a label nor
//! begin a directive of either program.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::Format;
use super::style::{
    colours, dot_beginning, dot_edge, dot_lines, is_unprintable, mermaid_arrow, mermaid_beginning,
    mermaid_class, mermaid_lines,
};
use crate::export::parse::ParsedExport;
use crate::graph::edge::Edge;
use crate::graph::turn::{Phase, Turn, TurnId};
use crate::interrupts::Interrupts;
use crate::policy::SlicePolicy;

/// The most characters of a free text that are drawn: the name of a policy's version is 15 long.
const MAX_TEXT: usize = 15;

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
    let mut short: String = text.chars().take(MAX_TEXT).map(printed).collect();
    if text.chars().nth(MAX_TEXT).is_some() {
        short.push('…');
    }
    short
}

/// The font size: 9 for salience 0 to 18 for salience 1. An export from outside may have a salience out of range.
#[must_use]
pub fn letters(turn: &Turn) -> f32 {
    9.0 + 9.0 * turn.salience.clamp(0.0, 1.0)
}

/// The drawing in a language. `check_interrupts` is called often.
#[must_use]
pub fn text(export: &ParsedExport, format: Format, check_interrupts: &dyn Fn()) -> String {
    match format {
        Format::Mermaid => mermaid(export, check_interrupts),
        Format::Dot => dot(export, check_interrupts),
    }
}

/// The drawing in Graphviz's language. `check_interrupts` is called often.
#[must_use]
pub fn dot(export: &ParsedExport, check_interrupts: &dyn Fn()) -> String {
    let interrupts = Interrupts::new(check_interrupts);
    let mut text = dot_beginning(&caption(export), "");
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
        let style = dot_edge(*edge_type);
        let _ = writeln!(text, "  \"{parent}\" -> \"{child}\"{style};");
    }
    text.push('}');
    text
}

/// The drawing in Mermaid's language. `check_interrupts` is called often.
#[must_use]
pub fn mermaid(export: &ParsedExport, check_interrupts: &dyn Fn()) -> String {
    let interrupts = Interrupts::new(check_interrupts);
    let mut text = mermaid_beginning(&caption(export));
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
        let arrow = mermaid_arrow(*edge_type);
        let _ = writeln!(text, "  n{} {arrow} n{}", place_of(*parent), place_of(*child));
    }
    text.extend(Phase::ALL.iter().map(|phase| mermaid_class(*phase)));
    for (size, turns) in sizes {
        let _ = writeln!(text, "  classDef size{size} font-size:{size}px");
        let _ = writeln!(text, "  class {} size{size}", turns.join(","));
    }
    text.truncate(text.trim_end().len());
    text
}
