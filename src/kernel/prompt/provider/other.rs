//! Blocks that are neither texts nor calls nor results.

use crate::json::{JsonValue, compact_text};
use crate::messages::message::{Entries, as_object, standard};
use crate::messages::{MessageText, text_of_part};
use crate::prompt::provider::ProviderFormat;
use crate::prompt::provider::forms::{FILE_KEYS, Form, form_of, type_of};
use crate::prompt::provider::payload::{Arguments, called};
use crate::prompt::provider::sequence::{indented, tool_name};

/// The keys that providers take in a block of a type.
fn keys_of(kind: &str) -> &'static [&'static str] {
    match kind {
        "thinking" => &["type", "thinking", "signature"],
        "redacted_thinking" => &["type", "data"],
        "document" => &["type", "source", "title", "context", "citations"],
        "image" => &["type", "source"],
        "input_image" => &["type", "image_url", "file_id", "detail"],
        "input_file" => &["type", "file_id", "file_data", "file_url", "filename"],
        _ => &["type", "image_url", "input_audio", "file"],
    }
}

/// A block that is neither text nor call nor result: a picture, a thought, or what is not known.
#[derive(Clone, Copy, Debug)]
pub(super) struct Other<'a> {
    pub(super) json: &'a JsonValue<'a>,
}

impl<'a> Other<'a> {
    /// What stands for it in another form: of a file its name, "" of a thought; of others the type, and their text,
    /// which is from somebody who is not the speaker, such as a page that was fetched.
    pub(super) fn described(self, check_interrupts: &dyn Fn()) -> String {
        let is_keyed = FILE_KEYS.iter().any(|key| self.entries().object(key).is_some());
        let form = match type_of(self.entries()) {
            None => is_keyed.then_some(Form::File),
            Some(kind) => form_of(kind),
        };
        let (mark, text) = match (form, self.known_text(check_interrupts)) {
            (Some(Form::Thought), _) => return String::new(),
            (Some(Form::File), Some(name)) if !name.is_empty() => {
                (indented(&name, check_interrupts), self.text_of_file(check_interrupts))
            }
            (_, text) => {
                let text = text.unwrap_or_else(|| self.inner_text(check_interrupts));
                (format!("[Content of type {}]", self.kind()), text)
            }
        };
        match text.is_empty() {
            true => mark,
            false => format!("{mark}\n  {}", indented(&text, check_interrupts)),
        }
    }

    /// The text that a document of Anthropic's has in place of bytes.
    fn text_of_file(self, check_interrupts: &dyn Fn()) -> String {
        let Some(source) = self.entries().object("source") else { return String::new() };
        match (source.text("type"), source.get("content")) {
            (Some("text"), _) => source.text("data").unwrap_or_default().to_owned(),
            (Some("content"), Some(content)) => text_of_content(content, check_interrupts),
            _ => String::new(),
        }
    }

    /// Its text.
    pub(super) fn text(self, check_interrupts: &dyn Fn()) -> String {
        self.known_text(check_interrupts).unwrap_or_else(|| self.inner_text(check_interrupts))
    }

    /// What `graph_message_text` says of it, where it knows such blocks.
    fn known_text(self, check_interrupts: &dyn Fn()) -> Option<String> {
        let list = format!("[{}]", compact_text(self.json, check_interrupts));
        match text_of_part(&list, check_interrupts) {
            MessageText::Text(text) => Some(text),
            MessageText::AsStored | MessageText::Absent => None,
        }
    }

    /// What is most likely the text of a block that is not known.
    fn inner_text(self, check_interrupts: &dyn Fn()) -> String {
        let mut block = self.entries();
        // One that is named by its only key, as those of Bedrock.
        if let (None, Entries([(_, inner)])) = (type_of(block), block)
            && let Some(inner) = as_object(inner)
        {
            block = inner;
        }
        let resource = block.object("resource");
        let is_blank = |text: &&str| text.trim().is_empty();
        let text = block.text("text").filter(|text| !is_blank(text));
        let source = block.object("source");
        let inner = || {
            let inner = [block.object("text"), source].into_iter().flatten();
            inner.filter_map(|inner| inner.text("text")).find(|text| !is_blank(text))
        };
        if let Some(text) = text.or_else(|| resource?.text("text")).or_else(inner) {
            return text.to_owned();
        }
        let content = block.first(&["content", "output"]);
        if let Some(content) = content.or_else(|| source?.get("content")) {
            return text_of_content(content, check_interrupts);
        }
        // Such as the question whether a call is allowed, and the answer.
        match (block.text("name"), block.get("arguments")) {
            (Some(name), arguments @ Some(_)) => {
                called(name, Arguments::of(arguments), check_interrupts)
            }
            _ => block
                .first_text(&["reason", "logs", "error", "name"])
                .unwrap_or_default()
                .to_owned(),
        }
    }

