"""Values of rows that others have written, none of which keeps the other rows from being read."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone
from typing import Any

from psycopg.rows import DictRow

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def moment(seconds: str | None) -> datetime | None:
    """Of the seconds since 1970 as text, with six decimals. What Python has not is the end of its time."""
    if seconds is None:
        return None
    try:
        return _EPOCH + timedelta(microseconds=int(seconds.replace(".", "")))
    except (ValueError, OverflowError):
        end = datetime.min if seconds.startswith("-") else datetime.max
        return end.replace(tzinfo=timezone.utc)


def loaded(text: str | None) -> Any:
    """The value of JSON; None where Python cannot hold it."""
    try:
        return None if text is None else json.loads(text)
    except (ValueError, RecursionError):
        return None


def with_payload(row: DictRow) -> DictRow:
    """The row with its payload, of which it has the text. One that is no object is no message."""
    payload = loaded(row["payload"])
    return row | {"payload": payload if isinstance(payload, dict) else None}
