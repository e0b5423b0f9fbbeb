//! Chunking a log: the time grows with its events.

use std::time::Duration;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use kernel::chunking::chunker::Chunker;
use kernel::chunking::event::{EventKind, LogOffset, RecorderEvent};
use kernel::chunking::policy::ChunkingPolicy;

/// Chunks this many events, a command for every four outputs, and keeps no chunk.
fn chunk(texts: &[String], events: i64) {
    let mut chunker = Chunker::new(ChunkingPolicy::default(), || {});
    for (ordinal, text) in (0..events).zip(texts.iter().cycle()) {
        let is_command = ordinal % 5 == 0;
        chunker.push(&RecorderEvent {
            offset: LogOffset { segment_id: ordinal / 1000, ordinal, byte_offset: ordinal * 100 },
            event_id: "evt-0000000001",
            pane_id: ordinal / 50 % 3,
            session_id: Some("session"),
            occurred_at_ms: ordinal * 300,
            kind: if is_command { EventKind::Ingress } else { EventKind::Egress },
            text,
        });
        while chunker.next_chunk().expect("no chunk is too large").is_some() {}
    }
    chunker.finish();
}

fn chunking(criterion: &mut Criterion) {
    let texts: Vec<String> =
        (0..1000).map(|i| "line of output 0123456789 ".repeat(i % 9) + "\r\n").collect();
    let mut group = criterion.benchmark_group("chunking");
    group.sample_size(10).measurement_time(Duration::from_secs(4));
    for events in [1_000, 10_000, 100_000, 1_000_000] {
        group.throughput(Throughput::Elements(events as u64));
        group.bench_with_input(BenchmarkId::from_parameter(events), &events, |bencher, events| {
            bencher.iter(|| chunk(&texts, *events));
        });
    }
}

criterion_group!(benches, chunking);
criterion_main!(benches);
