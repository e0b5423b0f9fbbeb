//! The kernel of graph_kernel: what a context slice is, without PostgreSQL.
//!
//! Data flows one way. A [`policy::SlicePolicy`] and an anchor go into [`slicing::slicer::slice`], which asks a
//! [`slicing::store::GraphStore`] for neighbours in batches and returns a [`slicing::slice::Slice`].
//! [`export::document::Export`] gives the slice its canonical bytes and fingerprints, [`trust::attestation`] its
//! tokens. [`verification`] checks an export from outside. [`evidence`] measures slices as evidence, one or many
//! together. [`explain`] says why turns are in a slice or not, by a [`slicing::observer`]; [`drawing`] draws slices,
//! [`prompt`] orders their turns. [`retrieval`] ranks the turns of a slice by similarity and signs what was found.
//! [`binary`] keeps documents in few bytes. [`chunking`] cuts recorder events into chunks. [`messages`] reads the JSON
//! in which applications store messages.
#![forbid(unsafe_code)]

pub mod binary;
pub mod chunking;
pub mod drawing;
pub mod evidence;
pub mod explain;
pub mod export;
pub mod graph;
pub mod hex;
mod interrupts;
pub mod json;
pub mod messages;
pub mod named_enum;
pub mod policy;
pub mod prompt;
pub mod retrieval;
pub mod slicing;
pub mod trust;
pub mod verification;

/// For [`named_enum`], in whose place its crate is not known.
#[doc(hidden)]
pub use serde;
