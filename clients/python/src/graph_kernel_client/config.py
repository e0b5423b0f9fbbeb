"""What says where the database is, and how long a call may take."""

from __future__ import annotations

import math
import os

from .errors import ConfigurationError

__all__ = ["conninfo", "timeout_milliseconds"]


def conninfo(url: str | None) -> str:
    """The connection string: what is given, else `GRAPH_KERNEL_URL`, else nothing, which is libpq's own `PG…`."""
    name = "base_url"
    if url is None:
        name, url = "GRAPH_KERNEL_URL", os.environ.get("GRAPH_KERNEL_URL")
    if not url:
        return ""
    if url.lower().startswith(("http://", "https://")):
        raise ConfigurationError(
            f"{name} begins with {url.split(':')[0]}://, as that of a service: the kernel is in the database now",
            hint="Give the address of the database, postgresql://user@host/database.",
        )
    if "://" in url and not url.startswith(("postgresql://", "postgres://")):
        raise ConfigurationError(f"{name} is not the address of a database: it begins with {url.split('://')[0]}://")
    return url


def timeout_milliseconds(timeout: float | None) -> int | None:
    """The `statement_timeout` of a call: of `timeout` in seconds, else of `GRAPH_KERNEL_TIMEOUT`, else none."""
    name, value = "timeout", timeout
    if value is None:
        name, text = "GRAPH_KERNEL_TIMEOUT", os.environ.get("GRAPH_KERNEL_TIMEOUT")
        if not text:
            return None
        try:
            value = float(text)
        except ValueError:
            raise ConfigurationError(f"GRAPH_KERNEL_TIMEOUT is not a number of seconds: {text!r}") from None
    if not (math.isfinite(value) and 0 < value <= 2_000_000):
        raise ConfigurationError(f"{name} is not a number of seconds above 0: {value!r}")
    return max(1, round(value * 1000))
