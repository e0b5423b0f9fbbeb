"""Each file runs with its own package. The database is that of PG*, with the sample and its embeddings."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest

ANCHOR = "a9ad8365-bc0a-5da2-93e6-e37e99d95d9c"
QUESTION = "How are invoice numbers"


@pytest.fixture
def connection() -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(autocommit=True) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS sample AS SELECT id FROM memory_turns")
        yield connection
        connection.execute("DELETE FROM memory_turn_edges WHERE child_turn_id NOT IN (SELECT id FROM sample)")
        connection.execute("DELETE FROM memory_turns WHERE id NOT IN (SELECT id FROM sample)")


@pytest.fixture
def embed(connection: psycopg.Connection[Any]) -> Callable[[str], list[float]]:
    """The embedding of the sample's question for all texts that begin as it does; another for all others."""
    row = connection.execute("SELECT embedding FROM questions WHERE starts_with(question, %s)", (QUESTION,)).fetchone()
    assert row is not None
    return lambda text: list(row[0]) if text.startswith(QUESTION) else [1.0] + [0.0] * 383
