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
}

impl Report {
    pub fn new(machine: Vec<String>) -> Self {
        Report { machine, notes: Vec::new(), lines: Vec::new(), times: Vec::new() }
    }

    /// A note for the reader.
    pub fn note(&mut self, note: String) {
        self.notes.push(note);
    }

    /// The times of all contestants at one work.
    pub fn times(&mut self, work: &'static str, times: &[Times]) {
        self.times.push((work, times.to_vec()));
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
            draw(&file, work, times)?;
        }
        Ok(())
    }
}

/// Medians as bars on a logarithmic scale, readable on light and on dark ground.
fn draw(file: &Path, work: &str, times: &[Times]) -> Result<()> {
    let grey = RGBColor(128, 128, 128);
    let style = TextStyle::from(("sans-serif", 14)).color(&grey);
    let height = 70 + 32 * times.len() as u32;
    let area = SVGBackend::new(file, (760, height)).into_drawing_area();
    let most = times.iter().map(Times::median_ms).fold(0.0, f64::max);
    let least = times.iter().map(Times::median_ms).fold(f64::MAX, f64::min) / 3.0;
    let mut chart = ChartBuilder::on(&area)
        .caption(format!("{work}: median milliseconds"), style.clone())
        .margin(8)
        .x_label_area_size(24)
        .y_label_area_size(190)
        .build_cartesian_2d(
            (least..most * 2.0).log_scale(),
            (0..times.len().saturating_sub(1).max(1)).into_segmented(),
        )?;
    chart
        .configure_mesh()
        .disable_y_mesh()
        .axis_style(grey)
        .light_line_style(TRANSPARENT)
        .bold_line_style(grey.mix(0.3))
        .label_style(style.clone())
        .y_label_formatter(&|at| match at {
            SegmentValue::CenterOf(at) | SegmentValue::Exact(at) => times
                .get(times.len() - 1 - (*at).min(times.len() - 1))
                .map_or("", |t| t.name)
                .to_owned(),
            SegmentValue::Last => String::new(),
        })
        .draw()?;
    for (at, times) in times.iter().rev().enumerate() {
        let ours = times.name.starts_with("graph_") || times.name.starts_with("slice");
        let colour = if ours { RGBColor(46, 139, 87) } else { RGBColor(112, 128, 176) };
        let median = times.median_ms();
        let mut bar = Rectangle::new(
            [(least, SegmentValue::Exact(at)), (median, SegmentValue::Exact(at + 1))],
            colour.filled(),
        );
        bar.set_margin(5, 5, 0, 0);
        let label =
            Text::new(format!(" {median:.2}"), (median, SegmentValue::CenterOf(at)), style.clone());
        chart.draw_series([bar])?;
        chart.draw_series([label])?;
    }
    area.present()?;
    Ok(())
}
