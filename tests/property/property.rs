//! Properties that hold for every graph and every policy.

mod against_naive;
mod binary;
mod chunking;
mod drawing;
mod explaining;
mod failures;
mod generate;
mod invariants;
mod messages;
mod naive;
mod naive_v2;
mod pairs;
mod policy_text;
mod policy_v2;
mod prompts;
mod providers;
mod question_count;
mod ranking;
mod slice_sets;
mod speakers;
mod words;

use kernel::prompt::provider::PromptMessage;
use kernel::slicing::slice::Part;
use proptest::test_runner::{Config, RngAlgorithm};

/// The edges of messages that are one line.
fn line(messages: &[PromptMessage<'_>]) -> Vec<(usize, usize)> {
    let places = (0..messages.len()).filter(|place| messages[*place].part != Part::Recalled);
    places.clone().zip(places.skip(1)).collect()
}

/// How often a property is tried, at most as often as PROPTEST_CASES says. Failures are printed and not saved to a
/// file.
fn cases(cases: u32) -> Config {
    let from_environment = Config::default();
    let is_limited = std::env::var_os("PROPTEST_CASES").is_some();
    Config {
        cases: if is_limited { cases.min(from_environment.cases) } else { cases },
        failure_persistence: None,
        rng_algorithm: RngAlgorithm::XorShift,
        ..from_environment
    }
}
