//! Properties of chunking, for every log of recorder events and every policy.

use graph_kernel_tests::recorder::chunks_of;
use kernel::chunking::POLICY_VERSION;
use kernel::chunking::chunk::{Chunk, Direction};
use kernel::chunking::event::{EventKind, JsonEvent, LogOffset, RecorderEvent, events_of_json};
use kernel::chunking::policy::ChunkingPolicy;
use kernel::chunking::resume::{EventPlace, is_resume_point};
use kernel::chunking::span::{Span, SpanEnd};
use kernel::graph::content::sha256_hex;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::json;

use crate::cases;

/// An event that owns its texts.
#[derive(Clone, Debug)]
struct Owned {
    offset: LogOffset,
    event_id: String,
    pane_id: i64,
    session_id: Option<&'static str>,
    ms: i64,
    kind: EventKind,
    text: String,
}

impl Owned {
    fn event(&self) -> RecorderEvent<'_> {
        RecorderEvent {
            offset: self.offset,
            event_id: &self.event_id,
            pane_id: self.pane_id,
            session_id: self.session_id,
            occurred_at_ms: self.ms,
            kind: self.kind,
            text: if self.kind == EventKind::Boundary { "" } else { &self.text },
        }
    }

    fn json(&self) -> serde_json::Value {
        let event_type = match self.kind {
            EventKind::Ingress => "ingress_text",
            EventKind::Egress => "egress_output",
            EventKind::Boundary => "control_marker",
        };
        json!({
            "offset": self.offset, "event_id": self.event_id, "pane_id": self.pane_id,
            "session_id": self.session_id, "occurred_at_ms": self.ms, "event_type": event_type,
            "text": self.text,
        })
    }
}

/// Logs that often reach the limits: texts as long as chunks, gaps as long as windows, and times that go back.
fn logs() -> impl Strategy<Value = Vec<Owned>> {
    let kind = prop_oneof![
        8 => Just(EventKind::Egress), 5 => Just(EventKind::Ingress), 1 => Just(EventKind::Boundary),
    ];
    let pane = prop_oneof![9 => Just(1i64), 1 => Just(2i64)];
    let step = prop_oneof![
        6 => 0..40i64, 2 => select(vec![99, 100, 101, 199, 200, 201, 301]), 1 => -400..0i64,
    ];
    let letter = select(vec!['a', 'é', '🎉', '漢', ' ', '\n', '\r', '\t', '\u{2028}', '\u{200d}']);
    let text = prop::collection::vec(letter, 0..45).prop_map(String::from_iter);
    let session = select(vec![Some("s"), Some("s"), Some("s"), Some("t"), None]);
    let drawn = (kind, pane, step, text, session, 0..12u8, 0..20u8);
    prop::collection::vec(drawn, 0..30).prop_map(|drawn| {
        let mut offset = LogOffset { segment_id: 0, ordinal: 0, byte_offset: 0 };
        let mut ms = 0;
        let event = |(kind, pane_id, step, text, session_id, hole, new_segment)| {
            offset.ordinal += if hole == 0 { 2 } else { 1 };
            if new_segment == 0 {
                offset.segment_id += 1;
                offset.ordinal = 0;
            }
            offset.byte_offset += 7;
            ms += step;
            let event_id = format!("e{}-{}", offset.segment_id, offset.ordinal);
            Owned { offset, event_id, pane_id, session_id, ms, kind, text }
        };
        drawn.into_iter().map(event).collect()
    })
}

fn policies() -> impl Strategy<Value = ChunkingPolicy> {
    let chars = prop_oneof![1 => 1..8u32, 5 => 8..120u32];
    (chars, 1..8u32, 0..400u32, 0..220u32, 0..90u32, 0..220u32, 0..40u32).prop_map(
        |(chars, events, window, gap, min, merge, overlap)| {
            let json = json!({
                "max_chunk_chars": chars, "max_chunk_events": events, "max_window_ms": window,
                "hard_gap_ms": gap, "min_chunk_chars": min, "merge_window_ms": merge,
                "overlap_chars": overlap,
            });
            json.to_string().parse().unwrap()
        },
    )
}

fn events(log: &[Owned]) -> Vec<RecorderEvent<'_>> {
    log.iter().map(Owned::event).collect()
}

