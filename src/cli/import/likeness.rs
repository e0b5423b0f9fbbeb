//! What a file looks like that is not in the format that it was said to be in.

use std::collections::HashSet;

use crate::arguments::ImportFormat;

/// How much of a file is looked at, in bytes.
pub(super) const MAX_HEAD_BYTES: usize = 256 << 10;

/// The keys that tell a format: one of each list is there. The first format counts.
const KEYS: [(ImportFormat, &[&[&str]]); 7] = [
    (ImportFormat::ClaudeCode, &[&["sessionId"], &["parentUuid", "isSidechain"], &["type"]]),
    (ImportFormat::Codex, &[&["payload"], &["type"], &["timestamp"]]),
    (ImportFormat::Claude, &[&["chat_messages"]]),
    (ImportFormat::Chatgpt, &[&["mapping"], &["author", "current_node", "message"]]),
    (ImportFormat::Openwebui, &[&["history"], &["childrenIds", "currentId", "parentId"]]),
    (
        ImportFormat::Librechat,
        &[&["messageId"], &["parentMessageId"], &["conversationId", "messages", "messagesTree"]],
    ),
    (ImportFormat::Jsonl, &[&["content_text", "parent_turn_id", "child_turn_id"]]),
];

/// The format whose files begin like this one, if there is one.
pub(super) fn looks_like(head: &[u8]) -> Option<ImportFormat> {
    let keys = keys_in(head);
    let has = |list: &&[&str]| list.iter().any(|key| keys.contains(key.as_bytes()));
    KEYS.iter().find(|(_, lists)| lists.iter().all(has)).map(|(format, _)| *format)
}

/// The keys of all objects in the beginning of a JSON document.
fn keys_in(text: &[u8]) -> HashSet<&[u8]> {
    let mut keys = HashSet::new();
    let mut rest = text;
    while let Some(start) = rest.iter().position(|byte| *byte == b'"') {
        rest = &rest[start + 1..];
        let mut is_escaped = false;
        let end = rest.iter().position(|byte| {
            let ends = *byte == b'"' && !is_escaped;
            is_escaped = *byte == b'\\' && !is_escaped;
            ends
        });
        let Some(end) = end else { break };
        let (text, after) = (&rest[..end], &rest[end + 1..]);
        if after.trim_ascii_start().first() == Some(&b':') {
            keys.insert(text);
        }
        rest = after;
    }
    keys
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_those_of_objects_alone() {
        let keys = keys_in(br#"{"a": {"b" : "c: \"d\":"}, "e\"": ["f"], "g"#);
        let mut keys: Vec<_> = keys.into_iter().map(|key| str::from_utf8(key).unwrap()).collect();
        keys.sort_unstable();
        assert_eq!(keys, ["a", "b", "e\\\""]);
        assert!(looks_like(b"").is_none() && looks_like(b"[1, 2]").is_none());
    }
}
