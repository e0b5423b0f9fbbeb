"""What an embedding is."""

from __future__ import annotations

import math
import struct
from typing import Any

from .errors import GraphKernelError


def checked(embedding: Any) -> list[float]:
    """An embedding of finite numbers, each the nearest binary32, as the server has them."""
    try:
        numbers = [] if isinstance(embedding, (str, bytes)) else [_narrow(number) for number in embedding]
    except (TypeError, ValueError, OverflowError):
        numbers = []
    if not numbers or not all(map(math.isfinite, numbers)):
        raise GraphKernelError(
            "an embedding is a sequence of one or more finite numbers", sqlstate="22023", word="INVALID_EMBEDDING"
        )
    return numbers


def _narrow(number: Any) -> float:
    narrow: float = struct.unpack("<f", struct.pack("<f", float(number)))[0]
    return narrow
