"""Histories, memories and retrievers for other packages, one module each, which needs that package."""

from __future__ import annotations

from typing import TypeVar

from .._sync.conversation import Conversation
from ..errors import ConfigurationError

Taken = TypeVar("Taken")


def taken(conversation: object, kind: type[Taken]) -> Taken:
    """The conversation, if it is of the face that the adapter uses."""
    if isinstance(conversation, kind):
        return conversation
    name = "graph_kernel_client.Conversation" if kind is Conversation else "graph_kernel_client.aio.Conversation"
    given = type(conversation)
    raise ConfigurationError(f"this takes a {name}, not a {given.__module__}.{given.__qualname__}")
