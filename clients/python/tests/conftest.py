"""The database is that of PG*: the sample conversation, with embeddings of its turns and of the questions."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest

ANCHOR = "a9ad8365-bc0a-5da2-93e6-e37e99d95d9c"
MISSING = "00000000-0000-4000-8000-00000000dead"
QUESTION = "How are invoice numbers"


@pytest.fixture(autouse=True)
def no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GRAPH_KERNEL_URL", raising=False)
    monkeypatch.delenv("GRAPH_KERNEL_TIMEOUT", raising=False)


@pytest.fixture
def connection() -> Iterator[psycopg.Connection[Any]]:
    if "PGHOST" not in os.environ:
        pytest.skip("PGHOST names no server")
    with psycopg.connect(autocommit=True) as connection:
        yield connection


@pytest.fixture
def embed(connection: psycopg.Connection[Any]) -> Callable[[str], list[float]]:
    """The model: the embeddings of the sample's questions, for texts that begin as they do."""

    def embedding(text: str) -> list[float]:
        row = connection.execute("SELECT embedding FROM questions WHERE starts_with(question, %s)", (text,)).fetchone()
        assert row is not None, text
        return list(row[0])

    return embedding
