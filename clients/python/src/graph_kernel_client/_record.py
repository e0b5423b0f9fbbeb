"""The record of a prompt as a document: reading it, its canonical bytes, and what can be computed of it again."""

from __future__ import annotations

import hashlib
import heapq
import struct
from dataclasses import dataclass
from typing import Any

from ._export import MAX_EXPORT_BYTES, MAX_TOKEN_BYTES, ROLES, Export, canonical, enc, inconsistency, of_value
from ._json import Malformed, Object, compact, read, uuid_bytes

_KEYS = ("v", "context", "messages", "digest", "token", "slice")
_PARTS = ("anchor", "pinned", "line", "recalled")
_INFINITY = 2**63 - 1
_MINUS_INFINITY = -(2**63)
_MINUS_INFINITY_SECOND = -210866803200

Edges = list[tuple[str, str, str]]


@dataclass
class Record:
    context: str | None
    messages: list[dict[str, Any]]
    digest: str
    token: str | None


@dataclass
class Document:
    """An export, or a record with the export that it holds."""

    export: Export
    record: Record | None

    def canonical(self) -> str:
        slice = canonical(self.export)
        if self.record is None:
            return slice
        head = {
            "v": 1,
            "context": self.record.context,
            "messages": self.record.messages,
            "digest": self.record.digest,
            "token": self.record.token,
        }
        return f'{compact(head)[:-1]},"slice":{slice}}}'

    def inconsistency(self) -> str | None:
        """The first reason why it cannot be what the kernel made, by what needs no key."""
        reason = inconsistency(self.export)
        return reason if reason is not None or self.record is None else _inconsistency(self.record, self.export)


def parse(text: str) -> Document:
    """Either document; the first key decides which. Raises `Malformed`."""
    value = read(text, MAX_EXPORT_BYTES, MAX_TOKEN_BYTES)
    if not isinstance(value, dict) or next(iter(value), None) not in _KEYS:
        return Document(of_value(value), None)
    keys = Object(value)
    if keys.integer("v") != 1:
        raise Malformed("v is not 1")
    record = Record(
        messages=keys.list("messages", _message),
        context=keys.optional_hex("context", 64),
        digest=keys.hex("digest", 64),
        token=keys.optional_string("token"),
    )
    export = of_value(keys.take("slice"))
    keys.finish()
    return Document(export, record)


def _message(value: Any) -> dict[str, Any]:
    keys = Object(value)
    message = {
        "turn_id": keys.uuid("turn_id"),
        "part": keys.named("part", _PARTS),
        "role": keys.named("role", ROLES),
        "created_at": keys.optional_integer("created_at", _MINUS_INFINITY, _INFINITY),
        "tokens": keys.integer("tokens", 0, 2**31 - 1),
        "content": keys.optional_hex("content", 64),
        "payload": keys.optional_hex("payload", 64),
    }
    keys.finish()
    return message


def _inconsistency(record: Record, export: Export) -> str | None:
    claim = export.attestation or {}
    policy = claim["policy"]
    if not _are_the_turns(record, export, policy):
        return "other_turns"
    if [message["turn_id"] for message in record.messages] != _order(record.messages, export.edges, policy):
        return "other_order"
    if _digest(record, claim["digest"]) != record.digest:
        return "prompt_digest_mismatch"
    return None


def _are_the_turns(record: Record, export: Export, policy: dict[str, Any]) -> bool:
    left = {turn["id"]: turn for turn in export.turns}
    for message in record.messages:
        turn = left.pop(message["turn_id"], None)
        is_anchor = message["turn_id"] == export.anchor
        allowed = {
            "anchor": is_anchor or policy.get("keep_tool_results", False),
            "pinned": not is_anchor and bool(policy.get("pins")),
            "line": not is_anchor and policy["max_radius"] > 0,
            "recalled": not is_anchor and bool(policy.get("seeds")),
        }
        if (
            turn is None
            or turn["role"] != message["role"]
            or not _is_in_second(message["created_at"], turn["created_at"])
            or not allowed[message["part"]]
        ):
            return False
    return not left


