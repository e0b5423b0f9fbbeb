"""Names as a statement has them, in which braces and per cent signs stand for others."""

from __future__ import annotations


def operator(name: str) -> str:
    """PostgreSQL's own: others may have made one of the column's type in a schema of the search_path."""
    return f"OPERATOR(pg_catalog.{name})"


EQ = operator("=")


def table_of(column: str) -> str:
    """The name of a table with its schema, by a column that has its OID: its name alone may be another's by the next
    statement."""
    return f"""(SELECT pg_catalog.concat(pg_catalog.quote_ident(n.nspname), '.', pg_catalog.quote_ident(r.relname))
                  FROM pg_catalog.pg_class AS r JOIN pg_catalog.pg_namespace AS n ON n.oid {EQ} r.relnamespace
                 WHERE r.oid {EQ} {column}::pg_catalog.oid)"""


def escaped(name: str) -> str:
    """A name that is quoted already."""
    return name.replace("{", "{{").replace("}", "}}").replace("%", "%%")


def unescaped(name: str) -> str:
    return name.replace("{{", "{").replace("}}", "}").replace("%%", "%")


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def identifier(name: str) -> str:
    return escaped(quoted(name))
