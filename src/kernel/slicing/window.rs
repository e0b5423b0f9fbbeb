//! Around how many anchors a batch reads together.

/// Most anchors of a window.
pub(crate) const MOST_ANCHORS: usize = 1024;

/// Most turns that the slices of a window are likely to have together.
const MOST_TURNS: usize = 16_384;

/// Anchors whose surroundings are read together, for the slices at them to be taken one by one. A window is
/// wider than the one before: should no more slices be wanted, little was read in vain.
#[derive(Clone, Copy, Default)]
pub(crate) struct Window {
    anchors: usize,
    /// How many of the anchors had their turn.
    taken: usize,
    /// Slices that were taken in this window and those before.
    slices: usize,
    /// The turns that they have.
    turns: usize,
}

impl Window {
    /// The window, when no more of its anchors come.
    pub(crate) fn ended(self) -> Self {
        Window { taken: self.anchors, ..self }
    }

    /// Whether all anchors had their turn.
    pub(crate) fn is_over(&self) -> bool {
        self.taken >= self.anchors
    }

    /// Begins the next window, over some of so many anchors. Returns over how many.
    pub(crate) fn begin_next(&mut self, of: usize) -> usize {
        let likely = MOST_TURNS * self.slices.max(1) / self.turns.max(1);
        self.anchors = (4 * self.anchors).min(likely).clamp(1, MOST_ANCHORS).min(of);
        self.taken = 0;
        self.anchors
    }

    /// Goes on to the next anchor. At this one was a slice of so many turns, or none.
    pub(crate) fn take(&mut self, turns: Option<usize>) {
        self.taken += 1;
        self.slices += usize::from(turns.is_some());
        self.turns += turns.unwrap_or(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sizes of the windows over slices of so many turns each.
    fn windows(mut anchors: usize, turns: usize) -> Vec<usize> {
        let (mut window, mut sizes) = (Window::default(), Vec::new());
        while anchors > 0 {
            if window.is_over() {
                sizes.push(window.begin_next(anchors));
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