def _is_in_second(micros: int | None, second: int) -> bool:
    if micros is None:
        return second == 0
    if micros == _INFINITY:
        return second >= _INFINITY // 1_000_000
    if micros == _MINUS_INFINITY:
        return second == _MINUS_INFINITY_SECOND
    return micros // 1_000_000 == second


def _digest(record: Record, slice_digest: str) -> str:
    hashed = hashlib.sha256(enc("graph_kernel/prompt/v1") + bytes.fromhex(slice_digest))
    hashed.update(_optional(record.context) + struct.pack("<I", len(record.messages)))
    for message in record.messages:
        time = message["created_at"]
        hashed.update(
            uuid_bytes(message["turn_id"])
            + enc(message["part"])
            + enc(message["role"])
            + (b"\0" if time is None else b"\1" + struct.pack("<q", time))
            + struct.pack("<I", message["tokens"])
            + _optional(message["content"])
            + _optional(message["payload"])
        )
    return hashed.hexdigest()


def _optional(digits: str | None) -> bytes:
    return b"\0" if digits is None else b"\1" + bytes.fromhex(digits)


def _order(messages: list[dict[str, Any]], edges: Edges, policy: dict[str, Any]) -> list[str]:
    """The order in which a model is shown these turns, which are different."""

    def of(*parts: str) -> list[dict[str, Any]]:
        return [message for message in messages if message["part"] in parts]

    recalled = _threads(of("recalled"), edges)
    if policy.get("include_children", True) or policy["include_siblings"]:
        return recalled + _conversation(of("pinned", "line", "anchor"), edges)
    return _conversation(of("pinned", "line"), edges) + recalled + _conversation(of("anchor"), edges)


def _key(message: dict[str, Any]) -> tuple[int, str]:
    return (message["created_at"] or 0, message["turn_id"])


def _threads(messages: list[dict[str, Any]], edges: Edges) -> list[str]:
    """One connected component after the other, by their earliest turns."""
    thread = {message["turn_id"]: message["turn_id"] for message in messages}

    def first(turn: str) -> str:
        while thread[turn] != turn:
            thread[turn] = thread[thread[turn]]
            turn = thread[turn]
        return turn

    for parent, child, _ in edges:
        if parent in thread and child in thread:
            thread[first(parent)] = first(child)
    threads: dict[str, list[dict[str, Any]]] = {}
    for message in sorted(messages, key=_key):
        threads.setdefault(first(message["turn_id"]), []).append(message)
    return [turn for members in threads.values() for turn in _conversation(members, edges)]


def _conversation(messages: list[dict[str, Any]], edges: Edges) -> list[str]:
    """The next is the earliest of those whose parents among them all have come, else the earliest that is left; results
    of a call directly follow it."""
    keys = {message["turn_id"]: _key(message) for message in messages}
    results = {message["turn_id"] for message in messages if message["role"] == "tool"}
    within = {(parent, child) for parent, child, _ in edges if parent != child and parent in keys and child in keys}
    children: dict[str, list[str]] = {}
    missing: dict[str, int] = {}
    for parent, child in within:
        children.setdefault(parent, []).append(child)
        missing[child] = missing.get(child, 0) + 1
    left = sorted(keys.values(), reverse=True)
    ready = [key for turn, key in keys.items() if turn not in missing]
    heapq.heapify(ready)
    following: list[str] = []
    come: set[str] = set()
    order: list[str] = []
    while len(order) < len(keys):
        if following:
            turn = following.pop()
        elif ready:
            turn = heapq.heappop(ready)[1]
        else:
            turn = left.pop()[1]
        if turn in come:
            continue
        come.add(turn)
        order.append(turn)
        now_ready = []
        for child in children.get(turn, []):
            missing[child] -= 1
            if missing[child] == 0 and child not in come:
                now_ready.append(keys[child])
        now_ready.sort()
        for key in now_ready:
            heapq.heappush(ready, key)
        following += [turn for _, turn in reversed(now_ready) if turn in results]
    return order
