//! Drawings of slices, as text for Graphviz and for Mermaid.

pub mod export;
pub mod slice;
pub mod style;
