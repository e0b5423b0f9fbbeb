//! One list of two: by embeddings and by words.

use sha2::{Digest, Sha256};

use crate::graph::turn::TurnId;
use crate::hex::hex;

/// How many of each list are looked at, where fewer are asked for.
pub const MIN_LIST: u32 = 128;

/// What is weaker counts as much, so that it is something as the seed of a policy, and one score without bounds, as an
/// inner product can be, hides no other.
pub const MIN_STRENGTH: f32 = 0.000_001;

/// What a question was asked by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked {
    /// Its embedding.
    pub embedding: bool,
    /// Its words.
    pub words: bool,
}

/// A turn of either list, with both scores.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Candidate {
    /// The turn.
    pub id: TurnId,
    /// How similar it is to the query; `None` where it has no embedding.
    pub similarity: Option<f32>,
    /// How well its words fit; 0 where none does.
    pub words: f64,
}

/// A turn that a search of the whole graph has found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Found {
    /// The turn.
    pub id: TurnId,
    /// How well it fits the question, from [`MIN_STRENGTH`] to 1.
    pub strength: f32,
    /// How similar it is to the query; `None` where that was not asked or it has no embedding.
    pub similarity: Option<f32>,
    /// How well its words fit; `None` where that was not asked.
    pub words: Option<f32>,
}

/// The best of these turns, so many, by higher strength, then by lower id. Each score is divided by the best one of its
/// list, and counts half; the whole where the question was asked by that list alone. A negative score counts 0, and a
/// list whose best score is 0 counts nothing; what counts nothing in all is not found. In binary64, rounded to binary32
/// once; what is below [`MIN_STRENGTH`] is that, in the order of what it was.
#[must_use]
pub fn strongest(candidates: &[Candidate], asked: Asked, limit: u32) -> Vec<Found> {
    let similarity = |turn: &Candidate| turn.similarity.map_or(0.0, f64::from);
    let words = |turn: &Candidate| turn.words;
    let best = |score: &dyn Fn(&Candidate) -> f64| candidates.iter().map(score).fold(0.0, f64::max);
    let (most_similar, best_words) = (best(&similarity), best(&words));
    let share = |score: f64, best: f64| if best > 0.0 { score.max(0.0) / best } else { 0.0 };
    let found = candidates.iter().map(|turn| {
        let by_embedding = share(similarity(turn), most_similar);
        let by_words = share(turn.words, best_words);
        let strength = match (asked.embedding, asked.words) {
            (true, true) => 0.5 * by_embedding + 0.5 * by_words,
            (true, false) => by_embedding,
            (false, _) => by_words,
        };
        let found = Found {
            id: turn.id,
            strength: (strength as f32).max(MIN_STRENGTH),
            similarity: turn.similarity.filter(|_| asked.embedding),
            words: asked.words.then_some(turn.words as f32),
        };
        (strength.min(f64::from(MIN_STRENGTH)), found)
    });
    let mut found: Vec<(f64, Found)> = found.filter(|(weak, _)| *weak > 0.0).collect();
    found.sort_unstable_by(|(weak_a, a), (weak_b, b)| {
        let by_strength = b.strength.total_cmp(&a.strength).then(weak_b.total_cmp(weak_a));
        by_strength.then(a.id.cmp(&b.id))
    });
    found.truncate(limit as usize);
    found.into_iter().map(|(_, found)| found).collect()
}

/// SHA-256, in hex, of what was found in order: each turn's 16 id bytes and its strength as little-endian binary32.
#[must_use]
pub fn found_hash(found: &[Found]) -> String {
    let mut hasher = Sha256::new();
    for turn in found {
        hasher.update(turn.id.as_bytes());
        hasher.update(turn.strength.to_le_bytes());
    }
    hex(&hasher.finalize())
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOTH: Asked = Asked { embedding: true, words: true };

    fn turn(n: u128, similarity: impl Into<Option<f32>>, words: f64) -> Candidate {
        Candidate { id: TurnId::from_u128(n), similarity: similarity.into(), words }
    }

    fn strengths(candidates: &[Candidate], asked: Asked) -> Vec<(u128, f32)> {
        let found = strongest(candidates, asked, 9);
        found.iter().map(|turn| (turn.id.as_u128(), turn.strength)).collect()
    }

    #[test]
    fn each_list_counts_half_of_its_best() {
        let turns = [turn(1, 0.5, 0.0), turn(2, 0.25, 4.0), turn(3, None, 2.0), turn(4, -1.0, 1.0)];
        assert_eq!(strengths(&turns, BOTH), [(2, 0.75), (1, 0.5), (3, 0.25), (4, 0.125)]);
        let embedding = Asked { words: false, ..BOTH };
        assert_eq!(strengths(&turns, embedding), [(1, 1.0), (2, 0.5)]);
        let words = Asked { embedding: false, ..BOTH };
        assert_eq!(strengths(&turns, words), [(2, 1.0), (3, 0.5), (4, 0.25)]);
    }

    #[test]
    fn a_list_without_a_score_counts_nothing() {
        let turns = [turn(2, 0.5, 0.0), turn(1, 0.5, 0.0), turn(3, 0.25, 0.0)];
        assert_eq!(strengths(&turns, BOTH), [(1, 0.5), (2, 0.5), (3, 0.25)]);
        assert_eq!(strengths(&[turn(1, -0.5, 0.0), turn(2, None, 0.0)], BOTH), []);
    }

    #[test]
    fn what_is_too_weak_for_a_seed_is_as_weak_as_one_can_be() {
        let turns = [turn(1, 1e30, 0.0), turn(2, 1.0, 0.0), turn(3, 2.0, 0.0), turn(4, 0.0, 0.0)];
        let embedding = Asked { words: false, ..BOTH };
        assert_eq!(strengths(&turns, embedding), [(1, 1.0), (3, 1e-6), (2, 1e-6)]);
        assert_eq!(strongest(&turns, embedding, 1).len(), 1);
    }
}
