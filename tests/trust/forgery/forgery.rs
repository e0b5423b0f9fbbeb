//! Forged exports, records of prompts and provenance: each test fails when the check it is for is removed.

mod claim;
mod document;

mod collision;
mod edited_attestation;
mod edited_selection;
mod edited_turns;
mod keys;
mod mutated_text;
mod numbers;
mod prompts;
mod proofs;
mod provenance;
mod reasons;
mod rewritten;
mod shape;
mod tokens;
