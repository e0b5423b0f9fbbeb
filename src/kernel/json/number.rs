//! Numbers of JSON, by their exact value.

use super::canonical::json_text;

/// A number as its text, in JSON's grammar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Number<'a>(pub(super) &'a str);

impl<'a> Number<'a> {
    /// The number as it was written.
    #[must_use]
    pub fn text(self) -> &'a str {
        self.0
    }

    /// The integer, where it was written as one.
    #[must_use]
    pub fn written_integer(self) -> Option<i64> {
        self.0.parse().ok().filter(|_| self.0 != "-0")
    }

    /// The integer, however it was written: 17, 17.0 and 1.7e1 are the same.
    #[must_use]
    pub fn integer(self) -> Option<i64> {
        self.written_integer().or_else(|| Decimal::of(self.0).integer())
    }

    /// Whether two texts are of one number.
    pub(crate) fn is_same(self, other: Number<'_>) -> bool {
        Decimal::of(self.0) == Decimal::of(other.0)
    }

    /// The nearest binary64; none where that is infinite.
    #[must_use]
    pub fn as_f64(self) -> Option<f64> {
        self.0.parse().ok().filter(|number: &f64| number.is_finite())
    }

    /// The binary32 of which this is the shortest text, or the shortest text of the same number as a binary64. An
    /// exponent and zeros at the ends may differ, the other digits may not. Where two shortest texts are equally near,
    /// both are accepted.
    #[must_use]
    pub fn binary32(self) -> Option<f32> {
        let number: f32 = self.0.parse().ok().filter(|number: &f32| number.is_finite())?;
        let mut buffer = [0; 32];
        let mut left = &mut buffer[..];
        serde_json::to_writer(&mut left, &number).ok()?;
        let length = 32 - left.len();
        // The text that exports have themselves.
        if self.0.as_bytes() == &buffer[..length] {
            return Some(number);
        }
        let given = Decimal::of(self.0);
        let is = |text: String| given == Decimal::of(&text);
        let wide = f64::from(number);
        // The second of each pair rounds halves up, the first to an even digit.
        let is_shortest = is(json_text(&number))
            || is(format!("{number:e}"))
            || is(json_text(&wide))
            || is(format!("{wide:e}"));
        is_shortest.then_some(number)
    }
}

/// The exact value of a number's text: 0.d₁d₂d₃… × 10^scale, neither the first nor the last digit
/// being 0. Zero has no digits and scale 0.
struct Decimal<'a> {
    negative: bool,
    /// The digits, with the point somewhere in or before them.
    digits: &'a [u8],
    scale: i64,
}

impl<'a> Decimal<'a> {
    fn of(text: &'a str) -> Self {
        let (negative, text) = match text.strip_prefix('-') {
            Some(text) => (true, text),
            None => (false, text),
        };
        let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
        // An exponent beyond 64 bits makes no number that is an integer or finite and not zero;
        // halved, sums stay in range.
        let exponent: i64 = exponent.parse().unwrap_or(match exponent.starts_with('-') {
            true => i64::MIN / 2,
            false => i64::MAX / 2,
        });
        let mantissa = mantissa.as_bytes();
        let is_filler = |byte: &u8| matches!(byte, b'0' | b'.');
        let Some(first) = mantissa.iter().position(|byte| !is_filler(byte)) else {
            return Decimal { negative, digits: &[], scale: 0 };
        };
        let end = mantissa.iter().rposition(|byte| !is_filler(byte)).map_or(0, |last| last + 1);
        let point = mantissa.iter().position(|byte| *byte == b'.').unwrap_or(mantissa.len());
        // The zeros between the point and the first digit count below it.
        let before = point.saturating_sub(first) as i64;
        let after = first.saturating_sub(point + 1) as i64;
        let scale = (before - after).saturating_add(exponent.clamp(i64::MIN / 2, i64::MAX / 2));
        Decimal { negative, digits: &mantissa[first..end], scale }
    }

    fn digits(&self) -> impl Iterator<Item = u8> {
        self.digits.iter().filter(|byte| **byte != b'.').map(|byte| byte - b'0')
    }

    fn integer(&self) -> Option<i64> {
        let scale = u32::try_from(self.scale).ok().filter(|scale| *scale <= 19)?;
        let (mut value, mut length) = (0i128, 0u32);
        for digit in self.digits() {
            length += 1;
            if length > scale {
                return None;
            }
            value = value * 10 + i128::from(digit);
        }
        value *= 10i128.pow(scale - length);
        i64::try_from(if self.negative { -value } else { value }).ok()
    }
}

impl PartialEq for Decimal<'_> {
    fn eq(&self, other: &Self) -> bool {
        (self.negative, self.scale) == (other.negative, other.scale)
            && self.digits().eq(other.digits())
    }
}
