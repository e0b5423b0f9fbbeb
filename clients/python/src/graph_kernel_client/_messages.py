"""Messages of providers as turns: what is one turn, and which call a result answers."""

from __future__ import annotations

import json
import re
import uuid
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
    # Made of the id that the message has in its package, so that it is stored once.
    turn_id: uuid.UUID | None = None


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
    try:
        payload = _plain(message)
    except RecursionError as error:
        raise not_a_message("the message is nested too deep") from error
    # What names its role is that message, whatever other keys it has.
    if isinstance(payload, dict) and "role" not in payload:
        if payload.get("object") == "response":
            return [items_part(payload.get("output"))]
        if payload.get("object") == "chat.completion":
            payload = _chosen(payload.get("choices"))
        elif _ITEMS.search(str(payload.get("type"))):
            return [item_part(payload)]
    if not isinstance(payload, dict) or not isinstance(payload.get("role"), str):
        raise not_a_message(
            "a message is an object with a role, in the form of OpenAI's chat completions or of Anthropic's messages,"
            " or what their packages return",
            "Messages of other packages are stored by the adapters in graph_kernel_client.adapters.",
        )
    if payload.get("type") == "message" and "model" in payload and isinstance(payload.get("content"), list):
        # Anthropic's answer: what is sent again is its role and its blocks.
        payload = {"role": payload["role"], "content": payload["content"]}
    if payload.get("parts") is not None and payload.get("content") is not None:
        raise not_a_message("the message has two contents: content, and parts")
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


# Items of OpenAI's responses that have no role.
_ITEMS = re.compile("_call$|_output$|^mcp_|^(reasoning|compaction)$")


def not_a_message(message: str, hint: str | None = None) -> GraphKernelError:
    return GraphKernelError(message, sqlstate="22023", word="INVALID_MESSAGE", hint=hint)


def _chosen(choices: Any) -> Any:
    """The message of a completion."""
    if not isinstance(choices, list) or len(choices) != 1 or not isinstance(choices[0], dict):
        raise not_a_message("a completion is one message if it has one choice", "Append the message of a choice.")
    return choices[0].get("message")


def items_part(output: Any) -> Part:
    """The turn of several items, such as those of a response: with all calls that were made side by side."""
    if not isinstance(output, list) or not output or not all(isinstance(item, dict) for item in output):
        raise not_a_message("the response has no output")
    blocks: list[Any] = []
    for item in output:
        if item.get("type") == "message" and isinstance(item.get("content"), list):
            blocks += item["content"]
    return Part({"role": "assistant", "output": output}, [], form={"role": "assistant", "content": blocks})


def item_part(item: dict[str, Any]) -> Part:
    """The turn of an item of OpenAI's responses."""
    kind = str(item.get("type", "message"))
    result = kind.endswith("_output")
    role = item.get("role") or ("tool" if result else "user" if kind == "mcp_approval_response" else "assistant")
    role = "system" if role == "developer" else role
    call = item.get("call_id")
    answers = [call] if result and isinstance(call, str) else []
    return Part({"role": role, "output": [item]}, answers, role=role, form=item)


def _is_result(block: Any) -> bool:
    return isinstance(block, dict) and str(block.get("type", "")).endswith(_RESULTS)


def redacted_result(payload: Any, text: str) -> dict[str, Any] | None:
    """A result in OpenAI's forms or Anthropic's with this text, and nothing else but the id of its call."""
    role = payload.get("role") if isinstance(payload, dict) else None
    if role == "tool" and isinstance(payload.get("tool_call_id"), str):
        return {"role": role, "tool_call_id": payload["tool_call_id"], "content": text}
    if role == "function" and isinstance(payload.get("name"), str):
        return {"role": role, "name": payload["name"], "content": text}
    for key, call, said in (("content", "tool_use_id", "content"), ("output", "call_id", "output")):
        items = payload.get(key) if role in ("user", "tool") else None
        if isinstance(items, list) and len(items) == 1 and isinstance(items[0], dict):
            kind, id = str(items[0].get("type")), items[0].get(call)
            if not isinstance(id, str):
                return None
            if kind in ("local_shell_call_output", "apply_patch_call_output"):
                kept = {name: items[0][name] for name in ("id", "status") if isinstance(items[0].get(name), str)}
                return {"role": role, key: [{"type": kind, **kept, call: id, said: text}]}
            # Those of other tools of the provider's, such as computers, have no text in that place.
            if key == "output" and kind.endswith("_output") and kind != "custom_tool_call_output":
                kind = "function_call_output"
            if kind in ("tool_result", "function_call_output", "custom_tool_call_output"):
                return {"role": role, key: [{"type": kind, call: id, said: text}]}
    return None


