//! How well the words of a turn fit those of a question: BM25, exact, and the same bits on every machine.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BinaryHeap};

use crate::graph::turn::TurnId;

/// The most lexemes of a question that count: of more, the rarest.
pub const MAX_LEXEMES: usize = 128;

/// The most turns whose words are held, where they are counted for one question, and an eighth of the most words.
pub const MAX_MATCHES: usize = 1_000_000;

const K1: f64 = 1.2;
const B: f64 = 0.75;

/// What is known of the turns that have words.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Corpus {
    /// How many there are.
    pub turns: u64,
    /// How many different lexemes one has on average.
    pub mean_length: f64,
}

impl Corpus {
    /// Of so many turns that have so many different lexemes together, each turn's counted.
    #[must_use]
    pub fn new(turns: u64, lexemes: u64) -> Self {
        Corpus { turns, mean_length: lexemes as f64 / (turns as f64).max(1.0) }
    }
}

/// What is taken for it before anybody has counted.
impl Default for Corpus {
    fn default() -> Self {
        Corpus { turns: 100_000, mean_length: 16.0 }
    }
}

/// Scores the words of turns for one question.
#[derive(Clone, Debug, PartialEq)]
pub struct WordScorer {
    /// By bytes, each with its weight.
    lexemes: Vec<(String, f64)>,
    mean_length: f64,
}

impl WordScorer {
    /// For a question of these lexemes, each with the number of turns that have it, 1 where that is not known. Of more
    /// than [`MAX_LEXEMES`] the rarest count, of those as rare the first by bytes, and last those not known: most are
    /// in no turn.
    #[must_use]
    pub fn new(corpus: Corpus, lexemes: impl IntoIterator<Item = (String, Option<u64>)>) -> Self {
        let lexemes: BTreeMap<String, Option<u64>> = lexemes.into_iter().collect();
        let mut lexemes: Vec<(String, Option<u64>)> = lexemes.into_iter().collect();
        lexemes.sort_by_key(|(_, with)| with.unwrap_or(u64::MAX));
        lexemes.truncate(MAX_LEXEMES);
        lexemes.sort_unstable();
        let weight = |(lexeme, with): (String, Option<u64>)| {
            // Counts may be of different moments.
            let (turns, with) = (corpus.turns as f64, with.unwrap_or(1).min(corpus.turns) as f64);
            (lexeme, natural_logarithm(1.0 + (turns - with + 0.5) / (with + 0.5)))
        };
        let lexemes = lexemes.into_iter().map(weight).collect();
        WordScorer { lexemes, mean_length: corpus.mean_length.max(1.0) }
    }

    /// The lexemes that count, by bytes.
    pub fn lexemes(&self) -> impl Iterator<Item = &str> {
        self.lexemes.iter().map(|(lexeme, _)| lexeme.as_str())
    }

    /// The score of a turn with so many different lexemes, which has each so many times: a sum in binary64 in the order
    /// of the lexemes' bytes; 0 where it has none.
    pub fn score(&self, length: u32, count: impl Fn(&str) -> u32) -> f64 {
        let relative = f64::from(length) / self.mean_length;
        let damping = K1 * ((1.0 - B) + B * relative);
        let mut score = 0.0;
        for (lexeme, weight) in &self.lexemes {
            let count = f64::from(count(lexeme));
            if count > 0.0 {
                score += weight * ((count * (K1 + 1.0)) / (count + damping));
            }
        }
        score
    }
}

/// A turn and its score; the better one is less: by higher score, then by lower id.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WordHit {
    /// The turn.
    pub id: TurnId,
    /// How well its words fit, above 0.
    pub score: f64,
}

impl Eq for WordHit {}

impl Ord for WordHit {
    fn cmp(&self, other: &Self) -> Ordering {
        other.score.total_cmp(&self.score).then(self.id.cmp(&other.id))
    }
}

impl PartialOrd for WordHit {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The best of the turns offered; holds no more than the limit.
pub struct WordRanking {
    limit: usize,
    best: BinaryHeap<WordHit>,
}

impl WordRanking {
    /// An empty ranking.
    #[must_use]
    pub fn new(limit: u32) -> Self {
        WordRanking { limit: limit as usize, best: BinaryHeap::new() }
    }

