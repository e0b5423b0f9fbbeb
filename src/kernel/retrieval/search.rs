//! What a search answers: turns with their content, and the provenance.

use std::str::FromStr;

use serde::{Serialize, Serializer};

use crate::graph::turn::{Role, Turn, TurnId};
use crate::json::object::{Object, ParseError, string};
use crate::json::{JsonLimits, JsonValue};
use crate::named_enum::named_enum;
use crate::policy::POLICY_LIMITS;
use crate::retrieval::provenance::Provenance;
use crate::retrieval::ranking::Filters;

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

/// The most sessions of a filter.
const MAX_SESSIONS: usize = 1000;

/// The most text of a filter: sessions have up to 4 KiB each.
const FILTER_LIMITS: JsonLimits =
    JsonLimits { bytes: 1024 * 1024, values: 2 * MAX_SESSIONS, token_bytes: 1024 * 1024 };

/// What narrows a search; a turn is found where all that is given holds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SearchFilter {
    /// Whose turns are found; everybody's where it is left out.
    pub owner: Option<String>,
    /// Of which sessions.
    pub sessions: Option<Vec<String>>,
    /// Of which roles.
    pub roles: Option<Vec<Role>>,
    /// The earliest `created_at`, in Unix seconds.
    pub from: Option<i64>,
    /// The latest `created_at`, in Unix seconds.
    pub to: Option<i64>,
    /// The least salience, and the least similarity of what was embedded.
    pub least: Filters,
}

impl SearchFilter {
    /// The options of a search within a slice: an object with the key `owner`, or none.
    ///
    /// # Errors
    /// A sentence that names the key.
    pub fn of_options(json: &str) -> Result<Self, ParseError> {
        let mut object = Object::new("options", JsonValue::read(json, POLICY_LIMITS, &|| {})?)?;
        let owner = take_owner(&mut object)?;
        object.finish()?;
        Ok(SearchFilter { owner, ..Self::default() })
    }
}

/// An object with any of the keys. None may be null: the owner of a caller who is not known would be everybody.
impl FromStr for SearchFilter {
    type Err = ParseError;

    fn from_str(json: &str) -> Result<Self, ParseError> {
        let mut object = Object::new("filter", JsonValue::read(json, FILTER_LIMITS, &|| {})?)?;
        let filter = SearchFilter {
            owner: take_owner(&mut object)?,
            sessions: take_list(&mut object, "sessions", MAX_SESSIONS, "strings", |name| {
                Some(name.to_owned())
            })?,
            roles: take_list(
                &mut object,
                "roles",
                Role::ALL.len(),
                "of user, assistant, system and tool",
                Role::from_name,
            )?,
            from: given(&mut object, "from", Object::integer)?,
            to: given(&mut object, "to", Object::integer)?,
            least: Filters {
                min_similarity: take_least(&mut object, "min_similarity")?,
                min_salience: take_least(&mut object, "min_salience")?,
            },
        };
        object.finish()?;
        Ok(filter)
    }
}

fn given<'a, T>(
    object: &mut Object<'a>,
    key: &str,
    take: impl FnOnce(&mut Object<'a>, &str) -> Result<T, ParseError>,
) -> Result<Option<T>, ParseError> {
    object.has(key).then(|| take(object, key)).transpose()
}

fn take_owner(object: &mut Object<'_>) -> Result<Option<String>, ParseError> {
    given(object, "owner", |object, key| {
        let wanted = format_args!("a string of at most {MAX_OWNER_BYTES} bytes");
        object.read(key, wanted, |json| {
            let owner = string(json).filter(|owner| owner.len() <= MAX_OWNER_BYTES)?;
            Some(owner.to_owned())
        })
    })
}

/// A list that is not empty: a caller without sessions would see everybody's, or nothing.
fn take_list<T>(
    object: &mut Object<'_>,
    key: &str,
    most: usize,
    of: &str,
    item: impl Fn(&str) -> Option<T>,
) -> Result<Option<Vec<T>>, ParseError> {
    given(object, key, |object, key| {
        let wanted = format_args!("an array of 1 to {most} {of}");
        object.read(key, wanted, |json| match json {
            JsonValue::Array(items) if (1..=most).contains(&items.len()) => {
                items.iter().map(|json| string(json).and_then(&item)).collect()
            }
            _ => None,
        })
    })
}

fn take_least(object: &mut Object<'_>, key: &str) -> Result<Option<f32>, ParseError> {
    given(object, key, |object, key| {
        let least = object.number(key)? as f32;
        let name = |least| format!("filter.{key} must be a finite number of binary32, not {least}");
        if least.is_finite() { Ok(least) } else { Err(name(least)) }
    })
}

/// A turn that was found.
#[derive(Clone, Debug, PartialEq)]
pub struct SearchResult {
    /// The turn.
    pub turn: Turn,
    /// How well it fits the question, from 0 to 1; of a search of the whole graph.
    pub strength: Option<f32>,
    /// How similar it is to the query; `None` where that was not asked or it has no embedding.
    pub similarity: Option<f32>,
    /// How well its words fit those of the question; `None` where that was not asked.
    pub words: Option<f32>,
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
    #[serde(skip_serializing_if = "Option::is_none")]
    strength: Option<f32>,
    similarity: Option<f32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    words: Option<f32>,
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
            strength: found.strength,
            similarity: found.similarity,
            words: found.words,
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
