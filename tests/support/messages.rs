//! Messages in the forms of applications, with their text and role.

use std::path::Path;

use serde::Deserialize;
use serde_json::Value;

use crate::data::read_json_lines;

/// A message as it is stored, and what must be read of it.
pub struct MessageCase {
    /// The form that it is of.
    pub form: String,
    /// Its JSON.
    pub stored: String,
    /// Its text.
    pub text: Option<String>,
    /// Its role.
    pub role: Option<String>,
}

#[derive(Deserialize)]
struct Line {
    form: String,
    stored: Value,
    text: Option<String>,
    role: Option<String>,
}

/// The cases, at least one of each form.
#[must_use]
pub fn message_cases() -> Vec<MessageCase> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("golden/data/messages.jsonl");
    let case = |Line { form, stored, text, role }| MessageCase {
        form,
        stored: stored.to_string(),
        text,
        role,
    };
    read_json_lines(&path).into_iter().map(case).collect()
}
