"""Connections, pools, poolers, transactions, settings and errors."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest
from conftest import ANCHOR, MISSING
from psycopg.adapt import Loader
from psycopg.rows import class_row, dict_row, scalar_row, tuple_row

from graph_kernel_client import (
    ConfigurationError,
    Conversation,
    GraphKernelError,
    PolicyRef,
    ServiceUnavailable,
    aio,
    sync,
)
from graph_kernel_client._messages import Part


def test_errors_have_sqlstate_and_word(connection: psycopg.Connection[Any]) -> None:
    client = sync.SliceClient(connection)
    expected: list[tuple[Any, Any, tuple[str, str, str]]] = [
        (MISSING, None, ("02000", "ANCHOR_NOT_FOUND", "SLICE_FAILED")),
        ("turn1", None, ("22P02", "INVALID_TURN_ID", "INVALID_TURN_ID")),
        (ANCHOR, PolicyRef("slice_policy_v1", "abc123"), ("42704", "POLICY_NOT_FOUND", "POLICY_NOT_FOUND")),
        (ANCHOR, PolicyRef("slice_policy_v2", "1418f1bca097bcaf"), ("42704", "POLICY_NOT_FOUND", "POLICY_NOT_FOUND")),
        (ANCHOR, {"max_nodes": 0}, ("22023", "INVALID_POLICY", "INVALID_POLICY")),
    ]
    for anchor, policy, words in expected:
        with pytest.raises(GraphKernelError) as caught:
            client.get_slice(anchor, policy)
        assert (caught.value.sqlstate, caught.value.word, caught.value.code) == words
    edited = (client.get_slice(ANCHOR).document or "").replace('"role":"user"', '"role":"tool"', 1)
    with pytest.raises(GraphKernelError) as caught:
        client.proof(edited)
    assert (caught.value.word, caught.value.reason) == ("NOT_ADMISSIBLE", "digest_mismatch")
    assert isinstance(caught.value.__cause__, psycopg.Error)


def test_a_server_that_is_not_there() -> None:
    with pytest.raises(ServiceUnavailable) as caught:
        sync.SliceClient("host=/nowhere dbname=none").get_slice(ANCHOR)
    assert caught.value.code == "SERVICE_UNAVAILABLE"


def test_a_connection_that_was_ended(connection: psycopg.Connection[Any]) -> None:
    with sync.SliceClient("application_name=gk_ended") as client:
        client.get_slice(ANCHOR)
        connection.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'gk_ended'")
        with pytest.raises(ServiceUnavailable):
            for _ in range(2):
                client.get_slice(ANCHOR)
        assert client.get_slice(ANCHOR).slice_id == "aa4ddb424fcdabb9"


def test_timeout(connection: psycopg.Connection[Any]) -> None:
    database = sync.Database(connection, timeout=0.05)
    with pytest.raises(GraphKernelError) as caught:
        database.fetch("SELECT pg_catalog.pg_sleep(5)")
    assert caught.value.sqlstate == "57014"
    assert connection.execute("SHOW statement_timeout").fetchone() == ("0",)


def test_policies_are_written_in_four_ways(connection: psycopg.Connection[Any]) -> None:
    client = sync.SliceClient(connection)
    ref = PolicyRef("slice_policy_v1", "1418f1bca097bcaf")
    text = '{"preset": "focused"}'
    ids = {client.get_slice(ANCHOR, policy).slice_id for policy in (ref, "focused", text, {"preset": "focused"})}
    assert ids == {"23741c917101a898"}


def test_graph_is_of_the_call_alone(connection: psycopg.Connection[Any]) -> None:
    connection.execute("CREATE TABLE IF NOT EXISTS other_turns (LIKE memory_turns INCLUDING ALL)")
    connection.execute("SELECT graph_kernel.bind_tables('other_turns', 'memory_turn_edges', name => 'other')")
    try:
        other, usual = sync.SliceClient(connection, graph="other"), sync.SliceClient(connection)
        with pytest.raises(GraphKernelError) as caught:
            other.get_slice(ANCHOR)
        assert caught.value.word == "ANCHOR_NOT_FOUND"
        usual.get_slice(ANCHOR)
        # In a transaction of the application, too; an error leaves the transaction usable.
        with connection.transaction():
            connection.execute("SET LOCAL graph_kernel.graph = 'default'")
            with pytest.raises(GraphKernelError):
                other.get_slice(ANCHOR)
            other.database.fetch("SELECT 1 AS one")
            assert connection.execute("SHOW graph_kernel.graph").fetchone() == ("default",)
            usual.get_slice(ANCHOR)
        with pytest.raises(GraphKernelError) as caught:
            sync.SliceClient(connection, graph="none").get_slice(ANCHOR)
        assert caught.value.word == "GRAPH_NOT_FOUND"
    finally:
        connection.execute("SELECT graph_kernel.unbind_tables('other')")
        connection.execute("DROP TABLE other_turns")


def test_a_connection_without_autocommit() -> None:
    with psycopg.connect() as connection:
        client = sync.SliceClient(connection)
        client.get_slice(ANCHOR)
        # A call is a transaction: none is left open, to hold its snapshot and its locks.
        assert connection.info.transaction_status == psycopg.pq.TransactionStatus.IDLE


@pytest.mark.own_search_path
def test_extension_in_another_schema(connection: psycopg.Connection[Any]) -> None:
    connection.execute("SET search_path = pg_temp")
    export = sync.SliceClient(connection, schema="public").get_slice(ANCHOR, "focused")
    assert export.slice_id == "23741c917101a898"
    # It is found without being told, and is no function of its name that comes first.
    assert sync.SliceClient(connection).get_slice(ANCHOR, "focused").slice_id == "23741c917101a898"
    connection.execute("CREATE SCHEMA IF NOT EXISTS evil")
    try:
        connection.execute(
            """CREATE FUNCTION evil.graph_verify(json, OUT valid boolean, OUT reason text, OUT kid text, OUT role text,
                                                 OUT rls boolean)
               LANGUAGE sql AS $$ SELECT true, 'ok', '', '', false $$"""
        )
        connection.execute("SET search_path = evil, public")
        assert not sync.SliceClient(connection).verify("{}").valid
    finally:
        connection.execute("DROP SCHEMA evil CASCADE")


def test_another_encoding(connection: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    for encoding in ("LATIN1", "SQL_ASCII"):
        monkeypatch.setenv("PGCLIENTENCODING", encoding)
        with sync.SliceClient() as client:
            assert client.get_slice(ANCHOR)
        with psycopg.connect() as given, pytest.raises(ConfigurationError, match="not as UTF-8"):
            sync.SliceClient(given).get_slice(ANCHOR)


class TextLoader(Loader):
    def load(self, data: Any) -> str:
        return bytes(data).decode()


def test_what_the_application_reads_values_with(connection: psycopg.Connection[Any]) -> None:
    """As Django's connections read JSON as text."""
    with psycopg.connect(autocommit=True) as given:
        for kind in ("uuid", "jsonb", "json", "numeric", "float8", "int8", "bool", "timestamptz"):
            given.adapters.register_loader(kind, TextLoader)
        conversation = Conversation(given, "loaders")
        ids = conversation.append({"role": "user", "content": [{"type": "text", "text": "one"}]})
        part = Part({"role": "user", "content": "two"}, [], turn_id=uuid.uuid4())
        assert len(conversation.append_parts([part])) == 1
        assert conversation.append_parts([part]) == []
        first, _ = conversation.turns()
        assert first.turn_id == ids[0] and first.payload == {
            "role": "user",
            "content": [{"type": "text", "text": "one"}],
        }
        assert isinstance(conversation.messages("openai"), dict)
        conversation.clear()
        assert given.execute("SELECT '{}'::jsonb").fetchone() == ("{}",)


