//! The kernel alone, over a store in memory: what slicing costs beside reading tables.

use criterion::{Criterion, criterion_group, criterion_main};
use std::hint::black_box;

use graph_kernel_tests::data::Graph;
use graph_kernel_tests::memory_store::MemoryStore;
use kernel::export::document::Export;
use kernel::graph::edge::{Edge, EdgeType};
use kernel::graph::turn::{Phase, Role, Turn, TurnId};
use kernel::policy::SlicePolicy;
use kernel::slicing::slicer::slice;

/// A thousand turns, each with two of the eight before it as parents.
fn graph() -> Graph {
    let mut random = fastrand::Rng::with_seed(9);
    let mut graph = Graph::default();
    for at in 0..1000usize {
        graph.turns.push(Turn {
            id: TurnId::from_u128(random.u128(..)),
            session_id: "session".to_owned(),
            role: Role::User,
            phase: Phase::ALL[random.usize(..Phase::ALL.len())],
            salience: random.f32(),
            trajectory_depth: at as u32,
            trajectory_sibling_order: 0,
            trajectory_homogeneity: 0.5,
            trajectory_temporal: 0.5,
            trajectory_complexity: 1.0,
            created_at: at as i64,
            content_hash: None,
        });
        for _ in 0..2 {
            if at > 0 {
                let parent = graph.turns[at.saturating_sub(random.usize(1..=8))].id;
                let child = graph.turns[at].id;
                graph.edges.push(Edge { parent, child, edge_type: EdgeType::Reply });
            }
        }
    }
    graph
}

fn slicing(criterion: &mut Criterion) {
    let graph = graph();
    let anchor = graph.turns[500].id;
    let policy = SlicePolicy::default();
    let mut store = MemoryStore::new(graph);
    let taken = slice(&mut store, &policy, anchor).expect("the anchor exists");
    criterion.bench_function("slice of 256 turns", |bencher| {
        bencher.iter(|| slice(&mut store, black_box(&policy), anchor));
    });
    criterion.bench_function("fingerprints of 256 turns", |bencher| {
        bencher.iter(|| Export::new(black_box(&taken), &policy, &|| {}));
    });
    let export = Export::new(&taken, &policy, &|| {});
    criterion.bench_function("JSON of 256 turns", |bencher| {
        bencher.iter(|| black_box(&export).to_json())
    });
}

criterion_group!(benches, slicing);
criterion_main!(benches);
