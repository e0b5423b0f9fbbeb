"""The reader of documents in few bytes that stands in docs/binary.md, over the worked ones."""

from __future__ import annotations

import gzip
import json
import re
import struct
from pathlib import Path
from typing import Any

import pytest

REPOSITORY = Path(__file__).parents[3]
PAGE = REPOSITORY / "docs/binary.md"
WORKED = REPOSITORY / "tests/golden/data/binary.json.gz"


def binary32(value: Any) -> Any:
    """The value with each number as the binary32 that it is the shortest text of."""
    if isinstance(value, float):
        return struct.unpack("f", struct.pack("f", value))[0]
    if isinstance(value, list):
        return [binary32(item) for item in value]
    if isinstance(value, dict):
        return {key: binary32(item) for key, item in value.items()}
    return value


def test_the_reader_of_the_page() -> None:
    pytest.importorskip("cbor2", reason="cbor2 cannot be had")
    pytest.importorskip("zstandard", reason="zstandard cannot be had")
    if not PAGE.exists():
        pytest.skip(f"there is no {PAGE}")
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.M | re.S)
    assert len(blocks) == 1
    names: dict[str, Any] = {}
    exec(compile(blocks[0], str(PAGE), "exec"), names)
    worked = json.loads(gzip.decompress(WORKED.read_bytes()))
    assert len(worked) > 10
    for case in worked:
        document = names["read_document"](bytes.fromhex(case["bytes"]))
        expected = binary32(json.loads(case["json"]))
        assert document == expected and list(document) == list(expected), case["name"]
    with pytest.raises(ValueError, match="format"):
        names["read_document"](b"{}")
