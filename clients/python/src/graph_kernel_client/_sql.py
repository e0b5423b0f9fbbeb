"""Names as a statement has them, in which braces and per cent signs stand for others."""

from __future__ import annotations


def escaped(name: str) -> str:
    """A name that is quoted already."""
    return name.replace("{", "{{").replace("}", "}}").replace("%", "%%")


def unescaped(name: str) -> str:
    return name.replace("{{", "{").replace("}}", "}").replace("%%", "%")


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def identifier(name: str) -> str:
    return escaped(quoted(name))