    /// Its type as a name, or the key of what has that alone.
    fn kind(self) -> String {
        let of_key = match self.entries() {
            Entries([(key, _)]) => key.as_ref(),
            Entries(_) => "unknown",
        };
        tool_name(type_of(self.entries()).unwrap_or(of_key))
    }

    /// Whether it is a file or a thought.
    pub(super) fn is_known(self) -> bool {
        let form = type_of(self.entries()).and_then(form_of);
        matches!(form, Some(Form::File | Form::Thought))
    }

    /// Whether it is a thought.
    pub(super) fn is_thought(self) -> bool {
        type_of(self.entries()).and_then(form_of) == Some(Form::Thought)
    }

    fn entries(self) -> Entries<'a> {
        as_object(self.json).map_or(Entries(&[]), standard)
    }

    /// The form that takes it as it is; `None` where it has not what that needs. A thought needs its signature, a file
    /// its bytes, which imports leave out, or where they are.
    pub(super) fn format(self) -> Option<ProviderFormat> {
        let has = |object: Option<Entries<'_>>, key| {
            object.and_then(|object| object.text(key)).is_some_and(has_bytes)
        };
        let own = Some(self.entries());
        let inner = |key| self.entries().object(key);
        match self.entries().text("type")? {
            "thinking" if has(own, "signature") => Some(ProviderFormat::Anthropic),
            "redacted_thinking" if has(own, "data") => Some(ProviderFormat::Anthropic),
            "image" | "document" => {
                let source = inner("source");
                let is_whole = match source.and_then(|source| source.text("type"))? {
                    "base64" => has(source, "data") && has(source, "media_type"),
                    "text" => has(source, "data"),
                    "url" => has(source, "url"),
                    "file" => has(source, "file_id"),
                    _ => false,
                };
                is_whole.then_some(ProviderFormat::Anthropic)
            }
            "image_url" if has(inner("image_url"), "url") => Some(ProviderFormat::OpenAi),
            "input_audio" if has(inner("input_audio"), "data") => Some(ProviderFormat::OpenAi),
            "file" if has(inner("file"), "file_id") || has(inner("file"), "file_data") => {
                Some(ProviderFormat::OpenAi)
            }
            "input_image" if has(own, "image_url") || has(own, "file_id") => {
                Some(ProviderFormat::Responses)
            }
            "input_file"
                if ["file_id", "file_data", "file_url"].iter().any(|key| has(own, key)) =>
            {
                Some(ProviderFormat::Responses)
            }
            _ => None,
        }
    }

    /// It as it is sent. Providers refuse keys that they do not know, and the mark for a cache stands a few times in a
    /// request only.
    pub(super) fn sent(self) -> JsonValue<'a> {
        let keys = keys_of(type_of(self.entries()).unwrap_or_default());
        let Entries(entries) = self.entries();
        let entries = entries.iter().filter(|(key, _)| keys.contains(&key.as_ref()));
        JsonValue::Object(entries.cloned().collect())
    }
}

fn text_of_content(content: &JsonValue<'_>, check_interrupts: &dyn Fn()) -> String {
    let content = compact_text(content, check_interrupts);
    let message = format!("{{\"role\":\"user\",\"content\":{content}}}");
    match text_of_part(&message, check_interrupts) {
        MessageText::Text(text) => text,
        MessageText::AsStored | MessageText::Absent => String::new(),
    }
}

/// Whether a text is not empty, nor a data URL without data.
fn has_bytes(text: &str) -> bool {
    !(text.is_empty() || text.starts_with("data:") && text.ends_with(','))
}

/// Whether a block that is sent is a thought.
pub(super) fn is_thought(json: &JsonValue<'_>) -> bool {
    Other { json }.is_thought()
}
