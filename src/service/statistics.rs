//! The statistics of calls as rows, and the version of the library.

use pgrx::{PgLogLevel, PgSqlErrorCode};
use serde_json::{Map, Value};

use crate::pg::error::SqlError;
use crate::pg::private::version;
use crate::pg::statistics::{self, BUCKET_BOUNDS, CallCounts, WordKind, counts};

/// What was counted of one function.
pub struct StatisticsRow {
    /// Its name.
    pub function: String,
    /// Calls, those that failed included.
    pub calls: i64,
    /// Their time in milliseconds.
    pub total_time: f64,
    /// Upper bounds in milliseconds, as text, with the number of calls that took no longer.
    pub histogram: Value,
    /// Turns read from the tables.
    pub turns_read: i64,
    /// Turns selected into slices.
    pub turns_selected: i64,
    /// Words of errors with their counts.
    pub errors: Value,
    /// Results of verifications with their counts.
    pub verifications: Value,
}

/// Sets the statistics of this database to zero.
pub fn reset() {
    statistics::reset();
}

/// The version of this library.
pub fn version() -> &'static str {
    version::of_library()
}

/// The statistics of this database, by name. None, with a NOTICE, where nothing is counted.
pub fn rows() -> Vec<StatisticsRow> {
    let Some(counts) = counts() else {
        SqlError::new(
            PgSqlErrorCode::ERRCODE_SUCCESSFUL_COMPLETION,
            "graph_kernel is not preloaded, so calls are not counted",
        )
        .hint("Add graph_kernel to shared_preload_libraries and restart the server.")
        .report(PgLogLevel::NOTICE);
        return Vec::new();
    };
    let mut rows: Vec<StatisticsRow> = counts.into_iter().map(row).collect();
    rows.sort_by(|a, b| a.function.cmp(&b.function));
    rows
}

fn row(counts: CallCounts) -> StatisticsRow {
    let mut cumulative = 0;
    let bounds = BUCKET_BOUNDS.iter().map(|bound| (*bound as f64 / 1e3).to_string());
    let buckets = bounds.chain(["+Inf".to_owned()]).zip(counts.buckets).map(|(bound, count)| {
        cumulative += count;
        (bound, cumulative.into())
    });
    let histogram = Value::Object(buckets.collect());
    let words = |kind: WordKind| {
        let mut words = Map::new();
        for (_, word, count) in counts.words.iter().filter(|(of, _, _)| *of == kind) {
            // A word that is counted while the counters are reset may have two places.
            let before = words.get(word).and_then(Value::as_u64).unwrap_or_default();
            words.insert(word.clone(), (before + count).into());
        }
        Value::Object(words)
    };
    StatisticsRow {
        calls: counts.calls as i64,
        total_time: counts.nanoseconds as f64 / 1e6,
        histogram,
        turns_read: counts.turns_read as i64,
        turns_selected: counts.turns_selected as i64,
        errors: words(WordKind::Error),
        verifications: words(WordKind::Verification),
        function: counts.function,
    }
}