def is_text_alone(payload: Mapping[str, Any]) -> bool:
    """Whether role and text say all of the message."""
    return (
        payload.keys() == {"role", "content"}
        and payload["role"] in ("user", "assistant", "system")
        and isinstance(payload["content"], str)
    )


_THOUGHTS = ("thinking", "redacted_thinking")
_FILES = ("image", "image_url", "input_image", "document", "file", "input_file", "input_audio")
_FILE_TOKENS = 1600  # about what providers count for a picture of full size
_NAMES = ("name", "tool_name")
_ARGUMENTS = ("arguments", "args", "input", "tool_kwargs")
_RETURNED = ("content", "output", "result")
_TEXTS = ("text", "input_text", "output_text", "refusal")
_OF_FILES = ("data", "file_data", "image_url")
# The place of data that results return, beside those of calls by their ids.
_DATA = "\0data"
_IDS = ("call_id", "tool_call_id", "tool_use_id", "id")


def tokens(text: str | None, payload: Mapping[str, Any]) -> int | None:
    """A quarter of the bytes that are sent; None where that is the text alone, which the server counts."""
    calls: dict[str, int] = {}
    beside, said = _beside(payload, calls), len((text or "").encode())
    # Of some data there is a text, of other none.
    beside += max(calls.pop(_DATA, 0) - said, 0) + sum(calls.values())
    return (beside + said + 3) // 4 if beside else None


def _beside(value: Any, calls: dict[str, int]) -> int:
    """The bytes of thoughts, files and ids of results; those of calls by their ids, and of the data of results, in
    `calls`, for some forms repeat what one list has in another."""
    if isinstance(value, list):
        size, of_list = 0, dict[str, int]()
        for nested in value:
            of_one: dict[str, int] = {}
            size += _beside(nested, of_one)
            for call, of_call in of_one.items():
                of_list[call] = of_list.get(call, 0) + of_call
        for call, of_calls in of_list.items():
            calls[call] = max(of_calls, calls.get(call, 0))
        return size
    if not isinstance(value, Mapping):
        return 0
    kind = value.get("type")
    if kind in _THOUGHTS:
        return _bytes(value)
    if kind in _FILES:
        return _of_file(value)
    called = next((value[key] for key in ("function", "custom") if isinstance(value.get(key), Mapping)), value)
    name = next((called[key] for key in _NAMES if isinstance(called.get(key), str)), None)
    arguments = next((called[key] for key in _ARGUMENTS if called.get(key) is not None), None)
    id = next((value[key] for key in _IDS if isinstance(value.get(key), str)), None)
    if name is not None and arguments is not None:
        size = len(f"{name}{id or ''}".encode()) + _bytes(arguments)
        if id is None:
            return size
        calls[id] = max(size, calls.get(id, 0))
        return 0
    answered = next((value[key] for key in _IDS[:-1] if isinstance(value.get(key), str)), "")
    if answered or str(kind).endswith(("_result", "_output")):
        files, data = 0, 0
        for returned in (value.get(key) for key in _RETURNED):
            for block in returned if isinstance(returned, list) else [returned]:
                if isinstance(block, Mapping) and block.get("type") in _FILES:
                    files += _of_file(block)
                elif isinstance(block, Mapping) and block.get("type") not in _TEXTS:
                    data += _sent(block)
        calls[_DATA] = calls.get(_DATA, 0) + data
        return len(answered.encode()) + files
    return sum(_beside(nested, calls) for nested in value.values())


def _of_file(value: Mapping[str, Any]) -> int:
    source = value.get("source")
    is_text = isinstance(source, Mapping) and source.get("type") in ("text", "content")
    return _bytes(value) if is_text else 4 * _FILE_TOKENS


def _sent(value: Any, key: str = "") -> int:
    """About the bytes of data as JSON, of files in it by their kind."""
    if isinstance(value, list):
        return 2 + sum(1 + _sent(nested, key) for nested in value)
    if isinstance(value, Mapping):
        if value.get("type") in (*_FILES, "computer_screenshot"):
            return _of_file(value)
        return 2 + sum(4 + len(key.encode()) + _sent(nested, key) for key, nested in value.items())
    size = _bytes(value)
    return min(size, 4 * _FILE_TOKENS) if key in _OF_FILES else size


def _bytes(value: Any) -> int:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return len(text.encode())


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
