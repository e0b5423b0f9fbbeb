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