fn within<'a>(events: &'a [RecorderEvent<'a>], chunk: &Chunk) -> &'a [RecorderEvent<'a>] {
    let at = |offset: LogOffset| events.iter().position(|event| event.offset == offset).unwrap();
    &events[at(chunk.start)..=at(chunk.end)]
}

fn body(chunk: &Chunk) -> String {
    let overlap = chunk.overlap.as_ref().map_or(0, |overlap| overlap.chars + 1);
    chunk.text.chars().skip(overlap).collect()
}

/// The text that the log holds between the ends of a chunk.
fn replayed(events: &[RecorderEvent<'_>], chunk: &Chunk) -> String {
    let end =
        |offset: LogOffset, char: usize| SpanEnd { position: offset.position(), char: char as i64 };
    let mut span =
        Span::new(end(chunk.start, chunk.start_char), end(chunk.end, chunk.end_char), || {});
    let pieces = within(events, chunk).iter().filter_map(|event| span.piece(event).unwrap());
    let texts: Vec<String> = pieces.map(|piece| piece.text).collect();
    span.finish().unwrap();
    texts.join("\n")
}

proptest! {
    #![proptest_config(cases(250))]

    #[test]
    fn no_limit_is_exceeded(log in logs(), policy in policies()) {
        let events = events(&log);
        for chunk in chunks_of(&policy, &events) {
            prop_assert_eq!(chunk.text.chars().count(), chunk.text_chars);
            prop_assert!(chunk.text_chars <= policy.max_chunk_chars());
            prop_assert!(chunk.event_ids.len() <= policy.max_chunk_events());
            let times = within(&events, &chunk).iter().map(|event| event.occurred_at_ms);
            let latest = times.max().unwrap();
            prop_assert!(latest - chunk.occurred_at_start_ms <= policy.max_window_ms());
        }
    }

    #[test]
    fn no_hard_boundary_is_crossed(log in logs(), policy in policies()) {
        let events = events(&log);
        for chunk in chunks_of(&policy, &events) {
            let events = within(&events, &chunk);
            let mut changes = 0;
            for event in events {
                prop_assert_eq!(event.pane_id, chunk.pane_id);
                prop_assert!(event.kind != EventKind::Boundary);
            }
            for pair in events.windows(2) {
                let step = pair[1].occurred_at_ms - pair[0].occurred_at_ms;
                prop_assert!(step <= policy.hard_gap_ms());
                if pair[0].kind != pair[1].kind {
                    changes += 1;
                    prop_assert_eq!((pair[0].kind, pair[1].kind), (EventKind::Ingress, EventKind::Egress));
                    let typed = events.iter().filter(|event| event.kind == EventKind::Ingress);
                    let latest = typed.map(|event| event.occurred_at_ms).max().unwrap();
                    prop_assert!(pair[1].occurred_at_ms - latest <= policy.merge_window_ms());
                    prop_assert_eq!(pair[0].offset.segment_id, pair[1].offset.segment_id);
                    prop_assert!(pair[1].offset.ordinal <= pair[0].offset.ordinal + 1);
                }
            }
            prop_assert_eq!(changes, usize::from(chunk.direction == Direction::MixedGlued));
            prop_assert!(changes == 0 || policy.min_chunk_chars() > 0);
        }
    }

    #[test]
    fn each_character_is_in_one_chunk(log in logs(), policy in policies()) {
        let events = events(&log);
        let chunks = chunks_of(&policy, &events);
        let mut next = 0;
        for event in events.iter().filter(|event| event.kind != EventKind::Boundary) {
            let chars = event.contribution(&|| {}).chars().count();
            let mut done = 0;
            while done < chars {
                let chunk = &chunks[next];
                let from = if chunk.start == event.offset { chunk.start_char } else { 0 };
                let to = if chunk.end == event.offset { chunk.end_char } else { chars };
                prop_assert_eq!(from, done);
                prop_assert!(to > from);
                done = to;
                next += usize::from(chunk.end == event.offset);
            }
            prop_assert_eq!(done, chars);
        }
        prop_assert_eq!(next, chunks.len());
    }

    #[test]
    fn spans_replay_to_text_and_hashes(log in logs(), policy in policies()) {
        let events = events(&log);
        for chunk in chunks_of(&policy, &events) {
            prop_assert_eq!(replayed(&events, &chunk), body(&chunk));
            let overlap = chunk.overlap.as_ref();
            let before = overlap.map_or(String::new(), |overlap| overlap.text.clone() + "\n");
            prop_assert_eq!(&(before + &body(&chunk)), &chunk.text);
            prop_assert_eq!(&sha256_hex(chunk.text.as_bytes()), &chunk.content_hash);
            let key = format!(
                "{POLICY_VERSION}:{}:{}:{}:{}:{}",
                chunk.pane_id, chunk.direction.name(), chunk.start.ordinal, chunk.end.ordinal, chunk.content_hash
            );
            prop_assert_eq!(&sha256_hex(key.as_bytes()), &chunk.chunk_id);
            let ids: Vec<&str> = within(&events, &chunk).iter().map(|event| event.event_id).collect();
            prop_assert_eq!(ids, chunk.event_ids);
        }
    }

    #[test]
    fn overlap_is_the_end_of_the_chunk_before(log in logs(), policy in policies()) {
        let events = events(&log);
        let chunks = chunks_of(&policy, &events);
        prop_assert!(chunks.first().is_none_or(|first| first.overlap.is_none()));
        for pair in chunks.windows(2) {
            let (before, chunk) = (&pair[0], &pair[1]);
            let Some(overlap) = &chunk.overlap else { continue };
            prop_assert_eq!(&overlap.from_chunk_id, &before.chunk_id);
            prop_assert_eq!(overlap.source_end_offset, before.end);
            prop_assert!(before.text.ends_with(&overlap.text));
            prop_assert_eq!(overlap.text.chars().count(), overlap.chars);
            prop_assert!(overlap.chars <= policy.overlap_chars().min(policy.max_chunk_chars() / 2));
            // The two halves are of one run: same pane and direction, and nothing between them.
            prop_assert_eq!(before.pane_id, chunk.pane_id);
            let run = [within(&events, before).last().unwrap(), &within(&events, chunk)[0]];
            prop_assert_eq!(run[0].kind, run[1].kind);
            let between = events.iter().filter(|e| run[0].offset < e.offset && e.offset < run[1].offset);
            prop_assert_eq!(between.count(), 0);
        }
    }

    #[test]
    fn the_order_of_arrival_does_not_matter(
        (log, shuffled) in logs().prop_flat_map(|log| (Just(log.clone()), Just(log).prop_shuffle())),
        policy in policies(),
    ) {
        let array = serde_json::Value::from_iter(shuffled.iter().map(Owned::json)).to_string();
        let read = events_of_json(&array, &|| {}).unwrap();
        let shuffled: Vec<RecorderEvent<'_>> = read.iter().map(JsonEvent::event).collect();
        prop_assert_eq!(chunks_of(&policy, &shuffled), chunks_of(&policy, &events(&log)));
    }

    #[test]
    fn chunking_from_a_resume_point_is_chunking_from_the_start(log in logs(), policy in policies()) {
        let events = events(&log);
        let chunks = chunks_of(&policy, &events);
        for index in 1..events.len() {
            let [before, event] = [&events[index - 1], &events[index]].map(EventPlace::from);
            if is_resume_point(&policy, &before, &event) {
                let from: Vec<Chunk> =
                    chunks.iter().filter(|c| c.start.position() >= event.position).cloned().collect();
                prop_assert_eq!(chunks_of(&policy, &events[index..]), from);
            }
        }
    }

    #[test]
    fn later_events_change_the_open_chunk_only(log in logs(), policy in policies(), cut in 0..30usize) {
        let events = events(&log);
        let whole = chunks_of(&policy, &events);
        let part = chunks_of(&policy, &events[..cut.min(events.len())]);
        let open: Vec<bool> = part.iter().map(|chunk| chunk.is_open).collect();
        let last_only: Vec<bool> = (1..=part.len()).map(|n| n == part.len()).collect();
        prop_assert_eq!(open, last_only);
        let closed = part.len().saturating_sub(1);
        prop_assert_eq!(&whole[..closed], &part[..closed]);
    }
}

#[test]
fn a_gap_that_splits_nothing_is_no_resume_point() {
    let policy = ChunkingPolicy::default();
    let place = |ms| EventPlace {
        position: (0, ms),
        pane_id: 1,
        occurred_at_ms: ms,
        kind: EventKind::Ingress,
    };
    assert!(!is_resume_point(&policy, &place(0), &place(policy.hard_gap_ms())));
    assert!(is_resume_point(&policy, &place(0), &place(policy.hard_gap_ms() + 1)));
}
