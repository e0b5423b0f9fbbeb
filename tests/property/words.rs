//! The scores of words compared with the formula over all turns.

use std::collections::{BTreeMap, BTreeSet};

use kernel::graph::turn::TurnId;
use kernel::retrieval::words::{Corpus, MAX_LEXEMES, WordPass, WordRanking, WordScorer};
use proptest::collection::{btree_map, btree_set, vec};
use proptest::prelude::*;

use crate::cases;

/// The lexemes of a turn, each with its count. Few lexemes, so that turns share them.
type Turn = BTreeMap<String, u32>;

fn turns() -> impl Strategy<Value = Vec<Turn>> {
    vec(btree_map("[a-d]{1,2}", 1..6_u32, 0..12), 0..30)
}

fn question() -> impl Strategy<Value = BTreeSet<String>> {
    btree_set("[a-e]{1,2}", 0..8)
}

/// BM25 as it is written in books, but for the weight: ln(1 + (N − n + ½) / (n + ½)).
fn naive(turns: &[Turn], question: &BTreeSet<String>) -> Vec<f64> {
    let count = turns.len() as f64;
    // A mean below 1 counts as 1: turns without a lexeme lengthen no other.
    let mean = (turns.iter().map(Turn::len).sum::<usize>() as f64 / count).max(1.0);
    let score = |turn: &Turn| -> f64 {
        let of = |lexeme: &String| {
            let n = turns.iter().filter(|turn| turn.contains_key(lexeme)).count() as f64;
            let times = f64::from(turn.get(lexeme).copied().unwrap_or_default());
            let norm = 1.2 * (1.0 - 0.75 + 0.75 * turn.len() as f64 / mean);
            (1.0 + (count - n + 0.5) / (n + 0.5)).ln() * times * 2.2 / (times + norm)
        };
        question.iter().map(of).filter(|part| !part.is_nan()).sum()
    };
    turns.iter().map(score).collect()
}

fn id(place: usize) -> TurnId {
    TurnId::from_u128(place as u128)
}

/// The scores that one pass over the turns gives, 0 of a turn that it leaves out.
fn passed(turns: &[Turn], question: &BTreeSet<String>) -> Vec<f64> {
    let mut pass = WordPass::new(question.iter().cloned().collect());
    for (place, turn) in turns.iter().enumerate() {
        let count = |lexeme: &str| turn.get(lexeme).copied().unwrap_or_default();
        let words = turn.keys().map(String::as_bytes);
        pass.offer(id(place), turn.len() as u32, count, words).unwrap();
    }
    let mut scores = vec![0.0; turns.len()];
    for (id, score) in pass.into_scores(&|| {}) {
        scores[id.as_u128() as usize] = score;
    }
    scores
}

/// The scores by counts that were taken before.
fn counted(turns: &[Turn], question: &BTreeSet<String>) -> Vec<f64> {
    let lexemes = turns.iter().map(Turn::len).sum::<usize>() as u64;
    let with = |lexeme: &String| turns.iter().filter(|turn| turn.contains_key(lexeme)).count();
    let question = question.iter().map(|lexeme| (lexeme.clone(), Some(with(lexeme) as u64)));
    let scorer = WordScorer::new(Corpus::new(turns.len() as u64, lexemes), question);
    let count = |turn: &Turn, lexeme: &str| turn.get(lexeme).copied().unwrap_or_default();
    let score = |turn: &Turn| scorer.score(turn.len() as u32, |lexeme| count(turn, lexeme));
    turns.iter().map(score).collect()
}

proptest! {
    #![proptest_config(cases(2000))]

    #[test]
    fn a_score_is_the_formulas(turns in turns(), question in question()) {
        let expected = naive(&turns, &question);
        let scores = passed(&turns, &question);
        for (score, expected) in scores.iter().zip(&expected) {
            prop_assert!((score - expected).abs() <= 1e-12 * expected.max(1.0), "{score} {expected}");
        }
        // Whether the counts are taken in the same pass or before changes no bit.
        prop_assert_eq!(scores, counted(&turns, &question));
    }

    #[test]
    fn what_is_offered_in_another_order_scores_the_same(turns in turns(), question in question()) {
        let reversed: Vec<Turn> = turns.iter().rev().cloned().collect();
        let mut scores = passed(&reversed, &question);
        scores.reverse();
        prop_assert_eq!(scores, passed(&turns, &question));
    }

    #[test]
    fn the_best_come_first(scores in vec((0..50_u128, 0..5_u8), 0..60), limit in 1..20_u32) {
        let scores: BTreeMap<u128, u8> = scores.into_iter().collect();
        let mut ranking = WordRanking::new(limit);
        scores.iter().for_each(|(id, score)| ranking.offer(TurnId::from_u128(*id), f64::from(*score)));
        let mut expected: Vec<(u128, u8)> = scores.into_iter().filter(|(_, s)| *s > 0).collect();
        expected.sort_by_key(|(id, score)| (u8::MAX - score, *id));
        expected.truncate(limit as usize);
        let hits = ranking.into_hits();
        let found: Vec<(u128, u8)> =
            hits.iter().map(|hit| (hit.id.as_u128(), hit.score as u8)).collect();
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn at_most_so_many_lexemes_count(with in vec(0..1000_u64, 0..300)) {
        let lexemes = with.iter().enumerate().map(|(n, with)| (format!("{n:04}"), Some(*with)));
        let scorer = WordScorer::new(Corpus::default(), lexemes);
        let kept: BTreeSet<&str> = scorer.lexemes().collect();
        prop_assert_eq!(kept.len(), with.len().min(MAX_LEXEMES));
        let is_kept = |n: usize| kept.contains(format!("{n:04}").as_str());
        let (kept, left): (Vec<usize>, Vec<usize>) = (0..with.len()).partition(|n| is_kept(*n));
        let commonest = kept.iter().map(|n| with[*n]).max().unwrap_or_default();
        prop_assert!(left.iter().all(|n| with[*n] >= commonest));
    }
}
