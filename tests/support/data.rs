//! Graphs and expected values from files; a name ending in `.gz` is read through gzip.

use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use chrono::{DateTime, NaiveDateTime, Utc};
use flate2::read::GzDecoder;
use kernel::graph::edge::{Edge, EdgeType};
use kernel::graph::turn::{StoredTurn, Turn, TurnId};
use serde::Deserialize;
use serde::de::DeserializeOwned;

/// A whole graph, rows in the order they were stored.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    /// Rows of `memory_turns`.
    pub turns: Vec<Turn>,
    /// Rows of `memory_turn_edges`.
    pub edges: Vec<Edge>,
}

/// A row of `memory_turns.csv`, columns as written; an empty field is NULL.
#[derive(Deserialize)]
struct TurnRecord<'a> {
    id: TurnId,
    session_id: Option<&'a str>,
    role: Option<&'a str>,
    trajectory_phase: Option<&'a str>,
    salience_score: Option<f32>,
    trajectory_depth: Option<i64>,
    trajectory_sibling_order: Option<i64>,
    trajectory_homogeneity: Option<f32>,
    trajectory_temporal: Option<f32>,
    trajectory_complexity: Option<f32>,
    created_at: Option<&'a str>,
}

impl From<TurnRecord<'_>> for Turn {
    fn from(record: TurnRecord<'_>) -> Self {
        StoredTurn {
            id: record.id,
            session_id: record.session_id,
            role: record.role,
            phase: record.trajectory_phase,
            salience: record.salience_score.map(f64::from),
            trajectory_depth: record.trajectory_depth,
            trajectory_sibling_order: record.trajectory_sibling_order,
            trajectory_homogeneity: record.trajectory_homogeneity.map(f64::from),
            trajectory_temporal: record.trajectory_temporal.map(f64::from),
            trajectory_complexity: record.trajectory_complexity.map(f64::from),
            created_at: record.created_at.map(unix_seconds),
            // The data has texts, and no column of hashes.
            content_hash: None,
        }
        .into()
    }
}

/// A row of `memory_turn_edges.csv`.
#[derive(Deserialize)]
struct EdgeRecord<'a> {
    parent_turn_id: TurnId,
    child_turn_id: TurnId,
    edge_type: Option<&'a str>,
}

impl From<EdgeRecord<'_>> for Edge {
    fn from(record: EdgeRecord<'_>) -> Self {
        Edge {
            parent: record.parent_turn_id,
            child: record.child_turn_id,
            edge_type: EdgeType::from_stored(record.edge_type),
        }
    }
}

/// The graph in a folder of `memory_turns.csv.gz` and `memory_turn_edges.csv.gz`.
#[must_use]
pub fn read_graph(folder: &Path) -> Graph {
    let mut graph = Graph::default();
    for_each_record(&folder.join("memory_turns.csv.gz"), |record, headers| {
        let row: TurnRecord = record.deserialize(Some(headers))?;
        graph.turns.push(row.into());
        Ok(())
    });
    for_each_record(&folder.join("memory_turn_edges.csv.gz"), |record, headers| {
        let row: EdgeRecord = record.deserialize(Some(headers))?;
        graph.edges.push(row.into());
        Ok(())
    });
    graph
}

/// The tokens of the turns in a folder that have a text: its bytes in UTF-8 divided by 4, rounded up.
#[must_use]
pub fn read_tokens(folder: &Path) -> HashMap<TurnId, u32> {
    #[derive(Deserialize)]
    struct TextRecord<'a> {
        id: TurnId,
        content_text: Option<&'a str>,
    }
    let mut tokens = HashMap::new();
    for_each_record(&folder.join("memory_turns.csv.gz"), |record, headers| {
        let row: TextRecord = record.deserialize(Some(headers))?;
        tokens.extend(row.content_text.map(|text| (row.id, tokens_of(text))));
        Ok(())
    });
    tokens
}

/// When each of the turns in a folder that have a time was created, in microseconds since 1970.
#[must_use]
pub fn read_micros(folder: &Path) -> HashMap<TurnId, i64> {
    #[derive(Deserialize)]
    struct TimeRecord<'a> {
        id: TurnId,
        created_at: Option<&'a str>,
    }
    let mut micros = HashMap::new();
    for_each_record(&folder.join("memory_turns.csv.gz"), |record, headers| {
        let row: TimeRecord = record.deserialize(Some(headers))?;
        micros.extend(row.created_at.map(|text| (row.id, time(text).timestamp_micros())));
        Ok(())
    });
    micros
}

/// The tokens of a text.
#[must_use]
pub fn tokens_of(text: &str) -> u32 {
    text.len().div_ceil(4).try_into().unwrap_or(u32::MAX)
}

fn for_each_record(
    path: &Path,
    mut read: impl FnMut(&csv::StringRecord, &csv::StringRecord) -> csv::Result<()>,
) {
    let fail = |error: csv::Error| -> ! { panic!("{}: {error}", path.display()) };
    let mut reader = csv::Reader::from_reader(open(path));
    let headers = reader.headers().unwrap_or_else(|e| fail(e)).clone();
    let mut record = csv::StringRecord::new();
    while reader.read_record(&mut record).unwrap_or_else(|e| fail(e)) {
        read(&record, &headers).unwrap_or_else(|e| fail(e));
    }
}

/// The values of a file of JSON lines.
#[must_use]
pub fn read_json_lines<T: DeserializeOwned>(path: &Path) -> Vec<T> {
    let text = read_text(path);
    let read = |(line, json): (usize, &str)| {
        serde_json::from_str(json)
            .unwrap_or_else(|error| panic!("{}:{}: {error}", path.display(), line + 1))
    };
    text.lines().enumerate().map(read).collect()
}

/// A file's text.
#[must_use]
pub fn read_text(path: &Path) -> String {
    let mut text = String::new();
    open(path)
        .read_to_string(&mut text)
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    text
}

fn open(path: &Path) -> Box<dyn Read> {
    let file = File::open(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    if path.extension().is_some_and(|extension| extension == "gz") {
        Box::new(GzDecoder::new(file))
    } else {
        Box::new(file)
    }
}

/// Unix seconds, rounded down, of PostgreSQL's timestamp text; without a zone it is UTC.
#[must_use]
pub fn unix_seconds(text: &str) -> i64 {
    time(text).timestamp()
}

fn time(text: &str) -> DateTime<Utc> {
    NaiveDateTime::parse_from_str(text, "%Y-%m-%d %H:%M:%S%.f")
        .map(|time| time.and_utc())
        .or_else(|_| DateTime::parse_from_str(text, "%Y-%m-%d %H:%M:%S%.f%#z").map(|t| t.to_utc()))
        .unwrap_or_else(|error| panic!("{text:?} is not a timestamp: {error}"))
}
