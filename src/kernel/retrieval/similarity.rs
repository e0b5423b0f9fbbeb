//! The similarity of two embeddings: exact, and the same bits on every machine.

use std::fmt;

use sha2::{Digest, Sha256};

use crate::hex::hex;
use crate::named_enum::named_enum;

/// The most dimensions an embedding has: what pgvector stores.
pub const MAX_DIMENSIONS: usize = 16_000;

named_enum! {
    /// What an operator of pgvector measures; the operator is its name.
    Distance {
        /// The angle.
        Cosine = "<=>",
        /// The inner product, negated.
        InnerProduct = "<#>",
        /// The length of the difference.
        Euclidean = "<->",
        /// The sum of the differences.
        Taxicab = "<+>",
    }
}

/// Why an array is not a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EmbeddingError {
    /// It has no element, or more than [`MAX_DIMENSIONS`].
    Dimensions(usize),
    /// An element is NULL, NaN or infinite; counted from 1.
    NotFinite(usize),
    /// All elements are zero, which gives no direction, and the distance is an angle.
    Zero,
}

impl fmt::Display for EmbeddingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dimensions(n) => {
                write!(f, "query embedding has {n} dimensions, not 1 to {MAX_DIMENSIONS}")
            }
            Self::NotFinite(n) => {
                write!(f, "element {n} of the query embedding is NULL, NaN or infinite")
            }
            Self::Zero => f.write_str("query embedding is all zeros and has no direction"),
        }
    }
}

/// A stored embedding has other dimensions than the query: both numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OtherDimensions {
    /// Those of the stored one.
    pub stored: usize,
    /// Those of the query.
    pub query: usize,
}

/// The embedding of a question.
#[derive(Clone, Debug, PartialEq)]
pub struct QueryEmbedding {
    values: Vec<f32>,
    distance: Distance,
    norm: f64,
}

impl QueryEmbedding {
    /// A query of these elements, to be compared by this distance.
    ///
    /// # Errors
    /// See [`EmbeddingError`].
    pub fn new(elements: &[Option<f32>], distance: Distance) -> Result<Self, EmbeddingError> {
        if elements.is_empty() || elements.len() > MAX_DIMENSIONS {
            return Err(EmbeddingError::Dimensions(elements.len()));
        }
        let mut values = Vec::with_capacity(elements.len());
        for (index, element) in elements.iter().enumerate() {
            let finite = element.filter(|value| value.is_finite());
            values.push(finite.ok_or(EmbeddingError::NotFinite(index + 1))?);
        }
        let norm = dot(&values, &values).sqrt();
        if norm == 0.0 && distance == Distance::Cosine {
            return Err(EmbeddingError::Zero);
        }
        Ok(QueryEmbedding { values, distance, norm })
    }

    /// The elements.
    #[must_use]
    pub fn values(&self) -> &[f32] {
        &self.values
    }

    /// SHA-256 of the elements as little-endian binary32, in hex.
    #[must_use]
    pub fn hash(&self) -> String {
        let mut hasher = Sha256::new();
        for value in &self.values {
            hasher.update(value.to_le_bytes());
        }
        hex(&hasher.finalize())
    }

    /// How similar a stored embedding is; a greater number is closer. `None` if that is not defined: if an element is
    /// not finite, or if all are zero and the distance is an angle.
    ///
    /// Cosine: −1 to 1. Inner product: itself. Else 1 / (1 + distance). Sums are taken in binary64
    /// in the order of the elements and rounded to binary32 once, so the bits depend on nothing else.
    ///
    /// # Errors
    /// The dimensions differ.
    pub fn similarity(&self, stored: &[f32]) -> Result<Option<f32>, OtherDimensions> {
        if stored.len() != self.values.len() {
            return Err(OtherDimensions { stored: stored.len(), query: self.values.len() });
        }
        if !stored.iter().all(|value| value.is_finite()) {
            return Ok(None);
        }
        let differences =
            || self.values.iter().zip(stored).map(|(a, b)| f64::from(*a) - f64::from(*b));
        let similarity = match self.distance {
            Distance::Cosine => {
                let norm = dot(stored, stored).sqrt();
                if norm == 0.0 {
                    return Ok(None);
                }
                (dot(&self.values, stored) / (self.norm * norm)).clamp(-1.0, 1.0)
            }
            Distance::InnerProduct => dot(&self.values, stored),
            Distance::Euclidean => 1.0 / (1.0 + differences().map(|d| d * d).sum::<f64>().sqrt()),
            Distance::Taxicab => 1.0 / (1.0 + differences().map(f64::abs).sum::<f64>()),
        };
        // Adding zero turns −0 into 0, so that equal values have the same bits.
        Ok(Some((similarity as f32).clamp(f32::MIN, f32::MAX) + 0.0))
    }
}

