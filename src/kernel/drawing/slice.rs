//! Drawings of a slice with contents and captions.
//!
//! Contents come from anyone. They are shortened and escaped as in drawings of exports.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;
use std::str::FromStr;

use super::Format;
use super::style::{
    LINE, colours, dot_beginning, dot_edge, dot_lines, mermaid_arrow, mermaid_beginning,
    mermaid_class, mermaid_lines,
};
use crate::explain::explanation::{Explanation, TurnOutcome};
use crate::graph::edge::{Edge, EdgeType};
use crate::graph::turn::{Role, TurnId};
use crate::json::JsonValue;
use crate::json::object::{Object, ParseError};
use crate::policy::{POLICY_LIMITS, SlicePolicy};
use crate::slicing::observer::Via;
use crate::slicing::slice::{Part, SelectedTurn, Slice};

/// The most turns that are drawn as those that would have come next.
pub const MAX_FRONTIER: usize = 12;

/// A picture of a slice.
pub struct Picture<'a> {
    caption: [String; 2],
    boxes: Vec<TurnBox<'a>>,
    /// Between boxes, by their places.
    arrows: Vec<(usize, usize, Arrow)>,
    /// The boxes of calls and their results that are framed together.
    frames: Vec<Vec<usize>>,
    /// How many selected turns are not drawn.
    hidden: usize,
}

enum TurnBox<'a> {
    Selected(&'a SelectedTurn, Vec<String>),
    /// A turn that would have come next.
    Next(Vec<String>),
}

#[derive(Clone, Copy)]
enum Arrow {
    Edge(EdgeType),
    /// From the turn that a turn of the frontier was discovered from, in the direction of the edge.
    Discovery,
}

/// What a picture shows. Read it from a JSON object with [`FromStr`]; missing keys take their defaults.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// The most turns that are drawn, 1 to 10 000.
    pub max_turns: usize,
    /// How many characters of each content are drawn, 0 to 1000.
    pub chars: usize,
    /// Whether the turns that would have come next are drawn.
    pub frontier: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options { max_turns: 60, chars: 48, frontier: false }
    }
}

impl FromStr for Options {
    type Err = ParseError;

    fn from_str(json: &str) -> Result<Self, ParseError> {
        let mut options = Options::default();
        let mut object = Object::new("options", JsonValue::read(json, POLICY_LIMITS, &|| {})?)?;
        for (key, range, value) in [
            ("max_turns", 1..=10_000, &mut options.max_turns),
            ("chars", 0..=1000, &mut options.chars),
        ] {
            if object.has(key) {
                let wanted =
                    format_args!("an integer between {} and {}", range.start(), range.end());
                *value = object.read(key, wanted, |json| match json {
                    JsonValue::Number(number) => {
                        let count = usize::try_from(number.written_integer()?).ok();
                        count.filter(|count| range.contains(count))
                    }
                    _ => None,
                })?;
            }
        }
        if object.has("frontier") {
            options.frontier = object.boolean("frontier")?;
        }
        object.finish()?;
        Ok(options)
    }
}

/// The turns of a slice that are drawn: so many of the first in the order of selection.
#[must_use]
pub fn drawn_turns(slice: &Slice, most: usize) -> Vec<&SelectedTurn> {
    let mut drawn: Vec<&SelectedTurn> = slice.turns.iter().collect();
    drawn.sort_unstable_by_key(|selected| selected.selection_order);
    drawn.truncate(most);
    drawn
}

