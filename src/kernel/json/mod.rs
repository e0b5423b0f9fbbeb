//! JSON from outside, read within limits, and the canonical form of our own.

pub mod canonical;
mod number;
pub(crate) mod object;
mod reader;
mod text;
mod value;

pub use number::Number;
pub use reader::{JsonError, JsonLimits, JsonReader, MAX_DEPTH};
pub use text::jsonb_text;
pub(crate) use text::{compact_text, read_jsonb};
pub use value::{JsonValue, quoted};
