//! Published values: the kernel must compute the same bytes from the same input.

mod atlas;
mod attestation;
mod binary;
mod chunks;
mod drawing;
mod messages;
mod policy_v2;
mod prompt;
mod proof;
mod recorded_slices;
mod reference;
mod small_graphs;
mod sufficiency;

use std::path::{Path, PathBuf};

/// The path of a file of the repository.
fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("golden/data").join(name)
}

/// JSON without the white space between its tokens.
fn without_white_space(json: &str) -> String {
    let (mut inside, mut escaped) = (false, false);
    json.chars()
        .filter(|&c| {
            let keep = inside || !c.is_ascii_whitespace();
            inside ^= c == '"' && !escaped;
            escaped = c == '\\' && !escaped;
            keep
        })
        .collect()
}

/// The texts of a member of worked cases, their last one, as they stand in the file.
fn last_members(text: &str, name: &str) -> Vec<String> {
    let before = format!(r#","{name}":"#);
    let parts = text.split(&before).skip(1).map(|rest| {
        let end = rest.find(r#"},{"root_hex""#).unwrap_or(rest.len() - "}]".len());
        rest[..end].to_owned()
    });
    parts.collect()
}

fn bytes(hex: &str) -> Vec<u8> {
    let digits = |i| u8::from_str_radix(&hex[i..i + 2], 16).unwrap();
    (0..hex.len()).step_by(2).map(digits).collect()
}