    /// Adds a turn, unless its score is 0.
    pub fn offer(&mut self, id: TurnId, score: f64) {
        if score <= 0.0 {
            return;
        }
        self.best.push(WordHit { id, score });
        if self.best.len() > self.limit {
            self.best.pop();
        }
    }

    /// The best turns, the best first.
    #[must_use]
    pub fn into_hits(self) -> Vec<WordHit> {
        self.best.into_sorted_vec()
    }
}

/// There are more than [`MAX_MATCHES`] turns with any of the lexemes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooManyMatches;

/// Counts and scores in one pass: of the turns offered and of no other.
pub struct WordPass {
    lexemes: Vec<String>,
    with: Vec<u64>,
    turns: u64,
    lengths: u64,
    matched: Vec<Matched>,
    /// Of all that matched, one after the other: the lexeme's place and its count.
    counts: Vec<(u32, u32)>,
}

struct Matched {
    id: TurnId,
    length: u32,
    /// Where its counts end.
    end: usize,
}

impl WordPass {
    /// For a question of these lexemes.
    #[must_use]
    pub fn new(mut lexemes: Vec<String>) -> Self {
        lexemes.sort_unstable();
        lexemes.dedup();
        WordPass {
            with: vec![0; lexemes.len()],
            lexemes,
            turns: 0,
            lengths: 0,
            matched: Vec::new(),
            counts: Vec::new(),
        }
    }

    /// Adds a turn with so many different lexemes, which has each so many times; `words` is all of them. Asks for each
    /// lexeme of the question, or looks each of the turn's up where these are fewer.
    ///
    /// # Errors
    /// [`TooManyMatches`].
    pub fn offer<'w>(
        &mut self,
        id: TurnId,
        length: u32,
        count: impl Fn(&str) -> u32,
        words: impl Iterator<Item = &'w [u8]>,
    ) -> Result<(), TooManyMatches> {
        self.turns += 1;
        self.lengths += u64::from(length);
        let before = self.counts.len();
        let (with, counts, lexemes) = (&mut self.with, &mut self.counts, &self.lexemes);
        let mut add = |place: usize| {
            let count = count(&lexemes[place]);
            if count > 0 {
                with[place] += 1;
                counts.push((place as u32, count));
            }
        };
        if lexemes.len() <= length as usize {
            (0..lexemes.len()).for_each(&mut add);
        } else {
            let place = |word: &[u8]| lexemes.binary_search_by(|own| own.as_bytes().cmp(word)).ok();
            words.filter_map(place).for_each(&mut add);
        }
        if self.counts.len() > before {
            self.matched.push(Matched { id, length, end: self.counts.len() });
        }
        let is_too_many = self.matched.len() > MAX_MATCHES || self.counts.len() > 8 * MAX_MATCHES;
        if is_too_many { Err(TooManyMatches) } else { Ok(()) }
    }

    /// The score of each turn that has any of the lexemes, in the order in which they were offered. `check_interrupts`
    /// is called often.
    #[must_use]
    pub fn into_scores(self, check_interrupts: &dyn Fn()) -> Vec<(TurnId, f64)> {
        let corpus = Corpus::new(self.turns, self.lengths);
        let with = self.lexemes.iter().cloned().zip(self.with.into_iter().map(Some));
        let scorer = WordScorer::new(corpus, with.filter(|(_, with)| *with > Some(0)));
        let mut begin = 0;
        let score = |(number, turn): (usize, Matched)| {
            if number.is_multiple_of(256) {
                check_interrupts();
            }
            let counts = &self.counts[begin..turn.end];
            begin = turn.end;
            let count = |lexeme: &str| {
                let found =
                    counts.iter().find(|(place, _)| self.lexemes[*place as usize] == lexeme);
                found.map_or(0, |(_, count)| *count)
            };
            (turn.id, scorer.score(turn.length, count))
        };
        self.matched.into_iter().enumerate().map(score).collect()
    }
}

