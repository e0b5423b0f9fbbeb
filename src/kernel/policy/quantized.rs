//! Parameters in millionths.

const QUANTUM: f64 = 1e6;

/// A parameter in millionths. Hash and behaviour both come from this integer, so two policies
/// with one hash act alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Quantized(i64);

impl Quantized {
    /// To binary32, widened, times 1e6, rounded half away from zero.
    pub(super) fn new(value: f64) -> Self {
        Quantized((f64::from(value as f32) * QUANTUM).round() as i64)
    }

    /// The parameter of so many millionths.
    pub(super) fn from_millionths(millionths: i64) -> Self {
        Quantized(millionths)
    }

    /// What is hashed.
    pub(super) fn millionths(self) -> i64 {
        self.0
    }

    /// What acts.
    pub(super) fn value(self) -> f32 {
        (self.0 as f64 / QUANTUM) as f32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantisation_rounds_half_away_from_zero() {
        let q = |v| Quantized::new(v).0;
        assert_eq!(
            [q(0.0078125), q(0.0234375), q(100.3), q(0.9)],
            [7813, 23438, 100_300_003, 900_000]
        );
        assert_eq!([q(-0.5), q(-0.0), q(-0.0078125)], [-500_000, 0, -7813]);
    }
}
