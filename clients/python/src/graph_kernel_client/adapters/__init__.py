"""Histories, memories, stores and retrievers for other packages, one module each, which needs that package."""

from __future__ import annotations

from typing import TypeVar
from urllib.parse import quote

from ..errors import ConfigurationError

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
