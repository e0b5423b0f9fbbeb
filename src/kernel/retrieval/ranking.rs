//! Ranking of turns: which are closest to a query, and whether others without an embedding could have been among them.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::graph::turn::TurnId;
use crate::hex::hex;

/// The most turns a search returns.
pub const MAX_LIMIT: u32 = 1000;

/// The least similarity and salience of a hit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Filters {
    /// The least similarity.
    pub min_similarity: Option<f32>,
    /// The least salience.
    pub min_salience: Option<f32>,
}

/// A turn that was found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hit {
    /// The turn.
    pub id: TurnId,
    /// How similar it is to the query, or how well its words fit.
    pub similarity: f32,
}

impl Eq for Hit {}

/// The better hit is less: by higher similarity, then by lower id.
impl Ord for Hit {
    fn cmp(&self, other: &Self) -> Ordering {
        other.similarity.total_cmp(&self.similarity).then(self.id.cmp(&other.id))
    }
}

impl PartialOrd for Hit {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The best of the turns offered; holds no more than the limit.
pub struct Ranking {
    limit: usize,
    filters: Filters,
    best: BinaryHeap<Hit>,
    passed: usize,
    unknown: usize,
    /// Whether a turn is not there that could have been found.
    is_missing: bool,
}

impl Ranking {
    /// An empty ranking.
    #[must_use]
    pub fn new(limit: u32, filters: Filters) -> Self {
        let limit = limit as usize;
        Ranking {
            limit,
            filters,
            best: BinaryHeap::new(),
            passed: 0,
            unknown: 0,
            is_missing: false,
        }
    }

    /// Adds a turn; without a similarity where it has no embedding.
    pub fn offer(&mut self, id: TurnId, salience: f32, similarity: Option<f32>) {
        if self.filters.min_salience.is_some_and(|least| salience < least) {
            return;
        }
        let Some(similarity) = similarity else {
            self.unknown += 1;
            return;
        };
        if self.filters.min_similarity.is_some_and(|least| similarity < least) {
            return;
        }
        self.passed += 1;
        self.best.push(Hit { id, similarity });
        if self.best.len() > self.limit {
            self.best.pop();
        }
    }

    /// Notes a turn that is not there: it may have been the best.
    pub fn miss(&mut self, salience: f32) {
        self.is_missing |= self.filters.min_salience.is_none_or(|least| salience >= least);
    }

    /// Whether a turn is not there, or turns without an embedding could have filled the limit.
    #[must_use]
    pub fn shortfall(&self) -> bool {
        self.is_missing || self.best.len() < self.limit.min(self.passed + self.unknown)
    }

    /// The best turns, the best first.
    #[must_use]
    pub fn into_hits(self) -> Vec<Hit> {
        self.best.into_sorted_vec()
    }
}

/// SHA-256, in hex, of what was found in order: each turn's 16 id bytes and its similarity as
/// little-endian binary32.
#[must_use]
pub fn result_hash(hits: &[Hit]) -> String {
    let mut hasher = Sha256::new();
    for hit in hits {
        hasher.update(hit.id.as_bytes());
        hasher.update(hit.similarity.to_le_bytes());
    }
    hex(&hasher.finalize())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(n: u128) -> TurnId {
        TurnId::from_u128(n)
    }

    fn ranking(limit: u32, filters: Filters, offered: &[(u128, f32, Option<f32>)]) -> Ranking {
        let mut ranking = Ranking::new(limit, filters);
        for (n, salience, similarity) in offered {
            ranking.offer(id(*n), *salience, *similarity);
        }
        ranking
    }

    fn found(ranking: Ranking) -> Vec<u128> {
        ranking.into_hits().iter().map(|hit| hit.id.as_u128()).collect()
    }

    #[test]
    fn the_best_come_first_and_ties_go_by_id() {
        let offered =
            [(3, 1.0, Some(0.5)), (1, 1.0, Some(0.9)), (2, 1.0, Some(0.5)), (4, 1.0, Some(-1.0))];
        assert_eq!(found(ranking(3, Filters::default(), &offered)), [1, 2, 3]);
        let mut backwards = offered;
        backwards.reverse();
        assert_eq!(found(ranking(3, Filters::default(), &backwards)), [1, 2, 3]);
    }

    #[test]
    fn filters_include_their_bounds() {
        let filters = Filters { min_similarity: Some(0.5), min_salience: Some(0.2) };
        let offered =
            [(1, 0.2, Some(0.5)), (2, 0.2, Some(0.499)), (3, 0.19, Some(0.9)), (4, 0.9, Some(0.7))];
        assert_eq!(found(ranking(9, filters, &offered)), [4, 1]);
    }

    #[test]
    fn a_shortfall_is_what_a_turn_without_embedding_could_have_filled() {
        let none = Filters::default();
        let with = |limit, filters, offered: &[_]| ranking(limit, filters, offered).shortfall();
        assert!(!with(5, none, &[(1, 1.0, Some(0.1))]), "all turns were found");
        assert!(with(2, none, &[(1, 1.0, Some(0.1)), (2, 1.0, None)]));
        assert!(!with(1, none, &[(1, 1.0, Some(0.1)), (2, 1.0, None)]), "the limit is full");
        let salient = Filters { min_salience: Some(0.5), ..none };
        assert!(!with(2, salient, &[(1, 1.0, Some(0.1)), (2, 0.4, None)]), "filtered either way");
        let similar = Filters { min_similarity: Some(0.5), ..none };
        assert!(!with(2, similar, &[(1, 1.0, Some(0.1))]), "known not to be similar enough");
        assert!(with(2, similar, &[(1, 1.0, None)]));
    }

    #[test]
    fn the_result_hash_depends_on_order_and_similarity() {
        let a = Hit { id: id(1), similarity: 0.5 };
        let b = Hit { id: id(2), similarity: 0.5 };
        let other = Hit { similarity: 0.500_000_06, ..a };
        let hashes =
            [vec![], vec![a], vec![other], vec![a, b], vec![b, a]].map(|h| result_hash(&h));
        for (i, one) in hashes.iter().enumerate() {
            assert!(hashes[..i].iter().all(|earlier| earlier != one));
        }
    }
}
