//! The kernel of graph_kernel: what a context slice is, without PostgreSQL.
//!
//! Data flows one way: a [`policy::SlicePolicy`] and an anchor go into [`slicing::slicer::slice`], which asks a
//! [`slicing::store::GraphStore`] for neighbours in batches and returns a [`slicing::slice::Slice`];
//! [`export::document::Export`] gives the slice its canonical bytes and fingerprints, [`trust::attestation`] its
//! tokens; [`trust::verify`] checks an export from outside. [`evidence`] measures slices as evidence, one or many
//! together. [`insight`] says why turns are in a slice or not, by a [`slicing::observer`]. [`retrieval`] ranks the
//! turns of a slice by similarity and signs what was found. [`chunking`] cuts recorder events into chunks.
#![forbid(unsafe_code)]

pub mod chunking;
pub mod evidence;
pub mod export;
pub mod graph;
pub mod insight;
mod interrupts;
mod named_enum;
pub mod policy;
pub mod retrieval;
pub mod slicing;
pub mod trust;
