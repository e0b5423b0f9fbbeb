//! Timing contestants side by side.

use std::time::{Duration, Instant};

use uuid::Uuid;

use crate::tables::Result;

/// One way to answer for an anchor.
pub struct Contestant<'a> {
    pub name: &'static str,
    pub run: Box<dyn FnMut(Uuid) -> Result<()> + 'a>,
}

impl<'a> Contestant<'a> {
    pub fn new(name: &'static str, run: impl FnMut(Uuid) -> Result<()> + 'a) -> Self {
        Contestant { name, run: Box::new(run) }
    }
}

/// The times of one contestant, a list for each round.
#[derive(Clone, Debug, Default)]
pub struct Times {
    pub name: &'static str,
    rounds: Vec<Vec<Duration>>,
}

impl Times {
    pub fn new(name: &'static str) -> Self {
        Times { name, rounds: Vec::new() }
    }

    pub fn begin_round(&mut self) {
        self.rounds.push(Vec::new());
    }

    /// Adds a time to the round.
    pub fn push(&mut self, time: Duration) {
        self.rounds.last_mut().expect("a round was begun").push(time);
    }

    /// Forgets what was measured so far.
    pub fn forget(&mut self) {
        self.rounds.clear();
    }

    pub fn median_ms(&self) -> f64 {
        percentile(self.rounds.concat(), 50)
    }

    pub fn p95_ms(&self) -> f64 {
        percentile(self.rounds.concat(), 95)
    }

    /// The lowest and the highest median of a round.
    pub fn spread_ms(&self) -> (f64, f64) {
        let medians = self.rounds.iter().map(|round| percentile(round.clone(), 50));
        medians.fold((f64::MAX, 0.0), |(low, high), median| (low.min(median), high.max(median)))
    }
}

fn percentile(mut times: Vec<Duration>, percent: usize) -> f64 {
    times.sort_unstable();
    let at = (times.len() * percent / 100).min(times.len().saturating_sub(1));
    times.get(at).map_or(f64::NAN, |time| time.as_secs_f64() * 1e3)
}

/// Times every contestant on every anchor, one after the other at each anchor, after one round that
/// warms the caches and is not counted. Who comes first finds the processor's caches cold, so each
/// anchor has an order of its own, chosen at random.
pub fn race(
    contestants: &mut [Contestant<'_>],
    anchors: &[Uuid],
    rounds: usize,
) -> Result<Vec<Times>> {
    let mut times: Vec<Times> = contestants.iter().map(|c| Times::new(c.name)).collect();
    let mut random = fastrand::Rng::with_seed(5);
    let mut order: Vec<usize> = (0..contestants.len()).collect();
    for round in 0..=rounds {
        times.iter_mut().for_each(Times::begin_round);
        for anchor in anchors {
            random.shuffle(&mut order);
            for contestant in &order {
                let start = Instant::now();
                (contestants[*contestant].run)(*anchor)?;
                times[*contestant].push(start.elapsed());
            }
        }
        if round == 0 {
            times.iter_mut().for_each(Times::forget);
        }
    }
    Ok(times)
}

/// Every so many of the ids, from a place that the seed decides.
pub fn anchors(ids: &[Uuid], count: usize) -> Vec<Uuid> {
    let mut random = fastrand::Rng::with_seed(7);
    random.choose_multiple(ids.iter().copied(), count)
}
