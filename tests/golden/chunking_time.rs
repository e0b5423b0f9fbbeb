//! How long chunking takes, and that it grows with the events and no faster.

use std::time::{Duration, Instant};

use kernel::chunking::chunker::Chunker;
use kernel::chunking::event::{EventKind, Offset, RecorderEvent};
use kernel::chunking::policy::ChunkingPolicy;

/// Chunks this many events, a command for every four outputs, and keeps no chunk.
fn chunking(events: i64) -> Duration {
    let texts: Vec<String> =
        (0..1000).map(|i| "line of output 0123456789 ".repeat(i % 9) + "\r\n").collect();
    let start = Instant::now();
    let mut chunker = Chunker::new(ChunkingPolicy::default());
    for (ordinal, text) in (0..events).zip(texts.iter().cycle()) {
        let is_command = ordinal % 5 == 0;
        chunker.push(&RecorderEvent {
            offset: Offset { segment_id: ordinal / 1000, ordinal, byte_offset: ordinal * 100 },
            event_id: "evt-0000000001",
            pane_id: ordinal / 50 % 3,
            session_id: Some("session"),
            occurred_at_ms: ordinal * 300,
            kind: if is_command { EventKind::Ingress } else { EventKind::Egress },
            text,
        });
        while chunker.next_chunk().is_some() {}
    }
    chunker.finish();
    start.elapsed()
}

#[test]
#[ignore = "long"]
fn time_grows_with_the_events() {
    let sizes = [1_000, 10_000, 100_000, 1_000_000];
    let times = sizes.map(|events| (0..3).map(|_| chunking(events)).min().unwrap());
    for (events, time) in sizes.iter().zip(times) {
        println!("{events} events: {time:.1?}");
    }
    // Ten times the events; twice that would be no line any more.
    assert!(times[3] < times[2] * 20, "{times:.1?}");
    if !cfg!(debug_assertions) {
        assert!(times[1] <= Duration::from_millis(50), "{times:.1?}");
    }
}
