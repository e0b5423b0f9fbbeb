//! Recorder events: what is accepted is in log order, reads back, and makes chunks within their limits.

use std::sync::LazyLock;

use graph_kernel_tests::recorder::chunks_of;
use kernel::chunking::event::{EventKind, JsonEvent, RecorderEvent, events_of_json};
use kernel::chunking::policy::ChunkingPolicy;
use serde_json::{Value, json};

use crate::is_message;
use crate::memory::bounded;

/// The default, and one whose limits every event meets.
static POLICIES: LazyLock<[ChunkingPolicy; 2]> = LazyLock::new(|| {
    let small =
        r#"{"max_chunk_chars":9,"max_chunk_events":3,"overlap_chars":4,"min_chunk_chars":5}"#;
    [ChunkingPolicy::default(), small.parse().unwrap()]
});

fn json_of(event: &RecorderEvent<'_>) -> Value {
    let event_type = match event.kind {
        EventKind::Ingress => "ingress_text",
        EventKind::Egress => "egress_output",
        EventKind::Boundary => "control_marker",
    };
    json!({
        "offset": event.offset, "event_id": event.event_id, "pane_id": event.pane_id,
        "session_id": event.session_id, "occurred_at_ms": event.occurred_at_ms,
        "event_type": event_type, "text": event.text,
    })
}

/// An array of events.
pub fn events(text: &str) {
    let read = bounded(text.len(), || events_of_json(text, &|| ()));
    let Ok(stored) = read.map_err(is_message) else { return };
    let events: Vec<RecorderEvent<'_>> = stored.iter().map(JsonEvent::event).collect();
    assert!(events.is_sorted_by_key(RecorderEvent::log_order));
    let written = Value::from_iter(events.iter().map(json_of)).to_string();
    assert_eq!(events_of_json(&written, &|| ()), Ok(stored.clone()));
    for policy in &*POLICIES {
        let chunks = chunks_of(policy, &events);
        for chunk in &chunks {
            assert_eq!(chunk.text.chars().count(), chunk.text_chars);
            assert!(chunk.text_chars <= policy.max_chunk_chars());
            assert!((1..=policy.max_chunk_events()).contains(&chunk.event_ids.len()));
        }
        assert_eq!(chunks_of(policy, &events), chunks);
    }
}