def test_pipeline(connection: psycopg.Connection[Any]) -> None:
    client = sync.SliceClient(connection, timeout=20)
    with connection.pipeline():
        assert client.get_slice(ANCHOR, "focused").slice_id == "23741c917101a898"
        with pytest.raises(GraphKernelError):
            client.get_slice(MISSING)
        assert client.verify(client.get_slice(ANCHOR)).valid


def test_threads_share_a_connection(connection: psycopg.Connection[Any]) -> None:
    client = sync.SliceClient(connection, timeout=60)
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda _: client.get_slice(ANCHOR, "focused").slice_id, range(32)))
    assert set(found) == {"23741c917101a898"}


def test_pools() -> None:
    pool = pytest.importorskip("psycopg_pool")
    with pool.ConnectionPool("", min_size=1, max_size=2, open=True) as sync_pool:
        client = sync.SliceClient(sync_pool, timeout=60)
        with ThreadPoolExecutor(8) as threads:
            found = list(threads.map(lambda _: client.get_slice(ANCHOR, "focused").slice_id, range(16)))
    assert set(found) == {"23741c917101a898"}

    async def example() -> None:
        async with pool.AsyncConnectionPool("", min_size=1, max_size=2, open=False) as async_pool:
            client = aio.SliceClient(async_pool)
            exports = await asyncio.gather(*(client.get_slice(ANCHOR, "focused") for _ in range(8)))
            assert {export.slice_id for export in exports} == {"23741c917101a898"}
            with pytest.raises(GraphKernelError):
                await client.get_slice(MISSING)
            assert (await client.get_slice(ANCHOR)).slice_id == "aa4ddb424fcdabb9"

    asyncio.run(example())


