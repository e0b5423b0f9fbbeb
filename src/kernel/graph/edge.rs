//! Edges: directed, typed, ordered by (parent, child, type).

use serde::{Serialize, Serializer};

use crate::graph::turn::TurnId;

/// The kind of an edge; the declaration order is the sort order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EdgeType {
    /// Direct continuation.
    Reply,
    /// Fork of the conversation.
    Branch,
    /// Pointer to an earlier turn.
    Reference,
    /// Anything else, also NULL and unknown names.
    Default,
}

impl EdgeType {
    /// Every edge type, in order.
    pub const ALL: [EdgeType; 4] =
        [EdgeType::Reply, EdgeType::Branch, EdgeType::Reference, EdgeType::Default];

    /// The type a stored name means; NULL and unknown names are [`EdgeType::Default`].
    #[must_use]
    pub fn from_stored(name: Option<&str>) -> Self {
        let name = name.unwrap_or_default();
        Self::ALL.into_iter().find(|t| t.name().eq_ignore_ascii_case(name)).unwrap_or(Self::Default)
    }

    /// The name in exports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Reply => "reply",
            Self::Branch => "branch",
            Self::Reference => "reference",
            Self::Default => "default",
        }
    }

    /// The name inside the bytes of a slice_id: every recorded slice_id was computed with it.
    #[must_use]
    pub fn fingerprint_name(self) -> &'static str {
        match self {
            Self::Reply => "Reply",
            Self::Branch => "Branch",
            Self::Reference => "Reference",
            Self::Default => "Default",
        }
    }
}

impl Serialize for EdgeType {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// One edge of a slice (SlicePolicy v1 §6.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Edge {
    /// The earlier turn.
    pub parent: TurnId,
    /// The later turn.
    pub child: TurnId,
    /// What the edge means.
    pub edge_type: EdgeType,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stored_names_are_read_leniently() {
        assert_eq!(EdgeType::from_stored(Some("RePly")), EdgeType::Reply);
        assert_eq!(EdgeType::from_stored(Some("")), EdgeType::Default);
        assert_eq!(EdgeType::from_stored(Some("odd")), EdgeType::Default);
        assert_eq!(EdgeType::from_stored(None), EdgeType::Default);
    }

    #[test]
    fn types_sort_as_declared() {
        assert!(EdgeType::ALL.is_sorted());
    }
}
