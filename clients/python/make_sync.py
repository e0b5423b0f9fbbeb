#!/usr/bin/env python3
"""Makes src/graph_kernel_client/_sync of _async; with --check says whether it is what it would make. Needs ruff."""

import re
import subprocess
import sys
from pathlib import Path

package = Path(__file__).resolve().parent / "src/graph_kernel_client"
# What has no other face, written by hand.
by_hand = {"embedding.py"}
replacements = [
    (r"\basync (def|with|for)\b", r"\1"),
    (r"\bawait ", ""),
    (r"\bAwaitable, ", ""),
    (r"\bAwaitable\[None\]", "None"),
    (r"\bimport asyncio\b", "import threading"),
    (r"\basyncio\.Lock\b", "threading.Lock"),
    (r"\basynccontextmanager\b", "contextmanager"),
    (
        r"\b(AbstractAsync|Async)(ContextManager|Iterator|Connection|ConnectionPool|Cursor)\b",
        lambda m: ("Abstract" if m[1] == "AbstractAsync" else "") + m[2],
    ),
    (r"\b__a(enter|exit)__\b", r"__\1__"),
    (r"The source of both faces: make_sync.py makes `_sync` of this folder.", "Made by make_sync.py of `_async`."),
]


def made(text: str) -> str:
    for pattern, replacement in replacements:
        text = re.sub(pattern, replacement, text)
    for command in (["check", "--quiet", "--select", "I", "--fix-only"], ["format"]):
        ruff = [sys.executable, "-m", "ruff", *command, "-", "--stdin-filename", str(package / "_sync/made.py")]
        text = subprocess.run(ruff, input=text, stdout=subprocess.PIPE, text=True, check=True).stdout
    return text


def main() -> None:
    check = "--check" in sys.argv[1:]
    sources = {path.name: path for path in (package / "_async").glob("*.py")}
    for path in (package / "_sync").glob("*.py"):
        if path.name not in sources:
            sys.exit(f"{path} has no source in _async")
    for name in sorted(sources.keys() - by_hand):
        target, text = package / "_sync" / name, made(sources[name].read_text())
        if check:
            if not target.exists() or target.read_text() != text:
                sys.exit(f"{target} is not what make_sync.py makes of {sources[name]}: run it")
        else:
            target.write_text(text)


main()