/// The natural logarithm of a normal number above 0, to less than one unit in the last place. Additions,
/// multiplications and divisions alone, in a fixed order: the mathematical libraries of systems differ.
fn natural_logarithm(x: f64) -> f64 {
    const LN2_HIGH: f64 = 0.693_147_180_369_123_8;
    const LN2_LOW: f64 = 1.908_214_929_270_587_7e-10;
    // Of the polynomial for ln((1 + s) / (1 − s)) by FreeBSD's msun.
    const L: [f64; 7] = [
        0.666_666_666_666_673_5,
        0.399_999_999_994_094_2,
        0.285_714_287_436_623_9,
        0.222_221_984_321_497_84,
        0.181_835_721_616_180_5,
        0.153_138_376_992_093_73,
        0.147_981_986_051_165_86,
    ];
    // x is 2^exponent times a number from √½ to √2.
    const ROOT_OF_HALF: u64 = 0x3fe6_a09e_0000_0000;
    const ONE: u64 = 0x3ff0_0000_0000_0000;
    let shifted = x.to_bits().wrapping_add(ONE - ROOT_OF_HALF);
    let exponent = ((shifted >> 52) as i64 - 0x3ff) as f64;
    let f = f64::from_bits((shifted & ((1 << 52) - 1)) + ROOT_OF_HALF) - 1.0;
    let s = f / (2.0 + f);
    let z = s * s;
    let w = z * z;
    let even = w * (L[1] + w * (L[3] + w * L[5]));
    let odd = z * (L[0] + w * (L[2] + w * (L[4] + w * L[6])));
    let half = 0.5 * f * f;
    s * (half + (odd + even)) + exponent * LN2_LOW - half + f + exponent * LN2_HIGH
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scorer(corpus: Corpus, lexemes: &[(&str, u64)]) -> WordScorer {
        let lexemes = lexemes.iter().map(|(lexeme, with)| ((*lexeme).to_owned(), Some(*with)));
        WordScorer::new(corpus, lexemes)
    }

    #[test]
    fn the_logarithm_is_that_of_the_library() {
        let mut x = 1.0;
        while x < 1e12 {
            let (ours, theirs) = (natural_logarithm(x), f64::ln(x));
            assert!((ours - theirs).abs() <= theirs.abs() * f64::EPSILON, "{x}: {ours}, {theirs}");
            x *= 1.000_37;
        }
        assert_eq!(natural_logarithm(1.0), 0.0);
        // l(66667.6…) of bc.
        assert_eq!(natural_logarithm(2.0), std::f64::consts::LN_2);
        assert_eq!(natural_logarithm(1.0 + 100_000.0 / 1.5), 11.107_475_356_749_566);
    }

    #[test]
    fn a_rare_word_in_a_short_turn_counts_most() {
        let scorer =
            scorer(Corpus { turns: 1000, mean_length: 10.0 }, &[("rare", 2), ("often", 500)]);
        let score = |length, of: &[(&str, u32)]| {
            scorer.score(length, |word| of.iter().find(|(w, _)| *w == word).map_or(0, |(_, n)| *n))
        };
        assert_eq!(score(10, &[]), 0.0);
        assert!(score(10, &[("rare", 1)]) > score(10, &[("often", 1)]));
        assert!(score(5, &[("rare", 1)]) > score(10, &[("rare", 1)]));
        assert!(score(10, &[("rare", 2)]) > score(10, &[("rare", 1)]));
        assert!(score(10, &[("rare", 1), ("often", 1)]) > score(10, &[("rare", 1)]));
    }

    #[test]
    fn of_many_lexemes_the_rarest_count() {
        let many = (0..200_u64).map(|n| (format!("w{n:03}"), Some(200 - n)));
        let unknown = (0..200).map(|n| (format!("v{n:03}"), None));
        let scorer = WordScorer::new(Corpus::default(), unknown.clone().chain(many));
        let kept: Vec<&str> = scorer.lexemes().collect();
        assert_eq!((kept.len(), kept[0], kept[127]), (MAX_LEXEMES, "w072", "w199"));
        let scorer = WordScorer::new(Corpus::default(), unknown);
        assert_eq!(scorer.lexemes().last(), Some("v127"));
    }

    #[test]
    fn counts_above_the_number_of_turns_give_a_weight_above_zero() {
        let stale = scorer(Corpus { turns: 3, mean_length: 0.0 }, &[("a", 9)]);
        let score = stale.score(4, |_| 1);
        assert!(score > 0.0 && score.is_finite());
    }
}
