//! Long work can be cancelled: it calls a function `check_interrupts` often, which does not return when the work is to
//! end.

use std::cell::Cell;

/// Interrupts are checked at least once in this many bytes read or written.
pub(crate) const CHECKED_BYTES: usize = 64 * 1024;

/// Interrupts are checked at least once in this many items.
const CHECKED_ITEMS: u32 = 256;

/// Counts items and bytes of work, and checks for interrupts when there were enough of them.
pub(crate) struct Interrupts<'a> {
    check: &'a dyn Fn(),
    items: Cell<u32>,
    bytes: Cell<usize>,
}

impl<'a> Interrupts<'a> {
    pub(crate) fn new(check: &'a dyn Fn()) -> Self {
        Interrupts { check, items: Cell::new(0), bytes: Cell::new(0) }
    }

    /// Counts one item.
    pub(crate) fn item(&self) {
        self.items.set(self.items.get() + 1);
        if self.items.get() >= CHECKED_ITEMS {
            self.check();
        }
    }

    /// Counts this many bytes.
    pub(crate) fn bytes(&self, bytes: usize) {
        self.bytes.set(self.bytes.get().saturating_add(bytes));
        if self.bytes.get() >= CHECKED_BYTES {
            self.check();
        }
    }

    /// The bytes in pieces, after each of which interrupts are checked.
    pub(crate) fn pieces<'b>(&self, bytes: &'b [u8]) -> impl Iterator<Item = &'b [u8]> {
        bytes.chunks(CHECKED_BYTES).inspect(|piece| self.bytes(piece.len()))
    }

    /// The length of a text in characters.
    pub(crate) fn chars(&self, text: &str) -> usize {
        let first_bytes = |piece: &[u8]| piece.iter().filter(begins_char).count();
        self.pieces(text.as_bytes()).map(first_bytes).sum()
    }

    /// The byte at which a text's character of this number begins; the length of the text, if it has fewer.
    pub(crate) fn char_start(&self, text: &str, number: usize) -> usize {
        let (mut before, mut left) = (0, number);
        for piece in self.pieces(text.as_bytes()) {
            let mut starts = piece.iter().enumerate().filter(|(_, byte)| begins_char(byte));
            if let Some((place, _)) = starts.nth(left) {
                return before + place;
            }
            left -= piece.iter().filter(begins_char).count();
            before += piece.len();
        }
        text.len()
    }

    pub(crate) fn check(&self) {
        self.items.set(0);
        self.bytes.set(0);
        (self.check)();
    }
}

fn begins_char(byte: &&u8) -> bool {
    **byte & 0xc0 != 0x80
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_are_counted_across_pieces() {
        let interrupts = Interrupts::new(&|| {});
        for text in ["", "a", "é", "aé漢🎉", &"漢".repeat(50_000), &"a🎉".repeat(40_000)] {
            let starts: Vec<usize> = text.char_indices().map(|(start, _)| start).collect();
            assert_eq!(interrupts.chars(text), starts.len());
            for number in [0, 1, 2, 21_845, 21_846, starts.len().saturating_sub(1), starts.len()] {
                let start = starts.get(number).copied().unwrap_or(text.len());
                assert_eq!(interrupts.char_start(text, number), start, "{number}");
            }
        }
    }

    #[test]
    fn interrupts_are_checked_by_items_and_by_bytes() {
        let checked = Cell::new(0);
        let check = || checked.set(checked.get() + 1);
        let interrupts = Interrupts::new(&check);
        (0..1000).for_each(|_| interrupts.item());
        assert_eq!(checked.get(), 3);
        assert_eq!(interrupts.pieces(&[0; 10 * CHECKED_BYTES]).count(), 10);
        assert_eq!(checked.get(), 13);
        // Not more often than needed.
        interrupts.bytes(64_000);
        assert_eq!(checked.get(), 13);
    }
}
