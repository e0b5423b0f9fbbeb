//! The lexemes of a `tsvector`, read from its bytes.

/// The lexemes of a `tsvector`: sorted by bytes, each with the number of its positions.
pub struct Lexemes<'a> {
    entries: &'a [[u8; 4]],
    /// The texts of the lexemes, each with its positions behind it.
    texts: &'a [u8],
}

impl<'a> Lexemes<'a> {
    /// Those in the bytes behind the header of a value: how many there are, an entry for each, their texts.
    pub(super) fn of(bytes: &'a [u8]) -> Self {
        let (count, rest) = bytes.split_first_chunk().unwrap_or((&[0; 4], &[]));
        let entries = rest.as_chunks().0;
        let count = (u32::from_ne_bytes(*count) as usize).min(entries.len());
        Lexemes { entries: &entries[..count], texts: &rest[4 * count..] }
    }

    /// How many there are.
    pub fn len(&self) -> u32 {
        self.entries.len() as u32
    }

    /// How often it has this lexeme, as far as positions are kept, which is up to 255 times; 1 where none are.
    pub fn count(&self, lexeme: &str) -> u32 {
        let found = self.entries.binary_search_by(|entry| self.text(*entry).cmp(lexeme.as_bytes()));
        found.map_or(0, |place| self.positions(self.entries[place]))
    }

    /// Its lexemes' bytes.
    pub fn iter(&self) -> impl Iterator<Item = &'a [u8]> {
        self.entries.iter().map(|entry| self.text(*entry))
    }

    fn text(&self, entry: [u8; 4]) -> &'a [u8] {
        let Entry { begin, length, .. } = Entry::of(entry);
        self.texts.get(begin..begin + length).unwrap_or_default()
    }

    fn positions(&self, entry: [u8; 4]) -> u32 {
        let Entry { has_positions, begin, length } = Entry::of(entry);
        // Their number, aligned.
        let at = (begin + length).next_multiple_of(2);
        let count = self.texts.get(at..at + 2).filter(|_| has_positions);
        count.and_then(|count| count.try_into().ok()).map_or(1, u16::from_ne_bytes).max(1).into()
    }
}

/// `WordEntry`: whether there are positions, the length in bytes, and where the text begins.
struct Entry {
    has_positions: bool,
    length: usize,
    begin: usize,
}

impl Entry {
    fn of(bytes: [u8; 4]) -> Self {
        let entry = u32::from_ne_bytes(bytes);
        // C puts the first field of a bit field into the bits of the byte with the lowest address.
        let (has_positions, length, begin) = if cfg!(target_endian = "little") {
            (entry & 1, entry >> 1 & 0x7ff, entry >> 12)
        } else {
            (entry >> 31, entry >> 20 & 0x7ff, entry & 0xf_ffff)
        };
        Entry { has_positions: has_positions == 1, length: length as usize, begin: begin as usize }
    }
}
