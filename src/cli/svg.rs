//! An export as a picture, in SVG: laid out in layers, parents above their children.

use ::svg::Document;
use ::svg::node::element::{Definitions, Group, Marker, Path, Rectangle, Style, Text, Title};
use dugong::graphlib::{Graph, GraphOptions};
use dugong::{EdgeLabel, GraphLabel, NodeLabel, Point, WorkControl, WorkError, layout_controlled};
use kernel::drawing::export::{caption, label, letters};
use kernel::drawing::style::{INK, LINE, colours};
use kernel::export::parse::ParsedExport;
use kernel::graph::edge::EdgeType;
use kernel::graph::turn::Turn;

use crate::Failure;

/// The most work that a layout may take, in the library's units: a few seconds, some 300 MB.
const MAX_WORK: usize = 20_000_000;

const SPACE: f64 = 20.0;
/// Between the two frames of the anchor.
const ANCHOR_MARGIN: f64 = 4.0;
const LETTERS_OF_CAPTION: f64 = 12.0;

/// Styles, with those of a dark colour scheme.
const STYLE: &str = "\
text { font-family: system-ui, \"Segoe UI\", Helvetica, Arial, sans-serif } \
@media (prefers-color-scheme: dark) { .ground { fill: #14191f } text { fill: #e6ecf2 } .edge { stroke: #8794a1 } \
.tip { fill: #8794a1 } \
.synthesis rect { fill: #1b3a28; stroke: #6cc48d } .planning rect { fill: #1e3247; stroke: #7fb2e5 } \
.consolidation rect { fill: #32284a; stroke: #b39ddb } .debugging rect { fill: #4a261c; stroke: #f0937a } \
.exploration rect { fill: #2a3038; stroke: #9aa6b2 } }";

type Layout = Graph<NodeLabel, EdgeLabel, GraphLabel>;

/// Limits the work of a layout.
struct WorkLimit(usize);

impl WorkControl for WorkLimit {
    fn charge(&mut self, units: usize) -> Result<(), WorkError> {
        self.0 = self.0.checked_sub(units).ok_or(WorkError::Interrupted)?;
        Ok(())
    }
}

/// The picture. Fails for a slice whose layout takes too much work.
pub(crate) fn picture(export: &ParsedExport) -> Result<String, Failure> {
    let placed = placed(export)?;
    let caption = caption(export);
    let caption_width =
        caption.iter().map(|line| width_of(line, LETTERS_OF_CAPTION)).fold(0.0, f64::max);
    let top = SPACE + 2.0 * line_height(LETTERS_OF_CAPTION);
    let [left, above, right, below] = extent(&placed, export);
    let width = rounded((right - left).max(caption_width) + 2.0 * SPACE);
    let height = rounded(below - above + top + 2.0 * SPACE);
    let mut edges = Group::new();
    for (number, edge) in export.edges.iter().enumerate() {
        let name = number.to_string();
        let (parent, child) = (edge.parent.to_string(), edge.child.to_string());
        if let Some(laid) = placed.edge(&parent, &child, Some(&name)) {
            edges = edges.add(drawn_edge(&laid.points, edge.edge_type));
        }
    }
    let mut turns = Group::new();
    for turn in &export.turns {
        if let Some(node) = placed.node(&turn.id.to_string()) {
            turns = turns.add(drawn_turn(turn, node, turn.id == export.anchor));
        }
    }
    let shift = format!("translate({} {})", rounded(SPACE - left), rounded(top + SPACE - above));
    let document = Document::new()
        .set("viewBox", (0, 0, width, height))
        .set("width", width)
        .set("height", height)
        .set("role", "img")
        .add(Title::new(caption[0].clone()))
        .add(Style::new(STYLE))
        .add(Definitions::new().add(tip("tip", LINE)).add(tip("open", "none")))
        .add(
            Rectangle::new()
                .set("class", "ground")
                .set("width", width)
                .set("height", height)
                .set("fill", "#ffffff"),
        )
        .add(lines(&caption, SPACE, SPACE, LETTERS_OF_CAPTION, "start"))
        .add(Group::new().set("transform", shift).add(edges).add(turns));
    Ok(document.to_string())
}

/// The sides of what was laid out: left, above, right, below. Edges may go around the turns, beyond the sides that the
/// layout names.
fn extent(placed: &Layout, export: &ParsedExport) -> [f64; 4] {
    let mut sides = [0.0, 0.0, placed.graph().width, placed.graph().height];
    for (number, edge) in export.edges.iter().enumerate() {
        let name = number.to_string();
        let laid = placed.edge(&edge.parent.to_string(), &edge.child.to_string(), Some(&name));
        for point in laid.iter().flat_map(|laid| &laid.points) {
            sides[0] = point.x.min(sides[0]);
            sides[1] = point.y.min(sides[1]);
            sides[2] = point.x.max(sides[2]);
            sides[3] = point.y.max(sides[3]);
        }
    }
    sides
}

