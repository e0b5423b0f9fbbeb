//! One number for each value of an enum.

use serde::Serialize;

use crate::graph::edge::EdgeType;
use crate::graph::turn::Phase;

/// Declares a struct with a field for each value of an enum, serialised in the order given here.
macro_rules! weights {
    ($(#[$doc:meta])* $name:ident of $enum:ident { $($field:ident = $value:ident),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
        pub(super) struct $name<T> { $(pub(super) $field: T),+ }

        impl<T> $name<T> {
            /// The number of each value, by `f`.
            pub(super) fn try_from_fn<E>(
                mut f: impl FnMut($enum) -> Result<T, E>,
            ) -> Result<Self, E> {
                Ok($name { $($field: f($enum::$value)?),+ })
            }
        }

        impl<T: Copy> $name<T> {
            /// The number of this value.
            pub(super) fn get(&self, value: $enum) -> T {
                match value { $($enum::$value => self.$field),+ }
            }

            /// Each number, changed by `f`.
            pub(super) fn map<U>(&self, f: impl Fn(T) -> U) -> $name<U> {
                $name { $($field: f(self.$field)),+ }
            }
        }
    };
}

weights! {
    /// One number for each phase, in the specification's order of keys.
    PhaseWeights of Phase {
        synthesis = Synthesis,
        planning = Planning,
        consolidation = Consolidation,
        debugging = Debugging,
        exploration = Exploration,
    }
}

weights! {
    /// One number for each type of edge, in the canonical order of keys.
    EdgeWeights of EdgeType {
        reply = Reply,
        branch = Branch,
        reference = Reference,
        default = Default,
    }
}
