//! What was measured: as text, as JSON and drawn.

use std::fmt::Write as _;
use std::path::Path;

use plotters::prelude::*;
use serde_json::{Value, json};

use crate::sample::Times;
use crate::tables::Result;

/// What a figure has to reach.
#[derive(Clone, Copy)]
pub enum Goal {
    AtMost {
        least: f64,
        aim: f64,
    },
    /// So many times faster.
    AtLeast {
        least: f64,
        aim: f64,
    },
    None,
}

impl Goal {
    pub fn at_most(least: f64, aim: f64) -> Self {
        Goal::AtMost { least, aim }
    }

    pub fn at_least(least: f64, aim: f64) -> Self {
        Goal::AtLeast { least, aim }
    }

    pub fn none() -> Self {
        Goal::None
    }

    fn judge(self, value: f64) -> &'static str {
        let (least, aim) = match self {
            Goal::AtMost { least, aim } => (value <= least, value <= aim),
            Goal::AtLeast { least, aim } => (value >= least, value >= aim),
            Goal::None => return "",
        };
        match (least, aim) {
            (_, true) => "aim reached",
            (true, false) => "reached",
            _ => "NOT reached",
        }
    }

    fn text(self) -> String {
        match self {
            Goal::AtMost { least, aim } => format!("≤ {least} (aim {aim})"),
            Goal::AtLeast { least, aim } => format!("≥ {least} × faster (aim {aim})"),
            Goal::None => String::new(),
        }
    }
}

struct Line {
    row: &'static str,
    graph: &'static str,
    work: String,
    value: f64,
    spread: Option<(f64, f64)>,
    goal: Goal,
}

/// Everything that was measured.
pub struct Report {
    machine: Vec<String>,
    notes: Vec<String>,
    lines: Vec<Line>,
    times: Vec<(&'static str, Vec<Times>)>,
    curves: Vec<Curves>,
}

/// Times over the size of a graph: a line for each contestant, a point for each size that it was timed at.
struct Curves {
    work: &'static str,
    lines: Vec<(&'static str, Vec<(usize, Times)>)>,
}

impl Report {
    pub fn new(machine: Vec<String>) -> Self {
        Report {
            machine,
            notes: Vec::new(),
            lines: Vec::new(),
            times: Vec::new(),
            curves: Vec::new(),
        }
    }

    /// A note for the reader.
    pub fn note(&mut self, note: String) {
        self.notes.push(note);
    }

    /// The times of all contestants at one work.
    pub fn times(&mut self, work: &'static str, times: &[Times]) {
        self.times.push((work, times.to_vec()));
    }

    /// The times of contestants over the sizes of graphs, the smallest first.
    pub fn curves(
        &mut self,
        work: &'static str,
        sizes: &[usize],
        curves: &[(&'static str, &[Times])],
    ) {
        let lines = curves
            .iter()
            .map(|(name, times)| {
                (*name, sizes.iter().copied().zip(times.iter().cloned()).collect())
            })
            .collect();
        self.curves.push(Curves { work, lines });
        self.times.push((work, curves.iter().flat_map(|(_, times)| times.to_vec()).collect()));
    }

    /// Ours against another: the ratio of the medians, as the goal counts it.
    pub fn compare(
        &mut self,
        row: &'static str,
        graph: &'static str,
        ours: &Times,
        other: &Times,
        goal: Goal,
    ) {
        let ratio = |ours: f64, other: f64| match goal {
            Goal::AtLeast { .. } => other / ours,
            _ => ours / other,
        };
        let ((low, high), (other_low, other_high)) = (ours.spread_ms(), other.spread_ms());
        let ends = [ratio(low, other_high), ratio(high, other_low)];
        let spread = (ends[0].min(ends[1]), ends[0].max(ends[1]));
        self.lines.push(Line {
            row,
            graph,
            work: format!("{} against {}", ours.name, other.name),
            value: ratio(ours.median_ms(), other.median_ms()),
            spread: Some(spread),
            goal,
        });
    }

    /// A single figure.
    pub fn value(
        &mut self,
        row: &'static str,
        graph: &'static str,
        work: &str,
        value: f64,
        goal: Goal,
    ) {
        self.lines.push(Line { row, graph, work: work.to_owned(), value, spread: None, goal });
    }

    /// The report for people, in Markdown.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for line in self.machine.iter().chain(&self.notes) {
            let _ = writeln!(text, "- {line}");
        }
        let _ = writeln!(
            text,
            "\n| | graph | work | measured | lowest … highest | goal | |\n|---|---|---|---|---|---|---|"
        );
        for line in &self.lines {
            let spread =
                line.spread.map_or(String::new(), |(low, high)| format!("{low:.2} … {high:.2}"));
            let _ = writeln!(
                text,
                "| {} | {} | {} | {:.2} | {spread} | {} | {} |",
                line.row,
                line.graph,
                line.work,
                line.value,
                line.goal.text(),
                line.goal.judge(line.value)
            );
        }
        let _ = writeln!(
            text,
            "\n| work | contestant | median ms | p95 ms | medians of the rounds |\n|---|---|---|---|---|"
        );
        for (work, times) in &self.times {
            for times in times {
                let (low, high) = times.spread_ms();
                let _ = writeln!(
                    text,
                    "| {work} | {} | {:.2} | {:.2} | {low:.2} … {high:.2} |",
                    times.name,
                    times.median_ms(),
                    times.p95_ms()
                );
            }
        }
        text
    }

