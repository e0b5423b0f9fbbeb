use kernel::messages::{MAX_MESSAGE_BYTES, MessageText, message_role, message_text};
use pgrx::prelude::*;

use crate::pg::interrupts::check_interrupts;
use crate::pg::shortage::memory;
use crate::pg::sql::types::{StoredJsonb, Text, TextOrStored};
use crate::pg::text::{StoredText, checked};

/// What `read` makes of a stored message; `None` where its bytes are not text.
fn read<T>(bytes: &[u8], read: impl FnOnce(&str) -> T) -> Option<T> {
    if bytes.len() <= MAX_MESSAGE_BYTES {
        // Strings are unescaped and joined, and each copy may have room for twice as much.
        memory::assure(4 * bytes.len());
    }
    checked(bytes).ok().map(read)
}

#[pg_extern(immutable, parallel_safe, cost = 100)]
fn graph_message_text(message: StoredText) -> Option<TextOrStored> {
    let text = |bytes: &[u8]| read(bytes, |stored| message_text(stored, &check_interrupts));
    match message.with_bytes(text)? {
        MessageText::AsStored => Some(TextOrStored::Stored(message)),
        MessageText::Absent => None,
        MessageText::Text(text) => Some(TextOrStored::Text(text)),
    }
}

#[pg_extern(immutable, parallel_safe, cost = 100)]
fn graph_message_role(message: StoredText) -> Option<Text> {
    message.with_bytes(role)
}

// Casts to text are PostgreSQL's, which writes out a number of 6 bytes in 131 072. The argument has a name of its own,
// by which PostgREST tells the functions apart.
#[pg_extern(immutable, parallel_safe, name = "graph_message_text", cost = 100)]
fn graph_message_text_of_jsonb(document: StoredJsonb) -> Option<Text> {
    let text = |stored: &str| match message_text(stored, &check_interrupts) {
        MessageText::AsStored => Some(stored.to_owned()),
        MessageText::Absent => None,
        MessageText::Text(text) => Some(text),
    };
    document.with_bytes(|bytes| read(bytes, text)?)?.map(Text)
}

#[pg_extern(immutable, parallel_safe, name = "graph_message_role", cost = 100)]
fn graph_message_role_of_jsonb(document: StoredJsonb) -> Option<Text> {
    document.with_bytes(role)?
}

fn role(bytes: &[u8]) -> Option<Text> {
    read(bytes, |stored| message_role(stored, &check_interrupts))?.map(Text)
}

extension_sql!(
    r"
COMMENT ON FUNCTION graph_message_text(text) IS
    'the text of a message stored as JSON; what is not such a message is itself the text';
COMMENT ON FUNCTION graph_message_role(text) IS
    'the role of a message stored as JSON: user, assistant, system, tool or the name it has';
COMMENT ON FUNCTION graph_message_text(jsonb) IS
    'the text of a message; NULL where it is too long';
COMMENT ON FUNCTION graph_message_role(jsonb) IS
    'the role of a message: user, assistant, system, tool or the name it has';
",
    name = "messages_comments",
    requires = [
        graph_message_text,
        graph_message_role,
        graph_message_text_of_jsonb,
        graph_message_role_of_jsonb
    ]
);
