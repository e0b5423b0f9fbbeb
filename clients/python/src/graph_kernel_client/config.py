"""What says where the database is, and how long a call may take."""

from __future__ import annotations

import math
import os
import re

import psycopg

from .errors import ConfigurationError

__all__ = ["connect_timeout", "conninfo", "timeout_milliseconds"]


def conninfo(url: str | None) -> str:
    """The connection string: what is given, else `GRAPH_KERNEL_URL`, else nothing, which is libpq's own `PG…`."""
    name = "base_url"
    if url is None:
        name, url = "GRAPH_KERNEL_URL", os.environ.get("GRAPH_KERNEL_URL")
    if not url:
        return ""
    # A password in a string of another form may hold "://", and is not shown.
    scheme = re.match(r"([A-Za-z][A-Za-z0-9+.-]*)://", url)
    if scheme is not None and scheme[1].lower() in ("http", "https"):
        raise ConfigurationError(
            f"{name} begins with {scheme[1]}://, as that of a service: the kernel is in the database now",
            hint="Give the address of the database, postgresql://user@host/database.",
        )
    if scheme is not None and scheme[1] not in ("postgresql", "postgres"):
        raise ConfigurationError(f"{name} is not the address of a database: it begins with {scheme[1]}://")
    try:
        psycopg.conninfo.conninfo_to_dict(url)
    except psycopg.Error:
        # Its words repeat the string.
        raise ConfigurationError(
            f"{name} is not a connection string that libpq can read",
            hint="Give postgresql://user@host/database, with what is special in a user or a password as %XX.",
        ) from None
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


def connect_timeout(timeout: float | None) -> dict[str, int]:
    """libpq's `connect_timeout` for the same time, in whole seconds, of which it takes two at least."""
    milliseconds = timeout_milliseconds(timeout)
    return {} if milliseconds is None else {"connect_timeout": max(2, math.ceil(milliseconds / 1000))}
