//! A slice as a document: canonical bytes and fingerprints, and reading documents from outside.

pub mod canonical;
pub mod document;
pub mod json;
pub mod parse;
mod writer;
