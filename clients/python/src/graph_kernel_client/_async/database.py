"""One call, one transaction: over a connection of its own, of the application, or of a pool."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from contextvars import ContextVar
from typing import Any, Protocol, TypeVar, Union
from weakref import WeakKeyDictionary

import psycopg
from psycopg import sql
from psycopg.adapt import AdaptersMap
from psycopg.pq import TransactionStatus
from psycopg.rows import DictRow, Row, TupleRow, dict_row, tuple_row

from .._sql import EQ, EXTENSION, IS_OWN_ROLE, escaped, operator, quoted, unescaped
from ..config import connect_timeout, conninfo, timeout_milliseconds
from ..errors import ConfigurationError, GraphKernelError, could_run_code, no_extension, translated


class Pool(Protocol):
    """What psycopg_pool's `AsyncConnectionPool` is."""

    def connection(self) -> AbstractAsyncContextManager[psycopg.AsyncConnection[Any]]: ...


# Of each connection one lock, whichever objects use it.
_locks: WeakKeyDictionary[psycopg.AsyncConnection[Any], asyncio.Lock] = WeakKeyDictionary()
# The databases in whose transactions the caller is.
_entered: ContextVar[tuple[Database, ...]] = ContextVar("_entered", default=())

# How often tables are made, where others make them at the same time.
_ATTEMPTS = 3

Source = Union[str, psycopg.AsyncConnection[Any], Pool]
Parameters = Union[Sequence[Any], Mapping[str, Any]]


class _Cursor(psycopg.AsyncCursor[Row]):
    """One that reads and writes values as psycopg does, whatever the application has registered on its connection."""

    @property
    def adapters(self) -> AdaptersMap:
        return psycopg.adapters


