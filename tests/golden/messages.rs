//! The text and the role of messages, a case for each form that docs/reference.md lists.

use std::collections::BTreeSet;

use graph_kernel_tests::messages::{MessageCase, message_cases};
use kernel::messages::{MessageText, message_role, message_text};

#[test]
fn each_form_has_its_text_and_its_role() {
    let cases = message_cases();
    let forms: BTreeSet<&str> = cases.iter().map(|case| case.form.as_str()).collect();
    assert_eq!(forms.len(), 8, "{forms:?}");
    for MessageCase { stored, text, role, .. } in &cases {
        let found = match message_text(stored, &|| {}) {
            MessageText::AsStored => Some(stored.clone()),
            MessageText::Absent => None,
            MessageText::Text(text) => Some(text),
        };
        assert_eq!(found, *text, "{stored}");
        assert_eq!(message_role(stored, &|| {}), *role, "{stored}");
    }
}
