//! What a client is told of each tool.

use std::sync::Arc;

use rmcp::model::{Tool, ToolAnnotations};
use serde_json::{Value, json};

use super::quoting::MAX_TOKENS;

/// The tools that are offered.
pub(super) fn list(allows_writes: bool) -> Vec<Tool> {
    let max_tokens = json!({
        "type": "integer", "minimum": 200, "maximum": MAX_TOKENS, "default": 4000,
        "description": "The most tokens that the result may have, a token being four bytes."
    });
    let session = json!({
        "type": "string", "description": "The name of a session as `sessions` gives it: its latest turn is the anchor."
    });
    let anchor = json!({
        "type": "string", "format": "uuid", "description": "The id of a turn, in place of a session."
    });
    let policy = json!({
        "description": "Which turns count: a preset, \"chat\" unless told or \"lineage\", or a slice policy as an \
                        object.",
        "anyOf": [{"type": "string"}, {"type": "object"}]
    });
    let at = json!({
        "session": session, "turn": anchor, "policy": policy, "max_tokens": max_tokens
    });
    let mut tools = vec![
        tool(
            "sessions",
            "List the sessions that are stored, the latest first: name, time, number of turns, latest turn and the \
             beginning of its text. Of one session, the ends of its branches.",
            json!({
                "session": {"type": "string", "description": "List the ends of the branches of this session."},
                "offset": {"type": "integer", "minimum": 0, "default": 0, "description": "How many to pass over."},
                "max_tokens": max_tokens
            }),
            &[],
        ),
        tool(
            "context",
            "The messages of a conversation that count at the end of a session or at a turn, in their order. Without \
             session and turn: at the latest turn of all.",
            at.clone(),
            &[],
        ),
        tool(
            "recall",
            "Search all stored conversations for what was said about a question, with what was said around it. The \
             best hit comes last.",
            json!({
                "question": {
                    "type": "string", "description": "The question, in words that the answer is likely to have."
                },
                "embedding": {
                    "type": "array", "items": {"type": "number"},
                    "description": "An embedding of the question, by the model that embedded the stored turns."
                },
                "filter": {
                    "type": "object",
                    "description": "Narrows what is found. Keys: sessions and roles (arrays), owner, from and to (Unix \
                                    seconds), min_salience, and with an embedding min_similarity."
                },
                "max_tokens": max_tokens
            }),
            &[],
        ),
        tool(
            "why",
            "Why a turn is among the messages of `context` at a session's end or at another turn, or what would bring \
             it in. Give the same policy and max_tokens as to `context`.",
            json!({
                "turn": {"type": "string", "format": "uuid", "description": "The turn that is asked about."},
                "session": session,
                "anchor": {
                    "type": "string", "format": "uuid", "description": "The turn of `context`, in place of a session."
                },
                "policy": policy, "max_tokens": max_tokens
            }),
            &["turn"],
        ),
        tool(
            "record",
            "Returns a signed record, as JSON, of the messages that `context` gives: their order, and the hash of each \
             text. Nothing is stored: whoever wants to prove later what was shown keeps this JSON, whole.",
            {
                let mut properties = at;
                properties["context"] = json!({
                    "type": "string", "pattern": "^[0-9a-f]{64}$",
                    "description": "A SHA-256 of what the model is shown besides."
                });
                properties
            },
            &[],
        ),
        tool(
            "show",
            "The messages of a signed record, with what is stored of them now: unchanged, changed or gone.",
            json!({
                "record": {"type": "object", "description": "The JSON that `record` has returned, whole."},
                "max_tokens": max_tokens
            }),
            &["record"],
        ),
    ];
    if allows_writes {
        let mut remember = tool(
            "remember",
            "Store a text as the next turn of a session, for later sessions to recall. A session that does not exist \
             begins with it.",
            json!({
                "session": {"type": "string", "description": "The name of the session, as `sessions` gives it or new."},
                "text": {
                    "type": "string", "description": "What to remember, to be understood without this conversation."
                },
                "role": {"enum": ["assistant", "user"], "default": "assistant", "description": "Whose words they are."},
                "after": {"type": "string", "format": "uuid", "description": "The turn of the session that it follows; \
                    the latest unless told."}
            }),
            &["session", "text"],
        );
        remember.annotations = Some(
            ToolAnnotations::new()
                .read_only(false)
                .destructive(false)
                .idempotent(false)
                .open_world(false),
        );
        tools.push(remember);
    }
    tools
}

fn tool(
    name: &'static str,
    description: &'static str,
    properties: Value,
    required: &[&str],
) -> Tool {
    let schema = json!({
        "type": "object", "properties": properties, "required": required, "additionalProperties": false
    });
    let Value::Object(schema) = schema else { unreachable!("it is written as an object") };
    let mut tool = Tool::new(name, description, Arc::new(schema));
    tool.annotations = Some(ToolAnnotations::new().read_only(true).open_world(false));
    tool
}
