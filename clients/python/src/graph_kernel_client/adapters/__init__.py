"""Histories, memories, stores and retrievers for other packages, one module each, which needs that package."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar
from urllib.parse import quote

from ..errors import ConfigurationError, GraphKernelError
from ..types import PromptTurn

Taken = TypeVar("Taken")


def taken(given: object, kind: type[Taken]) -> Taken:
    """A conversation or database, if it is of the face that the adapter uses."""
    if isinstance(given, kind):
        return given
    face = ".aio" if "._async." in kind.__module__ else ""
    was = type(given)
    raise ConfigurationError(
        f"this takes a graph_kernel_client{face}.{kind.__name__}, not a {was.__module__}.{was.__qualname__}"
    )


def joined(*names: str) -> str:
    """Names of any text as one, which no other names give."""
    return "/".join(quote(name, safe="") for name in names)


def payloads(turns: Iterable[PromptTurn], *keys: str) -> list[dict[str, Any]]:
    """The messages of turns as an adapter has stored them, which have these keys; without what was redacted."""
    found = [turn.payload for turn in turns if turn.payload is not None]
    for payload in found:
        if not payload.keys() >= set(keys):
            raise GraphKernelError(
                "a message of the conversation was stored by another package",
                sqlstate="0A000",
                word="INVALID_MESSAGE",
                hint="Use the adapter that has stored it, or Conversation.messages, which reads most forms.",
            )
    return found
