//! The graphs that are sliced. What is generated depends on nothing but the seed.

use std::collections::HashSet;
use std::path::Path;

use fastrand::Rng;
use graph_kernel_tests::data::{Graph, read_graph};
use kernel::graph::edge::{Edge, EdgeType};
use kernel::graph::turn::{Phase, Role, Turn, TurnId};

/// Real transcripts of coding agents, where the data is at hand.
pub fn recorded_sessions() -> Option<Graph> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/agent_sessions");
    folder.is_dir().then(|| read_graph(&folder))
}

/// Conversations as coding agents have them: long, few branches, fewer merges.
pub fn sessions(turns: usize) -> Graph {
    let mut random = Rng::with_seed(1);
    let mut graph = Graph::default();
    while graph.turns.len() < turns {
        let start = graph.turns.len();
        // Between 8 and about 2 000 turns, short ones being more frequent.
        let length = (8.0 * 250.0_f64.powf(random.f64())) as usize;
        for at in start..(start + length).min(turns) {
            add_turn(&mut graph, &mut random, start);
            if at > start {
                let back = if random.f32() < 0.05 { random.usize(1..=20) } else { 1 };
                add_edge(&mut graph, at, at.saturating_sub(back).max(start), EdgeType::Reply);
            }
            if at > start + 2 && random.f32() < 0.035 {
                let back = random.usize(2..=30);
                add_edge(&mut graph, at, at.saturating_sub(back).max(start), EdgeType::Reference);
            }
        }
    }
    graph
}

/// Every turn answers one of the three before it and refers to one of the thirty before it.
pub fn dense(turns: usize) -> Graph {
    let mut random = Rng::with_seed(2);
    let mut graph = Graph::default();
    for at in 0..turns {
        add_turn(&mut graph, &mut random, 0);
        if at > 0 {
            add_edge(&mut graph, at, at.saturating_sub(random.usize(1..=3)), EdgeType::Reply);
            add_edge(&mut graph, at, at.saturating_sub(random.usize(1..=30)), EdgeType::Reference);
        }
    }
    graph
}

/// The shape of a commit graph: four lines of work that fork from each other, two turns in five
/// being merges.
pub fn commits(turns: usize) -> Graph {
    let mut random = Rng::with_seed(3);
    let mut graph = Graph::default();
    for at in 0..turns {
        add_turn(&mut graph, &mut random, 0);
        if at > 0 {
            add_edge(&mut graph, at, at.saturating_sub(random.usize(1..=4)), EdgeType::Branch);
        }
        if at > 0 && random.f32() < 0.4 {
            add_edge(&mut graph, at, at.saturating_sub(random.usize(2..=20)), EdgeType::Reply);
        }
    }
    graph
}

/// A history with merges, as a team's commits have it: work begins at one of the last changes of the main line, takes a
/// few turns, some of which take in what the main line has become, and is merged. Several go on at a time.
pub fn history(turns: usize) -> Graph {
    let mut random = Rng::with_seed(8);
    let mut graph = Graph::default();
    add_turn(&mut graph, &mut random, 0);
    let mut main_line = vec![0];
    // The last turn of each piece of work, and how many are still to come.
    let mut work: Vec<(usize, u32)> = Vec::new();
    while graph.turns.len() < turns {
        let at = graph.turns.len();
        add_turn(&mut graph, &mut random, 0);
        let last = main_line[main_line.len() - 1];
        if work.len() < 6 && random.f32() < 0.2 {
            let from = main_line[main_line.len().saturating_sub(random.usize(1..=6))];
            add_edge(&mut graph, at, from, EdgeType::Branch);
            work.push((at, random.u32(0..8)));
        } else if work.is_empty() || random.f32() < 0.35 {
            add_edge(&mut graph, at, last, EdgeType::Reply);
            main_line.push(at);
        } else {
            let which = random.usize(..work.len());
            let (before, left) = work[which];
            add_edge(&mut graph, at, before, EdgeType::Reply);
            if left == 0 {
                add_edge(&mut graph, at, last, EdgeType::Reply);
                main_line.push(at);
                work.swap_remove(which);
            } else {
                if random.f32() < 0.1 {
                    add_edge(&mut graph, at, last, EdgeType::Reference);
                }
                work[which] = (at, left - 1);
            }
        }
    }
    graph
}

/// The log of a room with many speakers: a line answers the last one of a speaker whom it mentions, goes on with what
/// its own speaker said, or begins anew. Of the speakers, few say much.
pub fn chat(turns: usize) -> Graph {
    let mut random = Rng::with_seed(9);
    let mut graph = Graph::default();
    let mut last_of = vec![None; 400];
    for at in 0..turns {
        add_turn(&mut graph, &mut random, 0);
        let speaker = (400.0 * random.f64().powi(3)) as usize;
        // Whom one answers has mostly spoken a moment ago.
        let mentioned = (0..4).map(|_| (400.0 * random.f64().powi(3)) as usize);
        let mentioned = mentioned.filter_map(|one| last_of[one]).max();
        let way = random.f32();
        if let Some(line) = mentioned.filter(|_| way < 0.54) {
            add_edge(&mut graph, at, line, EdgeType::Reply);
        }
        if let Some(line) = last_of[speaker].filter(|_| (0.51..0.77).contains(&way)) {
            add_edge(&mut graph, at, line, EdgeType::Default);
        }
        last_of[speaker] = Some(at);
    }
    graph
}

/// One turn with this many children.
pub fn hub(children: usize) -> Graph {
    let mut random = Rng::with_seed(4);
    let mut graph = Graph::default();
    add_turn(&mut graph, &mut random, 0);
    for at in 1..=children {
        add_turn(&mut graph, &mut random, 0);
        add_edge(&mut graph, at, 0, EdgeType::Reply);
    }
    graph
}

/// What an application's table of messages can store of a graph: one parent that a turn replies to, and one that it
/// refers to.
pub fn two_parents(graph: &Graph) -> Graph {
    let mut seen = HashSet::new();
    let mut stored = Graph { turns: graph.turns.clone(), edges: Vec::new() };
    for edge in &graph.edges {
        // Of two parents of another type, the second counts as a reference.
        let free = [EdgeType::Reply, EdgeType::Reference]
            .into_iter()
            .skip(usize::from(edge.edge_type == EdgeType::Reference))
            .find(|edge_type| seen.insert((edge.child, *edge_type)));
        stored.edges.extend(free.map(|edge_type| Edge { edge_type, ..*edge }));
    }
    stored
}

fn add_turn(graph: &mut Graph, random: &mut Rng, session: usize) {
    let number = graph.turns.len();
    graph.turns.push(Turn {
        id: TurnId::from_u128(random.u128(..)),
        session_id: format!("session {session}"),
        role: [Role::User, Role::Assistant, Role::Tool][number % 3],
        phase: Phase::ALL[random.usize(..Phase::ALL.len())],
        salience: random.f32(),
        trajectory_depth: (number - session) as u32,
        trajectory_sibling_order: 0,
        trajectory_homogeneity: random.f32(),
        trajectory_temporal: random.f32(),
        trajectory_complexity: random.u8(1..=5).into(),
        created_at: 1_767_225_600 + 60 * number as i64,
        content_hash: None,
    });
}

fn add_edge(graph: &mut Graph, child: usize, parent: usize, edge_type: EdgeType) {
    let (parent, child) = (graph.turns[parent].id, graph.turns[child].id);
    graph.edges.push(Edge { parent, child, edge_type });
}
