//! Messages: any text has one text and at most one role, whatever it holds, and no white space of its JSON matters.

use graph_kernel_tests::messages::message_cases;
use kernel::messages::{MessageText, message_role, message_text};
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::Value;

use crate::cases;

/// What is read of a stored text.
fn read(stored: &str) -> (MessageText, Option<String>) {
    let read = || (message_text(stored, &|| {}), message_role(stored, &|| {}));
    let first = read();
    assert_eq!(read(), first, "{stored}");
    if let MessageText::Text(text) = &first.0 {
        assert!(!text.is_empty() && !text.contains('\0'), "{stored}");
        assert!(text.len() <= stored.len(), "{stored}: {text}");
    }
    first
}

/// The keys, types and texts of the cases, by which blocks are told from each other.
fn words() -> Vec<String> {
    fn collect(value: &Value, words: &mut Vec<String>) {
        match value {
            Value::String(text) => words.push(text.clone()),
            Value::Array(items) => items.iter().for_each(|item| collect(item, words)),
            Value::Object(entries) => entries.iter().for_each(|(key, value)| {
                words.push(key.clone());
                collect(value, words);
            }),
            _ => {}
        }
    }
    let mut words: Vec<String> =
        ["", "a\0b", "\u{fffd}", "é\n", "tool-", "data-", "_call", "HumanMessage"]
            .map(str::to_owned)
            .to_vec();
    for case in message_cases() {
        collect(&serde_json::from_str(&case.stored).unwrap(), &mut words);
    }
    words.sort();
    words.dedup();
    words
}

/// Values made of the words of the cases, in any arrangement.
fn values() -> impl Strategy<Value = Value> {
    let word = select(words());
    let leaf = prop_oneof![
        word.clone().prop_map(Value::String),
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        any::<i32>().prop_map(Value::from),
    ];
    let key = prop_oneof![
        3 => select(vec!["type", "role", "content", "parts", "text", "output", "data", "kwargs", "id", "lc"])
            .prop_map(str::to_owned),
        1 => word,
    ];
    leaf.prop_recursive(6, 40, 5, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::Array),
            prop::collection::vec((key.clone(), inner), 0..5)
                .prop_map(|entries| Value::Object(entries.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(cases(2000))]

    #[test]
    fn a_value_is_read_alike_however_its_json_is_written(value in values()) {
        let (compact, pretty) = (value.to_string(), serde_json::to_string_pretty(&value).unwrap());
        let ((text, role), (pretty_text, pretty_role)) = (read(&compact), read(&pretty));
        prop_assert_eq!(role, pretty_role);
        prop_assert_eq!(text, pretty_text);
        // A user's message with this content has the same text, or has one where the content alone is of no known form.
        if value.is_array() || value.is_string() {
            let message = serde_json::json!({ "role": "critic", "content": value }).to_string();
            let (text, role) = read(&message);
            prop_assert_eq!(role.as_deref(), Some("critic"));
            let (alone, _) = read(&compact);
            if alone != MessageText::AsStored {
                prop_assert_eq!(text, alone);
            }
        }
    }

    #[test]
    fn any_text_is_read(text in "\\PC{0,40}|[\\[\\]{}\":,\\\\ud8c0a-f0-9 ]{0,60}") {
        read(&text);
    }

    #[test]
    fn the_beginning_of_a_message_is_read(case in select(message_cases_stored()), end in 0..400usize) {
        read(&case[..case.floor_char_boundary(end.min(case.len()))]);
    }
}

fn message_cases_stored() -> Vec<String> {
    message_cases().into_iter().map(|case| case.stored).collect()
}
