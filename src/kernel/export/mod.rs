//! A slice as a document: canonical bytes and fingerprints, and reading documents from outside.

pub mod document;
pub mod parse;
pub mod published;
pub(crate) mod writer;
