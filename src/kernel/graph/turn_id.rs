//! Turn ids of applications whose ids are not uuids (BINDING.md, the mapping).

use sha1::{Digest, Sha1};
use uuid::{Builder, Uuid, uuid};

use crate::graph::turn::TurnId;
use crate::interrupts::CHECKED_BYTES;

/// The namespace of the UUIDv5 of texts.
const NAMESPACE: Uuid = uuid!("25f9212d-5d2f-540a-b6a6-9d7f22a4f440");

/// The length of a UUID as text: 8-4-4-4-12 hex digits.
const UUID_TEXT_BYTES: usize = 36;

/// The turn id of a text: the UUID that it spells as 8-4-4-4-12 hex digits in any case, else its UUIDv5.
#[must_use]
pub fn turn_id(text: &str) -> TurnId {
    turn_id_of_parts(|| std::iter::once(text.as_bytes()), &|| {})
}

/// As [`turn_id`], of the bytes of a text in parts, which `parts` gives anew each time. They are not joined in memory,
/// and may be long: `check_interrupts` is called often. Bytes that are not UTF-8 have a UUIDv5 like any others.
#[must_use]
pub fn turn_id_of_parts<'a, I: Iterator<Item = &'a [u8]>>(
    parts: impl Fn() -> I,
    check_interrupts: &dyn Fn(),
) -> TurnId {
    if parts().map(<[u8]>::len).sum::<usize>() == UUID_TEXT_BYTES
        && let Ok(id) = Uuid::try_parse_ascii(&parts().flatten().copied().collect::<Vec<u8>>())
    {
        return id;
    }
    let mut hash = Sha1::new();
    hash.update(NAMESPACE);
    for piece in parts().flat_map(|part| part.chunks(CHECKED_BYTES)) {
        check_interrupts();
        hash.update(piece);
    }
    let hash: [u8; 20] = hash.finalize().into();
    let (id, _) = hash.split_first_chunk().expect("SHA-1 has 20 bytes");
    Builder::from_sha1_bytes(*id).into_uuid()
}

/// The turns that a text names: each UUID in it that is spelled as 8-4-4-4-12 hex digits, in any case. The text may be
/// long: `check_interrupts` is called often.
pub fn turn_ids_in<'a>(
    text: &'a str,
    check_interrupts: &'a dyn Fn(),
) -> impl Iterator<Item = TurnId> + 'a {
    let windows = text.as_bytes().windows(UUID_TEXT_BYTES).enumerate();
    windows.filter_map(move |(at, bytes)| {
        if at % CHECKED_BYTES == 0 {
            check_interrupts();
        }
        let is_hyphenated = [8, 13, 18, 23].into_iter().all(|hyphen| bytes[hyphen] == b'-');
        is_hyphenated.then(|| Uuid::try_parse_ascii(bytes).ok())?
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> String {
        turn_id(text).to_string()
    }

    #[test]
    fn texts_have_the_ids_of_the_specification() {
        assert_eq!(of("msg_123"), "342df4dc-b632-5f78-b687-838a8c522b5f");
        assert_eq!(of(""), "ad9dfc89-5456-5114-8c21-f0ce38fd9d6d");
        assert_eq!(of("42"), "05fd4cbb-b481-5993-9c3e-d52491dcab2e");
    }

    #[test]
    fn only_the_hyphenated_form_is_the_uuid_itself() {
        let id = "00000000-0000-4000-8000-0000000000af";
        assert_eq!(of(id), id);
        assert_eq!(of(&id.to_uppercase()), id);
        for other in [
            "000000000000400080000000000000af",
            "{00000000-0000-4000-8000-0000000000af}",
            "urn:uuid:00000000-0000-4000-8000-0000000000af",
            "00000000-0000-4000-8000-0000000000ag",
            "0000000-00000-4000-8000-0000000000af",
            " 0000000-0000-4000-8000-0000000000af",
        ] {
            assert_ne!(of(other), id, "{other}");
        }
    }

    #[test]
    fn the_ids_in_a_text_are_found_wherever_they_stand() {
        let ids =
            |text: &str| turn_ids_in(text, &|| {}).map(|id| id.to_string()).collect::<Vec<_>>();
        let (one, two) =
            ("00000000-0000-4000-8000-0000000000af", "6f9619ff-8b86-d011-b42d-00cf4fc964ff");
        assert_eq!(ids(one), [one]);
        assert_eq!(ids(&format!("{{{one},{two}}}")), [one, two]);
        assert_eq!(ids(&format!("{{\"id\": \"{}\"}}", two.to_uppercase())), [two]);
        // Beside other digits and characters of several bytes.
        assert_eq!(ids(&format!("ä{one}f-{two}ü")), [one, two]);
        for none in
            ["", "00000000-0000-4000-8000-0000000000a", "00000000-0000-4000-8000-0000000000ag"]
        {
            assert!(ids(none).is_empty(), "{none}");
        }
        let calls = std::cell::Cell::new(0);
        let long = "x".repeat(3 * CHECKED_BYTES);
        assert_eq!(turn_ids_in(&long, &|| calls.set(calls.get() + 1)).count(), 0);
        assert_eq!(calls.get(), 3);
    }

    #[test]
    fn parts_have_the_id_of_the_joined_text() {
        for parts in [&["msg", "_", "123"][..], &["msg_123", ""], &[]] {
            assert_eq!(
                turn_id_of_parts(|| parts.iter().map(|part| part.as_bytes()), &|| {}).to_string(),
                of(&parts.concat())
            );
        }
        let halves = ["00000000-0000-4000-", "8000-0000000000af"];
        assert_eq!(
            turn_id_of_parts(|| halves.iter().map(|half| half.as_bytes()), &|| {}).to_string(),
            halves.concat()
        );
    }
}
