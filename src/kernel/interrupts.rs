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

    /// The byte at which so many last characters of a text begin; 0, if it has fewer.
    pub(crate) fn last_chars_start(&self, text: &str, chars: usize) -> usize {
        let (mut end, mut left) = (text.len(), chars);
        for piece in text.as_bytes().rchunks(CHECKED_BYTES) {
            if left == 0 {
                break;
            }
            self.bytes(piece.len());
            let start = end - piece.len();
            let mut starts = piece.iter().enumerate().rev().filter(|(_, byte)| begins_char(byte));
            if let Some((place, _)) = starts.nth(left - 1) {
                return start + place;
            }
            left -= piece.iter().filter(begins_char).count();
            end = start;
        }
        end
    }

    /// The length of a text without the white space at its end.
    pub(crate) fn trimmed_end(&self, text: &str) -> usize {
        let mut rest = text;
        while !rest.is_empty() {
            let start = rest.floor_char_boundary(rest.len().saturating_sub(CHECKED_BYTES));
            let trimmed = rest[start..].trim_end().len();
            self.bytes(rest.len() - start - trimmed);
            rest = &rest[..start + trimmed];
            if trimmed > 0 {
                break;
            }
        }
        rest.len()
    }

    /// Adds a text to another one.
    pub(crate) fn append(&self, target: &mut String, text: &str) {
        self.text_pieces(text).for_each(|piece| target.push_str(piece));
    }

    /// A text in pieces, before each of which interrupts are checked.
    pub(crate) fn text_pieces<'b>(&self, mut text: &'b str) -> impl Iterator<Item = &'b str> {
        std::iter::from_fn(move || {
            let (piece, rest) = text.split_at(text.ceil_char_boundary(CHECKED_BYTES));
            self.bytes(piece.len());
            text = rest;
            (!piece.is_empty()).then_some(piece)
        })
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
                let last = match starts.len().checked_sub(number) {
                    Some(first) => starts.get(first).copied().unwrap_or(text.len()),
                    None => 0,
                };
                assert_eq!(interrupts.last_chars_start(text, number), last, "last {number}");
            }
        }
    }

    #[test]
    fn ends_are_trimmed_and_texts_added_across_pieces() {
        let checked = Cell::new(0);
        let check = || checked.set(checked.get() + 1);
        let interrupts = Interrupts::new(&check);
        for text in ["", " ", "a", "a ", "漢\u{3000}", &"é".repeat(50_000)] {
            for space in ["", " ", &"\t".repeat(70_000), &"\u{3000}".repeat(65_537)] {
                let text = format!("{text}{space}");
                assert_eq!(interrupts.trimmed_end(&text), text.trim_end().len());
                let mut added = "x".to_owned();
                interrupts.append(&mut added, &text);
                assert_eq!(added[1..], text);
            }
        }
        checked.set(0);
        interrupts.trimmed_end(&" ".repeat(16 * CHECKED_BYTES));
        assert!(checked.get() >= 15, "{}", checked.get());
        checked.set(0);
        interrupts.last_chars_start(&"é".repeat(8 * CHECKED_BYTES), usize::MAX);
        assert!(checked.get() >= 15, "{}", checked.get());
        checked.set(0);
        interrupts.append(&mut String::new(), &"é".repeat(8 * CHECKED_BYTES));
        assert!(checked.get() >= 15, "{}", checked.get());
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
