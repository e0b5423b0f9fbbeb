//! The chunker: events in, chunks out.

use std::collections::VecDeque;

use super::chunk::{
    Beginning, Chunk, ChunkTooLarge, Direction, Draft, DraftOverlap, MAX_CHUNK_BYTES,
};
use super::event::{EventKind, LogOffset, RecorderEvent};
use super::glue::Glue;
use super::policy::ChunkingPolicy;
use crate::interrupts::Interrupts;

/// Makes chunks of events in log order.
///
/// Give events with [`Chunker::push`], and take what is ready with [`Chunker::next_chunk`] after each. At the end of
/// the log, or of the pane if each pane is chunked by itself, call [`Chunker::finish`].
pub struct Chunker {
    policy: ChunkingPolicy,
    check_interrupts: fn(),
    open: Option<Draft>,
    cut: Option<CutEvent>,
    glue: Glue,
    ready: VecDeque<Chunk>,
    last_id: Option<String>,
    /// The log cannot be chunked further.
    too_large: Option<ChunkTooLarge>,
}

/// A contribution that does not fit into one chunk. Its pieces are made one at a time, when they are asked for.
struct CutEvent {
    event: EventFacts,
    contribution: String,
    byte: usize,
    char: usize,
    chars: usize,
}

/// What a chunk keeps of an event.
#[derive(Clone)]
struct EventFacts {
    offset: LogOffset,
    event_id: String,
    pane_id: i64,
    session_id: Option<String>,
    ms: i64,
    direction: Direction,
}

impl Chunker {
    /// A chunker at the start of a log or at a resume point. `check_interrupts` is called before each event
    /// and piece of one, and within long ones.
    #[must_use]
    pub fn new(policy: ChunkingPolicy, check_interrupts: fn()) -> Self {
        Chunker {
            policy,
            check_interrupts,
            open: None,
            cut: None,
            glue: Glue::default(),
            ready: VecDeque::new(),
            last_id: None,
            too_large: None,
        }
    }

    /// Takes the next event in log order. Nothing, once a chunk was too large.
    pub fn push(&mut self, event: &RecorderEvent<'_>) {
        while self.cut.is_some() {
            self.cut_piece();
        }
        if self.too_large.is_some() {
            return;
        }
        (self.check_interrupts)();
        let direction = match event.kind {
            EventKind::Ingress => Direction::Ingress,
            EventKind::Egress => Direction::Egress,
            EventKind::Boundary => return self.close(),
        };
        let contribution = event.contribution(&self.check_interrupts);
        let chars = Interrupts::new(&self.check_interrupts).chars(&contribution);
        let began_by = match &mut self.open {
            None => Beginning::Hard,
            Some(open) if is_apart(&self.policy, open, event) => {
                self.close();
                Beginning::Hard
            }
            Some(open) if open.direction != direction => {
                self.close();
                Beginning::DirectionChange
            }
            Some(open) if has_room(&self.policy, open, event, chars) => {
                if let Err(error) = open.append(event, &contribution, chars) {
                    self.stop(error);
                }
                return;
            }
            // It stays open for the overlap.
            Some(_) => Beginning::SoftSplit,
        };
        let facts = EventFacts {
            offset: event.offset,
            event_id: event.event_id.to_owned(),
            pane_id: event.pane_id,
            session_id: event.session_id.map(str::to_owned),
            ms: event.occurred_at_ms,
            direction,
        };
        self.begin(CutEvent { event: facts, contribution, byte: 0, char: 0, chars }, began_by);
    }

    /// The next finished chunk, if there is one yet.
    ///
    /// # Errors
    /// Where the next one would be too large.
    pub fn next_chunk(&mut self) -> Result<Option<Chunk>, ChunkTooLarge> {
        while self.ready.is_empty() && self.cut.is_some() {
            self.cut_piece();
        }
        match (self.ready.pop_front(), self.too_large) {
            (None, Some(error)) => Err(error),
            (chunk, _) => Ok(chunk),
        }
    }

    /// Ends the log: the chunks still held back get ready, the last one marked open.
    pub fn finish(&mut self) {
        while self.cut.is_some() {
            self.cut_piece();
        }
        self.close();
        let [first, last] = self.glue.flush(&self.policy);
        if let Some(draft) = first {
            self.emit(draft, false);
        }
        if let Some(draft) = last {
            self.emit(draft, true);
        }
        self.last_id = None;
    }

    fn cut_piece(&mut self) {
        (self.check_interrupts)();
        if let Some(cut) = self.cut.take() {
            self.begin(cut, Beginning::SoftSplit);
        }
    }