class Database:
    """Where calls go: a connection string, a connection, a pool, or None for `GRAPH_KERNEL_URL` or libpq's `PG…`.

    `timeout` bounds each statement, and connecting, in seconds. `graph` names the graph that is read, `schema` the one
    in which `create_tables` makes the extension, elsewhere it is found. Settings are of the transaction alone, and no
    statement is prepared, so poolers in transaction mode work. Who shares a connection waits for the others; a pool
    has one for each.
    """

    def __init__(
        self,
        source: Source | None = None,
        *,
        timeout: float | None = None,
        graph: str | None = None,
        schema: str | None = None,
    ) -> None:
        self._settings: dict[str, str] = {}
        self._connecting: dict[str, Any] = connect_timeout(timeout)
        milliseconds = timeout_milliseconds(timeout)
        if milliseconds is not None:
            self._settings["statement_timeout"] = f"{milliseconds}ms"
        if graph is not None:
            self._settings["graph_kernel.graph"] = graph
        self._schema = None if schema is None else quoted(schema)
        self._own: psycopg.AsyncConnection[Any] | None = None
        self._held: int | None = None  # The OID of the extension's table that is locked, once it is known.
        self._conninfo: str | None = None
        self._source: psycopg.AsyncConnection[Any] | Pool | None = None
        if source is None or isinstance(source, str):
            self._conninfo = conninfo(source)
            if "connect_timeout" in self._conninfo:
                self._connecting = {}
        elif isinstance(source, psycopg.AsyncConnection) or callable(getattr(source, "connection", None)):
            self._source = source
        else:
            raise _not_of_this_face(source)
        self._lock = asyncio.Lock()
        if isinstance(source, psycopg.AsyncConnection):
            self._lock = _locks.setdefault(source, self._lock)

    async def close(self) -> None:
        """Closes the connection that it opened itself, after the call that uses it. One that was given stays open."""
        self._refuse_within()
        async with self._lock:
            if self._own is not None:
                await self._own.close()
                self._own = None

    async def __aenter__(self) -> Database:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def create_tables(self, *, words: str | None = None, embeddings: bool = False) -> None:
        """Makes the extension, and the tables `memory_turns` and `memory_turn_edges` in the schema `public`.

        Tables that are there stay as they are, but for columns that are asked for and not there. `words` is a
        configuration of PostgreSQL's text search, such as `english`: with it, texts are found by their words. To add it
        to tables that are there writes their turns anew, under a lock. `embeddings` adds a column for them.
        Those of a role that this one has no reason to trust are an error, as each use would run its code.
        """
        for attempt in range(_ATTEMPTS):
            try:
                async with self.transaction() as transaction:
                    await self._make_tables(transaction, words, embeddings)
                return
            except GraphKernelError as error:
                # Another one has made them meanwhile, or the error comes again.
                if error.sqlstate not in ("23505", "42710", "42P07", "42701") or attempt + 1 == _ATTEMPTS:
                    raise

    async def _make_tables(self, transaction: Transaction, words: str | None, embeddings: bool) -> None:
        schema = "" if self._schema is None else f" SCHEMA {escaped(self._schema)}"
        await transaction.execute(f"CREATE EXTENSION IF NOT EXISTS graph_kernel{schema}")
        (found,) = await transaction.fetch(
            "SELECT pg_catalog.to_regclass('public.memory_turns') IS NOT NULL AS is_there"
        )
        await transaction.refuse_tables_of_others("memory_turns", "memory_turn_edges")
        options = {} if words is None else {"words": words}
        create = "SELECT graph_kernel.create_tables(options => %s::pg_catalog.jsonb)"
        if found["is_there"] and (embeddings or words is not None):
            await transaction.named("public.memory_turns", "public.memory_turn_edges")
        if not found["is_there"]:
            await transaction.execute(create, (json.dumps(options),))
        elif words is not None:
            # The server says whether it is a configuration, before it says that the tables are there.
            try:
                async with transaction.connection.transaction():
                    await transaction.execute(create, (json.dumps(options),))
            except psycopg.errors.DuplicateTable:
                await _add_words(transaction, words)
        if embeddings:
            await transaction.execute("ALTER TABLE public.memory_turns ADD COLUMN IF NOT EXISTS embedding real[]")

    async def fetch(self, query: str, parameters: Parameters = ()) -> list[DictRow]:
        """The rows of one statement that returns some. `{gk}` in it is the schema of the extension, with its dot."""
        # In a transaction of the application a savepoint, so that an error leaves it usable.
        async with self._connection() as connection, self._transaction(connection):
            return await self._execute(connection, query, parameters)

    async def fetch_one(self, query: str, parameters: Parameters = ()) -> DictRow:
        rows = await self.fetch(query, parameters)
        return rows[0]

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Transaction]:
        """Several statements in one transaction. Within it, other calls of this database are errors.

        Where it is not the application's, each statement has a snapshot of its own: what others have written while it
        waited for a lock is seen.
        """
        async with self._connection() as connection, self._transaction(connection, is_read_committed=True):
            token = _entered.set((*_entered.get(), self))
            try:
                yield Transaction(self, connection)
            finally:
                _entered.reset(token)

    def _refuse_within(self) -> None:
        if any(entered is self or entered._lock is self._lock for entered in _entered.get()):
            raise GraphKernelError(
                "a call within a transaction of the same Database would wait for its end",
                sqlstate="55000",
                hint="Use its Transaction, or give a connection: in a transaction of that each call is a savepoint.",
            )

    @asynccontextmanager
    async def _connection(self) -> AsyncIterator[psycopg.AsyncConnection[Any]]:
        self._refuse_within()
        with translated():
            if self._source is not None and not isinstance(self._source, psycopg.AsyncConnection):
                given = self._source.connection()
                if not isinstance(given, AbstractAsyncContextManager):
                    raise _not_of_this_face(self._source)
                async with given as connection:
                    _require_utf8(connection)
                    yield connection
                return
            async with self._lock:
                if self._source is not None:
                    _require_utf8(self._source)
                    yield self._source
                    return
                connection = await self._opened()
                try:
                    yield connection
                finally:
                    # Such as after a cancellation that came in the middle of another's work.
                    if not _is_idle(connection):
                        connection.pgconn.finish()

    async def _opened(self) -> psycopg.AsyncConnection[Any]:
        if self._own is None or self._own.closed:
            self._own = await psycopg.AsyncConnection.connect(
                self._conninfo or "",
                autocommit=True,
                prepare_threshold=None,
                client_encoding="UTF8",
                **self._connecting,
            )
        return self._own

    @asynccontextmanager
    async def _transaction(
        self, connection: psycopg.AsyncConnection[Any], is_read_committed: bool = False
    ) -> AsyncIterator[None]:
        idle = _is_idle(connection)
        async with connection.transaction():
            if idle and is_read_committed:
                async with _Cursor(connection) as cursor:
                    await cursor.execute("SET TRANSACTION ISOLATION LEVEL READ COMMITTED", prepare=False)
            before: dict[str, str | None] = {}
            if self._settings and not idle:
                # The transaction is the application's, and goes on: its settings come back after the call.
                async with _Cursor(connection, row_factory=tuple_row) as cursor:
                    await cursor.execute(
                        "SELECT name, pg_catalog.current_setting(name, true)"
                        " FROM pg_catalog.unnest(%s::pg_catalog.text[]) AS asked (name)",
                        (list(self._settings),),
                        prepare=False,
                    )
                    before = dict(await cursor.fetchall())
            await self._set(connection, self._settings)
            yield
            await self._set(connection, before)

    async def _set(self, connection: psycopg.AsyncConnection[Any], settings: Mapping[str, str | None]) -> None:
        """Those without a value were not known before: the call has loaded the library."""
        values = [part for name, value in settings.items() if value is not None for part in (name, value)]
        unknown = [sql.Identifier(*name.split(".")) for name, value in settings.items() if value is None]
        async with _Cursor(connection) as cursor:
            if values:
                calls = ", ".join(["pg_catalog.set_config(%s, %s, true)"] * (len(values) // 2))
                await cursor.execute(f"SELECT {calls}", values, prepare=False)
            for name in unknown:
                await cursor.execute(sql.SQL("SET LOCAL {} TO DEFAULT").format(name), prepare=False)

    async def _extension(self, connection: psycopg.AsyncConnection[Any]) -> TupleRow:
        """What EXTENSION gives. Nobody drops that before the transaction ends: its schemas could be another's by
        the next statement.

        The name that was locked is known to have been the extension's where it was that before as well: nobody gives
        such a table, or its schema, another name.
        """
        async with _Cursor(connection, row_factory=tuple_row) as cursor:
            for _ in range(_ATTEMPTS):
                before = self._held
                try:
                    await cursor.execute("LOCK TABLE graph_kernel.binding IN ACCESS SHARE MODE", prepare=False)
                except (psycopg.errors.InvalidSchemaName, psycopg.errors.UndefinedTable) as error:
                    raise no_extension() from error
                await cursor.execute(EXTENSION, prepare=False)
                found = await cursor.fetchone()
                if found is None:
                    break
                self._held = found[0]
                if before == found[0]:
                    return found
        raise no_extension()

    async def _statement(self, connection: psycopg.AsyncConnection[Any], query: str) -> sql.Composed:
        prefix = ""
        if "{gk}" in query or "graph_kernel." in query:
            _, schema, role, owner = await self._extension(connection)
            # The functions of the extension, not any of their names that the search_path finds first.
            prefix = schema.replace("%", "%%") + "."
            if "{gk}" in query and owner is not None:
                raise could_run_code(role, owner, f"schema {schema}")
        return sql.SQL(query).format(gk=sql.SQL(prefix))

    async def _execute(
        self, connection: psycopg.AsyncConnection[Any], query: str, parameters: Parameters
    ) -> list[DictRow]:
        statement = await self._statement(connection, query)
        # Of the plain class, whatever the connection's own are and return.
        async with _Cursor(connection, row_factory=dict_row) as cursor:
            await cursor.execute(statement, parameters, prepare=False)
            return await cursor.fetchall()


def _require_utf8(connection: psycopg.AsyncConnection[Any]) -> None:
    # In another encoding, texts and JSON would be read differently.
    if connection.info.encoding != "utf-8":
        raise ConfigurationError(
            f"the connection's client_encoding is read as {connection.info.encoding}, not as UTF-8",
            hint="SET client_encoding = 'UTF8';",
        )


def _is_idle(connection: psycopg.AsyncConnection[Any]) -> bool:
    return connection.info.transaction_status == TransactionStatus.IDLE


class Transaction:
    """Statements of one transaction."""

    def __init__(self, database: Database, connection: psycopg.AsyncConnection[Any]) -> None:
        self._database = database
        self.connection = connection

    async def fetch(self, query: str, parameters: Parameters = ()) -> list[DictRow]:
        return await self._database._execute(self.connection, query, parameters)

    async def execute(self, query: str, parameters: Parameters = ()) -> int:
        """A statement without rows; how many it has changed."""
        statement = await self._database._statement(self.connection, query)
        async with _Cursor(self.connection) as cursor:
            await cursor.execute(statement, parameters, prepare=False)
            return cursor.rowcount

    async def lock(self, turns: str, session: str, *, appends: bool = True) -> None:
        """Waits for others that write this session, at most ten seconds, and keeps them waiting until the end. The
        library refuses tables that their binder may not write."""
        try:
            # The columns are computed in their order. A failure takes the setting back with the transaction.
            (locked,) = await self.fetch(
                f"""SELECT pg_catalog.set_config('lock_timeout', s.most, true) AS most,
                           graph_kernel.advisory_xact_lock(
                               %s::pg_catalog.regclass, pg_catalog.hashtext(%s COLLATE pg_catalog."C")) AS locked,
                           pg_catalog.set_config('lock_timeout', s.value, true) AS before,
                           pg_catalog.current_setting('transaction_isolation') AS isolation
                      FROM (SELECT value, CASE WHEN value::pg_catalog.interval {operator(">=")} '1ms'
                                                AND value::pg_catalog.interval {operator("<=")} '10s'
                                               THEN value ELSE '10s' END AS most
                            FROM pg_catalog.current_setting('lock_timeout') AS value OFFSET 0) AS s""",
                (unescaped(turns), session),
            )
        except psycopg.errors.LockNotAvailable as error:
            raise GraphKernelError(
                f"another transaction appends to session {session}",
                sqlstate=error.sqlstate,
                hint="Call it again; pg_locks shows who holds an advisory lock.",
            ) from error
        if appends and locked["isolation"] in ("repeatable read", "serializable"):
            raise GraphKernelError(
                f"a transaction that is {locked['isolation'].upper()} does not see what others have appended meanwhile",
                sqlstate="25001",
                word="ISOLATION_LEVEL",
                hint="Begin it as READ COMMITTED, or call this outside of a transaction.",
            )

    async def graph(self) -> DictRow:
        """The chosen graph: its name, its tables with their schemas, and its mapping.

        The library says whether its binding counts, and locks the tables.
        """
        (bound,) = await self.fetch(
            f"""SELECT g.name, g.described {operator("#>>")} '{{{{turns,oid}}}}'::pg_catalog.text[] AS turns,
                       g.described {operator("#>>")} '{{{{edges,oid}}}}'::pg_catalog.text[] AS edges, b.columns,
                       b.edges_by_child IS NOT NULL AS has_both
                  FROM (SELECT c.name, graph_kernel.describe_graph(c.name) AS described
                          FROM graph_kernel.chosen_graph() AS c (name) OFFSET 0) AS g
                  LEFT JOIN graph_kernel.bindings AS b ON b.is_current AND b.name {EQ} g.name"""
        )
        parts = [part for part in ("turns", "edges") if bound[part]]
        return bound | dict(zip(parts, await self.named(*(bound[part] for part in parts)), strict=True))

    async def named(self, *tables: str) -> list[str]:
        """These tables, given by OID or name, with their schemas, quoted, as others cannot exchange them until the
        transaction ends, where policies are not for this role or for the one that logged in; an error where they can.

        The owner of a schema can put a view in the place of a table between two statements, whose code would run as
        this role. Such code a table's owner has in a policy as well, but not for a role that policies are not for. For
        a superuser it is an error also where a table, or a partition, is another's, whose triggers would run as the
        superuser. The name of a schema that is this role's own, or a superuser's, stays.
        """
        found = await self.fetch(
            f"""SELECT a.asked, u.oid IS NULL AS is_missing, f.role, f.what, f.owner,
                       pg_catalog.concat(pg_catalog.quote_ident(u.nspname), '.',
                                         pg_catalog.quote_ident(b.relname)) AS name
                  FROM pg_catalog.unnest(%s::pg_catalog.text[]) WITH ORDINALITY AS a (asked, place)
                  LEFT JOIN pg_catalog.pg_class AS b
                    ON b.oid {EQ} CASE WHEN a.asked {operator("~")} '^[0-9]+$' THEN a.asked::pg_catalog.oid
                                       ELSE pg_catalog.to_regclass(a.asked)::pg_catalog.oid END
                  LEFT JOIN pg_catalog.pg_namespace AS u ON u.oid {EQ} b.relnamespace
                  LEFT JOIN LATERAL (
                      SELECT r.rolname AS role, pg_catalog.format(f.what, n.nspname, c.relname) AS what, f.owner
                        FROM pg_catalog.pg_roles AS r
                       CROSS JOIN LATERAL (
                           WITH RECURSIVE part (oid) AS (
                               SELECT b.oid
                               UNION
                               SELECT i.inhrelid
                                 FROM part AS p JOIN pg_catalog.pg_inherits AS i ON i.inhparent {EQ} p.oid)
                           SELECT part.oid FROM part) AS p
                        JOIN pg_catalog.pg_class AS c ON c.oid {EQ} p.oid
                        JOIN pg_catalog.pg_roles AS w ON w.oid {EQ} c.relowner
                        JOIN pg_catalog.pg_namespace AS n ON n.oid {EQ} c.relnamespace
                        JOIN pg_catalog.pg_roles AS s ON s.oid {EQ} n.nspowner
                        JOIN pg_catalog.pg_database AS d ON d.datname {EQ} pg_catalog.current_database()
                        JOIN pg_catalog.pg_roles AS o
                          ON o.oid {EQ} CASE WHEN s.rolname {EQ} 'pg_database_owner' THEN d.datdba ELSE s.oid END
                       CROSS JOIN LATERAL (
                           SELECT 'schema %%I', o.rolname WHERE NOT o.rolsuper AND NOT o.oid {EQ} r.oid
                           UNION ALL
                           SELECT 'table %%I.%%I', w.rolname
                            WHERE NOT w.rolsuper AND NOT w.oid {EQ} r.oid
                              AND (r.rolsuper OR NOT c.relkind {EQ} ANY ('{{{{r,p}}}}'))) AS f (what, owner)
                       WHERE {IS_OWN_ROLE} AND (r.rolsuper OR r.rolbypassrls) LIMIT 1) AS f ON true
                 ORDER BY a.place""",
            (list(tables),),
        )
        for table in found:
            # Also one that came after this transaction began, whose owner it does not see.
            if table["is_missing"]:
                raise GraphKernelError(f"relation {table['asked']} does not exist", sqlstate="42P01")
            if table["owner"] is not None:
                raise could_run_code(table["role"], table["owner"], table["what"])
        return [table["name"] for table in found]

    async def tables(self) -> tuple[str, str]:
        """The tables that are written, as statements have them: those of the graph, if they are of create_tables'
        form."""
        bound = await self.graph()
        if bound["columns"] or bound["has_both"] or bound["edges"] is None:
            raise GraphKernelError(
                f"{bound['turns']} is bound with columns of its own: a conversation is not written there",
                sqlstate="0A000",
                word="INVALID_BINDING",
                hint="Write with what the table belongs to, or make tables with graph_kernel.create_tables.",
            )
        return escaped(bound["turns"]), escaped(bound["edges"])

    async def refuse_tables_of_others(self, *names: str) -> None:
        """An error where a table of these names in the schema `public` is a stranger's, whose code each use would run.

        It may be of this role, of one that it is a member of, or of a superuser; where policies are for this role, also
        of the owner of the database or of the extension.
        """
        others = await self.fetch(
            f"""SELECT c.relname AS name, o.rolname AS owner
                  FROM pg_catalog.pg_class AS c
                  JOIN pg_catalog.pg_namespace AS n ON n.oid {EQ} c.relnamespace AND n.nspname {EQ} 'public'
                  JOIN pg_catalog.pg_roles AS o ON o.oid {EQ} c.relowner
                  JOIN pg_catalog.pg_roles AS r ON {IS_OWN_ROLE}
                  JOIN pg_catalog.pg_database AS d ON d.datname {EQ} pg_catalog.current_database()
                  LEFT JOIN pg_catalog.pg_extension AS x ON x.extname {EQ} 'graph_kernel'
                 WHERE c.relname {EQ} ANY (%s) AND NOT o.rolsuper AND NOT o.oid {EQ} r.oid
                   AND (r.rolsuper OR r.rolbypassrls
                        OR NOT o.oid {EQ} d.datdba AND NOT coalesce(o.oid {EQ} x.extowner, false))
                   AND (r.rolsuper OR NOT pg_catalog.pg_has_role(o.oid, 'USAGE'))
                 ORDER BY c.relname""",
            (list(names),),
        )
        for other in others:
            raise GraphKernelError(
                f"table public.{other['name']} already exists, and belongs to {other['owner']}",
                sqlstate="42P07",
                word="TABLE_EXISTS",
                hint="If that role is trusted, call this as it, or as a member of it that is no superuser; else bind"
                " tables of another schema.",
            )

    async def has_embeddings(self, turns: str) -> bool:
        """Whether the table, as `tables` gives it, has a column for embeddings."""
        return await self._has_column(turns, "embedding")

    async def _has_column(self, turns: str, name: str) -> bool:
        return bool(
            await self.fetch(
                f"""SELECT FROM pg_catalog.pg_attribute
                    WHERE attrelid {EQ} %s::pg_catalog.regclass::pg_catalog.oid
                      AND attname {EQ} %s AND NOT attisdropped""",
                (unescaped(turns), name),
            )
        )

    async def insert(self, turns: str, row: Mapping[str, Any], on_conflict: str = "") -> int:
        """Stores a turn, by column; 0 where a conflict has kept it from that."""
        places = ", ".join(map(_place, row))
        return await self.execute(
            f"INSERT INTO {turns} AS t ({', '.join(row)}) VALUES ({places}) {on_conflict}", list(row.values())
        )

    async def update(self, turns: str, turn: uuid.UUID, row: Mapping[str, Any]) -> None:
        """Stores other values of a turn, by column. A hash of its old text goes, where no trigger makes another."""
        if "content_text" in row and await self._has_column(turns, "content_hash"):
            row = {**row, "content_hash": None}
        changed = ", ".join(f"{column} = {_place(column)}" for column in row)
        await self.execute(f"UPDATE {turns} SET {changed} WHERE id {EQ} %s", [*row.values(), turn])


def _place(column: str) -> str:
    return "%s::real[]" if column == "embedding" else "%s"


async def _add_words(transaction: Transaction, words: str) -> None:
    """The column and the index that create_tables makes."""
    there = await transaction.fetch(
        f"""SELECT pg_catalog.pg_get_expr(d.adbin, d.adrelid) AS made_of
             FROM pg_catalog.pg_attribute AS a
             LEFT JOIN pg_catalog.pg_attrdef AS d ON (d.adrelid, d.adnum) {EQ} (a.attrelid, a.attnum)
            WHERE a.attrelid {EQ} 'public.memory_turns'::pg_catalog.regclass::pg_catalog.oid AND a.attname {EQ} 'words'
              AND NOT a.attisdropped"""
    )
    if not there:
        configuration = sql.Literal(f"pg_catalog.{words}").as_string(transaction.connection)
        await transaction.execute(
            f"""ALTER TABLE public.memory_turns ADD COLUMN words pg_catalog.tsvector GENERATED ALWAYS AS (
                 pg_catalog.to_tsvector({escaped(configuration)}::pg_catalog.regconfig,
                                        pg_catalog."left"(content_text, 100000))
                ) STORED"""
        )
        await transaction.execute("CREATE INDEX memory_turns_words_idx ON public.memory_turns USING gin (words)")
    elif f"'{words}'::regconfig" not in (there[0]["made_of"] or "").replace("pg_catalog.", ""):
        raise GraphKernelError(
            f"public.memory_turns has a column words already, which is not made by {words}", sqlstate="42701"
        )


def _not_of_this_face(source: object) -> ConfigurationError:
    given, module = type(source), __name__.replace("_async.database", "aio").replace("_sync.database", "sync")
    name = f"{given.__module__}.{given.__qualname__}"
    return ConfigurationError(
        f"{name} is not a connection string, and not a connection, a pool or a Database of this face",
        hint=f"This class takes a {module}.Database.",
    )


Self = TypeVar("Self", bound="Client")


class Client:
    """What asks a database. One that was given stays open, and has its own timeout, graph and schema."""

    def __init__(
        self,
        source: Source | Database | None,
        *,
        timeout: float | None,
        graph: str | None,
        schema: str | None,
    ) -> None:
        self._closes = not isinstance(source, Database)
        if not isinstance(source, Database):
            source = Database(source, timeout=timeout, graph=graph, schema=schema)
        elif (timeout, graph, schema) != (None, None, None):
            raise ConfigurationError("timeout, graph and schema are those of the Database: give them to it")
        self.database = source

    async def close(self) -> None:
        if self._closes:
            await self.database.close()

    async def __aenter__(self: Self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
