//! The ranking of a search compared with sorting all turns.

use kernel::graph::turn::TurnId;
use kernel::retrieval::ranking::{Filters, Ranking};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

use crate::cases;

/// Few values, so that ties and bounds are frequent.
fn values() -> impl Strategy<Value = f32> {
    select(vec![-1.0, -0.25, 0.0, 0.25, 0.250_000_03, 0.5, 1.0])
}

proptest! {
    #![proptest_config(cases(2000))]

    #[test]
    fn the_best_turns_in_order_whatever_the_order_they_come_in(
        turns in vec((0u128..40, values(), option::of(values())), 0..40),
        limit in 1u32..20,
        min_similarity in option::of(values()),
        min_salience in option::of(values()),
    ) {
        let mut turns = turns;
        turns.sort_by_key(|(id, ..)| *id);
        turns.dedup_by_key(|(id, ..)| *id);
        let filters = Filters { min_similarity, min_salience };
        let ranked = |turns: &[(u128, f32, Option<f32>)]| {
            let mut ranking = Ranking::new(limit, filters);
            for (id, salience, similarity) in turns {
                ranking.offer(TurnId::from_u128(*id), *salience, *similarity);
            }
            let shortfall = ranking.shortfall();
            let ids: Vec<u128> = ranking.into_hits().iter().map(|hit| hit.id.as_u128()).collect();
            (ids, shortfall)
        };
        let salient: Vec<_> =
            turns.iter().filter(|(_, s, _)| min_salience.is_none_or(|least| *s >= least)).collect();
        let without = salient.iter().filter(|(.., similarity)| similarity.is_none()).count();
        let mut passing: Vec<(u128, f32)> = salient
            .iter()
            .filter_map(|(id, _, similarity)| Some((*id, (*similarity)?)))
            .filter(|(_, similarity)| min_similarity.is_none_or(|least| *similarity >= least))
            .collect();
        passing.sort_by(|a, b| b.1.partial_cmp(&a.1).unwrap().then(a.0.cmp(&b.0)));
        let expected: Vec<u128> =
            passing.iter().take(limit as usize).map(|(id, _)| *id).collect();
        let shortfall = expected.len() < (limit as usize).min(passing.len() + without);

        prop_assert_eq!(ranked(&turns), (expected, shortfall));
        let forwards = ranked(&turns);
        turns.reverse();
        prop_assert_eq!(ranked(&turns), forwards);
    }
}