    fn json(&self) -> Value {
        let lines: Vec<Value> = self
            .lines
            .iter()
            .map(|line| {
                json!({
                    "row": line.row, "graph": line.graph, "work": line.work, "value": line.value,
                    "lowest": line.spread.map(|s| s.0), "highest": line.spread.map(|s| s.1),
                    "goal": line.goal.text(), "verdict": line.goal.judge(line.value),
                })
            })
            .collect();
        let times: Vec<Value> = self
            .times
            .iter()
            .flat_map(|(work, times)| times.iter().map(move |times| (work, times)))
            .map(|(work, times)| {
                let (low, high) = times.spread_ms();
                json!({
                    "work": work, "contestant": times.name, "median_ms": times.median_ms(),
                    "p95_ms": times.p95_ms(), "lowest_median_ms": low, "highest_median_ms": high,
                })
            })
            .collect();
        json!({ "machine": self.machine, "notes": self.notes, "figures": lines, "times": times })
    }

    /// Writes `bench.md`, `bench.json` and a plot for each graph.
    pub fn write(&self, folder: &Path) -> Result<()> {
        std::fs::create_dir_all(folder)?;
        std::fs::write(folder.join("bench.md"), self.text())?;
        std::fs::write(folder.join("bench.json"), format!("{:#}\n", self.json()))?;
        for (work, times) in &self.times {
            let file = folder.join(format!("bench-{}.svg", work.replace(' ', "-")));
            match self.curves.iter().find(|curves| curves.work == *work) {
                Some(curves) => draw_curves(&file, curves)?,
                None => draw(&file, work, times)?,
            }
        }
        Ok(())
    }
}

// Readable on light and on dark ground.
const GREY: RGBColor = RGBColor(128, 128, 128);
const COLOURS: [RGBColor; 4] = [
    RGBColor(46, 139, 87),
    RGBColor(112, 128, 176),
    RGBColor(205, 133, 63),
    RGBColor(178, 102, 155),
];

fn text_style() -> TextStyle<'static> {
    TextStyle::from(("sans-serif", 14)).color(&GREY)
}

/// One, two and five times each power of ten within the range: what the marks of a logarithmic axis stand at.
fn marks((least, most): (f64, f64)) -> Vec<f64> {
    let decades = least.log10().floor() as i32..=most.log10().ceil() as i32;
    let marks = decades.flat_map(|power| [1.0, 2.0, 5.0].map(|digit| digit * 10f64.powi(power)));
    marks.filter(|mark| (least..=most).contains(mark)).collect()
}

/// A number of three digits that count, without the noise of its binary form.
fn number(value: f64) -> String {
    let decimals = (2 - value.log10().floor() as i32).clamp(0, 6) as usize;
    let text = format!("{value:.decimals$}");
    if text.contains('.') {
        return text.trim_end_matches('0').trim_end_matches('.').to_owned();
    }
    // Thousands apart.
    let mut grouped = String::new();
    for (at, digit) in text.chars().enumerate() {
        if at > 0 && (text.len() - at).is_multiple_of(3) {
            grouped.push(' ');
        }
        grouped.push(digit);
    }
    grouped
}

/// Medians as points on a logarithmic axis, each with the range of the medians of its rounds.
fn draw(file: &Path, work: &str, times: &[Times]) -> Result<()> {
    let height = 70 + 28 * times.len() as u32;
    let area = SVGBackend::new(file, (760, height)).into_drawing_area();
    let (low, high): (Vec<f64>, Vec<f64>) = times.iter().map(Times::spread_ms).unzip();
    let range = (
        low.iter().copied().fold(f64::MAX, f64::min) / 2.0,
        high.iter().copied().fold(0.0, f64::max) * 2.5,
    );
    let mut chart = ChartBuilder::on(&area)
        .caption(format!("{work}: milliseconds, median and range of the rounds"), text_style())
        .margin(8)
        .x_label_area_size(24)
        .y_label_area_size(300)
        .build_cartesian_2d(
            (range.0..range.1).log_scale().with_key_points(marks(range)),
            (0..times.len().saturating_sub(1).max(1)).into_segmented(),
        )?;
    chart
        .configure_mesh()
        .disable_y_mesh()
        .axis_style(GREY)
        .light_line_style(TRANSPARENT)
        .bold_line_style(GREY.mix(0.3))
        .label_style(text_style())
        .x_label_formatter(&|value| number(*value))
        .y_label_formatter(&|at| match at {
            SegmentValue::CenterOf(at) | SegmentValue::Exact(at) => {
                times.iter().rev().nth(*at).map_or("", |t| t.name).to_owned()
            }
            SegmentValue::Last => String::new(),
        })
        .draw()?;
    for (at, times) in times.iter().rev().enumerate() {
        let ours = times.name.contains("slice");
        let colour = COLOURS[usize::from(!ours)];
        let (median, (low, high)) = (times.median_ms(), times.spread_ms());
        let place = |value| (value, SegmentValue::CenterOf(at));
        let range = PathElement::new([place(low), place(high)], colour.stroke_width(3));
        chart.draw_series([range])?;
        chart.draw_series([Circle::new(place(median), 5, colour.filled())])?;
        // Beside the range, as high as the point.
        let (x, y) = chart.backend_coord(&place(high));
        area.draw(&Text::new(number(median), (x + 9, y - 7), text_style()))?;
    }
    area.present()?;
    Ok(())
}

/// Medians over the size of the graph, both axes logarithmic.
fn draw_curves(file: &Path, curves: &Curves) -> Result<()> {
    let area = SVGBackend::new(file, (760, 420)).into_drawing_area();
    let points = || curves.lines.iter().flat_map(|(_, line)| line);
    let ends = |values: Vec<f64>| {
        (
            values.iter().copied().fold(f64::MAX, f64::min),
            values.iter().copied().fold(0.0, f64::max),
        )
    };
    let sizes = ends(points().map(|(size, _)| *size as f64).collect());
    let range = ends(points().map(|(_, times)| times.median_ms()).collect());
    let (sizes, range) = ((sizes.0, sizes.1 * 1.01), (range.0 / 1.5, range.1 * 1.5));
    let mut chart = ChartBuilder::on(&area)
        .caption(
            format!("{}: median milliseconds over turns of the graph", curves.work),
            text_style(),
        )
        .margin(8)
        .margin_right(150)
        .x_label_area_size(28)
        .y_label_area_size(60)
        .build_cartesian_2d(
            (sizes.0..sizes.1).log_scale().with_key_points(marks(sizes)),
            (range.0..range.1).log_scale().with_key_points(marks(range)),
        )?;
    chart
        .configure_mesh()
        .axis_style(GREY)
        .light_line_style(TRANSPARENT)
        .bold_line_style(GREY.mix(0.3))
        .label_style(text_style())
        .x_label_formatter(&|value| number(*value))
        .y_label_formatter(&|value| number(*value))
        .draw()?;
    for ((name, line), colour) in curves.lines.iter().zip(COLOURS) {
        let points: Vec<(f64, f64)> =
            line.iter().map(|(size, times)| (*size as f64, times.median_ms())).collect();
        chart.draw_series(LineSeries::new(points.clone(), colour.stroke_width(2)))?;
        chart.draw_series(points.iter().map(|point| Circle::new(*point, 4, colour.filled())))?;
        let end = points.iter().max_by(|a, b| a.0.total_cmp(&b.0)).expect("a contestant was timed");
        // Beside the plot, which ends at the largest graph.
        let (x, y) = chart.backend_coord(end);
        let style = TextStyle::from(("sans-serif", 14)).color(&colour);
        area.draw(&Text::new(*name, (x + 8, y - 7), style))?;
    }
    area.present()?;
    Ok(())
}
