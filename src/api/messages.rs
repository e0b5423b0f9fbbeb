use kernel::messages::{MAX_MESSAGE_BYTES, MessageText, message_role, message_text};
use pgrx::prelude::*;

use crate::pg::interrupts::check_interrupts;
use crate::pg::shortage::memory;
use crate::pg::sql::types::{Text, TextOrStored};
use crate::pg::text::{StoredText, checked};

/// What `read` makes of a stored message; `None` where its bytes are not text.
fn read<T>(message: StoredText, read: impl FnOnce(&str) -> T) -> Option<T> {
    message.with_bytes(|bytes| {
        if bytes.len() <= MAX_MESSAGE_BYTES {
            // Strings are unescaped and joined, and each copy may have room for twice as much.
            memory::assure(4 * bytes.len());
        }
        checked(bytes).ok().map(read)
    })
}

#[pg_extern(immutable, parallel_safe, cost = 100)]
fn graph_message_text(message: StoredText) -> Option<TextOrStored> {
    match read(message, |stored| message_text(stored, &check_interrupts))? {
        MessageText::AsStored => Some(TextOrStored::Stored(message)),
        MessageText::Absent => None,
        MessageText::Text(text) => Some(TextOrStored::Text(text)),
    }
}

#[pg_extern(immutable, parallel_safe, cost = 100)]
fn graph_message_role(message: StoredText) -> Option<Text> {
    read(message, |stored| message_role(stored, &check_interrupts))?.map(Text)
}

extension_sql!(
    r"
COMMENT ON FUNCTION graph_message_text(text) IS
    'the text of a message stored as JSON; what is not such a message is itself the text';
COMMENT ON FUNCTION graph_message_role(text) IS
    'the role of a message stored as JSON: user, assistant, system, tool or the name it has';
",
    name = "messages_comments",
    requires = [graph_message_text, graph_message_role]
);
