//! The kernel of graph_kernel: what a context slice is, without PostgreSQL.
//!
//! Data flows one way: a [`policy::SlicePolicy`] and an anchor go into [`slicer::slice`], which
//! asks a [`store::GraphStore`] for neighbours in batches and returns a [`slice::Slice`];
//! [`export::Export`] gives the slice its canonical bytes and fingerprints, [`attestation`] its
//! tokens; [`verify`] takes an export from outside apart again. [`diversity`] and [`sufficiency`]
//! measure a slice as evidence; [`slice_sets`] and [`atlas`] hold many slices side by side. An
//! [`observer`] hears why turns are in a slice or not, for [`explain`] and [`why`].
//! [`retrieval`] ranks the turns of a slice by [`similarity`], and [`provenance`] signs what was
//! found. [`chunking`] cuts recorder events into chunks.
#![forbid(unsafe_code)]

pub mod atlas;
pub mod attestation;
pub mod canonical;
pub mod chunking;
pub mod content;
pub mod cycles;
pub mod diff;
pub mod diversity;
pub mod draw;
pub mod edge;
pub mod explain;
pub mod export;
mod interrupts;
pub mod json;
pub mod keys;
mod known;
mod neighbourhood;
pub mod observer;
pub mod parse;
pub mod policy;
pub mod provenance;
pub mod retrieval;
pub mod score;
pub mod search;
pub mod similarity;
pub mod slice;
pub mod slice_sets;
pub mod slicer;
pub mod snapshot;
pub mod store;
pub mod sufficiency;
pub mod turn;
pub mod verify;
pub mod why;
mod window;
