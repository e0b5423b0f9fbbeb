"""Names as a statement has them, in which braces and per cent signs stand for others."""

from __future__ import annotations


def operator(name: str) -> str:
    """PostgreSQL's own: others may have made one of the column's type in a schema of the search_path."""
    return f"OPERATOR(pg_catalog.{name})"


EQ = operator("=")


def small(column: str) -> str:
    """A role in small letters, whatever the language of the database makes of them."""
    return f'pg_catalog.lower({column}::pg_catalog.text COLLATE pg_catalog."C")'


# Whether the role `r` is the current one, or the one that logged in, whose rights code can take again.
IS_OWN_ROLE = f"(r.rolname {EQ} current_user OR r.rolname {EQ} session_user)"


# The extension that the private tables belong to: the OID of one of them; the schema of its functions, quoted; where
# policies are not for the role, and another owns that schema, who could give its name to one of his own, both roles.
EXTENSION = f"""
    SELECT d.objid, pg_catalog.quote_ident(n.nspname), f.role, f.owner
      FROM pg_catalog.pg_extension AS e
      JOIN pg_catalog.pg_namespace AS n ON n.oid {EQ} e.extnamespace
      JOIN pg_catalog.pg_depend AS d ON d.refobjid {EQ} e.oid AND d.deptype {EQ} 'e'
       AND d.refclassid {EQ} 'pg_catalog.pg_extension'::pg_catalog.regclass::pg_catalog.oid
       AND d.classid {EQ} 'pg_catalog.pg_class'::pg_catalog.regclass::pg_catalog.oid
       AND d.objid {EQ} pg_catalog.to_regclass('graph_kernel.binding')::pg_catalog.oid
      LEFT JOIN LATERAL (
          SELECT r.rolname::pg_catalog.text AS role, o.rolname::pg_catalog.text AS owner
            FROM pg_catalog.pg_roles AS r
            JOIN pg_catalog.pg_roles AS s ON s.oid {EQ} n.nspowner
            JOIN pg_catalog.pg_database AS b ON b.datname {EQ} pg_catalog.current_database()
            JOIN pg_catalog.pg_roles AS o
              ON o.oid {EQ} CASE WHEN s.rolname {EQ} 'pg_database_owner' THEN b.datdba ELSE s.oid END
           WHERE (r.rolsuper OR r.rolbypassrls) AND {IS_OWN_ROLE} AND NOT o.rolsuper AND NOT o.oid {EQ} r.oid
           LIMIT 1) AS f ON true
     WHERE e.extname {EQ} 'graph_kernel'"""


def escaped(name: str) -> str:
    """A name that is quoted already."""
    return name.replace("{", "{{").replace("}", "}}").replace("%", "%%")


def unescaped(name: str) -> str:
    return name.replace("{{", "{").replace("}}", "}").replace("%%", "%")


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def identifier(name: str) -> str:
    return escaped(quoted(name))
