"""Errors: the SQLSTATE and the word of the server's DETAIL, and the codes of the old service beside them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg

__all__ = ["ConfigurationError", "GraphKernelError", "PinLeftOut", "ServiceUnavailable"]

_WORD = re.compile(r"([A-Z][A-Z0-9_]{2,})(?:: ([a-z0-9_]+))?\Z")
# The codes of the old service for what has another word in the database.
_CODES = {"ANCHOR_NOT_FOUND": "SLICE_FAILED"}


class GraphKernelError(Exception):
    """What the server refused, or this package.

    `sqlstate` and `word` say what it was; match these, never the message. `word` is the word in the server's DETAIL,
    `reason` what follows it, as in `NOT_ADMISSIBLE: bad_mac`. `code` is the code that the old service had for it.
    Where PostgreSQL itself raised the error, `word` is None.
    """

    def __init__(
        self,
        message: str,
        *,
        sqlstate: str | None = None,
        word: str | None = None,
        reason: str | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message if hint is None else f"{message}\nHINT: {hint}")
        self.message = message
        self.sqlstate = sqlstate
        self.word = word
        self.reason = reason
        self.hint = hint

    @property
    def code(self) -> str | None:
        """The code of the old service: `INVALID_TURN_ID`, `POLICY_NOT_FOUND`, `SLICE_FAILED` and so on."""
        return _CODES.get(self.word, self.word) if self.word else self.word


class ServiceUnavailable(GraphKernelError):
    """The server cannot be reached, or ended the connection."""

    @property
    def code(self) -> str | None:
        return "SERVICE_UNAVAILABLE"


class ConfigurationError(GraphKernelError, ValueError):
    """A setting or an argument that cannot be meant so."""


class PinLeftOut(UserWarning):
    """A pinned turn does not fit into the prompt, and is not in it."""


def invalid_turn_id(value: object) -> GraphKernelError:
    return GraphKernelError(f"invalid turn id: {value!r}", sqlstate="22P02", word="INVALID_TURN_ID")


def _translate(error: psycopg.Error) -> GraphKernelError:
    diag = error.diag
    sqlstate = error.sqlstate
    message = diag.message_primary or str(error).strip() or type(error).__name__
    match = _WORD.match(diag.message_detail or "")
    word, reason = match.groups() if match else (None, None)
    state = sqlstate or ""
    lost = sqlstate is None and isinstance(error, (psycopg.OperationalError, psycopg.InterfaceError))
    kind = ServiceUnavailable if lost or state.startswith(("08", "57P")) else GraphKernelError
    return kind(message, sqlstate=sqlstate, word=word, reason=reason, hint=diag.message_hint)


@contextmanager
def translated() -> Iterator[None]:
    """Raises errors of psycopg as `GraphKernelError`, with the original as its cause."""
    try:
        yield
    except psycopg.Error as error:
        raise _translate(error) from error
    except UnicodeEncodeError as error:
        raise GraphKernelError(f"not text: {error.reason}", sqlstate="22021", word="INVALID_TEXT") from error


def no_extension() -> GraphKernelError:
    return GraphKernelError(
        "the database has no extension graph_kernel", sqlstate="42704", hint="CREATE EXTENSION graph_kernel;"
    )


def could_run_code(role: str, owner: str, what: str) -> GraphKernelError:
    """Of a role that passes over row security, where another owns what it would follow names in, or write."""
    return GraphKernelError(
        f"the role {role} passes over row security, and {owner}, who owns the {what}, could have it run code",
        sqlstate="42501",
        hint="Connect as a role with no more rights than it needs.",
    )
