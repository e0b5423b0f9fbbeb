//! Edges: directed, typed, ordered by (parent, child, type).

use serde::Serialize;

use crate::graph::turn::TurnId;
use crate::named_enum::named_enum;

named_enum! {
    /// The kind of an edge; the declaration order is the sort order.
    EdgeType, default Default {
        /// Direct continuation.
        Reply = "reply",
        /// Fork of the conversation.
        Branch = "branch",
        /// Pointer to an earlier turn.
        Reference = "reference",
        /// Anything else, also NULL and unknown names.
        Default = "default",
    }
}

impl EdgeType {
    /// The name in the bytes that a slice_id is the hash of. Recorded slice_ids were computed with it.
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

/// A set of types of edges.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EdgeTypes(u8);

impl EdgeTypes {
    /// Whether the type is in the set.
    #[must_use]
    pub fn contains(self, edge_type: EdgeType) -> bool {
        self.0 & 1 << edge_type as u8 != 0
    }

    /// The types in the set.
    pub fn iter(self) -> impl Iterator<Item = EdgeType> {
        EdgeType::ALL.iter().copied().filter(move |edge_type| self.contains(*edge_type))
    }

    /// The types in either set.
    #[must_use]
    pub fn union(self, other: Self) -> Self {
        EdgeTypes(self.0 | other.0)
    }
}

impl From<EdgeType> for EdgeTypes {
    fn from(edge_type: EdgeType) -> Self {
        EdgeTypes(1 << edge_type as u8)
    }
}

impl FromIterator<EdgeType> for EdgeTypes {
    fn from_iter<I: IntoIterator<Item = EdgeType>>(types: I) -> Self {
        types.into_iter().fold(EdgeTypes::default(), |set, edge_type| set.union(edge_type.into()))
    }
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
