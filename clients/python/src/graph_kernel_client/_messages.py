"""Messages of providers as turns: what is one turn, and which call a result answers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .errors import GraphKernelError

_RESULTS = "tool_result"


@dataclass
class Part:
    """A turn to be: the message as it is sent, and the ids of the calls that it answers."""

    payload: dict[str, Any]
    answers: list[str]
    # Where the server does not read the form of the payload.
    role: str | None = None
    text: str | None = None
    # What the server reads role and text from, where the payload is something around it.
    form: dict[str, Any] | None = None


# What PostgreSQL cannot store: U+0000, and halves of surrogate pairs.
_NOT_STORED = re.compile("[\0\ud800-\udfff]")


def storable(value: Any) -> Any:
    """The same JSON value, with U+FFFD for what cannot be stored."""
    if isinstance(value, str):
        return _NOT_STORED.sub("\ufffd", value)
    if isinstance(value, dict):
        return {storable(key): storable(nested) for key, nested in value.items()}
    return [storable(nested) for nested in value] if isinstance(value, list) else value


def _plain(value: Any) -> Any:
    """Values of JSON of what may hold objects of a provider's package."""
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json", exclude_none=True)
    if isinstance(value, Mapping):
        return {str(key): _plain(nested) for key, nested in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(nested) for nested in value]
    return value


def parts(message: Any) -> list[Part]:
    """The turns of a message: of results in Anthropic's form each is a turn, and what stands beside them another."""
    payload = _plain(message)
    if not isinstance(payload, dict) or not isinstance(payload.get("role"), str):
        raise GraphKernelError(
            "a message is an object with a role, in the form of OpenAI's chat completions or of Anthropic's messages",
            sqlstate="22023",
            word="INVALID_MESSAGE",
        )
    if payload.get("type") == "message" and "model" in payload and isinstance(payload.get("content"), list):
        # Anthropic's answer: what is sent again is its role and its blocks.
        payload = {"role": payload["role"], "content": payload["content"]}
    role, content = payload["role"], payload.get("content")
    if role in ("tool", "function"):
        answered = payload.get("tool_call_id")
        return [Part(payload, [answered] if isinstance(answered, str) else [])]
    if role == "user" and isinstance(content, list) and any(_is_result(block) for block in content):
        made: list[Part] = []
        rest: list[Any] = []
        for block in content:
            if _is_result(block):
                answered = block.get("tool_use_id")
                made.append(Part({"role": role, "content": [block]}, [answered] if isinstance(answered, str) else []))
            else:
                rest.append(block)
        if rest:
            made.append(Part({"role": role, "content": rest}, []))
        return made
    return [Part(payload, [])]


def _is_result(block: Any) -> bool:
    return isinstance(block, dict) and str(block.get("type", "")).endswith(_RESULTS)


def is_text_alone(payload: Mapping[str, Any]) -> bool:
    """Whether role and text say all of the message."""
    return (
        payload.keys() == {"role", "content"}
        and payload["role"] in ("user", "assistant", "system")
        and isinstance(payload["content"], str)
    )


def call_forms(call: str) -> list[dict[str, Any]]:
    """What a payload contains that makes this call: of OpenAI's two forms, Anthropic's, and of other packages."""
    return [
        {"tool_calls": [{"id": call}]},
        {"output": [{"call_id": call}]},
        {"content": [{"type": "tool_use", "id": call}]},
        {"data": {"tool_calls": [{"id": call}]}},
        {"parts": [{"part_kind": "tool-call", "tool_call_id": call}]},
        {"additional_kwargs": {"tool_calls": [{"id": call}]}},
        {"blocks": [{"block_type": "tool_call", "tool_call_id": call}]},
        {"content": {"parts": [{"functionCall": {"id": call}}]}},
    ]
