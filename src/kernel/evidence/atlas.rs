//! The atlas: a manifest of fingerprints of many slices of one graph.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde::Serialize;

use crate::evidence::slice_sets::SliceSets;
use crate::graph::snapshot::GraphSnapshot;
use crate::graph::turn::{Phase, TurnId};
use crate::interrupts::Interrupts;
use crate::json::canonical::{ArrayHasher, Checked, json_hash, large_json_hash};

/// The version of the manifest's shape.
pub const ATLAS_VERSION: &str = "atlas_v1";

/// What an atlas is made of, and how.
pub struct AtlasInput<'a> {
    /// The whole graph.
    pub snapshot: &'a GraphSnapshot,
    /// The anchors, ascending, once each.
    pub anchors: &'a [TurnId],
    /// How the anchors were chosen: any text.
    pub selection_policy: &'a str,
    /// The slices at the anchors.
    pub slices: &'a SliceSets,
    /// Overlaps below it are left out.
    pub min_jaccard: f32,
    /// The most centroids of a phase.
    pub centroids: usize,
}

/// Fingerprints of everything an atlas says.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AtlasManifest {
    /// The fingerprint of the fingerprints.
    pub atlas_id: String,
    /// [`ATLAS_VERSION`].
    pub version: &'static str,
    #[serde(flatten)]
    parts: AtlasParts,
    /// Counts, which the fingerprints do not cover.
    pub stats: AtlasStats,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
struct AtlasParts {
    snapshot_id: String,
    anchor_set_hash: String,
    slice_registry_hash: String,
    overlap_graph_hash: String,
    turn_influence_hash: String,
    phase_topology_hash: String,
}

/// Counts of an atlas.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct AtlasStats {
    /// Turns of the graph.
    pub turn_count: u64,
    /// Edges of the graph.
    pub edge_count: u64,
    /// Anchors.
    pub anchor_count: usize,
    /// Slices, one for each anchor.
    pub slice_count: usize,
    /// Pairs of slices that overlap.
    pub overlap_edge_count: usize,
    /// Turns in slices whose anchors have more than one phase.
    pub bridge_turn_count: usize,
}

impl AtlasManifest {
    /// The manifest; `check_interrupts` is called often.
    #[must_use]
    pub fn new(input: &AtlasInput<'_>, check_interrupts: &dyn Fn()) -> Self {
        let interrupts = Interrupts::new(check_interrupts);
        let AtlasInput { snapshot, anchors, selection_policy, slices, .. } = input;
        let mut topology = PhaseTopology::new(slices);
        let mut overlap_graph = ArrayHasher::default();
        for a in 0..slices.len() {
            interrupts.item();
            for (b, overlap) in slices.overlaps(a, input.min_jaccard, check_interrupts) {
                interrupts.item();
                topology.add(a, b, overlap.jaccard);
                overlap_graph.push(&overlap);
            }
        }
        let mut turn_influence = ArrayHasher::default();
        let mut bridge_turn_count = 0;
        for turn in 0..slices.turn_count() {
            interrupts.item();
            let influence = slices.influence(turn);
            bridge_turn_count += usize::from(influence.is_bridge);
            turn_influence.push(&influence);
        }
        let stats = AtlasStats {
            turn_count: snapshot.turn_count,
            edge_count: snapshot.edge_count,
            anchor_count: anchors.len(),
            slice_count: slices.len(),
            overlap_edge_count: overlap_graph.len(),
            bridge_turn_count,
        };
        let parts = AtlasParts {
            snapshot_id: snapshot.snapshot_id.clone(),
            anchor_set_hash: large_json_hash(
                &(Checked(anchors, check_interrupts), selection_policy),
                check_interrupts,
            ),
            slice_registry_hash: slices.registry_hash.clone(),
            overlap_graph_hash: overlap_graph.finish(),
            turn_influence_hash: turn_influence.finish(),
            phase_topology_hash: topology.hash(input.centroids, bridge_turn_count, &interrupts),
        };
        AtlasManifest { atlas_id: json_hash(&parts), version: ATLAS_VERSION, parts, stats }
    }
}

/// How much the slices of different phases overlap. A slice has the phase of its anchor.
struct PhaseTopology<'a> {
    slices: &'a SliceSets,
    /// Sum and number of the overlaps between slices of two phases, by their names.
    pairs: BTreeMap<(&'static str, &'static str), (f32, usize)>,
    /// How many slices each slice overlaps with.
    degrees: Vec<usize>,
}

impl<'a> PhaseTopology<'a> {
    fn new(slices: &'a SliceSets) -> Self {
        PhaseTopology { slices, pairs: BTreeMap::new(), degrees: vec![0; slices.len()] }
    }

    fn add(&mut self, a: usize, b: usize, jaccard: f32) {
        self.degrees[a] += 1;
        self.degrees[b] += 1;
        let (x, y) = (self.slices.anchor_phase(a).name(), self.slices.anchor_phase(b).name());
        if x != y {
            let (sum, count) = self.pairs.entry((x.min(y), x.max(y))).or_default();
            *sum += jaccard;
            *count += 1;
        }
    }

    fn hash(&self, centroids: usize, bridges: usize, interrupts: &Interrupts<'_>) -> String {
        let overlaps: BTreeMap<String, f32> = self
            .pairs
            .iter()
            .map(|((x, y), (sum, count))| (format!("{x}_{y}"), sum / *count as f32))
            .collect();
        large_json_hash(&(overlaps, self.centroids(centroids, interrupts), bridges), &|| {
            interrupts.check();
        })
    }

    /// The slices of each phase that overlap with most others, at most `most` of them.
    fn centroids(
        &self,
        most: usize,
        interrupts: &Interrupts<'_>,
    ) -> BTreeMap<&'static str, Vec<&'a str>> {
        let of_phase = |phase: &Phase| {
            let mut slices: Vec<usize> = (0..self.slices.len())
                .filter(|s| self.slices.anchor_phase(*s) == *phase && self.degrees[*s] > 0)
                .collect();
            slices.sort_unstable_by_key(|slice| {
                interrupts.item();
                (Reverse(self.degrees[*slice]), *slice)
            });
            let ids = slices.iter().take(most).map(|slice| self.slices.slice_id(*slice));
            (!slices.is_empty()).then(|| (phase.name(), ids.collect()))
        };
        Phase::ALL.iter().filter_map(of_phase).collect()
    }
}
