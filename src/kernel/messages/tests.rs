use super::*;

fn text(stored: &str) -> MessageText {
    message_text(stored, &|| {})
}

fn said(stored: &str) -> String {
    match text(stored) {
        MessageText::Text(text) => text,
        other => panic!("{stored}: {other:?}"),
    }
}

fn role(stored: &str) -> Option<String> {
    message_role(stored, &|| {})
}

#[test]
fn what_is_not_a_message_is_as_it_was_stored() {
    for stored in [
        "",
        " ",
        "Hello",
        "\"unclosed",
        "[1, 2, 3]",
        "[\"a\", \"b\"]",
        "42",
        "-0.0e9",
        "true",
        "{}",
        "{\"answer\": 42}",
        "{\"role\": \"engineer\", \"salary\": 5}",
        "{\"type\": \"text\", \"text\": \"a\"} and more",
        "{\"type\": \"unknown\", \"text\": \"a\"}",
        "{\"content\": \"a\"}",
        "[{\"type\": \"unknown\", \"text\": \"a\"}]",
        "{\"parts\": [1]}",
        "{'role': 'user', 'content': 'a'}",
        "\u{feff}\"a\"",
        "{\"role\": \"user\", \"content\": \"\\u12\"}",
        "{\"lc\": 1, \"id\": [\"Document\"], \"kwargs\": {\"content\": \"a\"}}",
    ] {
        assert_eq!(text(stored), MessageText::AsStored, "{stored}");
        assert_eq!(role(stored), None, "{stored}");
    }
}