    /// Drops what is not finished: no later chunk would be right.
    fn stop(&mut self, error: ChunkTooLarge) {
        (self.open, self.cut, self.glue) = (None, None, Glue::default());
        self.too_large.get_or_insert(error);
    }

    /// Begins a chunk with as much of a contribution as fits, and keeps the rest to be cut. The open chunk, if a soft
    /// split left one, gives the overlap.
    fn begin(&mut self, mut cut: CutEvent, began_by: Beginning) {
        let max = self.policy.max_chunk_chars();
        let left = cut.chars - cut.char;
        // What fits whole is not split for the sake of overlap; a piece has one character at least.
        let room = max.saturating_sub(1 + if left <= max { left } else { 1 });
        let overlap = self.open.as_ref().map_or(0, |open| {
            self.policy.overlap_chars().min(max / 2).min(room).min(open.text_chars)
        });
        let interrupts = Interrupts::new(&self.check_interrupts);
        let glue = if overlap > 0 { overlap + 1 } else { 0 };
        let taken = left.min(max - glue);
        let rest = &cut.contribution[cut.byte..];
        let bytes = if taken == left { rest.len() } else { interrupts.char_start(rest, taken) };
        let mut text = String::new();
        let mut repeated = None;
        if let Some(open) = self.open.as_ref().filter(|_| overlap > 0) {
            text.push_str(open.tail(overlap, &self.check_interrupts));
            repeated =
                Some(DraftOverlap { chars: overlap, bytes: text.len(), source_end: open.end });
            text.push('\n');
        }
        let is_too_large = text.len() + bytes > MAX_CHUNK_BYTES;
        if !is_too_large {
            interrupts.append(&mut text, &rest[..bytes]);
        }
        self.close();
        if is_too_large {
            return self.stop(ChunkTooLarge { start: cut.event.offset });
        }
        let event = &cut.event;
        self.open = Some(Draft {
            began_by,
            pane_id: event.pane_id,
            session_id: event.session_id.clone(),
            direction: event.direction,
            start: event.offset,
            start_char: cut.char,
            end: event.offset,
            end_char: cut.char + taken,
            event_ids: vec![event.event_id.clone()],
            id_bytes: event.event_id.len(),
            start_ms: event.ms,
            end_ms: event.ms,
            latest_ms: event.ms,
            text,
            text_chars: glue + taken,
            overlap: repeated,
        });
        cut.byte += bytes;
        cut.char += taken;
        self.cut = (cut.char < cut.chars && self.too_large.is_none()).then_some(cut);
    }

    fn close(&mut self) {
        let Some(open) = self.open.take() else { return };
        for draft in self.glue.push(&self.policy, open).into_iter().flatten() {
            self.emit(draft, false);
        }
    }

    fn emit(&mut self, draft: Draft, is_open: bool) {
        if self.too_large.is_some() {
            return;
        }
        if !draft.fits(0, 0) {
            return self.stop(ChunkTooLarge { start: draft.start });
        }
        let chunk = draft.finish(self.last_id.as_deref(), is_open, &self.check_interrupts);
        self.last_id = Some(chunk.chunk_id.clone());
        self.ready.push_back(chunk);
    }
}

/// Whether an event is of another pane, or too late, to be in one chunk with those before it.
fn is_apart(policy: &ChunkingPolicy, open: &Draft, event: &RecorderEvent<'_>) -> bool {
    let gap_ms = event.occurred_at_ms.saturating_sub(open.end_ms);
    open.pane_id != event.pane_id || gap_ms > policy.hard_gap_ms()
}

