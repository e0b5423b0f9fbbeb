//! What a search answers: turns with their content, and the provenance.

use std::str::FromStr;

use serde::{Serialize, Serializer};

use crate::graph::turn::{Role, Turn, TurnId};
use crate::json::JsonValue;
use crate::json::object::{Object, ParseError, string};
use crate::named_enum::named_enum;
use crate::policy::POLICY_LIMITS;
use crate::retrieval::provenance::Provenance;

named_enum! {
    /// How an anchor is chosen, in the order in which the strategies are tried.
    AnchorStrategy {
        /// The turn given.
        Explicit = "explicit",
        /// The latest turn of the session given.
        Session = "session",
        /// The turn nearest to the query.
        Semantic = "semantic",
        /// The turn nearest to the query by an index that is not exact.
        SemanticApproximate = "semantic_approximate",
        /// The latest turn of all.
        Temporal = "temporal",
    }
}

/// The longest owner, in bytes.
const MAX_OWNER_BYTES: usize = 1024;

/// What narrows a search. Read from an object with the key `owner`, or none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SearchOptions {
    /// Whose turns are found; everybody's where it is left out.
    pub owner: Option<String>,
}

impl FromStr for SearchOptions {
    type Err = ParseError;

    fn from_str(json: &str) -> Result<Self, ParseError> {
        let mut object = Object::new("options", JsonValue::read(json, POLICY_LIMITS, &|| {})?)?;
        let mut options = SearchOptions::default();
        if object.has("owner") {
            // Not null: the owner of a caller who is not known would be everybody.
            let wanted = format_args!("a string of at most {MAX_OWNER_BYTES} bytes");
            options.owner = Some(object.read("owner", wanted, |json| {
                let owner = string(json).filter(|owner| owner.len() <= MAX_OWNER_BYTES)?;
                Some(owner.to_owned())
            })?);
        }
        object.finish()?;
        Ok(options)
    }
}

/// A turn that was found.
#[derive(Clone, Debug, PartialEq)]
pub struct SearchResult {
    /// The turn.
    pub turn: Turn,
    /// How similar it is to the query.
    pub similarity: f32,
    /// Its content, where the table has one.
    pub content: Option<String>,
}

/// The answer to a search, the best turn first; serialises to the body of an API's response.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// The turns.
    pub results: Vec<SearchResult>,
    /// How they were found.
    pub provenance: Provenance,
}

#[derive(Serialize)]
struct AnswerJson<'a> {
    query: Option<&'a str>,
    results: Vec<ResultJson<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    slice_info: Option<SliceInfoJson<'a>>,
    provenance: &'a Provenance,
}

#[derive(Serialize)]
struct ResultJson<'a> {
    turn_id: TurnId,
    content: Option<&'a str>,
    role: Role,
    similarity: f32,
    trajectory: TrajectoryJson,
}

#[derive(Serialize)]
struct TrajectoryJson {
    depth: u32,
    sibling_order: u32,
    homogeneity: f32,
    temporal: f32,
    complexity: f32,
}

#[derive(Serialize)]
struct SliceInfoJson<'a> {
    slice_id: &'a str,
    anchor_turn_id: TurnId,
    turn_count: u32,
    edge_count: u32,
    policy_id: &'a str,
    params_hash: &'a str,
    schema_version: &'a str,
    graph_snapshot_hash: &'a str,
    admissibility_token: Option<&'a str>,
}

impl Serialize for Answer {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let provenance = &self.provenance;
        let results = self.results.iter().map(|found| ResultJson {
            turn_id: found.turn.id,
            content: found.content.as_deref(),
            role: found.turn.role,
            similarity: found.similarity,
            trajectory: TrajectoryJson {
                depth: found.turn.trajectory_depth,
                sibling_order: found.turn.trajectory_sibling_order,
                homogeneity: found.turn.trajectory_homogeneity,
                temporal: found.turn.trajectory_temporal,
                complexity: found.turn.trajectory_complexity,
            },
        });
        let body = AnswerJson {
            query: provenance.query_text.as_deref(),
            results: results.collect(),
            slice_info: provenance.slice.as_ref().map(|slice| SliceInfoJson {
                slice_id: &slice.slice_id,
                anchor_turn_id: slice.anchor,
                turn_count: slice.turn_count,
                edge_count: slice.edge_count,
                policy_id: &slice.policy_id,
                params_hash: &slice.params_hash,
                schema_version: &slice.schema_version,
                graph_snapshot_hash: &slice.graph_snapshot_hash,
                admissibility_token: slice.admissibility_token.as_deref(),
            }),
            provenance,
        };
        body.serialize(serializer)
    }
}
