//! Faults and load for as long as one likes: readers while tables change, killed processes, cancelled statements, calls
//! by the thousand, copies. `make soak` gives each test its share of the time; otherwise each takes a few seconds.

#[path = "../keys/cluster.rs"]
#[allow(dead_code)]
mod cluster;
#[path = "../server/common/mod.rs"]
mod common;
#[path = "../keys/graph.rs"]
#[allow(dead_code)]
mod graph;
#[path = "../keys/secret_file.rs"]
#[allow(dead_code)]
mod secret_file;

mod calls;
mod cancels;
mod copies;
mod kills;
mod memory;
mod service;
mod snapshots;
mod states;

use std::time::{Duration, Instant};

/// The configuration of a cluster with a standby that is read all the time: a row that it still needs stays, and a
/// change of a table waits for its readers.
const CONFIGURATION: &str = "
max_connections = 50
hot_standby_feedback = on
max_standby_streaming_delay = -1
";

/// The time of one test.
#[derive(Clone, Copy)]
struct Share {
    end: Instant,
    /// Whether figures are asserted that a slow or busy machine misses.
    is_long: bool,
}

impl Share {
    /// From now on: what GRAPH_KERNEL_SOAK_SECONDS says, or `short` seconds.
    fn begin(short: u64) -> Self {
        let given = std::env::var("GRAPH_KERNEL_SOAK_SECONDS").ok();
        let seconds = given.as_ref().map_or(short, |given| {
            given.parse().unwrap_or_else(|_| panic!("GRAPH_KERNEL_SOAK_SECONDS: {given:?}"))
        });
        Share { end: Instant::now() + Duration::from_secs(seconds), is_long: given.is_some() }
    }

    /// The next of so many equal parts of what is left.
    fn part(self, parts: u32) -> Self {
        Share { end: Instant::now() + self.left() / parts, ..self }
    }

    fn left(self) -> Duration {
        self.end.saturating_duration_since(Instant::now())
    }

    fn is_over(self) -> bool {
        self.left().is_zero()
    }
}
