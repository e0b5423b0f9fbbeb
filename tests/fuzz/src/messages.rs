//! Messages in JSON: any text has one text and at most one role, which another spelling of the JSON has as well.

use kernel::messages::{MessageText, message_role, message_text};
use serde_json::Value;

use crate::memory::bounded;

/// The text and the role of a stored message.
pub fn message(stored: &str) {
    let read = |stored: &str| {
        bounded(stored.len(), || (message_text(stored, &|| ()), message_role(stored, &|| ())))
    };
    let (text, role) = read(stored);
    if let MessageText::Text(text) = &text {
        assert!(!text.is_empty() && !text.contains('\0') && text.len() <= stored.len());
    }
    assert!(role.as_ref().is_none_or(|role| !role.is_empty() && !role.contains('\0')));
    // Another reader rewrites numbers, which are texts of results.
    let has_number = stored.contains(|c: char| c.is_ascii_digit());
    if let Ok(value) = serde_json::from_str::<Value>(stored)
        && !has_number
    {
        let again = read(&value.to_string());
        if text == MessageText::AsStored {
            assert_eq!(again.0, text);
        }
        assert_eq!(again.1, role);
    }
}