impl<'a> Picture<'a> {
    /// A picture of these turns of a slice. `text` is the beginning of a turn's content; the frontier of `explanation`,
    /// where one is given, is drawn as well.
    pub fn new(
        slice: &'a Slice,
        policy: &SlicePolicy,
        drawn: &[&'a SelectedTurn],
        explanation: Option<&Explanation>,
        text: impl Fn(TurnId) -> String,
    ) -> Self {
        let bounded = policy.counts_tokens();
        let mut boxes: Vec<TurnBox<'a>> = Vec::new();
        let mut places: HashMap<TurnId, usize> = HashMap::new();
        for selected in drawn {
            let SelectedTurn { turn, distance, part, tokens, selection_order, .. } = selected;
            let part = match part {
                Part::Pinned | Part::Recalled => format!(", {}", part.name()),
                Part::Anchor | Part::Line => String::new(),
            };
            let seed = policy.seed(turn.id);
            let seed = seed.map_or_else(String::new, |strength| format!(", seed {strength}"));
            let mut lines = vec![format!("{selection_order} {}{part}{seed}", turn.role.name())];
            lines.push(text(turn.id));
            let tokens = if bounded { format!(", {tokens} tokens") } else { String::new() };
            lines.push(format!("distance {distance}{tokens}"));
            lines.retain(|line| !line.is_empty());
            places.insert(turn.id, boxes.len());
            boxes.push(TurnBox::Selected(selected, lines));
        }
        let is_drawn =
            |edge: &&Edge| places.contains_key(&edge.parent) && places.contains_key(&edge.child);
        let drawn_edges: Vec<&Edge> = slice.edges.iter().filter(is_drawn).collect();
        let mut arrows: Vec<(usize, usize, Arrow)> = drawn_edges
            .iter()
            .map(|edge| (places[&edge.parent], places[&edge.child], Arrow::Edge(edge.edge_type)))
            .collect();
        let is_result = |id: TurnId| match boxes[places[&id]] {
            TurnBox::Selected(selected, _) => selected.turn.role == Role::Tool,
            _ => false,
        };
        let links = drawn_edges.iter().filter(|edge| is_result(edge.child));
        let frames = frames(boxes.len(), links.map(|e| (places[&e.parent], places[&e.child])));
        let next = explanation.map(|explanation| explanation.turns.iter()).into_iter().flatten();
        let next = next.filter(|turn| turn.outcome == TurnOutcome::Frontier).take(MAX_FRONTIER);
        for turn in next {
            let id = turn.rank.id;
            let from =
                explanation.and_then(|e| e.discovered_from(turn)).and_then(|id| places.get(&id));
            let lines =
                vec!["next".to_owned(), text(id), format!("distance {}", turn.rank.distance)];
            let place = boxes.len();
            boxes.push(TurnBox::Next(lines.into_iter().filter(|line| !line.is_empty()).collect()));
            if let Some(from) = from {
                arrows.push(match turn.via {
                    Via::Parent => (place, *from, Arrow::Discovery),
                    _ => (*from, place, Arrow::Discovery),
                });
            }
        }
        let tokens: u64 = slice.turns.iter().map(|selected| u64::from(selected.tokens)).sum();
        let tokens = if bounded { format!(", {tokens} tokens") } else { String::new() };
        let caption = [
            format!(
                "{}, {}{tokens}",
                counted(slice.turns.len(), "turn"),
                counted(slice.edges.len(), "edge")
            ),
            policy.description(),
        ];
        let hidden = slice.turns.len() - drawn.len();
        Picture { caption, boxes, arrows, frames, hidden }
    }

    /// The picture in a language.
    #[must_use]
    pub fn text(&self, anchor: TurnId, format: Format) -> String {
        match format {
            Format::Mermaid => self.mermaid(anchor),
            Format::Dot => self.dot(anchor),
        }
    }

    fn more(&self) -> Option<String> {
        (self.hidden > 0).then(|| format!("and {} more", counted(self.hidden, "turn")))
    }

    fn mermaid(&self, anchor: TurnId) -> String {
        let mut text = mermaid_beginning(&self.caption);
        let framed: Vec<usize> = self.frames.concat();
        let node = |text: &mut String, place: usize| {
            let (label, class, is_anchor) = match &self.boxes[place] {
                TurnBox::Selected(selected, lines) => {
                    (lines, selected.turn.phase.name(), selected.turn.id == anchor)
                }
                TurnBox::Next(lines) => (lines, "next", false),
            };
            let part = match &self.boxes[place] {
                TurnBox::Selected(selected, _) => selected.part,
                TurnBox::Next(_) => Part::Line,
            };
            let (open, close) = match part {
                _ if is_anchor => ("{{", "}}"),
                Part::Pinned => ("[", "]"),
                Part::Recalled => ("([", "])"),
                Part::Anchor | Part::Line => ("(", ")"),
            };
            let _ = writeln!(text, "    n{place}{open}{}{close}:::{class}", mermaid_lines(label));
        };
        for (number, frame) in self.frames.iter().enumerate() {
            let _ = writeln!(text, "    subgraph calls{number}[\" \"]");
            frame.iter().for_each(|place| node(&mut text, *place));
            text.push_str("    end\n");
        }
        for place in (0..self.boxes.len()).filter(|place| !framed.contains(place)) {
            node(&mut text, place);
        }
        if let Some(more) = self.more() {
            let _ = writeln!(text, "    more({}):::next", mermaid_lines(&[more]));
        }
        text.push_str("  end\n");
        for (from, to, arrow) in &self.arrows {
            let arrow = match arrow {
                Arrow::Edge(edge_type) => mermaid_arrow(*edge_type),
                Arrow::Discovery => "-.-",
            };
            let _ = writeln!(text, "  n{from} {arrow} n{to}");
        }
        let phases: BTreeMap<_, _> = self.phases().map(|phase| (phase.name(), phase)).collect();
        text.extend(phases.into_values().map(mermaid_class));
        let _ = writeln!(text, "  classDef next fill:#ffffff,stroke:#c3cad2,color:{LINE}");
        for number in 0..self.frames.len() {
            let _ = writeln!(text, "  style calls{number} fill:#f7f8fa,stroke:#c3cad2");
        }
        text.truncate(text.trim_end().len());
        text
    }

    fn phases(&self) -> impl Iterator<Item = crate::graph::turn::Phase> {
        self.boxes.iter().filter_map(|turn| match turn {
            TurnBox::Selected(selected, _) => Some(selected.turn.phase),
            TurnBox::Next(_) => None,
        })
    }

    fn dot(&self, anchor: TurnId) -> String {
        let mut text = dot_beginning(&self.caption, "fontsize=11, ");
        let pale = format!(
            "class=\"next\", fillcolor=\"#ffffff\", color=\"#c3cad2\", fontcolor=\"{LINE}\""
        );
        for (place, turn) in self.boxes.iter().enumerate() {
            let (lines, style) = match turn {
                TurnBox::Selected(selected, lines) => {
                    let (fill, line) = colours(selected.turn.phase);
                    let is_anchor = selected.turn.id == anchor;
                    let border = match selected.part {
                        _ if is_anchor => ", penwidth=2, peripheries=2",
                        Part::Pinned => ", penwidth=2",
                        Part::Recalled => ", style=\"filled,rounded,dashed\"",
                        Part::Anchor | Part::Line => "",
                    };
                    let class = selected.turn.phase.name();
                    let style = format!(
                        "class=\"{class}\", fillcolor=\"{fill}\", color=\"{line}\"{border}"
                    );
                    (lines, style)
                }
                TurnBox::Next(lines) => (lines, pale.clone()),
            };
            let _ = writeln!(text, "  n{place} [label={}, {style}];", dot_lines(lines));
        }
        for (number, frame) in self.frames.iter().enumerate() {
            let nodes: Vec<String> = frame.iter().map(|place| format!("n{place}")).collect();
            let _ = writeln!(
                text,
                "  subgraph cluster_calls{number} {{ label=\"\"; class=\"calls\"; style=\"filled,rounded\"; \
                 fillcolor=\"#f7f8fa\"; color=\"#c3cad2\"; {}; }}",
                nodes.join("; ")
            );
        }
        if let Some(more) = self.more() {
            let _ = writeln!(text, "  more [label={}, {pale}];", dot_lines(&[more]));
        }
        for (from, to, arrow) in &self.arrows {
            let style = match arrow {
                Arrow::Edge(edge_type) => dot_edge(*edge_type),
                Arrow::Discovery => " [style=dashed, color=\"#c3cad2\", arrowhead=none]",
            };
            let _ = writeln!(text, "  n{from} -> n{to}{style};");
        }
        text.push('}');
        text
    }
}

/// A number of things.
fn counted(number: usize, thing: &str) -> String {
    format!("{number} {thing}{}", if number == 1 { "" } else { "s" })
}

/// The components of these links that have more than one box.
fn frames(boxes: usize, links: impl Iterator<Item = (usize, usize)>) -> Vec<Vec<usize>> {
    let mut component: Vec<usize> = (0..boxes).collect();
    for (a, b) in links {
        let (a, b) = (component[a], component[b]);
        if a != b {
            component.iter_mut().filter(|c| **c == b).for_each(|c| *c = a);
        }
    }
    let mut frames: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (place, component) in component.into_iter().enumerate() {
        frames.entry(component).or_default().push(place);
    }
    frames.into_values().filter(|frame| frame.len() > 1).collect()
}
