"""Pydantic AI: the history of messages of an agent. Needs pydantic-ai-slim, or pydantic-ai."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

from pydantic_ai.messages import (
    FileUrl,
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    RetryPromptPart,
    SystemPromptPart,
    TextPart,
    ToolReturnPart,
    UserPromptPart,
)

from .._async.conversation import Conversation
from .._messages import Part
from . import payloads, taken

__all__ = ["append_messages", "message_history"]


async def append_messages(conversation: Conversation, messages: Sequence[ModelMessage]) -> None:
    """Stores messages, each as a turn: `result.new_messages()` after a run."""
    await taken(conversation, Conversation).append_parts([_part(message) for message in messages])


async def message_history(conversation: Conversation, *, max_tokens: int | None = None) -> list[ModelMessage]:
    """The messages up to now, for `message_history` of a run: all, or those that fit into `max_tokens`."""
    turns = await taken(conversation, Conversation).turns(max_tokens=max_tokens)
    messages: list[ModelMessage] = ModelMessagesTypeAdapter.validate_python(payloads(turns, "kind", "parts"))
    _force_no_download(messages)
    return messages


def _force_no_download(value: Any) -> None:
    """Takes away what has the application fetch an address itself, such as one of its own network: whoever may insert a
    turn can write that."""
    if isinstance(value, FileUrl):
        value.force_download = False
    elif isinstance(value, Mapping):
        _force_no_download(list(value.values()))
    elif isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
        for item in value:
            _force_no_download(item)
    elif is_dataclass(value):
        _force_no_download([getattr(value, field.name) for field in fields(value)])


def _part(message: ModelMessage) -> Part:
    (payload,) = ModelMessagesTypeAdapter.dump_python([message], mode="json")
    if isinstance(message, ModelResponse):
        said = [part.content for part in message.parts if isinstance(part, TextPart)]
        return Part(payload, [], role="assistant", text="\n".join(said))
    answers = [
        part.tool_call_id
        for part in message.parts
        if isinstance(part, ToolReturnPart) or (isinstance(part, RetryPromptPart) and part.tool_name)
    ]
    return Part(payload, answers, role="tool" if answers else _role(message), text="\n".join(_texts(message)))


def _role(message: ModelRequest) -> str:
    return "system" if all(isinstance(part, SystemPromptPart) for part in message.parts) else "user"


def _texts(message: ModelRequest) -> list[str]:
    texts: list[str] = []
    for part in message.parts:
        if isinstance(part, ToolReturnPart):
            texts.append(part.model_response_str())
        elif isinstance(part, UserPromptPart) and not isinstance(part.content, str):
            texts += [item for item in part.content if isinstance(item, str)]
        else:
            # Some kinds of parts have no content.
            content: Any = getattr(part, "content", None)
            if content is not None:
                texts.append(content if isinstance(content, str) else str(content))
    return texts