/// The turns and edges in their places. An edge's name is its place in the export.
fn placed(export: &ParsedExport) -> Result<Layout, Failure> {
    let mut graph = Layout::new(GraphOptions { directed: true, multigraph: true, compound: false });
    graph.set_graph(GraphLabel {
        nodesep: 24.0,
        ranksep: 40.0,
        edgesep: 12.0,
        ..GraphLabel::default()
    });
    for turn in &export.turns {
        let (size, label) = (f64::from(letters(turn)), label(turn));
        let frame = if turn.id == export.anchor { 2.0 * ANCHOR_MARGIN } else { 0.0 };
        let width =
            label.iter().map(|line| width_of(line, size)).fold(0.0, f64::max) + 16.0 + frame;
        let height = label.len() as f64 * line_height(size) + 12.0 + frame;
        graph.set_node(turn.id.to_string(), NodeLabel { width, height, ..NodeLabel::default() });
    }
    for (number, edge) in export.edges.iter().enumerate() {
        let label = EdgeLabel { weight: 1.0, ..EdgeLabel::default() };
        graph.set_edge_named(
            edge.parent.to_string(),
            edge.child.to_string(),
            Some(number.to_string()),
            Some(label),
        );
    }
    layout_controlled(&mut graph, &mut WorkLimit(MAX_WORK)).map_err(|error| {
        format!("the slice is too large for a picture ({error}); try --format dot with Graphviz")
    })?;
    Ok(graph)
}

/// A bound for the width of a line: fonts differ.
fn width_of(line: &str, size: f64) -> f64 {
    line.chars().count() as f64 * size * 0.62
}

fn line_height(size: f64) -> f64 {
    size * 1.3
}

/// Two decimal places, as the picture's numbers are written.
fn rounded(number: f64) -> f64 {
    (number * 100.0).round() / 100.0
}

fn drawn_turn(turn: &Turn, node: &NodeLabel, is_anchor: bool) -> Group {
    let (x, y) = (node.x.unwrap_or_default(), node.y.unwrap_or_default());
    let (left, above) = (x - node.width / 2.0, y - node.height / 2.0);
    let (fill, line) = colours(turn.phase);
    let outline = |margin: f64, fill: &str, stroke_width: f64| {
        Rectangle::new()
            .set("x", rounded(left - margin))
            .set("y", rounded(above - margin))
            .set("width", rounded(node.width + 2.0 * margin))
            .set("height", rounded(node.height + 2.0 * margin))
            .set("rx", 6.0 + margin)
            .set("fill", fill)
            .set("stroke", line)
            .set("stroke-width", stroke_width)
    };
    let kind = if is_anchor { "turn anchor " } else { "turn " };
    let mut group = Group::new()
        .set("class", format!("{kind}{}", turn.phase.name()))
        .add(Title::new(turn.id.to_string()));
    if is_anchor {
        group = group.add(outline(0.0, fill, 1.5));
    }
    let size = f64::from(letters(turn));
    let margin = if is_anchor { -ANCHOR_MARGIN } else { 0.0 };
    group.add(outline(margin, fill, 1.5)).add(lines(
        &label(turn),
        x,
        above + 6.0 - margin,
        size,
        "middle",
    ))
}

fn drawn_edge(points: &[Point], edge_type: EdgeType) -> Path {
    let mut steps = String::new();
    for (number, point) in points.iter().enumerate() {
        let step = if number == 0 { "M" } else { " L" };
        steps.push_str(&format!("{step}{} {}", rounded(point.x), rounded(point.y)));
    }
    let path = Path::new()
        .set("class", format!("edge {}", edge_type.name()))
        .set("d", steps)
        .set("fill", "none")
        .set("stroke", LINE)
        .set("stroke-linejoin", "round")
        .set("stroke-width", if edge_type == EdgeType::Branch { 2.5 } else { 1.5 })
        .set("marker-end", if edge_type == EdgeType::Branch { "url(#open)" } else { "url(#tip)" });
    match edge_type {
        EdgeType::Reply | EdgeType::Branch => path,
        EdgeType::Reference => path.set("stroke-dasharray", "7 4"),
        EdgeType::Default => path.set("stroke-dasharray", "1.5 4"),
    }
}

/// An arrowhead.
fn tip(name: &str, fill: &str) -> Marker {
    let class = if fill == "none" { "edge" } else { "edge tip" };
    Marker::new()
        .set("id", name)
        .set("viewBox", (0, 0, 8, 8))
        .set("refX", 7)
        .set("refY", 4)
        .set("markerWidth", 9)
        .set("markerHeight", 9)
        .set("markerUnits", "userSpaceOnUse")
        .set("orient", "auto")
        .add(
            Path::new()
                .set("class", class)
                .set("d", "M0.5 0.5 7 4 0.5 7.5z")
                .set("fill", fill)
                .set("stroke", LINE),
        )
}

/// Lines of text, one below the other, from `above` down.
fn lines(texts: &[String], x: f64, above: f64, size: f64, anchor: &str) -> Group {
    let mut group =
        Group::new().set("font-size", rounded(size)).set("text-anchor", anchor).set("fill", INK);
    for (number, text) in texts.iter().enumerate() {
        let base = above + number as f64 * line_height(size) + size;
        group = group.add(Text::new(text.clone()).set("x", rounded(x)).set("y", rounded(base)));
    }
    group
}
