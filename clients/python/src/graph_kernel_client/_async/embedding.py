"""The embedding of a text, by a function of the application's."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from inspect import isawaitable

from .._embeddings import checked
from ..errors import GraphKernelError

Vector = Sequence[float]
Embed = Callable[[str], Vector | Awaitable[Vector]]


async def embedded(embed: Embed | None, text: str, embedding: Vector | None = None) -> list[float]:
    """The embedding that is given, or that which `embed` makes of the text."""
    if embedding is None:
        if embed is None:
            raise GraphKernelError(
                "there is no embedding of the query, and no function to make one",
                sqlstate="22023",
                word="INVALID_EMBEDDING",
                hint="Give embed, a function from a text to its embedding, or embedding itself.",
            )
        made = embed(text)
        embedding = await made if isawaitable(made) else made
    return checked(embedding)


async def embedded_if_any(embed: Embed | None, text: str, embedding: Vector | None = None) -> list[float] | None:
    """The same, or None where there is neither: then the words of the text alone are searched for."""
    return None if embed is None and embedding is None else await embedded(embed, text, embedding)