/// Whether a chunk keeps its limits with an event that contributes this many characters.
fn has_room(
    policy: &ChunkingPolicy,
    open: &Draft,
    event: &RecorderEvent<'_>,
    chars: usize,
) -> bool {
    let window_ms = open.latest_ms.max(event.occurred_at_ms).saturating_sub(open.start_ms);
    open.text_chars + 1 + chars <= policy.max_chunk_chars()
        && open.event_ids.len() < policy.max_chunk_events()
        && window_ms <= policy.max_window_ms()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(ordinal: i64, ms: i64, kind: EventKind, text: &str) -> RecorderEvent<'_> {
        RecorderEvent {
            offset: LogOffset { segment_id: 0, ordinal, byte_offset: 0 },
            event_id: "e",
            pane_id: 1,
            session_id: None,
            occurred_at_ms: ms,
            kind,
            text,
        }
    }

    fn sizes(policy: &str, events: &[RecorderEvent<'_>]) -> Vec<usize> {
        let mut chunker = Chunker::new(policy.parse().unwrap(), || {});
        events.iter().for_each(|event| chunker.push(event));
        chunker.finish();
        let chunks = std::iter::from_fn(|| chunker.next_chunk().unwrap());
        chunks.map(|chunk| chunk.event_ids.len()).collect()
    }

    /// How many chunks there are before one that is too large, and the ordinal at which that begins.
    fn before_too_large(policy: &str, events: &[RecorderEvent<'_>]) -> Option<(usize, i64)> {
        let mut chunker = Chunker::new(policy.parse().unwrap(), || {});
        let mut count = 0;
        for event in events {
            chunker.push(event);
            while let Ok(Some(_)) = chunker.next_chunk() {
                count += 1;
            }
        }
        chunker.finish();
        loop {
            match chunker.next_chunk() {
                Ok(Some(_)) => count += 1,
                Ok(None) => return None,
                Err(error) => {
                    assert_eq!(chunker.next_chunk(), Err(error), "nothing comes after it");
                    return Some((count, error.start.ordinal));
                }
            }
        }
    }

    #[test]
    fn a_chunk_is_bounded_in_bytes_whatever_its_characters_are() {
        let policy = r#"{"max_chunk_chars":16777216,"max_chunk_events":65536,"min_chunk_chars":16777216,
            "merge_window_ms":2147483647,"max_window_ms":2147483647,"overlap_chars":16777216}"#;
        let third = "漢".repeat(MAX_CHUNK_BYTES / 9);
        let texts = |count: i64| -> Vec<RecorderEvent<'_>> {
            (0..count).map(|n| event(n, n, EventKind::Egress, &third)).collect()
        };
        assert_eq!(before_too_large(policy, &texts(2)), None);
        // By the characters of the policy all of these are one chunk.
        assert_eq!(before_too_large(policy, &texts(3)), Some((0, 0)));
        // One event alone, after another chunk, which was held back for its tail.
        let long = "🎉".repeat(MAX_CHUNK_BYTES / 4);
        let boundary = event(1, 1, EventKind::Boundary, "");
        let events = [texts(1)[0], boundary, event(2, 2, EventKind::Ingress, &long)];
        assert_eq!(before_too_large(policy, &events), Some((0, 2)));
        // With its overlap: half of the characters before and half of the next.
        let half = r#"{"max_chunk_chars":8388608,"overlap_chars":16777216,"min_chunk_chars":0}"#;
        let cut = "é".repeat(MAX_CHUNK_BYTES / 2 + 1);
        assert_eq!(before_too_large(half, &[event(0, 0, EventKind::Egress, &cut)]), None);
        let cut = "漢".repeat(MAX_CHUNK_BYTES / 2);
        assert_eq!(before_too_large(half, &[event(0, 0, EventKind::Egress, &cut)]), Some((0, 0)));
        // A short command and its output: each fits, both together do not.
        let command = event(0, 0, EventKind::Ingress, &third);
        let two = third.repeat(2);
        let output = event(1, 1, EventKind::Egress, &two);
        assert_eq!(before_too_large(policy, &[command, output]), Some((0, 0)));
        // The ids of its events.
        let id = "i".repeat(4096);
        let named: Vec<_> = (0..5000)
            .map(|n| RecorderEvent { event_id: &id, ..event(n, n, EventKind::Egress, "x") })
            .collect();
        assert_eq!(before_too_large(policy, &named[..4096]), None);
        assert_eq!(before_too_large(policy, &named), Some((0, 0)));
    }

    #[test]
    fn a_tail_is_glued_where_a_command_of_a_later_time_has_moved_the_window() {
        let mut events = vec![event(0, 10_000, EventKind::Ingress, "run")];
        let times = [0, 25_000, 50_000, 75_000, 100_000, 120_000, 125_000];
        events.extend((1..).zip(times).map(|(n, ms)| event(n, ms, EventKind::Egress, "x")));
        assert_eq!(sizes("default", &events), [8]);
        assert_eq!(sizes(r#"{"merge_window_ms":4000}"#, &events), [7, 1]);
        assert_eq!(sizes(r#"{"min_chunk_chars":0}"#, &events), [1, 6, 1]);
    }

    #[test]
    fn a_cut_ends_however_small_a_chunk_is() {
        let events = [event(0, 0, EventKind::Egress, "12345")];
        for (chars, pieces) in [(1, 11), (2, 6), (3, 7), (4, 5), (11, 1)] {
            let policy = format!(r#"{{"max_chunk_chars":{chars}}}"#);
            assert_eq!(sizes(&policy, &events).len(), pieces, "{chars}");
        }
    }
}
