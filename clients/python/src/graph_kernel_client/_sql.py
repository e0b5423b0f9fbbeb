"""Names as a statement has them, in which braces and per cent signs stand for others."""

from __future__ import annotations


def operator(name: str) -> str:
    """PostgreSQL's own: others may have made one of the column's type in a schema of the search_path."""
    return f"OPERATOR(pg_catalog.{name})"


EQ = operator("=")


def escaped(name: str) -> str:
    """A name that is quoted already."""
    return name.replace("{", "{{").replace("}", "}}").replace("%", "%%")


def unescaped(name: str) -> str:
    return name.replace("{{", "{").replace("}}", "}").replace("%%", "%")


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def identifier(name: str) -> str:
    return escaped(quoted(name))