/// Whoever looks at `role` and `content` has seen who says what.
#[test]
fn what_names_its_role_is_of_it() {
    for beside in [
        r#""type":"system""#,
        r#""type":"chat","data":{"role":"system","content":"other"}"#,
        r#""type":"ai","data":{"content":"other"}"#,
        r#""type":"SystemMessageChunk""#,
        r#""type":"non_standard","value":{"role":"system","content":"other"}"#,
        r#""lc":1,"type":"constructor","id":["x","SystemMessage"],"kwargs":{"content":"other"}"#,
        r#""object":"chat.completion","choices":[{"message":{"role":"system","content":"other"}}]"#,
        r#""object":"response","output":[{"role":"system","content":"other"}]"#,
    ] {
        let stored = format!(r#"{{"role":"user","content":"said",{beside}}}"#);
        assert_eq!(role(&stored).as_deref(), Some("user"), "{stored}");
        assert_eq!(said(&stored), "said", "{stored}");
    }
    assert_eq!(role(r#"{"type":"chat","role":"critic","content":"a"}"#).as_deref(), Some("critic"));
    let without_content = r#"{"role":"user","type":"system","data":{"content":"said"}}"#;
    assert_eq!(role(without_content).as_deref(), Some("user"));
    assert_eq!(said(without_content), "said");
}

#[test]
fn a_message_without_text_has_none() {
    for stored in [
        "null",
        " null\n",
        "\"\"",
        "\"\\u0000\"",
        "[]",
        r#"{"role":"assistant","content":null,"tool_calls":[{"id":"c1"}]}"#,
        r#"{"role":"user","content":""}"#,
        r#"{"role":"user","content":7}"#,
        r#"{"role":"user","content":[]}"#,
        r#"{"role":"user","parts":[]}"#,
        r#"[{"type":"text","text":""},{"type":"text","text":"\u0000"}]"#,
        r#"[{"type":"tool_use","name":"ls","input":{}}]"#,
        r#"{"type":"text"}"#,
    ] {
        assert_eq!(text(stored), MessageText::Absent, "{stored}");
    }
}

#[test]
fn texts_are_unescaped_and_joined_by_line_feeds() {
    assert_eq!(said(r#""caf\u00e9 \ud83d\ude00\n""#), "café 😀\n");
    assert_eq!(said(r#"[{"type":"text","text":"a"},{"type":"text","text":""},"b"]"#), "a\nb");
    // A NUL cannot be stored, and half a surrogate pair is not a character.
    assert_eq!(said(r#""a\u0000b""#), "ab");
    assert_eq!(said(r#""a\ud800b""#), "a\u{fffd}b");
    assert_eq!(said(r#""\ud800\ud83d\ude00\udc00""#), "\u{fffd}😀\u{fffd}");
    assert_eq!(said(r#""\ud800\u0041""#), "\u{fffd}A");
}

#[test]
fn of_a_key_that_is_given_twice_the_last_value_counts() {
    let stored = r#"{"role":"user","content":"a","role":"assistant","content":"b"}"#;
    assert_eq!((said(stored), role(stored).as_deref()), ("b".to_owned(), Some("assistant")));
}

#[test]
fn roles_have_one_name_in_all_forms() {
    for (name, expected) in [
        ("user", "user"),
        ("User", "user"),
        ("model", "assistant"),
        ("developer", "system"),
        ("function", "tool"),
        ("critic", "critic"),
        ("Critic", "Critic"),
    ] {
        let stored = format!(r#"{{"role":"{name}","content":"a"}}"#);
        assert_eq!(role(&stored).as_deref(), Some(expected), "{name}");
    }
    assert_eq!(role(r#"{"role":"\u0000","content":"a"}"#), None);
    assert_eq!(role(r#"{"role":5,"content":"a"}"#), None);
    assert_eq!(
        role(r#"{"type":"chat","data":{"role":"critic","content":"a"}}"#).unwrap(),
        "critic"
    );
}

#[test]
fn a_result_of_a_call_is_its_text_or_its_data() {
    let said = |content: &str| said(&format!(r#"{{"type":"tool_result","content":{content}}}"#));
    for (content, expected) in [
        (r#""plain""#, "plain"),
        (r#"[{"type":"text","text":"a"},{"type":"image","source":{}}]"#, "a\n[image]"),
        (
            r#"{"rows": [1, 2.50], "ok": true, "no": null}"#,
            r#"{"rows":[1,2.50],"ok":true,"no":null}"#,
        ),
        (r#"{"key\u0000": "a\u0000\"b"}"#, r#"{"key":"a\"b"}"#),
        (r#"[{"type":"unknown","text":"a"}]"#, r#"[{"type":"unknown","text":"a"}]"#),
        (r#"[1, "a"]"#, r#"[1,"a"]"#),
        ("17", "17"),
        ("false", "false"),
        (r#"{"output":"inner"}"#, "inner"),
        (r#"{"result":{"output":[1]}}"#, "[1]"),
        (r#"{"content":[{"type":"text","text":"a"}],"isError":false}"#, "a"),
        (r#"{"content":["a"]}"#, r#"{"content":["a"]}"#),
    ] {
        assert_eq!(said(content), expected, "{content}");
    }
    assert_eq!(text(r#"{"type":"tool_result","content":null}"#), MessageText::Absent);
}

#[test]
fn what_is_deeper_longer_or_of_more_values_than_is_read_is_as_it_was_stored() {
    // Each message within a message is two levels.
    let nested = |times: usize| {
        let (open, close) = (r#"{"role":"user","content":["#, "]}");
        format!("{}\"a\"{}", open.repeat(times), close.repeat(times))
    };
    assert_eq!(said(&nested(64)), "a");
    assert_eq!(text(&nested(65)), MessageText::AsStored);
    assert_eq!(text(&"[".repeat(1 << 20)), MessageText::AsStored);

    let long = |bytes: usize| format!("\"{}\"", "a".repeat(bytes - 2));
    assert_eq!(said(&long(LIMITS.bytes)).len(), LIMITS.bytes - 2);
    assert_eq!(text(&long(LIMITS.bytes + 1)), MessageText::AsStored);

    let many = |values: usize| format!("[{}{{}},\"a\"]", "0,".repeat(values - 3));
    let message = |values: usize| format!(r#"{{"role":"user","content":{}}}"#, many(values - 2));
    assert_eq!(said(&message(LIMITS.values)), "a");
    assert_eq!(text(&message(LIMITS.values + 1)), MessageText::AsStored);
    assert_eq!(role(&message(LIMITS.values + 1)), None);
}

#[test]
fn long_messages_are_checked_for_interrupts() {
    let checks = std::cell::Cell::new(0);
    let check = || checks.set(checks.get() + 1);
    let stored = format!(r#"[{{"type":"text","text":"{}"}}]"#, "a\\n".repeat(1 << 20));
    assert!(matches!(message_text(&stored, &check), MessageText::Text(_)));
    assert!(checks.get() >= 48, "{} checks", checks.get());
}
