//! Resume points: where chunking can begin in the middle of a log.

use super::event::{EventKind, RecorderEvent};
use super::policy::ChunkingPolicy;

/// What decides whether chunking can begin at an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventPlace {
    /// Segment and ordinal.
    pub position: (i64, i64),
    /// The pane.
    pub pane_id: i64,
    /// The time, in milliseconds.
    pub occurred_at_ms: i64,
    /// What the event does.
    pub kind: EventKind,
}

impl From<&RecorderEvent<'_>> for EventPlace {
    fn from(event: &RecorderEvent<'_>) -> Self {
        EventPlace {
            position: event.offset.position(),
            pane_id: event.pane_id,
            occurred_at_ms: event.occurred_at_ms,
            kind: event.kind,
        }
    }
}

/// Whether a log chunked from `event` on gives the same chunks from there as the whole log does;
/// `before` is the event before it.
#[must_use]
pub fn is_resume_point(policy: &ChunkingPolicy, before: &EventPlace, event: &EventPlace) -> bool {
    let jump = event.occurred_at_ms.saturating_sub(before.occurred_at_ms);
    before.kind == EventKind::Boundary
        || before.pane_id != event.pane_id
        || jump > policy.hard_gap_ms().max(policy.merge_window_ms())
        || (before.kind, event.kind) == (EventKind::Egress, EventKind::Ingress)
}
