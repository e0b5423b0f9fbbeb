//! Glue: joins a short command to its output, and a tiny tail to the chunk before it.
//!
//! Two passes over the sequence, each holding back one chunk, so that the sequence streams.

use super::chunk::{Beginning, Direction, Draft};
use super::policy::ChunkingPolicy;

/// The two passes.
#[derive(Default)]
pub(super) struct Glue {
    command: Option<Draft>,
    left: Option<Draft>,
}

impl Glue {
    /// Takes the next chunk; gives back one that no later chunk can be joined to.
    pub fn push(&mut self, policy: &ChunkingPolicy, draft: Draft) -> [Option<Draft>; 2] {
        match self.command.take() {
            Some(command) if is_output_of(policy, &command, &draft) => {
                [self.pass(policy, join(command, draft, Direction::MixedGlued)), None]
            }
            Some(command) => [self.pass(policy, command), self.hold_back(policy, draft)],
            None => [self.hold_back(policy, draft), None],
        }
    }

    /// What is held back, in order.
    pub fn flush(&mut self, policy: &ChunkingPolicy) -> [Option<Draft>; 2] {
        let command = self.command.take();
        [command.and_then(|command| self.pass(policy, command)), self.left.take()]
    }

    /// The first pass: a short command waits for its output.
    fn hold_back(&mut self, policy: &ChunkingPolicy, draft: Draft) -> Option<Draft> {
        if draft.direction == Direction::Ingress && draft.text_chars < policy.min_chunk_chars() {
            self.command = Some(draft);
            return None;
        }
        self.pass(policy, draft)
    }

    /// The second pass: every chunk waits for its tail.
    fn pass(&mut self, policy: &ChunkingPolicy, draft: Draft) -> Option<Draft> {
        match self.left.take() {
            Some(left) if is_tail_of(policy, &left, &draft) => {
                let direction = left.direction;
                self.left = Some(join(left, draft, direction));
                None
            }
            left => {
                self.left = Some(draft);
                left
            }
        }
    }
}

fn is_output_of(policy: &ChunkingPolicy, command: &Draft, output: &Draft) -> bool {
    output.began_by == Beginning::DirectionChange
        && output.direction == Direction::Egress
        && can_join(policy, command, output)
}

/// The limit that split two chunks also forbids to join them. The exception is a left chunk that was joined to a later
/// command since: its window is measured from that command.
fn is_tail_of(policy: &ChunkingPolicy, left: &Draft, right: &Draft) -> bool {
    right.began_by == Beginning::SoftSplit
        && right.body_chars() < policy.min_chunk_chars()
        && can_join(policy, left, right)
}

fn can_join(policy: &ChunkingPolicy, left: &Draft, right: &Draft) -> bool {
    left.pane_id == right.pane_id
        && left.end.segment_id == right.start.segment_id
        && right.start.ordinal <= left.end.ordinal.saturating_add(1)
        && right.start_ms.saturating_sub(left.latest_ms) <= policy.merge_window_ms()
        && left.text_chars + 1 + right.body_chars() <= policy.max_chunk_chars()
        && left.event_ids.len() + right.event_ids.len() <= policy.max_chunk_events()
        && left.latest_ms.max(right.latest_ms).saturating_sub(left.start_ms)
            <= policy.max_window_ms()
}

fn join(mut left: Draft, right: Draft, direction: Direction) -> Draft {
    left.text.push('\n');
    left.text.push_str(right.body());
    left.text_chars += 1 + right.body_chars();
    left.direction = direction;
    left.join_session(right.session_id.as_deref());
    left.end = right.end;
    left.end_char = right.end_char;
    left.end_ms = right.end_ms;
    left.latest_ms = left.latest_ms.max(right.latest_ms);
    left.event_ids.extend(right.event_ids);
    left.id_bytes += right.id_bytes;
    left
}