@pytest.fixture
def pooler() -> Iterator[str]:
    """PgBouncer in transaction mode, with one connection that all clients share."""
    program = shutil.which("pgbouncer", path="/usr/sbin:/usr/local/bin")
    if program is None:
        pytest.skip("PgBouncer is not installed")
    folder, port = tempfile.mkdtemp(dir="/tmp"), "6434"
    with open(f"{folder}/users", "w") as users:
        users.write(f'"{os.environ["PGUSER"]}" ""\n')
    with open(f"{folder}/ini", "w") as settings:
        settings.write(
            f"[databases]\n* = host={os.environ['PGHOST']} port={os.environ['PGPORT']}\n[pgbouncer]\n"
            f"pool_mode = transaction\ndefault_pool_size = 1\nlisten_port = {port}\nunix_socket_dir = {folder}\n"
            f"auth_type = trust\nauth_file = {folder}/users\n"
        )
    owner = os.environ.get("GRAPH_KERNEL_SERVER_USER") if os.geteuid() == 0 else None
    if owner:  # It refuses to run as root.
        for path in (folder, f"{folder}/users", f"{folder}/ini"):
            shutil.chown(path, owner)
    process = subprocess.Popen(
        [program, f"{folder}/ini"], user=owner, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL
    )
    try:
        start = time.monotonic()
        while not os.path.exists(f"{folder}/.s.PGSQL.{port}"):
            assert process.poll() is None and time.monotonic() - start < 30, "PgBouncer does not start"
            time.sleep(0.01)
        yield f"host={folder} port={port}"
    finally:
        process.kill()
        process.wait()
        shutil.rmtree(folder)


def test_pgbouncer_in_transaction_mode(pooler: str) -> None:
    clients = [sync.SliceClient(pooler, timeout=30, graph=graph) for graph in ("default", None, "default")]
    for _ in range(8):  # more often than the five times after which psycopg would prepare a statement
        for client in clients:
            assert client.get_slice(ANCHOR, "focused").slice_id == "23741c917101a898"
    # No setting stayed in the session that all share.
    with psycopg.connect(pooler, autocommit=True, prepare_threshold=None) as plain:
        assert plain.execute("SELECT current_setting('statement_timeout')").fetchone() == ("0",)
    for client in clients:
        client.close()


def test_the_two_faces_are_of_one_source() -> None:
    script = os.path.join(os.path.dirname(__file__), "..", "make_sync.py")
    subprocess.run([sys.executable, script, "--check"], check=True)


@pytest.mark.parametrize("wrong", [aio.Database(), 3, {}])
def test_what_is_not_a_source(wrong: Any) -> None:
    """Also what is of the other face."""
    with pytest.raises(ConfigurationError, match="connection"):
        sync.Conversation(wrong)


def test_options_beside_a_database() -> None:
    for options in ({"graph": "other"}, {"timeout": 5}, {"schema": "x"}):
        with pytest.raises(ConfigurationError, match="Database"):
            sync.Conversation(sync.Database(), **options)


def test_the_other_face_is_named(connection: psycopg.Connection[Any]) -> None:
    with pytest.raises(ConfigurationError, match=r"graph_kernel_client\.aio\.Database"):
        aio.SliceClient(sync.Database())  # type: ignore[arg-type]
    pool = pytest.importorskip("psycopg_pool")
    with pytest.raises(ConfigurationError, match="AsyncConnectionPool"):
        sync.Database(pool.AsyncConnectionPool("", open=False)).fetch("SELECT 1 AS one")


@pytest.mark.parametrize("factory", [dict_row, scalar_row, tuple_row, class_row(dict)])
def test_rows_of_the_application(factory: Any) -> None:
    with psycopg.connect(row_factory=factory, cursor_factory=psycopg.RawCursor) as connection:
        connection.execute("SELECT 1")
        client = sync.SliceClient(connection, timeout=20, graph="default")
        assert client.get_slice(ANCHOR, "focused").slice_id == "23741c917101a898"
        sync.Conversation(connection).append({"role": "user", "content": "x"})
        connection.rollback()


