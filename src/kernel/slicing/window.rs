//! The number of anchors whose surroundings are read together.

/// The most turns that the slices of a window are expected to have together.
const MAX_TURNS: usize = 16_384;

/// Anchors whose surroundings are read together; their slices are then taken one by one. It grows gradually, so that an
/// early stop wastes little.
#[derive(Clone, Copy, Default)]
pub(crate) struct Window {
    anchors: usize,
    /// The anchors whose slices were taken.
    taken: usize,
    /// Slices that were taken in this window and those before.
    slices: usize,
    /// The turns of these slices.
    turns: usize,
}

impl Window {
    /// The window, ended before its last anchor.
    pub(crate) fn ended(self) -> Self {
        Window { taken: self.anchors, ..self }
    }

    /// Whether the slices at all its anchors were taken.
    pub(crate) fn is_over(&self) -> bool {
        self.taken >= self.anchors
    }

    /// Begins the next window, of at most `most` anchors where `of` are left, and returns its size.
    pub(crate) fn begin_next(&mut self, of: usize, most: usize) -> usize {
        let likely = MAX_TURNS * self.slices.max(1) / self.turns.max(1);
        self.anchors = (4 * self.anchors).min(likely).clamp(1, most.max(1)).min(of);
        self.taken = 0;
        self.anchors
    }

    /// Counts an anchor as taken; its slice had this many turns, or there was none.
    pub(crate) fn take(&mut self, turns: Option<usize>) {
        self.taken += 1;
        self.slices += usize::from(turns.is_some());
        self.turns += turns.unwrap_or(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sizes of the windows where each slice has this many turns.
    fn windows(mut anchors: usize, turns: usize) -> Vec<usize> {
        let (mut window, mut sizes) = (Window::default(), Vec::new());
        while anchors > 0 {
            if window.is_over() {
                sizes.push(window.begin_next(anchors, 1024));
            }
            window.take(Some(turns));
            anchors -= 1;
        }
        sizes
    }

    #[test]
    fn windows_widen_until_they_are_likely_to_hold_much() {
        assert_eq!(windows(1, 1), [1]);
        assert_eq!(windows(4000, 1), [1, 4, 16, 64, 256, 1024, 1024, 1024, 587]);
        assert_eq!(windows(200, 256), [1, 4, 16, 64, 64, 51]);
        assert_eq!(windows(3, 100_000), [1, 1, 1]);
    }
}
