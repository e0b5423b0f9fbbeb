"""docs/python.md, run as it stands in a database of its own."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from typing import Any

import psycopg
import pytest

PAGE = Path(__file__).parents[3] / "docs/python.md"


def test_the_page(connection: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    if not PAGE.exists():
        pytest.skip(f"there is no {PAGE}")
    connection.execute("DROP DATABASE IF EXISTS gk_python_page WITH (FORCE)")
    connection.execute("CREATE DATABASE gk_python_page")
    monkeypatch.setenv("PGDATABASE", "gk_python_page")
    names: dict[str, Any] = {}
    try:
        blocks = re.findall(r"^```(python|text)\n(.*?)^```$", PAGE.read_text(), re.M | re.S)
        assert [kind for kind, _ in blocks] == ["python", "text"] * (len(blocks) // 2) and len(blocks) >= 10
        for (_, code), (_, shown) in zip(blocks[::2], blocks[1::2], strict=True):
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                exec(compile(code, str(PAGE), "exec"), names)
            assert printed.getvalue() == shown
    finally:
        if "database" in names:
            names["database"].close()
        connection.execute("DROP DATABASE IF EXISTS gk_python_page WITH (FORCE)")
