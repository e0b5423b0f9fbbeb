//! Drawings of slices, as text for Graphviz and for Mermaid.

use crate::named_enum::named_enum;

pub mod export;
pub mod slice;
pub mod style;

named_enum! {
    /// A language of drawings.
    Format {
        /// Mermaid's language.
        Mermaid = "mermaid",
        /// Graphviz's language.
        Dot = "dot",
    }
}