def test_calls_within_a_transaction_do_not_wait_for_it(connection: psycopg.Connection[Any]) -> None:
    pool = pytest.importorskip("psycopg_pool")
    with pool.ConnectionPool("", min_size=1, open=True) as opened:
        for database in (sync.Database(), sync.Database(connection), sync.Database(opened)):
            with pytest.raises(GraphKernelError) as caught, database.transaction():
                sync.Conversation(database).head()
            assert caught.value.sqlstate == "55000"
            sync.Conversation(database).head()
            database.close()

    async def example() -> None:
        async with aio.Database() as database:
            with pytest.raises(GraphKernelError) as caught:
                async with database.transaction():
                    await aio.Conversation(database).head()
            assert caught.value.sqlstate == "55000"

    asyncio.run(example())


def test_a_server_that_does_not_answer() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"host=127.0.0.1 user=x port={silent.getsockname()[1]}"
        for database in (sync.Database(address, timeout=1), sync.Database(f"{address} connect_timeout=2", timeout=60)):
            begin = time.monotonic()
            with pytest.raises(ServiceUnavailable):
                database.fetch("SELECT 1 AS one")
            assert time.monotonic() - begin < 30


def test_what_was_given_stays_open() -> None:
    with sync.Database() as database:
        with sync.SliceClient(database) as client:
            client.health()
        with sync.Conversation(database) as conversation, conversation.branch() as branch:
            assert branch.head() is None
        sync.AnchorResolver(database).close()
        assert database._own is not None and not database._own.closed
        own = database._own
    assert own.closed
    with sync.MemoryRetriever() as retriever:
        retriever.database.fetch("SELECT 1 AS one")
        own = retriever.database._own
    assert own is not None and own.closed


def test_objects_over_one_connection_wait_for_each_other(connection: psycopg.Connection[Any]) -> None:
    """Else one would be in the transaction of another, and get a slice without a token."""
    conversation = sync.Conversation(connection)

    def use(n: int) -> bool:
        if n % 4 == 0:
            sync.Conversation(connection, conversation.session_id).append({"role": "user", "content": str(n)})
        return sync.SliceClient(connection, timeout=60).get_slice(ANCHOR, "focused").admissibility_token is not None

    with ThreadPoolExecutor(8) as threads:
        assert all(threads.map(use, range(48)))
    assert len(conversation.turns()) == 12
    conversation.clear()


def test_a_connection_that_is_left_in_the_middle() -> None:
    """As cancellations leave it with some versions of psycopg: the next call has another one."""
    with sync.Database() as database:
        with pytest.raises(KeyError):  # noqa: SIM117
            with database._connection() as connection:
                connection.autocommit = True
                connection.execute("BEGIN")
                raise KeyError
        assert database.fetch("SELECT 1 AS one") == [{"one": 1}] and connection.closed


def test_a_call_that_is_cancelled() -> None:
    async def example() -> None:
        async with aio.Database() as database:
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(database.fetch("SELECT pg_catalog.pg_sleep(30) AS slept"), 0.2)
            assert await database.fetch("SELECT 1 AS one") == [{"one": 1}]

    asyncio.run(example())


def test_tables_are_made_once(empty: sync.Database) -> None:
    def make(_: int) -> None:
        with sync.Database("dbname=gk_python_tables") as database:
            database.create_tables(words="english", embeddings=True)

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(make, range(4)))


def test_extension_and_graph_in_a_schema(empty: sync.Database) -> None:
    with sync.Database("dbname=gk_python_tables", schema="o%d {x}") as database:
        with empty.transaction() as transaction:
            transaction.execute('CREATE SCHEMA "o%%d {{x}}"')
        database.create_tables(words="english")
        conversation = sync.Conversation(database)
        conversation.append({"role": "user", "content": "Hello."})
        assert conversation.messages() == {"messages": [{"role": "user", "content": "Hello."}]}
        assert sync.AnchorResolver(database).resolve_temporal(1) == [conversation.head()]


@pytest.fixture
def empty(connection: psycopg.Connection[Any]) -> Iterator[sync.Database]:
    """A database of its own, without the extension."""
    connection.execute("DROP DATABASE IF EXISTS gk_python_tables WITH (FORCE)")
    connection.execute("CREATE DATABASE gk_python_tables")
    with sync.Database("dbname=gk_python_tables") as database:
        yield database
    connection.execute("DROP DATABASE gk_python_tables WITH (FORCE)")