fn dot(a: &[f32], b: &[f32]) -> f64 {
    a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(values: &[f32], distance: Distance) -> QueryEmbedding {
        let elements: Vec<Option<f32>> = values.iter().copied().map(Some).collect();
        QueryEmbedding::new(&elements, distance).unwrap()
    }

    #[test]
    fn similarities_are_the_textbook_ones() {
        let cases = [
            (Distance::Cosine, 0.96),
            (Distance::InnerProduct, 24.0),
            (Distance::Euclidean, 1.0 / (1.0 + 2f64.sqrt())),
            (Distance::Taxicab, 1.0 / 3.0),
        ];
        for (distance, expected) in cases {
            let found = query(&[3.0, 4.0], distance).similarity(&[4.0, 3.0]);
            assert_eq!(found, Ok(Some(expected as f32)), "{distance:?}");
        }
    }

    #[test]
    fn cosine_ignores_length_and_stays_within_its_range() {
        let long: Vec<f32> = (0..1000).map(|n| (n as f32).sin()).collect();
        let longer: Vec<f32> = long.iter().map(|value| value * 1e30).collect();
        let against: Vec<f32> = long.iter().map(|value| -value).collect();
        let query = query(&long, Distance::Cosine);
        assert_eq!(query.similarity(&longer), Ok(Some(1.0)));
        assert_eq!(query.similarity(&against), Ok(Some(-1.0)));
    }

    #[test]
    fn the_largest_numbers_stay_finite() {
        let most = [f32::MAX; 4];
        for distance in Distance::ALL.iter().copied() {
            let similarity = query(&most, distance).similarity(&most).unwrap().unwrap();
            assert!(similarity.is_finite(), "{distance:?}: {similarity}");
        }
    }

    #[test]
    fn what_cannot_be_compared_has_no_similarity() {
        let query = query(&[1.0, 0.0], Distance::Cosine);
        for odd in [[0.0, 0.0], [f32::NAN, 1.0], [1.0, f32::INFINITY]] {
            assert_eq!(query.similarity(&odd), Ok(None), "{odd:?}");
        }
        assert_eq!(query.similarity(&[1.0]), Err(OtherDimensions { stored: 1, query: 2 }));
    }

    #[test]
    fn bad_queries_are_refused() {
        let new = |elements: &[Option<f32>]| QueryEmbedding::new(elements, Distance::Cosine);
        assert_eq!(new(&[]), Err(EmbeddingError::Dimensions(0)));
        let many = vec![Some(1.0); MAX_DIMENSIONS + 1];
        assert_eq!(new(&many), Err(EmbeddingError::Dimensions(MAX_DIMENSIONS + 1)));
        for odd in [None, Some(f32::NAN), Some(f32::NEG_INFINITY)] {
            assert_eq!(new(&[Some(1.0), odd]), Err(EmbeddingError::NotFinite(2)));
        }
        assert_eq!(new(&[Some(0.0), Some(-0.0)]), Err(EmbeddingError::Zero));
        assert!(QueryEmbedding::new(&[Some(0.0)], Distance::Euclidean).is_ok());
    }

    #[test]
    fn a_query_is_hashed_by_its_binary32_bytes() {
        // printf '\0\0\x80\x3f\0\0\0\xbf' | sha256sum
        let expected = "e5e0ce39fac89cd93af5ba8bcad2fe35d88c75417c7e44941fe5ee4e48f1cf75";
        let hash = query(&[1.0, -0.5], Distance::Cosine).hash();
        assert_eq!(hash, expected);
    }
}
