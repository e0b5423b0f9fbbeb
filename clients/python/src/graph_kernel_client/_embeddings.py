"""What an embedding is."""

from __future__ import annotations

import math
from typing import Any

from .errors import GraphKernelError


def checked(embedding: Any) -> list[float]:
    """An embedding of finite numbers. One that is stored as it is not ends the searches of everybody."""
    try:
        numbers = [] if isinstance(embedding, (str, bytes)) else [float(number) for number in embedding]
    except (TypeError, ValueError):
        numbers = []
    if not numbers or not all(map(math.isfinite, numbers)):
        raise GraphKernelError(
            "an embedding is a sequence of one or more finite numbers", sqlstate="22023", word="INVALID_EMBEDDING"
        )
    return numbers
