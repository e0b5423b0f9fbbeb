//! What must hold of every text that a parser is given. Each target of cargo-fuzz calls one function of these modules.

pub mod documents;
pub mod events;
pub mod genuine;
pub mod import;
mod memory;
pub mod messages;
pub mod policies;

/// Of the formats: what they call an error.
type Failure = String;

/// Calls `check` with the text that the bytes are, up to what is not UTF-8.
pub fn of_text(bytes: &[u8], check: impl FnOnce(&str)) {
    check(match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => {
            std::str::from_utf8(&bytes[..error.valid_up_to()]).expect("it is valid up to there")
        }
    });
}

/// A refusal says something, and does not repeat a long text.
fn is_message(error: impl std::fmt::Display) {
    const MAX_MESSAGE_BYTES: usize = 2048;
    let message = error.to_string();
    assert!((1..=MAX_MESSAGE_BYTES).contains(&message.len()), "{message:?}");
}
