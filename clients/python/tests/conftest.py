"""The database is that of PG*: the sample conversation, with embeddings of its turns and of the questions."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest

from graph_kernel_client import aio, sync

ANCHOR = "a9ad8365-bc0a-5da2-93e6-e37e99d95d9c"
MISSING = "00000000-0000-4000-8000-00000000dead"
QUESTION = "How are invoice numbers"


@pytest.fixture(autouse=True)
def no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GRAPH_KERNEL_URL", raising=False)
    monkeypatch.delenv("GRAPH_KERNEL_TIMEOUT", raising=False)


# In the schema `nearer`, under each name of PostgreSQL's own types, operators and functions, one that is an error.
NEARER = """
    CREATE SCHEMA nearer;
    GRANT USAGE ON SCHEMA nearer TO PUBLIC;
    CREATE FUNCTION nearer.refused() RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RAISE 'of others'; END $$;
    DO $do$
    DECLARE
        command text;
        made integer := 0;
    BEGIN
        FOR command IN
            SELECT format('CREATE FUNCTION nearer.%I(%s) RETURNS %s LANGUAGE plpgsql AS $$ BEGIN RAISE %L; END $$',
                          proname, pg_get_function_identity_arguments(p.oid), pg_get_function_result(p.oid),
                          'of others')
              FROM pg_proc AS p WHERE pronamespace = 'pg_catalog'::regnamespace AND prokind = 'f'
            UNION ALL
            SELECT format('CREATE FUNCTION nearer.o%s(%s) RETURNS %s LANGUAGE plpgsql AS $$ BEGIN RAISE %L; END $$;
                           CREATE OPERATOR nearer.%s (%s RIGHTARG = %s, FUNCTION = nearer.o%s)',
                          o.oid, concat_ws(', ', nullif(oprleft, 0)::regtype, oprright::regtype), oprresult::regtype,
                          'of others', oprname, 'LEFTARG = ' || nullif(oprleft, 0)::regtype || ',', oprright::regtype,
                          o.oid)
              FROM pg_operator AS o WHERE oprnamespace = 'pg_catalog'::regnamespace
            UNION ALL
            SELECT format('CREATE DOMAIN nearer.%I AS pg_catalog.%I CHECK (nearer.refused())', typname, typname)
              FROM pg_type WHERE typnamespace = 'pg_catalog'::regnamespace AND typtype = 'b' AND typelem = 0
        LOOP
            BEGIN
                EXECUTE command;
                made := made + 1;
            EXCEPTION WHEN OTHERS THEN
                NULL; -- With types that only PostgreSQL's own functions take.
            END;
        END LOOP;
        ASSERT made > 3000, made;
    END
    $do$
"""


@pytest.fixture(scope="session")
def nearer() -> str | None:
    """A search_path that finds names of others first, as who owns the database can set it for who connects."""
    if "PGHOST" not in os.environ:
        return None
    with psycopg.connect(autocommit=True) as connection:
        if not connection.execute("SELECT FROM pg_namespace WHERE nspname = 'nearer'").fetchall():
            connection.execute(NEARER)
        connection.execute("SET search_path = nearer, public, pg_catalog")
        for query in ("SELECT 1 = 1", "SELECT lower('x'::pg_catalog.text)", "SELECT 'x'::text"):
            with pytest.raises(psycopg.errors.RaiseException):
                connection.execute(query)
    return "nearer, public, pg_catalog"


@pytest.fixture(autouse=True)
def names_of_others(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, nearer: str | None) -> None:
    """Each call has that search_path, but where a test is about another one."""
    if nearer is None or request.node.get_closest_marker("own_search_path"):
        return
    for database in (sync.Database, aio.Database):
        made = database.__init__

        def make(self: Any, *arguments: Any, made: Any = made, **named: Any) -> None:
            made(self, *arguments, **named)
            self._settings["search_path"] = nearer

        monkeypatch.setattr(database, "__init__", make)


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
