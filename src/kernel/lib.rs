//! The kernel of graph_kernel: what a context slice is, without PostgreSQL.
//!
//! Data flows one way: a [`policy::SlicePolicy`] and an anchor go into [`slicer::slice`], which
//! asks a [`store::GraphStore`] for neighbours in batches and returns a [`slice::Slice`];
//! [`export::Export`] gives the slice its canonical bytes and fingerprints, [`attestation`] its
//! tokens; [`verify`] takes an export from outside apart again.
#![forbid(unsafe_code)]

pub mod attestation;
pub mod canonical;
pub mod content;
pub mod cycles;
pub mod diff;
pub mod edge;
pub mod export;
pub mod json;
pub mod keys;
pub mod parse;
pub mod policy;
pub mod provenance;
pub mod retrieval;
pub mod score;
pub mod search;
pub mod similarity;
pub mod slice;
pub mod slicer;
pub mod store;
pub mod turn;
pub mod verify;
