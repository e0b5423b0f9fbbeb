//! How many requests are answered in a time.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::http::StatusCode;

use super::errors::Refusal;

/// How far ahead of their time requests may come: so long a pause lets as many come at once as belong to it.
const MAX_AHEAD: Duration = Duration::from_secs(2);

/// So many requests a second, whoever they are of.
pub(crate) struct Rate {
    /// The time of one request; none where any number is answered.
    each: Option<Duration>,
    /// When the requests that were taken would have come, had they come one after the other.
    until: Mutex<Option<Instant>>,
}

impl Rate {
    /// A rate of so many a second; 0 is any number.
    pub(crate) fn new(per_second: u16) -> Self {
        let each = Duration::from_secs(1).checked_div(per_second.into());
        Rate { each, until: Mutex::default() }
    }

    /// Takes a request that has come now, or says when there is room for one.
    pub(crate) fn take(&self, now: Instant) -> Result<(), Refusal> {
        let Some(each) = self.each else { return Ok(()) };
        let mut until = self.until.lock().unwrap_or_else(PoisonError::into_inner);
        let with_this = until.unwrap_or(now).max(now) + each;
        let wait = with_this.saturating_duration_since(now).saturating_sub(MAX_AHEAD);
        if !wait.is_zero() {
            return Err(Refusal {
                retry_seconds: Some(wait.as_secs() + 1),
                ..Refusal::new(
                    StatusCode::TOO_MANY_REQUESTS,
                    "TOO_MANY_REQUESTS",
                    "there were more requests than --rate lets through",
                )
            });
        }
        *until = Some(with_this);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_kept_on_average_and_twice_as_many_may_come_at_once() {
        let (rate, start) = (Rate::new(250), Instant::now());
        let at = |milliseconds: u64| start + Duration::from_millis(milliseconds);
        let taken = |milliseconds, most: usize| {
            (0..most).take_while(|_| rate.take(at(milliseconds)).is_ok()).count()
        };
        assert_eq!(taken(0, 1000), 500);
        assert_eq!(rate.take(at(0)).unwrap_err().retry_seconds, Some(1));
        assert_eq!(taken(4, 1000), 1);
        assert_eq!(taken(1004, 1000), 250);
        // 10 000 a minute, for an hour.
        assert!((0..600_000).all(|n| rate.take(at(10_000 + n * 6)).is_ok()));
        // A long pause lets no more come at once.
        assert_eq!(taken(10_000_000, 1000), 500);
    }

    #[test]
    fn a_rate_of_zero_refuses_nothing() {
        let (rate, now) = (Rate::new(0), Instant::now());
        assert!((0..10_000).all(|_| rate.take(now).is_ok()));
    }
}