def test_words_are_added_to_tables_that_are_there(empty: sync.Database) -> None:
    empty.create_tables()
    conversation = sync.Conversation(empty)
    conversation.append({"role": "user", "content": "My sister Ida eats no fish."})
    conversation.append({"role": "user", "content": "What do we cook?"})
    with pytest.raises(GraphKernelError) as caught:
        conversation.recall("What does my sister eat?")
    assert caught.value.word == "NO_WORDS"
    for wrong in ("klingon", ""):
        with pytest.raises(GraphKernelError) as caught:
            empty.create_tables(words=wrong)
        assert (caught.value.sqlstate, caught.value.word) == ("22023", "INVALID_OPTIONS")
    for _ in range(2):
        empty.create_tables(words="english", embeddings=True)
    assert "My sister Ida eats no fish." in [turn.content for turn in conversation.recall("sisters")]
    row = empty.fetch_one("SELECT count(*) AS n FROM pg_indexes WHERE indexname = 'memory_turns_words_idx'")
    assert row["n"] == 1
    with pytest.raises(GraphKernelError, match="words") as caught:
        empty.create_tables(words="german")
    assert caught.value.sqlstate == "42701"
    empty.create_tables()


def test_tables_with_words_are_as_create_tables_makes_them(empty: sync.Database) -> None:
    def words() -> list[dict[str, Any]]:
        return empty.fetch(
            """SELECT pg_get_expr(d.adbin, d.adrelid) AS made_of, a.attgenerated, pg_get_indexdef(i.indexrelid) AS index
                 FROM pg_attribute AS a JOIN pg_attrdef AS d ON (d.adrelid, d.adnum) = (a.attrelid, a.attnum)
                 JOIN pg_index AS i ON i.indrelid = a.attrelid AND i.indkey[0] = a.attnum
                WHERE a.attrelid = 'memory_turns'::regclass AND a.attname = 'words'"""
        )

    empty.create_tables(words="english")
    at_once = words()
    assert len(at_once) == 1
    with empty.transaction() as transaction:
        transaction.execute("DROP TABLE memory_turn_edges, memory_turns")
    empty.create_tables()
    empty.create_tables(words="english")
    assert words() == at_once


def test_a_graph_that_is_named_before_the_library_is_loaded(connection: psycopg.Connection[Any]) -> None:
    """In a transaction of the application its own calls go on as before."""
    with psycopg.connect() as own:
        own.execute("SELECT 1")
        sync.Database(own, graph="default").fetch("SELECT {gk}graph_anchor() IS NOT NULL AS is_there")
        assert own.execute("SHOW graph_kernel.graph").fetchone() == ("default",)


def test_the_chosen_graph_is_written(connection: psycopg.Connection[Any]) -> None:
    """As it is read, where others are bound beside it."""
    connection.execute("SELECT graph_kernel.unbind_tables()")
    for name in ("one", "two"):
        connection.execute(f"CREATE SCHEMA {name}")
        connection.execute("SELECT graph_kernel.create_tables(%s)", (name,))
        bind = "SELECT graph_kernel.bind_tables(%s::regclass, %s::regclass, name => %s)"
        connection.execute(bind, (f"{name}.memory_turns", f"{name}.memory_turn_edges", name))
    try:
        for graph, schema in (("one", "one"), ("two", "two"), ("default", "public"), (None, "public")):
            conversation = Conversation(sync.Database(graph=graph), str(uuid.uuid4()))
            conversation.append({"role": "user", "content": "a"})
            assert len(conversation.messages()["messages"]) == 1
            count = f"SELECT count(*) FROM {schema}.memory_turns WHERE session_id = %s"
            assert connection.execute(count, (conversation.session_id,)).fetchone() == (1,)
            conversation.clear()
            assert connection.execute(count, (conversation.session_id,)).fetchone() == (0,)
        with pytest.raises(GraphKernelError) as caught:
            Conversation(sync.Database(graph="three")).append({"role": "user", "content": "a"})
        assert caught.value.word == "GRAPH_NOT_FOUND"
    finally:
        for name in ("one", "two"):
            connection.execute("SELECT graph_kernel.unbind_tables(%s)", (name,))
            connection.execute(f"DROP SCHEMA {name} CASCADE")
